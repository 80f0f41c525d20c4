// Package demo runs the whole system on one machine: a sample origin (or a relay to
// a real site), the CloudFront double with its edge, karui and the watchdog as real
// child processes, a mail server, visitors, and a page on which all of it can be
// watched and broken.
//
// Guaranteed: it listens on this machine's loopback only, but for the page, whose
// address is the caller's choice; sample images need no network; whatever is
// written lies in one temporary folder. When Run returns, and also when the process
// is killed, no child, no mount and no folder stays behind. What viewers get is
// really asked for through the edge, and every byte of it is looked at.
//
// Not guaranteed: times. Intervals and lifetimes are minutes and hours in earnest
// and seconds here, see settings.go; and it is no place for secrets, since the page
// asks for no password.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"karui/internal/cloudfront/edge"
	"karui/internal/sample"
)

// Commands are command lines of the executable, by which children are started.
type Commands struct {
	Serve    []string // + "--config" FILE: the proxy
	Watchdog []string // + "--config" FILE: the watchdog until SIGTERM, logging JSON lines
	Rehearse []string // + "--config" FILE: its checklist, one JSON line a point
	Disk     []string // + DIR ARGS...: calls Disk
	Janitor  []string // + DIR: calls Janitor with its stdin
}

// Options are what Run needs.
type Options struct {
	// Listen is the address of the page. Empty: 127.0.0.1, port 8080 or, if that is
	// taken, any.
	Listen string
	// Site is a real site whose images are shown; nil for the sample images.
	Site *url.URL
	// Formats are what karui offers, best first.
	Formats []string

	Executable string
	Commands   Commands

	// Progress gets a line for each part that starts.
	Progress io.Writer
	// Ready is told the address of the page, once everything runs.
	Ready func(url string)

	// draw gives the sample images; nil draws them anew, which takes seconds in tests.
	draw func() *sample.Origin
}

// demo is one run.
type demo struct {
	options  Options
	began    time.Time
	starter  *starter
	dir      string
	cache    string
	diskWhy  string // why there is no small disk; empty if there is
	journal  *journal
	numbers  *numbers
	fates    *fates
	judge    *judge
	seen     *lastSeen
	cold     cold
	origin   *gate
	sample   *sample.Origin // nil for a real site
	line     *line
	proxy    *proxy
	edge     *edgeSide
	inbox    *inbox
	guard    *guard
	patrol   *patrol
	rehearse rehearsal
	viewer   *viewer
	work     sync.WaitGroup // what buttons began
	ctx      context.Context

	looking sync.Mutex
	before  *facts // of the last look

	mu       sync.Mutex
	pictures []picture
	diskFull bool
	language string
	asked    *words // what came of the last new image
	watching watching
}

// Run runs the demonstration until ctx ends, and takes everything down again. An
// error means that a part could not be started.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{options: o, began: time.Now(), starter: newStarter(), language: "en", seen: &lastSeen{}, fates: &fates{}}
	d.journal = &journal{now: time.Now}
	d.numbers = newNumbers(time.Now)
	ctx, cancel := context.WithCancel(ctx)
	d.ctx = ctx
	var undo []func()
	defer func() {
		cancel()
		for _, f := range slices.Backward(undo) {
			f()
		}
		if errors.Is(err, context.Canceled) {
			err = nil // it was asked to end while it started
		}
	}()
	undo = append(undo, d.starter.close)

	page, err := d.listen()
	if err != nil {
		return err
	}
	undo = append(undo, func() { page.Close() })
	for _, step := range []struct {
		name string
		open func(context.Context) (func(), error)
	}{
		{"the folder for temporary files", d.openFolder},
		{"the site's own server", d.openOrigin}, // or the relay to a real one
		{"karui", d.openProxy},
		{"CloudFront and its edge", d.openEdge},
		{"the mail server", d.openInbox},
		{"the watchdog", d.openWatchdog},
		{"the visitors", d.openTraffic},
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		done, err := step.open(ctx)
		if err != nil {
			var silent *siteError
			if errors.As(err, &silent) {
				return err // it is somebody else's, and nothing of ours that does not start
			}
			return fmt.Errorf("%s cannot be started: %w", step.name, err)
		}
		undo = append(undo, done)
		d.progress("%s: ready after %s", step.name, time.Since(began).Round(time.Millisecond))
	}
	handler, err := d.handler()
	if err != nil {
		return err
	}
	server := serve(page, handler)
	undo = append(undo, server.close)
	undo = append(undo, d.work.Wait, cancel)
	d.journal.note(tonePlain, "Everything is started.")
	d.progress("Open this page. Ctrl-C ends everything, and nothing stays behind.")
	if o.Ready != nil {
		o.Ready("http://" + reachable(page.Addr()) + "/")
	}
	d.follow(ctx)
	return nil
}

func (d *demo) progress(format string, args ...any) {
	if d.options.Progress != nil {
		_, _ = fmt.Fprintf(d.options.Progress, format+"\n", args...)
	}
}

// listen opens the page's address first: whether it can be had is the caller's
// most likely mistake.
func (d *demo) listen() (net.Listener, error) {
	if d.options.Listen != "" {
		l, err := net.Listen("tcp", d.options.Listen)
		if err != nil {
			return nil, fmt.Errorf("%w (choose another address with --listen)", err)
		}
		return l, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:8080")
	if err == nil {
		return l, nil
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// reachable gives an address that a browser on this machine can use.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

func (d *demo) openFolder(context.Context) (func(), error) {
	dir, done, err := makeFolder(d.starter, d.options.Executable, d.options.Commands.Janitor)
	d.dir = dir
	return done, err
}

func (d *demo) openOrigin(ctx context.Context) (func(), error) {
	d.origin, d.judge = &gate{}, &judge{}
	transport := siteTransport()
	var drawing sync.WaitGroup
	if d.options.Site == nil {
		draw := d.options.draw
		if draw == nil {
			draw = sample.New
		}
		o := draw()
		d.origin.next, d.sample = o, o
		drawing.Go(func() { o.Files() }) // takes a second, in which the other parts start
	} else {
		found, err := discover(ctx, d.options.Site, transport)
		if err != nil {
			return nil, err
		}
		d.pictures = found
		d.origin.next = siteProxy(d.options.Site, transport)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := serve(l, d.origin)
	d.origin.url = s.URL
	return func() {
		s.close()
		drawing.Wait()
		transport.CloseIdleConnections()
	}, nil
}

func (d *demo) openProxy(ctx context.Context) (func(), error) {
	d.cache = filepath.Join(d.dir, "cache")
	if err := makeDir(d.cache); err != nil {
		return nil, err
	}
	secret := rand.Text()
	file, err := write(d.dir, "karui.yaml", proxySettings(d.origin.url, d.originHost(), d.cache, secret, d.options.Formats))
	if err != nil {
		return nil, err
	}
	how := spawn{
		name: "karui", path: d.options.Executable, env: cleanEnv(), dir: d.dir,
		args: append(slices.Clone(d.options.Commands.Serve), "--config", file),
	}
	if err := tryDisk(d.starter, d.options.Executable, d.options.Commands.Disk, d.cache); err != nil {
		d.diskWhy = err.Error()
	} else {
		how.args = slices.Concat(d.options.Commands.Disk, []string{d.cache}, how.args)
		how.attr = diskAttr()
	}
	d.line = &line{}
	d.proxy = &proxy{starter: d.starter, how: how, line: d.line, journal: d.journal}
	d.edge = &edgeSide{secret: secret}
	if err := d.proxy.start(ctx); err != nil {
		return nil, err
	}
	return d.proxy.stop, nil
}

// originHost is the Host by which karui asks the origin.
func (d *demo) originHost() string {
	if d.options.Site != nil {
		return d.options.Site.Hostname()
	}
	return edge.SampleHost
}

func (d *demo) openEdge(context.Context) (func(), error) {
	if err := d.edge.open(d.line.address, strings.TrimPrefix(d.origin.url, "http://"), d.numbers); err != nil {
		return nil, err
	}
	d.viewer = newViewer(d.edge.url, edge.SampleHost, d.judge)
	return func() {
		d.viewer.close()
		d.edge.close()
	}, nil
}

func (d *demo) openInbox(context.Context) (func(), error) {
	b, err := openInbox(time.Now, func(m letter) {
		d.look(d.ctx) // what the mail tells of comes before it
		d.journal.note(mailTone(m.Kind), "A mail arrived: "+m.Subject)
	})
	if err != nil {
		return nil, err
	}
	d.inbox = b
	return b.close, nil
}

func (d *demo) openWatchdog(ctx context.Context) (func(), error) {
	d.watching = watching{
		dir:  filepath.Join(d.dir, "watchdog"),
		ping: "http://" + d.line.address + "/ping.jpg", origin: d.origin.url + "/",
		control: d.edge.sample.ControlURL + "/", mail: d.inbox.Address, language: d.language,
		role: d.edge.sample.WatchdogRole, external: edge.SampleExternalID, viewer: d.edge.url + d.example(),
	}
	file, err := d.writeWatchdog()
	if err != nil {
		return nil, err
	}
	d.guard = &guard{starter: d.starter, journal: d.journal, how: spawn{
		name: "the watchdog", path: d.options.Executable, env: cleanEnv(d.edge.env()...), dir: d.dir,
		args: append(slices.Clone(d.options.Commands.Watchdog), "--config", file),
	}}
	d.patrol = newPatrol()
	if err := d.guard.start(ctx); err != nil {
		return nil, err
	}
	ending, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { d.guard.run(ending) })
	return func() {
		end()
		running.Wait()
		d.patrol.close()
	}, nil
}

// writeWatchdog writes watchdog.yaml as it is to be now.
func (d *demo) writeWatchdog() (string, error) {
	text, err := d.watching.yaml()
	if err != nil {
		return "", err
	}
	return write(d.dir, "watchdog.yaml", text)
}

func (d *demo) openTraffic(ctx context.Context) (func(), error) {
	if d.sample != nil {
		d.judge.originals = make(map[string][]byte)
		for _, f := range d.sample.Files() {
			d.pictures = append(d.pictures, picture{Path: f.Path, Title: f.Title})
			d.judge.originals[f.Path] = f.Body
		}
	}
	t := &traffic{viewer: d.viewer, pictures: d.paths, every: visitEvery, cold: &d.cold, came: d.came}
	if d.options.Site != nil {
		t.every, t.cold = visitEverySite, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { t.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}, nil
}

// came notes what a visitor got.
func (d *demo) came(k kind, target string, a answer) {
	d.fates.add(target, a)
	if slices.ContainsFunc(d.paths(), func(p picture) bool { return p.Path == target }) {
		d.seen.set(k, target, a)
	}
}

// paths lists the images.
func (d *demo) paths() []picture {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.pictures)
}

// example is the path of an image.
func (d *demo) example() string {
	if p := d.paths(); len(p) > 0 {
		return p[0].Path
	}
	return sample.PhotoPath
}
