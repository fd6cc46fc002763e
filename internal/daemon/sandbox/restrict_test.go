package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/exit"
)

var childTasks = map[string]func(directory string) error{
	"outside": outsideIsRefused,
	"threads": everyThreadIsRestricted,
	"write":   writableShareWorks,
	"read":    readOnlyShareWorks,
	"log":     logIsReopened,
	"sockets": socketsAreMade,
	"network": networkIsRefused, "TCP of UCX": tcpOfUCX,
	"reload": reloadedShares, "replaced": replacedShares,
	"files":  singleFiles,
	"card":   cardFilesCanBeRead,
	"reread": replacedFileIsRead,
}

// needLandlock skips the test on a kernel that cannot confine a process.
func needLandlock(t *testing.T, abi int) {
	t.Helper()
	if has := landlockABI(); has < abi {
		t.Skipf("the kernel has version %d of Landlock, the test needs %d", has, abi)
	}
}

// sandboxed returns a directory of a child task: it has a writable share, a read-only share, and files outside them.
func sandboxed(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	for _, name := range []string{"inbox/a", "inbox/b", "images", "log", "run", "outside"} {
		if err := os.MkdirAll(filepath.Join(directory, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"images/file", "outside/file", "inbox/file"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func restrictTo(directory string) (*Restriction, error) {
	return Restrict(Policy{
		Shares: []Share{
			{Path: filepath.Join(directory, "inbox"), Write: true},
			{Path: filepath.Join(directory, "images")},
		},
		Append:  []string{filepath.Join(directory, "log")},
		Sockets: []string{filepath.Join(directory, "run")},
		Read:    []string{filepath.Join(directory, "missing")},
	})
}

func TestRestrictConfines(t *testing.T) {
	for _, test := range []struct {
		task string
		abi  int
	}{
		{"outside", abiRefer}, {"write", abiRefer}, {"read", abiRefer}, {"log", abiRefer}, {"sockets", abiRefer},
		{"network", abiTCP}, {"TCP of UCX", abiTCP}, {"reload", abiRefer},
		{"replaced", abiRefer}, {"files", abiRefer}, {"card", abiRefer}, {"reread", abiRefer},
	} {
		t.Run(test.task, func(t *testing.T) {
			t.Parallel()
			needLandlock(t, test.abi)
			runChild(t, test.task, sandboxed(t))
		})
	}
}

func TestRestrictReachesEveryThread(t *testing.T) { runChild(t, "threads", sandboxed(t)) }

// mustBeDenied returns an error unless err is that of a lack of permission.
func mustBeDenied(what string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %v, want a lack of permission", what, err)
	}
	return nil
}

func outsideIsRefused(directory string) error {
	outside := filepath.Join(directory, "outside")
	open, err := os.Open(filepath.Join(outside, "file"))
	if err != nil {
		return err
	}
	defer open.Close()
	if err := os.Symlink(outside, filepath.Join(directory, "inbox", "link")); err != nil {
		return err
	}
	if _, err := restrictTo(directory); err != nil {
		return err
	}
	if _, err := open.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("a file that was open before: %w", err)
	}
	_, readErr := os.ReadFile(filepath.Join(outside, "file"))
	_, linkErr := os.ReadFile(filepath.Join(directory, "inbox/link/file"))
	_, listErr := os.ReadDir(outside)
	return errors.Join(
		mustBeDenied("read a file outside", readErr),
		mustBeDenied("read it through a symlink in a share", linkErr),
		mustBeDenied("list a directory outside", listErr),
		mustBeDenied("create a file outside", os.WriteFile(filepath.Join(outside, "new"), nil, 0o600)),
		mustBeDenied("remove a file outside", os.Remove(filepath.Join(outside, "file"))),
		mustBeDenied("run a program", exec.Command("/bin/true").Run()),
	)
}

// everyThreadIsRestricted also has threads that Go and C made before the restriction, and those that come after it.
func everyThreadIsRestricted(directory string) error {
	release := make(chan struct{})
	defer close(release)
	startThreads(8, release)
	r, err := restrictTo(directory)
	if err != nil {
		return err
	}
	startThreads(4, release)
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) < 12 {
		return fmt.Errorf("%d threads, want at least 12: %v", len(threads), err)
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err != nil {
			return err
		}
		if !bytes.Contains(status, []byte("NoNewPrivs:\t1\n")) || !bytes.Contains(status,
			[]byte("CapAmb:\t0000000000000000\n")) {
			return fmt.Errorf("%s: %s", thread, status)
		}
	}
	if !r.Confined() {
		return nil
	}
	return onThreads(16, func() error {
		_, err := os.ReadFile(filepath.Join(directory, "outside/file"))
		return mustBeDenied("read a file outside", err)
	})
}

// startThreads returns when count goroutines have a thread each, which they keep until release is closed.
func startThreads(count int, release <-chan struct{}) {
	var started sync.WaitGroup
	started.Add(count)
	for range count {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			<-release
		}()
	}
	started.Wait()
}

// onThreads calls f on count threads at once and returns its errors.
func onThreads(count int, f func() error) error {
	results := make(chan error)
	for range count {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			results <- f()
		}()
	}
	var all error
	for range count {
		all = errors.Join(all, <-results)
	}
	return all
}

// writableShareWorks does what a receiver does: files with and without a temporary name, in other directories of the
// share than the one in which they end, and the removal of all of it.
func writableShareWorks(directory string) error {
	inbox, err := disk.OS.OpenDir(filepath.Join(directory, "inbox"))
	if err != nil {
		return err
	}
	if _, err := restrictTo(directory); err != nil {
		return err
	}
	a, err := inbox.OpenBeneath("a")
	if err != nil {
		return err
	}
	b, err := inbox.OpenBeneath("b")
	if err != nil {
		return err
	}
	steps := []struct {
		name string
		do   func() error
	}{
		{"name an unnamed file", func() error { return nameUnnamed(a, b) }},
		{"create a file", func() error { return createIn(a, "draft") }},
		{"link to another directory", func() error { return a.LinkTo("draft", b, "linked") }},
		{"rename to another directory", func() error {
			return os.Rename(filepath.Join(directory, "inbox/a/draft"), filepath.Join(directory, "inbox/b/renamed"))
		}},
		{"rename", func() error { return b.Rename("renamed", "again") }},
		{"make a symlink", func() error { return b.Symlink("again", "symlink") }},
		{"make a directory", func() error { return b.MakeDir("directory", 0o700) }},
		{"set a mode", func() error { return b.SetMode(0o750) }},
		{"truncate", func() error { return os.Truncate(filepath.Join(directory, "inbox/file"), 1) }},
		{"flush the file system", b.SyncFS},
		{"flush the directory", b.Sync},
		{"remove a file", func() error { return b.Remove("again") }},
		{"remove a symlink", func() error { return b.Remove("symlink") }},
		{"remove a directory", func() error { return b.RemoveDir("directory") }},
		{"list", func() error { return errorOf(disk.Names(b)) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func errorOf[T any](_ T, err error) error { return err }

func nameUnnamed(created, named disk.Dir) error {
	file, err := created.CreateUnnamed("unnamed", 0o600, true)
	if errors.Is(err, errors.ErrUnsupported) {
		return createIn(named, "unnamed") // this file system has no such files
	}
	if err != nil {
		return err
	}
	if _, err := file.WriteAt([]byte("content"), 0); err != nil {
		return err
	}
	if err := named.GiveName(file, "unnamed"); err != nil {
		return err
	}
	return file.Close()
}

func createIn(directory disk.Dir, name string) error {
	file, err := directory.Create(name)
	if err != nil {
		return err
	}
	return file.Close()
}

func readOnlyShareWorks(directory string) error {
	if _, err := restrictTo(directory); err != nil {
		return err
	}
	images := filepath.Join(directory, "images")
	content, err := os.ReadFile(filepath.Join(images, "file"))
	if err != nil || string(content) != "content" {
		return fmt.Errorf("the file has %q: %w", content, err)
	}
	if err := errorOf(os.ReadDir(images)); err != nil {
		return err
	}
	truncate := error(nil)
	if landlockABI() >= abiTruncate {
		truncate = mustBeDenied("truncate", os.Truncate(filepath.Join(images, "file"), 0))
	}
	return errors.Join(truncate,
		mustBeDenied("create", os.WriteFile(filepath.Join(images, "new"), nil, 0o600)),
		mustBeDenied("write", errorOf(os.OpenFile(filepath.Join(images, "file"), os.O_WRONLY, 0))),
		mustBeDenied("remove", os.Remove(filepath.Join(images, "file"))),
		mustBeDenied("make a directory", os.Mkdir(filepath.Join(images, "d"), 0o700)),
	)
}

func logIsReopened(directory string) error {
	if _, err := restrictTo(directory); err != nil {
		return err
	}
	path := filepath.Join(directory, "log", "audit.log")
	for range 2 {
		log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if err := log.Close(); err != nil {
			return err
		}
	}
	return errors.Join(mustBeDenied("read the log", errorOf(os.ReadFile(path))),
		mustBeDenied("remove the log", os.Remove(path)))
}

// singleFiles has rules for files instead of directories, such as a parameter file and a device.
func singleFiles(directory string) error {
	file, other := filepath.Join(directory, "outside/file"), filepath.Join(directory, "outside/other")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		return err
	}
	_, err := Restrict(Policy{Read: []string{file, ""}, Devices: []string{"/dev/null", directory + "/absent"}})
	if err != nil {
		return err
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	if _, err := os.ReadFile(file); err != nil {
		return err
	}
	return errors.Join(
		mustBeDenied("read another file", errorOf(os.ReadFile(other))),
		mustBeDenied("write the file", errorOf(os.OpenFile(file, os.O_WRONLY, 0))),
		mustBeDenied("open another device", errorOf(os.Open("/dev/zero"))),
	)
}

// replacedFileIsRead lets a process outside the sandbox replace a file as an editor does.
func replacedFileIsRead(directory string) error {
	settings := filepath.Join(directory, "outside/file")
	next, err := os.Create(filepath.Join(directory, "outside/next"))
	if err != nil {
		return err
	}
	if err := errors.Join(errorOf(next.WriteString("new")), next.Close()); err != nil {
		return err
	}
	mover := exec.Command("/bin/sh", "-c", "read line && mv next file")
	mover.Dir = filepath.Join(directory, "outside")
	input, err := mover.StdinPipe()
	if err != nil {
		return err
	}
	if err := mover.Start(); err != nil {
		return err
	}
	if _, err := Restrict(Policy{Reread: []string{settings, ""}}); err != nil {
		return err
	}
	if err := errors.Join(errorOf(input.Write([]byte("\n"))), input.Close()); err != nil {
		return err
	}
	if err := mover.Wait(); err != nil {
		return err
	}
	content, err := os.ReadFile(settings)
	if err != nil || string(content) != "new" {
		return fmt.Errorf("the file has %q: %w", content, err)
	}
	return errors.Join(
		mustBeDenied("list the directory of the file", errorOf(os.ReadDir(filepath.Dir(settings)))),
		mustBeDenied("write the file", errorOf(os.OpenFile(settings, os.O_WRONLY, 0))),
	)
}

// cardFilesCanBeRead cannot show that DOCA's libraries find all that they need, only that the rules are valid.
func cardFilesCanBeRead(directory string) error {
	if _, err := Restrict(Policy{}.WithDevice("")); err != nil {
		return err
	}
	if _, err := os.ReadDir("/sys/class"); err != nil {
		return err
	}
	return mustBeDenied("read a file outside", errorOf(os.ReadFile(filepath.Join(directory, "outside/file"))))
}

func socketsAreMade(directory string) error {
	if _, err := restrictTo(directory); err != nil {
		return err
	}
	path := filepath.Join(directory, "run", "socket")
	for range 2 {
		listener, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		if err := errors.Join(conn.Close(), listener.Close()); err != nil {
			return err
		}
	}
	return nil
}

func networkIsRefused(directory string) error {
	metrics, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer metrics.Close()
	scrape, err := net.Dial("tcp4", metrics.Addr().String())
	if err != nil {
		return err
	}
	defer scrape.Close()
	if _, err := restrictTo(directory); err != nil {
		return err
	}
	accepted, err := metrics.Accept()
	if err != nil {
		return fmt.Errorf("accept where the process listened before: %w", err)
	}
	defer accepted.Close()
	// Go would open a listener with MPTCP where the kernel has it, which Landlock does not restrict.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	loopback := &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}
	return errors.Join(mustBeDenied("bind", unix.Bind(fd, loopback)),
		mustBeDenied("connect", unix.Connect(fd, loopback)))
}

// tcpOfUCX listens and connects after the restriction, also to an abstract unix socket from outside of it, as UCX does
// to wake a peer. For files the restriction holds all the same.
func tcpOfUCX(directory string) error {
	name := fmt.Sprintf("@dma-copy-sandbox-test-%d", os.Getpid()) // the tests may run twice at a time
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer other.Close()
	inbox := Share{Path: filepath.Join(directory, "inbox"), Write: true}
	if _, err := Restrict(Policy{Shares: []Share{inbox}}.WithUCX()); err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	wake, err := net.Dial("unixgram", other.LocalAddr().String())
	if err != nil {
		return fmt.Errorf("an abstract unix socket: %w", err)
	}
	defer wake.Close()
	_, err = os.Open(filepath.Join(directory, "outside", "file"))
	return mustBeDenied("a file outside of the shares", err)
}

// reloadedShares compares what Admit says of each share with what the kernel does.
func reloadedShares(directory string) error {
	if err := os.Symlink(filepath.Join(directory, "outside"), filepath.Join(directory, "link")); err != nil {
		return err
	}
	r, err := restrictTo(directory)
	if err != nil {
		return err
	}
	for _, test := range []struct {
		share Share
		fails string
	}{
		{share: Share{Path: filepath.Join(directory, "inbox"), Write: true}},
		{share: Share{Path: filepath.Join(directory, "inbox/a"), Write: true}},
		{share: Share{Path: filepath.Join(directory, "inbox/b")}},
		{share: Share{Path: filepath.Join(directory, "images")}},
		{Share{Path: filepath.Join(directory, "images"), Write: true}, "may not write to"},
		{Share{Path: filepath.Join(directory, "outside")}, "restart it"},
		{Share{Path: filepath.Join(directory, "link"), Write: true}, "outside"},
		{Share{Path: directory}, "may not read"},
		{Share{Path: filepath.Join(directory, "absent")}, "no such file"},
	} {
		err := r.Admit("new", test.share)
		var coder exit.Coder
		refused := errors.As(err, &coder) && coder.ExitCode() == exit.Usage
		if refused != (test.fails != "") || refused && !strings.Contains(err.Error(), test.fails) {
			return fmt.Errorf("%+v: %v, want %q", test.share, err, test.fails)
		}
		if works := tryShare(test.share) == nil; works != (test.fails == "") {
			return fmt.Errorf("%+v works: %v, but Admit says %v", test.share, works, err)
		}
	}
	return nil
}

// replacedShares compares what Forbids says with what the kernel does when another directory has the path of a share. A
// share for reading around it permits to read that one. The process cannot rename anything there, so a shell does.
func replacedShares(directory string) error {
	inbox := filepath.Join(directory, "inbox")
	shell := exec.Command("sh")
	shell.Dir = directory
	input, inputErr := shell.StdinPipe()
	output, outputErr := shell.StdoutPipe()
	if err := errors.Join(inputErr, outputErr, shell.Start()); err != nil {
		return err
	}
	r, err := Restrict(Policy{Shares: []Share{{Path: inbox, Write: true}, {Path: directory}}})
	if err != nil {
		return err
	}
	for _, step := range []struct {
		command string
		write   bool
	}{{"true", true}, {"mv inbox old && mkdir inbox", false}, {"rmdir inbox && mv old inbox", true}} {
		if _, err := fmt.Fprintln(input, step.command+" && echo"); err != nil {
			return err
		}
		if _, err := output.Read(make([]byte, 1)); err != nil {
			return fmt.Errorf("%s: %w", step.command, err)
		}
		for _, share := range []Share{{Path: inbox}, {Path: inbox, Write: true}} {
			want := step.write || !share.Write
			if works, forbids := tryShare(share) == nil, r.Forbids(share); works != want || forbids == want {
				return fmt.Errorf("after %s: %+v works: %v, and is forbidden: %v", step.command, share, works, forbids)
			}
		}
	}
	return errors.Join(input.Close(), shell.Wait())
}

func tryShare(s Share) error {
	if !s.Write {
		return errorOf(os.ReadDir(s.Path))
	}
	file, err := os.CreateTemp(s.Path, "")
	if err != nil {
		return err
	}
	return file.Close()
}
