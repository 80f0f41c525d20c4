package watchdog

import (
	"html/template"
	"io"
	"time"
)

var page = template.Must(template.New("status").Funcs(template.FuncMap{
	"ago":  func(at, t time.Time) string { return at.Sub(t).Round(time.Second).String() },
	"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") },
}).Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>karui-watchdog</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 60rem; padding: 0 1rem; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .25rem; }
.bad { color: #a40000; } .odd { color: #8a5a00; } .good { color: #1b6e20; }
table { border-collapse: collapse; } td { padding: .1rem .75rem .1rem 0; vertical-align: top; }
</style>
<h1>karui-watchdog</h1>
<p>{{time .At}}. Mails waiting: {{if .MailError}}<span class="bad">{{.MailError}}</span>{{else}}{{.Mails}}{{if .Mails}}, the oldest for {{ago .At .OldestMail}}{{end}}{{end}}.</p>
{{$at := .At}}{{range .Sites}}
<h2>{{.Site}}</h2>
<p class="{{if or (eq .Health "down") .Error}}bad{{else if and (eq .Health "up") (eq .Order "proxy") (not .Late)}}good{{else}}odd{{end}}">{{.Words}}</p>
<table>
{{if not .Since.IsZero}}<tr><td>since<td>{{time .Since}}{{end}}
{{if not .Degraded.IsZero}}<tr><td>degraded since<td>{{time .Degraded}}
<tr><td>good rounds<td>{{.GoodRounds}} of {{.GoodRoundsNeeded}} needed for a restore ({{.Restore}}){{end}}
<tr><td>swaps in 24 h<td>{{.Swaps}} of {{.MaxSwapsPerDay}}
<tr><td>distribution<td>{{.Distribution.ID}}, group {{.Distribution.Group}}: {{.Distribution.Proxy}}, {{.Distribution.Direct}}
{{with .Last}}<tr><td>last round<td>{{ago $at .At}} ago: {{.Verdict}}{{if .OrderError}}<br><span class="bad">{{.OrderError}}</span>{{end}}
{{range .Probes}}<tr><td><td>{{.Text}}{{end}}
{{with .Origin}}<tr><td>origin<td>{{.Text}}{{end}}{{end}}
</table>{{end}}
</html>
`))

// writePage writes the status for people.
func writePage(w io.Writer, s Status) error { return page.Execute(w, s) }
