package report

import (
	"errors"
	"flag"
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
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/report/reporttest"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

func inSession(reason error, detail string) error {
	return &wire.Error{State: native.Transferring, Message: wire.TypeHello, Err: reason, Detail: detail}
}

// failures are errors as the packages make them, at least one for each reason of an exit code, and some with two
// reasons.
var failures = []error{
	nil,
	errors.New("something else"),
	exit.Interrupted{Signal: syscall.SIGTERM},
	&job.Defect{Value: "index out of range"},
	inSession(&native.PeerAborted{Code: wire.AbortTarget, Text: "no\nspace"}, ""),
	inSession(&native.PeerAborted{Code: wire.AbortOtherPath}, ""),
	&protocol.Refusal{Code: wire.AbortSource, Text: "none"},
	inSession(&protocol.Refusal{Code: wire.AbortSource}, ""),
	exit.Errorf(exit.Limit, "", "stopped by --max-duration after 1s"),
	service.ErrRefused,
	&secure.UntrustedError{Key: identity.Public{}, Err: errors.New("not trusted")},
	secure.ErrRefused,
	job.NewError(wire.ErrWordsDiffer, nil, "give the same", "words differ"),
	inSession(wire.ErrWordsDiffer, ""),
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
	job.NewError(job.ErrCapability, wire.ErrNoPath, "use another", "no DMA"),
	job.NewError(job.ErrDigest, nil, "copy again", "mismatch"),
	job.NewError(job.ErrSourceChanged, nil, "copy again", "changed"),
	job.NewError(job.ErrSource, inSession(wire.ErrPeerRefused, ""), "check it", "cannot read"),
	job.NewError(job.ErrTarget, syscall.EMFILE, "free some", "cannot write"),
	job.NewError(disk.ErrExists, nil, "use --overwrite", "x exists"),
	disk.ErrNoSpace,
	disk.ErrBusy,
	disk.ErrChanged,
	job.NewError(job.ErrCopy, &doca.Error{Op: "dma", Code: doca.CodeIOFailed}, "check", "the copy failed"),
	job.OutcomeUnknown(wire.DPU, comch.ErrPeerLost),
	inSession(wire.ErrOutcomeUnknown, ""),
	job.Hung(inSession(wire.ErrOutcomeUnknown, "")),
	job.NewError(wire.ErrNeedsNative, nil, "run dma-copy there", "a directory"),
	(&job.LocalFile{Stream: true}).Explain(wire.Host, inSession(wire.ErrNeedsNative, "")),
	job.NewError(wire.ErrEmptyFile, inSession(wire.ErrEmptyFile, ""), "run dma-copy there", "empty"),
	inSession(wire.ErrEmptyFile, ""),
	inSession(wire.ErrVersion, "1 and 2"),
	inSession(protocol.ErrVersion, "1 and 2"),
	inSession(protocol.ErrPayload, "round trip 7"),
	inSession(wire.ErrNoPath, "dma and fast"),
	ping.ErrLost,
	inSession(wire.ErrPeerFailed, ""),
	fmt.Errorf("%w within 1s (%w)", comch.ErrPeerAbsent, syscall.ECONNREFUSED),
	comch.ErrMessageSize,
	comch.ErrRefused,
	fmt.Errorf("%w (3 times)", comch.ErrTurnedAway),
	fmt.Errorf("%w (3 times)", service.ErrTurnedAway),
	InRequest("list", &SideError{Err: comch.ErrPeerLost}),
	InRequest("list", &SideError{Err: inSession(protocol.ErrLost, "")}),
	InRequest("list", &SideError{Err: service.ErrDraining}),
	InRequest("list", &SideError{Err: inSession(wire.ErrMalformed, "")}),
	InRequest("list", &SideError{Err: errors.New("something else")}),
	fmt.Errorf("%w (%w)", comch.ErrPeerLost, &doca.Error{Op: "send", Code: doca.CodeConnectionReset}),
	job.Hung(comch.ErrPeerLost),
	secure.ErrPeerClosed,
	inSession(wire.ErrPeerLost, ""),
	inSession(protocol.ErrLost, ""),
	job.NewError(job.ErrIdle, job.ErrPeerIdle, "check it", "silent"),
	job.RenameHung("x", errors.New("why")),
	job.ErrHung,
	job.Hung(errors.New("something else")),
	job.Hung(job.Stalled(1)),
	&wire.Error{State: protocol.Pinging, Err: wire.ErrOutOfOrder, Detail: "twice"},
	&wire.Error{State: protocol.AwaitGreeting, Err: wire.ErrMalformed},
	inSession(wire.ErrMalformed, "length 3"),
	inSession(wire.ErrOutOfOrder, ""),
	inSession(wire.ErrTooLarge, ""),
	inSession(wire.ErrPeerRefused, ""),
	inSession(wire.ErrDisagreement, ""),
	inSession(wire.ErrAborted, ""),
	inSession(wire.ErrKindMismatch, ""),
	&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE},
	&os.PathError{Op: "open", Path: "x", Err: syscall.ENFILE},
	&doca.Error{Op: "doca_mmap_start", Code: doca.CodeDriver, Detail: "pin"},
	errors.Join(errors.New("something else"), &doca.Error{Op: "doca_dev_close", Code: doca.CodeInUse}),
}

var update = flag.Bool("update", false, "rewrite the golden file of failures")

// The exit code and the line of each failure, without a side and on each side where it has other words, are part of the
// program's interface.
func TestFailures(t *testing.T) {
	var lines strings.Builder
	for _, err := range failures {
		if sided, is := errors.AsType[*SideError](err); is {
			err = sided.Err
		}
		if err == nil {
			fmt.Fprintf(&lines, "%v\n  %d\n", err, exit.Code(err))
			continue
		}
		fmt.Fprintf(&lines, "%q\n  %d %s\n", err, exit.Code(err), Sentence(err))
		for _, sided := range []*SideError{
			{Side: wire.Host, Err: err}, {Side: wire.Client, Err: err},
			{Side: wire.DPU, Local: true, Err: err}, {Side: wire.DPU, Err: unbegun{err}},
		} {
			if exit.Code(sided) != exit.Code(err) || Sentence(sided) != sided.prefix()+Sentence(err) {
				fmt.Fprintf(&lines, "  %d %s\n", exit.Code(sided), Sentence(sided))
			}
		}
	}
	reporttest.CompareGolden(t, "testdata/failures.golden", lines.String(), *update)
}
