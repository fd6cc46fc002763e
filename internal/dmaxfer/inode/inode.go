package inode

import (
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Describe returns what is announced of a file, without its place in the tree and its extended attributes.
func Describe(info disk.Info, kind wire.EntryKind) wire.Entry {
	e := wire.Entry{
		Kind: kind, Mode: permissions(info.Mode), MTime: wire.Timestamp(info.Modified),
		UID: info.UID, GID: info.GID,
	}
	if kind == wire.EntryFile {
		e.Size, e.Identity = uint64(info.Size), info.Fingerprint()
	}
	return e
}

// permissions returns what is kept of a mode. Without its sticky bit a directory that all may write would let anyone
// remove the files of others.
func permissions(mode fs.FileMode) uint32 {
	kept := uint32(mode.Perm())
	if mode.IsDir() && mode&fs.ModeSticky != 0 {
		kept |= unix.S_ISVTX
	}
	return kept
}

// Metadata returns what a target gets of an entry that was announced, without its extended attributes.
func Metadata(from *wire.Entry) disk.Metadata {
	return disk.Metadata{
		Size: int64(from.Size), Mode: from.Mode, Modified: disk.Timestamp(from.MTime), UID: from.UID, GID: from.GID,
	}
}

// Change returns the first difference between time, permission bits and, if owner is set, owner of a file and those
// that it is to have.
func Change(info disk.Info, wanted disk.Metadata, owner bool) native.Change {
	switch {
	case info.Modified != wanted.Modified:
		return native.ChangeTime
	case uint32(info.Mode.Perm()) != wanted.Mode&0o777:
		return native.ChangeMode
	case !SameTimeAndOwner(info, wanted, owner):
		return native.ChangeOwner
	}
	return native.ChangeNone
}

// SameTimeAndOwner reports whether a file has the time and, if owner is set, the owner that it is to have. It is what
// there is to compare of a symlink.
func SameTimeAndOwner(info disk.Info, wanted disk.Metadata, owner bool) bool {
	return info.Modified == wanted.Modified && (!owner || info.UID == wanted.UID && info.GID == wanted.GID)
}
