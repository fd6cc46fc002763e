//go:build cgo

package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// local is a local copy in a directory of its own, and what it reported.
type local struct {
	Options
	t      *testing.T
	dir    string
	target string
	events []job.Event
}

// newLocal returns a local copy on a function of the host. At the end of the test nothing of the device may be open.
func newLocal(t *testing.T) *local {
	t.Helper()
	l := &local{t: t, dir: t.TempDir()}
	l.Options = Options{
		Device: docatest.OpenSides(t, "").Host, Chunk: testChunk, Depth: 3, IdleTimeout: 30 * time.Second,
		Log: strictLog(t), Digest: digest.CRC32C, Durability: negotiate.DurabilityFull,
		File: filepath.Join(l.dir, "source"), Notify: func(e job.Event) { l.events = append(l.events, e) },
	}
	l.target = filepath.Join(l.dir, "target")
	return l
}

func (l *local) run() (job.Summary, error) { return l.runUntil(l.t.Context()) }

func (l *local) runUntil(ctx context.Context) (job.Summary, error) {
	l.events = nil
	return RunLocal(ctx, l.Options, l.target)
}

func (l *local) mustRun() job.Summary {
	l.t.Helper()
	summary, err := l.run()
	must(l.t, err)
	if summary.Path != l.File || summary.Target != l.target || summary.Protocol != negotiate.Native {
		l.t.Errorf("the summary is %+v", summary)
	}
	return summary
}

// mustFail runs a copy that has to fail with an error of that kind, whose text contains the given one, and without a
// word about sides.
func (l *local) mustFail(kind error, text string) error {
	l.t.Helper()
	_, err := l.run()
	l.mustBeCause(err, kind, text)
	return err
}

func (l *local) mustBeCause(err, kind error, text string) {
	l.t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		l.t.Fatalf("got %v, want %v with %q", err, kind, text)
	}
	for _, word := range []string{"the host", "the DPU", "other side", "both sides have", "\n"} {
		if strings.Contains(err.Error(), word) {
			l.t.Errorf("%q contains %q", err, word)
		}
	}
}

// eventsOf returns the events of one type.
func eventsOf[T job.Event](l *local) (found []T) {
	for _, e := range l.events {
		if of, is := e.(T); is {
			found = append(found, of)
		}
	}
	return found
}

func TestLocalFile(t *testing.T) {
	for _, size := range []int{0, 1, testChunk, testChunk + 1, 3<<20 + 17} {
		t.Run(fmt.Sprint(size, " bytes"), func(t *testing.T) { copiesLocalFile(t, size) })
	}
}

func copiesLocalFile(t *testing.T, size int) {
	l, want := newLocal(t), content(size)
	jobtest.WriteFile(t, l.File, want)
	summary := l.mustRun()
	jobtest.MustContain(t, l.target, want)
	jobtest.MustHold(t, l.dir, "source", "target")
	if summary.Size != int64(size) || summary.Sum.Algorithm() != digest.CRC32C || summary.UpToDate ||
		summary.Durability != negotiate.DurabilityFull {
		t.Errorf("the summary is %+v", summary)
	}
	if known, planned := eventsOf[job.PeerKnown](l), eventsOf[job.Planned](l); len(known) != 1 || len(planned) != 1 {
		t.Errorf("%d peers were met and %d copies planned, instead of one", len(known), len(planned))
	}
	if size > 0 && (summary.Shares[pump.Peer] != 0 || summary.Shares == pump.Shares{}) {
		t.Errorf("the lanes' time is %+v", summary.Shares)
	}
}
