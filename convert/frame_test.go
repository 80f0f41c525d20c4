package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"karui/convert/header"
)

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	info := header.Info{Format: header.JPEG, Width: 3, Copyright: "\xff\xfe not UTF-8", Artist: "A"}
	sent := newJob(7, info, Plan{Target: header.WebP, KeepCopyright: true}, time.Second)
	if err := writeFrame(&b, frameJob, sent, []byte("body")); err != nil {
		t.Fatal(err)
	}
	if err := writeFrame(&b, frameStarted, started{ID: 7}, nil); err != nil {
		t.Fatal(err)
	}
	f, err := readFrame(&b, 4, newBytes)
	if err != nil {
		t.Fatal(err)
	}
	var got job
	if err := f.decode(frameJob, &got); err != nil {
		t.Fatal(err)
	}
	if string(f.body) != "body" || got.ID != 7 || string(got.Copyright) != info.Copyright || string(got.Artist) != "A" || got.Info.Width != 3 {
		t.Errorf("got %+v with %q", got, f.body)
	}
	if got.Info.Copyright != "" {
		t.Error("the copyright went along twice")
	}
	f, err = readFrame(&b, 0, newBytes)
	if err != nil || f.kind != frameStarted || f.body != nil {
		t.Errorf("got %+v, %v", f, err)
	}
	if _, err := readFrame(&b, 0, newBytes); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestFrameGarbage(t *testing.T) {
	for name, c := range map[string]struct {
		bytes string
		want  error
	}{
		"another kind":   {"x\x00\x00\x00\x00\x00\x00\x00\x00", errGarbage},
		"text":           {"HTTP/1.1 200 OK\r\n\r\n", errGarbage},
		"long head":      {"r\x00\x02\x00\x00\x00\x00\x00\x00", errGarbage},
		"long body":      {"r\x00\x00\x00\x00\x00\x00\x00\x0b", errGarbage},
		"huge body":      {"r\x00\x00\x00\x00\xff\xff\xff\xff", errGarbage},
		"half a lead":    {"r\x00\x00", io.ErrUnexpectedEOF},
		"half a head":    {"r\x00\x00\x00\x04\x00\x00\x00\x00{}", io.ErrUnexpectedEOF},
		"head, no body":  {"r\x00\x00\x00\x02\x00\x00\x00\x0a{}", io.ErrUnexpectedEOF},
		"nothing at all": {"", io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readFrame(strings.NewReader(c.bytes), 10, newBytes); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	for _, head := range []string{"", "[]", `{"id":-1}`, `{"id":"x"}`, "null x"} {
		f := frame{kind: frameStarted, head: []byte(head)}
		if err := f.decode(frameStarted, &started{}); !errors.Is(err, errGarbage) {
			t.Errorf("head %q: %v", head, err)
		}
	}
	if err := (frame{kind: frameReady}).decode(frameResult, &result{}); !errors.Is(err, errGarbage) {
		t.Errorf("another kind: %v", err)
	}
}

func FuzzReadFrame(f *testing.F) {
	var b bytes.Buffer
	_ = writeFrame(&b, frameResult, result{ID: 1, Code: Converted}, []byte("variant"))
	f.Add(b.Bytes())
	f.Add([]byte("r\x00\x00\x00\x02\x00\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := readFrame(bytes.NewReader(in), 1<<10, newBytes)
		if err != nil {
			return
		}
		if len(got.head) > maxHead || len(got.body) > 1<<10 {
			t.Fatalf("%d and %d bytes", len(got.head), len(got.body))
		}
		var r result
		if got.decode(frameResult, &r) == nil {
			_ = implausible(r, got.body, 1)
		}
	})
}

func TestImplausible(t *testing.T) {
	good := result{ID: 3, Code: Converted, Bytes: 4}
	if why := implausible(good, []byte("body"), 3); why != "" {
		t.Errorf("a good one: %s", why)
	}
	for name, c := range map[string]struct {
		change func(*result)
		body   string
	}{
		"another job":     {func(r *result) { r.ID = 4 }, "body"},
		"no body":         {func(*result) {}, ""},
		"a body too many": {func(r *result) { r.Code = Broken }, "body"},
		"unknown code":    {func(r *result) { r.Code = "marvellous" }, ""},
		"pool's code":     {func(r *result) { r.Code = QueueFull }, ""},
		"negative CPU":    {func(r *result) { r.CPU = -1 }, "body"},
		"negative bytes":  {func(r *result) { r.Bytes = -1 }, "body"},
	} {
		r := good
		c.change(&r)
		if implausible(r, []byte(c.body), 3) == "" {
			t.Errorf("%s: %+v passes", name, r)
		}
	}
}

// serve ends the process when its pool is gone, in the middle of a job too, and when it is sent what is no job.
func TestServeEnds(t *testing.T) {
	for name, c := range map[string]struct {
		send func(w io.Writer)
		want int
	}{
		"gone at once": {func(io.Writer) {}, exitOrphan},
		"gone in the middle of a job": {func(w io.Writer) {
			_ = writeFrame(w, frameJob, newJob(1, header.Info{}, Plan{}, time.Second), []byte("source"))
		}, exitOrphan},
		"garbage": {func(w io.Writer) { _, _ = w.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }, exitGarbage},
		"two at once": {func(w io.Writer) {
			for id := range uint64(2) {
				_ = writeFrame(w, frameJob, newJob(id, header.Info{}, Plan{}, time.Second), []byte("source"))
			}
		}, exitGarbage},
		"a result": {func(w io.Writer) { _ = writeFrame(w, frameResult, result{}, nil) }, exitGarbage},
	} {
		t.Run(name, func(t *testing.T) {
			in, out := io.Pipe()
			exits := make(chan int, 1)
			release := make(chan struct{})
			ended := make(chan struct{})
			w := &worker{
				conn: struct {
					io.Reader
					io.Writer
				}{in, io.Discard},
				exit: func(code int) { exits <- code }, limitCPU: func(time.Duration) {}, maxBody: 100,
			}
			go func() {
				defer close(ended)
				w.serve(ready{}, func(j job, _ []byte) (result, []byte) { <-release; return result{ID: j.ID}, nil })
			}()
			go func() {
				c.send(out)
				_ = out.Close()
			}()
			if code := <-exits; code != c.want {
				t.Errorf("exit code %d, want %d", code, c.want)
			}
			close(release)
			<-ended
		})
	}
}

func TestHeadFits(t *testing.T) {
	text := strings.Repeat("\xff", 4096)
	j := newJob(1, header.Info{Copyright: text, Artist: text, OddColor: text[:100]}, Plan{KeepCopyright: true}, time.Second)
	b, err := json.Marshal(j)
	if err != nil || len(b) > maxHead/2 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
