package root

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/exit"
)

func TestFirstSignalCancelsWithItsName(t *testing.T) {
	cases := []struct {
		signal   syscall.Signal
		sentence string
		code     int
	}{
		{syscall.SIGINT, "stopped by SIGINT", 130},
		{syscall.SIGTERM, "stopped by SIGTERM", 143},
		{syscall.SIGHUP, "stopped by SIGHUP", 129},
	}
	for _, tc := range cases {
		t.Run(tc.sentence, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			defaultHangup(t)
			ctx, stop := WithSignals(t.Context())
			defer stop()
			if err := syscall.Kill(os.Getpid(), tc.signal); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			cause := context.Cause(ctx)
			interrupted, ok := errors.AsType[exit.Interrupted](cause)
			if !ok || interrupted.Signal != tc.signal || cause.Error() != tc.sentence {
				t.Errorf("cause %v, want %s", cause, tc.sentence)
			}
			if code := exit.Code(fmt.Errorf("copy: %w", cause)); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
		})
	}
}

// defaultHangup makes the test and its children receive SIGHUP even if the tests run under nohup.
func defaultHangup(t *testing.T) {
	t.Helper()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
}

func TestStopWithoutSignal(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, stop := WithSignals(t.Context())
	if ctx.Err() != nil {
		t.Fatalf("cancelled from the start: %v", context.Cause(ctx))
	}
	stop()
	stop()
	if cause := context.Cause(ctx); cause != context.Canceled {
		t.Errorf("cause %v, want %v", cause, context.Canceled)
	}
}

func TestParentContextEnds(t *testing.T) {
	defer goleak.VerifyNone(t)
	reason := errors.New("the parent's reason")
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, stop := WithSignals(parent)
	cancel(reason)
	<-ctx.Done()
	stop()
	if cause := context.Cause(ctx); cause != reason {
		t.Errorf("cause %v, want %v", cause, reason)
	}
}

const drainingVariable = "DMA_COPY_TEST_DRAIN_FOR_EVER"

// TestDrainWithoutEnd is the child process of the tests below: it notices the first signal and never ends by itself.
func TestDrainWithoutEnd(t *testing.T) {
	if os.Getenv(drainingVariable) == "" {
		t.Skip("runs as the child of TestSecondSignalKills and TestSecondHangupDoesNotKill")
	}
	ctx, stop := WithSignals(t.Context())
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("draining")
	select {}
}

func TestSecondSignalKills(t *testing.T) {
	drain(t, syscall.SIGTERM, syscall.SIGTERM)
}

// A terminal that is closed may send SIGHUP twice, or after a Ctrl-C: the process drains until SIGTERM kills it.
func TestSecondHangupDoesNotKill(t *testing.T) {
	drain(t, syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM)
	drain(t, syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM)
}

// drain sends the first signal to a child that never ends by itself, and the others while it drains. The last one must
// kill it.
func drain(t *testing.T, first syscall.Signal, others ...syscall.Signal) {
	t.Helper()
	defaultHangup(t)
	// The deadline ends a child that survives, by SIGKILL.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestDrainWithoutEnd$")
	child.Env = append(os.Environ(), drainingVariable+"=1")
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for _, step := range []struct {
		says string
		then []syscall.Signal
	}{{"ready", []syscall.Signal{first}}, {"draining", others}} {
		if !lines.Scan() || lines.Text() != step.says {
			t.Fatalf("the child said %q, want %q", lines.Text(), step.says)
		}
		for _, s := range step.then {
			must(t, child.Process.Signal(s))
		}
	}
	exit, ok := errors.AsType[*exec.ExitError](child.Wait())
	if last := others[len(others)-1]; !ok || exit.Sys().(syscall.WaitStatus).Signal() != last {
		t.Errorf("the child ended with %v, want to be killed by %v", child.ProcessState, last)
	}
}

// A daemon takes SIGHUP as often as it comes, and still ends by the next signal.
func TestDivertedHangups(t *testing.T) {
	defer goleak.VerifyNone(t)
	defaultHangup(t)
	ctx, stop := WithSignals(t.Context())
	defer stop()
	hangups := DivertHangups(ctx)
	for range 2 {
		must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		<-hangups
	}
	if ctx.Err() != nil {
		t.Fatalf("cancelled: %v", context.Cause(ctx))
	}
	must(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	<-ctx.Done()
	interrupted, ok := errors.AsType[exit.Interrupted](context.Cause(ctx))
	if !ok || interrupted.Signal != syscall.SIGTERM {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	if DivertHangups(t.Context()) != nil {
		t.Error("a context without signals has hangups")
	}
}

// A SIGHUP ends the run if the terminal is lost just then, before or after it, and not if it was lost long ago.
func TestHangupsOfATerminal(t *testing.T) {
	defer goleak.VerifyNone(t)
	control, device := openTerminal(t)
	defer device.Close()
	again := make(chan struct{})
	h := &hangups{arrived: make(chan struct{}, 1), again: func() { close(again) }, diverted: true, terminal: device}
	if !h.take() {
		t.Error("SIGHUP is not diverted while there is a terminal")
	}
	h.last = time.Now().Add(time.Hour) // however long the rest takes
	must(t, control.Close())
	if h.take() {
		t.Error("SIGHUP is diverted though the terminal is lost")
	}
	h.last = time.Now().Add(time.Hour)
	h.watch(device)
	<-again
	if h.lost = time.Now(); h.take() {
		t.Error("SIGHUP is diverted just after the loss")
	}
	if h.lost = time.Now().Add(-time.Hour); !h.take() {
		t.Error("SIGHUP is not diverted long after the loss")
	}
}

// openTerminal returns both ends of a new pseudoterminal.
func openTerminal(t *testing.T) (control, device *os.File) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0))
	device, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	return control, device
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
