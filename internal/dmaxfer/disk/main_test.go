package disk_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// holdVariable makes the test binary a process that receives the target named by the variable until its stdin ends.
const holdVariable = "DMA_COPY_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdVariable); path != "" {
		hold(path)
		return
	}
	if path := os.Getenv(fillVariable); path != "" {
		fill(path)
		return
	}
	os.Exit(m.Run())
}

func hold(path string) {
	p, err := disk.OpenPartial(disk.OS, path, wanted(len(newText)))
	fmt.Println("held", err)
	_, _ = io.Copy(io.Discard, os.Stdin) // until stdin ends
	if err == nil {
		p.Discard()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// mustFail checks for an Error of this kind, with these words in its cause, and a next step.
func mustFail(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	var failed *disk.Error
	if !errors.As(err, &failed) || !errors.Is(err, kind) {
		t.Fatalf("got %v, want an Error about the %v", err, kind)
	}
	if failed.Cause == "" || failed.Next == "" {
		t.Errorf("%+v says too little", failed)
	}
	for _, word := range words {
		if !strings.Contains(failed.Cause, word) {
			t.Errorf("%q does not say %q", failed.Cause, word)
		}
	}
}

// testDir is a directory on some file system.
type testDir struct {
	fs     disk.FS
	folder string
	put    func(name, text string)
	get    func(name string) (text string, found bool)
	link   func(text, name string) // creates a symlink
}

func (p testDir) path(name string) string { return p.folder + "/" + name }

// linkTo returns a text with which a symlink of the directory leads to an entry: an absolute path if its file system
// has them.
func (p testDir) linkTo(name string) string {
	if filepath.IsAbs(p.folder) {
		return p.path(name)
	}
	return name
}

// names returns the directory's entries.
func (p testDir) names(t *testing.T) []string {
	t.Helper()
	dir, err := p.fs.OpenDir(p.folder)
	must(t, err)
	defer dir.Close()
	names, err := disk.Names(dir)
	must(t, err)
	return names
}

func (p testDir) mustHold(t *testing.T, names ...string) {
	t.Helper()
	if found := p.names(t); !slices.Equal(found, names) {
		t.Errorf("%s holds %q, not %q", p.folder, found, names)
	}
}

func (p testDir) mustContain(t *testing.T, name, want string) {
	t.Helper()
	if got, found := p.get(name); !found || got != want {
		t.Errorf("%s has %d bytes (found %t) that are not the %d wanted", name, len(got), found, len(want))
	}
}

func inMemory() (testDir, *disktest.Memory) {
	m := disktest.NewMemory("/there")
	return memoryPlace(m), m
}

func memoryPlace(m *disktest.Memory) testDir {
	return testDir{
		fs: m, folder: "/there",
		put:  func(name, text string) { m.Put("/there/"+name, text) },
		get:  func(name string) (string, bool) { return m.Get("/there/" + name) },
		link: func(text, name string) { m.Symlink(text, "/there/"+name, m.Self().UID) },
	}
}

func onDisk(t *testing.T, folder string) testDir {
	return testDir{
		fs: disk.OS, folder: folder,
		put: func(name, text string) { must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)) },
		get: func(name string) (string, bool) {
			text, err := os.ReadFile(filepath.Join(folder, name))
			return string(text), err == nil
		},
		link: func(text, name string) { must(t, os.Symlink(text, filepath.Join(folder, name))) },
	}
}

// everywhere runs a test on each file system.
func everywhere(t *testing.T, test func(t *testing.T, at testDir)) {
	t.Run("memory", func(t *testing.T) {
		at, m := inMemory()
		test(t, at)
		if open := m.Handles(); open != 0 {
			t.Errorf("%d handles are still open", open)
		}
	})
	t.Run("disk", func(t *testing.T) { test(t, onDisk(t, t.TempDir())) })
	t.Run("tmpfs", func(t *testing.T) { test(t, onDisk(t, shared(t))) })
	inRoots(t, test)
}

// inRoots runs a test in a directory of a Root on each file system.
func inRoots(t *testing.T, test func(t *testing.T, at testDir)) {
	t.Run("root", func(t *testing.T) { test(t, inRoot(t, onDisk(t, filepath.Join(t.TempDir(), "inner")))) })
	t.Run("root, old kernel", func(t *testing.T) {
		disk.OldKernel(t)
		test(t, inRoot(t, onDisk(t, filepath.Join(shared(t), "inner"))))
	})
	t.Run("root in memory", func(t *testing.T) {
		m := disktest.NewMemory("/", "/there")
		at := inRoot(t, memoryPlace(m))
		test(t, at)
		if open := m.Handles(); open != 1 { // the root
			t.Errorf("%d handles are still open", open)
		}
	})
}

// inRoot returns a directory, which is created if it is not in memory, as one of a Root on the directory above it.
func inRoot(t *testing.T, at testDir) testDir {
	t.Helper()
	if at.fs == disk.OS {
		must(t, os.Mkdir(at.folder, 0o700))
	}
	root, err := disk.OpenRoot(at.fs, filepath.Dir(at.folder))
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	at.fs, at.folder = root, filepath.Base(at.folder)
	return at
}

// shared returns a directory on tmpfs.
func shared(t *testing.T) string {
	const parent = "/dev/shm"
	if unix.Access(parent, unix.W_OK) != nil {
		t.Skip("there is no " + parent)
	}
	folder, err := os.MkdirTemp(parent, "dma-copy-test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(folder)) })
	return folder
}

// text returns size bytes derived from seed, none of them zero.
func text(seed, size int) string {
	made := make([]byte, size)
	for i := range made {
		made[i] = byte(1 + (i*7+i/253+seed*31)%255)
	}
	return string(made)
}

var (
	oldText = text(1, 9000)
	newText = text(2, 3*4096+100)

	newMeta = disk.Metadata{Size: int64(len(newText))}
)

var durabilities = []disk.Durability{wire.DurabilityNone, wire.DurabilityFile, wire.DurabilityFull}

func wanted(size int) disk.Wanted {
	return disk.Wanted{
		Size: int64(size), Known: true, Modified: disk.Timestamp{Sec: 1_000_000_000, Nsec: 5},
		Identity: [16]byte{1, 2, 3}, Digest: 1, Resume: true,
	}
}

func mustOpen(t *testing.T, at testDir, name string, want disk.Wanted) *disk.Partial {
	t.Helper()
	p, err := disk.OpenPartial(at.fs, at.path(name), want)
	must(t, err)
	t.Cleanup(p.Discard)
	return p
}

// receive writes text and prepares the target.
func receive(t *testing.T, p *disk.Partial, text string, durability disk.Durability) error {
	if err := write(t, p, text); err != nil {
		return err
	}
	return p.Prepare(t.Context(), disk.Metadata{Size: int64(len(text))}, durability, nil)
}

// write writes the part of text that was not resumed, in two chunks.
func write(t *testing.T, p *disk.Partial, text string) error {
	if err := p.Allocate(t.Context(), nil); err != nil {
		return err
	}
	from := int(p.Resumable())
	for _, end := range []int{from + (len(text)-from)/2, len(text)} {
		if err := p.WriteAt([]byte(text[from:end]), int64(from)); err != nil {
			return err
		}
		if err := p.Advance(int64(end)); err != nil {
			return err
		}
		from = end
	}
	return nil
}
