package proxy

import (
	"testing"
	"time"
)

func TestPardonsOverARestart(t *testing.T) {
	r := newRig(t, standing())
	now := r.clock.now()
	r.proxy.RestorePardons([]Pardoned{
		{Digest: [16]byte{2}, At: now.Add(-23 * time.Hour)},
		{Digest: [16]byte{1}, At: now},
		{Digest: [16]byte{3}, At: now.Add(-25 * time.Hour)},
		{Digest: [16]byte{4}, At: now.Add(time.Hour)},
	})
	if all := r.proxy.Pardons(); len(all) != 2 || all[0].Digest[0] != 1 || all[1].Digest[0] != 2 || !all[0].At.Equal(now) {
		t.Errorf("%v", all)
	}
	r.clock.pass(2 * time.Hour)
	if all := r.proxy.Pardons(); len(all) != 1 {
		t.Errorf("two hours later: %v", all)
	}
	for i := range maxPardons + 10 {
		r.proxy.Pardon([32]byte{byte(i), byte(i >> 8), byte(i >> 16), 1})
	}
	if n := len(r.proxy.Pardons()); n != maxPardons {
		t.Errorf("%d are remembered, want %d", n, maxPardons)
	}
}
