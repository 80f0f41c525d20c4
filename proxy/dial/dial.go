package dial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Settings are what the configuration says.
type Settings struct {
	// Auto lets the load move the level. Otherwise it is Base, but for pins and
	// windows.
	Auto bool
	Base int
	// Wait is how long a conversion must have waited for the level to move up.
	Wait    time.Duration
	Levels  []Level // at least one
	Windows []Window
}

// cause says why the level moved. The words are labels in metrics.
type cause string

const (
	byLoad     cause = "load"     // workers are busy all the time, and conversions wait
	byCalm     cause = "calm"     // the workers have had time for a minute
	byPin      cause = "pin"      // an operator's word
	byExpiry   cause = "expiry"   // the pin has run out
	bySchedule cause = "schedule" // a window has begun or ended
	byConfig   cause = "config"   // the configuration has changed
	byRestart  cause = "restart"  // a pin from before the restart
)

// Move is one change of the level.
type Move struct {
	At time.Time `json:"at"`
	// Site is empty for the level of all sites.
	Site     string `json:"site,omitempty"`
	From     int    `json:"from"`
	To       int    `json:"to"`
	FromName string `json:"from_name"`
	ToName   string `json:"to_name"`
	// Cause is load, calm, pin, expiry, schedule, config or restart.
	Cause string `json:"cause"`
	// Detail is for people.
	Detail string `json:"detail,omitempty"`
}

// Pin is a level set by an operator.
type Pin struct {
	Level int `json:"level"`
	// Until is zero for a pin that holds until it is taken away.
	Until time.Time `json:"until,omitzero"`
}

func (p Pin) over(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// kept is how many moves are remembered.
const kept = 100

// Dial is the dial of one process. Pins go before everything else: one for a site
// before one for all. Else the level is the automatic's, or that of the schedule
// where it is higher.
type Dial struct {
	moved func(Move)
	now   func() time.Time

	mu       sync.Mutex
	settings Settings
	auto     automatic
	pins     map[string]Pin // by site, "" for all
	history  []Move         // oldest first
	idle     bool

	force atomic.Pointer[inForce]
}

// inForce is what conversions go by; it never changes.
type inForce struct {
	levels []Level
	level  int
	sites  map[string]int
}

// New gives a dial at its first level. Moved is told of each move, in order, and
// must not call the dial; nil for nobody. A nil now means time.Now.
func New(s Settings, now func() time.Time, moved func(Move)) *Dial {
	if now == nil {
		now = time.Now
	}
	if moved == nil {
		moved = func(Move) {}
	}
	d := &Dial{moved: moved, now: now, settings: s, pins: map[string]Pin{}}
	d.force.Store(&inForce{levels: s.Levels})
	d.settle(byConfig, "")
	return d
}

// Of gives the level of a site, and its number.
func (d *Dial) Of(site string) (int, *Level) {
	f := d.force.Load()
	n := f.level
	if len(f.sites) > 0 {
		if own, found := f.sites[site]; found {
			n = own
		}
	}
	return n, &f.levels[n]
}

// Idle tells whether the workers have time for work that can wait.
func (d *Dial) Idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.idle
}

// Configure puts other settings in force. Pins above the new top are at the top.
func (d *Dial) Configure(s Settings) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settings = s
	d.auto.level = min(d.auto.level, len(s.Levels)-1)
	if !s.Auto {
		d.auto.level = 0
	}
	d.settle(byConfig, "the configuration has changed")
}

// Observe takes in the load of the workers for quick and for slow formats, and
// moves where it is time. It is to be called about once a second.
func (d *Dial) Observe(fast, slow Load) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	why, detail := cause(""), ""
	_, pinned := d.pins[""]
	from, top := d.force.Load().level, len(d.settings.Levels)-1
	wait := d.settings.Wait
	if pinned || !d.settings.Auto {
		top = 0 // only look
		d.auto.level = 0
	}
	if by, moved := d.auto.step(now, [2]Load{fast, slow}, wait, from, top); moved {
		why, detail = by, d.describe(by)
	}
	d.idle = d.auto.idle()
	d.settle(why, detail)
}

// describe says for people why the automatic moved.
func (d *Dial) describe(by cause) string {
	if by == byCalm {
		return fmt.Sprintf("under %.0f %% of the workers' time has been used for %s", 100*calm, calmFor)
	}
	return fmt.Sprintf("all of the workers' time was used for %s, and a conversion waited over %s", over, d.settings.Wait)
}

// Pin sets the level of a site, or of all with site "", which takes away the pins
// of single sites. A zero until holds until the pin is taken away.
func (d *Dial) Pin(site string, level int, until time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if top := len(d.settings.Levels) - 1; level < 0 || level > top {
		return fmt.Errorf("there is no level %d: the dial has 0 to %d", level, top)
	}
	if site == "" {
		clear(d.pins)
	}
	d.pins[site] = Pin{Level: level, Until: until}
	d.auto.level = 0
	d.settle(byPin, "an operator has set it"+forHow(until))
	return nil
}

func forHow(until time.Time) string {
	if until.IsZero() {
		return ""
	}
	return ", until " + until.UTC().Format(time.RFC3339)
}

// Unpin lets the automatic and the schedule decide again, for a site, or for all
// with site "".
func (d *Dial) Unpin(site string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if site == "" {
		clear(d.pins)
	}
	delete(d.pins, site)
	d.settle(byPin, "an operator has taken the pin away")
}

// settle works out what is in force, and notes what has changed. The lock is held.
func (d *Dial) settle(why cause, detail string) {
	now := d.now()
	old := d.force.Load()
	top := len(d.settings.Levels) - 1
	next := &inForce{levels: d.settings.Levels}
	expired := false
	for site, pin := range d.pins {
		if pin.over(now) {
			delete(d.pins, site)
			expired = true
		}
	}
	window, until := open(d.settings.Windows, now)
	pin, pinned := d.pins[""]
	switch {
	case pinned:
		next.level = pin.Level
	case d.settings.Auto:
		next.level = d.auto.level
	default:
		next.level = d.settings.Base
	}
	if !pinned && window != nil {
		next.level = max(next.level, window.Level)
	}
	next.level = min(max(next.level, 0), top)
	for site, pin := range d.pins {
		if site != "" {
			if next.sites == nil {
				next.sites = map[string]int{}
			}
			next.sites[site] = min(max(pin.Level, 0), top)
		}
	}
	if expired && why == "" {
		why, detail = byExpiry, "the time of the operator's setting is over"
	}
	if why == "" {
		why, detail = bySchedule, "no window of the schedule is open"
		if window != nil {
			detail = fmt.Sprintf("window %q, until %s", window.Name, until.UTC().Format(time.RFC3339))
		}
	}
	d.force.Store(next)
	d.note(now, "", old.level, next.level, old.levels, why, detail)
	for _, site := range slices.Sorted(maps.Keys(both(old.sites, next.sites))) {
		d.note(now, site, of(old, site), of(next, site), old.levels, why, detail)
	}
}

func both(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]int{}
	}
	maps.Copy(all, b)
	return all
}

func of(f *inForce, site string) int {
	if n, found := f.sites[site]; found {
		return n
	}
	return f.level
}

func (d *Dial) note(now time.Time, site string, from, to int, levels []Level, why cause, detail string) {
	if from == to {
		return
	}
	m := Move{
		At: now, Site: site, From: from, To: to, FromName: levels[from].Name, ToName: d.settings.Levels[to].Name,
		Cause: string(why), Detail: detail,
	}
	if len(d.history) >= kept {
		d.history = append(d.history[:0], d.history[1:]...)
	}
	d.history = append(d.history, m)
	d.moved(m)
}

// Status is how the dial stands.
type Status struct {
	Level int    `json:"level"`
	Name  string `json:"name"`
	// Mode is pinned, schedule, auto or fixed: what the level is by.
	Mode string `json:"mode"`
	// Until is when the pin or the window ends, zero for never.
	Until time.Time `json:"until,omitzero"`
	// Window names the window of the schedule that is open.
	Window string `json:"window,omitempty"`
	// Busy is the share of worker time used in the last 10 s, the busier class's.
	Busy   float64  `json:"busy"`
	Levels []string `json:"levels"`
	// Sites are those with a level of their own.
	Sites map[string]Pin `json:"sites,omitempty"`
	// History has the latest moves, newest first.
	History []Move `json:"history"`
}

// Status looks at the dial.
func (d *Dial) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.force.Load()
	s := Status{Level: f.level, Name: f.levels[f.level].Name, Mode: "fixed", Sites: map[string]Pin{}}
	if d.settings.Auto {
		s.Mode = "auto"
	}
	window, until := open(d.settings.Windows, d.now())
	if window != nil {
		s.Window = window.Name
		if window.Level >= f.level {
			s.Mode, s.Until = "schedule", until
		}
	}
	if pin, pinned := d.pins[""]; pinned {
		s.Mode, s.Until = "pinned", pin.Until
	}
	for i := range d.auto.classes {
		share, _ := d.auto.classes[i].share()
		s.Busy = max(s.Busy, min(share, 1))
	}
	for i := range f.levels {
		s.Levels = append(s.Levels, cmp.Or(f.levels[i].Name, fmt.Sprint(i)))
	}
	for site, pin := range d.pins {
		if site != "" {
			s.Sites[site] = pin
		}
	}
	s.History = slices.Clone(d.history)
	slices.Reverse(s.History)
	return s
}

// Pins gives what operators have set, in a form to keep: by site, "" for all.
func (d *Dial) Pins() map[string]Pin {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.pins)
}

// Restore sets everything as Pins gave it.
func (d *Dial) Restore(pins map[string]Pin) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pins = map[string]Pin{}
	maps.Copy(d.pins, pins)
	d.settle(byRestart, "an operator had set it before the restart")
}
