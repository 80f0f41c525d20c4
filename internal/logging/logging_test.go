package logging_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"karui/internal/logging"
)

func TestRecordsAreLinesOfJSON(t *testing.T) {
	var out bytes.Buffer
	log := logging.New(&out, new(slog.LevelVar))
	log.Info("two\nlines", "took", 1500*time.Millisecond, "at", time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.FixedZone("", 9*3600)))
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Fatalf("%d lines: %s", n, &out)
	}
	var record map[string]any
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	if record["msg"] != "two\nlines" || record["took"] != "1.5s" || record["at"] != "2026-01-01T18:04:05.006Z" || record["level"] != "INFO" {
		t.Errorf("%v", record)
	}
	if at, err := time.Parse(time.RFC3339, record["time"].(string)); err != nil || time.Since(at) > time.Minute {
		t.Errorf("time: %v, %v", record["time"], err)
	}
}

func TestLevelCanChange(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	log := logging.New(&out, level)
	for word, want := range map[string]string{"debug": "dwe", "info": "we", "warn": "we", "error": "e"} {
		level.Set(logging.Config{Level: word}.SlogLevel())
		out.Reset()
		log.Debug("d")
		log.Warn("w")
		log.Error("e")
		got := ""
		for line := range strings.Lines(out.String()) {
			var record struct{ Msg string }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			got += record.Msg
		}
		if got != want {
			t.Errorf("%s lets %q through, want %q", word, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, word := range []string{"debug", "info", "warn", "error"} {
		if err := (logging.Config{Level: word}).Validate("log"); err != nil {
			t.Error(err)
		}
	}
	for _, word := range []string{"", "INFO", "trace"} {
		if err := (logging.Config{Level: word}).Validate("log"); err == nil || !strings.HasPrefix(err.Error(), "log.level is ") {
			t.Errorf("%q: %v", word, err)
		}
	}
}
