package reference

import (
	"fmt"
	"strings"
)

// Markdown writes the keys as tables, one for each section.
func Markdown(keys []Key) string {
	var b strings.Builder
	open := false
	for _, k := range keys {
		if k.Section {
			name := k.Name
			if k.Form != "" {
				name += "[]"
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s", name, sentence(k.Doc))
			if k.Allowed != "" {
				fmt.Fprintf(&b, " It must be %s.", k.Allowed)
			}
			if k.Variable != "" {
				fmt.Fprintf(&b, " As JSON: `%s`.", k.Variable)
			}
			b.WriteString("\n")
			open = false
			continue
		}
		if !open {
			b.WriteString("\n| key | form | default | |\n|---|---|---|---|\n")
			open = true
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Form, code(k.Default), cell(describe(k)))
	}
	return b.String()
}

// describe is the last column: what it does, what is allowed, where else it is set.
func describe(k Key) string {
	text := sentence(k.Doc)
	if k.Allowed != "" && !strings.Contains(k.Doc, k.Allowed) {
		text += " *It must be " + strings.ReplaceAll(k.Allowed, "*", `\*`) + ".*"
	}
	if k.Variable != "" {
		text += " `" + k.Variable + "`"
	}
	if !k.Reload {
		text += " (restart)"
	}
	return text
}

func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

func code(text string) string { return "`" + text + "`" }

// cell keeps a text within its column.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
