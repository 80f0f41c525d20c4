package proxy

import (
	"bytes"
	"net/http"
	"reflect"
	"testing"
	"time"

	"karui/convert"
	"karui/proxy/rules"
)

func sampleRecord() *record {
	return &record{
		kind: variant, status: 200, source: 1764000000123456789, digest: rules.DigestOf([]byte("x")), saved: -12,
		code: convert.NotSmaller, transformable: true, level: 2, sawOrigin: true,
		freshness: rules.Freshness{
			Base: time.Unix(0, 1764000000123456789), Explicit: true, Lifetime: time.Hour, NoCache: true, MustRevalidate: true,
		},
		etag: `"k-1"`, lastModified: "Tue, 03 Nov 2026 11:59:00 GMT",
		header: http.Header{"Link": {"<a>", "<b>"}, "Content-Type": {"image/webp"}, "X-Empty": {""}},
	}
}

func TestRecordReadsBack(t *testing.T) {
	for _, want := range []*record{
		sampleRecord(),
		{kind: marker, freshness: rules.Freshness{Base: time.Unix(0, 1)}, header: http.Header{}},
		{kind: foreign, freshness: rules.Freshness{Base: time.Unix(0, -1)}, header: http.Header{}},
	} {
		got, err := decodeRecord(want.encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	// Equal records must be equal bytes, or the cache would see changes where none are.
	if !bytes.Equal(sampleRecord().encode(), sampleRecord().encode()) {
		t.Error("one record has two forms")
	}
}

// What was stored before variants had a level was made at the best one.
func TestRecordBeforeLevels(t *testing.T) {
	r := sampleRecord()
	r.level, r.header = 0, http.Header{}
	b := r.encode()
	b = b[:len(b)-1] // the level is the last field before the headers
	b[0] = 2
	got, err := decodeRecord(b)
	if err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, r)
	}
}

func TestRecordCutOff(t *testing.T) {
	whole := sampleRecord().encode()
	for n := range len(whole) {
		r, err := decodeRecord(whole[:n])
		// A cut between two header fields cannot be told; the cache's checksum covers that.
		if err == nil && reflect.DeepEqual(r, sampleRecord()) {
			t.Errorf("%d of %d bytes read as the whole record", n, len(whole))
		}
	}
	if _, err := decodeRecord(append([]byte{recordVersion + 1}, whole[1:]...)); err == nil {
		t.Error("another version reads as this one")
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(sampleRecord().encode())
	f.Add([]byte{})
	f.Add([]byte{recordVersion, byte(gone), 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := decodeRecord(r.encode())
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v reads back as %+v, %v", r, again, err)
		}
	})
}

func BenchmarkDecodeRecord(b *testing.B) {
	encoded := sampleRecord().encode()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeRecord(encoded); err != nil {
			b.Fatal(err)
		}
	}
}
