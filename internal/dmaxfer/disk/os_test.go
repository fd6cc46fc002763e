package disk_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Tests of what only the real file system has: other processes, links, other users, and a limited size.

func TestTargetIsReceivedOnce(t *testing.T) {
	at := onDisk(t, t.TempDir())
	let := holdElsewhere(t, at.path("file"))
	_, err := disk.OpenPartial(at.fs, at.path("file"), wanted(len(newText)))
	mustFail(t, err, disk.ErrBusy, "is being received by another process")
	mustBe(t, err, disk.ErrTarget)
	found, err := disk.FindPartials(at.fs, at.folder)
	must(t, err)
	if len(found) != 1 || !found[0].InUse {
		t.Errorf("there is %+v", found)
	}
	let()
	at.mustHold(t)
	mustOpen(t, at, "file", wanted(len(newText))).Discard()
}

// holdElsewhere makes another process receive a target until the returned function is called.
func holdElsewhere(t *testing.T, path string) (let func()) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), holdVariable+"="+path)
	input, err := command.StdinPipe()
	must(t, err)
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	must(t, err)
	if line != "held <nil>\n" {
		t.Fatalf("the other process says %q", line)
	}
	return func() {
		must(t, input.Close())
		must(t, command.Wait())
	}
}

func TestFailedCommitCanBeKept(t *testing.T) {
	at := onDisk(t, t.TempDir())
	p := mustOpen(t, at, "file", wanted(len(newText)))
	must(t, receive(t, p, newText, wire.DurabilityNone))
	must(t, os.Mkdir(at.path("file"), 0o700))
	mustFail(t, p.Commit(wire.DurabilityNone), disk.ErrExists)
	if kept := p.Keep(); kept != int64(len(newText)) {
		t.Errorf("%d bytes were kept", kept)
	}
	must(t, os.Remove(at.path("file")))
	p = mustOpen(t, at, "file", wanted(len(newText)))
	if p.Resumable() != int64(len(newText)) {
		t.Errorf("%d bytes can be resumed", p.Resumable())
	}
	must(t, receive(t, p, newText, wire.DurabilityNone))
	must(t, p.Commit(wire.DurabilityNone))
	at.mustContain(t, "file", newText)
}

func TestForeignPartialsAreRefused(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, precious, partial string){
		"link":           func(t *testing.T, precious, partial string) { must(t, os.Symlink(precious, partial)) },
		"dangling link":  func(t *testing.T, precious, partial string) { must(t, os.Symlink(precious+"x", partial)) },
		"hard link":      func(t *testing.T, precious, partial string) { must(t, os.Link(precious, partial)) },
		"directory":      func(t *testing.T, _, partial string) { must(t, os.Mkdir(partial, 0o700)) },
		"pipe":           func(t *testing.T, _, partial string) { must(t, unix.Mkfifo(partial, 0o600)) },
		"another user's": func(t *testing.T, _, partial string) { giveAway(t, partial) },
	} {
		t.Run(name, func(t *testing.T) {
			at := onDisk(t, t.TempDir())
			at.put("precious", oldText)
			attack(t, at.path("precious"), at.path(partialName))
			before, err := os.Lstat(at.path(partialName))
			must(t, err)
			_, err = disk.OpenPartial(at.fs, at.path("file"), wanted(len(newText)))
			mustFail(t, err, disk.ErrTarget, "cannot use "+partialName)
			after, err := os.Lstat(at.path(partialName))
			must(t, err)
			if !os.SameFile(before, after) || before.Mode() != after.Mode() {
				t.Errorf("%v became %v", before.Mode(), after.Mode())
			}
			at.mustContain(t, "precious", oldText)
			at.mustHold(t, partialName, "precious")
		})
	}
}

// giveAway creates a file of another user, which only root can do.
func giveAway(t *testing.T, path string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(oldText), 0o666))
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	must(t, os.Chown(path, 65534, 65534))
}

// A journal that cannot be this user's is refused and not changed, with or without a partial file.
func TestForeignJournalsAreRefused(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, precious, journal string){
		"link":           func(t *testing.T, precious, journal string) { must(t, os.Symlink(precious, journal)) },
		"hard link":      func(t *testing.T, precious, journal string) { must(t, os.Link(precious, journal)) },
		"directory":      func(t *testing.T, _, journal string) { must(t, os.Mkdir(journal, 0o700)) },
		"pipe":           func(t *testing.T, _, journal string) { must(t, unix.Mkfifo(journal, 0o600)) },
		"another user's": func(t *testing.T, _, journal string) { giveAway(t, journal) },
	} {
		for _, left := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", left ", left), func(t *testing.T) {
				at := onDisk(t, t.TempDir())
				interrupt(t, at, 8192)
				must(t, os.Rename(at.path(journalName), at.path("precious")))
				names := []string{journalName, partialName, "precious"}
				if !left {
					must(t, os.Remove(at.path(partialName)))
					names = []string{journalName, "precious"}
				}
				precious, _ := at.get("precious")
				attack(t, at.path("precious"), at.path(journalName))
				before, err := os.Lstat(at.path(journalName))
				must(t, err)
				_, err = disk.OpenPartial(at.fs, at.path("file"), wanted(len(newText)))
				mustFail(t, err, disk.ErrTarget, "cannot use "+journalName)
				after, err := os.Lstat(at.path(journalName))
				must(t, err)
				if !os.SameFile(before, after) || before.Mode() != after.Mode() {
					t.Errorf("%v became %v", before.Mode(), after.Mode())
				}
				at.mustContain(t, "precious", precious)
				at.mustHold(t, names...)
			})
		}
	}
}

func TestTargetWhoseDirectoryVanished(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	must(t, os.Mkdir(folder, 0o700))
	at := onDisk(t, folder)
	p := mustOpen(t, at, "file", wanted(len(newText)))
	must(t, receive(t, p, newText, wire.DurabilityFull))
	must(t, os.RemoveAll(folder))
	mustFail(t, p.Commit(wire.DurabilityFull), disk.ErrTarget)
	p.Discard()
}

// If the directory is replaced by another during a transfer, the new one does not get the target.
func TestSwappedDirectory(t *testing.T) {
	parent := t.TempDir()
	folder, aside := filepath.Join(parent, "folder"), filepath.Join(parent, "aside")
	must(t, os.Mkdir(folder, 0o700))
	at := onDisk(t, folder)
	p := mustOpen(t, at, "file", wanted(len(newText)))
	must(t, receive(t, p, newText, wire.DurabilityFull))
	must(t, os.Rename(folder, aside))
	must(t, os.Mkdir(folder, 0o700))
	must(t, p.Commit(wire.DurabilityFull))
	at.mustHold(t)
	onDisk(t, aside).mustContain(t, "file", newText)
}

const diskSize = 1 << 20

// smallDisk returns a directory in which no file can be larger than diskSize: a file system of that size if the test
// may mount one.
func smallDisk(t *testing.T) testDir {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("this user may not mount a small disk: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(folder, 0)) })
	return onDisk(t, folder)
}

// limitFiles sets the limit of the whole process, so its tests must not run in parallel.
func limitFiles(t *testing.T) testDir {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	t.Cleanup(func() { signal.Reset(unix.SIGXFSZ) })
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: diskSize, Max: before.Max}))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before)) })
	return onDisk(t, t.TempDir())
}

func TestFullDisk(t *testing.T) {
	for kind, small := range map[string]func(*testing.T) testDir{"small disk": smallDisk, "limit": limitFiles} {
		for name, fill := range map[string]func(p *disk.Partial) error{
			"allocating": func(p *disk.Partial) error { return p.Allocate(t.Context(), nil) },
			"writing":    func(p *disk.Partial) error { return p.WriteAt(make([]byte, 2*diskSize), 0) },
			"punching":   func(p *disk.Partial) error { return p.Punch(0, 2*diskSize) },
		} {
			for _, size := range []int{diskSize + 1, 1 << 46} {
				t.Run(kind+" "+name, func(t *testing.T) {
					at := small(t)
					p := mustOpen(t, at, "file", wanted(size))
					err := fill(p)
					mustFail(t, err, disk.ErrNoSpace)
					mustBe(t, err, disk.ErrTarget)
					if name == "allocating" && kind == "small disk" {
						mustFail(t, err, disk.ErrTarget, "it needs", "are free")
					}
					p.Discard()
					at.mustHold(t)
				})
			}
		}
	}
}

// If the disk fills up during a transfer, the verified part is kept.
func TestFullDiskCanBeResumed(t *testing.T) {
	at := smallDisk(t)
	want := wanted(2 * diskSize)
	want.Sparse = true
	p := mustOpen(t, at, "file", want)
	must(t, p.Allocate(t.Context(), nil))
	must(t, p.WriteAt([]byte(newText), 0))
	must(t, p.Advance(4096))
	mustFail(t, p.WriteAt(make([]byte, 2*diskSize), 4096), disk.ErrNoSpace)
	if kept := p.Keep(); kept != 4096 {
		t.Errorf("%d bytes were kept", kept)
	}
	p = mustOpen(t, at, "file", want)
	if p.Resumable() != 4096 {
		t.Errorf("%d bytes can be resumed", p.Resumable())
	}
	p.Discard()
}

// A directory that is not writable is reported. Root can always write.
func TestClosedDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can write to any directory")
	}
	at := onDisk(t, t.TempDir())
	must(t, os.Chmod(at.folder, 0o500))
	_, err := disk.OpenPartial(at.fs, at.path("file"), wanted(1))
	mustFail(t, err, disk.ErrTarget, "cannot create", "permission denied")
}

func TestSelf(t *testing.T) {
	before := unix.Umask(0o027)
	defer unix.Umask(before)
	if self := disk.OS.Self(); self.Umask != 0o027 || self.UID != uint32(os.Geteuid()) {
		t.Errorf("this process is %+v", self)
	}
}

func TestOSFileIsShown(t *testing.T) {
	at := onDisk(t, t.TempDir())
	p := mustOpen(t, at, "file", wanted(1))
	if p.File().OS() == nil {
		t.Error("there is no os.File")
	}
	if free, known := p.File().Free(); !known || free == 0 {
		t.Errorf("%d bytes are free, known %t", free, known)
	}
}

// withStream replaces a standard stream by a pipe.
func withStream(t *testing.T, standard **os.File) (ours, theirs *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	must(t, err)
	before := *standard
	*standard, theirs = reader, writer
	if standard == &os.Stdout {
		*standard, theirs = writer, reader
	}
	ours = *standard
	t.Cleanup(func() {
		*standard = before
		_, _ = ours.Close(), theirs.Close() // the test may have closed it
	})
	return ours, theirs
}

func TestStdinIsReadToItsEnd(t *testing.T) {
	_, writer := withStream(t, &os.Stdin)
	file, err := disk.Stdin()
	must(t, err)
	stream := disk.NewStream(file, func() {})
	defer stream.Close()
	for _, chunk := range []string{newText[:1], newText[1:5000], newText[5000:]} {
		_, err := writer.WriteString(chunk) // the pipe holds all of it: a pause between two would end a chunk
		must(t, err)
	}
	must(t, writer.Close())
	var got []byte
	buffer := make([]byte, 4096)
	for err == nil {
		var n int
		n, err = stream.Next(buffer)
		got = append(got, buffer[:n]...)
		if err == nil && n != len(buffer) {
			t.Errorf("a chunk of %d bytes", n)
		}
	}
	if string(got) != newText || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes were read, %v", len(got), err)
	}
}

func TestCloseEndsAWaitForStdin(t *testing.T) {
	withStream(t, &os.Stdin)
	file, err := disk.Stdin()
	must(t, err)
	stream := disk.NewStream(file, func() {})
	ended := make(chan error)
	go func() {
		_, err := stream.Next(make([]byte, 1))
		ended <- err
	}()
	time.Sleep(10 * time.Millisecond) // it probably waits by then; the result is the same if not
	stream.Close()
	mustFail(t, <-ended, disk.ErrSource, "reading")
}

func TestStdoutIsWritten(t *testing.T) {
	ours, reader := withStream(t, &os.Stdout)
	file, err := disk.Stdout()
	must(t, err)
	_, err = file.Write([]byte(newText))
	must(t, err)
	must(t, file.Close())
	must(t, ours.Close())
	got, err := io.ReadAll(reader)
	must(t, err)
	if string(got) != newText {
		t.Errorf("%d bytes arrived", len(got))
	}
}

func TestStdinThatIsAFileIsReadFromItsPlace(t *testing.T) {
	at := onDisk(t, t.TempDir())
	at.put("file", newText)
	handle, err := os.Open(at.path("file"))
	must(t, err)
	defer handle.Close()
	_, err = handle.Seek(100, io.SeekStart)
	must(t, err)
	before := os.Stdin
	os.Stdin = handle
	defer func() { os.Stdin = before }()
	file, err := disk.Stdin()
	must(t, err)
	defer file.Close()
	if got, err := io.ReadAll(file); string(got) != newText[100:] || err != nil {
		t.Errorf("%d bytes were read, %v", len(got), err)
	}
}
