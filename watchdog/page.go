package watchdog

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"karui/internal/page"
	"karui/watchdog/store"
)

//go:embed assets
var assets embed.FS

// statusPath is where the page is.
const statusPath = "/status"

// statusPage shows people how things are. It asks nobody: what it shows, the rounds
// have written down.
type statusPage struct {
	set   *page.Set
	style []byte
	host  string
	log   *slog.Logger
	// source reads what the page is made from.
	source func() picture
}

func newStatusPage(source func() picture, log *slog.Logger) (*statusPage, error) {
	set, err := page.New(statusPath, assets, "assets/*.html", "facts", "verdict", "sites", "mails")
	if err != nil {
		return nil, fmt.Errorf("status page: %w", err)
	}
	p := &statusPage{set: set, source: source, log: log}
	if p.style, err = assets.ReadFile("assets/watch.css"); err != nil {
		return nil, fmt.Errorf("status page: %w", err)
	}
	p.host, _ = os.Hostname() // a machine without a name has a page all the same
	return p, nil
}

// styleSheet names the page's own style sheet in the form that it has in this version.
func (p *statusPage) styleSheet() string {
	sum := sha256.Sum256(p.style)
	return statusPath + "/watch.css?v=" + hex.EncodeToString(sum[:6])
}

// register adds the page to the watchdog's listener.
func (p *statusPage) register(mux *http.ServeMux) {
	p.set.Assets(mux)
	mux.HandleFunc("GET "+statusPath+"/watch.css", func(rw http.ResponseWriter, _ *http.Request) {
		page.Secure(rw.Header())
		rw.Header().Set("Content-Type", "text/css; charset=utf-8")
		rw.Header().Set("Cache-Control", "private, max-age=86400")
		_, _ = rw.Write(p.style) // a browser that left needs no style
	})
	mux.HandleFunc("GET "+statusPath+"/live", func(rw http.ResponseWriter, r *http.Request) {
		p.wrote(p.set.Live(rw, r, p.look(r)))
	})
}

// whole answers with the page.
func (p *statusPage) whole(rw http.ResponseWriter, r *http.Request) {
	p.wrote(p.set.Whole(rw, http.StatusOK, "status.html", p.look(r)))
}

func (p *statusPage) wrote(err error) {
	if err != nil {
		p.log.Error("the status page failed", "error", err)
	}
}

// look makes the page from what is known now.
func (p *statusPage) look(r *http.Request) view {
	pic := p.source()
	pic.host, pic.all = p.host, r.URL.Query().Get("rows") == "all"
	v := pic.view()
	v.Style = p.styleSheet()
	return v
}

// picture reads what the page is made from.
func (w *Watchdog) picture() picture {
	p := picture{
		status: w.Status(), histories: map[string]store.History{}, fates: map[string]string{}, interval: w.Config().Interval, version: w.version,
	}
	// Outboxes that cannot tell are left out of it.
	post, _ := w.outbox.(interface{ Fate(id string) string })
	if o, ok := w.outbox.(interface{ Trouble() string }); ok {
		p.trouble = o.Trouble()
	}
	for _, s := range w.all() {
		h := s.history()
		p.histories[s.config.ID] = h
		for _, t := range h.Told {
			if post != nil {
				p.fates[t.ID] = post.Fate(t.ID)
			}
		}
	}
	return p
}
