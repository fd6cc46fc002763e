package e2e

import (
	"errors"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// hangCause is what ends a transfer one of whose calls hangs.
type hangCause struct {
	name   string
	flags  string
	signal syscall.Signal // sent while the call hangs; 0: none
	code   int
}

var hangCauses = []hangCause{
	{"idle timeout", idleFlag, 0, exitPeer},
	{"timeout", "--timeout 15s", 0, exitLimit},
	{"SIGINT", "", syscall.SIGINT, exitInterrupt},
	{"SIGTERM", "", syscall.SIGTERM, exitTerminated},
}

// expectEnd expects a side to end although a call of it hangs, and to report that.
func (c hangCause) expectEnd(hung side) {
	hung.t.Helper()
	if c.signal != 0 {
		must(hung.t, hung.signal(c.signal))
	}
	hung.expectExit(c.code)
	hung.expectStderr("a call into the device or the file system did not return, so its resources stay open")
}

// TestPeerMemoryThatHangs has a DPU copy from and to memory of the host that blocks its engine for as long as the host
// lives. The DPU still ends, notifies the host and leaves nothing.
func TestPeerMemoryThatHangs(t *testing.T) {
	t.Parallel()
	if err := canBlockFaults(); err != nil {
		t.Skipf("the kernel gives this user no userfaultfd that catches the faults of system calls: %v", err)
	}
	for _, cause := range hangCauses {
		t.Run(cause.name, func(t *testing.T) {
			t.Parallel()
			forEachSender(t, cause.testPeerMemory)
		})
	}
}

func (c hangCause) testPeerMemory(f *fixture, sender string) {
	f.createFile(sender, 1_000_000)
	host := f.start("host", refpeerHost+"-block")
	dpu := f.start("dpu", dpuCommand+"-l INFO "+c.flags)
	host.waitForLog(regexp.MustCompile("an access blocks"))
	c.expectEnd(dpu)
	host.expectExit(exitFailure)
	host.waitForLog(regexp.MustCompile(`STATUS\(0\) received`))
	f.expectNoFile(peerOf(sender))
	f.expectRecovery(sender, false)
}

// hungCall is a file call of one side that hangs.
type hungCall struct {
	name, sender, hung, protocol string
	event                        uint64 // of fanotify
}

// TestFileCallThatHangs has the file system block a side: a sender that reads, or a receiver that opens its partial
// file. Both sides end with the same code if the protocol carries it.
func TestFileCallThatHangs(t *testing.T) {
	t.Parallel()
	const read, open = unix.FAN_ACCESS_PERM, unix.FAN_OPEN_PERM | unix.FAN_EVENT_ON_CHILD
	for _, call := range []hungCall{
		{"host reads", "host", "host", "auto", read},
		{"DPU reads", "dpu", "dpu", "auto", read},
		{"DPU reads, reference", "dpu", "dpu", "reference", read},
		{"host opens its target", "dpu", "host", "auto", open},
		{"DPU opens its target", "host", "dpu", "auto", open},
		{"host opens its target, reference", "dpu", "host", "reference", open},
		{"DPU opens its target, reference", "host", "dpu", "reference", open},
	} {
		for _, cause := range hangCauses {
			t.Run(call.name+", "+cause.name, func(t *testing.T) {
				t.Parallel()
				call.test(newFixture(t), cause)
			})
		}
	}
}

func (c hungCall) test(f *fixture, cause hangCause) {
	f.createFile(c.sender, 1_000_000)
	path := f.path(c.hung)
	if c.sender != c.hung {
		path = filepath.Dir(path)
	}
	calls := blockFileCalls(f.t, path, c.event)
	flags := "--protocol " + c.protocol + " "
	lines := map[string]string{"host": hostCommand + flags, "dpu": dpuCommand + flags}
	lines[c.hung] += cause.flags
	sides := f.startBoth(lines)
	calls.waitForHang()
	cause.expectEnd(sides[c.hung])
	peerCode := exitPeer
	if c.protocol == "reference" {
		peerCode = exitFailure // which the protocol carries without a cause
	}
	sides[peerOf(c.hung)].expectExitEither(cause.code, peerCode)
}

// TestSourceThatHangsAtOpen blocks a side before it knows whether it has the file. With an idle timeout there is time
// to notify a peer that already waits.
func TestSourceThatHangsAtOpen(t *testing.T) {
	t.Parallel()
	for _, cause := range hangCauses {
		t.Run(cause.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.createFile("host", 1_000_000)
			calls := blockFileCalls(t, f.path("host"), unix.FAN_OPEN_PERM)
			if cause.name != "idle timeout" {
				host := f.start("host", hostCommand+cause.flags)
				calls.waitForHang()
				cause.expectEnd(host)
				return
			}
			dpu := f.start("dpu", dpuCommand)
			host := f.start("host", hostCommand+cause.flags)
			calls.waitForHang()
			cause.expectEnd(host)
			dpu.expectExit(cause.code)
		})
	}
}

// blockedCalls are calls to a file that hang until the test ends: fanotify asks for permission and gets no answer.
type blockedCalls struct {
	t     *testing.T
	group int // descriptor of the fanotify group
}

// blockFileCalls makes every call of a kind to a file hang.
func blockFileCalls(t *testing.T, path string, events uint64) blockedCalls {
	t.Helper()
	group, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("the kernel does not let this user block file calls of other processes: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(group) })
	must(t, unix.FanotifyMark(group, unix.FAN_MARK_ADD, events, unix.AT_FDCWD, path))
	return blockedCalls{t, group}
}

// waitForHang waits until a call hangs.
func (b blockedCalls) waitForHang() {
	b.t.Helper()
	question := []unix.PollFd{{Fd: int32(b.group), Events: unix.POLLIN}}
	n, err := unix.Poll(question, int(processTimeout.Milliseconds()))
	for err == unix.EINTR {
		n, err = unix.Poll(question, int(processTimeout.Milliseconds()))
	}
	if n != 1 {
		b.t.Fatalf("no call hangs: %v", err)
	}
}
