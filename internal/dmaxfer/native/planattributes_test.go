package native

import (
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
)

// lackingAttributes are file systems that do not store attributes as they are set.
var lackingAttributes = map[string]disktest.Lacking{
	"seconds":               {Unit: time.Second},
	"two seconds":           {Unit: 2 * time.Second},
	"100 ns":                {Unit: 100},
	"modes":                 {Modes: true},
	"FAT by FUSE":           {Unit: 2 * time.Second, Modes: true, Unnamed: true, Local: true},
	"microseconds, a cache": {Unit: time.Microsecond, Unnamed: true, Local: true},
}

// What a file system cannot store does not have a file or a symlink copied again.
func TestUnchangedAsStored(t *testing.T) {
	for name, lacking := range lackingAttributes {
		for _, source := range []string{"/src", "/src/file"} {
			t.Run(name+" "+source, func(t *testing.T) {
				from, to := disktest.NewMemory("/", "/src"), newTarget()
				from.Put("/src/file", "content")
				if source == "/src" {
					from.Symlink("file", "/src/link", from.Self().UID)
				}
				to.Without(lacking)
				for _, again := range []string{"", "again", "dry run"} {
					m := newMeeting(t, from, to)
					m.sender.search.Path, m.receiver.search.Overwrite = source, true
					m.receiver.config.DryRun = again == "dry run"
					m.mustSucceed()
					s := m.receiver.summary
					unchanged := s.UpToDate || s.Tree != nil && s.Tree.Files == 0 && s.Tree.Symlinks == 0
					if again != "" && !unchanged {
						t.Errorf("%s: %+v", again, s)
					}
				}
			})
		}
	}
}

// A time that the file system can store, and that the target does not have, is set.
func TestChangedAsStored(t *testing.T) {
	for name, change := range map[string]func(in disk.Dir) error{
		"rounded time": func(in disk.Dir) error { return setModified(in, func(at *disk.Timestamp) { at.Nsec = 0 }) },
		"earlier time": func(in disk.Dir) error { return setModified(in, func(at *disk.Timestamp) { at.Sec-- }) },
	} {
		for _, lacking := range []disktest.Lacking{{}, {Modes: true}, {Unnamed: true}, {Unit: 100}} {
			t.Run(name, func(t *testing.T) {
				from, to := disktest.NewMemory("/", "/src"), newTarget()
				from.Put("/src/file", "content")
				to.Without(lacking)
				newMeeting(t, from, to).mustSucceed()
				in, err := to.OpenDir("/dst/t")
				must(t, err)
				must(t, change(in))
				must(t, in.Close())
				again := newMeeting(t, from, to)
				again.receiver.search.Overwrite = true
				again.mustSucceed()
				if s := again.receiver.summary.Tree; s.Updated != 1 {
					t.Errorf("with %+v: %+v", lacking, s)
				}
			})
		}
	}
}

// A file whose extended attributes differ from the target's is copied again, once, if they are preserved.
func TestChangedXattrs(t *testing.T) {
	for source, target := range map[string]string{"/src": "/dst/t/file", "/src/file": "/dst/t"} {
		from, to := disktest.NewMemory("/", "/src"), newTarget()
		from.Put("/src/file", "content")
		for step, c := range []struct {
			in          *disktest.Memory
			name, value string
			wantCopied  bool
		}{
			{from, "a", "1", true},
			{from, "a", "1", false},
			{from, "a", "2", true},
			{from, "b", "2", true},
			{to, "c", "1", true},
			{to, "b", "1", true},
			{to, "b", "2", false},
		} {
			path := map[*disktest.Memory]string{from: "/src/file", to: target}[c.in]
			file, err := c.in.Open(path)
			must(t, err)
			must(t, file.SetXattr(disk.Xattr{Name: "user." + c.name, Value: []byte(c.value)}))
			must(t, file.Close())
			for _, dryRun := range []bool{true, false} {
				m := newMeeting(t, from, to)
				m.sender.search.Path, m.receiver.search.Overwrite = source, true
				m.sender.config.Xattrs, m.receiver.config.Xattrs, m.receiver.config.DryRun = true, true, dryRun
				m.mustSucceed()
				copied := !m.receiver.summary.UpToDate
				if tree := m.receiver.summary.Tree; tree != nil {
					copied = tree.Files > 0
				}
				if copied != c.wantCopied {
					t.Errorf("%s, step %d, dry run %t: copied %t", source, step, dryRun, copied)
				}
			}
		}
	}
}

// setModified changes the modification time of the file.
func setModified(in disk.Dir, change func(at *disk.Timestamp)) error {
	file, err := in.Open("file", false)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return err
	}
	at := info.Modified
	change(&at)
	return file.SetModified(at)
}

// A file that is written again in the second in which it was copied is copied again, although its size and the time
// that the target stores are the same. Another mode does not hide that.
func TestWrittenAgainInTheSameSecond(t *testing.T) {
	for _, mode := range []bool{false, true} {
		from, to := disktest.NewMemory("/", "/src"), newTarget()
		from.Put("/src/file", "content")
		to.Without(disktest.Lacking{Unit: time.Second})
		newMeeting(t, from, to).mustSucceed()
		from.Write("/src/file", "CONTENT", 0)
		if mode {
			info, err := from.Stat("/src/file")
			must(t, err)
			file, err := from.Open("/src/file")
			must(t, err)
			must(t, file.SetMode(0o711))
			must(t, file.SetModified(info.Modified))
			must(t, file.Close())
		}
		again := newMeeting(t, from, to)
		again.receiver.search.Overwrite = true
		again.mustSucceed()
		if text, _ := to.Get("/dst/t/file"); text != "CONTENT" {
			t.Errorf("the target has %q", text)
		}
	}
}
