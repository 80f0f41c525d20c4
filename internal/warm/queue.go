package warm

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// maxTries bounds how often one image is asked for in one form before it counts as
// failed: with the pauses between, over two minutes.
const maxTries = 12

// The pauses between two requests for one image that is being made, and for one that
// the proxy turned away.
const (
	firstLook   = time.Second
	lastLook    = 15 * time.Second
	firstReturn = 15 * time.Second
	lastReturn  = 4 * time.Minute
)

// The pauses between two requests for an image that the origin does not give: six of
// them are two minutes.
const (
	firstServe = 5 * time.Second
	lastServe  = 30 * time.Second
)

// task is one image in one form.
type task struct {
	target string
	form   Form
	// tries counts the answers that were not settled.
	tries int
	due   time.Time
	// stressed is when it last met a proxy that wanted to be left alone.
	stressed time.Time
	// unserved is what was said when the origin last did not give it, empty if it was
	// turned away otherwise or not at all.
	unserved string
	// own is whether it was not given while others were: that is its own fault.
	own bool
}

// queue says which image comes next: first those that are being made, when their time
// has come, then those that were turned away, then new ones, as long as not too many
// are being made.
type queue struct {
	fresh   []*task
	waiting waiting
	away    waiting // were turned away
	running int
	// most bounds those that were begun and are neither settled nor turned away. It keeps
	// a run from piling up conversions: it goes as fast as they are made.
	most int
	// scattered has new ones come in any order: neighbours in a sitemap may all be
	// missing for one reason, and others are to show how the origin is.
	scattered bool
	mixed     bool // the front was chosen
	random    *rand.Rand
}

func newQueue(parallel int) *queue {
	return &queue{most: max(16, 4*parallel), random: rand.New(rand.NewPCG(1, 2))}
}

func (q *queue) add(t *task) { q.fresh = append(q.fresh, t) }

func (q *queue) empty() bool { return len(q.fresh)+len(q.waiting)+len(q.away)+q.running == 0 }

// active is how many are under way.
func (q *queue) active() int { return q.running }

// next gives the task whose turn it is, nil for none before due; due is zero where
// only an answer can bring one. Under stress, those that were turned away come last:
// it may be meant for them alone, as when an operator has a share of the images turned
// away, and others are to show that. So they do once the origin did not give an image.
func (q *queue) next(now time.Time, stress bool) (t *task, due time.Time) {
	room := len(q.fresh) > 0 && q.running+len(q.waiting) < q.most
	switch {
	case q.waiting.ready(now):
		return q.waiting[0], time.Time{}
	case room && (stress || q.scattered || !q.away.ready(now)):
		q.scatter()
		return q.fresh[0], time.Time{}
	case q.away.ready(now):
		return q.away[0], time.Time{}
	}
	for _, w := range []waiting{q.waiting, q.away} {
		if len(w) > 0 && (due.IsZero() || w[0].due.Before(due)) {
			due = w[0].due
		}
	}
	return nil, due
}

// scatter brings any of the new ones to the front, once for each that is taken.
func (q *queue) scatter() {
	if q.scattered && !q.mixed {
		i := q.random.IntN(len(q.fresh))
		q.fresh[0], q.fresh[i] = q.fresh[i], q.fresh[0]
		q.mixed = true
	}
}

// alone tells whether nothing is left that could show how the origin is, but for what
// it did not give.
func (q *queue) alone() bool { return len(q.fresh)+len(q.waiting) == 0 }

// start takes what next gave.
func (q *queue) start(t *task) {
	q.running++
	switch {
	case len(q.waiting) > 0 && q.waiting[0] == t:
		heap.Pop(&q.waiting)
	case len(q.away) > 0 && q.away[0] == t:
		heap.Pop(&q.away)
	default:
		q.fresh[0] = nil
		q.fresh, q.mixed = q.fresh[1:], false
	}
}

// done lets one go that was under way.
func (q *queue) done() { q.running-- }

// retry puts a task that is under way back for another look.
func (q *queue) retry(t *task, now time.Time) {
	q.running--
	t.due = now.Add(min(firstLook<<min(max(t.tries-1, 0), 10), lastLook))
	heap.Push(&q.waiting, t)
}

// turned puts a task back that the proxy turned away, or that the origin did not give.
func (q *queue) turned(t *task, now time.Time) {
	q.running--
	first, last := firstReturn, lastReturn
	if t.unserved != "" {
		first, last = firstServe, lastServe
	}
	t.due = now.Add(min(first<<min(t.tries/2, 10), last))
	heap.Push(&q.away, t)
}

// waiting is a heap by due.
type waiting []*task

func (w waiting) ready(now time.Time) bool { return len(w) > 0 && !w[0].due.After(now) }

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].due.Before(w[j].due) }
func (w waiting) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }

// Push implements heap.Interface.
func (w *waiting) Push(v any) { *w = append(*w, v.(*task)) }

// Pop implements heap.Interface.
func (w *waiting) Pop() any {
	last := len(*w) - 1
	t := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return t
}
