package output

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// ExitCode returns the exit code of a run that ended with err, as the help documents it.
func ExitCode(err error) int {
	if err == nil {
		return exit.OK
	}
	return classify(err).code
}

// Hint returns the next step for the user, empty if the error's own text has it or if there is none.
func Hint(err error) string { return classify(err).hint }

// outcome has the exit code of a failure for scripts, and its hint and wording for the user.
type outcome struct {
	code   int
	hint   string
	reword wording // nil: the error's own text
}

// wording returns the cause of a failure on one side in the user's words, where the error has those of the protocol or
// of the device.
type wording func(side wire.Side, err error) string

// classify returns the outcome of a failed run. A signal comes first, then what the peer reported, then an error that
// carries its own code.
func classify(err error) outcome {
	if interrupted, is := errors.AsType[exit.Interrupted](err); is {
		return outcome{code: interrupted.ExitCode()}
	}
	if said, is := errors.AsType[*native.PeerAborted](err); is {
		return outcome{code: int(said.Code), reword: abortReason}
	}
	if refused, is := errors.AsType[*protocol.Refusal](err); is {
		return outcome{code: int(refused.Code), reword: refusalReason}
	}
	if failed, is := errors.AsType[exit.Coder](err); is {
		return outcome{code: failed.ExitCode(), hint: failed.Hint()}
	}
	for _, o := range libraryOutcomes {
		if o.is(err) {
			return outcome{o.code, o.hint, o.reword}
		}
	}
	return outcome{code: exit.Failure}
}

// libraryOutcomes maps the errors of libraries. First match wins: defects, limits of the user, then root causes, then
// symptoms.
var libraryOutcomes = []struct {
	is     func(error) bool
	code   int
	hint   string
	reword wording
}{
	{ofType[*job.Defect], exit.Failure, "report it, with what follows", nil},
	{oneOf(service.ErrRefused), exit.Refused, "", nil},
	{ofType[*secure.UntrustedError], exit.Refused,
		"compare the words with those of dma-copy keys show on the other side, then run dma-copy keys trust here", nil},
	{oneOf(secure.ErrRefused), exit.Refused,
		"run dma-copy keys trust there with the key that dma-copy keys show prints here", nil},
	{oneOf(wire.ErrWordsDiffer), exit.Refused, "", nil},
	{oneOf(secure.ErrTimeout), exit.Peer, "check the other side", nil},
	{oneOf(secure.ErrPacketsLost), exit.Peer,
		"check the MTU on the way to the other side, also of tunnels, and that ICMP is let through", nil},
	{oneOf(secure.ErrSilent), exit.Peer, "check what listens there, and the MTU on the way, also of tunnels", nil},
	{oneOf(secure.ErrHandshake), exit.Protocol, "run dma-copy of the same release on both sides", nil},
	{oneOf(secure.ErrRecord), exit.Protocol, "check the device and the other side", nil},
	{oneOf(service.ErrDraining), exit.Peer, "start it again", nil},
	{oneOf(service.ErrBusy), exit.Peer, "raise --wait", nil},
	{oneOf(share.ErrDenied), exit.Refused, "", nil},
	{oneOf(job.ErrSomeFailed), exit.SomeFailed,
		"remove the causes and run the same command to copy these entries", nil},
	{oneOf(job.ErrLimit), exit.Limit, "", nil},
	{oneOf(doca.ErrBadAddress, job.ErrSettings), exit.Usage, "", nil},
	{oneOf(doca.ErrHardwareRequired), exit.NotHardware, "leave out --require-hw to use the software device", nil},
	{oneOf(doca.ErrNoCgo, ucx.ErrUnavailable, ucx.ErrTooManyDevices), exit.Device, "", nil},
	{ofType[*doca.LoadError], exit.Device, "install DOCA's runtime libraries, or use --driver soft", nil},
	{withoutProc, exit.Device, "mount it (mount -t proc proc /proc)", nil},
	{ofType[*doca.SoftError], exit.Usage, "see DMA_COPY_SOFT_DIR and DMA_COPY_SOFT_LIMITS in the help", nil},
	{misnamed("device"), exit.Device, "choose one of them with -p", nil},
	{misnamed("representor"), exit.Device, "choose one of them with -r", nil},
	{ofType[*doca.NotFoundError], exit.Device, HintDoctor, nil},
	{oneOf(doca.CodeAlreadyExist), exit.Device, "raise --wait, or stop it", leavingOut[*doca.Error]},
	{oneOf(job.ErrCapability), exit.Device, "", nil},
	{oneOf(job.ErrDigest), exit.Digest, "", nil},
	{oneOf(job.ErrSourceChanged), exit.SourceChanged, "", nil},
	{oneOf(job.ErrSource), exit.Source, "", nil},
	{oneOf(job.ErrTarget), exit.Target, "", nil},
	{oneOf(job.ErrCopy), exit.Failure, "", nil},
	{oneOf(wire.ErrOutcomeUnknown), exit.Peer,
		"compare both files (dma-copy verify)", ofPeer("transfer outcome unknown: the %s did not confirm the commit")},
	{needsNative, exit.Protocol, "run dma-copy on the other side too",
		ofPeer("the %s uses the reference protocol, which does not support streams")},
	{oneOf(wire.ErrNeedsNative, wire.ErrEmptyFile), exit.Protocol, "", nil},
	{oneOf(wire.ErrVersion), exit.Protocol,
		"run releases of dma-copy with a common protocol version on both sides", withDetail},
	{oneOf(protocol.ErrVersion), exit.Protocol,
		"run releases of dma-copy with a common version of it on both sides", withDetail},
	{oneOf(protocol.ErrPayload), exit.Digest, "check the memory of both sides and the device", withDetail},
	{oneOf(wire.ErrNoPath), exit.Device,
		"leave out --path on both sides, and see what dma-copy devices lists there", withDetail},
	{oneOf(ping.ErrLost), exit.Peer,
		"check the other side and try again", ofPeer("the connection to the %s was lost before the last round trip")},
	{oneOf(job.ErrHostFailed), exit.Failure, "see its error message", leavingOut[*wire.Error]},
	{oneOf(wire.ErrPeerFailed), exit.Failure, "see its error message", ofPeer("the %s reported a failure")},
	{oneOf(comch.ErrPeerAbsent), exit.Peer, "start the other side, or raise --wait", nil},
	{oneOf(comch.ErrMessageSize), exit.Protocol, "give both sides the same max_msg_size in DMA_COPY_SOFT_LIMITS",
		ofPeer("the %s refused the connection: the maximum message sizes differ")},
	{oneOf(comch.ErrRefused), exit.Peer, "its limit of connections may be reached; check it and try again",
		ofPeer("timeout: the %s refused the connection until the end of --wait")},
	{oneOf(comch.ErrTurnedAway), exit.Peer, "it may be serving another host: raise --wait, or check the DPU", nil},
	{oneOf(service.ErrTurnedAway), exit.Peer,
		"too many others may be connecting, or it is shutting down: raise --wait, or see its log", nil},
	{requestLost, exit.Peer, "check the other side and try again", ofRequest},
	{oneOf(comch.ErrPeerLost, wire.ErrPeerLost), exit.Peer, "check the other side and copy again",
		ofPeer("the connection to the %s was lost before the copy ended")},
	{oneOf(job.ErrIdle), exit.Peer, "", nil},
	{oneOf(job.ErrHung), exit.Peer, "check the device and the disk", nil},
	{ofPing, exit.Protocol, "run the same release of dma-copy on both sides", nil},
	{ofType[*wire.Error], exit.Protocol,
		"run a supported release of dma-copy or doca_dma_copy on the other side", nil},
	{oneOf(wire.ErrMalformed), exit.Protocol, "run the same release of dma-copy on both sides", nil},
	{oneOf(syscall.EMFILE), exit.Usage, HintProcessFiles, nil},
	{oneOf(syscall.ENFILE), exit.Usage, HintSystemFiles, nil},
	{ofType[*doca.Error], exit.Device, hintDevice, nil},
}

const (
	hintDevice = "check the device and the other side's error message"

	// HintDoctor is the hint where no device was found.
	HintDoctor = "run \"dma-copy doctor\" to find the cause"

	// The hints where this process, or the whole system, has used up its file descriptors.
	HintProcessFiles = "raise the limit on open files (ulimit -n 1024)"
	HintSystemFiles  = "raise the system's limit on open files (sysctl fs.file-max), or close some"
)

// oneOf returns a function that reports whether an error is one of some.
func oneOf(sentinels ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(sentinels, func(each error) bool { return errors.Is(err, each) })
	}
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

// misnamed returns a function that reports whether there are things of a kind, but none of the name that was given.
func misnamed(kind string) func(error) bool {
	return func(err error) bool {
		missing, is := errors.AsType[*doca.NotFoundError](err)
		return is && missing.Kind == kind && len(missing.Available) > 0
	}
}

// needsNative reports whether a stream met a peer of the reference protocol. Other errors with ErrNeedsNative have a
// text of their own.
func needsNative(err error) bool {
	return errors.Is(err, wire.ErrNeedsNative) && ofType[*wire.Error](err)
}

// requestLost reports whether the connection was lost during a request other than a copy.
func requestLost(err error) bool {
	return ofType[*requestError](err) && oneOf(comch.ErrPeerLost, wire.ErrPeerLost, protocol.ErrLost)(err)
}

// ofRequest says which request the loss of the connection ended.
func ofRequest(side wire.Side, err error) string {
	failed, _ := errors.AsType[*requestError](err)
	return fmt.Sprintf("the connection to the %s was lost before the %s ended", side.Other(), failed.request)
}

// ofPing reports whether the protocol of a ping was violated.
func ofPing(err error) bool {
	failed, is := errors.AsType[*wire.Error](err)
	return is && (failed.State == protocol.AwaitGreeting || failed.State == protocol.Pinging)
}

// ofPeer rewords a failure as a sentence about the other side, which takes the place of %s.
func ofPeer(sentence string) wording {
	return func(side wire.Side, _ error) string { return fmt.Sprintf(sentence, side.Other()) }
}

// leavingOut removes what an error of type T adds to the errors around it.
func leavingOut[T error](_ wire.Side, err error) string {
	text := err.Error()
	if inner, is := errors.AsType[T](err); is {
		text = strings.Replace(text, ": "+inner.Error(), "", 1)
	}
	return text
}

// withDetail returns the reason and the detail, such as two version ranges, without the text that the protocol adds.
func withDetail(_ wire.Side, err error) string {
	apart, _ := errors.AsType[*wire.Error](err)
	return fmt.Sprintf("%s: %s", apart.Err, apart.Detail)
}

// abortReason returns the reason in the peer's abort message.
func abortReason(side wire.Side, err error) string {
	said, _ := errors.AsType[*native.PeerAborted](err)
	if ofType[unbegun](err) {
		return refusalSentence(side, said.Text)
	}
	if said.Text == "" {
		return fmt.Sprintf("the %s aborted without a reason", side.Other())
	}
	return fmt.Sprintf("the %s aborted: %s", side.Other(), quote.Printable(said.Text))
}

// refusalReason returns the reason for which a daemon refused.
func refusalReason(side wire.Side, err error) string {
	said, _ := errors.AsType[*protocol.Refusal](err)
	return refusalSentence(side, said.Text)
}

func refusalSentence(side wire.Side, text string) string {
	daemon := "the daemon on the " + side.Other().String()
	if side == wire.Client {
		daemon = "the daemon"
	}
	if text == "" {
		return daemon + " refused without a reason"
	}
	return daemon + " refused: " + quote.Printable(text)
}
