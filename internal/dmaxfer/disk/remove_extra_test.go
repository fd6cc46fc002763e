package disk_test

import (
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// A user without capabilities deletes in own directories that have no right to write, and they keep their modes, also
// if the deletion fails.
func TestRemoveExtraInProtectedDirectories(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("changing the user needs root")
	}
	at := onDisk(t, shared(t))
	for _, name := range []string{"", "/d", "/d/full", "/other"} {
		must(t, os.MkdirAll(at.folder+name, 0o755))
		must(t, os.WriteFile(at.folder+name+"/x", nil, 0o644))
		must(t, os.Chown(at.folder+name, 65534, 65534))
		must(t, os.Chmod(at.folder+name, 0o555))
	}
	must(t, os.Chown(at.folder+"/other", 0, 0))
	asNobody(t, func() {
		dir, err := disk.OS.OpenDir(at.folder)
		must(t, err)
		defer dir.Close()
		for path, want := range map[string]error{
			"x": nil, "d/x": nil, "d/full": unix.ENOTEMPTY, "other/x": fs.ErrPermission, "d/absent": fs.ErrNotExist,
		} {
			if err := disk.RemoveExtra(dir, path); want == nil {
				must(t, err)
			} else {
				mustBe(t, err, want)
			}
		}
		mustBe(t, disk.RemoveBeneath(dir, "d/full/x"), fs.ErrPermission)
	})
	for _, name := range []string{"", "/d", "/d/full", "/other"} {
		info, err := os.Stat(at.folder + name)
		must(t, err)
		if info.Mode().Perm() != 0o555 {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
	}
	at.mustHold(t, "d", "other")
}
