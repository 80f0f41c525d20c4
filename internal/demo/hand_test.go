package demo

import (
	"html"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// The page leads to the pages of karui and the watchdog, and says how to ask the double
// of AWS from a shell. What is not there is not linked.
func TestPageHelpsByHand(t *testing.T) {
	d, page := desk(t)
	_, body := ask(t, http.MethodGet, page.URL+"/", "")
	if strings.Contains(body, "/status") || strings.Contains(body, "export ") {
		t.Error("pages are linked that are not there")
	}
	d.dir = "/tmp/it's here"
	d.proxy.admin, d.proxy.state = "127.0.0.1:1234", proxyUp
	d.guard = &guard{address: "127.0.0.1:2345"}
	_, body = ask(t, http.MethodGet, page.URL+"/", "")
	for _, want := range []string{
		`href="http://127.0.0.1:1234/status"`, `href="http://127.0.0.1:2345/status"`,
		"export AWS_ENDPOINT_URL_CLOUDFRONT=" + d.edge.sample.ControlURL + "\n", "export AWS_ENDPOINT_URL_STS=" + d.edge.sample.ControlURL + "\n",
		"export AWS_ACCESS_KEY_ID=" + d.edge.sample.Watchdog.AccessKeyID + "\n", "export AWS_SECRET_ACCESS_KEY=",
		`cp '/tmp/it'\''s here/watchdog.yaml' mine.yaml`, "karui-watchdog rehearse shop --config mine.yaml",
	} {
		if !strings.Contains(html.UnescapeString(body), want) {
			t.Errorf("%q is missing", want)
		}
	}
	_, live := ask(t, http.MethodGet, page.URL+"/live", "")
	if !strings.Contains(live, "127.0.0.1:1234/status") {
		t.Error("the links do not follow a restart")
	}
	d.proxy.state = proxyStopped
	if got := d.hand().Karui; got != "" {
		t.Errorf("%s while karui is stopped", got)
	}
}

func TestShellWordsMeanThemselves(t *testing.T) {
	for _, word := range []string{"", "plain", "http://127.0.0.1:80/x", "it's", "$(id) `id` \\ \"x\"", "a+b/c=="} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+shellWord(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q: %q %v", word, out, err)
		}
	}
}
