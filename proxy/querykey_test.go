package proxy

import "testing"

func TestQueryKeyed(t *testing.T) {
	all, none, named := Query{All: true}, Query{}, Query{Names: []string{"v", "w"}}
	tests := []struct {
		name  string
		query Query
		raw   string
		want  string
	}{
		{"all", all, "?v=2&a=%20+b", "?v=2&a=%20+b"},
		{"all, a lone mark", all, "?", "?"},
		{"all, no query", all, "", ""},
		{"none", none, "?v=2", ""},
		{"names", named, "?x=1&v=2&y&w=3", "?v=2&w=3"},
		{"names in another order share a key", named, "?w=3&v=2", "?v=2&w=3"},
		{"a name twice keeps its order", named, "?v=2&w=3&v=1", "?v=2&v=1&w=3"},
		{"bytes as they came", named, "?v=%2f+\x83\\", "?v=%2f+\x83\\"},
		{"an encoded name", named, "?%76=2", "?%76=2"},
		{"a name without value", named, "?v", "?v"},
		{"an empty value is not none", named, "?v=", "?v="},
		{"a longer name is another", named, "?vv=1&Vw=2", ""},
		{"a broken escape is its own name", named, "?v%=1", ""},
		{"nothing of it", named, "?", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.query.Keyed(test.raw); got != test.want {
				t.Errorf("Keyed(%q) = %q, want %q", test.raw, got, test.want)
			}
		})
	}
}
