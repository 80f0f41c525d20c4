package edge

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

func TestEveryMissTriesTheFirstMemberFirst(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(503, "", "Cache-Control: no-store")
		for _, path := range []string{"/img/1", "/img/2", "/img/3"} {
			l.want(path, "origin", Miss)
			if v := l.event(); v.FailedOver != FailStatus || v.Member != "origin" || len(v.Tries) != 2 || v.Tries[0].Status != 503 {
				t.Errorf("event %+v", v)
			}
		}
		l.asked(3, 3)
	})
}

func TestFailoverOnlyOnTheChosenStatuses(t *testing.T) {
	inLab(t, document{statuses: []int{403, 503}, errors: "500:0 404:0 403:0 502:0 504:0"}, func(l *lab) {
		for i, status := range []int{403, 503, 400, 401, 404, 410, 429, 500, 502, 504} {
			l.karui.says(status, "no")
			body, code := "no", status
			if status == 403 || status == 503 {
				body, code = "origin", 200
			}
			if s := l.get("/img/" + http.StatusText(status)); s.status != code || s.body != body {
				t.Errorf("%d: %d %q", status, s.status, s.body)
			}
			l.asked(i+1, min(i+1, 2))
		}
	})
}

func TestFailoverOnARefusedConnection(t *testing.T) {
	inLab(t, document{attempts: 3}, func(l *lab) {
		l.karui.down(refused)
		begun := time.Now()
		l.want("/img/a", "origin", Miss)
		if took := time.Since(begun); took != 0 {
			t.Errorf("took %v", took)
		}
		if v := l.event(); v.FailedOver != FailRefused {
			t.Errorf("failed over for %q", v.FailedOver)
		}
		if l.karui.dialled != 3 {
			t.Errorf("connected %d times, want 3", l.karui.dialled)
		}
	})
}

func TestConnectionAttemptsMultiplyConnectionTimeouts(t *testing.T) {
	for _, attempts := range []int{1, 2, 3} {
		inLab(t, document{attempts: attempts, connect: 4}, func(l *lab) {
			l.karui.silent = true
			begun := time.Now()
			l.want("/img/a", "origin", Miss)
			if took := time.Since(begun); took != time.Duration(attempts)*4*time.Second {
				t.Errorf("%d attempts took %v", attempts, took)
			}
			if v := l.event(); v.FailedOver != FailConnectTimeout {
				t.Errorf("failed over for %q", v.FailedOver)
			}
		})
	}
}

func TestConnectionAttemptsMultiplyResponseTimeouts(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		inLab(t, document{attempts: 3, response: 10}, func(l *lab) {
			l.karui.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			begun := time.Now()
			if s := l.do(l.request(method, "/img/a")); s.status != 200 {
				t.Errorf("%s: %d", method, s.status)
			}
			if took := time.Since(begun); took != 30*time.Second {
				t.Errorf("%s took %v", method, took)
			}
			if v := l.event(); v.FailedOver != FailResponseTimeout || len(v.Tries) != 4 {
				t.Errorf("event %+v", v)
			}
			l.asked(3, 1)
		})
	}
}

func TestOtherMethodsWait30sOnceForAnAnswer(t *testing.T) {
	inLab(t, document{attempts: 3, response: 10}, func(l *lab) {
		l.karui.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		begun := time.Now()
		if s := l.do(l.request(http.MethodOptions, "/img/a")); s.body != "origin" {
			t.Errorf("OPTIONS: %d %q", s.status, s.body)
		}
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
		l.asked(1, 1)
	})
}

func TestOnlyGetHeadAndOptionsFailOver(t *testing.T) {
	for method, want := range map[string]bool{
		"GET": true, "HEAD": true, "OPTIONS": true, "POST": false, "PUT": false, "PATCH": false, "DELETE": false,
	} {
		if leadsOn(method, 503, "", []int{503}) != want || leadsOn(method, 0, FailRefused, nil) != want {
			t.Errorf("%s: want %v", method, want)
		}
	}
}

func TestFailoverWhenTheConnectionBreaksBeforeAnAnswer(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		l.want("/img/a", "origin", Miss)
		if v := l.event(); v.FailedOver != FailReset {
			t.Errorf("failed over for %q", v.FailedOver)
		}
	})
}

func TestTheSecondMembersErrorIsPassedOn(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(503, "busy")
		l.origin.says(404, "no such file")
		if s := l.get("/img/a"); s.status != 404 || s.body != "no such file" || s.cache() != Error {
			t.Errorf("%d %q %s", s.status, s.body, s.cache())
		}
	})
}

func TestOwnPagesWhenNoMemberAnswers(t *testing.T) {
	inLab(t, document{errors: "504:0"}, func(l *lab) {
		l.karui.down(refused)
		l.origin.down(refused)
		if s := l.get("/img/a"); s.status != 502 || s.cache() != Error || s.header.Get("Server") != "CloudFront" {
			t.Errorf("%d %s", s.status, s.cache())
		}
		l.get("/img/a")
		if l.karui.dialled != 1 {
			t.Errorf("a 502 of its own is kept for 10 s, yet karui was tried %d times", l.karui.dialled)
		}
		pass(10 * time.Second)
		l.get("/img/a")
		if l.karui.dialled != 2 {
			t.Errorf("after 10 s karui was tried %d times, want 2", l.karui.dialled)
		}
		l.origin.down(nil)
		l.origin.silent = true
		for i := range 2 {
			if s := l.get("/img/b"); s.status != 504 {
				t.Errorf("%d: %d, want 504", i, s.status)
			}
		}
		if l.karui.dialled != 4 {
			t.Errorf("a 504 with an error TTL of 0 was kept")
		}
	})
}

func TestASwapTakesEffectWhenItHasPropagated(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.control.SetDeployDelay(5 * time.Minute)
		l.put(document{order: "origin karui"})
		l.want("/img/1", "karui", Miss)
		pass(5*time.Minute - time.Second)
		l.want("/img/2", "karui", Miss)
		pass(time.Second)
		l.want("/img/3", "origin", Miss)
	})
}

// Failover leaves the original under the key of the variant for as long as it is
// fresh, whatever became of the proxy.
func TestAnOriginalLingersUnderTheVariantsKey(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.down(refused)
		l.origin.says(200, "original", "Cache-Control: max-age=300")
		l.want("/img/a", "original", Miss, "Accept: image/webp")
		l.karui.down(nil)
		pass(299 * time.Second)
		l.want("/img/a", "original", Hit, "Accept: image/webp")
		pass(time.Second)
		l.want("/img/a", "karui", Miss, "Accept: image/webp")
	})
}

func TestConfigurationOfAnOriginAppliesToNewConnections(t *testing.T) {
	inLab(t, document{connect: 2}, func(l *lab) {
		l.karui.silent = true
		l.put(document{connect: 7, attempts: 1})
		begun := time.Now()
		l.want("/img/a", "origin", Miss)
		if took := time.Since(begun); took != 7*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestCountersAddUp(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.want("/img/a", "karui", Miss)
		l.want("/img/a", "karui", Hit)
		l.karui.down(refused)
		l.want("/img/b", "origin", Miss)
		l.event()
		c := l.Counters()
		if c.Requests != 3 || c.Results[Hit] != 1 || c.Results[Miss] != 2 || c.Members["origin"] != 1 || c.Members["karui"] != 2 ||
			c.Failover[FailRefused] != 1 || c.Asked["karui"] != 2 || c.Asked["origin"] != 1 || c.Bytes != int64(len("karuikaruiorigin")) {
			t.Errorf("%+v", c)
		}
		var ids []string
		for _, v := range l.events {
			ids = append(ids, v.ID)
		}
		if slices.Sort(ids); len(slices.Compact(ids)) != 3 {
			t.Error("request ids repeat")
		}
	})
}

func TestUpdatesDuringAnotherPropagateInOrder(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.control.SetDeployDelay(5 * time.Minute)
		l.put(document{order: "origin karui"})
		pass(time.Minute)
		l.control.SetDeployDelay(time.Minute) // sooner than the first, and yet not before it
		l.put(document{order: "karui origin"})
		l.want("/img/1", "karui", Miss)
		pass(4*time.Minute - time.Second)
		l.want("/img/2", "karui", Miss)
		pass(time.Second)
		l.want("/img/3", "karui", Miss) // both at once: the later one counts
		l.put(document{order: "origin karui"})
		pass(time.Minute)
		l.want("/img/4", "origin", Miss)
	})
}

// A probe through the origin group says nothing about the proxy.
func TestAPingThroughTheGroupNeverFails(t *testing.T) {
	inLab(t, document{errors: "503:0"}, func(l *lab) {
		for _, broken := range []func(){
			func() { l.karui.says(503, "", "Cache-Control: no-store") }, func() { l.karui.says(500, "") }, func() { l.karui.down(refused) },
		} {
			broken()
			if s := l.get("/img/ping.jpg"); s.status != 200 {
				t.Errorf("%d", s.status)
			}
			pass(time.Hour)
		}
	})
}

func TestConnectionsAreKeptForTheKeepaliveTimeout(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.get("/img/1")
		pass(5*time.Second - time.Millisecond)
		l.get("/img/2")
		if l.karui.dialled != 1 {
			t.Errorf("connected %d times within 5 s, want 1", l.karui.dialled)
		}
		pass(5*time.Second + time.Millisecond)
		l.get("/img/3")
		if l.karui.dialled != 2 {
			t.Errorf("connected %d times, want 2", l.karui.dialled)
		}
	})
}

func TestMaxTTLCapsHowLongAnOriginalLingers(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.down(refused)
		l.origin.says(200, "original", "Cache-Control: max-age=31536000")
		l.want("/img/a", "original", Miss)
		l.karui.down(nil)
		pass(24*time.Hour - time.Second)
		l.want("/img/a", "original", Hit)
		pass(time.Second)
		l.want("/img/a", "karui", Miss)
	})
}
