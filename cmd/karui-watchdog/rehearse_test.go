package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	double "karui/internal/cloudfront"
	"karui/watchdog"
)

// change rewrites the shop's distribution as somebody else would.
func (l *lab) change(from, to string) {
	l.t.Helper()
	s, _ := l.Distribution("ESHOP")
	doc := bytes.Replace(s.Newest, []byte(from), []byte(to), 1)
	if bytes.Equal(doc, s.Newest) {
		l.t.Fatalf("the document lacks %s", from)
	}
	l.must(l.PutDistribution("ESHOP", doc))
}

// rehearse runs the command and gives the points that did not pass, by name.
func (l *lab) rehearse(args ...string) (code int, odd map[string]watchdog.Point, r watchdog.Rehearsal) {
	l.t.Helper()
	code, stdout, stderr := l.run(append([]string{"rehearse", "shop", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		l.t.Fatalf("%d %v\n%s%s", code, err, stdout, stderr)
	}
	odd = map[string]watchdog.Point{}
	for _, p := range r.Points {
		if p.Status != watchdog.Pass {
			odd[p.Name] = p
		}
	}
	return code, odd, r
}

func TestRehearsalFindsEachMistake(t *testing.T) {
	hints := map[string]string{}
	for name, test := range map[string]struct {
		with   func(*lab)
		point  string // the one that is not as it should be
		status watchdog.PointStatus
		hint   string
	}{
		"right to update": {
			func(l *lab) { l.Deny(roleARN, "cloudfront:UpdateDistribution") },
			"write", watchdog.Fail, "add cloudfront:UpdateDistribution to the policy of",
		},
		"group id":     {func(l *lab) { l.extra["origin_group_id"] = "pictures" }, "origins", watchdog.Fail, "correct origin_group_id"},
		"origin id":    {func(l *lab) { l.extra["proxy_origin_id"] = "kaurui" }, "origins", watchdog.Fail, "correct proxy_origin_id"},
		"other origin": {func(l *lab) { l.extra["direct_origin_id"] = "assets" }, "origins", watchdog.Fail, "put exactly the two origins into the group"},
		"unused group": {
			func(l *lab) {
				l.change("<TargetOriginId>images</TargetOriginId>", "<TargetOriginId>origin</TargetOriginId>")
			},
			"behavior", watchdog.Fail, "choose the origin group as the origin of the behaviour",
		},
		"quality-based group": {
			func(l *lab) {
				l.change("<SelectionCriteria>default</SelectionCriteria>", "<SelectionCriteria>media-quality-based</SelectionCriteria>")
			},
			"selection", watchdog.Fail, "set the selection criteria of the origin group to default",
		},
		"no failover on 503": {
			func(l *lab) {
				l.change("<Quantity>5</Quantity><Items><StatusCode>403</StatusCode><StatusCode>500</StatusCode><StatusCode>502</StatusCode><StatusCode>503</StatusCode>",
					"<Quantity>4</Quantity><Items><StatusCode>403</StatusCode><StatusCode>500</StatusCode><StatusCode>502</StatusCode>")
			},
			"failover_503", watchdog.Fail, "add 503",
		},
		"no failover on 403": {
			func(l *lab) {
				l.change("<Quantity>5</Quantity><Items><StatusCode>403</StatusCode>", "<Quantity>4</Quantity><Items>")
			},
			"failover_403", watchdog.Warn, "add 403",
		},
		"errors are kept": {
			func(l *lab) {
				l.change("<ErrorCode>503</ErrorCode><ErrorCachingMinTTL>0</ErrorCachingMinTTL>", "<ErrorCode>503</ErrorCode><ErrorCachingMinTTL>10</ErrorCachingMinTTL>")
			},
			"error_caching", watchdog.Fail, "error caching minimum TTL of 0",
		},
		"viewers get no variant": {
			func(l *lab) {
				l.proxy.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/ping.jpg" {
						proxyHandler(w, r)
						return
					}
					w.WriteHeader(http.StatusServiceUnavailable)
				})
				l.proxy.stop()
				l.proxy.start()
			},
			"viewer", watchdog.Fail, "compare X-Karui-Key",
		},
		"viewer_url beside the group": {
			func(l *lab) { l.extra["viewer_url"] = l.edge.url("/logo.jpg") },
			"viewer", watchdog.Fail, "choose a viewer_url that the behaviour for images serves",
		},
		"viewer_url past the edge": {
			func(l *lab) { l.refuses("secret") },
			"viewer", watchdog.Fail, "viewer_url must go through CloudFront, as viewers do, and not to karui itself; if it does go through, the edge does not send the X-Karui-Key",
		},
		"viewer_url past the edge, without a route": {
			func(l *lab) { l.refuses("route") },
			"viewer", watchdog.Fail, "viewer_url must go through CloudFront, as viewers do, and not to karui itself; if it does go through, the edge sends no X-Routing",
		},
		"viewer_url past the edge, under stress": {
			func(l *lab) { l.refuses("latency") },
			"viewer", watchdog.Fail, `karui turns requests away ("latency")`,
		},
		"no viewer_url": {func(l *lab) { l.extra["viewer_url"] = `""` }, "viewer", watchdog.Warn, "set viewer_url"},
		"long MaxTTL": {
			func(l *lab) {
				l.must(l.PutCachePolicy(double.CachePolicy{ID: imagesPolicy, Name: "images", DefaultTTL: time.Hour, MaxTTL: 8760 * time.Hour, Headers: []string{"Accept"}}))
			},
			"lifetimes", watchdog.Warn, "lower MaxTTL",
		},
		"long DefaultTTL": {
			func(l *lab) {
				l.must(l.PutCachePolicy(double.CachePolicy{ID: imagesPolicy, Name: "images", DefaultTTL: 2 * time.Hour, MaxTTL: 24 * time.Hour, Headers: []string{"Accept"}}))
			},
			"lifetimes", watchdog.Warn, "lower DefaultTTL",
		},
		"Accept not in the key": {
			func(l *lab) {
				l.must(l.PutCachePolicy(double.CachePolicy{ID: imagesPolicy, Name: "images", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour}))
			},
			"cache_key", watchdog.Fail, "add Accept",
		},
		"cache policy not readable": {func(l *lab) { l.Deny(roleARN, "cloudfront:GetCachePolicy") }, "cache_key", watchdog.Warn, "add cloudfront:GetCachePolicy"},
		"any external id": {
			func(l *lab) {
				_, err := l.PutRole(double.Role{Name: "karui-watchdog", Policy: rolePolicy})
				l.must(err)
			},
			"external_id", watchdog.Warn, "add a condition on sts:ExternalId",
		},
		"wrong external id":    {func(l *lab) { l.extra["external_id"] = "external-18" }, "assume", watchdog.Fail, "check the trust policy"},
		"distribution id":      {func(l *lab) { l.extra["distribution_id"] = "ENONE" }, "read", watchdog.Fail, "check distribution_id"},
		"edge waits too short": {func(l *lab) { l.top["proxy_deadline"] = "15s" }, "timeouts", watchdog.Fail, "set the response timeout"},
		"edge waits too long":  {func(l *lab) { l.top["proxy_deadline"] = "3s" }, "timeouts", watchdog.Warn, "connection attempts 1"},
		"proxy down":           {func(l *lab) { l.proxy.stop() }, "ping", watchdog.Fail, "let the watchdog's address in at the proxy's firewall"},
		"ping is no JPEG":      {func(l *lab) { l.extra["ping_url"] = l.proxy.url("/logo.jpg") }, "ping", watchdog.Fail, "is not karui"},
		"origin down":          {func(l *lab) { l.origin.stop() }, "origin", watchdog.Fail, "never swaps to a silent origin"},
		"controls":             {func(l *lab) { l.control.stop() }, "controls", watchdog.Fail, "correct control_urls"},
		"mail": {
			func(l *lab) { l.Fail("SendEmail", 50, 400, "MessageRejected", "Email address is not verified.") },
			"mail", watchdog.Fail, "verified",
		},
		"no mail": {func(l *lab) { l.top["mail"] = "{}" }, "mail", watchdog.Warn, "set mail.smtp.host"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			test.with(l)
			code, odd, r := l.rehearse()
			p, found := odd[test.point]
			if !found || p.Status != test.status || !strings.Contains(p.Hint, test.hint) || p.Text == "" {
				t.Fatalf("point %s: %+v\nall: %+v", test.point, p, r.Points)
			}
			want := 0
			if test.status == watchdog.Fail {
				want = 1
			}
			if code != want || r.Passed != (code == 0) {
				t.Errorf("exit code %d", code)
			}
			if other, double := hints[p.Hint]; double {
				t.Errorf("the hint is that of %s: %s", other, p.Hint)
			}
			hints[p.Hint] = name
		})
	}
}

func TestRehearsalOfAGoodSite(t *testing.T) {
	l := newLab(t)
	code, odd, r := l.rehearse()
	if code != 0 || len(odd) != 0 || !r.Passed || len(r.Points) < 15 {
		t.Fatalf("%d %+v", code, r)
	}
	if l.updates() != 1 || l.direct() || len(l.Messages()) != 1 {
		t.Errorf("%d updates, %q", l.updates(), l.subjects())
	}
	code, odd, _ = l.rehearse("--no-write")
	if code != 0 || odd["write"].Status != watchdog.Skipped || l.updates() != 1 {
		t.Errorf("%d %+v, %d updates", code, odd, l.updates())
	}
	// For people: each point on a line, what is announced apart.
	code, stdout, stderr := l.run("rehearse", "shop")
	if code != 0 || !strings.Contains(stdout, "pass    write") || !strings.Contains(stdout, "shop: passed") || !strings.Contains(stderr, "... writing the configuration of ESHOP back unchanged") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}

func TestRehearsalSwapsAndProvesIt(t *testing.T) {
	for name, with := range map[string]func(*lab){
		"query in the key": func(*lab) {},
		"by invalidation": func(l *lab) {
			l.must(l.PutCachePolicy(double.CachePolicy{ID: imagesPolicy, Name: "images", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour, Headers: []string{"Accept"}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			with(l)
			before, _ := l.Distribution("ESHOP")
			code, odd, r := l.rehearse("--swap")
			if code != 0 || len(odd) != 0 {
				t.Fatalf("%d %+v", code, r.Points)
			}
			names := map[string]bool{}
			for _, p := range r.Points {
				names[p.Name] = true
			}
			for _, want := range []string{"swap_degrade", "swap_degrade_deployed", "swap_viewer_origin", "swap_restore", "swap_restore_deployed", "swap_viewer_variant"} {
				if !names[want] {
					t.Errorf("no point %s", want)
				}
			}
			after, _ := l.Distribution("ESHOP")
			if l.updates() != 3 || l.direct() || !bytes.Equal(before.Newest, after.Newest) {
				t.Errorf("%d updates, or not as before", l.updates())
			}
			if name == "by invalidation" && len(l.Invalidations("ESHOP")) != 2 {
				t.Error("not invalidated")
			}
			// Neither told as an outage nor taken for one.
			if code, _, stderr := l.run("check"); code != 0 || len(l.Messages()) != 1 {
				t.Errorf("%d %s, %q", code, stderr, l.subjects())
			}
		})
	}
}

func TestSwapIsRefused(t *testing.T) {
	for name, with := range map[string]func(*lab){
		"without viewer_url": func(l *lab) { l.extra["viewer_url"] = `""` },
		"after a failure":    func(l *lab) { l.origin.stop() },
		"while degraded":     func(l *lab) { l.run("degrade", "shop", "--yes") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			with(l)
			before := l.direct()
			code, odd, _ := l.rehearse("--swap")
			if code != 1 || odd["swap"].Status != watchdog.Fail || odd["swap"].Hint == "" || l.direct() != before {
				t.Errorf("%d %+v", code, odd)
			}
		})
	}
	l := newLab(t)
	if code, _, _ := l.run("rehearse", "shop", "--swap", "--no-write"); code != 2 {
		t.Error(code)
	}
}

func TestInterruptedSwapIsRestored(t *testing.T) {
	for name, signals := range map[string][]syscall.Signal{
		"asked to end":       {syscall.SIGTERM},
		"asked twice":        {syscall.SIGTERM, syscall.SIGTERM}, // by timeout(1)
		"terminal was lost":  {syscall.SIGHUP},
		"terminal and group": {syscall.SIGHUP, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) { interrupt(t, signals) })
	}
}

// pending tells whether the kernel still holds signals for a process.
func pending(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "ShdPnd:\t0000000000000000")
}

func interrupt(t *testing.T, signals []syscall.Signal) {
	l := newLab(t)
	l.SetDeployDelay(time.Hour)
	l.SetLatency("UpdateDistribution", 200*time.Millisecond)
	p := l.begin("rehearse", "shop", "--swap")
	l.eventually("degraded", func() bool { return l.direct() })
	for _, s := range signals {
		p.signal(s)
		// Or two of a kind become one.
		l.eventually("signal taken", func() bool { return !pending(p.cmd.Process.Pid) })
	}
	if code := p.wait(); code != 1 || l.direct() || !strings.Contains(p.stderr.String(), "interrupted: restoring") || !strings.Contains(p.stdout.String(), "shop: interrupted") {
		t.Errorf("%d, true origin first: %v\n%s%s", code, l.direct(), &p.stdout, &p.stderr)
	}
	l.SetDeployDelay(0)
	if code, _, stderr := l.run("check"); code != 0 || len(l.Messages()) != 1 {
		t.Errorf("%d %s, %q", code, stderr, l.subjects())
	}
}

func TestRehearsalWithoutReadersRestores(t *testing.T) {
	l := newLab(t)
	l.SetDeployDelay(time.Second)
	path, err := binary()
	l.must(err)
	// The reader goes before the swap, as that of 'rehearse shop --swap | head' does.
	cmd := exec.Command("sh", "-c", path+` rehearse shop --swap --config "$1" 2>&1 | head -n 1`, "sh", l.config())
	cmd.Env = l.env
	out, err := cmd.Output()
	l.must(err)
	if !strings.Contains(string(out), "pass    assume") {
		t.Fatalf("%s", out)
	}
	l.eventually("degraded and restored", func() bool { return l.updates() == 3 && !l.direct() })
}

func TestKilledSwapIsPutRight(t *testing.T) {
	l := newLab(t)
	l.SetDeployDelay(time.Hour)
	p := l.begin("rehearse", "shop", "--swap")
	l.eventually("degraded", func() bool { return l.direct() })
	p.signal(syscall.SIGKILL)
	p.wait()
	l.SetDeployDelay(0)
	if code, stdout, stderr := l.run("check"); code != 0 || l.direct() {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if got := strings.Join(l.subjects()[1:], "; "); !strings.Contains(got, "DEGRADED") || !strings.Contains(got, "RESTORED") {
		t.Errorf("%q", got)
	}
}

func TestRunLeavesARehearsalAlone(t *testing.T) {
	l := newLab(t)
	l.SetDeployDelay(2 * time.Second)
	l.begin("run")
	l.moreRounds(1, "up")
	code, odd, r := l.rehearse("--swap")
	if code != 0 || len(odd) > 0 {
		t.Fatalf("%d %+v", code, r.Points)
	}
	l.moreRounds(3, "up")
	if len(l.Messages()) != 1 || l.direct() {
		t.Errorf("%q", l.subjects())
	}
}

// refuses lets viewer_url lead past the edge, to another address of a karui that refuses
// what has not come through it.
func (l *lab) refuses(reason string) {
	past := newPlace(l.t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Karui-Reason", reason)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	l.extra["viewer_url"] = past.url("/images/logo.jpg")
}
