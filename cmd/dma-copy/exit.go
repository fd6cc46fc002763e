package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// The exit codes. 2 is never used: it is what a crash of the Go runtime returns.
const (
	exitOK            = 0
	exitFailure       = 1
	exitUsage         = 3
	exitSource        = 4
	exitTarget        = 5
	exitDevice        = 6
	exitPeer          = 7
	exitSourceChanged = 10
	exitProtocol      = 11
	exitNotHardware   = 13
	exitLimit         = 14
	exitSignal        = 128 // plus the signal's number
)

// outcome ties a cause to the exit code that scripts act on and, where the error does not say it itself, to the next
// step that a person can take.
type outcome struct {
	is   func(error) bool
	code int
	next string
}

// outcomes is searched from the top: what somebody asked for comes before what that led to, and a cause before its
// consequences.
var outcomes = []outcome{
	{ofType[usageError], exitUsage, ""},
	{one(errTimeLimit), exitLimit, "allow more with --timeout"},
	{one(doca.ErrBadAddress), exitUsage, ""},
	{one(dmaxfer.ErrSettings), exitUsage, ""},
	{one(doca.ErrHardwareRequired), exitNotHardware, "leave out --require-hw to use the software device"},
	{one(doca.ErrNoCgo), exitDevice, ""},
	{ofType[*doca.LoadError], exitDevice, "install DOCA's runtime libraries, or use --driver soft"},
	{ofType[*doca.SoftError], exitUsage, "set DMA_COPY_SOFT_DIR and DMA_COPY_SOFT_LIMITS as docs/SOFTDEVICE.md says"},
	{one(errNoDevice), exitDevice, "\"dma-copy doctor\" says what is wrong"},
	{ofType[*doca.NotFoundError], exitDevice, "name one of them with -p, or -r for a representor"},
	{one(errNoFit), exitDevice, ""},
	{one(dmaxfer.ErrCapability), exitDevice, ""},
	{one(dmaxfer.ErrSourceChanged), exitSourceChanged, ""},
	{one(dmaxfer.ErrSource), exitSource, ""},
	{one(dmaxfer.ErrTarget), exitTarget, ""},
	{one(negotiate.ErrPeerRefused), exitSource, "the DPU's own message says which"},
	{one(dmaxfer.ErrHostFailed), exitFailure, "the host's own message says why"},
	{one(negotiate.ErrPeerFailed), exitFailure, "its own message says why"},
	{one(comch.ErrPeerAbsent), exitPeer, "start the other side, or allow more time with --wait"},
	{one(comch.ErrPeerLost), exitPeer, "look at the other side and copy again"},
	{one(negotiate.ErrPeerLost), exitPeer, "look at the other side and copy again"},
	{one(dmaxfer.ErrIdle), exitPeer, ""},
	{ofType[*negotiate.Error], exitProtocol, "run a dma-copy or doca_dma_copy of a supported release on the other side"},
	{ofType[*doca.Error], exitDevice, "look at the device, and at the other side's message"},
}

func one(sentinel error) func(error) bool {
	return func(err error) bool { return errors.Is(err, sentinel) }
}

func ofType[T error](err error) bool {
	_, is := errors.AsType[T](err)
	return is
}

// classify finds the outcome of a failed run.
func classify(err error) outcome {
	if interrupted, is := errors.AsType[interruptedError](err); is {
		number, _ := interrupted.Signal.(syscall.Signal)
		return outcome{code: exitSignal + int(number)}
	}
	if failed, is := errors.AsType[*checksFailedError](err); is {
		return outcome{code: failed.code}
	}
	for _, o := range outcomes {
		if o.is(err) {
			return o
		}
	}
	return outcome{code: exitFailure}
}

// exitCode maps the outcome of a run to the exit code that the help documents.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	return classify(err).code
}

// reportError prints the error as the one line that a failed run leaves on stderr: side, cause, next step.
func reportError(w io.Writer, err error) {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if next := classify(err).next; next != "" {
		text += ": " + next
	}
	fmt.Fprintf(w, "dma-copy: %s\n", escapeUnprintable(text))
}
