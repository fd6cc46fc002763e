package native

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
)

// setLargeAttribute gives a file or directory an extended attribute of that many bytes that depends on its path.
func setLargeAttribute(t *testing.T, memory *disktest.Memory, path string, bytes int) {
	t.Helper()
	change(t, memory, path, func(f attributed) error {
		return f.SetXattr(disk.Xattr{Name: "user.path", Value: []byte(roletest.Repeated(path, bytes))})
	})
}

// mustHaveLargeAttribute fails the test unless the target has the attribute of that path.
func (m *meeting) mustHaveLargeAttribute(path string, bytes int) {
	m.t.Helper()
	found, err := xattrsOf(m.to, "/dst/t"+strings.TrimPrefix(path, "/src"))
	must(m.t, err)
	if len(found) != 1 || string(found[0].Value) != roletest.Repeated(path, bytes) {
		m.t.Errorf("%s has %.100q", path, found)
	}
}

// xattrsOf returns the extended attributes of a file or directory.
func xattrsOf(memory *disktest.Memory, path string) ([]disk.Xattr, error) {
	if dir, err := memory.OpenDir(path); err == nil {
		defer dir.Close()
		return dir.Xattrs()
	}
	file, err := memory.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Xattrs()
}

// Trees with much more extended attributes than either side holds arrive whole: in many files of either kind, in
// directories beside each other, and in directories in each other.
func TestManyLargeAttributesArrive(t *testing.T) {
	const bytes = 64 << 10
	large := map[string]int{}
	var directories, files []string
	path := "/src"
	for i := range 100 {
		path += "/d"
		beside := fmt.Sprintf("/src/e%03d", i)
		directories = append(directories, path, beside)
		large[path], large[beside] = 3*bytes, 3*bytes
	}
	for i := range 300 {
		file := fmt.Sprintf("/src/f%03d", i)
		files = append(files, file)
		large[file] = bytes
	}
	for _, dpuSends := range []bool{false, true} {
		from := disktest.NewMemory(append([]string{"/", "/src"}, directories...)...)
		for i, path := range files {
			from.Put(path, roletest.Repeated(path, []int{10, 3 * 4096}[i%2]))
		}
		for path, bytes := range large {
			setLargeAttribute(t, from, path, bytes)
		}
		m := newMeeting(t, from, newTarget())
		m.dpuSends = dpuSends
		m.sender.config.Xattrs, m.receiver.config.Xattrs = true, true
		m.mustSucceed()
		m.mustHaveSameContent()
		for path, bytes := range large {
			m.mustHaveLargeAttribute(path, bytes)
		}
	}
}
