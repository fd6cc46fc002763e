package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestFirstSignalCancelsWithItsName(t *testing.T) {
	cases := []struct {
		signal   syscall.Signal
		sentence string
		code     int
	}{
		{syscall.SIGINT, "stopped by SIGINT", 130},
		{syscall.SIGTERM, "stopped by SIGTERM", 143},
	}
	for _, tc := range cases {
		t.Run(tc.sentence, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			ctx, stop := withSignals(t.Context())
			defer stop()
			if err := syscall.Kill(os.Getpid(), tc.signal); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			cause := context.Cause(ctx)
			interrupted, ok := errors.AsType[interruptedError](cause)
			if !ok || interrupted.Signal != tc.signal || cause.Error() != tc.sentence {
				t.Errorf("cause %v, want %s", cause, tc.sentence)
			}
			if code := exitCode(fmt.Errorf("copy: %w", cause)); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
		})
	}
}

func TestStopWithoutSignal(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, stop := withSignals(t.Context())
	if ctx.Err() != nil {
		t.Fatalf("cancelled from the start: %v", context.Cause(ctx))
	}
	stop()
	stop()
	if cause := context.Cause(ctx); cause != context.Canceled {
		t.Errorf("cause %v, want %v", cause, context.Canceled)
	}
}

func TestParentEndsTheWatch(t *testing.T) {
	defer goleak.VerifyNone(t)
	reason := errors.New("the parent's reason")
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, stop := withSignals(parent)
	cancel(reason)
	<-ctx.Done()
	stop()
	if cause := context.Cause(ctx); cause != reason {
		t.Errorf("cause %v, want %v", cause, reason)
	}
}

const drainingVariable = "DMA_COPY_TEST_DRAIN_FOR_EVER"

// TestDrainForEver is the other process of the test below: it notices the first signal and never ends by itself.
func TestDrainForEver(t *testing.T) {
	if os.Getenv(drainingVariable) == "" {
		t.Skip("runs as the child of TestSecondSignalKills")
	}
	ctx, stop := withSignals(t.Context())
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("draining")
	select {}
}

func TestSecondSignalKills(t *testing.T) {
	// The deadline ends a child that survives, by SIGKILL.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestDrainForEver$")
	// A child that is killed leaves the directory that testscript makes for it.
	child.Env = append(os.Environ(), drainingVariable+"=1", "TMPDIR="+t.TempDir())
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines, want := bufio.NewScanner(stdout), []string{"ready", "draining"}; len(want) > 0; want = want[1:] {
		if !lines.Scan() || lines.Text() != want[0] {
			t.Fatalf("the child said %q, want %q", lines.Text(), want[0])
		}
		if err := child.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	exit, ok := errors.AsType[*exec.ExitError](child.Wait())
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the child ended with %v, want to be killed by SIGTERM", child.ProcessState)
	}
}
