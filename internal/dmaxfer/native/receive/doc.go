// Package receive is the role of the side that gets the file or the tree.
//
//	entries ─► planner ─┬─ directory, symlink, link ──────────────► result
//	                    ├─ unchanged ─────────────────────────────► answer
//	                    └─ needed ─► answer ... lanes ─┬─ in chunks ─► verified ─► renamed ─► result
//	                                                   └─ in a pack ─► put, or staged ─► flushed ─► result
//
// The life of a file that comes in chunks is in file.go, of a small file in pack.go, of a directory in directory.go, of
// a symlink or a hard link in link.go. The states of an entry are drawn in entry.go. results.go decides entries, and
// finish.go ends the transfer.
//
// Goroutines: the owner of the transfer calls everything that is not said to be called by others. It starts all jobs:
//
//	planner  one, in a tree for the whole transfer; takes entries from planner.queue
//	digests  compare files that the target has with digests of the sender, one at a time
//	lanes    of pump.Receiver, in one job; call files.stored and packs.store
//	files    verify, flush and rename one file each
//	packs    flush and rename many staged files, one job at a time
//
// Each of them has an entry to itself until it passes it on, by the queue or by a message to the sender; the lock of an
// entry guards what lanes, jobs and the owner share. directories, links and packs each have a lock for their own lists.
// Everything else belongs to the owner, to whom the others post calls.
package receive
