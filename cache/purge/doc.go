// Package purge says what purges hit. It is pure: no clock, no disk.
//
// A purge names a site and a prefix of paths, and hits what was fetched before it. It
// is meant for people, who type a path as they see it, while the cache holds paths as
// browsers sent them; and the same file may have been asked for under several
// spellings. So a path is hit if it begins with the prefix in any of these spellings
// of both:
//
//   - byte for byte as it came;
//   - with its percent escapes decoded, once: `/a b.jpg` hits `/a%20b.jpg`, `/写真/`
//     hits `/%E5%86%99%E7%9C%9F/`, and `%2F`, `%2f` and `/` are the same, as `%41` and
//     `A` are;
//   - the same read as text, each folder and name by itself as UTF-8, Shift_JIS or EUC-JP
//     (old Japanese sites), in Unicode's composed form (what a Mac calls a file), without
//     regard to the case of letters (some origins have none), with one form for the
//     characters of JIS that vendors map differently (〜 and ～, − and －), a backslash for
//     a slash (origins on Windows), and with `//`, `/./` and `/../` resolved;
//   - the characters of the prefix in Shift_JIS and EUC-JP, byte for byte.
//
// The case of A to Z never matters. A plus is no space, since it is none in a path. Of one
// path's folders and names, maxDoubtful are read in two ways where their bytes are right
// in two encodings. Matching too much costs a fetch, matching too little leaves an old picture
// online; so whatever begins with the raw bytes of a prefix is hit in any case.
//
// Not guaranteed: that a purge hits a file under another path that the origin happens
// to give the same picture for.
package purge
