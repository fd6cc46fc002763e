package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudoterminal with an interactive shell.
type terminal struct {
	t       *testing.T
	control *os.File
	pending []byte // what the shell has printed and no test has read
}

// startInTerminal starts a shell that prints "[ready]" when it takes input.
func (f *fixture) startInTerminal(argv ...string) *terminal {
	f.t.Helper()
	control, device, err := openTerminal()
	must(f.t, err)
	shell := exec.Command(argv[0], argv[1:]...)
	shell.Dir, shell.Env = f.dir, append(slices.Clone(f.environment), "TERM=dumb", "HOME="+f.dir)
	shell.Stdin, shell.Stdout, shell.Stderr = device, device, device
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(f.t, errors.Join(shell.Start(), device.Close()))
	f.t.Cleanup(func() {
		_ = shell.Process.Kill()
		_ = shell.Wait() // it was killed
		_ = control.Close()
	})
	opened := &terminal{t: f.t, control: control}
	if ready := opened.nextReply(); ready != "ready" {
		f.t.Fatalf("%q says %q instead of being ready", argv, ready)
	}
	return opened
}

// openTerminal returns both ends of a new pseudoterminal whose lines are long enough for any test.
func openTerminal() (control, device *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	control = os.NewFile(uintptr(fd), "/dev/ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 2000}))
	if err == nil {
		device, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	return control, device, nil
}

// replyTo types keys, and returns the next text in brackets at the start of a line.
func (t *terminal) replyTo(keys string) string {
	t.t.Helper()
	_, err := t.control.WriteString(keys)
	must(t.t, err)
	return t.nextReply()
}

var reply = regexp.MustCompile(`(?m)^\[(.*)\]\r?$\n`)

func (t *terminal) nextReply() string {
	t.t.Helper()
	must(t.t, t.control.SetReadDeadline(time.Now().Add(processTimeout)))
	buffer := make([]byte, 4096)
	for {
		if found := reply.FindSubmatchIndex(t.pending); found != nil {
			text := string(t.pending[found[2]:found[3]])
			t.pending = t.pending[found[1]:]
			return text
		}
		n, err := t.control.Read(buffer)
		if err != nil {
			t.t.Fatalf("the shell has ended: %v; printed %q", err, t.pending)
		}
		t.pending = append(t.pending, buffer[:n]...)
	}
}
