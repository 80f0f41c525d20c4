package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karui/internal/config"
	"karui/internal/server"
)

// one is a site that is good as it is.
const one = `sites: [{id: a, origins: [{name: x, urls: [https://origin.example.com]}]}]`

// sites is one site with more keys.
func sites(more string) string {
	return fmt.Sprintf(`sites: [{id: a, origins: [{name: x, urls: [https://origin.example.com]}], %s}]`, more)
}

// place is one place with more keys.
func place(more string) string {
	return fmt.Sprintf(`sites: [{id: a, origins: [{name: x, urls: [https://origin.example.com], %s}]}]`, more)
}

// bucket is one site, whose place has such urls and more keys.
func bucket(urls, more string) string {
	return fmt.Sprintf(`sites: [{id: a, origins: [{name: x, urls: [%s], %s}]}]`, urls, more)
}

// with is one site and another line.
func with(line string) string { return line + "\n" + one }

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	const loopback = "admin: {listen: '0.0.0.0:9090', tokens: [%s]}"
	token := func(more string) string {
		return with(fmt.Sprintf(loopback, "{name: ops, token: 0123456789, rights: [read]"+more+"}"))
	}
	for name, test := range map[string]struct{ text, key, part string }{
		"no site":           {"drain: 1s", "sites", "at least one site (or start with --origin"},
		"listen":            {with("listen: 8080"), "listen", `such as ":8080"`},
		"listen port":       {with("listen: ':80800'"), "listen", `such as ":8080"`},
		"drain":             {with("drain: 1h"), "drain", "from 0s to 15m"},
		"drain backwards":   {with("drain: -1s"), "drain", "from 0s to 15m"},
		"level":             {with("log: {level: verbose}"), "log.level", "debug, info, warn or error"},
		"header bytes":      {with("limits: {header_bytes: 1KiB}"), "limits.header_bytes", "from 4KiB to 1MiB"},
		"header timeout":    {with("limits: {header_timeout: 0s}"), "limits.header_timeout", "from 100ms"},
		"idle timeout":      {with("limits: {idle_timeout: 24h}"), "limits.idle_timeout", "to 1h"},
		"connections":       {with("limits: {connections: 0}"), "limits.connections", "from 1 to"},
		"inflight":          {with("limits: {inflight_bytes: 0}"), "limits.inflight_bytes", "from 1MiB"},
		"admin open":        {with("admin: {listen: ':9090'}"), "admin.listen", "on the loopback"},
		"admin host name":   {with("admin: {listen: 'example.com:9090'}"), "admin.listen", "on the loopback"},
		"admin address":     {with("admin: {listen: nowhere}"), "admin.listen", "an address"},
		"admin is listen":   {with("listen: '127.0.0.1:80'\nadmin: {listen: '127.0.0.1:80'}"), "admin.listen", "another address"},
		"token short":       {token(", token: short"), "admin.tokens[0].token", "given twice"},
		"token too short":   {with(fmt.Sprintf(loopback, "{name: ops, token: short, rights: [read]}")), "admin.tokens[0].token", "(secret), but it must be a secret of at least 8"},
		"token missing":     {with(fmt.Sprintf(loopback, "{name: ops, rights: [read]}")), "admin.tokens[0].token", "missing"},
		"token name":        {with(fmt.Sprintf(loopback, "{token: 0123456789, rights: [read]}")), "admin.tokens[0].name", "missing"},
		"token rights":      {with(fmt.Sprintf(loopback, "{name: ops, token: 0123456789}")), "admin.tokens[0].rights", "read, purge or dial"},
		"token right":       {with(fmt.Sprintf(loopback, "{name: ops, token: 0123456789, rights: [write]}")), "admin.tokens[0].rights[0]", "read, purge or dial"},
		"token site":        {token(", sites: [b]"), "admin.tokens[0].sites[0]", "the id of one of the sites"},
		"token twice":       {with(fmt.Sprintf(loopback, "{name: a, token: 0123456789, rights: [read]}, {name: b, token: 0123456789, rights: [read]}")), "admin.tokens[1].token", "(secret), but it must be unique"},
		"routing header":    {with("edge: {routing_header: 'X Y'}"), "edge.routing_header", "the name of a header"},
		"routing host":      {with("edge: {routing_header: Host}"), "edge.routing_header", "another header"},
		"secret empty":      {with("edge: {secrets: ['']}"), "edge.secrets[0]", "1 to 1024 characters"},
		"secret twice":      {with("edge: {secrets: [abc, abc]}"), "edge.secrets[1]", "(secret), but it must be unique: edge.secrets[0]"},
		"secret space":      {with("edge: {secrets: [' abc']}"), "edge.secrets[0]", "no space at either end"},
		"ping":              {with("ping: {stress_after: 2h}"), "ping.stress_after", "to 1h"},
		"wait":              {with("first_response: {wait: 1m}"), "first_response.wait", "to 30s"},
		"wait and deadline": {with("first_response: {wait: 8s}"), "first_response.wait", "less than origin.deadline (8s)"},
		"short":             {with("ttl: {short: 0s}"), "ttl.short", "from 1s"},
		"short and long":    {with("ttl: {short: 30m, long: 20m}"), "ttl.short", "at most ttl.long (20m)"},
		"long and max":      {with("ttl: {long: 48h, max: 24h}"), "ttl.long", "at most ttl.max (24h)"},
		"stale":             {with("ttl: {stale: 100000h}"), "ttl.stale", "from 0s"},
		"degraded":          {with("ttl: {degraded: 0s}"), "ttl.degraded", "from 1s"},
		"workers":           {with("convert: {workers: -1}"), "convert.workers", "from 0 to 1024"},
		"timeout":           {with("convert: {timeout: 1h}"), "convert.timeout", "to 10m"},
		"queue wait":        {with("convert: {queue_wait: 1h}"), "convert.queue_wait", "to 10m"},
		"max pixels":        {with("convert: {max_pixels: 2GP}"), "convert.max_pixels", "to 1GP"},
		"max bytes":         {with("convert: {max_bytes: 2GiB}"), "convert.max_bytes", "to 1GiB"},
		"worker memory":     {with("convert: {worker_memory: 1MiB}"), "convert.worker_memory", "from 128MiB"},
		"recycle":           {with("convert: {recycle: 0}"), "convert.recycle", "from 1"},
		"memory":            {with("cache: {memory: 2TiB}"), "cache.memory", "from 0B to 1TiB"},
		"write queue":       {with("cache: {write_queue: 1B}"), "cache.write_queue", "from 1MiB"},
		"no volume":         {with("cache: {volumes: []}"), "cache.volumes", "a list of volumes"},
		"a volume twice":    {with("cache: {volumes: [{path: /a}, {path: /b}, {path: /a/}]}"), "cache.volumes[2].path", "outside of cache.volumes[0].path"},
		"nested volumes":    {with("cache: {volumes: [{path: /a/b}, {path: /a}]}"), "cache.volumes[1].path", "outside of cache.volumes[0].path"},
		"volume path":       {with("cache: {volumes: [{path: cache}]}"), "cache.volumes[0].path", "absolute path"},
		"volume root":       {with("cache: {volumes: [{path: //}]}"), "cache.volumes[0].path", "a folder of its own"},
		"volume size":       {with("cache: {volumes: [{max_size: 1KiB}]}"), "cache.volumes[0].max_size", "from 1MiB"},
		"volume weight":     {with("cache: {volumes: [{weight: 0}]}"), "cache.volumes[0].weight", "from 0.001 to 1000"},
		"class weight":      {with("cache: {volumes: [{class_weight: 1001}]}"), "cache.volumes[0].class_weight", "to 1000"},
		"shared":            {with("cache: {shared: {url: 's3://b/p'}}"), "cache.shared.url", "a shared store is not in this version"},
		"shared region":     {with("cache: {shared: {region: x}}"), "cache.shared.region", "left out"},
		"redis":             {with("cluster: {redis: 'redis://h:6379'}"), "cluster.redis", "a cluster is not in this version"},
		"disk low":          {with("disk: {low: 90%}"), "disk.low", "less than disk.high (90%)"},
		"disk high":         {with("disk: {high: 96%}"), "disk.high", "less than disk.stress (95%)"},
		"disk zero":         {with("disk: {low: 0%}"), "disk.low", "from 1% to 100%"},
		"latency":           {with("stress: {latency: 0s}"), "stress.latency", "from 10ms"},
		"window":            {with("stress: {window: 1h}"), "stress.window", "to 10m"},
		"samples":           {with("stress: {min_samples: 0}"), "stress.min_samples", "from 1"},
		"connect":           {with("origin: {connect: 10s}"), "origin.connect", "at most origin.deadline (8s)"},
		"deadline":          {with("origin: {deadline: 90s}"), "origin.deadline", "at most origin.total (1m)"},
		"idle":              {with("origin: {idle: 90s}"), "origin.idle", "at most origin.total"},
		"total":             {with("origin: {total: 2h}"), "origin.total", "to 1h"},
		"ca relative":       {with("origin: {ca_file: ca.pem}"), "origin.ca_file", "it is relative"},
		"ca missing":        {with("origin: {ca_file: /nonexistent/ca.pem}"), "origin.ca_file", "no such file"},
		"ca empty":          {with("origin: {ca_file: /dev/null}"), "origin.ca_file", "it holds none"},
		"retry mode":        {with("retry: {mode: on}"), "retry.mode", "auto or off"},
		"retry level":       {with("retry: {level: 4}"), "retry.level", "from 0 to 3"},
		"dial mode":         {with("dial: {mode: 4}"), "dial.mode", "auto, off, 0, 1, 2 or 3"},
		"dial wait":         {with("dial: {wait: 1h}"), "dial.wait", "to 1m"},
		"dial level name":   {with("dial: {levels: [{quality: 50}]}"), "dial.levels[0].name", "missing"},
		"dial quality":      {with("dial: {levels: [{name: a, quality: 101}]}"), "dial.levels[0].quality", "from 0 to 100"},
		"dial effort":       {with("dial: {levels: [{name: a, effort: 10}]}"), "dial.levels[0].effort", "from 0 to 6"},
		"dial format":       {with("dial: {levels: [{name: a, formats: [jxl]}]}"), "dial.levels[0].formats[0]", "must be webp, avif or heic"},
		"dial nothing":      {with("dial: {levels: [{name: a, formats: [none, webp]}]}"), "dial.levels[0].formats", "either [none]"},
		"schedule zone":     {with("dial: {schedule: [{from: 18:00, to: 20:00, zone: Tokyo}]}"), "dial.schedule[0].zone", "the name of a time zone"},
		"schedule end":      {with("dial: {schedule: [{from: 18:00, to: tomorrow}]}"), "dial.schedule[0].to", "a time of day"},
		"dial names":        {with("dial: {levels: [{name: a}, {name: a}]}"), "dial.levels[1].name", "unique"},
		"schedule time":     {with("dial: {schedule: [{from: today, to: 2026-08-01T00:00:00Z}]}"), "dial.schedule[0].from", "a time such as"},
		"schedule order":    {with("dial: {schedule: [{from: 2026-08-02T00:00:00Z, to: 2026-08-01T00:00:00Z}]}"), "dial.schedule[0].to", "later than from"},
		"schedule level":    {with("dial: {schedule: [{level: 4, from: 2026-08-01T00:00:00Z, to: 2026-08-02T00:00:00Z}]}"), "dial.schedule[0].level", "from 0 to 3"},

		"id missing":         {"sites: [{origins: [{name: x, urls: [http://o]}]}]", "sites[0].id", "missing"},
		"id with slash":      {"sites: [{id: a/b, origins: [{name: x, urls: [http://o]}]}]", "sites[0].id", "letters, digits"},
		"id with dots":       {"sites: [{id: .., origins: [{name: x, urls: [http://o]}]}]", "sites[0].id", "letters, digits"},
		"id with break":      {`sites: [{id: "a\nb", origins: [{name: x, urls: [http://o]}]}]`, "sites[0].id", "letters, digits"},
		"id twice":           {"sites: [{id: a, origins: [{name: x, urls: [http://o]}]}, {id: A, origins: [{name: x, urls: [http://o]}]}]", "sites[1].id", "unique: sites[0].id is the same"},
		"two defaults":       {"sites: [{id: a, default: true, origins: [{name: x, urls: [http://o]}]}, {id: b, default: true, origins: [{name: x, urls: [http://o]}]}]", "sites[1].default", "only one site can be the default"},
		"host twice":         {"sites: [{id: a, hosts: [h.example], origins: [{name: x, urls: [http://o]}]}, {id: b, hosts: [H.example], origins: [{name: x, urls: [http://o]}]}]", "sites[1].hosts[0]", "unique: sites[0].hosts[0] is the same"},
		"host with port":     {sites("hosts: ['www.example.com:80']"), "sites[0].hosts[0]", "without scheme, port and wildcard"},
		"host with scheme":   {sites("hosts: ['https://www.example.com']"), "sites[0].hosts[0]", "without scheme"},
		"host with wildcard": {sites("hosts: ['*.example.com']"), "sites[0].hosts[0]", "wildcard"},
		"no origin":          {"sites: [{id: a}]", "sites[0].origins", "a list of places"},
		"place twice":        {"sites: [{id: a, origins: [{name: x, urls: [http://o]}, {name: X, urls: [http://p]}]}]", "sites[0].origins[1].name", "unique: sites[0].origins[0].name is the same"},
		"place name":         {"sites: [{id: a, origins: [{urls: [http://o]}]}]", "sites[0].origins[0].name", "missing"},
		"no url":             {"sites: [{id: a, origins: [{name: x}]}]", "sites[0].origins[0].urls", "a list of addresses"},
		"url twice":          {"sites: [{id: a, origins: [{name: x, urls: [http://o, http://o]}]}]", "sites[0].origins[0].urls[1]", "unique: sites[0].origins[0].urls[0] is the same"},
		"url without scheme": {"sites: [{id: a, origins: [{name: x, urls: [www.example.com]}]}]", "sites[0].origins[0].urls[0]", "such as https://origin.example.com"},
		"url ftp":            {"sites: [{id: a, origins: [{name: x, urls: ['ftp://o']}]}]", "sites[0].origins[0].urls[0]", "such as https://"},
		"url with user":      {"sites: [{id: a, origins: [{name: x, urls: ['http://me:hush@o']}]}]", "sites[0].origins[0].urls[0]", "without user"},
		"url unreadable":     {"sites: [{id: a, origins: [{name: x, urls: ['http://me:hush%zz@o']}]}]", "sites[0].origins[0].urls[0]", `is "...", but`},
		"url port":           {"sites: [{id: a, origins: [{name: x, urls: ['http://o:65536']}]}]", "sites[0].origins[0].urls[0]", "a port from 1 to 65535"},
		"url port 0":         {"sites: [{id: a, origins: [{name: x, urls: ['http://o:0']}]}]", "sites[0].origins[0].urls[0]", "a port from 1 to 65535"},
		"url with query":     {"sites: [{id: a, origins: [{name: x, urls: ['http://o?a']}]}]", "sites[0].origins[0].urls[0]", "without user, query"},
		"place region":       {place("region: x"), "sites[0].origins[0].region", "for s3:// urls only"},
		"place role":         {place("role_arn: x"), "sites[0].origins[0].role_arn", "for s3:// urls only"},
		"bucket":             {bucket("s3://b/p", "region: eu-west-1"), "sites[0].origins[0].urls[0]", "a bucket such as s3://bucket/prefix"},
		"bucket prefix":      {bucket("'s3://bucket/p?x'", "region: eu-west-1"), "sites[0].origins[0].urls[0]", "without ? and #"},
		"bucket region":      {bucket("s3://bucket", "weight: 1"), "sites[0].origins[0].region", "such as ap-northeast-1"},
		"bucket host":        {bucket("s3://bucket", "region: eu-west-1, host: a"), "sites[0].origins[0].host", "left out"},
		"bucket endpoint":    {bucket("s3://bucket", "region: eu-west-1, endpoint: s3.example"), "sites[0].origins[0].endpoint", "such as https://"},
		"bucket role":        {bucket("s3://bucket", "region: eu-west-1, role_arn: reader"), "sites[0].origins[0].role_arn", "such as arn:aws:iam"},
		"bucket and server":  {bucket("s3://bucket, http://o", "region: eu-west-1"), "sites[0].origins[0].urls", "either all s3:// or none"},
		"place host":         {place("host: 'a b'"), "sites[0].origins[0].host", "a host name"},
		"place weight":       {place("weight: 0"), "sites[0].origins[0].weight", "from 0.001"},
		"header name":        {place("headers: [{name: 'a:', value: b}]"), "sites[0].origins[0].headers[0].name", "the name of a header"},
		"header hop":         {place("headers: [{name: Transfer-encoding, value: b}]"), "sites[0].origins[0].headers[0].name", "another header"},
		"header host":        {place("headers: [{name: host, value: b}]"), "sites[0].origins[0].headers[0].name", "another header"},
		"header value":       {place(`headers: [{name: Referer, value: "a\r\nb: c"}]`), "sites[0].origins[0].headers[0].value", "(secret), but it must be a header value"},
		"header routing":     {"edge: {routing_header: X-Site}\n" + place("headers: [{name: x-site, value: b}]"), "sites[0].origins[0].headers[0].name", "edge.routing_header is never forwarded"},
		"no format":          {sites("formats: []"), "sites[0].formats", "a list of formats"},
		"jxl":                {sites("formats: [jxl]"), "sites[0].formats[0]", "must be webp, avif or heic"},
		"format twice":       {sites("formats: [webp, webp]"), "sites[0].formats[1]", "unique"},
		"quality zero":       {sites("quality: 0"), "sites[0].quality", "from 1 to 100"},
		"quality":            {sites("quality: 101"), "sites[0].quality", "from 1 to 100"},
		"png":                {sites("png: no"), "sites[0].png", "auto, lossy or lossless"},
		"query word":         {sites("query: some"), "sites[0].query", "all, none or a list of parameters"},
		"query name":         {sites("query: ['a=b']"), "sites[0].query[0]", "the name of a query parameter"},
		"query twice":        {sites("query: [v, v]"), "sites[0].query[1]", "unique"},
		"cookies":            {sites("cookies: yes"), "sites[0].cookies", "bypass or ignore"},
		"forward accept":     {sites("forward_headers: [Accept]"), "sites[0].forward_headers[0]", "another header"},
		"forward cookie":     {sites("forward_headers: [cookie]"), "sites[0].forward_headers[0]", "private"},
		"forward key":        {sites("forward_headers: [X-Karui-Key]"), "sites[0].forward_headers[0]", "another header"},
		"forward routing":    {"edge: {routing_header: X-Site}\n" + sites("forward_headers: [X-SITE]"), "sites[0].forward_headers[0]", "edge.routing_header is never forwarded"},
		"forward twice":      {sites("forward_headers: [Referer, referer]"), "sites[0].forward_headers[1]", "unique"},
		"forward name":       {sites("forward_headers: ['']"), "sites[0].forward_headers[0]", "missing"},
		"keep":               {sites("keep: [gps]"), "sites[0].keep[0]", "copyright"},
		"include":            {sites("include: [images/*]"), "sites[0].include[0]", "a pattern for paths"},
		"exclude":            {sites(`exclude: ["/a\x01"]`), "sites[0].exclude[0]", "a pattern for paths"},
		"exclude long":       {sites("exclude: [/" + strings.Repeat("a", 255) + "]"), "sites[0].exclude[0]", "at most 255"},
		"class":              {sites("classes: [{shed_first: true}]"), "sites[0].classes[0].match", "missing"},
		"distribution":       {sites("distribution: {role_arn: arn:aws:iam::111122223333:role/karui-purge}"), "sites[0].distribution.id", "missing"},
		"distribution id":    {sites("distribution: {id: e123}"), "sites[0].distribution.id", "upper-case letters and digits"},
		"distribution role":  {sites("distribution: {id: E123, role_arn: karui-purge}"), "sites[0].distribution.role_arn", "arn:aws:iam::"},
		"role and id":        {sites("distribution: {id: E123, external_id: hush-hush}"), "sites[0].distribution.role_arn", "missing"},
		"external id":        {sites("distribution: {id: E123, role_arn: 'arn:aws:iam::111122223333:role/x', external_id: 'hush hush'}"), "sites[0].distribution.external_id", "2 to 1224"},
	} {
		file := write(t, test.text)
		t.Run(name, func(t *testing.T) {
			_, err := server.Load(file, nil)
			problems := config.Problems(err)
			if len(problems) != 1 {
				t.Fatalf("%d problems: %v", len(problems), err)
			}
			p := problems[0]
			if p.Key != test.key || !strings.Contains(p.Error(), test.part) {
				t.Errorf("%s\nwant %s and %q", p, test.key, test.part)
			}
			if strings.Contains(p.Error(), "hush") {
				t.Errorf("shows a secret: %s", p)
			}
			if p.Source.Kind != config.SourceFile && p.Key != "sites" {
				t.Errorf("no place: %s", p)
			}
		})
	}
}

// All that is wrong with a window is said at once.
func TestMistakesOfAWindow(t *testing.T) {
	_, err := server.Load(write(t, with("dial: {schedule: [{level: 9, from: '25:00', to: '20:00', zone: Tokyo}]}")), nil)
	var keys []string
	for _, p := range config.Problems(err) {
		keys = append(keys, strings.TrimPrefix(p.Key, "dial.schedule[0]."))
	}
	if got := strings.Join(keys, " "); got != "level zone from" {
		t.Errorf("%s: %v", got, err)
	}
}

func TestWhatMakesSenseIsTaken(t *testing.T) {
	for name, text := range map[string]string{
		"least":            one,
		"any port":         with("listen: ':0'\nadmin: {listen: '[::1]:0'}"),
		"admin localhost":  with("admin: {listen: 'localhost:9090'}"),
		"admin open":       with("admin: {listen: ':9090', tokens: [{name: ops, token: 0123456789, rights: [read, purge, dial], sites: [a]}]}"),
		"rotation":         with("edge: {secrets: [old, new], routing_header: x-routing}"),
		"never wait":       with("first_response: {wait: 0}"),
		"retry off":        with("retry: {mode: off, level: 0}"),
		"dial pinned":      with("dial: {mode: 2}"),
		"dial off":         with("dial: {mode: off}"),
		"daily window":     with("dial: {levels: [{name: full}, {name: defer, formats: [none]}], schedule: [{name: evening, from: '18:00', to: '23:30', zone: Asia/Tokyo, level: 1}]}"),
		"own levels":       with("dial: {levels: [{name: a}, {name: b, formats: [webp], quality: 50}], schedule: [{name: festival, from: 2026-08-01T18:00:00+09:00, to: 2026-08-01T23:00:00+09:00, level: 1}]}"),
		"query":            sites("query: [v, width]"),
		"no query":         sites("query: none"),
		"nothing kept":     sites("keep: [], forward_headers: []"),
		"patterns":         sites("include: ['/images/*', '*.png'], exclude: ['/a?c', '/日本/*']"),
		"fixed headers":    place("host: 'www.example.com:8443', headers: [{name: Referer, value: 'https://www.example.com/'}, {name: X-Key, value: ''}]"),
		"an address":       "sites: [{id: a, hosts: ['2001:db8::1'], origins: [{name: x, urls: ['http://[::1]:8080/base/']}]}]",
		"no default":       "sites: [{id: a, origins: [{name: x, urls: [http://o]}]}, {id: b, origins: [{name: x, urls: [http://o]}]}]",
		"nested time-outs": with("origin: {connect: 2s, deadline: 2s, idle: 1s, total: 2s}\nfirst_response: {wait: 1s}"),
	} {
		file := write(t, text)
		t.Run(name, func(t *testing.T) {
			if _, err := server.Load(file, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAuthoritiesAreRead(t *testing.T) {
	system := "/etc/ssl/certs/ca-certificates.crt"
	if _, err := os.Stat(system); err != nil {
		t.Skip("no file of authorities here")
	}
	if _, err := server.Load(write(t, with("origin: {ca_file: "+system+"}")), nil); err != nil {
		t.Error(err)
	}
	junk := filepath.Join(t.TempDir(), "junk.pem")
	if err := os.WriteFile(junk, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Load(write(t, with("origin: {ca_file: "+junk+"}")), nil); err == nil {
		t.Error("junk was taken")
	}
}
