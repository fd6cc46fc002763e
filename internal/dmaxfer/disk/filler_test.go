package disk_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const pageSize = 4096

// fillable runs a test on file systems with a Filler: Memory and tmpfs.
func fillable(t *testing.T, test func(t *testing.T, at testDir)) {
	t.Run("memory", func(t *testing.T) {
		at, m := inMemory()
		m.Fills()
		test(t, at)
		if open := m.Handles(); open != 0 {
			t.Errorf("%d handles are still open", open)
		}
	})
	t.Run("tmpfs", func(t *testing.T) { test(t, onDisk(t, shared(t))) })
}

// mustFill returns a file's Filler.
func mustFill(t *testing.T, file disk.File, size int64) disk.Filler {
	t.Helper()
	filler, err := file.Filler(size)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("userfaultfd is not available: %v", err)
	}
	must(t, err)
	return filler
}

func TestFillerFillsWholePages(t *testing.T) {
	fillable(t, func(t *testing.T, at testDir) {
		dir, err := at.fs.OpenDir(at.folder)
		must(t, err)
		file := mustCreate(t, dir, "file")
		const size = 40 * pageSize
		filler := mustFill(t, file, size+100)
		must(t, file.Truncate(size+100))
		for _, chunk := range []struct{ offset, length, want int }{
			{0, 3 * pageSize, 3 * pageSize},
			{8 * pageSize, pageSize + 17, pageSize},
			{20 * pageSize, pageSize - 1, 0},
			{30*pageSize + 1, 2 * pageSize, 0},
		} {
			content := text(chunk.offset, chunk.length)
			if filled := filler.Fill([]byte(content), int64(chunk.offset)); filled != chunk.want {
				t.Errorf("of %d bytes at %d %d were filled, not %d", chunk.length, chunk.offset, filled, chunk.want)
			}
			mustRead(t, file, content[:chunk.want], int64(chunk.offset))
		}
		mustRead(t, file, strings.Repeat("\x00", 3*pageSize), 4*pageSize)
		if info := mustInfo(t, file); info.Size != size+100 || info.Allocated != 4*pageSize {
			t.Errorf("the file has %d bytes, %d of them allocated", info.Size, info.Allocated)
		}
		must(t, filler.Close())
		must(t, file.Close())
		must(t, dir.Close())
	})
}

// Fill does not replace existing pages; WriteAt does.
func TestFillerStopsAtWhatIsThere(t *testing.T) {
	at := onDisk(t, shared(t))
	dir, err := at.fs.OpenDir(at.folder)
	must(t, err)
	defer dir.Close()
	file := mustCreate(t, dir, "file")
	defer file.Close()
	filler := mustFill(t, file, 8*pageSize)
	defer filler.Close()
	must(t, file.Truncate(8*pageSize))
	mustWrite(t, file, text(1, 10), 2*pageSize)
	if filled := filler.Fill([]byte(text(2, 4*pageSize)), 0); filled != 2*pageSize {
		t.Errorf("%d bytes were filled", filled)
	}
	mustRead(t, file, text(1, 10), 2*pageSize)
	must(t, file.Truncate(pageSize))
	if filled := filler.Fill([]byte(text(2, pageSize)), 4*pageSize); filled != 0 {
		t.Errorf("%d bytes were filled beyond the end", filled)
	}
}

func TestFilesOnDiskAreNotFilled(t *testing.T) {
	at := onDisk(t, t.TempDir())
	var fs unix.Statfs_t
	must(t, unix.Statfs(at.folder, &fs))
	if fs.Type == unix.TMPFS_MAGIC {
		t.Skip("the temporary directory is in memory")
	}
	dir, err := at.fs.OpenDir(at.folder)
	must(t, err)
	defer dir.Close()
	file := mustCreate(t, dir, "file")
	defer file.Close()
	if _, err := file.Filler(pageSize); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("it ended with %v", err)
	}
}

// Two lanes write disjoint parts of a file, in chunks that do not end at page boundaries.
func TestFilledTargets(t *testing.T) {
	fillable(t, func(t *testing.T, at testDir) {
		for _, sparse := range []bool{false, true} {
			content := text(3, 200*pageSize+77)
			want := wanted(len(content))
			want.Fill, want.Sparse, want.Overwrite = true, sparse, true
			p := mustOpen(t, at, "file", want)
			must(t, p.Allocate(t.Context(), nil))
			if !p.Concurrent() {
				t.Skip("userfaultfd is not available")
			}
			if info := mustInfo(t, p.File()); info.Size != int64(len(content))+1 || info.Allocated != 0 {
				t.Errorf("%d bytes, and %d of them allocated beforehand", info.Size, info.Allocated)
			}
			writeWithLanes(t, p, content)
			must(t, p.Prepare(t.Context(), disk.Metadata{Size: int64(len(content))}, wire.DurabilityNone, nil))
			must(t, p.Commit(wire.DurabilityNone))
			at.mustContain(t, "file", content)
		}
	})
}

func writeWithLanes(t *testing.T, p *disk.Partial, content string) {
	const chunks = 50
	order := rand.New(rand.NewPCG(1, 2)).Perm(chunks)
	var lanes sync.WaitGroup
	for lane := range 2 {
		lanes.Go(func() {
			for i := lane; i < chunks; i += 2 {
				from, to := order[i]*4*pageSize, (order[i]+1)*4*pageSize
				if order[i] == chunks-1 {
					to = len(content)
				}
				if err := p.WriteAt([]byte(content[from:to]), int64(from)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	lanes.Wait()
}

// Free space is checked even if it is not reserved, and running out of it later is reported as usual.
func TestFilledTargetsOnAFullDisk(t *testing.T) {
	at := smallDisk(t)
	want := wanted(2 * diskSize)
	want.Fill = true
	mustFail(t, mustOpen(t, at, "file", want).Allocate(t.Context(), nil), disk.ErrNoSpace, "it needs", "are free")
	want.Size, want.Sparse = 2*diskSize, true
	p := mustOpen(t, at, "other", want)
	must(t, p.Allocate(t.Context(), nil))
	mustFail(t, p.WriteAt(make([]byte, 2*diskSize), 0), disk.ErrNoSpace)
}
