package inode

import (
	"io/fs"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A target gets what was announced of its source, without the bits of the mode that grant privileges.
func TestDescribedAttributesArrive(t *testing.T) {
	info := disk.Info{Mode: fs.ModeSetuid | fs.ModeSticky | 0o754, UID: 7, GID: 8}
	info.Size, info.Modified = 9, disk.Timestamp{Sec: -1, Nsec: 5}
	file := Describe(info, wire.EntryFile)
	want := disk.Metadata{Size: 9, Mode: 0o754, Modified: info.Modified, UID: 7, GID: 8}
	got := Metadata(&file)
	if got.Xattrs != nil {
		t.Error("there are extended attributes")
	}
	if got.Size != want.Size || got.Mode != want.Mode || !SameTimeAndOwner(info, got, true) ||
		file.Identity != info.Fingerprint() {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if change := Change(info, got, true); change != native.ChangeNone {
		t.Errorf("%s differs", change)
	}
	info.Mode = fs.ModeDir | fs.ModeSticky | fs.ModeSetgid | 0o777
	directory := Describe(info, wire.EntryDirectory)
	if directory.Mode != 0o1777 || directory.Size != 0 || directory.Identity != [16]byte{} {
		t.Errorf("a directory is described as %+v", directory)
	}
}

// Of several differences the first one counts: time, mode, owner. The owner counts if it is preserved.
func TestFirstChange(t *testing.T) {
	info := disk.Info{Mode: 0o644, UID: 1, GID: 2}
	wanted := disk.Metadata{Mode: 0o644, UID: 1, GID: 3}
	if got := Change(info, wanted, false); got != native.ChangeNone {
		t.Errorf("without the owner: %s", got)
	}
	if got := Change(info, wanted, true); got != native.ChangeOwner || SameTimeAndOwner(info, wanted, true) {
		t.Errorf("another group: %s", got)
	}
	wanted.Mode = 0o600
	if got := Change(info, wanted, true); got != native.ChangeMode {
		t.Errorf("another mode: %s", got)
	}
	wanted.Modified.Nsec = 1
	if got := Change(info, wanted, true); got != native.ChangeTime || SameTimeAndOwner(info, wanted, false) {
		t.Errorf("another time: %s", got)
	}
}
