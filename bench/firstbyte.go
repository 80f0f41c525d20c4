package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// firstByteTable measures how long after the origin's first byte the viewers of a cold original have theirs. The
// origin sends its first 16 KiB, rests, and sends the rest, so that only what is passed on at once counts.
func firstByteTable(ctx context.Context, b *bench) error {
	karui, err := startKarui(ctx, b, "karui", karuiOptions{memory: "256MiB", wait: "0s"})
	if err != nil {
		return err
	}
	defer karui.stop()
	t := newTable("First byte of an original on a miss, after the origin's, first_response.wait 0",
		"who", "viewers", "median ms", "p99 ms", "slowest ms", "origin requests per image")
	for _, viewers := range []int{1, 50} {
		direct, err := b.firstBytes(ctx, &server{name: "no proxy", url: b.origin.url}, viewers)
		if err != nil {
			return err
		}
		via, err := b.firstBytes(ctx, karui, viewers)
		if err != nil {
			return err
		}
		for _, f := range []firstBytes{direct, via} {
			t.row(f.name, viewers, fmt.Sprintf("%.2f", milliseconds(quantile(f.after, 0.5))),
				fmt.Sprintf("%.2f", milliseconds(quantile(f.after, 0.99))),
				fmt.Sprintf("%.2f", milliseconds(quantile(f.after, 1))),
				fmt.Sprintf("%.1f", f.asked))
		}
	}
	t.print(b)
	return nil
}

type firstBytes struct {
	name  string
	after []time.Duration
	asked float64
}

const (
	firstPart = 16 << 10
	// gather is how long the origin waits for all viewers to have come.
	gather = 300 * time.Millisecond
	// rest is how long it waits between the first part and the remainder.
	rest = 50 * time.Millisecond
)

// firstBytes measures one server, with as many images as there are rounds.
func (b *bench) firstBytes(ctx context.Context, s *server, viewers int) (firstBytes, error) {
	result := firstBytes{name: s.name}
	client := newClient(viewers)
	defer client.CloseIdleConnections()
	body := b.album["M"][0].body
	asked := int64(0)
	for round := range 4 * b.rounds {
		sent := make(chan time.Time, viewers)
		path := fmt.Sprintf("/first/%d.jpg", b.origin.next.Add(1))
		original := numbered(body, int64(round))
		b.origin.put(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/jpeg")
			w.Header().Set("Content-Length", strconv.Itoa(len(original)))
			time.Sleep(gather)
			flush := http.NewResponseController(w)
			sent <- time.Now()
			_, _ = w.Write(original[:firstPart]) // whoever left notices
			_ = flush.Flush()
			time.Sleep(rest)
			_, _ = w.Write(original[firstPart:])
		})
		before := b.origin.asked.Load()
		arrived := make([]time.Time, viewers)
		group, ctx := errgroup.WithContext(ctx)
		for i := range viewers {
			group.Go(func() (err error) {
				arrived[i], err = firstByte(ctx, client, s.url+path, len(original))
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return result, fmt.Errorf("%s: %w", s.name, err)
		}
		asked += b.origin.asked.Load() - before
		if s.admin == "" && viewers > 1 {
			continue // each has an answer of its own, so that "after the first byte" means nothing
		}
		start := <-sent
		for _, at := range arrived {
			result.after = append(result.after, at.Sub(start))
		}
	}
	result.asked = float64(asked) / float64(4*b.rounds)
	return result, nil
}

// firstByte gets an image and tells when the first byte of its body was there.
func firstByte(ctx context.Context, client *http.Client, url string, size int) (time.Time, error) {
	r, err := request(ctx, url, takesWebP)
	if err != nil {
		return time.Time{}, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask: %w", err)
	}
	defer answer.Body.Close()
	var one [1]byte
	if _, err := answer.Body.Read(one[:]); err != nil {
		return time.Time{}, fmt.Errorf("read first byte: %w", err)
	}
	at := time.Now()
	n, err := drain(answer)
	if err != nil {
		return at, err
	}
	if answer.StatusCode != http.StatusOK || n+1 != int64(size) {
		return at, fmt.Errorf("%s: status %d and %d bytes, want 200 and %d", url, answer.StatusCode, n+1, size)
	}
	return at, nil
}
