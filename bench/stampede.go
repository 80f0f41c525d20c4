package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// crowd is how many viewers want one cold image at once.
const crowd = 1000

// stampedeTable lets a crowd ask for one cold image at the same moment.
func stampedeTable(ctx context.Context, b *bench) error {
	t := newTable(fmt.Sprintf("%d viewers at once for one cold image, %d times", crowd, b.rounds),
		"first_response.wait", "origin requests", "conversions", "whole answers", "of these WebP", "CPU-ms of karui each time")
	for _, wait := range []string{"0s", "300ms", "30s"} {
		karui, err := startKarui(ctx, b, "karui", karuiOptions{memory: "256MiB", wait: wait})
		if err != nil {
			return err
		}
		var sum stampede
		var cpu []float64
		for round := range b.rounds {
			b.say("stampede, wait %s, round %d of %d", wait, round+1, b.rounds)
			s, err := b.stampede(ctx, karui)
			if err != nil {
				karui.stop()
				return err
			}
			sum.asked, sum.converted = sum.asked+s.asked, sum.converted+s.converted
			sum.whole, sum.webp = sum.whole+s.whole, sum.webp+s.webp
			cpu = append(cpu, milliseconds(s.cpu))
		}
		karui.stop()
		t.row(wait, each(sum.asked, b.rounds), each(sum.converted, b.rounds), each(sum.whole, b.rounds), each(sum.webp, b.rounds),
			spread(cpu, "%.0f"))
	}
	t.print(b)
	return nil
}

func each(total int64, rounds int) string { return fmt.Sprintf("%.4g", float64(total)/float64(rounds)) }

type stampede struct {
	asked, converted, whole, webp int64
	cpu                           time.Duration
}

func (b *bench) stampede(ctx context.Context, karui *server) (stampede, error) {
	var s stampede
	path := b.origin.fresh("M")
	original, _ := b.origin.photo(path)
	before, err := karui.metric(ctx, "karui_conversions_total", "")
	if err != nil {
		return s, err
	}
	used, err := karui.cpu()
	if err != nil {
		return s, err
	}
	asked := b.origin.asked.Load()
	answers := make([][]byte, crowd)
	types := make([]string, crowd)
	client := newClient(crowd)
	defer client.CloseIdleConnections()
	start := make(chan struct{})
	var ready sync.WaitGroup
	group, groupCtx := errgroup.WithContext(ctx)
	for i := range crowd {
		ready.Add(1)
		group.Go(func() error {
			r, err := request(groupCtx, karui.url+path, takesWebP)
			ready.Done()
			if err != nil {
				return err
			}
			<-start
			answer, err := client.Do(r)
			if err != nil {
				return fmt.Errorf("ask: %w", err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				return fmt.Errorf("read answer: %w", err)
			}
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("status %d", answer.StatusCode)
			}
			answers[i], types[i] = body, answer.Header.Get("Content-Type")
			return nil
		})
	}
	ready.Wait()
	close(start)
	if err := group.Wait(); err != nil {
		return s, err
	}
	variant, err := getWebP(ctx, client, karui.url+path)
	for range 300 { // the conversion goes on behind the answers
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		variant, err = getWebP(ctx, client, karui.url+path)
	}
	if err != nil {
		return s, err
	}
	after, err := karui.cpu()
	if err != nil {
		return s, err
	}
	s.cpu, s.asked = after-used, b.origin.asked.Load()-asked
	for i, body := range answers {
		switch {
		case types[i] == "image/webp" && bytes.Equal(body, variant):
			s.whole, s.webp = s.whole+1, s.webp+1
		case types[i] == "image/jpeg" && bytes.Equal(body, original):
			s.whole++
		}
	}
	now, err := karui.metric(ctx, "karui_conversions_total", "")
	s.converted = int64(now - before)
	return s, err
}
