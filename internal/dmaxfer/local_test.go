//go:build cgo

package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// local is a local copy in a directory of its own, and what it reported.
type local struct {
	Options
	t      *testing.T
	dir    string
	target string
	inRoot bool // FS is a Root of dir
	events []job.Event
}

// newLocal returns a local copy on a function of the host. At the end of the test nothing of the device may be open.
func newLocal(t *testing.T) *local {
	t.Helper()
	l := &local{t: t, dir: t.TempDir()}
	l.Options = Options{
		Options: role.Options{
			Chunk: testChunk, Depth: 3, IdleTimeout: 30 * time.Second, Log: strictLog(t), Digest: digest.CRC32C,
			Durability: wire.DurabilityFull, Notify: func(e job.Event) { l.events = append(l.events, e) },
		},
		Device: docatest.OpenSides(t, "").Host, File: filepath.Join(l.dir, "source"),
	}
	l.target = filepath.Join(l.dir, "target")
	return l
}

func (l *local) run() (job.Summary, error) { return l.runUntil(l.t.Context()) }

func (l *local) runUntil(ctx context.Context) (job.Summary, error) {
	l.events = nil
	o := l.Options
	o.File = l.named(l.File)
	return RunLocal(ctx, o, l.named(l.target))
}

func (l *local) mustRun() job.Summary {
	l.t.Helper()
	summary, err := l.run()
	must(l.t, err)
	if summary.Path != l.named(l.File) || summary.Target != l.named(l.target) || summary.Protocol != wire.Native {
		l.t.Errorf("the summary is %+v", summary)
	}
	return summary
}

// mustFail runs a copy that has to fail with an error of that kind, whose text contains the given one, and without a
// word about sides.
func (l *local) mustFail(kind error, text string) error {
	l.t.Helper()
	_, err := l.run()
	l.mustBeCause(err, kind, text)
	return err
}

func (l *local) mustBeCause(err, kind error, text string) {
	l.t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		l.t.Fatalf("got %v, want %v with %q", err, kind, text)
	}
	for _, word := range []string{"the host", "the DPU", "other side", "both sides", "peer", "\n"} {
		if strings.Contains(err.Error(), word) {
			l.t.Errorf("%q contains %q", err, word)
		}
	}
}

// eventsOf returns the events of one type.
func eventsOf[T job.Event](l *local) (found []T) {
	for _, e := range l.events {
		if of, is := e.(T); is {
			found = append(found, of)
		}
	}
	return found
}

func TestLocalFile(t *testing.T) {
	for _, size := range []int{0, 1, testChunk, testChunk + 1, 3<<20 + 17} {
		t.Run(fmt.Sprint(size, " bytes"), func(t *testing.T) { newLocal(t).copiesFile(t, size) })
	}
}

// In a file system that is one directory everything is as in that of the operating system.
func TestLocalInARoot(t *testing.T) {
	t.Run("file", func(t *testing.T) { newLocalInRoot(t).copiesFile(t, 3<<20+17) })
	t.Run("existing file", func(t *testing.T) { newLocalInRoot(t).findsTarget(t) })
	t.Run("tree", func(t *testing.T) { newLocalInRoot(t).copiesTree(t) })
	t.Run("resume", func(t *testing.T) { newLocalInRoot(t).resumes(t) })
}

// newLocalInRoot returns a local copy of which no path leads out of its directory.
func newLocalInRoot(t *testing.T) *local {
	t.Helper()
	l := newLocal(t)
	root, err := disk.OpenRoot(disk.OS, l.dir)
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	l.FS, l.inRoot = root, true
	return l
}

// named returns a path as the copy has it.
func (l *local) named(path string) string {
	if l.inRoot {
		return filepath.Base(path)
	}
	return path
}

func (l *local) copiesFile(t *testing.T, size int) {
	want := content(size)
	jobtest.WriteFile(t, l.File, want)
	summary := l.mustRun()
	jobtest.MustContain(t, l.target, want)
	jobtest.MustHold(t, l.dir, "source", "target")
	if summary.Size != int64(size) || summary.Sum.Algorithm() != digest.CRC32C || summary.UpToDate ||
		summary.Durability != wire.DurabilityFull {
		t.Errorf("the summary is %+v", summary)
	}
	if known, planned := eventsOf[job.PeerKnown](l), eventsOf[job.Planned](l); len(known) != 1 || len(planned) != 1 {
		t.Errorf("%d peers were met and %d copies planned, instead of one", len(known), len(planned))
	}
	shares := summary.Shares
	if size > 0 && (shares[pump.Reading] == 0 || shares[pump.Writing] == 0 || shares[pump.Peer] != 0) {
		t.Errorf("the lanes of both sides have spent %+v", shares)
	}
}

// What is there already is not copied again, and is replaced only if the user wants it.
func TestLocalTargetExists(t *testing.T) { newLocal(t).findsTarget(t) }

func (l *local) findsTarget(t *testing.T) {
	jobtest.WriteFile(t, l.File, content(3*testChunk))
	l.mustRun()
	if summary := l.mustRun(); !summary.UpToDate || summary.Size != 3*testChunk {
		t.Errorf("a second copy is %+v", summary)
	}
	jobtest.WriteFile(t, l.target, "something else")
	l.mustFail(job.ErrSource, l.named(l.target)+" exists and differs from "+l.named(l.File)+": use --overwrite")
	jobtest.MustContain(t, l.target, "something else")
	l.Overwrite, l.Backup = true, true
	l.mustRun()
	jobtest.MustContain(t, l.target, content(3*testChunk))
	jobtest.MustContain(t, l.target+"~", "something else")
	l.Overwrite, l.RefuseSame = false, true
	l.mustFail(job.ErrSource, l.named(l.target)+" exists: use --overwrite")
}

// makeSourceTree makes the source a tree with entries of every kind.
func (l *local) makeSourceTree() {
	l.t.Helper()
	for _, directory := range []string{"", "a", "a/b", "empty"} {
		must(l.t, os.Mkdir(filepath.Join(l.File, directory), 0o750))
	}
	jobtest.WriteFile(l.t, filepath.Join(l.File, "a/small"), "small")
	jobtest.WriteFile(l.t, filepath.Join(l.File, "a/b/large"), content(20*testChunk+5))
	must(l.t, os.Link(filepath.Join(l.File, "a/small"), filepath.Join(l.File, "again")))
	must(l.t, os.Symlink("a/small", filepath.Join(l.File, "link")))
}

func TestLocalTree(t *testing.T) { newLocal(t).copiesTree(t) }

func (l *local) copiesTree(t *testing.T) {
	l.makeSourceTree()
	l.HardLinks = true
	tree := l.mustRun().Tree
	if tree.Files != 2 || tree.Directories != 4 || tree.Symlinks != 1 || tree.HardLinks != 1 || tree.Failed != 0 {
		t.Errorf("copied %+v", tree)
	}
	if done := eventsOf[job.FileDone](l); len(done) != 8 {
		t.Errorf("%d entries were reported, not each once: %+v", len(done), done)
	}
	jobtest.MustContain(t, filepath.Join(l.target, "a/small"), "small")
	jobtest.MustContain(t, filepath.Join(l.target, "a/b/large"), content(20*testChunk+5))
	small, err := os.Stat(filepath.Join(l.target, "a/small"))
	must(t, err)
	again, err := os.Lstat(filepath.Join(l.target, "again"))
	must(t, err)
	link, err := os.Readlink(filepath.Join(l.target, "link"))
	must(t, err)
	if !os.SameFile(small, again) || link != "a/small" {
		t.Errorf("the hard link is %v, and the symlink points to %s", again, link)
	}
	jobtest.MustHold(t, l.dir, "source", "target")

	if summary := l.mustRun(); !summary.UpToDate || summary.Tree.Unchanged != 8 {
		t.Errorf("a second copy is %+v with %+v", summary, summary.Tree)
	}
	jobtest.WriteFile(t, filepath.Join(l.File, "a/b/large"), "not large any more")
	jobtest.WriteFile(t, filepath.Join(l.File, "a/added"), "new")
	summary, err := l.run()
	if !errors.Is(err, job.ErrSomeFailed) || summary.Tree.Files != 1 || summary.Tree.Unchanged != 7 ||
		len(summary.Tree.Failures) != 1 || !strings.Contains(summary.Tree.Failures[0].Err.Error(), "already exists") {
		t.Errorf("what is missing is added: %+v, %v", summary.Tree, err)
	}
	jobtest.MustContain(t, filepath.Join(l.target, "a/b/large"), content(20*testChunk+5))
	jobtest.MustContain(t, filepath.Join(l.target, "a/added"), "new")
	must(t, os.Remove(filepath.Join(l.target, "a/small")))
	must(t, os.Remove(filepath.Join(l.target, "again")))
	l.IgnoreExisting = true
	if tree := l.mustRun().Tree; tree.Files != 1 || tree.HardLinks != 1 || tree.Existing != 3 || tree.Unchanged != 4 {
		t.Errorf("what exists is left: %+v", tree)
	}
	jobtest.MustContain(t, filepath.Join(l.target, "a/b/large"), content(20*testChunk+5))
	must(t, os.Remove(filepath.Join(l.target, "again")))
	summary, err = l.run()
	if !errors.Is(err, job.ErrSomeFailed) || summary.Tree.Failed != 1 { // a name of what exists
		t.Errorf("a hard link to what was left: %+v, %v", summary.Tree, err)
	}
	l.Overwrite, l.IgnoreExisting = true, false
	if tree := l.mustRun().Tree; tree.Files != 1 || tree.HardLinks != 1 || tree.Unchanged != 7 {
		t.Errorf("what differs is replaced: %+v", tree)
	}
	jobtest.MustContain(t, filepath.Join(l.target, "a/b/large"), "not large any more")
}

// A dry run plans everything and changes nothing.
func TestLocalDryRun(t *testing.T) {
	l := newLocal(t)
	l.makeSourceTree()
	l.DryRun = true
	if summary := l.mustRun(); !summary.DryRun || summary.Tree.Files != 3 {
		t.Errorf("planned %+v with %+v", summary, summary.Tree)
	}
	jobtest.MustHold(t, l.dir, "source")
}

func TestLocalSparse(t *testing.T) {
	l := newLocal(t)
	file, err := os.Create(l.File)
	must(t, err)
	must(t, file.Truncate(8<<20))
	_, err = file.WriteAt([]byte("data"), 4<<20)
	must(t, err)
	must(t, file.Close())
	l.mustRun()
	info, err := disk.OS.Stat(l.target)
	must(t, err)
	if info.Size != 8<<20 || info.Allocated > 1<<20 {
		t.Errorf("the target has %d bytes, of which %d take space", info.Size, info.Allocated)
	}
	target, err := os.ReadFile(l.target)
	must(t, err)
	if string(target[4<<20:4<<20+4]) != "data" {
		t.Error("the target lacks the data")
	}
}

// A limit of the settings is reported for the copy, not for its sides.
func TestLocalHoles(t *testing.T) {
	l := newLocal(t)
	jobtest.WriteFile(t, l.File, "")
	must(t, os.Truncate(l.File, 8<<20))
	l.MaxHoles, l.Digest = 1<<20, digest.SHA256
	l.mustFail(job.ErrLimit, "use --digest crc32c, or raise --max-holes")
	l.Digest, l.Readback = digest.CRC32C, true
	l.mustFail(job.ErrLimit, "leave it out, or raise --max-holes")
	jobtest.MustHold(t, l.dir, "source")
}

var errStop = errors.New("stopped")

// A copy that the user stops leaves no target, and the next one continues.
func TestLocalResume(t *testing.T) { newLocal(t).resumes(t) }

func (l *local) resumes(t *testing.T) {
	want := content(interruptedSize)
	jobtest.WriteFile(t, l.File, want)
	l.Progress = &job.Progress{}
	ctx, stop := context.WithCancelCause(t.Context())
	paced := make(chan struct{})
	go func() {
		defer close(paced)
		for l.Progress.Sample().Moved < interruptedAfter {
			time.Sleep(time.Millisecond)
		}
		stop(errStop)
	}()
	l.Bandwidth = interruptedRate
	_, err := l.runUntil(ctx)
	<-paced
	l.mustBeCause(err, errStop, "stopped")
	kept := eventsOf[job.Kept](l)
	if len(kept) != 1 || kept[0].Bytes == 0 {
		t.Fatalf("the copy has kept %+v", kept)
	}
	if _, err := os.Stat(l.target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target of a stopped copy: %v", err)
	}
	l.Bandwidth, l.Progress = 0, nil
	if summary := l.mustRun(); summary.Resumed != kept[0].Bytes {
		t.Errorf("%d bytes were resumed, and %d kept", summary.Resumed, kept[0].Bytes)
	}
	jobtest.MustContain(t, l.target, want)
	jobtest.MustHold(t, l.dir, "source", "target")
}

// A copy that was stopped before it began does nothing.
func TestLocalStoppedEarly(t *testing.T) {
	l := newLocal(t)
	jobtest.WriteFile(t, l.File, content(testChunk))
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errStop)
	_, err := l.runUntil(ctx)
	l.mustBeCause(err, errStop, "stopped")
	jobtest.MustHold(t, l.dir, "source")
}

// What the engine corrupts is copied again, and reported once. The first copy is the one that leaves bytes out: a later
// one may be the repetition of another, and find them in its buffer.
func TestLocalCorruption(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_FAULTS", "drop=1,flip=5,duplicate=7")
	l := newLocal(t)
	l.Log = comchtest.LogOnFailure(t, "copy")
	want := content(20 * testChunk)
	jobtest.WriteFile(t, l.File, want)
	summary := l.mustRun()
	jobtest.MustContain(t, l.target, want)
	if seen := eventsOf[job.Retransmitted](l); summary.Retries != 3 || len(seen) != 3 {
		t.Errorf("of 3 corruptions %d were counted and %d reported", summary.Retries, len(seen))
	}
}

func TestLocalCorruptionThatStays(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_FAULTS", "flip=1,flip=2,flip=3,flip=4")
	l := newLocal(t)
	l.Log, l.Depth = comchtest.LogOnFailure(t, "copy"), 1
	jobtest.WriteFile(t, l.File, content(4*testChunk))
	l.mustFail(job.ErrDigest, "checksum mismatch")
	if _, err := os.Stat(l.target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target: %v", err)
	}
}

func TestLocalEngineFails(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_FAULTS", "refuse=doca_dma_task_memcpy_alloc_init:3:DRIVER")
	l := newLocal(t)
	jobtest.WriteFile(t, l.File, content(20*testChunk))
	l.mustFail(doca.CodeDriver, "doca_dma_task_memcpy_alloc_init")
	if _, err := os.Stat(l.target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target: %v", err)
	}
}

// Memory that cannot be registered is an error of the side that wants it, whichever that is.
func TestLocalMemoryFails(t *testing.T) {
	for call := 1; call <= 3; call++ {
		t.Run(fmt.Sprint("registration ", call), func(t *testing.T) {
			t.Setenv("DMA_COPY_SOFT_FAULTS", fmt.Sprintf("refuse=doca_mmap_start:%d:NO_MEMORY", call))
			l := newLocal(t)
			jobtest.WriteFile(t, l.File, content(20*testChunk))
			l.mustFail(doca.CodeNoMemory, "doca_mmap_start")
			if _, err := os.Stat(l.target); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the target: %v", err)
			}
		})
	}
}

// Whichever call to the file system fails, on either side: what has its name is complete, one cause is reported, and
// no file stays open.
func TestLocalFileCallsFail(t *testing.T) {
	l := newLocal(t)
	l.failEachCall(20, map[string]string{"": content(3*testChunk + 1)})
}

func TestLocalFileCallsFailInATree(t *testing.T) {
	l := newLocal(t)
	l.failEachCall(40, map[string]string{"/small": "small", "/a/large": content(3*testChunk + 1), "/a/empty": ""})
}

// failEachCall copies files, which are named by what follows the path of the source, until no call has failed. That
// takes at least that many copies.
func (l *local) failEachCall(calls int, files map[string]string) {
	l.t.Helper()
	l.Log, l.Depth, l.File, l.target = comchtest.LogOnFailure(l.t, "copy"), 2, "/from/source", "/to/target"
	directories := []string{"/", "/from", "/to"}
	if _, one := files[""]; !one {
		directories = append(directories, "/from/source", "/from/source/a")
	}
	for n := 0; ; n++ {
		memory := disktest.NewMemory(directories...)
		for name, text := range files {
			memory.Put(l.File+name, text)
		}
		faulty := disktest.NewFaulty(memory, disktest.FailAt(n, disktest.Fault{Err: unix.EIO}))
		l.FS = faulty
		_, err := l.run()
		if !faulty.Fired() {
			must(l.t, err)
			if n < calls {
				l.t.Errorf("only %d calls were made", n)
			}
			return
		}
		call := fmt.Sprintf("call %d, %s", n, faulty.Trace()[n])
		l.checkFailedCall(call, err)
		for name, text := range files {
			if got, found := memory.Get(l.target + name); found && got != text || !found && err == nil {
				l.t.Errorf("%s: error %v, %s found: %t", call, err, name, found)
			}
		}
		if memory.Handles() != 0 {
			l.t.Fatalf("%s: %d files are open", call, memory.Handles())
		}
	}
}

// checkFailedCall checks what a copy has reported of which a call failed.
func (l *local) checkFailedCall(call string, err error) {
	l.t.Helper()
	if err != nil && (strings.Contains(err.Error(), "peer") || strings.Contains(err.Error(), "the host")) {
		l.t.Errorf("%s: %v", call, err)
	}
	failed := map[string]bool{}
	for _, done := range eventsOf[job.FileDone](l) {
		if done.Action != job.Failed {
			continue
		}
		if failed[done.Path] {
			l.t.Errorf("%s: %q has failed twice", call, done.Path)
		}
		failed[done.Path] = true
	}
	if errors.Is(err, job.ErrSomeFailed) != (len(failed) > 0) {
		l.t.Errorf("%s: %d entries have failed, and the copy says %v", call, len(failed), err)
	}
}

// An entry that fails on either side is reported once, with its own cause.
func TestLocalEntriesFail(t *testing.T) {
	l := newLocal(t)
	l.makeSourceTree()
	l.Overwrite = true
	must(t, os.MkdirAll(filepath.Join(l.target, "a/small"), 0o755)) // where a file is to be created
	l.FS = disktest.NewFaulty(disk.OS, func(_ int, op, name string) *disktest.Fault {
		if name == "large" && op == "read" {
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	})
	summary, err := l.run()
	mustBe(t, err, job.ErrSomeFailed)
	failed := map[string]string{}
	for _, done := range eventsOf[job.FileDone](l) {
		if done.Action == job.Failed {
			failed[done.Path] += done.Err.Error()
		}
	}
	for path, part := range map[string]string{
		"a/small": "a directory has its name", "a/b/large": "input/output error",
	} {
		if strings.Count(failed[path], part) != 1 {
			t.Errorf("%s failed with %q, want %q once", path, failed[path], part)
		}
	}
	if tree := summary.Tree; tree.Failed != int64(len(failed)) || len(tree.Failures) != len(failed) {
		t.Errorf("%d entries failed, and the summary has %+v", len(failed), tree)
	}
}

// memoryFile returns how to open a file of memory as a stream.
func memoryFile(on *disktest.Memory, path string) func() (disk.File, error) {
	return func() (disk.File, error) {
		directory, name := disk.Split(path)
		dir, err := on.OpenDir(directory)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		return dir.Open(name, false)
	}
}

func TestLocalStreams(t *testing.T) {
	want := content(20*testChunk + 7)
	memory := disktest.NewMemory("/", "/streams")
	memory.Put("/streams/in", want)
	memory.Put("/streams/out", "")
	l := newLocal(t)
	l.Stdin, l.Stdout = memoryFile(memory, "/streams/in"), memoryFile(memory, "/streams/out")
	l.File = "-"
	l.mustRun()
	jobtest.MustContain(t, l.target, want)
	l.mustFail(job.ErrSource, l.target+" exists: use --overwrite")
	l.Overwrite = true
	l.mustRun()

	l.File, l.target, l.Overwrite = l.target, "-", false
	l.mustRun()
	if got, _ := memory.Get("/streams/out"); got != want {
		t.Errorf("%d bytes were written to the stream, want %d", len(got), len(want))
	}
}

func TestLocalRefuses(t *testing.T) {
	l := newLocal(t)
	at := func(name string) string { return filepath.Join(l.dir, name) }
	jobtest.WriteFile(t, at("file"), "content")
	jobtest.WriteFile(t, at("other"), "other content")
	must(t, os.Link(at("file"), at("hardlink")))
	must(t, os.Symlink("file", at("symlink")))
	must(t, os.Symlink("nowhere", at("dangling")))
	must(t, unix.Mkfifo(at("pipe"), 0o600))
	must(t, os.MkdirAll(at("tree/below"), 0o755))
	must(t, os.Symlink("tree/below", at("into")))
	jobtest.WriteFile(t, at(".x.dma-copy-part"), "part")
	for name, tc := range map[string]struct {
		source, target string
		kind           error
		text           string
	}{
		"no source":               {"none", "new", job.ErrSource, "none does not exist: check the path"},
		"no directory of it":      {"none/x", "new", job.ErrSource, "none/x does not exist: check the path"},
		"a dangling source":       {"dangling", "new", job.ErrSource, "dangling is a dangling symlink"},
		"a dangling target":       {"file", "dangling", job.ErrTarget, "dangling is a dangling symlink"},
		"to a FIFO":               {"file", "pipe", job.ErrTarget, "pipe is neither a regular file nor a directory"},
		"a tree to a FIFO":        {"tree", "pipe", job.ErrTarget, "pipe is neither a regular file nor a directory"},
		"to a device":             {"file", "/dev/null", job.ErrTarget, "neither a regular file nor a directory"},
		"no directory for it":     {"file", "none/new", job.ErrTarget, "directory: create the directory, or use"},
		"itself":                  {"file", "file", job.ErrSource, "are the same file"},
		"a hard link of it":       {"file", "hardlink", job.ErrSource, "are the same file"},
		"a symlink to it":         {"symlink", "file", job.ErrSource, "are the same file"},
		"the same tree":           {"tree", "tree/below/..", job.ErrSource, "are the same file or directory"},
		"into itself":             {"tree", "tree/new", job.ErrSource, "is inside the directory"},
		"deep into itself":        {"tree", "tree/below/new", job.ErrSource, "is inside the directory"},
		"into itself, existing":   {"tree", "tree/below", job.ErrSource, "is inside the directory"},
		"into itself by symlink":  {"tree", "into/new", job.ErrSource, "is inside the directory"},
		"a tree to a file":        {"tree", "file", job.ErrTarget, "is a directory, and"},
		"a file to a tree":        {"file", "tree", job.ErrTarget, "end the target with / to copy into it"},
		"a file to a new tree":    {"file", "new/", job.ErrTarget, "leave out the slash"},
		"a tree to a stream":      {"tree", "-", job.ErrSource, "cannot be copied to a stream"},
		"what a copy has left":    {".x.dma-copy-part", "x", job.ErrSource, "is an unfinished file of another copy"},
		"unsized to a stream":     {"/proc/self/status", "-", job.ErrSource, "the target cannot be one"},
		"unsized to what exists":  {"/proc/self/status", "other", job.ErrSource, "other exists: use --overwrite"},
		"to what has no size":     {"file", "/proc/self/status", job.ErrSource, "status exists: use --overwrite"},
		"a device":                {"/dev/null", "new", job.ErrSource, "neither a regular file nor a directory"},
		"a too long source":       {strings.Repeat("x", 300), "new", job.ErrSettings, "choose a shorter name"},
		"over another, by a link": {"symlink", "other", job.ErrSource, "exists and differs"},
	} {
		t.Run(name, func(t *testing.T) {
			l.t, l.File, l.target = t, tc.source, tc.target
			if !filepath.IsAbs(tc.source) {
				l.File = at(tc.source)
			}
			if tc.target != "-" && !filepath.IsAbs(tc.target) {
				l.target = l.dir + "/" + tc.target
			}
			l.mustFail(tc.kind, tc.text)
		})
	}
	jobtest.MustContain(t, at("file"), "content")
	jobtest.MustContain(t, at("other"), "other content")
	jobtest.MustContain(t, at(".x.dma-copy-part"), "part")
	jobtest.MustHold(t, at("tree"), "below")
}

// A tree may go into a directory above it or beside it.
func TestLocalTreeBeside(t *testing.T) {
	l := newLocal(t)
	l.makeSourceTree()
	l.target = filepath.Join(l.dir, "source2")
	l.mustRun()
	l.File, l.target, l.Overwrite = filepath.Join(l.dir, "source2/a"), filepath.Join(l.dir, "source2"), true
	l.mustRun()
	jobtest.MustContain(t, filepath.Join(l.dir, "source2/small"), "small")
}

// A directory that an interrupted copy has left is read with a warning.
func TestLocalUnfinishedSource(t *testing.T) {
	l := newLocal(t)
	l.makeSourceTree()
	l.FS = disktest.NewFaulty(disk.OS, func(_ int, op, name string) *disktest.Fault {
		if name == "large" && op == "read" {
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	})
	l.FailFast = true
	l.mustFail(job.ErrSource, "large")
	l.FS = nil
	unfinished := l.target
	l.File, l.target = unfinished, filepath.Join(l.dir, "third")
	l.mustRun()
	if said := eventsOf[job.Warned](l); len(said) != 1 || said[0] != job.Incomplete(unfinished) {
		t.Errorf("the warnings are %v", said)
	}
	l.File, l.target = filepath.Join(l.dir, "source"), unfinished
	l.mustRun()
	jobtest.MustContain(t, filepath.Join(l.target, "a/b/large"), content(20*testChunk+5))
}

// A call that hangs does not keep the copy from ending, by the user or by itself.
func TestLocalHungCall(t *testing.T) {
	t.Run("source, stopped", func(t *testing.T) {
		l := newHungLocal(t, "source")
		ctx, stop := context.WithCancelCause(t.Context())
		go func() {
			<-l.called
			stop(errStop)
		}()
		l.mustEndHung(ctx, errStop, "stopped")
	})
	t.Run("target, without progress", func(t *testing.T) {
		l := newHungLocal(t, "target")
		l.IdleTimeout = time.Second
		l.mustEndHung(t.Context(), job.ErrIdle, "timeout: the copy made no progress for 1s")
	})
}

// hungLocal is a local copy of which one side's calls to the file system hang.
type hungLocal struct {
	*local
	called  chan struct{} // delivers a token for each call
	returns chan struct{} // is closed to let the calls return
}

func newHungLocal(t *testing.T, side string) *hungLocal {
	l := &hungLocal{newLocal(t), make(chan struct{}, 1000), make(chan struct{})}
	l.Log = comchtest.LogOnFailure(t, "copy")
	jobtest.WriteFile(t, l.File, content(20*testChunk))
	l.FS = disktest.NewFaulty(disk.OS, func(_ int, op, name string) *disktest.Fault {
		reads, writes := op == "read" && name == "source", op == "write" && name != "source"
		if side == "source" && reads || side == "target" && writes {
			l.called <- struct{}{}
			return &disktest.Fault{Hang: l.returns}
		}
		return nil
	})
	return l
}

// mustEndHung expects the copy to end while the call hangs, and everything to be released when it has returned.
func (l *hungLocal) mustEndHung(ctx context.Context, kind error, text string) {
	l.t.Helper()
	opened := len(doca.OpenHandles())
	_, err := l.runUntil(ctx)
	close(l.returns)
	for len(doca.OpenHandles()) > opened {
		time.Sleep(time.Millisecond)
	}
	l.mustBeCause(err, kind, text)
	mustBe(l.t, err, job.ErrHung)
}

// A receiver whose sender is lost during the commit reports what the target has: it is as durable as was asked for.
func TestSenderIsLostDuringTheCommit(t *testing.T) {
	l := newLocal(t)
	l.Log = comchtest.LogOnFailure(t, "copy")
	jobtest.WriteFile(t, l.File, content(3*testChunk))
	var c *localCopy
	l.FS = disktest.NewFaulty(disk.OS, func(_ int, op, name string) *disktest.Fault {
		if op == "rename" && name == "target" {
			_ = c.sender.config.Conn.Close() // never fails
		}
		return nil
	})
	files, err := findLocal(t.Context(), l.Options, l.target)
	must(t, err)
	defer files.close()
	c, err = newLocalCopy(l.Options, files)
	must(t, err)
	ended := make(chan localEnd)
	go func() { ended <- c.sender.run(t.Context()) }()
	receiver := c.receiver.run(t.Context())
	<-ended
	must(t, receiver.err)
	if s := receiver.summary; s.Unconfirmed == "" || s.Durability != wire.DurabilityFull {
		t.Errorf("unconfirmed: %q, durability %s", s.Unconfirmed, s.Durability)
	}
	jobtest.MustContain(t, l.target, content(3*testChunk))
}

// The cause is what a side has noticed itself.
func TestLocalRootCause(t *testing.T) {
	own, told := job.NewError(job.ErrTarget, nil, "free some", "no space"), &native.PeerAborted{Text: "no space"}
	later := job.NewError(job.ErrSource, nil, "check", "unreadable")
	silent := job.NewError(job.ErrIdle, job.ErrPeerIdle, "check", "the DPU is silent")
	unknown := job.OutcomeUnknown(wire.DPU, errors.New("lost"))
	for name, tc := range map[string]struct{ sender, receiver, want error }{
		"none":                             {nil, nil, nil},
		"the receiver's":                   {told, own, own},
		"the sender's":                     {own, told, own},
		"the receiver's, connection lost":  {comch.ErrPeerLost, own, own},
		"the receiver does not answer":     {silent, own, own},
		"unconfirmed, but committed":       {unknown, nil, nil},
		"after the commit":                 {own, nil, own},
		"after the sender knew of success": {nil, own, own},
		"neither's":                        {told, comch.ErrPeerLost, comch.ErrPeerLost},
	} {
		ends := [2]localEnd{{side: wire.Host, err: tc.sender}, {side: wire.DPU, err: tc.receiver}}
		for _, got := range []error{rootCause(ends[0], ends[1]), rootCause(ends[1], ends[0])} {
			if !errors.Is(got, tc.want) || got == nil && tc.want != nil {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		}
	}
	sender, receiver := localEnd{side: wire.Host, err: later}, localEnd{side: wire.DPU, err: own}
	if got := rootCause(receiver, sender); got != error(own) {
		t.Errorf("of two causes %v counts, not the first", got)
	}
	sender.err = job.Hung(told)
	if got := rootCause(sender, receiver); !errors.Is(got, own) || !errors.Is(got, job.ErrHung) {
		t.Errorf("a call of the sender hangs, and the copy says %v", got)
	}
}
