package acceptance

import (
	"bytes"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"karui/internal/origintest"
)

// heavy is a picture whose conversion takes a while.
func heavy(t *testing.T, seed uint64) []byte {
	t.Helper()
	return encodeJPEG(t, scene(seed, 1200, 900), 92)
}

func TestKilledWorkersBreakNoAnswerAndComeBack(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	n := 10
	if testing.Short() {
		n = 6
	}
	bodies := map[string][]byte{}
	for i := range n {
		target := fmt.Sprintf("/%d.jpg", i)
		bodies[target] = heavy(t, uint64(i))
		origin.Set(target, origintest.Image("image/jpeg", bodies[target]))
	}
	k := serve(t, origin)
	front := k.cmd.Process.Pid
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killed := 0
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, pid := range k.workers() {
				if pid != front && syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
			}
			pause(120 * time.Millisecond)
		}
	})
	for range 3 {
		for target, body := range bodies {
			a := k.get(target, takesWebP)
			if a.status != 200 || a.err != nil || !bytes.Equal(a.body, body) && len(samePicture(body, a.body)) > 0 {
				t.Errorf("%s while workers are killed: %v", target, a)
			}
		}
	}
	close(stop)
	killer.Wait()
	if killed == 0 {
		t.Error("no worker was found to kill")
	}
	t.Logf("%d workers killed", killed)
	// Pictures never seen before convert again, and those that were hit settle.
	for i := range 3 {
		target := fmt.Sprintf("/new%d.jpg", i)
		body := photo(t, uint64(900+i))
		origin.Set(target, origintest.Image("image/jpeg", body))
		if a := k.settle(target, takesWebP); a.karui() != "hit" {
			t.Errorf("%s afterwards: %v", target, a)
		}
	}
	for target, body := range bodies {
		a := k.settle(target, takesWebP)
		if !bytes.Equal(a.body, body) {
			for _, problem := range samePicture(body, a.body) {
				t.Errorf("%s in the end: %s", target, problem)
			}
		}
	}
	if a := k.get("/.karui/ping.jpg"); a.status != 200 {
		t.Errorf("the ping afterwards: %v", a)
	}
}

func TestWorkerKilledWhileAViewerWaitsGivesTheOriginal(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin, patient, with("convert.workers", 1))
	for i := range 3 {
		target := fmt.Sprintf("/%d.jpg", i)
		body := heavy(t, uint64(500+i))
		origin.Set(target, origintest.Image("image/jpeg", body))
		got := make(chan *reply, 1)
		go func() { got <- k.try(request{target: target, fields: []string{takesWebP}}) }()
		var a *reply
		for a == nil {
			for _, pid := range k.workers() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			select {
			case a = <-got:
			default:
				pause(10 * time.Millisecond)
			}
		}
		if a.status != 200 || a.err != nil || !bytes.Equal(a.body, body) && len(samePicture(body, a.body)) > 0 {
			t.Errorf("%s: %v", target, a)
		}
	}
}

// A worker that hangs is killed at the limit; its viewer has had the original, and one more attempt is made.
func TestHangingWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	k := serve(t, origin, with("convert.timeout", "1s"), with("convert.workers", 1))
	stopped := k.workers()
	for _, pid := range stopped {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if a := k.get("/a.jpg", takesWebP); a.karui() != "miss" || !bytes.Equal(a.body, body) {
		t.Errorf("%v", a)
	}
	if a := k.settle("/a.jpg", takesWebP); a.karui() != "hit" {
		t.Errorf("%v", a)
	}
}

func TestWorkersAreRecycled(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin, with("convert.recycle", 2), with("convert.workers", 1))
	seen := map[int]bool{}
	for i := range 8 {
		target := fmt.Sprintf("/%d.jpg", i)
		origin.Set(target, origintest.Image("image/jpeg", photo(t, uint64(i))))
		if a := k.settle(target, takesWebP); a.karui() != "hit" {
			t.Errorf("%v", a)
		}
		for _, pid := range k.workers() {
			seen[pid] = true
		}
	}
	if len(seen) < 3 {
		t.Errorf("%d worker processes in 8 conversions with convert.recycle 2", len(seen))
	}
}
