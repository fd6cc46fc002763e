//go:build cgo

package dmaxfer

import (
	"path/filepath"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Limits that a user has set hold with a reference peer, too.
func TestReferenceKeepsLimits(t *testing.T) {
	sum, err := digest.ParseSum("crc32c:01020304")
	must(t, err)
	for kind, limit := range map[error]func(*Options){
		wire.ErrNeedsNative: func(o *Options) { o.Expect = &sum },
		job.ErrLimit:        func(o *Options) { o.MaxBytes = 6 },
	} {
		setup := newSetup(t, "")
		setup.host.Log, setup.dpu.Log = lenientLogs(t)
		for name, way := range setup.directions() {
			t.Run(name+", "+kind.Error(), func(t *testing.T) {
				sender, receiver := *way[0], *way[1]
				sender.ReferenceOnly = true
				limit(&receiver)
				receiver.File, sender.File = filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "file")
				jobtest.WriteFile(t, sender.File, "content")
				both := setup.runAs(t.Context(), sender, receiver)
				mustBe(t, both.errs[receiver.Side], kind)
				if both.errs[sender.Side] == nil {
					t.Error("the sender says that a copy succeeded which was refused")
				}
				jobtest.MustHold(t, filepath.Dir(receiver.File))
			})
		}
		setup.closeEarly(t)
	}
}

// What a user is told of a copy in the reference's protocol.
func TestReferenceTellsWhatItDoes(t *testing.T) {
	setup := newSetup(t, "")
	setup.host.ReferenceOnly = true
	for name, way := range setup.directions() {
		t.Run(name, func(t *testing.T) {
			sender, receiver := *way[0], *way[1]
			receiver.File, sender.File = filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "file")
			want := content(3*testChunk + 1)
			jobtest.WriteFile(t, sender.File, want)
			var events []job.Event
			sender.Notify, sender.Progress = func(e job.Event) { events = append(events, e) }, &job.Progress{}
			both := setup.runAs(t.Context(), sender, receiver)
			must(t, both.errs[wire.Host])
			must(t, both.errs[wire.DPU])
			if len(events) != 2 || events[0] != (job.PeerKnown{Protocol: wire.Reference}) ||
				events[1] != (job.Planned{Sent: true, Size: int64(len(want))}) {
				t.Errorf("told %+v", events)
			}
			is := sender.Progress.Sample()
			if is.Total != int64(len(want)) || sender.Side == wire.DPU && is.Moved != is.Total {
				t.Errorf("the progress ends with %+v", is)
			}
		})
	}
}
