package mail

import (
	"strings"

	"golang.org/x/text/width"
)

const (
	// columns is how wide lines are, but for a word that is longer.
	columns = 72
	// orphan is how much may stand beyond, when otherwise it would be all that the
	// next line holds.
	orphan = 4
)

// Characters that no line begins or ends with (the common ones of JIS X 4051).
const (
	notFirst = "、。，．・：；！？」』）〕】》ー～ぁぃぅぇぉっゃゅょァィゥェォッャュョ々"
	notLast  = "「『（〔【《"
)

// cells is how many columns a character takes. Those whose width depends on the
// font (East Asian ambiguous) count as wide.
func cells(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth, width.EastAsianAmbiguous:
		return 2
	}
	return 1
}

func textCells(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

// wrap breaks lines that are too long, at spaces and between wide characters, and
// repeats their indentation. Lines that begin with four spaces stay as they are:
// commands, to be copied.
func wrap(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if strings.HasPrefix(line, "    ") || textCells(line) <= columns {
			b.WriteString(line + "\n")
			continue
		}
		content := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(content)]
		at, fresh := len(indent), true
		b.WriteString(indent)
		rest := textCells(content)
		for _, p := range pieces(content) {
			n := textCells(p.text)
			gap := 0
			if p.spaced && !fresh {
				gap = 1
			}
			if p.spaced && !fresh {
				rest--
			}
			if !fresh && at+gap+n > columns && at+gap+rest > columns+orphan {
				b.WriteString("\n" + indent)
				at, gap = len(indent), 0
			}
			b.WriteString(strings.Repeat(" ", gap) + p.text)
			at, fresh, rest = at+gap+n, false, rest-n
		}
		b.WriteString("\n")
	}
	return b.String()
}

// piece is what is not broken; spaced if a space is before it.
type piece struct {
	text   string
	spaced bool
}

func pieces(s string) []piece {
	var out []piece
	last := ' '
	for _, r := range s {
		if r == ' ' {
			last = r
			continue
		}
		wide := cells(r) == 2
		joined := len(out) > 0 && last != ' ' &&
			(strings.ContainsRune(notFirst, r) || strings.ContainsRune(notLast, last) || !wide && cells(last) == 1)
		if joined {
			out[len(out)-1].text += string(r)
		} else {
			out = append(out, piece{text: string(r), spaced: last == ' '})
		}
		last = r
	}
	return out
}
