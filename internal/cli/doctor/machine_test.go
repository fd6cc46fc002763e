package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

func TestLeftoversAreFoundAndKept(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".image.dma-copy-ABCDEFGHIJ", ".other.dma-copy-part", ".other.dma-copy-journal",
		".gone.dma-copy-journal", "image.dma-copy-ABCDEFGHIJ", ".image", "image"} {
		writeFile(t, filepath.Join(dir, name), "part")
	}
	got, err := findLeftovers(dir)
	if err != nil || !slices.Equal(got, []string{".gone.dma-copy-journal", ".image.dma-copy-ABCDEFGHIJ"}) {
		t.Errorf("found %q, error %v", got, err)
	}
	if partials, err := disk.FindPartials(disk.OS, dir); err != nil || len(partials) != 1 ||
		partials[0].Name != ".other.dma-copy-part" {
		t.Errorf("found %+v, error %v", partials, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 7 {
		t.Errorf("left %v, error %v", left, err)
	}
	if _, err := findLeftovers(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestThisMachine(t *testing.T) {
	m := thisMachine(Settings{Driver: device.Driver{Name: device.DriverSoft}})
	if limit, err := m.memlock(); err != nil || limit == 0 {
		t.Errorf("limit %d, error %v", limit, err)
	}
	if who := m.user(); who.id != os.Geteuid() || who.name == "" || len(who.groups) == 0 {
		t.Errorf("user %+v", who)
	}
	if err := m.accessible(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := m.accessible("/absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
