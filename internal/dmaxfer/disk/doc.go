// Package disk keeps a copy's promises about files: a source that is the same at the end as at the beginning, and a target
// whose final name holds the old content or the new, never a part.
//
//	OpenPartial ─► Allocate ─► WriteAt, Punch, Advance ... ─► Prepare ─► Commit      the final name holds the new content
//	     │                              │                        │
//	     └── resumes what Keep left ◄───┴── Keep: partial and journal stay ── or Discard: neither does
//
// Until Commit the target is .NAME.dma-copy-part in the directory of NAME, held by a lock, with .NAME.dma-copy-journal beside it,
// which says how much of it is verified. All that this needs of an operating system is the interfaces FS, Dir and File. OS is
// the real one; package disktest has one that fails on demand and one that loses power.
package disk
