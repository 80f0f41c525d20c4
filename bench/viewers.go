package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// seen is what viewers got.
type seen struct {
	mu        sync.Mutex
	first     []time.Duration // to the first byte
	statuses  map[int]int     // 0 for no answer
	reasons   map[string]int  // of 503s
	uncached  int             // 503s with no-store
	variants  int
	pictures  int
	lastFirst time.Time // when the last 200 came
}

func newSeen() *seen { return &seen{statuses: map[int]int{}, reasons: map[string]int{}} }

func (s *seen) count(status int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses[status]
}

func (s *seen) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.statuses {
		n += k
	}
	return n
}

func (s *seen) quantile(q float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return milliseconds(quantile(s.first, q))
}

// ask is one viewer.
func (s *seen) ask(ctx context.Context, client *http.Client, url, host string) (status int) {
	began := time.Now()
	var first time.Time
	trace := &httptrace.ClientTrace{GotFirstResponseByte: func() { first = time.Now() }}
	r, err := request(httptrace.WithClientTrace(ctx, trace), url, takesWebP)
	if err != nil {
		return 0
	}
	r.Host = host
	answer, err := client.Do(r)
	kind, reason, control := "", "", ""
	whole := false
	if err == nil {
		status = answer.StatusCode
		kind, reason, control = answer.Header.Get("Content-Type"), answer.Header.Get("X-Karui-Reason"), answer.Header.Get("Cache-Control")
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close() // it was read
		if whole = err == nil; !whole {
			status = 0 // half a body is no picture
		}
	}
	if ctx.Err() != nil && !whole {
		return 0 // the measurement is over
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statuses[status]++
	switch {
	case status == http.StatusServiceUnavailable:
		s.reasons[reason]++
		if control == "no-store" {
			s.uncached++
		}
	case status == http.StatusOK:
		s.first = append(s.first, first.Sub(began))
		s.lastFirst = first
		switch kind {
		case "image/webp":
			s.variants++
			s.pictures++
		case "image/jpeg":
			s.pictures++
		}
	}
	return status
}

// stream asks at a rate, on the beat, whatever becomes of those before, until ctx ends; then it waits for the last.
func (s *seen) stream(ctx context.Context, client *http.Client, perSecond float64, host string, next func() string) {
	var viewers sync.WaitGroup
	defer viewers.Wait()
	beat := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer beat.Stop()
	asking := context.WithoutCancel(ctx) // who has asked gets an answer
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			viewers.Go(func() { s.ask(asking, client, next(), host) })
		}
	}
}
