package stress_test

import (
	"testing"

	"karui/proxy/stress"
)

func TestDisk(t *testing.T) {
	type step struct {
		volumes []stress.Volume
		want    bool
	}
	used := func(percent ...float64) (volumes []stress.Volume) {
		for _, p := range percent {
			volumes = append(volumes, stress.Volume{Used: p})
		}
		return volumes
	}
	for name, steps := range map[string][]step{
		"no volumes":           {{nil, false}},
		"one fills and clears": {{used(94.9), false}, {used(95), true}, {used(94.1), true}, {used(93.9), false}, {used(94.9), false}},
		"every volume":         {{used(99, 94), false}, {used(99, 96), true}, {used(99, 94.5), true}, {used(93, 99), false}},
		"one of two fails":     {{[]stress.Volume{{Out: true}, {Used: 50}}, false}},
		"both fail":            {{[]stress.Volume{{Out: true}, {Out: true}}, true}, {[]stress.Volume{{Out: true}, {Used: 10}}, false}},
		"one fails, one full":  {{[]stress.Volume{{Used: 10, Out: true}, {Used: 97}}, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var d stress.Disk
			last := false
			for i, s := range steps {
				got, changed := d.Observe(95, s.volumes)
				if got != s.want || changed != (got != last) {
					t.Errorf("step %d: %v, changed %v", i, got, changed)
				}
				last = got
			}
		})
	}
}
