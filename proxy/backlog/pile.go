package backlog

// pile is a heap of entries that know their places in it.
type pile struct {
	items []*item
	less  func(a, b *item) bool
	place func(*item) *int32
}

func placeHot(it *item) *int32  { return &it.hot }
func placeCold(it *item) *int32 { return &it.cold }

func byHeat() pile {
	return pile{less: func(a, b *item) bool { return hotter(a, b) }, place: placeHot}
}

func byCold() pile {
	return pile{less: func(a, b *item) bool { return hotter(b, a) }, place: placeCold}
}

func byTime() pile {
	return pile{less: func(a, b *item) bool { return a.after < b.after }, place: placeHot}
}

// hotter orders entries; among equals the longer waiting one is the hotter.
func hotter(a, b *item) bool {
	switch {
	case a.heat != b.heat:
		return a.heat > b.heat
	case a.first != b.first:
		return a.first < b.first
	}
	return a.name < b.name
}

// Len implements heap.Interface.
func (p *pile) Len() int { return len(p.items) }

// Less implements heap.Interface.
func (p *pile) Less(i, j int) bool { return p.less(p.items[i], p.items[j]) }

// Swap implements heap.Interface.
func (p *pile) Swap(i, j int) {
	p.items[i], p.items[j] = p.items[j], p.items[i]
	*p.place(p.items[i]), *p.place(p.items[j]) = int32(i), int32(j)
}

// Push implements heap.Interface.
func (p *pile) Push(x any) {
	it := x.(*item) //nolint:errcheck,forcetypeassert // nothing else is pushed
	*p.place(it) = int32(len(p.items))
	p.items = append(p.items, it)
}

// Pop implements heap.Interface.
func (p *pile) Pop() any {
	n := len(p.items) - 1
	it := p.items[n]
	p.items[n] = nil
	p.items = p.items[:n]
	return it
}
