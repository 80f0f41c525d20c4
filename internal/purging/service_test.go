package purging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"karui/internal/api"
	double "karui/internal/cloudfront"
)

func TestAPurge(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.purge("shop", "/images/", "https://www.example.com/caf\u00e9.jpg?v=1", "/images/a.jpg", "/images/*")
		if want := []string{"/images/", "/caf%C3%A9.jpg", "/images/a.jpg"}; !slices.Equal(p.Prefixes, want) || p.Count != 3 {
			t.Errorf("prefixes %v", p.Prefixes)
		}
		if p.State != Running || p.Edge.State != Running || p.Edge.Paths != 3 || p.Edge.Batches != 1 || p.By != "staff" || p.Edge.Distribution != shopID {
			t.Errorf("%+v", p)
		}
		if len(l.proxy.asked) != 1 || strings.Join(l.proxy.asked[0], " ") != "shop /images/ /caf%C3%A9.jpg /images/a.jpg" {
			t.Errorf("the proxy was asked %v", l.proxy.asked)
		}
		pass(30 * time.Second)
		if now := l.find(p.ID); now.State != Running || len(now.Edge.Invalidations) != 1 || now.Edge.Completed != 0 {
			t.Errorf("half a minute later: %+v", now)
		}
		done := l.wantDone(p.ID)
		if got, want := l.paths(shopID), []string{"/images/*", "/caf%C3%A9.jpg*", "/caf%c3%a9.jpg*"}; !slices.Equal(got, want) {
			t.Errorf("the edge was told %v, want %v", got, want)
		}
		if took := done.Edge.Ended.Sub(p.At); took < time.Minute || took > 72*time.Second {
			t.Errorf("done after %s, of which CloudFront took a minute", took)
		}
		if n := len(l.lanes); n != 0 {
			synctest.Wait()
			if n = len(l.lanes); n != 0 {
				t.Errorf("%d lanes are left", n)
			}
		}
	})
}

func TestNoEdge(t *testing.T) {
	inLab(t, func(l *lab) {
		no := false
		p, err := l.Purge(t.Context(), Request{Site: "shop", Prefixes: []string{"/"}, Edge: &no}, "")
		l.must(err)
		if p.State != Done || p.Edge.State != Skipped || p.Edge.Distribution != shopID {
			t.Errorf("%+v", p)
		}
		l.proxy.remark = "for this run"
		if p = l.purge("plain", "/"); p.State != Done || p.Edge.State != None || p.Remark != "for this run" || !p.Volatile {
			t.Errorf("%+v", p)
		}
		pass(time.Hour)
		if calls := l.Calls(); len(calls) != 0 || len(l.proxy.asked) != 2 {
			t.Errorf("%d calls, the proxy was asked %v", len(calls), l.proxy.asked)
		}
	})
}

// The edge fetches anew as soon as it forgets: what it then gets from a proxy that
// has not forgotten would stay for its lifetime.
func TestTheEdgeIsAskedOnlyAfterTheProxyHasAcknowledged(t *testing.T) {
	inLab(t, func(l *lab) {
		release := make(chan error)
		l.proxy.before = func() error { return <-release }
		for _, verdict := range []error{nil, errDisk} {
			result := make(chan error)
			go func() {
				_, err := l.Purge(t.Context(), Request{Site: "shop", Prefixes: []string{"/"}}, "")
				result <- err
			}()
			before := len(l.Calls())
			pass(time.Hour)
			if calls := l.Calls(); len(calls) != before {
				t.Fatalf("AWS was asked %d times before the proxy acknowledged", len(calls)-before)
			}
			release <- verdict
			err := <-result
			pass(10 * time.Minute)
			made := len(l.Invalidations(shopID))
			refused := (*api.Error)(nil)
			switch {
			case verdict == nil && (err != nil || made != 1):
				t.Errorf("acknowledged: %v, %d invalidations", err, made)
			case verdict != nil && (!errors.As(err, &refused) || refused.Code != CodeNotPurged || !strings.Contains(refused.Message, "nothing was purged: the disk is full")):
				t.Errorf("refused: %v", err)
			case verdict != nil && (made != 1 || len(l.List(func(string) bool { return true }, 2*maxRecords).Purges) != 1):
				t.Errorf("refused by the proxy, and yet there are %d invalidations", made)
			}
		}
	})
}

func prefixes(n int, from string) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("/%s/%03d/", from, i))
	}
	return list
}

// CloudFront never has to say that it is too much, neither in progress nor in calls.
func TestQuotasAndPaceAreKept(t *testing.T) {
	inLab(t, func(l *lab) {
		l.Throttle("CreateInvalidation", 34)
		l.Throttle("GetInvalidation", 34)
		p := l.purge("shop", prefixes(40, "a")...)
		twin := l.purge("twin", prefixes(20, "b")...)
		exact, err := l.Purge(t.Context(), Request{Site: "twin", Prefixes: prefixes(3000, "c"), Exact: true}, "")
		l.must(err)
		if p.Edge.Batches != 3 || twin.Edge.Batches != 2 || exact.Edge.Batches != 1 {
			t.Errorf("%d, %d, %d batches", p.Edge.Batches, twin.Edge.Batches, exact.Edge.Batches)
		}
		// What has another quota does not wait for those.
		pass(20 * time.Second)
		if now := l.find(exact.ID); len(now.Edge.Invalidations) != 1 {
			t.Errorf("paths without a star wait for those with one: %+v", now.Edge)
		}
		l.wantDone(exact.ID)
		l.wantDone(twin.ID)
		done := l.wantDone(p.ID)
		if took := done.Edge.Ended.Sub(p.At); took > 6*time.Minute {
			t.Errorf("60 paths with a star took %s, CloudFront a minute for 15", took)
		}
		if refused := l.refused(); len(refused) > 0 {
			t.Errorf("calls were refused: %v", refused)
		}
		if n := len(l.paths(shopID)); n != 3060 {
			t.Errorf("%d paths", n)
		}
		var times []time.Time
		for _, c := range l.Calls() {
			times = append(times, c.Time)
		}
		for i := range times {
			for j := i; j < len(times); j++ {
				if n, most := j-i+1, int(times[j].Sub(times[i]).Seconds()*callsPerSecond)+callsAtOnce+1; n > most+1 { // and one for a session
					t.Fatalf("%d calls within %s", n, times[j].Sub(times[i]))
				}
			}
		}
	})
}

// Small purges that come all the time do not keep a large one waiting for ever.
func TestALargePurgeIsNotOvertakenForEver(t *testing.T) {
	inLab(t, func(l *lab) {
		first := l.purge("shop", prefixes(14, "first")...)
		large := l.purge("twin", prefixes(15, "large")...)
		for i := range 15 {
			l.purge("shop", fmt.Sprintf("/small/%d/", i))
			pass(10 * time.Second)
		}
		l.wantDone(first.ID)
		if p := l.wantDone(large.ID); p.Edge.Ended.Sub(p.At) > 3*time.Minute {
			t.Errorf("the large one took %s", p.Edge.Ended.Sub(p.At))
		}
	})
}

// What others have in progress is waited for, and what room they leave is used.
func TestInvalidationsOfOthers(t *testing.T) {
	inLab(t, func(l *lab) {
		l.SetInvalidationDelay(time.Hour)
		l.Before("AssumeRole", func() {}) // the first call of all
		others := l.purge("shop", prefixes(9, "others")...)
		pass(10 * time.Second)
		l.Service.Close()
		l.must(os.RemoveAll(l.dir)) // from now on they are somebody else's
		l.SetInvalidationDelay(20 * time.Second)
		l.open()
		if _, known := l.Find(others.ID); known {
			t.Fatal("it is still known")
		}
		p := l.purge("shop", prefixes(12, "own")...)
		pass(5 * time.Second)
		if now := l.find(p.ID); !strings.Contains(now.Edge.Waits, "other invalidations of distribution "+shopID) {
			t.Errorf("waits for %q", now.Edge.Waits)
		}
		if done := l.wantDone(p.ID); done.Edge.Batches < 2 || done.Edge.Ended.Sub(p.At) > 5*time.Minute {
			t.Errorf("%d batches, %s", done.Edge.Batches, done.Edge.Ended.Sub(p.At))
		}
		for _, path := range prefixes(12, "own") {
			if !slices.Contains(l.paths(shopID), path+"*") {
				t.Errorf("%s is missing", path)
			}
		}
	})
}

func TestNoRoomAtAllIsBounded(t *testing.T) {
	inLab(t, func(l *lab) {
		l.Fail("CreateInvalidation", 1000, 400, "TooManyInvalidationsInProgress", "too many")
		p := l.purge("shop", "/a/", "/b/")
		failed := l.wantFailed(p.ID, "quota", "given up after 15m", "purge again")
		if took := failed.Edge.Ended.Sub(p.At); took > 17*time.Minute {
			t.Errorf("it took %s", took)
		}
		// The next one has as much time.
		l.Calm()
		l.wantDone(l.purge("shop", "/a/").ID)
	})
}

func TestTroubleThatPasses(t *testing.T) {
	for name, trouble := range map[string]func(*lab){
		"throttled":   func(l *lab) { l.Throttle("CreateInvalidation", 2); l.Throttle("GetInvalidation", 2) },
		"unavailable": func(l *lab) { l.Fail("CreateInvalidation", 20, 503, "ServiceUnavailable", "sorry") },
		"cut":         func(l *lab) { l.Drop("CreateInvalidation", double.DropBefore, 20) },
		"cut off":     func(l *lab) { l.Drop("CreateInvalidation", double.DropHalfway, 5) },
		"lost":        func(l *lab) { l.Drop("CreateInvalidation", double.DropAfter, 20) },
		"looking":     func(l *lab) { l.Drop("GetInvalidation", double.DropBefore, 20) },
		"no session":  func(l *lab) { l.Drop("AssumeRole", double.DropBefore, 20) },
		"busy":        func(l *lab) { l.Fail("CreateInvalidation", 5, 400, "TooManyInvalidationsInProgress", "too many") },
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				trouble(l)
				all := append(prefixes(20, "a"), prefixes(3, "b")...)
				l.wantDone(l.purge("shop", all...).ID)
				paths := l.paths(shopID)
				slices.Sort(paths)
				if name != "busy" && len(paths) != len(all) || len(slices.Compact(paths)) != len(all) {
					t.Errorf("%d paths were named, %d times", len(all), len(paths))
				}
			})
		})
	}
}

func TestTroubleThatDoesNotPassIsBounded(t *testing.T) {
	inLab(t, func(l *lab) {
		l.Drop("CreateInvalidation", double.DropBefore, 100000)
		p := l.purge("shop", "/a/")
		pass(3 * time.Minute)
		if now := l.find(p.ID); now.State != Running || now.Edge.Waits == "" {
			t.Errorf("%+v does not say what it waits for", now.Edge)
		}
		failed := l.wantFailed(p.ID, "unreachable", "given up after 15m", "AWS_ENDPOINT_URL_CLOUDFRONT", "purge again")
		if took := failed.Edge.Ended.Sub(p.At); took > 17*time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestWhatCannotPassFailsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*lab)
		kind   string
		words  []string
	}{
		"a right is missing": {
			func(l *lab) { l.Deny(roleARN, "cloudfront:CreateInvalidation") }, "denied",
			[]string{"AccessDenied", "add cloudfront:CreateInvalidation to the policy of " + roleARN},
		},
		"it cannot be looked at": {
			func(l *lab) { l.Deny(roleARN, "cloudfront:GetInvalidation") }, "denied", []string{"add cloudfront:GetInvalidation to the policy of " + roleARN},
		},
		"external id": {func(l *lab) { l.sites[0].Target.ExternalID = "external-18" }, "assume", []string{"distribution.external_id"}},
		"no such distribution": {
			func(l *lab) { l.sites[0].Target.Distribution = "E404" }, "not_found", []string{"check distribution.id (E404)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				c.before(l)
				p := l.purge("shop", "/a/")
				failed := l.wantFailed(p.ID, c.kind, c.words...)
				if took := failed.Edge.Ended.Sub(p.At); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
				if len(l.proxy.asked) != 1 {
					t.Error("the proxy has not purged")
				}
			})
		})
	}
}

// Sites that share a distribution do not learn of one another's role.
func TestWhatIsSaidOfTroubleTellsNoRole(t *testing.T) {
	inLab(t, func(l *lab) {
		l.sites[1].Target.RoleARN += "-of-twin"
		l.Drop("AssumeRole", double.DropBefore, 100000)
		p := l.purge("shop", "/a/")
		twin := l.purge("twin", "/b/")
		for range 10 {
			pass(time.Minute)
			for _, id := range []string{p.ID, twin.ID} {
				if now := l.find(id); now.Edge.Waits == "" || strings.Contains(now.Edge.Waits, "karui-purge") {
					t.Errorf("waits for %q", now.Edge.Waits)
				}
			}
		}
		for _, id := range []string{p.ID, twin.ID} {
			if f := l.wantFailed(id, "unreachable", "AWS_ENDPOINT_URL_STS").Edge.Failure; strings.Contains(f.Message+f.Remedy, "karui-purge") {
				t.Errorf("%+v", f)
			}
		}
	})
}

// One site's wrong role is no trouble for another one of the same distribution.
func TestASiteThatFailsLeavesItsTwinAlone(t *testing.T) {
	inLab(t, func(l *lab) {
		l.sites[0].Target.RoleARN += "x"
		bad := l.purge("shop", prefixes(30, "a")...)
		good := l.purge("twin", "/b/")
		l.wantFailed(bad.ID, "assume")
		l.wantDone(good.ID)
	})
}

func TestOneThatTakesTooLong(t *testing.T) {
	inLab(t, func(l *lab) {
		l.SetInvalidationDelay(24 * time.Hour)
		l.wantFailed(l.purge("shop", "/a/").ID, "overdue", l.find(l.purge("shop", "/a/").ID).Edge.Distribution, "CloudFront goes on with it")
	})
}

// A restart at any moment loses nothing and makes nothing twice.
func TestRestarts(t *testing.T) {
	inLab(t, func(l *lab) {
		want := append(prefixes(40, "a"), prefixes(5, "b")...)
		ids := []string{l.purge("shop", want[:40]...).ID, l.purge("twin", want[40:]...).ID}
		for i := range 60 {
			if p := l.find(ids[0]); p.State == Done {
				break
			}
			pass(time.Duration(i%9) * time.Second)
			if i%3 == 0 {
				l.Drop("CreateInvalidation", double.DropAfter, 1)
			}
			l.Service.Close()
			pass(time.Second)
			l.open()
		}
		for _, id := range ids {
			l.wantDone(id)
		}
		got := l.paths(shopID)
		slices.Sort(got)
		var stars []string
		for _, p := range want {
			stars = append(stars, p+"*")
		}
		slices.Sort(stars)
		if !slices.Equal(got, stars) {
			t.Errorf("%d paths, want %d, each once", len(got), len(stars))
		}
		if n := len(l.proxy.asked); n != 2 {
			t.Errorf("the proxy was asked %d times", n)
		}
	})
}

// A process that is killed has in its file whatever it has answered.
func TestAKillLosesNothingThatWasAnswered(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.purge("shop", "/a/")
		b, err := os.ReadFile(filepath.Join(l.dir, stateFile))
		l.must(err)
		if !strings.Contains(string(b), p.ID) || strings.Contains(string(b), "external-17") {
			t.Errorf("the file is %s", b)
		}
		l.Service.Close()
		l.must(os.WriteFile(filepath.Join(l.dir, stateFile), b, 0o600)) // as it was when the answer went out
		l.open()
		l.wantDone(p.ID)
	})
}

func TestAStateThatCannotBeRead(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.purge("shop", "/a/")
		for _, text := range []string{
			"", "{", "null", `{"purges": [null]}`, `{"purges": [{"id": "x", "state": "running"}]}`, `{"purges": [{"id": "x", "state": "running", "parts": [null]}]}`,
			`{"purges": [{"id": "x", "site": "shop", "state": "running", "edge": {"distribution": "E123SHOP"}, "parts": [{"paths": []}]}]}`,
		} {
			l.Service.Close()
			l.must(os.WriteFile(filepath.Join(l.dir, stateFile), []byte(text), 0o600))
			l.open()
			if _, known := l.Find(p.ID); known {
				t.Errorf("%s: it is known", text)
			}
			l.wantDone(l.purge("shop", "/b/").ID)
		}
	})
}

func TestAStateThatCannotBeWritten(t *testing.T) {
	inLab(t, func(l *lab) {
		l.must(os.WriteFile(l.dir, nil, 0o600)) // a file in the place of the folder
		p := l.purge("shop", "/a/")
		if len(p.Edge.Remarks) != 1 || !strings.Contains(p.Edge.Remarks[0], "not gone on with if karui restarts") {
			t.Errorf("%v", p.Edge.Remarks)
		}
		l.wantDone(p.ID)
	})
}

func TestAChangedConfiguration(t *testing.T) {
	inLab(t, func(l *lab) {
		l.SetLatency("CreateInvalidation", 5*time.Second)
		p := l.purge("shop", prefixes(20, "a")...)
		pass(time.Second)
		l.mu.Lock()
		l.sites[0].Target.Distribution = "E9BLOG"
		l.mu.Unlock()
		l.wantFailed(p.ID, "configuration", "the site no longer has the distribution "+shopID, "purge again")
		l.wantDone(l.purge("shop", "/b/").ID)
		synctest.Wait()
		if stats := l.Stats(); stats["shop"] != (Stats{Done: 1, Failed: 1}) || stats["twin"] != (Stats{}) || len(stats) != 3 {
			t.Errorf("%+v", stats)
		}
		if got := l.paths("E9BLOG"); !slices.Equal(got, []string{"/b/*"}) {
			t.Errorf("%v", got)
		}
		l.mu.Lock()
		l.sites = l.sites[1:]
		l.mu.Unlock()
		if _, err := l.Purge(t.Context(), Request{Site: "shop", Prefixes: []string{"/"}}, ""); err == nil {
			t.Error("a site that is gone is purged")
		}
	})
}

func TestRemarks(t *testing.T) {
	inLab(t, func(l *lab) {
		for name, c := range map[string]struct {
			site, prefix string
			exact        bool
			want         string
		}{
			"tilde":                    {"shop", "/x/~staff/", false, "the edge is told /x/*: it takes no path that is closer"},
			"exact, and queries count": {"shop", "/x.jpg", true, "with a query that is not named stays"},
			"exact, queries do not":    {"twin", "/x.jpg", true, ""},
		} {
			p, err := l.Purge(t.Context(), Request{Site: c.site, Prefixes: []string{c.prefix}, Exact: c.exact}, "")
			l.must(err)
			if got := strings.Join(p.Edge.Remarks, "; "); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

func TestBounds(t *testing.T) {
	inLab(t, func(l *lab) {
		l.SetInvalidationDelay(24 * time.Hour)
		refusal := func(site string, list ...string) *api.Error {
			var e *api.Error
			if _, err := l.Purge(t.Context(), Request{Site: site, Prefixes: list}, ""); err != nil && !errors.As(err, &e) {
				t.Fatal(err)
			}
			return e
		}
		long := "/" + strings.Repeat("x", MaxPrefix)
		var large []string
		for i := range MaxBytes/3900 + 1 {
			large = append(large, fmt.Sprintf("/%d", i)+long[:3900])
		}
		for name, list := range map[string][]string{"none": nil, "too many": prefixes(MaxPrefixes+1, "a"), "too long": {long}, "too large": large, "no slash": {"images/"}} {
			if e := refusal("shop", list...); e == nil || e.Status != 422 {
				t.Errorf("%s: %v", name, e)
			}
		}
		if e := refusal("nowhere", "/"); e == nil || e.Status != 404 {
			t.Errorf("%v", e)
		}
		if len(l.proxy.asked) != 0 {
			t.Error("the proxy was asked")
		}
		for range maxOfSite {
			l.purge("shop", "/a/")
		}
		if e := refusal("shop", "/a/"); e == nil || e.Status != 429 || e.Code != CodeBusy || e.Remedy == "" {
			t.Errorf("one more: %v", e)
		}
		// Neither other sites nor purges without an edge suffer.
		l.purge("twin", "/a/")
		no := false
		for range maxRecords + 50 {
			_, err := l.Purge(t.Context(), Request{Site: "shop", Prefixes: []string{"/a/"}, Edge: &no}, "")
			l.must(err)
		}
		running := 0
		list := l.List(func(string) bool { return true }, 2*maxRecords)
		for _, p := range list.Purges {
			if p.State == Running {
				running++
			}
		}
		if len(list.Purges) != maxRecords || running != maxOfSite+1 {
			t.Errorf("%d are remembered, %d of them unfinished", len(list.Purges), running)
		}
	})
}

// However much is purged, what is remembered of it stays small.
func TestMemoryOfWhatHasEnded(t *testing.T) {
	inLab(t, func(l *lab) {
		l.SetInvalidationDelay(0)
		for i := range 3 {
			p, err := l.Purge(t.Context(), Request{Site: "shop", Prefixes: prefixes(3000, fmt.Sprint(i)), Exact: true}, "")
			l.must(err)
			l.wantDone(p.ID)
		}
		l.Service.mu.Lock()
		defer l.Service.mu.Unlock()
		for _, r := range l.records {
			if r.size() > maxRemembered || r.Count != 3000 || len(r.Prefixes) != shownPrefixes {
				t.Errorf("%d bytes of %d prefixes, %d of which are kept", r.size(), r.Count, len(r.Prefixes))
			}
		}
	})
}

func TestClosing(t *testing.T) {
	inLab(t, func(l *lab) {
		l.SetLatency("CreateInvalidation", time.Hour)
		p := l.purge("shop", "/a/")
		pass(time.Second)
		began := time.Now()
		l.Service.Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("closing took %s", took)
		}
		if now := l.find(p.ID); now.State != Running {
			t.Errorf("%+v", now)
		}
		var e *api.Error
		if _, err := l.Purge(t.Context(), Request{Site: "plain", Prefixes: []string{"/"}}, ""); !errors.As(err, &e) || e.Status != 503 {
			t.Errorf("a closed service takes a purge: %v", err)
		}
		l.Calm()
		l.open()
		l.wantDone(p.ID)
	})
}
