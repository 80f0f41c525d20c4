package demo

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// view is everything that the page shows.
type view struct {
	facts
	Kind     kind
	Kinds    []kind
	Site     string // of a real site, else empty
	EdgeURL  string
	Example  string // path of an image
	Interval string
	EdgeTTL  string

	Verdict                           words
	Delivered, Broken, Unavailable    int
	SavedBytes                        string
	Failovers                         int
	BrokenWhy, CutWhy, UnavailableWhy string
	Rate                              string
	Members                           []member
	Kept                              int // answers that the edge gave by itself
	OrderWords                        string
	Buttons                           []button
	Refusal                           string
	Pictures                          []tile
	Cold                              *words
	First, Second                     words
	Charts                            []chart
	WatchWords, LastRound             string
	Rounds                            []words
	Rehearsal                         *rehearsalView
	Language                          string
	Mails                             []mailView
	Journal                           []entryView
	PID                               int
	Hand                              handView
}

// member is one of the origin group, in the order in which they are asked.
type member struct {
	Name, Title, Text, Rank string
	Count                   int
	LaneTone                string
	State                   words
}

// button is something to do.
type button struct {
	Name, Label, Text string
	Why               string // it cannot be done now; empty if it can
	Class             string
}

// tile is an image as it was last seen.
type tile struct {
	picture
	URL                        string
	Fate                       fate
	Format, Size, Saved, Words string
	Way                        way
}

type rehearsalView struct {
	Title  string
	Points []pointView
}

type pointView struct {
	point
	Tone string
	More int // points of the same name that say the same of something else
}

type mailView struct {
	letter
	At   string
	Tone string
}

type entryView struct {
	entry
	At string
}

// imageURL is where the page gets an image from, as a kind of browser.
func imageURL(k kind, path string) string {
	return "/image?as=" + k.Name + "&path=" + url.QueryEscape(path)
}

func newTile(k kind, p picture, a answer, known bool) tile {
	t := tile{picture: p, URL: imageURL(k, p.Path), Fate: fateGood, Way: wayEdge}
	if !known {
		return t
	}
	t.Fate, t.Way = a.Fate, a.Way
	if a.Fate != fateGood {
		t.Words = a.Why
		return t
	}
	t.Format, t.Size, t.Saved, t.Words = formatWords(a.Format), bytesWords(a.Bytes), savedWords(a.Bytes, a.Saved), wayWords(a.Way)
	return t
}

// members lists the two as the edge asks them.
func (f facts) members() []member {
	karui := member{
		Name: "karui", Title: "karui", Count: f.Recent.Ways[wayKarui], State: f.proxyWords(), LaneTone: tonePlain,
		Text: "fetches originals from the origin, answers WebP",
	}
	origin := member{
		Name: "origin", Title: "Origin", Count: f.Recent.Ways[wayOrigin], State: f.originWords(), LaneTone: tonePlain,
		Text: "the site’s own server, has the originals",
	}
	first, second := &karui, &origin
	if f.AtEdge == orderOrigin {
		first, second = &origin, &karui
	}
	first.Rank, second.Rank = "first", "if that fails"
	// In the seconds after a swap, some of its answers are from before.
	second.Count = min(second.Count, f.Recent.Failovers)
	if second.Count > 0 {
		second.LaneTone = toneWarn
	}
	return []member{*first, *second}
}

func (f facts) orderWords() string {
	name := func(o order) string {
		switch o {
		case orderKarui:
			return "karui first, then the origin"
		case orderOrigin:
			return "the origin first, then karui"
		}
		return "not known"
	}
	if f.Written != f.AtEdge {
		return fmt.Sprintf("Order at the edge: %s. On its way: %s.", name(f.AtEdge), name(f.Written))
	}
	return fmt.Sprintf("Order: %s.", name(f.AtEdge))
}

// watchWords says how the watchdog sees karui.
func watchWords(s watchStatus) string {
	switch {
	case s.Words != "":
		return fmt.Sprintf("It sees: %s.", s.Words)
	case s.Health == "":
		return "Its first round is under way."
	}
	return fmt.Sprintf("It sees: %s.", s.Health)
}

// words of a round, for its place in the strip.
func (r round) words() words {
	w := words{Title: r.At.Local().Format(time.TimeOnly)}
	switch r.Verdict {
	case "up":
		w.Tone = toneGood
	case "down":
		w.Tone = toneBad
	default:
		w.Tone = toneWarn
	}
	w.Text = fmt.Sprintf("%s: %s", w.Title, r.Verdict)
	return w
}

// detail is a round in one line.
func (r round) detail() string {
	var said []string
	for _, p := range r.Probes {
		said = append(said, p.Text)
	}
	text := fmt.Sprintf("Last round at %s: %s. Pings: %s.", r.At.Local().Format(time.TimeOnly), r.Verdict, strings.Join(said, "; "))
	if r.OrderError != "" {
		text += " The order could not be read: " + r.OrderError
	}
	return text
}

// mailTone is the colour of a kind of mail.
func mailTone(kind string) string {
	switch kind {
	case "restore":
		return toneGood
	case "rehearsal", "reminder":
		return tonePlain
	case "degrade", "flapping", "drift", "manual_awaited":
		return toneWarn
	}
	return toneBad
}
