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
// The life of a directory that is received, Tree:
//
//	OpenTree ─► Root ─► Enter ─► Put, Stage, Partial, Symlink, Link ... ─► Leave, Release ─► Close(true): complete
//	   ▲                  └── Enter ...                                         │
//	   └── continues what is unfinished, without Overwrite ◄────────────────────┴── Close(false): the marker remains
//
// Each entry is committed by itself. A small file has no name until it is complete; it is renamed from a temporary name
// where it replaces another file, or where the file system has no files without a name. Names are resolved in the
// directory that contains them, which was itself opened by its name in the directory above, never through a symlink.
// The marker is .NAME.dma-copy-part beside the root.
//
// The directory of a target, or the root of a tree, and those above it are locked (LockMode), so that no transfer
// deletes what another one stores.
//
// With DurabilityFull small files are made durable in batches:
//
//	Stage, Stage ... ─► Sync: content ─► Commit, Commit ... ─► Sync: names ─► all of them may be acknowledged
//
// Sync is one syncfs(2) where that reports what could not be written: on known local file systems, from Linux 5.8 on.
// Elsewhere Stage flushes each file and Sync each directory whose names have changed.
//
// The operating system is behind the interfaces FS, Dir and File. OS implements them; package disktest has file
// systems that fail on demand or lose power.
package disk
