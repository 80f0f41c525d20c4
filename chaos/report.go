package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Report is what a run showed. Times are in seconds since its start.
type Report struct {
	Seed     uint64   `json:"seed"`
	Seconds  float64  `json:"seconds"`
	Pictures int      `json:"pictures"`
	Material []string `json:"material"`

	// Broken is the figure that everything is about.
	Broken   int            `json:"broken_images"`
	Reasons  map[reason]int `json:"broken_by_reason"`
	Evidence []broken       `json:"evidence"`
	Folder   string         `json:"evidence_folder"`

	Requests int             `json:"requests"`
	Kinds    map[string]int  `json:"requests_by_kind"`
	Ways     map[string]int  `json:"answers_by_way"`
	Statuses map[int]int     `json:"answers_by_status"`
	Outcomes map[outcome]int `json:"answers_by_outcome"`
	// Variants are the different ones that were decoded and compared.
	Variants map[string]int `json:"different_variants"`

	// Cut are transfers that broke off where one was under way in what was killed,
	// stopped or cut; Repeated are further tries until they were whole.
	Cut      int `json:"cut_transfers"`
	Repeated int `json:"cut_again"`
	// Excluded are error answers in a time in which the true origin was down.
	Excluded int `json:"excluded"`
	// Unknown are parts of representations that changed before they were seen whole.
	Unknown int `json:"parts_not_compared"`

	// Operated is what was changed and purged.
	Operated operations `json:"operated"`

	Faults  []faultSummary `json:"faults"`
	History []*event       `json:"history"`
	LeftOut []string       `json:"left_out"`
	// Struck counts what the faults hit, where that is not certain before.
	Struck map[string]int `json:"struck"`
	Shares []share        `json:"share_of_variants"`

	// Mails are those of the watchdog by what they say, Updates its calls by status.
	Mails   map[string]int `json:"watchdog_mails"`
	Updates map[int]int    `json:"distribution_updates"`
	// Aborts are connections to viewers that the edge cut, by reason.
	Aborts map[string]int `json:"edge_aborts"`

	// Problems make the run worthless, or are wrong beside the answers.
	Problems []string `json:"problems"`
}

// faultSummary is one kind of fault over the run.
type faultSummary struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	// Median and Longest are seconds from healing to the first variant; of those
	// faults after which one came before the next fault.
	Median  float64 `json:"normal_after_median_s"`
	Longest float64 `json:"normal_after_longest_s"`
	// Late are those after which none came before the next fault.
	Late int `json:"not_before_the_next"`
}

// Good tells whether the run proves something, and nothing was broken.
func (r *Report) Good() bool { return r.Broken == 0 && len(r.Problems) == 0 }

// report sums the run up. Call it while the system still stands.
func (p *proof) report(files []*original) *Report {
	rec, h := p.rec, p.history
	rec.mu.Lock()
	defer rec.mu.Unlock()
	p.check.mu.Lock()
	defer p.check.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &Report{
		Seed: rec.seed, Seconds: time.Since(h.start).Seconds(), Pictures: len(files),
		Broken: rec.count, Reasons: rec.reasons, Evidence: rec.broken, Folder: rec.evidence,
		Kinds: rec.kinds, Ways: rec.ways, Statuses: rec.statuses, Outcomes: rec.outcomes, Variants: p.check.variants,
		Cut: rec.cut, Repeated: rec.repeated, Excluded: rec.excluded, Unknown: rec.unknown,
		History: h.events, LeftOut: p.leftOut, Struck: rec.struck, Shares: rec.shares, Mails: p.system.front.swaps(), Updates: p.system.front.updates(),
		Aborts: p.system.front.aborted(), Operated: p.operator.counted(), Problems: rec.problems,
	}
	for _, f := range files {
		r.Material = append(r.Material, f.id+" "+f.name)
	}
	for _, n := range rec.kinds {
		r.Requests += n
	}
	r.Faults = summarize(h.events)
	if !p.options.StopAtFirst || r.Broken == 0 {
		r.Problems = append(r.Problems, r.emptiness()...)
	}
	return r
}

// leastRequests is how many answers a run has to have seen to prove anything.
const leastRequests = 100

// emptiness names what the run did not test.
func (r *Report) emptiness() []string {
	var found []string
	if len(r.Faults) == 0 {
		found = append(found, "nothing was done to the system")
	}
	if r.Requests < leastRequests {
		found = append(found, fmt.Sprintf("%d requests are too few, at least %d are needed", r.Requests, leastRequests))
	}
	if len(r.Variants) == 0 || r.Outcomes[gotVariant] == 0 {
		found = append(found, "no variant was seen")
	}
	for _, kind := range []string{"get", "head", "conditional", "range", "personal", "missing"} {
		if r.Kinds[kind] == 0 {
			found = append(found, "no request of the kind "+kind)
		}
	}
	if r.Outcomes[gotNothing] == 0 {
		found = append(found, "no 304 was seen")
	}
	if r.Outcomes[gotOriginal] == 0 {
		found = append(found, "no original was seen")
	}
	for what, names := range map[string][]string{
		filesDamaged: {"corrupt-cache", "corrupt-at-rest"}, workersStruck: {"kill-workers", "stop-workers"},
	} {
		// Once, there may have been nothing yet.
		if n := r.times(names...); n > 1 && r.Struck[what] == 0 {
			found = append(found, fmt.Sprintf("%s: none, in %d faults", what, n))
		}
	}
	if away := r.times("api-slow", "api-broken", "api-throttled"); away >= leastAway && r.Mails["DEGRADED"] == 0 {
		found = append(found, fmt.Sprintf("karui was away %d times, and the watchdog never swapped", away))
	}
	found = append(found, r.unpurged()...)
	if r.Excluded > r.mostExcluded() {
		found = append(found, fmt.Sprintf("%d of %d answers are excluded, which is too much for a proof", r.Excluded, r.Requests))
	}
	return found
}

// unpurged names what the run did not test of pictures that change.
func (r *Report) unpurged() []string {
	var found []string
	if r.Operated.Changes == 0 {
		found = append(found, "no picture changed")
	}
	if r.Seconds > 30 && r.Operated.Purges == 0 {
		found = append(found, "no purge was completed")
	}
	if n := r.times("purge-kill"); n > 1 && r.Operated.Killed == 0 {
		found = append(found, fmt.Sprintf("karui was never killed after a purge, in %d faults", n))
	}
	if n := r.times("dial-defer"); n > 1 && r.Operated.Postponed == 0 {
		found = append(found, fmt.Sprintf("nothing was postponed in %d times at defer", n))
	}
	return found
}

// mostExcluded is how many answers may be excluded: a fifth, and half in a run that
// was told to do little else than to take the origin away, since then that alone
// decides for how much of the time it is gone.
func (r *Report) mostExcluded() int {
	all := 0
	for _, f := range r.Faults {
		all += f.Count
	}
	if outages := r.times("outage"); outages*4 > all {
		return r.Requests / 2
	}
	return r.Requests / 5
}

// leastAway is how often karui has to have been away for some seconds before a
// watchdog that swapped nothing is one that does not work.
const leastAway = 4

// times counts the faults of these names.
func (r *Report) times(names ...string) (n int) {
	for _, f := range r.Faults {
		if slices.Contains(names, f.Name) {
			n += f.Count
		}
	}
	return n
}

func summarize(events []*event) []faultSummary {
	took := map[string][]float64{}
	late := map[string]int{}
	for _, e := range events {
		if _, there := took[e.Fault]; !there {
			took[e.Fault] = nil
		}
		if e.Normal < 0 {
			late[e.Fault]++
		} else {
			took[e.Fault] = append(took[e.Fault], e.Normal)
		}
	}
	var out []faultSummary
	for name, list := range took {
		s := faultSummary{Name: name, Count: len(list) + late[name], Late: late[name]}
		if len(list) > 0 {
			slices.Sort(list)
			s.Median, s.Longest = list[len(list)/2], list[len(list)-1]
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b faultSummary) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// write prints the report as tables.
func (r *Report) write(w io.Writer) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
	say("\nseed %d, %.0f s, %d pictures, %d requests\n\n", r.Seed, r.Seconds, r.Pictures, r.Requests)
	tally(w, "asked for", r.Kinds)
	tally(w, "answered by (edge, behind it)", r.Ways)
	tally(w, "what came", r.Outcomes)
	tally(w, "different variants decoded and compared", r.Variants)
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.AppendHeader(table.Row{"fault", "times", "normal after (median)", "longest", "not before the next"})
	for _, f := range r.Faults {
		t.AppendRow(table.Row{f.Name, f.Count, fmt.Sprintf("%.1f s", f.Median), fmt.Sprintf("%.1f s", f.Longest), f.Late})
	}
	t.Render()
	say("\nvariants among answers to clients that take them, by %v:", sliceLength)
	for _, s := range r.Shares {
		if s.Answers > 0 {
			say(" %d%%", 100*s.Variants/s.Answers)
		}
	}
	say("\nwatchdog: mails %s; changes of the distribution by status %v\n", sorted(r.Mails), r.Updates)
	say("struck: %s\n", sorted(r.Struck))
	say("cut transfers: %d, cut again when repeated: %d (all of them under way in what was killed, stopped or cut)\n", r.Cut, r.Repeated)
	say("excluded: %d error answers while the true origin was down for everybody\n", r.Excluded)
	say("pictures changed: %d times; purges completed: %d, of them %d with karui killed at once; tried again: %d; longest: %.1f s; karui itself asked before and right after: %d times\n",
		r.Operated.Changes, r.Operated.Purges, r.Operated.Killed, r.Operated.Repeated, r.Operated.Longest, r.Operated.Looks)
	say("postponed conversions at the end of a time at defer: %d at most\n", r.Operated.Postponed)
	if r.Unknown > 0 {
		say("parts whose whole had changed before it was seen: %d\n", r.Unknown)
	}
	for _, words := range r.LeftOut {
		say("left out: %s\n", words)
	}
	for _, b := range r.Evidence {
		say("\nBROKEN %s: %s %s at %.3f s, viewer %d, seed %d\n  %s\n  status %d, body in %s\n", strings.Join(b.Reasons, ", "), b.Method, b.Target, b.At,
			b.Viewer, b.Seed, strings.Join(b.Words, "\n  "), b.Status, b.Body)
	}
	for _, problem := range r.Problems {
		say("PROBLEM: %s\n", problem)
	}
	say("\nbroken images: %d\n", r.Broken)
}

func tally[K ~string](w io.Writer, title string, counts map[K]int) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.AppendHeader(table.Row{title, "count"})
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.AppendRow(table.Row{name, counts[name]})
	}
	t.Render()
}

func sorted(counts map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(out, ", ")
}
