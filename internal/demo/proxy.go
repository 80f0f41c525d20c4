package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Of the children.
const (
	readyLimit = 60 * time.Second // a busy machine with a cold disk
	stopGrace  = 8 * time.Second
)

// lines of the children's logs that are listened for.
type logLine struct {
	Msg     string `json:"msg"`
	Public  string `json:"public"`
	Admin   string `json:"admin"`
	Address string `json:"address"`
}

// proxyState is how karui is, as its supervisor knows it.
type proxyState string

const (
	proxyStarting proxyState = "starting"
	proxyUp       proxyState = "up"
	proxyStopped  proxyState = "stopped" // by the button
	proxyEnded    proxyState = "ended"   // by itself, or by somebody else's signal
)

// proxy is `karui serve` as a child, behind the line on which the edge and the
// watchdog reach it. It is not started again by itself.
type proxy struct {
	starter *starter
	how     spawn
	line    *line
	journal *journal

	acting sync.Mutex // one start or stop at a time

	mu      sync.Mutex
	state   proxyState
	child   *child
	admin   string // address of its own pages, while it is up
	watcher sync.WaitGroup
}

// start starts karui and waits until it serves. One that runs is left alone.
func (p *proxy) start(ctx context.Context) error {
	p.acting.Lock()
	defer p.acting.Unlock()
	if s, _ := p.now(); s == proxyUp {
		return nil
	}
	ready := make(chan struct{})
	var once sync.Once
	var public string
	how := p.how
	how.heard = func(text string) {
		var l logLine
		if json.Unmarshal([]byte(text), &l) == nil && l.Msg == "karui serves" {
			once.Do(func() {
				public = l.Public
				p.mu.Lock()
				p.admin = l.Admin
				p.mu.Unlock()
				close(ready)
			})
		}
	}
	p.set(proxyStarting, nil)
	c, err := p.starter.spawn(how)
	if err != nil {
		p.set(proxyEnded, nil)
		return err
	}
	if err := c.await(ctx, ready, readyLimit); err != nil {
		p.set(proxyEnded, nil)
		return err
	}
	if err := p.line.open(public); err != nil {
		c.kill()
		p.set(proxyEnded, nil)
		return err
	}
	if err := p.well(ctx, c); err != nil {
		p.line.close()
		c.kill()
		p.set(proxyEnded, nil)
		return err
	}
	p.set(proxyUp, c)
	p.watcher.Go(func() { p.watch(c) })
	return nil
}

// well waits until the ping answers, which has to convert an image first. Until
// then the watchdog would take karui for down.
func (p *proxy) well(ctx context.Context, c *child) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.line.address+"/ping.jpg", nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-c.ended:
			return fmt.Errorf("karui ended before it was well (%s)%s", c.state, c.log.excerpt())
		case <-ctx.Done():
			return fmt.Errorf("karui's ping does not answer: %w%s", ctx.Err(), c.log.excerpt())
		}
	}
}

// watch takes the line down with the process.
func (p *proxy) watch(c *child) {
	<-c.ended
	p.line.close()
	p.mu.Lock()
	itself := p.child == c && p.state == proxyUp
	if itself {
		p.state, p.child = proxyEnded, nil
	}
	p.mu.Unlock()
	if itself {
		p.journal.note(toneBad, fmt.Sprintf("karui ended, and not by a button of this page (%s).", c.state))
	}
}

// kill ends karui as a crash does. False: it was not running.
func (p *proxy) kill() bool {
	p.acting.Lock()
	defer p.acting.Unlock()
	return p.end(func(c *child) { c.kill() })
}

// stop ends karui in peace, and waits until nothing of it is left.
func (p *proxy) stop() {
	p.acting.Lock()
	defer p.acting.Unlock()
	p.end(func(c *child) { c.stop(stopGrace) })
	p.watcher.Wait()
}

func (p *proxy) end(how func(*child)) bool {
	_, c := p.now()
	if c == nil {
		return false
	}
	p.set(proxyStopped, nil)
	how(c)
	p.watcher.Wait() // the line is down when this returns
	return true
}

func (p *proxy) set(s proxyState, c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.child = s, c
}

// now is the state, and the child if it is up.
func (p *proxy) now() (proxyState, *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.child
}

// page is where karui's own pages are, "" while it is not up.
func (p *proxy) page() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != proxyUp || p.admin == "" {
		return ""
	}
	return "http://" + p.admin
}

// guard is the watchdog as a child. When it ends by itself it is started again
// after a moment, as an init system does.
type guard struct {
	starter *starter
	how     spawn
	journal *journal

	mu      sync.Mutex
	child   *child
	address string // of its pages
}

// guardPause is how long the watchdog stays away after it ended by itself.
const guardPause = 2 * time.Second

// start starts the watchdog and waits until it listens.
func (g *guard) start(ctx context.Context) error {
	ready := make(chan struct{})
	var once sync.Once
	how := g.how
	how.heard = func(text string) {
		var l logLine
		if json.Unmarshal([]byte(text), &l) == nil && l.Msg == "listening" {
			once.Do(func() {
				g.mu.Lock()
				g.address = l.Address
				g.mu.Unlock()
				close(ready)
			})
		}
	}
	c, err := g.starter.spawn(how)
	if err != nil {
		return err
	}
	if err := c.await(ctx, ready, readyLimit); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.child = c
	return nil
}

// run keeps the watchdog running until ctx ends, and ends it then.
func (g *guard) run(ctx context.Context) {
	for {
		c := g.now()
		select {
		case <-ctx.Done():
			c.stop(stopGrace)
			return
		case <-c.ended:
		}
		g.journal.note(toneBad, fmt.Sprintf("The watchdog ended (%s); it is started again.", c.state))
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(guardPause):
			}
			err := g.start(ctx)
			if err == nil {
				break
			}
			if ctx.Err() == nil {
				g.journal.note(toneBad, "The watchdog does not start: "+err.Error())
			}
		}
	}
}

func (g *guard) now() *child {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.child
}

// reload makes the watchdog read its settings again.
func (g *guard) reload() { g.now().signal(syscall.SIGHUP) }

// page is the address of the watchdog's own pages.
func (g *guard) page() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return "http://" + g.address
}
