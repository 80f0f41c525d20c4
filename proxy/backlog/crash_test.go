package backlog

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"karui/cache"
)

// crashEnv names the journal for the process that is to be killed.
const crashEnv = "KARUI_TEST_BACKLOG_CRASH"

// crashKeys is how many entries come and go.
const crashKeys = 300

func crashKey(i int) cache.Key { return key("shop", fmt.Sprintf("/%d.jpg", i)) }

// crashChild changes the list until it is killed, and says before each flush what will
// be on the list, and after it that it is.
func crashChild(file string) {
	limits := small()
	limits.Entries = crashKeys
	b := Open(Options{File: file, Limits: limits, Now: func() time.Time { return epoch }})
	for {
		for range rand.IntN(20) {
			i := rand.IntN(crashKeys)
			if rand.IntN(3) == 0 {
				b.Drop(func(k cache.Key) bool { return k == crashKey(i) }, Cleared)
			} else {
				b.Ask(crashKey(i), Missing)
			}
		}
		fmt.Println("begin", onList(b))
		if err := b.Flush(); err != nil {
			fmt.Println("! flush:", err)
		}
		fmt.Println("end")
	}
}

// onList writes a digit for each key that there may be.
func onList(b *Backlog) string {
	on := []byte(strings.Repeat("0", crashKeys))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	for i := range on {
		if s := b.queue.sites["shop"]; s != nil && s.items[nameOf(crashKey(i))] != nil {
			on[i] = '1'
		}
	}
	return string(on)
}

// Whenever the process is killed, what had been flushed is there after it, and of what
// was being written each entry is as before or as after.
func TestAKilledProcessLosesOnlyWhatWasNotFlushed(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	file := filepath.Join(t.TempDir(), "state", "backlog.journal")
	before := strings.Repeat("0", crashKeys)
	flushes := 0
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashEnv+"="+file)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Killed after so many lines, and whatever the process does until the signal arrives.
		lines, kill := bufio.NewScanner(out), 1+rand.IntN(400)
		after := before
		for n := 0; lines.Scan(); n++ {
			text := lines.Text()
			switch state, found := strings.CutPrefix(text, "begin "); {
			case found && len(state) == crashKeys:
				after = state
			case text == "end":
				before = after
				flushes++
			case strings.HasPrefix(text, "!"):
				t.Fatal(text)
			}
			if n == kill {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait() // it was killed
		limits := small()
		limits.Entries = crashKeys
		b, _ := open(t, file, limits)
		got := onList(b)
		b.Close()
		for i := range got {
			if got[i] != before[i] && got[i] != after[i] {
				t.Fatalf("round %d: entry %d is %c, and was %c and then %c", round, i, got[i], before[i], after[i])
			}
		}
		before = got
	}
	t.Logf("%d flushes, %d kills", flushes, rounds)
}
