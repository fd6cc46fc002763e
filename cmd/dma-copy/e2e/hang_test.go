package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
)

// hungCause is what ends a copy one of whose calls hangs.
type hungCause struct {
	name   string
	flags  string
	signal syscall.Signal // once the copy has begun; 0: none
	code   int
}

var hungCauses = []hungCause{
	{"idle timeout", "--idle-timeout 1s", 0, exitPeer},
	{"timeout", "--timeout 3s", 0, exitLimit},
	{"SIGINT", "", syscall.SIGINT, 130},
	{"SIGTERM", "", syscall.SIGTERM, 143},
}

// mustBeHung expects a process to end in spite of a call that hangs, and to say so.
func (c hungCause) mustBeHung(one side) {
	one.t.Helper()
	if c.signal != 0 {
		must(one.t, one.signal(c.signal))
	}
	one.ends(c.code)
	if said := one.stderr.String(); !strings.Contains(said, dmaxfer.ErrHung.Error()) {
		one.t.Errorf("%s said %q", one.name, said)
	}
}

// TestPeerWhoseMemoryBlocks lets a DPU copy from and to memory of the host that blocks its engine, for as long as the
// host lives. The DPU ends all the same, tells the host, and leaves nothing.
func TestPeerWhoseMemoryBlocks(t *testing.T) {
	t.Parallel()
	if err := mayBlockFaults(); err != nil {
		t.Skipf("the kernel gives this user no userfaultfd that catches the faults of system calls: %v", err)
	}
	for _, cause := range hungCauses {
		for _, sender := range []string{"host", "dpu"} {
			t.Run(fmt.Sprint(cause.name, "_", sender, "_sends"), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.put(sender, 1_000_000)
				host := s.start("host", refHost+"-block")
				dpu := s.start("dpu", ourDPU+"-l INFO "+cause.flags)
				must(t, host.says(regexp.MustCompile("an access blocks")))
				cause.mustBeHung(dpu)
				host.ends(1)
				must(t, host.says(regexp.MustCompile(`STATUS\(0\) received`)))
				s.absent(otherThan(sender))
				s.recovers(sender, false)
			})
		}
	}
}

// TestFileCallThatHangs lets the file system keep a side waiting: a sender for content, a receiver for its partial
// file. Both sides end with the same code, where the protocol has one.
func TestFileCallThatHangs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, sender, victim, protocol string
		event                          uint64
	}{
		{"host reads", "host", "host", "auto", unix.FAN_ACCESS_PERM},
		{"DPU reads", "dpu", "dpu", "auto", unix.FAN_ACCESS_PERM},
		{"DPU reads, reference", "dpu", "dpu", "reference", unix.FAN_ACCESS_PERM},
		{"host opens its target", "dpu", "host", "auto", unix.FAN_OPEN_PERM | unix.FAN_EVENT_ON_CHILD},
		{"DPU opens its target", "host", "dpu", "auto", unix.FAN_OPEN_PERM | unix.FAN_EVENT_ON_CHILD},
		{"host opens its target, reference", "dpu", "host", "reference", unix.FAN_OPEN_PERM | unix.FAN_EVENT_ON_CHILD},
		{"DPU opens its target, reference", "host", "dpu", "reference", unix.FAN_OPEN_PERM | unix.FAN_EVENT_ON_CHILD},
	} {
		for _, cause := range hungCauses {
			t.Run(tc.name+", "+cause.name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.put(tc.sender, 1_000_000)
				path := s.path(tc.victim)
				if tc.sender != tc.victim {
					path = filepath.Dir(path)
				}
				await := hangs(t, path, tc.event)
				flags := map[string]string{tc.victim: cause.flags}
				sides := map[string]side{}
				for name, line := range map[string]string{"host": ourHost, "dpu": ourDPU} {
					sides[name] = s.start(name, line+"--protocol "+tc.protocol+" "+flags[name])
				}
				await()
				cause.mustBeHung(sides[tc.victim])
				sides[otherThan(tc.victim)].endsEither(cause.code, told[tc.protocol])
			})
		}
	}
}

// told is what a side may end with whose peer gave up: in the reference's protocol it is not told why.
var told = map[string]int{"auto": exitPeer, "reference": exitFailure}

// TestSourceThatHangsFromTheBeginning lets a side not even find out what it has. A peer that waits already is told, if
// this side has time for that.
func TestSourceThatHangsFromTheBeginning(t *testing.T) {
	t.Parallel()
	for _, cause := range hungCauses {
		t.Run(cause.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put("host", 1_000_000)
			await := hangs(t, s.path("host"), unix.FAN_OPEN_PERM)
			told := cause.name == "idle timeout"
			var dpu side
			if told {
				dpu = s.start("dpu", ourDPU)
			}
			host := s.start("host", ourHost+cause.flags)
			await()
			cause.mustBeHung(host)
			if told {
				dpu.ends(cause.code)
			}
		})
	}
}

// hangs lets every call of a kind to a file hang until the test ends: fanotify asks whether it may go on, and is not
// answered. await returns when one hangs.
func hangs(t *testing.T, path string, events uint64) (await func()) {
	t.Helper()
	group, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("the kernel does not let this user hold up other processes' file calls: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(group) })
	must(t, unix.FanotifyMark(group, unix.FAN_MARK_ADD, events, unix.AT_FDCWD, path))
	return func() {
		t.Helper()
		question := []unix.PollFd{{Fd: int32(group), Events: unix.POLLIN}}
		n, err := unix.Poll(question, int(hangGuard.Milliseconds()))
		for err == unix.EINTR {
			n, err = unix.Poll(question, int(hangGuard.Milliseconds()))
		}
		if n != 1 {
			t.Fatalf("no call hangs: %v", err)
		}
	}
}
