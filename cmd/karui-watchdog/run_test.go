package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"karui/watchdog"
)

// The whole way with the real program and short intervals.
func TestProxyKilledAndBack(t *testing.T) {
	l := newLab(t)
	p := l.begin("run")
	l.moreRounds(2, "up")
	l.proxy.stop()
	l.eventually("degraded and told", func() bool { return l.direct() && len(l.Messages()) == 1 })
	l.moreRounds(3, "down")
	if got := l.subjects(); len(got) != 1 || !strings.HasPrefix(got[0], "[karui] shop DEGRADED") || l.updates() != 1 {
		t.Fatalf("%q after %d updates", got, l.updates())
	}
	l.proxy.start()
	l.eventually("restored and told", func() bool { return !l.direct() && len(l.Messages()) == 2 })
	l.moreRounds(2, "up")
	mails := l.Messages()
	if got := l.subjects(); len(got) != 2 || !strings.HasPrefix(strings.TrimPrefix(got[1], "Re: "), "[karui] shop RESTORED") || l.updates() != 2 {
		t.Fatalf("%q after %d updates", got, l.updates())
	}
	id := header(mails[0], "Message-ID")
	if id == "" {
		id = header(mails[0], "Message-Id")
	}
	if id == "" || !strings.Contains(header(mails[1], "References"), id) {
		t.Errorf("the restore refers to %q, the degrade is %q", header(mails[1], "References"), id)
	}
	// The second daemon's and the commands' view, beside the first.
	code, stdout, stderr := l.run("status", "--json")
	var status watchdog.Status
	if err := json.Unmarshal([]byte(stdout), &status); err != nil || code != 0 || len(status.Sites) != 1 || status.Sites[0].Health != "up" || status.Sites[0].Order != "proxy" {
		t.Errorf("%d %v %s%s", code, err, stdout, stderr)
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("SIGTERM: exit code %d\n%s", code, &p.stderr)
	}
}

func TestManualBothWays(t *testing.T) {
	l := newLab(t)
	l.extra["degrade"], l.extra["restore"] = "manual", "manual"
	l.begin("run")
	l.moreRounds(1, "up")
	l.proxy.stop()
	l.eventually("told that a person is awaited", func() bool { return len(l.Messages()) == 1 })
	l.moreRounds(2, "down")
	if len(l.Messages()) != 1 || l.updates() != 0 {
		t.Fatalf("%q after %d updates", l.subjects(), l.updates())
	}
	if text := mailText(l.Messages()[0].Text, l.Messages()[0].Raw); !strings.Contains(text, "karui-watchdog degrade shop") {
		t.Errorf("the mail does not name the command:\n%s", text)
	}
	if code, stdout, stderr := l.run("degrade", "shop", "--yes"); code != 0 || !strings.Contains(stdout, "true origin first now") || !strings.Contains(stdout, "deployed") {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	l.eventually("told of the degrade", func() bool { return len(l.Messages()) == 2 })
	if code, stdout, stderr := l.run("degrade", "shop", "--yes"); code != 0 || !strings.Contains(stdout, "already") || l.updates() != 1 {
		t.Fatalf("again: %d %s%s", code, stdout, stderr)
	}
	l.proxy.start()
	l.eventually("told that a person is awaited again", func() bool { return len(l.Messages()) == 3 })
	if code, stdout, stderr := l.run("restore", "shop", "-y"); code != 0 || !strings.Contains(stdout, "proxy first now") {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	l.moreRounds(2, "up")
	l.eventually("told of the restore", func() bool { return len(l.Messages()) == 4 })
	if l.direct() || l.updates() != 2 {
		t.Errorf("%d updates", l.updates())
	}
}

// mailText is the text of a mail, quoted-printable undone as far as a search needs.
func mailText(text string, raw []byte) string {
	if text == "" {
		text = strings.ReplaceAll(strings.ReplaceAll(string(raw), "=\r\n", ""), "=3D", "=")
	}
	return text
}

func TestOriginDownAsWell(t *testing.T) {
	l := newLab(t)
	l.begin("run")
	l.moreRounds(1, "up")
	l.origin.stop()
	l.proxy.stop()
	l.moreRounds(3, "down")
	l.eventually("told", func() bool { return len(l.Messages()) == 1 })
	if l.updates() != 0 {
		t.Error("swapped")
	}
	if code, _, stderr := l.run("degrade", "shop", "--yes"); code != 1 || !strings.Contains(stderr, "true origin does not answer either") || l.updates() != 0 {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestOwnNetworkGone(t *testing.T) {
	l := newLab(t)
	l.begin("run")
	l.moreRounds(1, "up")
	l.proxy.stop()
	l.origin.stop()
	l.control.stop()
	l.moreRounds(1, "inconclusive")
	mails := len(l.Messages()) // a round may have fallen between the three
	l.moreRounds(3, "inconclusive")
	if len(l.Messages()) != mails || l.updates() != 0 {
		t.Errorf("%q after %d updates", l.subjects(), l.updates())
	}
}

func TestKilledBetweenSwapAndMail(t *testing.T) {
	l := newLab(t)
	first := l.begin("run")
	l.moreRounds(1, "up")
	// The write goes through, and then the read-back hangs: the moment between.
	l.Before("UpdateDistribution", func() { l.SetLatency("GetDistributionConfig", 1<<40) })
	l.proxy.stop()
	l.eventually("swapped", func() bool { return l.updates() == 1 })
	first.signal(syscall.SIGKILL)
	first.wait()
	l.Calm()
	if len(l.Messages()) != 0 || !l.direct() {
		t.Fatalf("not between: %q", l.subjects())
	}
	l.begin("run")
	l.eventually("told", func() bool { return len(l.Messages()) > 0 })
	l.moreRounds(3, "down")
	if got := l.subjects(); len(got) != 1 || !strings.HasPrefix(got[0], "[karui] shop DEGRADED") || l.updates() != 1 {
		t.Errorf("%q after %d updates", got, l.updates())
	}
}

func TestCheckActsAndEnds(t *testing.T) {
	l := newLab(t)
	if code, stdout, stderr := l.run("check"); code != 0 || !strings.Contains(stdout, "proxy first") {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	l.proxy.stop()
	code, stdout, stderr := l.run("check", "--json")
	var results []watchdog.Result
	if err := json.Unmarshal([]byte(stdout), &results); err != nil || code != 1 || len(results) != 1 || results[0].Did != "degrade" || results[0].Order != "direct" {
		t.Fatalf("%d %v %s%s", code, err, stdout, stderr)
	}
	if len(l.Messages()) != 1 || !l.direct() {
		t.Errorf("%q", l.subjects())
	}
	if code, _, _ := l.run("check"); code != 1 || len(l.Messages()) != 1 {
		t.Errorf("again: %d, %q", code, l.subjects())
	}
	l.proxy.start()
	if code, stdout, stderr := l.run("check"); code != 0 || !strings.Contains(stdout, "restored") || len(l.Messages()) != 2 {
		t.Errorf("%d %s%s, %q", code, stdout, stderr, l.subjects())
	}
}

func TestReloadOnHangup(t *testing.T) {
	l := newLab(t)
	p := l.begin("run")
	l.moreRounds(1, "up")
	path := l.config()
	good, err := os.ReadFile(path)
	l.must(err)
	l.must(os.WriteFile(path, append(good, "\nnonsense: 1\n"...), 0o600))
	p.signal(syscall.SIGHUP)
	l.moreRounds(2, "up")
	l.extra["degrade"] = "manual"
	l.config()
	p.signal(syscall.SIGHUP)
	l.moreRounds(2, "up")
	l.proxy.stop()
	l.eventually("told that a person is awaited", func() bool { return len(l.Messages()) == 1 })
	if l.updates() != 0 {
		t.Error("the new configuration was not taken over")
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 || !strings.Contains(p.stderr.String(), "nonsense is not a known key") {
		t.Errorf("%d\n%s", code, &p.stderr)
	}
}

func TestReloadTurnsToSES(t *testing.T) {
	l := newLab(t)
	ses := l.top["mail"]
	l.top["mail"] = "{}"
	p := l.begin("run")
	l.moreRounds(1, "up")
	if l.top["mail"] = ses; ses == "" {
		delete(l.top, "mail")
	}
	l.config()
	p.signal(syscall.SIGHUP)
	l.moreRounds(2, "up")
	l.proxy.stop()
	l.eventually("mailed", func() bool { return len(l.Messages()) == 1 })
}

// systemd learns that the daemon runs.
func TestReadinessIsTold(t *testing.T) {
	l := newLab(t)
	address := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	l.must(err)
	defer socket.Close()
	l.must(socket.SetReadDeadline(time.Now().Add(time.Minute)))
	l.env = append(l.env, "NOTIFY_SOCKET="+address)
	l.begin("run")
	said := make([]byte, 100)
	if n, err := socket.Read(said); err != nil || string(said[:n]) != "READY=1\n" {
		t.Errorf("%q, %v", said[:n], err)
	}
}

func TestPages(t *testing.T) {
	l := newLab(t)
	address := newPlace(t, http.NotFoundHandler())
	address.stop() // a port that was free a moment ago
	l.top["listen"] = `"` + address.address + `"`
	l.begin("run")
	l.moreRounds(1, "up")
	get := func(path, accept string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address.url(path), http.NoBody)
		l.must(err)
		req.Header.Set("Accept", accept)
		res, err := http.DefaultClient.Do(req)
		l.must(err)
		defer res.Body.Close()
		var b strings.Builder
		if err := res.Write(&b); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, b.String()
	}
	// A round is written down before it is counted.
	l.eventually("counted", func() bool {
		_, body := get("/metrics", "")
		return strings.Contains(body, `karui_watchdog_up{site="shop"} 1`)
	})
	for path, want := range map[string]string{
		"/healthz": "ok", "/status": "up, images come from the proxy",
	} {
		if status, body := get(path, "text/html"); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := get("/status", "application/json"); status != 200 || !strings.Contains(body, `"order": "proxy"`) {
		t.Errorf("%d %s", status, body)
	}
	if _, body := get("/metrics", ""); regexp.MustCompile(`(?m)^karui_watchdog_[^{ ]*\{[^}]*(url|host|path)=`).MatchString(body) {
		t.Error("an address is a label")
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAuditLogAndDocuments(t *testing.T) {
	l := newLab(t)
	l.proxy.stop()
	l.run("check")
	data, err := os.ReadFile(filepath.Join(l.dir, "state", "audit.jsonl"))
	l.must(err)
	first, _, _ := strings.Cut(string(data), "\n")
	for _, want := range []string{`"action":"degrade"`, `"by":"auto"`, `"etag_before":"`, `"request_id":"`, `cloudfront:UpdateDistribution`, `3 of 3 pings failed`} {
		if !strings.Contains(first, want) {
			t.Errorf("the audit log lacks %s: %s", want, first)
		}
	}
	names, err := filepath.Glob(filepath.Join(l.dir, "state", "sites", "shop", "documents", "*.xml"))
	if err != nil || len(names) != 2 {
		t.Errorf("%q %v", names, err)
	}
}
