package origin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"karui/proxy/origin/retry"
)

// fake is one place behind a pipe: it does to every request what act says.
type fake struct {
	act      atomic.Pointer[func(target string) string]
	refuse   atomic.Bool // connections
	requests atomic.Int64
	mu       sync.Mutex
	targets  map[string]int
}

// What act may return besides an answer.
const (
	hang  = "hang"
	reset = "reset"
)

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func (f *fake) does(act func(target string) string) { f.act.Store(&act) }

func (f *fake) always(answer string) { f.does(func(string) string { return answer }) }

func (f *fake) count(target string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.targets[target]
}

func (f *fake) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		head, err := readHead(r)
		if err != nil {
			return
		}
		line := strings.Fields(head)
		if line[0] != "HEAD" { // heartbeats are not what is counted
			f.requests.Add(1)
		}
		f.mu.Lock()
		f.targets[line[1]]++
		f.mu.Unlock()
		switch answer := (*f.act.Load())(line[1]); answer {
		case reset:
			return
		case hang:
			_, _ = r.ReadByte() // until the client leaves
			return
		default:
			if line[0] == "HEAD" {
				answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
			}
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	}
}

// dial refuses, or gives a connection to the fake.
func (f *fake) dial(context.Context, string, string) (net.Conn, error) {
	if f.refuse.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	client, server := net.Pipe()
	go func() {
		defer func() { _ = server.Close() }()
		f.serve(server)
	}()
	return client, nil
}

// newPlaces makes places with so many addresses each, and a fake behind each
// address, in order. Their random numbers are the same in each run.
func newPlaces(t *testing.T, level int, addresses []int, change ...func(*PlacesOptions)) (*Places, []*fake) {
	t.Helper()
	o := PlacesOptions{Site: "shop", Config: DefaultConfig(), Retry: RetryConfig{Mode: "auto", Level: level}}
	for i, n := range addresses {
		conf := DefaultPlace()
		conf.Name = fmt.Sprintf("place%d", i)
		for k := range n {
			conf.URLs = append(conf.URLs, fmt.Sprintf("http://origin%d-%d.example", i, k))
		}
		o.Places = append(o.Places, conf)
	}
	for _, f := range change {
		f(&o)
	}
	p, err := NewPlaces(o)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	p.random = random.Float64 // called under the lock
	var fakes []*fake
	for _, pl := range p.places {
		for _, c := range pl.clients {
			f := &fake{targets: map[string]int{}}
			f.always(fine)
			c.dial.dial = f.dial
			fakes = append(fakes, f)
		}
	}
	return p, fakes
}

// fetch reads a whole answer.
func fetch(ctx context.Context, p *Places, target string) (status int, err error) {
	resp, err := p.Do(ctx, Request{Method: "GET", Target: target})
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.Status == 200 && string(body) != "ok" {
		err = fmt.Errorf("the body is %q", body)
	}
	return resp.Status, err
}

// load sends n requests from so many viewers at once, and counts the good ones.
func load(ctx context.Context, p *Places, n, viewers int) (good int64) {
	var sum, next atomic.Int64
	var wg sync.WaitGroup
	for range viewers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if status, err := fetch(ctx, p, fmt.Sprintf("/%d.jpg", i)); err == nil && status == 200 {
					sum.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return sum.Load()
}

// settle ends what a test in a bubble started.
func settle(p *Places) {
	p.Close()
	pass(time.Minute) // for the fakes to find out
}

func TestOneOfTwoPlacesDead(t *testing.T) {
	const overloaded = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"
	for dead, n := range map[string]int{"refuses": 20000, hang: 20000, reset: 2000, overloaded: 2000} {
		t.Run(strings.Fields(dead)[0], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, fakes := newPlaces(t, 2, []int{1, 1})
				fakes[1].refuse.Store(dead == "refuses")
				fakes[1].always(dead)
				good := load(t.Context(), p, n, 50)
				if good < int64(n*9999/10000) {
					t.Errorf("%d of %d requests succeeded", good, n)
				}
				settle(p)
			})
		})
	}
}

func TestBothFailing(t *testing.T) {
	for name, failure := range map[string]string{"503": "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", reset: reset} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, fakes := newPlaces(t, 2, []int{1, 1})
				random := rand.New(rand.NewPCG(3, 4))
				var mu sync.Mutex
				for _, f := range fakes {
					f.does(func(string) string {
						mu.Lock()
						defer mu.Unlock()
						if random.Float64() < 0.3 {
							return failure
						}
						return fine
					})
				}
				seen := func() int64 { return fakes[0].requests.Load() + fakes[1].requests.Load() }
				const first, most, then = 200, 2000, 5000
				// A reset that net/http repeats by itself, and well, is not seen as a failure: it may take some more.
				for asked := 0; asked < most && p.Status().Retries != "cut"; asked += first {
					load(t.Context(), p, first, 10)
				}
				if s := p.Status(); s.Retries != "cut" {
					t.Errorf("retries are %s after %d requests", s.Retries, seen())
				}
				before := seen()
				for range 50 { // over some minutes
					load(t.Context(), p, then/50, 10)
					pass(5 * time.Second)
				}
				if added := seen() - before; added > then*102/100 {
					t.Errorf("the origins saw %d requests for %d", added, then)
				}
				// Well again: retries come back when the failures are a minute old.
				for _, f := range fakes {
					f.always(fine)
				}
				pass(61 * time.Second)
				if s := p.Status(); s.Retries != "on" {
					t.Errorf("retries are %s a minute later", s.Retries)
				}
				settle(p)
			})
		})
	}
}

func TestSickPlaceIsLeftAndUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 2, []int{1, 1})
		var n atomic.Int64
		var sick atomic.Bool
		fakes[1].does(func(string) string {
			if sick.Load() && n.Add(1)%2 == 0 {
				return hang
			}
			return fine
		})
		// 20 requests a second, whether answered or not.
		var failed atomic.Int64
		var wg sync.WaitGroup
		stop := make(chan struct{})
		wg.Go(func() {
			every := time.NewTicker(50 * time.Millisecond)
			defer every.Stop()
			for {
				select {
				case <-every.C:
					wg.Go(func() {
						if status, err := fetch(context.Background(), p, "/a.jpg"); err != nil || status != 200 {
							failed.Add(1)
						}
					})
				case <-stop:
					return
				}
			}
		})
		share := func(d time.Duration) float64 {
			a, b := fakes[0].requests.Load(), fakes[1].requests.Load()
			pass(d)
			a, b = fakes[0].requests.Load()-a, fakes[1].requests.Load()-b
			return float64(b) / float64(a+b)
		}
		pass(2 * time.Minute)
		if s := share(10 * time.Second); s < 0.35 || s > 0.65 {
			t.Errorf("a healthy place gets %.2f", s)
		}
		sick.Store(true)
		pass(10 * time.Second)
		if s := share(20 * time.Second); s > 0.05 || s == 0 {
			t.Errorf("a sick place gets %.3f, want a trickle", s)
		}
		if s := p.Status(); s.Places[1].State != StateSick || s.Retries != "on" {
			t.Errorf("%+v", s)
		}
		pass(5 * time.Minute)
		if s := share(time.Minute); s > 0.05 {
			t.Errorf("minutes later it gets %.3f", s)
		}
		sick.Store(false)
		pass(75 * time.Second)
		if s := share(20 * time.Second); s < 0.35 {
			t.Errorf("a healed place gets %.3f", s)
		}
		close(stop)
		wg.Wait()
		if n := failed.Load(); n > 0 {
			t.Errorf("%d requests failed", n)
		}
		settle(p)
	})
}

func TestDeadPlaceIsLeftAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 1, []int{1, 1}) // also where no second try may go there
		fakes[1].refuse.Store(true)
		good := load(t.Context(), p, 100, 1)
		if good != 97 {
			t.Errorf("%d of 100 succeeded, want all but three", good)
		}
		if s := p.Status().Places[1]; s.State != StateDown || s.InUse || s.AddressesDown != 1 {
			t.Errorf("%+v", s)
		}
		pass(time.Minute)
		if s := p.Status().Places[1]; s.State != StateDown {
			t.Errorf("%+v", s)
		}
		fakes[1].refuse.Store(false)
		pass(heartbeatEvery + time.Second)
		if s := p.Status().Places[1]; s.State != StateIn || !s.InUse || s.Unavailable != 0 {
			t.Errorf("%+v", s)
		}
		load(t.Context(), p, 100, 1)
		if n := fakes[1].requests.Load(); n < 30 {
			t.Errorf("it got %d of 100", n)
		}
		beats := fakes[1].count("/")
		pass(time.Hour)
		if n := fakes[1].count("/"); n != beats {
			t.Error("heartbeats go on to a place in use")
		}
		settle(p)
	})
}

func TestLevelNoneLeavesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 0, []int{1, 1})
		fakes[1].refuse.Store(true)
		if good := load(t.Context(), p, 1000, 1); good < 400 || good > 600 {
			t.Errorf("%d of 1000 succeeded", good)
		}
		settle(p)
	})
}

func TestTheLastPlaceIsNeverLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 2, []int{1, 1})
		for _, f := range fakes {
			f.refuse.Store(true)
		}
		load(t.Context(), p, 100, 1)
		for _, f := range fakes {
			f.refuse.Store(false)
		}
		// Both are out of use, and yet asked; the first answer brings a place back.
		if good := load(t.Context(), p, 100, 1); good != 100 {
			t.Errorf("%d of 100 succeeded", good)
		}
		settle(p)
	})
}

func TestOverloadedPlaceGetsNoSecondRequest(t *testing.T) {
	for _, status := range []string{"429", "503"} {
		for _, both := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				// Three addresses each, so that the same place could be asked again.
				p, fakes := newPlaces(t, 3, []int{3, 3})
				answer := "HTTP/1.1 " + status + " No\r\nContent-Length: 0\r\n\r\n"
				for i, f := range fakes {
					if i < 3 || both {
						f.always(answer)
					}
				}
				for n := range 15 { // fewer than the cut-off needs
					target := fmt.Sprintf("/%d.jpg", n)
					got, err := fetch(t.Context(), p, target)
					want := 200
					if both {
						want = 429
						if status == "503" {
							want = 503
						}
					}
					if err != nil || got != want {
						t.Errorf("%s, both %t: %d, %v", status, both, got, err)
					}
					for _, place := range [][]*fake{fakes[:3], fakes[3:]} {
						sum := 0
						for _, f := range place {
							sum += f.count(target)
						}
						if sum > 1 {
							t.Errorf("%s, both %t: a place got %s %d times", status, both, target, sum)
						}
					}
					pass(4 * time.Second)
				}
				settle(p)
			})
		}
	}
}

// Where two places fail, what is logged tells of both.
func TestTheErrorTellsOfBothTries(t *testing.T) {
	const overloaded = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"
	for name, first := range map[string]string{"reset": reset, "answered 503": overloaded} {
		synctest.Test(t, func(t *testing.T) {
			p, fakes := newPlaces(t, 2, []int{1, 1})
			for _, f := range fakes {
				f.does(func(string) string { // the first that is asked, then the other
					for _, other := range fakes {
						if other != f && other.requests.Load() > 0 {
							return reset
						}
					}
					return first
				})
			}
			_, err := fetch(t.Context(), p, "/a.jpg")
			if err == nil || !strings.Contains(err.Error(), `"place0"`) || !strings.Contains(err.Error(), `"place1"`) ||
				!strings.Contains(err.Error(), "; before that origin") || KindOf(err) != KindReset {
				t.Errorf("%s: %v", name, err)
			}
			if first == overloaded && err != nil && !strings.Contains(err.Error(), "answered 503") {
				t.Errorf("%s: %v", name, err)
			}
			settle(p)
		})
	}
}

func TestAnyOtherAnswerIsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 3, []int{2, 2})
		for _, status := range []int{301, 304, 400, 401, 403, 404, 408, 410, 425, 500, 501, 502, 504} {
			for _, f := range fakes {
				f.always(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n", status))
			}
			target := fmt.Sprintf("/%d", status)
			if got, err := fetch(t.Context(), p, target); got != status || err != nil {
				t.Errorf("%d: %d, %v", status, got, err)
			}
			sum := 0
			for _, f := range fakes {
				sum += f.count(target)
			}
			if sum != 1 {
				t.Errorf("%d: asked %d times", status, sum)
			}
		}
		settle(p)
	})
}

func TestTriesShareTheDeadline(t *testing.T) {
	for _, tc := range []struct {
		name      string
		level     int
		addresses []int
		mode      string
		took      time.Duration
		requests  int64
		late      *expired
	}{
		{"two places", 2, []int{1, 1}, "auto", 8 * time.Second, 2, errDeadline},
		{"one place with two addresses", 1, []int{2}, "auto", 8 * time.Second, 2, errDeadline},
		{"three of each", 3, []int{3, 3, 3}, "auto", 8 * time.Second, 2, errDeadline},
		{"one address", 3, []int{1}, "auto", 8 * time.Second, 1, errDeadline},
		{"level 0", 0, []int{2, 2}, "auto", 8 * time.Second, 1, errDeadline},
		{"another place at level 1", 1, []int{1, 1}, "auto", 8 * time.Second, 1, errDeadline},
		{"off", 3, []int{2, 2}, "off", 8 * time.Second, 1, errDeadline},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, fakes := newPlaces(t, tc.level, tc.addresses, func(o *PlacesOptions) { o.Retry.Mode = tc.mode })
				for _, f := range fakes {
					f.always(hang)
				}
				start := time.Now()
				_, err := fetch(t.Context(), p, "/")
				if took := time.Since(start); took != tc.took || !errors.Is(err, tc.late) {
					t.Errorf("%v after %s", err, took)
				}
				var sum int64
				for _, f := range fakes {
					sum += f.requests.Load()
				}
				if sum != tc.requests {
					t.Errorf("%d requests", sum)
				}
				settle(p)
			})
		})
	}
}

// The first byte of a body is what counts, not the head.
func TestFirstByteDecides(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
	for _, tc := range []struct {
		name, first string
		second      bool
	}{
		{"cut off before the first byte", head, true},
		{"cut off after the first byte", head + "o", false},
		{"never starts", head + hang, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, fakes := newPlaces(t, 2, []int{1, 1})
				p.random = func() float64 { return 0 } // the first place
				p.places[0].clients[0].dial.dial = func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					go func() {
						defer func() { _ = server.Close() }()
						r := bufio.NewReader(server)
						_, _ = readHead(r)
						text, stay := strings.CutSuffix(tc.first, hang)
						_, _ = io.WriteString(server, text)
						if stay {
							_, _ = r.ReadByte()
						}
					}()
					return client, nil
				}
				status, err := fetch(t.Context(), p, "/")
				if tc.second != (err == nil && status == 200) || tc.second != (fakes[1].requests.Load() == 1) {
					t.Errorf("%d, %v, %d second tries", status, err, fakes[1].requests.Load())
				}
				settle(p)
			})
		})
	}
}

func TestOnlyGetAndHeadWithoutBodyAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 3, []int{1, 1})
		for _, f := range fakes {
			f.always(reset)
		}
		for _, tc := range []struct {
			method string
			body   io.Reader
			want   int64
		}{{"GET", nil, 2}, {"HEAD", nil, 0}, {"OPTIONS", nil, 1}, {"GET", strings.NewReader("x"), 1}} {
			before := fakes[0].requests.Load() + fakes[1].requests.Load()
			_, err := p.Do(t.Context(), Request{Method: tc.method, Target: "/", Body: tc.body, Length: 1})
			if err == nil {
				t.Errorf("%s got an answer", tc.method)
			}
			if n := fakes[0].requests.Load() + fakes[1].requests.Load() - before; n != tc.want {
				t.Errorf("%s: %d requests, want %d", tc.method, n, tc.want)
			}
			pass(time.Minute)
		}
		settle(p)
	})
}

func TestCallerThatLeavesBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 3, []int{1, 1})
		for _, f := range fakes {
			f.always(hang)
		}
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := fetch(ctx, p, "/"); err == nil {
				t.Error("an answer")
			}
			cancel()
		}
		for _, pl := range p.Status().Places {
			if pl.State != StateIn || pl.Tries != 0 || pl.UnderWay != 0 {
				t.Errorf("%+v", pl)
			}
		}
		if n := fakes[0].requests.Load() + fakes[1].requests.Load(); n != 10 {
			t.Errorf("%d requests", n)
		}
		settle(p)
	})
}

func TestWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 2, []int{1, 2}, func(o *PlacesOptions) { o.Places[1].Weight = 3 })
		load(t.Context(), p, 4000, 1)
		got := []int64{fakes[0].requests.Load(), fakes[1].requests.Load(), fakes[2].requests.Load()}
		if got[0] < 850 || got[0] > 1150 || got[1] != got[2] && got[1] != got[2]+1 {
			t.Errorf("requests: %d", got)
		}
		settle(p)
	})
}

// An address that is out of use costs the others of its place nothing.
func TestDeadAddressOfALivingPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 2, []int{2})
		fakes[0].refuse.Store(true)
		if good := load(t.Context(), p, 1000, 1); good != 1000 {
			t.Errorf("%d of 1000 succeeded", good)
		}
		if s := p.Status(); s.Places[0].State != StateIn || s.Places[0].AddressesDown != 1 || s.SecondTries["same_place"] != 3 {
			t.Errorf("%+v", s)
		}
		settle(p)
	})
}

func TestRequestsUnderWayAreBounded(t *testing.T) {
	p, _ := newPlaces(t, 2, []int{1, 1})
	defer p.Close()
	p.places[0].active.Store(maxActive)
	p.places[1].active.Store(maxActive)
	_, err := p.Do(t.Context(), Request{Method: "GET", Target: "/"})
	wantKind(t, err, KindBusy)
	for _, pl := range p.Status().Places {
		if pl.UnderWay != maxActive || pl.Tries != 0 {
			t.Errorf("%+v", pl)
		}
	}
}

func TestOperatorsWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		switches := NewSwitches(nil)
		p, fakes := newPlaces(t, 2, []int{1, 1}, func(o *PlacesOptions) { o.Switches = switches })
		switches.SetPlace("", "place1", true, time.Now().Add(time.Hour))
		load(t.Context(), p, 100, 1)
		if n := fakes[1].requests.Load(); n != 0 {
			t.Errorf("a place that was taken out got %d requests", n)
		}
		if s := p.Status().Places[1]; s.State != StateOut || s.InUse || s.Until.IsZero() {
			t.Errorf("%+v", s)
		}
		// Not for a second try either.
		fakes[0].always(reset)
		if _, err := fetch(t.Context(), p, "/"); err == nil || fakes[1].requests.Load() != 0 {
			t.Errorf("%v, %d requests", err, fakes[1].requests.Load())
		}
		fakes[0].always(fine)
		pass(time.Hour)
		load(t.Context(), p, 100, 1)
		if n := fakes[1].requests.Load(); n < 30 {
			t.Errorf("an hour later it got %d of 100", n)
		}
		// All taken out: they are used all the same.
		switches.SetPlace("shop", "place0", true, time.Time{})
		switches.SetPlace("shop", "place1", true, time.Time{})
		if good := load(t.Context(), p, 100, 1); good != 100 {
			t.Errorf("%d of 100 succeeded", good)
		}
		switches.SetPlace("shop", "place0", false, time.Time{})
		switches.SetPlace("shop", "place1", false, time.Time{})

		fakes[0].always(reset)
		fakes[1].always(reset)
		tries := func() int64 {
			before := fakes[0].requests.Load() + fakes[1].requests.Load()
			_, _ = fetch(t.Context(), p, "/")
			return fakes[0].requests.Load() + fakes[1].requests.Load() - before
		}
		pass(2 * time.Minute)
		if n := tries(); n != 2 {
			t.Errorf("%d tries", n)
		}
		switches.SetRetry("", "off", time.Now().Add(6*time.Hour))
		if n := tries(); n != 1 || p.Status().Retries != "off" || p.Status().Until.IsZero() {
			t.Errorf("%d tries with retries off: %+v", n, p.Status())
		}
		pass(6 * time.Hour)
		if s := p.Status(); s.Retries != "on" || !s.Until.IsZero() {
			t.Errorf("six hours later: %+v", s)
		}
		settle(p)
	})
}

// A place that is down and was taken out is left alone, and found well when it is
// let in again.
func TestNoHeartbeatToWhatWasTakenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		switches := NewSwitches(nil)
		p, fakes := newPlaces(t, 2, []int{1, 1}, func(o *PlacesOptions) { o.Switches = switches })
		fakes[1].always(reset)
		load(t.Context(), p, 100, 1)
		switches.SetPlace("", "place1", true, time.Time{})
		fakes[1].always(fine)
		pass(time.Second) // for a heartbeat that was under way
		beats := fakes[1].count("/")
		pass(time.Hour)
		if n := fakes[1].count("/"); n != beats {
			t.Errorf("%d heartbeats", n-beats)
		}
		switches.SetPlace("", "place1", false, time.Time{})
		pass(heartbeatEvery + time.Second)
		if s := p.Status().Places[1]; s.State != StateIn {
			t.Errorf("%+v", s)
		}
		settle(p)
	})
}

// A sole address behaves in every respect as the client of it would.
func TestSoleAddressIsAskedLikeAClient(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
	type result struct {
		kind     Kind
		status   int
		body     string
		text     string
		took     time.Duration
		dials    int64
		header   string
		blocking time.Duration
	}
	for name, serve := range map[string]func(net.Conn){
		"fine": script(piece{0, head + "0123456789"}), "slow": script(piece{7 * time.Second, head + "0123456789"}),
		"hangs": script(), "head and no body": script(piece{time.Second, head}), "late body": script(piece{time.Second, head}, piece{5 * time.Second, "0123456789"}),
		"stalls": script(piece{0, head + "0"}), "429": script(piece{0, "HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n"}),
		"503": script(piece{0, "HTTP/1.1 503 No\r\nContent-Length: 3\r\n\r\nbad"}), "noise": script(piece{0, "SSH-2.0\r\n\r\n"}),
		"closes": func(c net.Conn) { _, _ = readHead(bufio.NewReader(c)) },
	} {
		var got []result
		for _, places := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var fetcher interface {
					Do(ctx context.Context, r Request) (*Response, error)
					Close()
				}
				c := newClient(t, "http://origin.example", realistic, func(o *Options) { o.Place.Name = "place0" })
				fetcher = c
				if places {
					p, _ := newPlaces(t, 3, []int{1})
					c, fetcher = p.places[0].clients[0], p
				}
				piped(c, serve)
				var dials atomic.Int64
				dial := c.dial.dial
				c.dial.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					dials.Add(1)
					return dial(ctx, network, addr)
				}
				for range 5 { // often enough for anything that counts
					var r result
					start := time.Now()
					resp, err := fetcher.Do(t.Context(), Request{Method: "GET", Target: "/"})
					r.blocking = time.Since(start)
					if err == nil {
						var body []byte
						body, err = io.ReadAll(resp.Body)
						_ = resp.Body.Close()
						r.status, r.body, r.header = resp.Status, string(body), fmt.Sprint(resp.Header, resp.Length, resp.Framing)
					}
					if err != nil {
						r.kind, r.text = KindOf(err), err.Error()
					}
					r.took, r.dials = time.Since(start), dials.Load()
					got = append(got, r)
				}
				fetcher.Close()
				pass(time.Minute)
			})
		}
		if half := len(got) / 2; !slices.Equal(got[:half], got[half:]) {
			t.Errorf("%s:\n%+v\n%+v", name, got[:half], got[half:])
		}
	}
}

func TestWhatCountsAsWhat(t *testing.T) {
	for kind, want := range map[Kind]retry.Fate{
		KindDNS: retry.Unavailable, KindConnect: retry.Unavailable, KindTLS: retry.Unavailable, KindReset: retry.Unavailable,
		KindProtocol: retry.Unavailable, KindTimeout: retry.TimedOut, KindBusy: retry.Overloaded,
		KindCancelled: retry.Void, KindRequest: retry.Void,
	} {
		if got := fateOf(t.Context(), &Error{Kind: kind}); got != want {
			t.Errorf("%s is %s", kind, got)
		}
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	if got := fateOf(left, &Error{Kind: KindTimeout}); got != retry.Void {
		t.Errorf("a caller that left: %s", got)
	}
}
