package report

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
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
type wording func(side negotiate.Side, err error) string

// classify returns the outcome of a failed run. A signal comes first, then what the peer reported, then an error that
// carries its own code.
func classify(err error) outcome {
	if interrupted, is := errors.AsType[exit.Interrupted](err); is {
		return outcome{code: interrupted.ExitCode()}
	}
	if said, is := errors.AsType[*negotiate.PeerAborted](err); is {
		return outcome{code: int(said.Code), reword: abortReason}
	}
	if refused, is := errors.AsType[*negotiate.Refusal](err); is {
		return outcome{code: int(refused.Code), reword: refusalReason}
	}
	if failed, is := errors.AsType[exit.Coder](err); is {
		return outcome{code: failed.ExitCode(), hint: failed.Hint()}
	}
	for _, o := range libraryOutcomes {
		if o.is(err) {
			return o.outcome
		}
	}
	return outcome{code: exit.Failure}
}

// libraryOutcomes maps the errors of libraries. First match wins: defects, limits of the user, then root causes, then
// symptoms.
var libraryOutcomes = []struct {
	is func(error) bool
	outcome
}{
	{ofType[*job.Defect], outcome{exit.Failure, "report it, with what follows", nil}},
	{one(service.ErrRefused), outcome{exit.Refused, "", nil}},
	{ofType[*secure.UntrustedError], outcome{exit.Refused,
		"compare the words with those of dma-copy keys show on the other side, then run dma-copy keys trust here",
		nil}},
	{one(secure.ErrRefused), outcome{exit.Refused,
		"run dma-copy keys trust there with the key that dma-copy keys show prints here", nil}},
	{one(negotiate.ErrWordsDiffer), outcome{exit.Refused, "", nil}},
	{one(secure.ErrTimeout), outcome{exit.Peer, "check the other side", nil}},
	{one(secure.ErrPacketsLost), outcome{exit.Peer,
		"check the MTU on the way to the other side, also of tunnels, and that ICMP is let through", nil}},
	{one(secure.ErrSilent), outcome{exit.Peer,
		"check what listens there, and the MTU on the way, also of tunnels", nil}},
	{one(secure.ErrHandshake), outcome{exit.Protocol, "run dma-copy of the same release on both sides", nil}},
	{one(secure.ErrRecord), outcome{exit.Protocol, "check the device and the other side", nil}},
	{one(service.ErrDraining), outcome{exit.Peer, "start it again", nil}},
	{one(service.ErrBusy), outcome{exit.Peer, "raise --wait", nil}},
	{one(share.ErrDenied), outcome{exit.Refused, "", nil}},
	{one(job.ErrSomeFailed),
		outcome{exit.SomeFailed, "remove the causes and run the same command to copy these entries", nil}},
	{one(job.ErrLimit), outcome{exit.Limit, "", nil}},
	{one(doca.ErrBadAddress), outcome{exit.Usage, "", nil}},
	{one(job.ErrSettings), outcome{exit.Usage, "", nil}},
	{one(doca.ErrHardwareRequired),
		outcome{exit.NotHardware, "leave out --require-hw to use the software device", nil}},
	{one(doca.ErrNoCgo), outcome{exit.Device, "", nil}},
	{one(ucx.ErrUnavailable), outcome{exit.Device, "", nil}},
	{one(ucx.ErrTooManyDevices), outcome{exit.Device, "", nil}},
	{ofType[*doca.LoadError], outcome{exit.Device, "install DOCA's runtime libraries, or use --driver soft", nil}},
	{withoutProc, outcome{exit.Device, "mount it (mount -t proc proc /proc)", nil}},
	{ofType[*doca.SoftError],
		outcome{exit.Usage, "see DMA_COPY_SOFT_DIR and DMA_COPY_SOFT_LIMITS in the help", nil}},
	{misnamed("device"), outcome{exit.Device, "choose one of them with -p", nil}},
	{misnamed("representor"), outcome{exit.Device, "choose one of them with -r", nil}},
	{ofType[*doca.NotFoundError], outcome{exit.Device, HintDoctor, nil}},
	{one(doca.CodeAlreadyExist), outcome{exit.Device, "raise --wait, or stop it", leavingOut[*doca.Error]}},
	{one(job.ErrCapability), outcome{exit.Device, "", nil}},
	{one(job.ErrDigest), outcome{exit.Digest, "", nil}},
	{one(job.ErrSourceChanged), outcome{exit.SourceChanged, "", nil}},
	{one(job.ErrSource), outcome{exit.Source, "", nil}},
	{one(job.ErrTarget), outcome{exit.Target, "", nil}},
	{one(job.ErrCopy), outcome{exit.Failure, "", nil}},
	{one(negotiate.ErrOutcomeUnknown), outcome{exit.Peer, "compare both files (dma-copy verify)",
		ofPeer("transfer outcome unknown: the %s did not confirm the commit")}},
	{needsNative, outcome{exit.Protocol, "run dma-copy on the other side too",
		ofPeer("the %s uses the reference protocol, which does not support streams")}},
	{one(negotiate.ErrNeedsNative), outcome{exit.Protocol, "", nil}},
	{one(negotiate.ErrEmptyFile), outcome{exit.Protocol, "", nil}},
	{one(negotiate.ErrVersion), outcome{exit.Protocol,
		"run releases of dma-copy with a common protocol version on both sides", withDetail}},
	{one(negotiate.ErrServiceVersion), outcome{exit.Protocol,
		"run releases of dma-copy with a common version of it on both sides", withDetail}},
	{one(negotiate.ErrPayload), outcome{exit.Digest, "check the memory of both sides and the device", withDetail}},
	{one(negotiate.ErrNoPath), outcome{exit.Device,
		"leave out --path on both sides, and see what dma-copy devices lists there", withDetail}},
	{one(ping.ErrLost), outcome{exit.Peer, "check the other side and try again",
		ofPeer("the connection to the %s was lost before the last round trip")}},
	{one(job.ErrHostFailed), outcome{exit.Failure, "see its error message", leavingOut[*negotiate.Error]}},
	{one(negotiate.ErrPeerFailed), outcome{exit.Failure, "see its error message", ofPeer("the %s reported a failure")}},
	{one(comch.ErrPeerAbsent), outcome{exit.Peer, "start the other side, or raise --wait", nil}},
	{one(comch.ErrMessageSize), outcome{exit.Protocol, "give both sides the same max_msg_size in DMA_COPY_SOFT_LIMITS",
		ofPeer("the %s refused the connection: the maximum message sizes differ")}},
	{one(comch.ErrRefused), outcome{exit.Peer, "its limit of connections may be reached; check it and try again",
		ofPeer("timeout: the %s refused the connection until the end of --wait")}},
	{one(comch.ErrTurnedAway),
		outcome{exit.Peer, "it may be serving another host: raise --wait, or check the DPU", nil}},
	{one(service.ErrTurnedAway), outcome{exit.Peer,
		"too many others may be connecting, or it is shutting down: raise --wait, or see its log", nil}},
	{requestLost, outcome{exit.Peer, "check the other side and try again", ofRequest}},
	{one(comch.ErrPeerLost), outcome{exit.Peer, "check the other side and copy again", ofPeer(connectionLost)}},
	{one(negotiate.ErrPeerLost), outcome{exit.Peer, "check the other side and copy again", ofPeer(connectionLost)}},
	{one(job.ErrIdle), outcome{exit.Peer, "", nil}},
	{one(job.ErrHung), outcome{exit.Peer, "check the device and the disk", nil}},
	{ofPing, outcome{exit.Protocol, "run the same release of dma-copy on both sides", nil}},
	{ofType[*negotiate.Error],
		outcome{exit.Protocol, "run a supported release of dma-copy or doca_dma_copy on the other side", nil}},
	{one(syscall.EMFILE), outcome{exit.Usage, HintProcessFiles, nil}},
	{one(syscall.ENFILE), outcome{exit.Usage, HintSystemFiles, nil}},
	{ofType[*doca.Error], outcome{exit.Device, hintDevice, nil}},
}

const (
	connectionLost = "the connection to the %s was lost before the copy ended"

	hintDevice = "check the device and the other side's error message"

	// HintDoctor is the hint where no device was found.
	HintDoctor = "run \"dma-copy doctor\" to find the cause"

	// The hints where this process, or the whole system, has used up its file descriptors.
	HintProcessFiles = "raise the limit on open files (ulimit -n 1024)"
	HintSystemFiles  = "raise the system's limit on open files (sysctl fs.file-max), or close some"
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
	return errors.Is(err, negotiate.ErrNeedsNative) && ofType[*negotiate.Error](err)
}

// requestLost reports whether the connection was lost during a request other than a copy.
func requestLost(err error) bool {
	return ofType[*requestError](err) && (errors.Is(err, comch.ErrPeerLost) || errors.Is(err, negotiate.ErrPeerLost))
}

// ofRequest says which request the loss of the connection ended.
func ofRequest(side negotiate.Side, err error) string {
	failed, _ := errors.AsType[*requestError](err)
	return fmt.Sprintf("the connection to the %s was lost before the %s ended", side.Other(), failed.request)
}

// ofPing reports whether the protocol of a ping was violated.
func ofPing(err error) bool {
	failed, is := errors.AsType[*negotiate.Error](err)
	return is && (failed.State == negotiate.AwaitGreeting || failed.State == negotiate.Pinging)
}

// ofPeer rewords a failure as a sentence about the other side, which takes the place of %s.
func ofPeer(sentence string) wording {
	return func(side negotiate.Side, _ error) string { return fmt.Sprintf(sentence, side.Other()) }
}

// leavingOut removes what an error of type T adds to the errors around it.
func leavingOut[T error](_ negotiate.Side, err error) string {
	text := err.Error()
	if inner, is := errors.AsType[T](err); is {
		text = strings.Replace(text, ": "+inner.Error(), "", 1)
	}
	return text
}

// withDetail returns the reason and the detail, such as two version ranges, without the text that the protocol adds.
func withDetail(_ negotiate.Side, err error) string {
	apart, _ := errors.AsType[*negotiate.Error](err)
	return fmt.Sprintf("%s: %s", apart.Err, apart.Detail)
}

// abortReason returns the reason in the peer's abort message.
func abortReason(side negotiate.Side, err error) string {
	said, _ := errors.AsType[*negotiate.PeerAborted](err)
	if ofType[unbegun](err) {
		return refusalSentence(side, said.Text)
	}
	if said.Text == "" {
		return fmt.Sprintf("the %s aborted without a reason", side.Other())
	}
	return fmt.Sprintf("the %s aborted: %s", side.Other(), quote.Printable(said.Text))
}

// refusalReason returns the reason for which a daemon refused.
func refusalReason(side negotiate.Side, err error) string {
	said, _ := errors.AsType[*negotiate.Refusal](err)
	return refusalSentence(side, said.Text)
}

func refusalSentence(side negotiate.Side, text string) string {
	daemon := "the daemon on the " + side.Other().String()
	if side == negotiate.Client {
		daemon = "the daemon"
	}
	if text == "" {
		return daemon + " refused without a reason"
	}
	return daemon + " refused: " + quote.Printable(text)
}
