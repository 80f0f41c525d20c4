package backlog

import (
	"encoding/binary"

	"karui/cache"
)

// nameOf writes a key without its site into one string, which costs less memory than
// three, and from which no two keys have the same.
func nameOf(k cache.Key) string {
	b := make([]byte, 0, len(k.Form)+len(k.Rest)+len(k.Path)+2*binary.MaxVarintLen16)
	b = binary.AppendUvarint(b, uint64(len(k.Form)))
	b = append(b, k.Form...)
	b = binary.AppendUvarint(b, uint64(len(k.Rest)))
	b = append(b, k.Rest...)
	return string(append(b, k.Path...))
}

// keyOf reads a name. One that makes no sense gives a key without a form.
func keyOf(site, name string) cache.Key {
	k := cache.Key{Site: site}
	form, rest, ok := cut(name)
	if !ok {
		return k
	}
	query, path, ok := cut(rest)
	if !ok {
		return k
	}
	k.Form, k.Rest, k.Path = form, query, path
	return k
}

// cut takes a string with its length off the front.
func cut(s string) (text, rest string, ok bool) {
	n, size := binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
	if size <= 0 || n > uint64(len(s)-size) {
		return "", "", false
	}
	return s[size : size+int(n)], s[size+int(n):], true
}
