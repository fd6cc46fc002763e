package disk_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
)

func mustOpenSource(t *testing.T, at testDir, name string) *disk.Source {
	t.Helper()
	s, err := disk.OpenSource(at.fs, at.path(name))
	must(t, err)
	return s
}

func TestSourceThatStaysIsVerified(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put("file", newText)
		s := mustOpenSource(t, at, "file")
		defer s.Close()
		buffer := make([]byte, 7)
		must(t, s.ReadAt(buffer, 5))
		if string(buffer) != newText[5:12] || s.Info().Size != int64(len(newText)) {
			t.Errorf("at 5 there is %q, of %d bytes", buffer, s.Info().Size)
		}
		must(t, s.Verify(nil))
		other := mustOpenSource(t, at, "file")
		defer other.Close()
		if s.Info().Fingerprint() != other.Info().Fingerprint() {
			t.Error("one file has two fingerprints")
		}
	})
}

func TestSourceThatChangesIsNoticed(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"appended": func(t *testing.T, path string) {
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = file.WriteString("more")
			must(t, err)
			must(t, file.Close())
		},
		"truncated": func(t *testing.T, path string) { must(t, os.Truncate(path, 3)) },
		"emptied":   func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
		"rewritten": func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte(oldText), 0o600)) },
		"rewritten with its old time": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte(newText), 0o600))
			must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"replaced": func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"x", []byte(newText), 0o600))
			must(t, os.Rename(path+"x", path))
		},
		"removed": func(t *testing.T, path string) { _ = os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			at := onDisk(t, t.TempDir())
			at.put("file", newText)
			s := mustOpenSource(t, at, "file")
			defer s.Close()
			untilStamped(t, s, func() { change(t, at.path("file")) })
			mustFail(t, s.Verify(nil), disk.ErrSourceChanged, "changed during the copy")
			mustFail(t, s.Verify(func() (bool, error) { return name != "rewritten with its old time", nil }),
				disk.ErrSourceChanged)
		})
	}
}

// Of a source of which only the change time has moved the content decides, and it is the same one for a receiver.
func TestSourceThatIsTouchedIsReadAgain(t *testing.T) {
	for name, touch := range map[string]func(t *testing.T, path string){
		"mode": func(t *testing.T, path string) { must(t, os.Chmod(path, 0o640)) },
		"link": func(t *testing.T, path string) {
			_ = os.Remove(path + "x")
			must(t, os.Link(path, path+"x"))
		},
		"name": func(t *testing.T, path string) { _ = os.Rename(path, path+"x") },
	} {
		t.Run(name, func(t *testing.T) {
			at := onDisk(t, t.TempDir())
			at.put("file", newText)
			s := mustOpenSource(t, at, "file")
			defer s.Close()
			untilStamped(t, s, func() { touch(t, at.path("file")) })
			must(t, s.Verify(func() (bool, error) { return true, nil }))
			if now := mustInfo(t, s.File()); now.Fingerprint() != s.Info().Fingerprint() {
				t.Error("the file has another fingerprint")
			}
			mustFail(t, s.Verify(func() (bool, error) { return false, nil }), disk.ErrSourceChanged)
			mustBe(t, s.Verify(func() (bool, error) { return false, unix.EIO }), unix.EIO)
			mustFail(t, s.Verify(func() (bool, error) {
				open := fmt.Sprintf("/proc/self/fd/%d", s.File().OS().Fd())
				untilStamped(t, s, func() { must(t, os.WriteFile(open, []byte(newText), 0)) })
				return true, nil
			}), disk.ErrSourceChanged)
			if now := mustInfo(t, s.File()); now.Fingerprint() == s.Info().Fingerprint() {
				t.Error("a file that was written has the fingerprint of before")
			}
		})
	}
}

// untilStamped repeats a change until the file's times differ: two writes in one tick of the kernel's clock have the
// same time.
func untilStamped(t *testing.T, s *disk.Source, change func()) {
	t.Helper()
	for range 1000 {
		change()
		if mustInfo(t, s.File()).Changed != s.Info().Changed {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the file system's clock stands still")
}

func TestSourceThatShrankEndsEarly(t *testing.T) {
	at := onDisk(t, t.TempDir())
	at.put("file", newText)
	s := mustOpenSource(t, at, "file")
	defer s.Close()
	must(t, os.Truncate(at.path("file"), 3))
	mustFail(t, s.ReadAt(make([]byte, 7), 0), disk.ErrSourceChanged)
	mustFail(t, s.ReadAt(make([]byte, 1), 3), disk.ErrSourceChanged)
	must(t, s.ReadAt(make([]byte, 3), 0))
	_, err := s.NextExtent(3) // not a hole, although there is no data
	mustFail(t, err, disk.ErrSourceChanged)
	for extent, err := range s.Extents() {
		if extent.Length == 0 {
			mustFail(t, err, disk.ErrSourceChanged)
		}
	}
}

func TestSourcesThatAreNone(t *testing.T) {
	at := onDisk(t, t.TempDir())
	pipe := at.path("pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	for path, words := range map[string]string{
		filepath.Join(at.folder, "missing"): "no such file", at.folder: "is a directory", pipe: "is not a regular file",
	} {
		_, err := disk.OpenSource(disk.OS, path)
		mustFail(t, err, disk.ErrSource, path, words)
	}
}

// Kernel files have a size of 0 or of one page.
func TestSourcesWhoseSizeIsNotThatOfTheirContent(t *testing.T) {
	for _, path := range []string{"/proc/version", "/sys/devices/system/cpu/online"} {
		want, err := os.ReadFile(path)
		must(t, err)
		s, err := disk.OpenSource(disk.OS, path)
		must(t, err)
		defer s.Close()
		file, err := s.Unsized()
		must(t, err)
		if file == nil {
			t.Fatalf("%s of %d bytes has a size", path, s.Info().Size)
		}
		if got, err := io.ReadAll(file); err != nil || string(got) != string(want) {
			t.Errorf("%s: read %q, error %v; want %q", path, got, err, want)
		}
		if s.Info().Size > 0 {
			mustFail(t, s.ReadAt(make([]byte, s.Info().Size), 0), disk.ErrSource, "although its size is")
		}
	}
}

func TestSourcesThatHaveASize(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put("full", newText)
		at.put("empty", "")
		dir, err := at.fs.OpenDir(at.folder)
		must(t, err)
		defer dir.Close()
		hole := mustCreate(t, dir, "hole")
		must(t, hole.Truncate(1<<40))
		must(t, hole.Close())
		for _, name := range []string{"full", "empty", "hole"} {
			s := mustOpenSource(t, at, name)
			defer s.Close()
			if file, err := s.Unsized(); file != nil || err != nil {
				t.Errorf("%s has no size, error %v", name, err)
			}
		}
	})
}

// mustOpenSparse opens a source of 4 MiB with newText at 1 MiB and holes elsewhere, if the file system supports them.
func mustOpenSparse(t *testing.T, at testDir) *disk.Source {
	t.Helper()
	dir, err := at.fs.OpenDir(at.folder)
	must(t, err)
	defer dir.Close()
	file := mustCreate(t, dir, "file")
	must(t, file.Truncate(4<<20))
	mustWrite(t, file, newText, 1<<20)
	must(t, file.Close())
	return mustOpenSource(t, at, "file")
}

func TestExtents(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		s := mustOpenSparse(t, at)
		defer s.Close()
		var data, all int64
		for extent, err := range s.Extents() {
			must(t, err)
			if extent.Offset != all || extent.Length <= 0 {
				t.Errorf("at %d there is %+v", all, extent)
			}
			all += extent.Length
			if !extent.Hole {
				data += extent.Length
			}
		}
		if all != 4<<20 || data < int64(len(newText)) || data > 1<<20 {
			t.Errorf("%d bytes of data are found of %d", data, all)
		}
		if _, err := s.NextExtent(4 << 20); err == nil {
			t.Error("there is something behind the end")
		}
	})
}

func TestHolesOfASource(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		s := mustOpenSparse(t, at)
		defer s.Close()
		for limit, want := range map[int64]bool{0: true, 2 << 20: true, 4 << 20: false} {
			if exceed, err := s.HolesExceed(limit); exceed != want || err != nil {
				t.Errorf("more than %d: %t, error %v", limit, exceed, err)
			}
		}
	})
}

func TestExtentsOfNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put("file", "")
		s := mustOpenSource(t, at, "file")
		defer s.Close()
		for extent, err := range s.Extents() {
			t.Errorf("an empty file has %+v, %v", extent, err)
		}
	})
}

func TestEveryOperationOfASourceFails(t *testing.T) {
	for n, fired := 0, true; fired; n++ {
		at, m := inMemory()
		at.put("file", newText)
		faulty := disktest.NewFaulty(m, disktest.FailAt(n, disktest.Fault{Err: unix.EIO}))
		err := readAll(faulty, at.path("file"))
		if fired = faulty.Fired(); fired && faulty.Trace()[n] != "close file" {
			mustFail(t, err, disk.ErrSource)
			mustBe(t, err, unix.EIO)
		} else {
			must(t, err)
		}
		if open := m.Handles(); open != 0 {
			t.Errorf("after a fault in %q %d handles are open", faulty.Trace()[n], open)
		}
	}
}

func readAll(on disk.FS, path string) error {
	s, err := disk.OpenSource(on, path)
	if err != nil {
		return err
	}
	defer s.Close()
	for extent, err := range s.Extents() {
		if err == nil {
			err = s.ReadAt(make([]byte, extent.Length), extent.Offset)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(s.Verify(nil))
}
