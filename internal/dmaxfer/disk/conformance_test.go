package disk_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// Tests that every FS must pass, so that what is tested in memory holds for the operating system.

func mustCreate(t *testing.T, dir disk.Dir, name string) disk.File {
	t.Helper()
	file, err := dir.Create(name)
	must(t, err)
	return file
}

// conform runs one test on every file system. Files opened by the given functions are closed before handles are
// counted.
func conform(t *testing.T, test func(t *testing.T, at testDir, dir disk.Dir, file disk.File)) {
	t.Helper()
	everywhere(t, func(t *testing.T, at testDir) {
		dir, err := at.fs.OpenDir(at.folder)
		must(t, err)
		file := mustCreate(t, dir, "file")
		test(t, at, dir, file)
		_ = file.Close() // the test may have closed it
		must(t, dir.Close())
	})
}

func mustInfo(t *testing.T, file disk.File) disk.Info {
	t.Helper()
	info, err := file.Info()
	must(t, err)
	return info
}

func mustWrite(t *testing.T, file disk.File, text string, offset int64) {
	t.Helper()
	n, err := file.WriteAt([]byte(text), offset)
	must(t, err)
	if n != len(text) {
		t.Errorf("%d of %d bytes were written", n, len(text))
	}
}

func mustRead(t *testing.T, file disk.File, want string, offset int64) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := file.ReadAt(got, offset); err != nil || string(got) != want {
		t.Errorf("at %d there is %q (%v), not %q", offset, got, err, want)
	}
}

func TestCreatedFileIsPrivateAndNew(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, file disk.File) {
		info := mustInfo(t, file)
		if info.Mode != 0o600 || info.Links != 1 || info.UID != at.fs.Self().UID || info.Size != 0 {
			t.Errorf("a new file is %+v", info)
		}
		_, err := dir.Create("file")
		mustBe(t, err, fs.ErrExist)
		found, err := dir.Stat("file")
		must(t, err)
		if !found.SameFile(info.Identity) {
			t.Errorf("%+v and %+v are of one file", found, info)
		}
		must(t, dir.MayCreate())
	})
}

func TestWhatIsAbsent(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, _ disk.File) {
		_, openErr := dir.Open("absent", false)
		_, statErr := dir.Stat("absent")
		_, fileErr := at.fs.Open(at.path("absent"))
		_, dirErr := at.fs.OpenDir(at.path("absent"))
		_, pathErr := at.fs.Stat(at.path("absent"))
		for _, err := range []error{
			openErr, statErr, fileErr, dirErr, pathErr,
			dir.Remove("absent"), dir.Rename("absent", "x"), dir.RenameIfAbsent("absent", "x"), dir.Link("absent", "x"),
		} {
			mustBe(t, err, fs.ErrNotExist)
		}
		_, err := dir.Create(strings.Repeat("n", 256))
		mustBe(t, err, unix.ENAMETOOLONG)
	})
}

func TestReadsAndWritesAreWhole(t *testing.T) {
	conform(t, func(t *testing.T, _ testDir, _ disk.Dir, file disk.File) {
		mustWrite(t, file, newText, 5000)
		mustRead(t, file, newText, 5000)
		mustRead(t, file, strings.Repeat("\x00", 5000), 0)
		got := make([]byte, 10)
		n, err := file.ReadAt(got, 5000+int64(len(newText))-3)
		if n != 3 || !errors.Is(err, io.EOF) {
			t.Errorf("at the end there are %d bytes, %v", n, err)
		}
		if n, err := file.ReadAt(got, 1<<40); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("behind the end there are %d bytes, %v", n, err)
		}
	})
}

func TestReadsAndWritesInOrder(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, file disk.File) {
		for _, chunk := range []string{newText[:5000], newText[5000:]} {
			if n, err := file.Write([]byte(chunk)); n != len(chunk) || err != nil {
				t.Errorf("%d bytes written, %v", n, err)
			}
		}
		again, err := dir.Open("file", true)
		must(t, err)
		got := make([]byte, 5000)
		var all []byte
		for err == nil {
			var n int
			n, err = again.Read(got)
			all = append(all, got[:n]...)
		}
		if string(all) != newText || !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes were read, %v", len(all), err)
		}
		_, err = again.WriteAt([]byte("x"), 0)
		mustBe(t, err, unix.EBADF)
		must(t, again.Close())
	})
}

func TestNamesAreGivenAndTaken(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, _ disk.File) {
		at.put("other", "other")
		mustBe(t, dir.RenameIfAbsent("other", "file"), fs.ErrExist)
		mustBe(t, dir.Link("other", "file"), fs.ErrExist)
		at.mustHold(t, "file", "other")
		must(t, dir.Link("other", "second"))
		must(t, dir.Rename("other", "file"))
		at.mustContain(t, "file", "other")
		must(t, dir.Rename("file", "second")) // both names are one file, so there is no effect
		at.mustHold(t, "file", "second")
		must(t, dir.Remove("second"))
		must(t, dir.RenameIfAbsent("file", "a"))
		must(t, dir.Sync())
		at.mustHold(t, "a")
	})
}

func TestFilesWithoutNames(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, named disk.File) {
		mustBe(t, dir.GiveName(named, "other"), errors.ErrUnsupported)
		file, err := dir.CreateUnnamed("shown", 0o600, false)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip("this file system has no unnamed files")
		}
		must(t, err)
		mustWrite(t, file, newText, 0)
		must(t, file.Sync())
		info := mustInfo(t, file)
		if info.Links != 0 || info.Mode != 0o600 || info.UID != at.fs.Self().UID ||
			!strings.HasSuffix(file.Name(), at.path("shown")) {
			t.Errorf("%s is %+v", file.Name(), info)
		}
		at.mustHold(t, "file")
		mustBe(t, dir.GiveName(file, "file"), fs.ErrExist)
		held, err := file.Hold()
		must(t, err)
		must(t, file.Close())
		must(t, dir.GiveName(held, "name"))
		found, err := dir.Stat("name")
		must(t, err)
		if !found.SameFile(info.Identity) || found.Links != 1 || found.Modified != info.Modified {
			t.Errorf("%+v became %+v", info, found)
		}
		must(t, held.Close())
		at.mustContain(t, "name", newText)
		lost, err := dir.CreateUnnamed("lost", 0o600, false)
		must(t, err)
		must(t, lost.Close())
		at.mustHold(t, "file", "name")
	})
}

func TestLocks(t *testing.T) {
	conform(t, func(t *testing.T, _ testDir, dir disk.Dir, file disk.File) {
		must(t, file.Lock())
		must(t, file.Lock())
		other, err := dir.Open("file", false)
		must(t, err)
		mustBe(t, other.Lock(), disk.ErrLocked)
		held, err := file.Hold()
		must(t, err)
		must(t, file.Close())
		mustBe(t, other.Lock(), disk.ErrLocked)
		must(t, held.Close())
		must(t, other.Lock())
		must(t, other.Close())
	})
}

func TestAttributes(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, _ disk.Dir, file disk.File) {
		at0 := disk.Timestamp{Sec: 1_234_567_890, Nsec: 123_456_789}
		must(t, file.SetMode(0o4751))
		must(t, file.SetModified(at0))
		self := mustInfo(t, file)
		must(t, file.SetOwner(self.UID, self.GID))
		info := mustInfo(t, file)
		if info.Mode != 0o751 || info.Modified != at0 {
			t.Errorf("the file is now %+v", info)
		}
		before := disk.Timestamp{Sec: -5, Nsec: 1}
		must(t, file.SetModified(before))
		if got := mustInfo(t, file).Modified; got != before {
			t.Errorf("%+v became %+v", before, got)
		}
	})
}

func TestExtendedAttributes(t *testing.T) {
	conform(t, func(t *testing.T, _ testDir, _ disk.Dir, file disk.File) {
		want := []disk.Xattr{
			{Name: "user.a", Value: []byte{}},
			{Name: "user.b", Value: bytes.Repeat([]byte("v"), 2000)},
		}
		for _, attribute := range slices.Backward(want) {
			err := file.SetXattr(attribute)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip("this file system has no extended attributes")
			}
			must(t, err)
		}
		found, err := file.Xattrs()
		must(t, err)
		found = slices.DeleteFunc(found, func(x disk.Xattr) bool { return !disk.MayPreserve(x.Name, false) })
		if len(found) != 2 || found[0].Name != "user.a" || !bytes.Equal(found[1].Value, want[1].Value) {
			t.Errorf("of two attributes there are %d", len(found))
		}
	})
}

func TestClosedFile(t *testing.T) {
	conform(t, func(t *testing.T, _ testDir, _ disk.Dir, file disk.File) {
		must(t, file.Close())
		_, readErr := file.ReadAt(make([]byte, 1), 0)
		_, infoErr := file.Info()
		_, holdErr := file.Hold()
		for _, err := range []error{
			readErr, infoErr, holdErr, file.Sync(), file.SetMode(0), file.Lock(), file.Close(),
		} {
			mustBe(t, err, fs.ErrClosed)
		}
		file.DropCache(0, 0)
	})
}

func TestStatOfPaths(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, file disk.File) {
		at.link("file", "link")
		at.link("link", "link of a link")
		at.link(".", "folder")
		at.link("absent", "dangling")
		at.link("loop", "loop")
		for _, name := range []string{
			"file", "./file", "link", "link of a link", "folder/file", "folder/../" + path.Base(at.folder) + "/file",
		} {
			info, err := at.fs.Stat(at.path(name))
			must(t, err)
			if !info.SameFile(mustInfo(t, file).Identity) || !info.Mode.IsRegular() {
				t.Errorf("%s is %+v", name, info)
			}
			opened, err := at.fs.Open(at.path(name))
			must(t, err)
			must(t, opened.Close())
		}
		for _, name := range []string{"", "folder", "folder/."} {
			info, err := at.fs.Stat(at.path(name))
			must(t, err)
			if !info.Mode.IsDir() {
				t.Errorf("%q is %v", name, info.Mode)
			}
		}
		for name, want := range map[string]error{
			"dangling": fs.ErrNotExist, "loop": unix.ELOOP, "absent/../file": fs.ErrNotExist,
			"file/../file": unix.ENOTDIR, "file/": unix.ENOTDIR, "file/.": unix.ENOTDIR,
		} {
			_, err := at.fs.Stat(at.path(name))
			mustBe(t, err, want)
		}
	})
}

func TestDirectoriesFromDirectories(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, file disk.File) {
		at.link("..", "up")
		base := path.Base(at.folder)
		for _, path := range []string{".", "./", at.linkTo("."), "../" + base, "up/" + base} {
			same, err := dir.OpenDir(path)
			must(t, err)
			found, err := same.Stat("file")
			must(t, err)
			if !found.SameFile(mustInfo(t, file).Identity) {
				t.Errorf("%s is another directory", path)
			}
			must(t, same.Close())
		}
		for path, want := range map[string]error{
			"": fs.ErrNotExist, "absent": fs.ErrNotExist, "file": unix.ENOTDIR, "file/..": unix.ENOTDIR,
		} {
			_, err := dir.OpenDir(path)
			mustBe(t, err, want)
		}
		info, err := dir.Info()
		must(t, err)
		found, err := dir.Stat(".")
		must(t, err)
		if !info.Mode.IsDir() || info.Mode&fs.ModeSticky != 0 || found.Mode != info.Mode || found.UID != info.UID {
			t.Errorf("the directory is %+v, and %+v", info, found)
		}
	})
}

func TestSymlinksAreReadAndNotOpened(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, _ disk.File) {
		at.link("some/../text", "link")
		link, err := dir.ReadLink("link")
		must(t, err)
		if link.Text != "some/../text" || link.Mode&fs.ModeSymlink == 0 || link.UID != at.fs.Self().UID {
			t.Errorf("the symlink is %+v", link)
		}
		_, err = dir.ReadLink("file")
		mustBe(t, err, unix.EINVAL)
		_, err = dir.ReadLink("absent")
		mustBe(t, err, fs.ErrNotExist)
		_, err = dir.Open("link", true)
		mustBe(t, err, unix.ELOOP)
		_, err = dir.Create("link")
		mustBe(t, err, fs.ErrExist)
		must(t, dir.Remove("link"))
		at.mustHold(t, "file")
	})
}

// TestContent compares random operations with those on a slice of bytes. Holes and data must cover the file, and holes
// must be zeros.
func TestContent(t *testing.T) {
	conform(t, func(t *testing.T, _ testDir, dir disk.Dir, file disk.File) {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		model, other := []byte{}, text(7, 30_000)
		from, err := dir.Create("other")
		must(t, err)
		defer from.Close()
		mustWrite(t, from, other, 0)
		for range 300 {
			model = mutate(t, random, file, model)
			if random.IntN(4) == 0 {
				model = mustCopy(t, random, file, model, from, other)
			}
			got := make([]byte, len(model)+1)
			n, err := file.ReadAt(got, 0)
			if !errors.Is(err, io.EOF) || !bytes.Equal(got[:n], model) {
				t.Fatalf("seed %d: %d bytes are not the %d of the model (%v)", seed, n, len(model), err)
			}
			mustTile(t, file, model)
		}
		must(t, file.Sync())
		must(t, file.SyncRange(0, int64(len(model))))
	})
}

func mutate(t *testing.T, random *rand.Rand, file disk.File, model []byte) []byte {
	t.Helper()
	offset, length := random.IntN(40_000), 1+random.IntN(20_000)
	grow := func(to int) { model = append(model, make([]byte, max(to-len(model), 0))...) }
	switch random.IntN(5) {
	case 0, 1:
		grow(offset + length)
		copy(model[offset:], text(length, length))
		mustWrite(t, file, text(length, length), int64(offset))
	case 2:
		must(t, file.Truncate(int64(offset)))
		grow(offset)
		model = model[:offset:offset]
	case 3:
		if err := file.PunchHole(int64(offset), int64(length)); !errors.Is(err, errors.ErrUnsupported) {
			must(t, err)
			clear(model[min(offset, len(model)):min(offset+length, len(model))])
		}
	case 4:
		if err := file.Allocate(int64(offset), int64(length)); !errors.Is(err, errors.ErrUnsupported) {
			must(t, err)
			grow(offset + length)
		}
	}
	return model
}

// mustCopy copies a range of another file, which may end beyond that.
func mustCopy(t *testing.T, random *rand.Rand, file disk.File, model []byte, from disk.File, other string) []byte {
	t.Helper()
	offset, length := random.IntN(len(other)), 1+random.IntN(20_000)
	end := min(offset+length, len(other))
	n, err := file.CopyFrom(from, int64(offset), int64(length))
	if err != nil || n != int64(end-offset) {
		t.Fatalf("%d bytes at %d: copied %d: %v", length, offset, n, err)
	}
	model = append(model, make([]byte, max(end-len(model), 0))...)
	copy(model[offset:], other[offset:end])
	return model
}

func mustTile(t *testing.T, file disk.File, model []byte) {
	t.Helper()
	size := int64(len(model))
	for at := int64(0); at < size; {
		data, err := file.NextData(at)
		if errors.Is(err, io.EOF) {
			data, err = size, nil
		}
		must(t, err)
		if data > at {
			if len(bytes.TrimLeft(model[at:data], "\x00")) > 0 {
				t.Fatalf("the hole from %d to %d has data", at, data)
			}
			at = data
			continue
		}
		hole, err := file.NextHole(at)
		must(t, err)
		if hole <= at || hole > size {
			t.Fatalf("the data from %d to %d does not fit %d", at, hole, size)
		}
		at = hole
	}
	if _, err := file.NextData(size); !errors.Is(err, io.EOF) {
		t.Errorf("at the end there is data: %v", err)
	}
	if _, err := file.NextHole(size); !errors.Is(err, io.EOF) {
		t.Errorf("at the end there is a hole: %v", err)
	}
}
