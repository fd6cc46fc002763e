package reference

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// What a DPU says of a copy in the reference protocol once its own work is done, whatever becomes of the host.

// errInterrupted is what a user's interruption is here.
var errInterrupted = errors.New("interrupted")

const (
	filePath    = "/files/file"
	testMessage = 512 // bytes of the longest
)

// afterwards is such a copy, of an empty file: no device is needed for that.
type afterwards struct {
	t         *testing.T
	host      *comchtest.End
	interrupt context.CancelCauseFunc
}

// hearsSuccess reads the DPU's next message, which has to be STATUS(1).
func (a afterwards) hearsSuccess() {
	a.t.Helper()
	message, err := a.host.Recv(a.t.Context())
	a.check(err)
	if status, err := protocol.Decode(message); err != nil || status != (protocol.Status{Success: true}) {
		a.t.Errorf("the DPU says %v (%v)", status, err)
	}
}

// check is for any goroutine.
func (a afterwards) check(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Error(err)
	}
}

func TestAfterTheTargetIsCommitted(t *testing.T) {
	for name, tc := range map[string]struct {
		rename, then func(afterwards) // during the final rename, and after that
		want         error
		unconfirmed  string
	}{
		"the host hangs up": {then: func(a afterwards) {
			a.hearsSuccess()
			a.check(a.host.Close())
		}},
		"the host dies meanwhile": {
			rename:      func(a afterwards) { a.check(a.host.Close()) },
			unconfirmed: "the host disconnected without confirming",
		},
		"interrupted meanwhile": {
			rename: func(a afterwards) { a.interrupt(errInterrupted) },
			then: func(a afterwards) {
				a.hearsSuccess()
				a.check(a.host.Close())
			},
		},
		"interrupted afterwards": {
			then: func(a afterwards) {
				a.hearsSuccess()
				a.interrupt(errInterrupted)
			},
			unconfirmed: "the host did not confirm",
		},
		"the host falls silent": {then: afterwards.hearsSuccess, unconfirmed: "the host did not confirm"},
		"the host fails": {
			then: func(a afterwards) {
				a.hearsSuccess()
				a.check(a.host.Send(a.t.Context(), protocol.Status{}.Encode()))
			},
			want: job.ErrHostFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := disktest.NewMemory("/files")
				summary, err := serveReference(t, memory, tc.rename, tc.then)
				if !errors.Is(err, tc.want) || summary.Unconfirmed != tc.unconfirmed {
					t.Errorf("it ends with %v, %q; want %v, %q", err, summary.Unconfirmed, tc.want, tc.unconfirmed)
				}
				if _, err := memory.Stat(filePath); err != nil {
					t.Errorf("the target is not there: %v", err)
				}
			})
		})
	}
}

// A DPU that has sent the file cannot know whether a host saved it that does not hang up.
func TestAfterTheSourceIsCopied(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(afterwards)
		want error
	}{
		"the host hangs up": {func(a afterwards) {
			a.hearsSuccess()
			a.interrupt(errInterrupted)
			a.check(a.host.Close())
		}, nil},
		"interrupted": {func(a afterwards) {
			a.hearsSuccess()
			a.interrupt(errInterrupted)
		}, wire.ErrOutcomeUnknown},
		"the host falls silent": {afterwards.hearsSuccess, job.ErrIdle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := disktest.NewMemory("/files")
				dir, err := memory.OpenDir("/files")
				must(t, err)
				file, err := dir.Create("file")
				must(t, err)
				must(t, errors.Join(file.Close(), dir.Close()))
				if _, err := serveReference(t, memory, nil, tc.then); !errors.Is(err, tc.want) {
					t.Errorf("it ends with %v, want %v", err, tc.want)
				}
			})
		})
	}
}

// serveReference is the DPU's side of a copy with a host that agrees, exports, and then does what the case says.
func serveReference(t *testing.T, memory *disktest.Memory, rename, then func(afterwards)) (job.Summary, error) {
	t.Helper()
	host, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	a := afterwards{t, host, interrupt}
	on := disktest.NewFaulty(memory, func(_ int, op, _ string) *disktest.Fault {
		if op == "name" && rename != nil {
			rename(a)
		}
		return nil
	})
	file, err := job.Find(t.Context(), job.Search{FS: on, Path: filePath, IdleTimeout: time.Minute})
	must(t, err)
	defer file.Close()
	var conversation error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conversation = exportNothing(t.Context(), host, file.Source == nil); conversation == nil && then != nil {
			then(a)
		}
	}()
	outcome, err := New(Config{Side: wire.DPU, Conn: dpu, File: file, IdleTimeout: time.Minute}).Run(ctx)
	<-done
	must(t, conversation)
	must(t, errors.Join(dpu.Close(), host.Close()))
	return outcome.Summary, err
}

// exportNothing is what a dma-copy on the host says until the DPU copies an empty file.
func exportNothing(ctx context.Context, host comch.Conn, sends bool) error {
	session := protocol.New(wire.Host, protocol.Local{HasFile: sends, Marked: true},
		wire.Limits{MaxMessage: testMessage})
	if err := host.Send(ctx, session.Start()); err != nil {
		return err
	}
	answer, err := host.Recv(ctx)
	if err != nil {
		return err
	}
	if _, err := session.Receive(answer); err != nil {
		return err
	}
	export, err := session.Export(4096, []byte("descriptor"))
	if err != nil {
		return err
	}
	return host.Send(ctx, export)
}
