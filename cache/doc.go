// Package cache keeps bodies of bytes with a little metadata under a key: small
// hot ones in memory, all of them in files of a volume. It knows nothing of HTTP
// or of images.
//
// What is guaranteed:
//
//   - An entry that Get returns holds exactly the bytes that some Put stored
//     under exactly that key. Every file carries its full key, a checksum over
//     its head and metadata, and one over its body. The body's is verified
//     before the first byte is handed out, once in a process and again after the
//     file's inode, size or modification time changed. A file that is torn,
//     truncated, bit-flipped, foreign, swapped, empty or of another format
//     version is a miss and is removed.
//   - An Entry never changes. One that is open goes on reading its old body while
//     a newer Put, an eviction or a Delete replaces or removes the file.
//   - Put, Update and Delete of one key are atomic for readers. Of two Puts the
//     one with the later Meta.FetchStart stays, whichever comes last; Update and
//     Delete never touch what was fetched after the fetch that they speak of.
//   - Get returns no error: whatever fails on a disk is a miss.
//   - The files of a volume stay within its max_size (blocks on disk, files being
//     written included), once the volume is loaded.
//
// What is not:
//
//   - Nothing is synced before Put returns. A file is written under a temporary
//     name and renamed, so a killed process loses only what it was writing. After
//     a power loss the entries of the last minute or so may be gone or torn, and
//     the torn ones are found by their checksums. The file system is synced once
//     a minute, which also brings failed write-backs to light: the volume is then
//     taken out, and every file is verified anew afterwards.
//   - A disk that changes the bytes of a file without a read error, after its
//     verification and without a new modification time, is not caught before the
//     next start of the process.
//   - What goes first for room is close to what was used least recently, not exact:
//     the oldest of some random entries, by a time of use that a restart knows to
//     the hour.
//   - That a key was deleted is remembered for minutes, and not across a restart;
//     a file that the disk did not let go may then be found again.
//   - Space of removed files that are still open as an Entry is not counted.
//   - Checksums are against accidents (XXH64), not against somebody who can write
//     to the cache folder.
package cache
