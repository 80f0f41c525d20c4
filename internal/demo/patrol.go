package demo

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"karui/internal/cloudfront/edge"
)

// order is who comes first in the origin group.
type order string

const (
	orderKarui   order = "karui"
	orderOrigin  order = "origin"
	orderUnknown order = ""
)

// orderOf reads the order out of a distribution's document.
func orderOf(document []byte) order {
	var d struct {
		Groups []struct {
			ID      string   `xml:"Id"`
			Members []string `xml:"Members>Items>OriginGroupMember>OriginId"`
		} `xml:"OriginGroups>Items>OriginGroup"`
	}
	if xml.Unmarshal(document, &d) != nil {
		return orderUnknown
	}
	for _, g := range d.Groups {
		if g.ID != edge.SampleGroup || len(g.Members) != 2 {
			continue
		}
		switch g.Members[0] {
		case edge.SampleProxyID:
			return orderKarui
		case edge.SampleOriginID:
			return orderOrigin
		}
	}
	return orderUnknown
}

// watchStatus is what the watchdog's /status says about the site.
type watchStatus struct {
	Health           string    `json:"health"`
	Since            time.Time `json:"since"`
	GoodRounds       int       `json:"good_rounds"`
	GoodRoundsNeeded int       `json:"good_rounds_needed"`
	Last             *round    `json:"last_round"`
	Words            string    `json:"words"`
}

// round is one round of the watchdog.
type round struct {
	At      time.Time `json:"at"`
	Verdict string    `json:"verdict"`
	Probes  []struct {
		OK   bool   `json:"ok"`
		Kind string `json:"kind"`
		Text string `json:"text"`
	} `json:"probes"`
	OrderError string `json:"order_error"`
}

// roundsMax is how many rounds the page shows.
const roundsMax = 40

// patrol follows what the watchdog does, by asking its status page.
type patrol struct {
	client *http.Client

	mu     sync.Mutex
	status watchStatus
	rounds []round // oldest first
}

func newPatrol() *patrol {
	return &patrol{client: &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second}}}
}

func (p *patrol) close() { p.client.CloseIdleConnections() }

// look asks once.
func (p *patrol) look(ctx context.Context, page string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"/status?format=json", nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var s struct {
		Sites []watchStatus `json:"sites"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&s); err != nil {
		return fmt.Errorf("read the watchdog's status: %w", err)
	}
	if len(s.Sites) != 1 {
		return fmt.Errorf("the watchdog watches %d sites, and not 1", len(s.Sites))
	}
	p.took(s.Sites[0])
	return nil
}

func (p *patrol) took(s watchStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = s
	if s.Last == nil || s.Last.At.IsZero() {
		return
	}
	if n := len(p.rounds); n > 0 && !s.Last.At.After(p.rounds[n-1].At) {
		return
	}
	p.rounds = append(p.rounds, *s.Last)
	if n := len(p.rounds) - roundsMax; n > 0 {
		p.rounds = slices.Delete(p.rounds, 0, n)
	}
}

func (p *patrol) now() (watchStatus, []round) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status, slices.Clone(p.rounds)
}
