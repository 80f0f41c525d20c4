package image

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// instruction is one line of a Dockerfile, continuations joined.
type instruction struct {
	name  string   // upper case
	flags []string // --from=build
	rest  string   // what follows the flags
	line  int
}

// exec gives the words of the exec form, false for the shell form.
func (i instruction) exec() ([]string, bool) {
	var words []string
	err := json.Unmarshal([]byte(i.rest), &words)
	return words, err == nil && len(words) > 0
}

func (i instruction) flag(name string) (string, bool) {
	for _, f := range i.flags {
		if value, ok := strings.CutPrefix(f, "--"+name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// stage is what stands between two FROMs.
type stage struct {
	name, base string
	body       []instruction
}

func (s stage) all(name string) (found []instruction) {
	for _, i := range s.body {
		if i.name == name {
			found = append(found, i)
		}
	}
	return found
}

// last gives the last instruction of that name, which is the one that counts.
func (s stage) last(name string) (instruction, bool) {
	all := s.all(name)
	if len(all) == 0 {
		return instruction{}, false
	}
	return all[len(all)-1], true
}

// parse reads the Dockerfile syntax that a file of ours uses: comments,
// continuations, flags. It knows no heredocs and no escape directive, and says so.
func parse(text string) ([]stage, error) {
	var stages []stage
	var joined string
	begun := 0
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "#") {
			if strings.HasPrefix(strings.ReplaceAll(trimmed, " ", ""), "#escape=") {
				return nil, fmt.Errorf("line %d: an escape directive", n+1)
			}
			continue
		}
		if trimmed == "" {
			continue
		}
		if joined == "" {
			begun = n + 1
		}
		more, continued := strings.CutSuffix(trimmed, `\`)
		joined += " " + more
		if continued {
			continue
		}
		i, err := parseLine(strings.TrimSpace(joined), begun)
		if err != nil {
			return nil, err
		}
		joined = ""
		if i.name == "FROM" {
			words := strings.Fields(i.rest)
			s := stage{base: words[0]}
			if len(words) == 3 && strings.EqualFold(words[1], "AS") {
				s.name = words[2]
			}
			stages = append(stages, s)
			continue
		}
		if len(stages) == 0 {
			return nil, fmt.Errorf("line %d: %s before FROM", begun, i.name)
		}
		last := &stages[len(stages)-1]
		last.body = append(last.body, i)
	}
	if joined != "" {
		return nil, fmt.Errorf("line %d: not ended", begun)
	}
	return stages, nil
}

func parseLine(text string, line int) (instruction, error) {
	name, rest, _ := strings.Cut(text, " ")
	i := instruction{name: strings.ToUpper(name), line: line, rest: strings.TrimSpace(rest)}
	for strings.HasPrefix(i.rest, "--") {
		flag, rest, _ := strings.Cut(i.rest, " ")
		i.flags, i.rest = append(i.flags, flag), strings.TrimSpace(rest)
	}
	if i.rest == "" || strings.Contains(i.rest, "<<") {
		return i, fmt.Errorf("line %d: %s %q is not understood", line, name, i.rest)
	}
	return i, nil
}

func TestParse(t *testing.T) {
	stages, err := parse("# a comment\nFROM a:1 AS x\nRUN one \\\n # inside\n && two\nfrom x\nHEALTHCHECK --interval=1s \\\n CMD [\"a\", \"b c\"]\n")
	if err != nil || len(stages) != 2 || stages[0].name != "x" || stages[1].base != "x" || stages[1].name != "" {
		t.Fatalf("%+v, %v", stages, err)
	}
	if run := stages[0].body[0]; run.name != "RUN" || strings.Join(strings.Fields(run.rest), " ") != "one && two" || run.line != 3 {
		t.Errorf("%+v", run)
	}
	check := stages[1].body[0]
	if v, ok := check.flag("interval"); !ok || v != "1s" || check.rest != `CMD ["a", "b c"]` {
		t.Errorf("%+v", check)
	}
	for _, bad := range []string{"RUN x\n", "FROM a\nRUN <<EOF\n", "FROM a\nRUN x \\\n", "# escape=`\nFROM a\n", "FROM a\nUSER\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is understood", bad)
		}
	}
}
