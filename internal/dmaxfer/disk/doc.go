// Package disk keeps two promises about the files of a transfer: the source is the same at the end as at the beginning,
// and the target's final name has the old content or the new, never a part of it. It must not know a peer, a device or
// a protocol state.
//
// The life of a target, Partial:
//
//	OpenPartial ─► Allocate ─► WriteAt, Punch, Advance ... ─► Prepare ─► Commit ─► the final name has the new content
//	     ▲                              │                        │
//	     └── resumes what Keep left ◄───┴── Keep: file and journal remain, or Discard: both are removed
//
// Before Commit the target is .NAME.dma-copy-part in the directory of NAME, locked, with .NAME.dma-copy-journal beside
// it, which says how much of it is verified. Where nothing is to be kept for a later transfer the content is in a file
// without a name, and the partial file only holds the lock.
//
// The operating system is behind the interfaces FS, Dir and File. OS implements them; package disktest has file systems
// that fail on demand or lose power.
package disk
