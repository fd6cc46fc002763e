package output

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

func inSession(reason error, detail string) error {
	return &negotiate.Error{State: negotiate.Transferring, Message: negotiate.TypeHello, Err: reason, Detail: detail}
}

// failures are errors as the packages make them, at least one for each reason of an exit code, and some with two
// reasons.
var failures = []error{
	nil,
	errors.New("something else"),
	exit.Interrupted{Signal: syscall.SIGTERM},
	&job.Defect{Value: "index out of range"},
	inSession(&negotiate.PeerAborted{Code: negotiate.AbortTarget, Text: "no\nspace"}, ""),
	inSession(&negotiate.PeerAborted{Code: negotiate.AbortOtherPath}, ""),
	&negotiate.Refusal{Code: negotiate.AbortSource, Text: "none"},
	inSession(&negotiate.Refusal{Code: negotiate.AbortSource}, ""),
	exit.Errorf(exit.Limit, "raise it", "too long"),
	service.ErrRefused,
	&secure.UntrustedError{Key: identity.Public{}, Err: errors.New("not trusted")},
	secure.ErrRefused,
	job.NewError(negotiate.ErrWordsDiffer, nil, "give the same", "words differ"),
	inSession(negotiate.ErrWordsDiffer, ""),
	secure.ErrTimeout,
	secure.ErrPacketsLost,
	secure.ErrSilent,
	secure.ErrHandshake,
	secure.ErrRecord,
	service.ErrDraining,
	service.ErrBusy,
	fmt.Errorf("share a: %w to write", share.ErrDenied),
	job.ErrSomeFailed,
	job.NewError(job.ErrLimit, nil, "raise it", "too large"),
	fmt.Errorf("x: %w", doca.ErrBadAddress),
	job.NewError(job.ErrSettings, nil, "choose another", "chunk"),
	doca.ErrHardwareRequired,
	doca.ErrNoCgo,
	ucx.ErrUnavailable,
	ucx.ErrTooManyDevices,
	&doca.LoadError{Reason: "no libdoca_common.so"},
	&doca.SoftError{Reason: "no /proc", NoProc: true},
	&doca.SoftError{Reason: "limit x is not known"},
	&doca.NotFoundError{Kind: "device", Name: "x", Available: []string{"a"}},
	&doca.NotFoundError{Kind: "device", Name: "x"},
	&doca.NotFoundError{Kind: "representor", Name: "x", Available: []string{"a", "b"}},
	&doca.NotFoundError{Kind: "representor", Name: "x"},
	fmt.Errorf("another dma-copy serves: %w", &doca.Error{Op: "doca_ctx_start", Code: doca.CodeAlreadyExist}),
	&doca.Error{Op: "doca_ctx_start", Code: doca.CodeAlreadyExist, Detail: "name"},
	job.NewError(job.ErrCapability, nil, "use another", "no DMA"),
	job.NewError(job.ErrCapability, negotiate.ErrNoPath, "use another", "no DMA"),
	job.NewError(job.ErrDigest, nil, "copy again", "mismatch"),
	job.NewError(job.ErrSourceChanged, nil, "copy again", "changed"),
	job.NewError(job.ErrSource, inSession(negotiate.ErrPeerRefused, ""), "check it", "cannot read"),
	job.NewError(job.ErrTarget, syscall.EMFILE, "free some", "cannot write"),
	job.NewError(disk.ErrExists, nil, "use --overwrite", "x exists"),
	disk.ErrNoSpace,
	disk.ErrBusy,
	disk.ErrChanged,
	job.NewError(job.ErrCopy, &doca.Error{Op: "dma", Code: doca.CodeIOFailed}, "check", "the copy failed"),
	job.OutcomeUnknown(negotiate.DPU, comch.ErrPeerLost),
	inSession(negotiate.ErrOutcomeUnknown, ""),
	job.Hung(inSession(negotiate.ErrOutcomeUnknown, "")),
	job.NewError(negotiate.ErrNeedsNative, nil, "run dma-copy there", "a directory"),
	inSession(negotiate.ErrNeedsNative, ""),
	job.NewError(negotiate.ErrEmptyFile, inSession(negotiate.ErrEmptyFile, ""), "run dma-copy there", "empty"),
	inSession(negotiate.ErrEmptyFile, ""),
	inSession(negotiate.ErrVersion, "1 and 2"),
	inSession(negotiate.ErrServiceVersion, "1 and 2"),
	inSession(negotiate.ErrPayload, "round trip 7"),
	inSession(negotiate.ErrNoPath, "dma and fast"),
	ping.ErrLost,
	inSession(negotiate.ErrPeerFailed, ""),
	fmt.Errorf("%w within 1s (%w)", comch.ErrPeerAbsent, syscall.ECONNREFUSED),
	comch.ErrMessageSize,
	comch.ErrRefused,
	fmt.Errorf("%w (3 times)", comch.ErrTurnedAway),
	fmt.Errorf("%w (3 times)", service.ErrTurnedAway),
	InRequest("list", &SideError{Err: comch.ErrPeerLost}),
	InRequest("list", &SideError{Err: inSession(negotiate.ErrServiceLost, "")}),
	InRequest("list", &SideError{Err: service.ErrDraining}),
	InRequest("list", &SideError{Err: inSession(negotiate.ErrMalformed, "")}),
	InRequest("list", &SideError{Err: errors.New("something else")}),
	fmt.Errorf("%w (%w)", comch.ErrPeerLost, &doca.Error{Op: "send", Code: doca.CodeConnectionReset}),
	job.Hung(comch.ErrPeerLost),
	secure.ErrPeerClosed,
	inSession(negotiate.ErrPeerLost, ""),
	inSession(negotiate.ErrServiceLost, ""),
	job.NewError(job.ErrIdle, job.ErrPeerIdle, "check it", "silent"),
	job.RenameHung("x", errors.New("why")),
	job.ErrHung,
	job.Hung(errors.New("something else")),
	job.Hung(job.Stalled(1)),
	&negotiate.Error{State: negotiate.Pinging, Err: negotiate.ErrOutOfOrder, Detail: "twice"},
	&negotiate.Error{State: negotiate.AwaitGreeting, Err: negotiate.ErrMalformed},
	inSession(negotiate.ErrMalformed, "length 3"),
	inSession(negotiate.ErrOutOfOrder, ""),
	inSession(negotiate.ErrTooLarge, ""),
	inSession(negotiate.ErrPeerRefused, ""),
	inSession(negotiate.ErrDisagreement, ""),
	inSession(negotiate.ErrAborted, ""),
	inSession(negotiate.ErrKindMismatch, ""),
	fmt.Errorf("the results of the DPU: %w", negotiate.ErrMalformed),
	&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE},
	&os.PathError{Op: "open", Path: "x", Err: syscall.ENFILE},
	&doca.Error{Op: "doca_mmap_start", Code: doca.CodeDriver, Detail: "pin"},
	errors.Join(errors.New("something else"), &doca.Error{Op: "doca_dev_close", Code: doca.CodeInUse}),
}

// The exit code and the line of each failure, without a side and on each side where it has other words, are part of the
// program's interface.
func TestFailures(t *testing.T) {
	var lines strings.Builder
	for _, err := range failures {
		if sided, is := errors.AsType[*SideError](err); is {
			err = sided.Err
		}
		if err == nil {
			fmt.Fprintf(&lines, "%v\n  %d\n", err, ExitCode(err))
			continue
		}
		fmt.Fprintf(&lines, "%q\n  %d %s\n", err, ExitCode(err), Sentence(err))
		for _, sided := range []*SideError{
			{Side: negotiate.Host, Err: err}, {Side: negotiate.Client, Err: err},
			{Side: negotiate.DPU, Local: true, Err: err}, {Side: negotiate.DPU, Err: unbegun{err}},
		} {
			if ExitCode(sided) != ExitCode(err) || Sentence(sided) != sided.prefix()+Sentence(err) {
				fmt.Fprintf(&lines, "  %d %s\n", ExitCode(sided), Sentence(sided))
			}
		}
	}
	compareGolden(t, "testdata/failures.golden", lines.String())
}
