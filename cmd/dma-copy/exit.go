package main

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/dma-copy/dma-copy/internal/bench"
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
	exitDigest        = 9
	exitSourceChanged = 10
	exitProtocol      = 11
	exitSomeFailed    = 12
	exitNotHardware   = 13
	exitLimit         = 14
	exitSignal        = 128 // plus the signal's number
)

// outcome ties a cause to the exit code that scripts act on and, where the error does not say it itself, to the next
// step that a person can take.
type outcome struct {
	is    func(error) bool
	code  int
	next  string
	cause wording // nil: the error's own
}

// outcomes is searched from the top: what somebody asked for comes before what that led to, and a cause before its
// consequences.
var outcomes = []outcome{
	{ofType[usageError], exitUsage, "", nil},
	{one(errResources), exitUsage, "", nil},
	{one(errTimeLimit), exitLimit, "raise --timeout", nil},
	{one(errDurationLimit), exitLimit, "raise --max-duration", nil},
	{one(dmaxfer.ErrLimit), exitLimit, "", nil},
	{one(doca.ErrBadAddress), exitUsage, "", nil},
	{one(dmaxfer.ErrSettings), exitUsage, "", nil},
	{one(doca.ErrHardwareRequired), exitNotHardware, "leave out --require-hw to use the software device", nil},
	{one(doca.ErrNoCgo), exitDevice, "", nil},
	{ofType[*doca.LoadError], exitDevice, "install DOCA's runtime libraries, or use --driver soft", nil},
	{withoutProc, exitDevice, "mount it (mount -t proc proc /proc)", nil},
	{ofType[*doca.SoftError], exitUsage, "see DMA_COPY_SOFT_DIR and DMA_COPY_SOFT_LIMITS in the help", nil},
	{one(errMovesNothing), exitUsage, moveBytes, nil},
	{one(errNoDevice), exitDevice, askDoctor, nil},
	{misnamed("device"), exitDevice, "choose one of them with -p", nil},
	{misnamed("representor"), exitDevice, "choose one of them with -r", nil},
	{ofType[*doca.NotFoundError], exitDevice, askDoctor, nil},
	{one(errNoFit), exitDevice, "", nil},
	{ofType[misfitError], exitDevice, "", nil},
	{one(doca.CodeAlreadyExist), exitDevice, "raise --wait, or stop it", leavingOut[*doca.Error]},
	{one(dmaxfer.ErrCapability), exitDevice, "", nil},
	{one(errDigest), exitDigest, "", nil},
	{one(dmaxfer.ErrDigest), exitDigest, "", nil},
	{one(errSomeFailed), exitSomeFailed, "", nil},
	{one(bench.ErrOneSided), exitDevice, "use --driver soft, which has both on one machine", nil},
	{one(dmaxfer.ErrSourceChanged), exitSourceChanged, "", nil},
	{one(dmaxfer.ErrSource), exitSource, "", nil},
	{one(dmaxfer.ErrTarget), exitTarget, "", nil},
	{one(dmaxfer.ErrCopy), exitFailure, "", nil},
	{one(negotiate.ErrOutcomeUnknown), exitPeer, "compare both files (dma-copy verify)",
		ofPeer("transfer outcome unknown: the %s did not confirm the commit")},
	{needsNative, exitProtocol, "run dma-copy on the other side too",
		ofPeer("the %s uses the reference protocol, which does not support streams")},
	{one(negotiate.ErrNeedsNative), exitProtocol, "", nil},
	{one(negotiate.ErrEmptyFile), exitProtocol, "", nil},
	{one(negotiate.ErrVersion), exitProtocol,
		"run releases of dma-copy with a common protocol version on both sides", versionsApart},
	{one(dmaxfer.ErrHostFailed), exitFailure, "see its error message", leavingOut[*negotiate.Error]},
	{one(negotiate.ErrPeerFailed), exitFailure, "see its error message", ofPeer("the %s reported a failure")},
	{one(comch.ErrPeerAbsent), exitPeer, "start the other side, or raise --wait", nil},
	{one(comch.ErrMessageSize), exitProtocol, "give both sides the same max_msg_size in DMA_COPY_SOFT_LIMITS", ofPeer(otherSize)},
	{one(comch.ErrRefused), exitPeer, "its limit of connections may be reached; check it and copy again",
		ofPeer(noRoom)},
	{one(comch.ErrTurnedAway), exitPeer, servesAnother, nil},
	{one(comch.ErrPeerLost), exitPeer, "check the other side and copy again", ofPeer(lost)},
	{one(negotiate.ErrPeerLost), exitPeer, "check the other side and copy again", ofPeer(lost)},
	{one(dmaxfer.ErrIdle), exitPeer, "", nil},
	{one(dmaxfer.ErrHung), exitPeer, "check the device and the disk", nil},
	{ofType[*negotiate.Error], exitProtocol,
		"run a supported release of dma-copy or doca_dma_copy on the other side", nil},
	{one(syscall.EMFILE), exitUsage, moreDescriptors, nil},
	{one(syscall.ENFILE), exitUsage, moreFiles, nil},
	{ofType[*doca.Error], exitDevice, "check the device and the other side's error message", nil},
}

const (
	askDoctor     = "run \"dma-copy doctor\" to find the cause"
	otherSize     = "the %s refused the connection: the maximum message sizes differ"
	noRoom        = "timeout: the %s refused the connection until the end of --wait"
	servesAnother = "it may be serving another host: raise --wait, or check the DPU"
	lost          = "the connection to the %s was lost before the copy ended"
)

func one(sentinel error) func(error) bool {
	return func(err error) bool { return errors.Is(err, sentinel) }
}

func ofType[T error](err error) bool {
	_, is := errors.AsType[T](err)
	return is
}

// withoutProc reports whether the software device lacks /proc.
func withoutProc(err error) bool {
	soft, is := errors.AsType[*doca.SoftError](err)
	return is && soft.NoProc
}

// misnamed tells whether there are things of a kind, but none of the name that was given.
func misnamed(kind string) func(error) bool {
	return func(err error) bool {
		missing, is := errors.AsType[*doca.NotFoundError](err)
		return is && missing.Kind == kind && len(missing.Available) > 0
	}
}

// needsNative tells whether a stream met a peer of the reference protocol; what else that cannot do says so itself.
func needsNative(err error) bool {
	return errors.Is(err, negotiate.ErrNeedsNative) && ofType[*negotiate.Error](err)
}

// versionsApart has the two ranges without the protocol's words around them.
func versionsApart(e *sideError) string {
	apart, _ := errors.AsType[*negotiate.Error](e.err)
	return fmt.Sprintf("%s: %s", apart.Err, apart.Detail)
}

// classify finds the outcome of a failed run.
func classify(err error) outcome {
	if interrupted, is := errors.AsType[interruptedError](err); is {
		number, _ := interrupted.Signal.(syscall.Signal)
		return outcome{code: exitSignal + int(number)}
	}
	if said, is := errors.AsType[*negotiate.PeerAborted](err); is {
		return outcome{code: int(said.Code), cause: peersWords}
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
