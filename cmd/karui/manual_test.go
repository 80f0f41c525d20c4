package main

import (
	"testing"

	"karui/internal/manual"
)

// What the pages tell people to type is what this program takes.
func TestCommandLinesOfThePages(t *testing.T) {
	right, wrong, err := manual.Wrong("../..", "karui", newRoot)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	if right < 5 {
		t.Errorf("only %d command lines found", right)
	}
}
