package demo

import (
	"strings"
	"testing"
)

// healthy is a system in which nothing is broken.
func healthy() facts {
	return facts{Proxy: proxyUp, Written: orderKarui, AtEdge: orderKarui, Health: "up", Recent: newTally()}
}

func TestVerdicts(t *testing.T) {
	failovers := newTally()
	failovers.Failovers = 3
	for _, tt := range []struct {
		name                 string
		change               func(*facts)
		verdict              string // a part of the title
		tone                 string
		first, second, proxy string // pills
	}{
		{"healthy", func(*facts) {}, "All is well", toneGood, "Ready", "Ready", "up"},
		{"just stopped", func(f *facts) { f.Proxy = proxyStopped }, "karui is down", toneWarn, "Ready to carry", "Looks", "stopped"},
		{
			"stopped, viewers come",
			func(f *facts) { f.Proxy, f.Recent = proxyEnded, failovers },
			"karui is down", toneWarn, "Carries", "Looks", "ended",
		},
		{
			"noticed", func(f *facts) { f.Proxy, f.Health, f.Recent = proxyStopped, "down", failovers },
			"karui is down", toneWarn, "Carries", "Swaps now", "stopped",
		},
		{
			"swapped", func(f *facts) { f.Proxy, f.Health, f.Written = proxyStopped, "down", orderOrigin },
			"swapped the order", toneWarn, "Ready to carry", "Swapped, on its way", "stopped",
		},
		{
			"in effect", func(f *facts) {
				f.Proxy, f.Health, f.Written, f.AtEdge = proxyStopped, "down", orderOrigin, orderOrigin
			},
			"out of the way", toneWarn, "Not needed now", "In effect", "stopped",
		},
		{
			"well again", func(f *facts) { f.Health, f.Written, f.AtEdge = "down", orderOrigin, orderOrigin },
			"well again", toneWarn, "Not needed now", "In effect", "up",
		},
		{"swapped back", func(f *facts) { f.AtEdge = orderOrigin }, "first again", toneWarn, "Not needed now", "Swapped back, on its way", "up"},
		{"slow", func(f *facts) { f.Slow = true }, "too slow", toneWarn, "Ready to carry", "Looks", "6 s late"},
		{
			"slow and out of the way", func(f *facts) { f.Slow, f.Health, f.Written, f.AtEdge = true, "down", orderOrigin, orderOrigin },
			"out of the way", toneWarn, "Not needed now", "In effect", "6 s late",
		},
		{"disk full", func(f *facts) { f.DiskFull = true }, "disk", toneWarn, "Ready", "Ready", "disk full"},
		{"shedding", func(f *facts) { f.Sheds, f.DiskFull = 2, true }, "turns some requests away", toneWarn, "Ready", "Ready", "turns some away"},
		{"origin broken", func(f *facts) { f.OriginBroken = true }, "The origin is broken", toneWarn, "Ready", "Ready", "up"},
		{
			"both broken", func(f *facts) { f.OriginBroken, f.Proxy, f.Health = true, proxyStopped, "down" },
			"both", toneBad, "Nowhere to turn to", "Does not swap", "stopped",
		},
		{
			"origin broken while first", func(f *facts) { f.OriginBroken, f.Written, f.AtEdge = true, orderOrigin, orderOrigin },
			"it comes first", toneBad, "Not needed now", "In effect", "up",
		},
		{"starting", func(f *facts) { f.Proxy = proxyStarting }, "karui starts", toneWarn, "Ready to carry", "Looks", "starting"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := healthy()
			tt.change(&f)
			v := f.verdict()
			if !strings.Contains(v.Title, tt.verdict) || v.Tone != tt.tone {
				t.Errorf("verdict %+v", v)
			}
			if first, second, proxy := f.firstStage().Title, f.secondStage().Title, f.proxyWords().Title; first != tt.first || second != tt.second || proxy != tt.proxy {
				t.Errorf("stages %q and %q, karui %q", first, second, proxy)
			}
		})
	}
}

// TestEveryStateHasWords: nothing is called well that is not, and nobody is told
// nothing.
func TestEveryStateHasWords(t *testing.T) {
	both := []bool{false, true}
	orders := []order{orderKarui, orderOrigin, orderUnknown}
	for _, proxy := range []proxyState{proxyUp, proxyStarting, proxyStopped, proxyEnded} {
		for _, slow := range both {
			for _, disk := range both {
				for _, broken := range both {
					for _, written := range orders {
						for _, edge := range orders {
							f := facts{Proxy: proxy, Slow: slow, DiskFull: disk, OriginBroken: broken, Written: written, AtEdge: edge, Recent: newTally()}
							well := proxy == proxyUp && !slow && !disk && !broken && edge != orderOrigin
							v := f.verdict()
							if (v.Tone == toneGood) != well {
								t.Errorf("%+v: %+v", f, v)
							}
							for _, w := range []words{v, f.firstStage(), f.secondStage()} {
								if w.Tone == "" || w.Title == "" || w.Text == "" {
									t.Errorf("%+v: %+v", f, w)
								}
							}
						}
					}
				}
			}
		}
	}
}

func TestMembersStandInTheOrderOfTheEdge(t *testing.T) {
	f := healthy()
	if m := f.members(); m[0].Name != "karui" || m[1].Name != "origin" || m[0].Rank != "first" {
		t.Errorf("%+v", m)
	}
	f.AtEdge = orderOrigin
	f.Recent.Failovers, f.Recent.Ways[wayKarui] = 3, 1
	m := f.members()
	if m[0].Name != "origin" || m[0].Rank != "first" || m[1].LaneTone != toneWarn || m[1].Count != 1 || m[0].LaneTone != tonePlain {
		t.Errorf("%+v", m)
	}
}

func TestChanges(t *testing.T) {
	f := healthy()
	if c := changes(f, f); len(c) != 0 {
		t.Errorf("nothing changed, and yet: %v", c)
	}
	g := f
	g.Health, g.Written, g.AtEdge, g.Recent = "down", orderOrigin, orderOrigin, newTally()
	var all []string
	for _, w := range changes(f, g) {
		all = append(all, w.Text)
	}
	for _, w := range changes(g, f) {
		all = append(all, w.Text)
	}
	for _, want := range []string{"found karui down", "origin was put first", "origin is asked first", "found karui up", "karui was put first", "karui is asked first"} {
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("%q is missing in %q", want, all)
		}
	}
	g = f
	g.Recent = newTally()
	g.Recent.Failovers = 1
	if c := changes(f, g); len(c) != 1 || !strings.Contains(c[0].Text, "Stage 1") {
		t.Errorf("first failover: %v", c)
	}
	g.AtEdge, f.AtEdge = orderOrigin, orderOrigin
	if c := changes(f, g); len(c) != 1 || !strings.Contains(c[0].Text, "turns to karui") {
		t.Errorf("first failover from the origin: %v", c)
	}
}

// Nobody is told that images came from an origin that answers 500.
func TestFailoversInVain(t *testing.T) {
	f := healthy()
	f.OriginBroken, f.DiskFull = true, true
	f.Recent.Failovers, f.Recent.Vain, f.Recent.Kept = 34, 34, 34
	w := f.firstStage()
	if w.Text != "In the last ten seconds the edge asked the origin 34 times, in vain; it showed what it kept." || w.Tone != toneWarn {
		t.Errorf("%+v", w)
	}
	if v := f.verdict(); v.Tone == toneGood || !strings.Contains(v.Text, "in vain") {
		t.Errorf("%+v", v)
	}
	quiet := healthy()
	quiet.OriginBroken, quiet.DiskFull = true, true
	if c := changes(quiet, f); len(c) != 1 || !strings.Contains(c[0].Text, "The edge asks the origin second, in vain") {
		t.Errorf("%v", c)
	}
	f.Recent.Kept = 0
	if w := f.firstStage(); w.Tone != toneBad || strings.Contains(w.Text, "showed") {
		t.Errorf("%+v", w)
	}
	f.Recent.Kept = 1
	if w := f.firstStage(); w.Tone != toneBad || !strings.Contains(w.Text, "what it kept once, and for the rest it had nothing") {
		t.Errorf("%+v", w)
	}
	// The origin is healed: some came, and the vain ones are not forgotten yet.
	healed := healthy()
	healed.Recent.Failovers, healed.Recent.Vain, healed.Recent.Kept = 3, 1, 1
	if w := healed.firstStage(); w.Title != "Carries in part" || !strings.Contains(w.Text, "asked the origin once, in vain") || !strings.Contains(w.Text, "2 images came from the origin") {
		t.Errorf("%+v", w)
	}
	if c := changes(f, healed); len(c) != 1 || !strings.Contains(c[0].Text, "Stage 1") {
		t.Errorf("%v", c)
	}
	first := healed
	first.AtEdge, first.Written = orderOrigin, orderOrigin
	quiet = first
	quiet.Recent = newTally()
	if c := changes(quiet, first); len(c) != 2 || !strings.Contains(c[0].Text, "asks karui second, in vain") {
		t.Errorf("%v", c)
	}
}
