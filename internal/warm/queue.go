package warm

import (
	"container/heap"
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

// task is one image in one form.
type task struct {
	target string
	form   Form
	// tries counts the answers that were not settled.
	tries int
	due   time.Time
	// stressed is when it last met a proxy that wanted to be left alone.
	stressed time.Time
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
}

func newQueue(parallel int) *queue { return &queue{most: max(16, 4*parallel)} }

func (q *queue) add(t *task) { q.fresh = append(q.fresh, t) }

func (q *queue) empty() bool { return len(q.fresh)+len(q.waiting)+len(q.away)+q.running == 0 }

// active is how many are under way.
func (q *queue) active() int { return q.running }

// next gives the task whose turn it is, nil for none before due; due is zero where
// only an answer can bring one. Under stress, those that were turned away come last:
// it may be meant for them alone, as when an operator has a share of the images turned
// away, and others are to show that.
func (q *queue) next(now time.Time, stress bool) (t *task, due time.Time) {
	room := len(q.fresh) > 0 && q.running+len(q.waiting) < q.most
	switch {
	case q.waiting.ready(now):
		return q.waiting[0], time.Time{}
	case room && (stress || !q.away.ready(now)):
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
		q.fresh = q.fresh[1:]
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

// turned puts a task back that the proxy turned away.
func (q *queue) turned(t *task, now time.Time) {
	q.running--
	t.due = now.Add(min(firstReturn<<min(t.tries/2, 10), lastReturn))
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
