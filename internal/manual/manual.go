// Package manual checks what README*.md and docs/*.md promise against the repository:
// that relative links lead somewhere, that the command lines in them are ones that the
// programs take, that the examples of configuration can be loaded, and that tables which
// tests compute are up to date.
//
// Guaranteed: every Markdown link of the form [text](target) is looked at, every
// command line in a code span or at the beginning of a line of a code block, and every
// code block marked yaml. Not guaranteed: that a command does what the page says. Of all
// of them the names of commands and flags, the kinds of flags' values and the number of
// arguments are compared; those that can run without a network and an end are run by the
// tests of the programs.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Page is one Markdown file.
type Page struct {
	Path string // below the repository's root
	Text string
}

// Pages reads README*.md and docs/*.md of the repository at root.
func Pages(root string) ([]Page, error) {
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	readmes, err := filepath.Glob(filepath.Join(root, "README*.md"))
	if err != nil {
		return nil, err
	}
	var pages []Page
	for _, name := range append(readmes, names...) {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		path, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		pages = append(pages, Page{path, string(b)})
	}
	return pages, nil
}

var (
	fence    = regexp.MustCompile("(?ms)^ *```[a-z]*\n(.*?)^ *```")
	span     = regexp.MustCompile("`([^`]+)`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// BrokenLinks lists the relative links of a page that lead nowhere, to a file below
// root or to a heading.
func (p Page) BrokenLinks(root string) (links int, broken []string) {
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(p.Text, ""), -1) {
		target := m[1]
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		links++
		path, anchor, _ := strings.Cut(target, "#")
		text := p.Text
		if path != "" {
			name := filepath.Join(root, filepath.Dir(p.Path), path)
			if _, err := os.Stat(name); err != nil {
				broken = append(broken, fmt.Sprintf("%s: %s is not there", p.Path, target))
				continue
			}
			if anchor != "" {
				b, err := os.ReadFile(name)
				if err != nil {
					broken = append(broken, fmt.Sprintf("%s: %s: %v", p.Path, target, err))
					continue
				}
				text = string(b)
			}
		}
		if anchor != "" && !slices.Contains(anchors(text), anchor) {
			broken = append(broken, fmt.Sprintf("%s: %s has no such heading", p.Path, target))
		}
	}
	return links, broken
}

// anchors gives the headings of a page as links name them.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		words := noAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(strings.TrimSpace(words), " ", "-"))
	}
	return all
}

// Commands lists the command lines of a program on a page, less what a shell does
// with them: those to be typed, and those that are mentioned in sentences.
func (p Page) Commands(program string) (typed, mentioned []string) {
	take := func(lines []string, line string) []string {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		for _, end := range []string{" #", " |", " >", " &&", " 2>", ";"} {
			line, _, _ = strings.Cut(line, end)
		}
		if words := strings.Fields(line); len(words) > 1 && words[0] == program {
			lines = append(lines, strings.Join(words, " "))
		}
		return lines
	}
	for _, block := range fence.FindAllStringSubmatch(p.Text, -1) {
		for line := range strings.Lines(block[1]) {
			typed = take(typed, line)
		}
	}
	for _, code := range span.FindAllStringSubmatch(fence.ReplaceAllString(p.Text, ""), -1) {
		mentioned = take(mentioned, strings.Join(strings.Fields(code[1]), " "))
	}
	return typed, mentioned
}

// Parse tells whether a command line is one that root, made by newRoot, takes. Words
// in capitals stand for what the reader puts in their place. One that is only
// mentioned, in the middle of a sentence, need not have all arguments.
func Parse(newRoot func() *cobra.Command, line string, mentioned bool) error {
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(strings.Fields(line)[1:])
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if help, err := cmd.Flags().GetBool("help"); err == nil && help {
		return nil
	}
	args := cmd.Flags().Args()
	if mentioned && len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() && len(args) == 1 && args[0] == strings.ToUpper(args[0]) {
		return nil
	}
	return cmd.ValidateArgs(args)
}

// Wrong lists the command lines of a program on all pages of the repository at root
// that it does not take, and says how many it takes.
func Wrong(root, program string, newRoot func() *cobra.Command) (right int, wrong []string, err error) {
	pages, err := Pages(root)
	if err != nil {
		return 0, nil, err
	}
	for _, p := range pages {
		typed, mentioned := p.Commands(program)
		for i, line := range append(typed, mentioned...) {
			if err := Parse(newRoot, line, i >= len(typed)); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: `%s`: %v", p.Path, line, err))
				continue
			}
			right++
		}
	}
	return right, wrong, nil
}

// Entries lists the headings of the third level below one of the second, as they are
// written.
func (p Page) Entries(section string) []string {
	var entries []string
	inside := false
	for line := range strings.Lines(fence.ReplaceAllString(p.Text, "")) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			inside = strings.TrimSpace(name) == section
		}
		if name, ok := strings.CutPrefix(line, "### "); ok && inside {
			entries = append(entries, strings.TrimSpace(name))
		}
	}
	return entries
}
