// Package cache keeps bodies of bytes with a little metadata under a key: small
// hot ones in memory, all of them in files of one volume or several. It knows
// nothing of HTTP or of images.
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
//   - Put waits for no disk. The entry is answered from memory until it is written;
//     what waits is bounded by cache.write_queue, for each volume apart, and a Put
//     that finds no room says so and changes nothing. A Delete reaches what waits and
//     what is being written: nothing of it is answered or stored afterwards.
//   - An entry lies in one volume, which has it with a probability in proportion to
//     its weight, and is found there whatever becomes of the weights. Of two copies
//     that a kill or a failed removal left, the older one is never answered. What a
//     volume misses while it is out of use or not configured, Deletes and newer
//     entries, is kept by the others, over restarts too, and does not come back with it.
//   - What was purged, by site and prefix of paths, is not answered any more from the
//     moment on at which Purge is called: not from memory, disks or the write queue,
//     not if it is put later, and not if an Update says that it is still good, since
//     what counts is when the body was fetched (Meta.BodyStart). When Purge returns
//     without an error, that holds over a restart and a kill. A volume that is out of
//     use or not configured does not bring it back: a purge is remembered until every
//     volume has been swept, and for PurgeHold at least. At most 10,000 are; more are
//     merged to wider ones. With none remembered, it costs a Get one atomic load.
//   - The files of a volume stay within its max_size (blocks on disk, files being
//     written included) from the first write on, however many write and whether the
//     files of an earlier process have been found or not: a note in the folder says how
//     much they take at most. A volume that is over max_size, because that was made
//     smaller, does not grow while it shrinks. What the folders grow by counts
//     too, some seconds late. Files of another format version are misses from the
//     first moment on, and go while the volume is loaded.
//   - Nothing that goes over many files holds others up: a lock is held for one file
//     or a few hundred records in memory, evictions come in batches of 16 files, and
//     loads and sweeps rest as long as they work.
//
// What is not:
//
//   - Nothing is synced before Put returns. A file is written under a temporary
//     name and renamed, so a killed process loses only what it was writing and what
//     waited to be written. After
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
//   - Purges go by clocks: one that is set back by more than purge.Margin between a
//     fetch and a purge lets through what was fetched in between. For as long after a
//     purge nothing that it names is stored.
//   - A purge that came while a volume was out of use is not known to it before it
//     works again: started then with that volume alone, the cache answers from it. So
//     does one that was left out of the configuration meanwhile: volumes are all that
//     karui keeps, so nobody is left to tell it; and to trust no volume whose companions
//     are away would empty the cache whenever a disk breaks.
//   - A purge that no volume could take holds in this process alone, until one works.
//   - A volume that was never used together with any of the present ones does not know
//     of purges that were forgotten before it was first configured beside them.
//   - A version before purges that is put back in place knows nothing of them.
//   - That a key was deleted is remembered for minutes, and not across a restart. A
//     file that the disk did not let go may then be found again, if there was no other
//     volume to note it in at that time.
//   - A volume that has missed more than a million changes starts empty when it
//     returns, rather than that something old came back.
//   - A write that fails after its entry was answered takes the older entry of the
//     key with it: the key is a miss then.
//   - Space of removed files that are still open as an Entry is not counted.
//   - Checksums are against accidents (XXH64), not against somebody who can write
//     to the cache folder.
package cache
