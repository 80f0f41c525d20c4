package demo

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"karui/internal/page"
)

//go:embed assets
var assets embed.FS

// fragments are the parts of the page that change, each a template.
func fragments() []string {
	return []string{"verdict", "way", "controls", "cold", "stages", "charts", "watch", "inbox", "journal", "pid", "pages", "shell"}
}

// policy is the page's Content-Security-Policy: nothing from elsewhere, and
// nothing inline.
const policy = "default-src 'none'; img-src 'self' blob:; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// pages serves the page and what belongs to it.
type pages struct {
	demo *demo
	tmpl *template.Template
}

// handler is what the page's address serves.
func (d *demo) handler() (http.Handler, error) {
	tmpl, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	p := &pages{demo: d, tmpl: tmpl}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.whole)
	mux.HandleFunc("GET /live", p.live)
	mux.HandleFunc("GET /image", p.image)
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	script, err := assets.ReadFile("assets/page.js")
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	for path, asset := range map[string]struct{ kind, body string }{
		"/style.css": {"text/css; charset=utf-8", page.BaseStyle() + string(style)},
		"/page.js":   {"text/javascript; charset=utf-8", string(script)},
		"/icon.svg":  {"image/svg+xml", page.Icon()},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", asset.kind)
			_, _ = io.WriteString(w, asset.body)
		})
	}
	mux.HandleFunc("POST /do/{action}", p.form("#break-it", func(r *http.Request) error { return d.do(action(r.PathValue("action"))) }))
	mux.HandleFunc("POST /cold", p.form("#pictures", func(r *http.Request) error {
		d.askNew(kindNamed(r.URL.Query().Get("as")))
		return nil
	}))
	mux.HandleFunc("POST /language", p.form("#inbox", func(r *http.Request) error { return d.setLanguage(r.PostFormValue("language")) }))
	mux.HandleFunc("POST /pictures", p.form("#pictures", func(r *http.Request) error { return d.addPicture(r.PostFormValue("path")) }))
	return guarded(http.NewCrossOriginProtection().Handler(mux)), nil
}

// guarded refuses hosts that are not this machine's when the request came over
// loopback, so that no page of the world can have a name lead here, and bounds
// what is read.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && isLoopback(local.String()) && !isLoopback(r.Host) {
			http.Error(w, "this page is for this machine: ask for it by 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
		next.ServeHTTP(w, r)
	})
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (p *pages) whole(w http.ResponseWriter, r *http.Request) {
	v := p.demo.view(kindNamed(r.URL.Query().Get("as")))
	for _, b := range v.Buttons {
		if b.Name == r.URL.Query().Get("refused") {
			v.Refusal = b.Label + ": " + b.Why
		}
	}
	var b bytes.Buffer
	if err := p.tmpl.ExecuteTemplate(&b, "page.html", v); err != nil {
		http.Error(w, "the page cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}

// live is all fragments, for the page's script.
func (p *pages) live(w http.ResponseWriter, r *http.Request) {
	v := p.demo.view(kindNamed(r.URL.Query().Get("as")))
	out := make(map[string]string)
	for _, name := range fragments() {
		var b bytes.Buffer
		if err := p.tmpl.ExecuteTemplate(&b, name, v); err != nil {
			http.Error(w, "the page cannot be written: "+err.Error(), http.StatusInternalServerError)
			return
		}
		out[name] = b.String()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"fragments": out})
}

// form does what a form asks for. A script gets 204, or 409 with the reason in
// words; a browser without one goes back to the page.
func (p *pages) form(fragment string, do func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := do(r)
		var no refusal
		scripted := r.Header.Get("Accept") == "application/json"
		switch {
		case err != nil && !errors.As(err, &no):
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case scripted && err != nil:
			http.Error(w, err.Error(), http.StatusConflict)
		case scripted:
			w.WriteHeader(http.StatusNoContent)
		default:
			q := url.Values{"as": {kindNamed(r.URL.Query().Get("as")).Name}}
			if err != nil {
				q.Set("refused", r.PathValue("action"))
			}
			http.Redirect(w, r, "/?"+q.Encode()+fragment, http.StatusSeeOther)
		}
	}
}

// image asks the edge for one of the images, as a kind of browser, and passes the
// answer on as it comes. The way that it came is in X-Demo headers.
func (p *pages) image(w http.ResponseWriter, r *http.Request) {
	k, target := kindNamed(r.URL.Query().Get("as")), r.URL.Query().Get("path")
	known := slices.ContainsFunc(p.demo.paths(), func(q picture) bool { return q.Path == target })
	if !known {
		http.Error(w, "not one of the images on the page", http.StatusNotFound)
		return
	}
	resp, err := p.demo.viewer.request(r.Context(), k, target)
	if err != nil {
		http.Error(w, "the edge did not answer", http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "image/") {
		http.Error(w, fmt.Sprintf("the edge answered %d, %s", resp.StatusCode, kind), http.StatusBadGateway)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	if n := resp.Header.Get("Content-Length"); n != "" {
		h.Set("Content-Length", n)
	}
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox") // an SVG of a real site is a document too
	way := wayOf(resp.Header)
	h.Set("X-Demo-Way", string(way))
	h.Set("X-Demo-Words", wayWords(way))
	h.Set("X-Demo-Format", formatWords(strings.TrimPrefix(kind, "image/")))
	h.Set("X-Demo-Saved", fmt.Sprint(savedOf(resp.Header)))
	if _, err := io.Copy(w, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // never the end of a whole image
	}
}

// view is the page's content now.
func (d *demo) view(k kind) view {
	f := d.facts()
	total := d.numbers.total()
	status, rounds := d.patrol.now()
	_, child := d.proxy.now()
	v := view{
		facts: f, Kind: k, Kinds: kinds(), EdgeURL: d.edge.url, Interval: seconds(watchInterval), EdgeTTL: seconds(edgeTTL),
		Verdict: f.verdict(), SavedBytes: bytesWords(total.Saved), Failovers: total.Failovers,
		Rate: "4 visits a second", Members: f.members(), Kept: f.Recent.Ways[wayEdge], OrderWords: f.orderWords(), Buttons: d.buttons(f),
		First: f.firstStage(), Second: f.secondStage(), Charts: charts(d.numbers.over()),
		WatchWords: watchWords(status), Rehearsal: d.rehearse.view(),
	}
	if d.options.Site != nil {
		v.Site, v.Rate = d.options.Site.Host, "1 visit a second"
	}
	v.Hand = d.hand()
	if child != nil {
		v.PID = child.pid()
	}
	v.Delivered, _ = d.fates.of(fateGood)
	v.Broken, v.BrokenWhy = d.fates.of(fateBroken)
	v.Unavailable, v.UnavailableWhy = d.fates.of(fateUnavailable)
	if n, why := d.fates.of(fateCut); n > 0 {
		v.CutWhy = fmt.Sprintf("Transfers that broke off while the body came, so that nobody took half an image for a whole one: %d. Last: %s", n, why)
	}
	for _, p := range d.paths() {
		a, known := d.seen.get(k, p.Path)
		v.Pictures = append(v.Pictures, newTile(k, p, a, known))
	}
	if len(v.Pictures) > 0 {
		v.Example = v.Pictures[0].Path
	}
	for _, r := range rounds {
		v.Rounds = append(v.Rounds, r.words())
	}
	if n := len(rounds); n > 0 {
		v.LastRound = rounds[n-1].detail()
	}
	letters, _ := d.inbox.all()
	for _, m := range letters {
		v.Mails = append(v.Mails, mailView{letter: m, At: m.At.Local().Format(time.TimeOnly), Tone: mailTone(m.Kind)})
	}
	for _, e := range d.journal.all() {
		v.Journal = append(v.Journal, entryView{entry: e, At: e.At.Local().Format(time.TimeOnly)})
	}
	d.mu.Lock()
	v.Language, v.Cold = d.language, d.asked
	d.mu.Unlock()
	return v
}
