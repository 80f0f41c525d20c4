package demo

import "sync"

// seenMax bounds what is remembered; made-up addresses are many.
const seenMax = 100

// lastSeen is what each kind of browser got last of each image.
type lastSeen struct {
	mu      sync.Mutex
	answers map[string]answer
}

func (l *lastSeen) set(k kind, path string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers == nil || len(l.answers) >= seenMax {
		l.answers = make(map[string]answer)
	}
	l.answers[k.Name+" "+path] = a
}

func (l *lastSeen) get(k kind, path string) (answer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.answers[k.Name+" "+path]
	return a, ok
}
