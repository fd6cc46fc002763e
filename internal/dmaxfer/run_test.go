//go:build cgo

package dmaxfer

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// testChunk is the chunk of these tests in bytes.
const testChunk = 4096

// notAFile is the path of something that is neither a file nor a directory.
const notAFile = "/dev/null"

// setup is both sides of a transfer, each with a directory of its own.
type setup struct {
	docatest.Sides
	host, dpu Options
}

func newSetup(t *testing.T, limits string) *setup {
	t.Helper()
	s := docatest.OpenSides(t, limits)
	both := Options{
		Options: role.Options{
			Chunk: testChunk, Depth: 3, IdleTimeout: 30 * time.Second, Log: strictLog(t), Digest: digest.CRC32C,
			Durability: wire.DurabilityFull,
		},
		Wait: 30 * time.Second,
	}
	host, dpu := both, both
	host.Side, host.Device, host.File = wire.Host, s.Host, filepath.Join(t.TempDir(), "file")
	dpu.Side, dpu.Device, dpu.File = wire.DPU, s.DPU, filepath.Join(t.TempDir(), "file")
	dpu.Representor = s.Host.Info().PCIAddress
	return &setup{Sides: s, host: host, dpu: dpu}
}

// strictLog fails the test that warns: what a copy complains of was not meant to happen here.
func strictLog(t *testing.T) zerolog.Logger {
	return zerolog.New(zerolog.NewTestWriter(t)).Hook(warningFails{t})
}

// lenientLogs returns the loggers of the host and of the DPU for a copy that may warn. A failed test prints their ends.
func lenientLogs(t testing.TB) (host, dpu zerolog.Logger) {
	return comchtest.LogOnFailure(t, "host"), comchtest.LogOnFailure(t, "DPU")
}

type warningFails struct{ t *testing.T }

// Run implements zerolog.Hook.
func (w warningFails) Run(_ *zerolog.Event, level zerolog.Level, message string) {
	if level >= zerolog.WarnLevel {
		w.t.Errorf("logged: %s", message)
	}
}

// directions are the two ways, each with the sender's and the receiver's options.
func (s *setup) directions() map[string][2]*Options {
	return map[string][2]*Options{"from the host": {&s.host, &s.dpu}, "from the DPU": {&s.dpu, &s.host}}
}

// outcome is what both sides say of a copy.
type outcome struct {
	summaries map[wire.Side]job.Summary
	errs      map[wire.Side]error
}

// run has both sides run at once.
func (s *setup) run(ctx context.Context) outcome { return s.runAs(ctx, s.host, s.dpu) }

func (s *setup) runAs(ctx context.Context, sides ...Options) outcome {
	type result struct {
		side    wire.Side
		summary job.Summary
		err     error
	}
	results := make(chan result, 2)
	for _, o := range sides {
		go func() {
			summary, err := Run(ctx, o)
			results <- result{o.Side, summary, err}
		}()
	}
	both := outcome{map[wire.Side]job.Summary{}, map[wire.Side]error{}}
	for range 2 {
		r := <-results
		both.summaries[r.side], both.errs[r.side] = r.summary, r.err
	}
	return both
}

func content(size int) string {
	buffer := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(buffer)
	return string(buffer)
}

func TestRunBothWays(t *testing.T) {
	for _, size := range []int{0, 1, testChunk - 1, testChunk, testChunk + 1, 3<<20 + 17} {
		setup := newSetup(t, "")
		for name, way := range setup.directions() {
			t.Run(name, func(t *testing.T) {
				sender, receiver := way[0], way[1]
				want := content(size)
				jobtest.WriteFile(t, sender.File, want)
				_ = os.Remove(receiver.File)
				setup.mustRun(t, sender, receiver, int64(size))
				jobtest.MustContain(t, receiver.File, want)
				jobtest.MustHold(t, filepath.Dir(sender.File), "file")
				jobtest.MustHold(t, filepath.Dir(receiver.File), "file")
				must(t, os.Remove(sender.File))
			})
		}
		setup.closeEarly(t)
	}
}

// closeEarly permits another setup in the same test: the software device has one set of limits at a time.
func (s *setup) closeEarly(t *testing.T) {
	t.Helper()
	must(t, s.Host.Close())
	must(t, s.DPU.Close())
	must(t, s.Driver.Close())
}

func (s *setup) mustRun(t *testing.T, sender, receiver *Options, size int64) outcome {
	t.Helper()
	both := s.run(t.Context())
	must(t, both.errs[wire.Host])
	must(t, both.errs[wire.DPU])
	for _, o := range []*Options{sender, receiver} {
		is := both.summaries[o.Side]
		if is.Sent != (o == sender) || is.Size != size || is.Path != o.File || is.Protocol == 0 {
			t.Errorf("%s: %+v is not what happened", o.Side, is)
		}
	}
	if dpu := both.summaries[wire.DPU]; size > 0 && (dpu.Chunk != testChunk || dpu.Depth < 1) {
		t.Errorf("%+v does not tell the shape", dpu)
	}
	return both
}

func TestRunReplacesOnlyOnRequest(t *testing.T) {
	setup := newSetup(t, "")
	for name, way := range setup.directions() {
		t.Run(name, func(t *testing.T) {
			sender, receiver := way[0], way[1]
			jobtest.WriteFile(t, sender.File, "new")
			jobtest.WriteFile(t, receiver.File, "old content")
			both := setup.run(t.Context())
			for side, err := range both.errs {
				if exit.Code(err) != int(wire.AbortSource) {
					t.Errorf("the %s says %d: %v", side, exit.Code(err), err)
				}
			}
			jobtest.MustContain(t, sender.File, "new")
			jobtest.MustContain(t, receiver.File, "old content")
			receiver.Overwrite = true
			setup.mustRun(t, sender, receiver, 3)
			receiver.Overwrite = false
			jobtest.MustContain(t, receiver.File, "new")
			must(t, os.Remove(sender.File))
			must(t, os.Remove(receiver.File))
		})
	}
}

func TestRunWithoutAFile(t *testing.T) {
	setup := newSetup(t, "")
	both := setup.run(t.Context())
	for _, err := range both.errs {
		jobtest.MustFail(t, err, job.ErrSource)
	}
	jobtest.MustHold(t, filepath.Dir(setup.host.File))
	jobtest.MustHold(t, filepath.Dir(setup.dpu.File))
}

// A driver that does not pin files costs memory and a warning, and nothing else.
func TestRunWhereFilesAreNotPinned(t *testing.T) {
	setup := newSetup(t, "pin_files=0")
	setup.host.ReferenceOnly = true
	setup.host.Log, _ = lenientLogs(t)
	for name, way := range setup.directions() {
		t.Run(name, func(t *testing.T) {
			sender, receiver := way[0], way[1]
			want := content(10 * testChunk)
			jobtest.WriteFile(t, sender.File, want)
			both := setup.mustRun(t, sender, receiver, int64(len(want)))
			if !both.summaries[wire.Host].Anonymous || both.summaries[wire.DPU].Anonymous {
				t.Errorf("%+v does not tell who held the file in memory", both.summaries)
			}
			jobtest.MustContain(t, receiver.File, want)
			must(t, os.Remove(sender.File))
			must(t, os.Remove(receiver.File))
		})
	}
}

func TestRunAlone(t *testing.T) {
	setup := newSetup(t, "")
	for _, o := range []Options{setup.host, setup.dpu} {
		o.Wait = 10 * time.Millisecond
		_, err := Run(t.Context(), o)
		mustBe(t, err, comch.ErrPeerAbsent)
		jobtest.MustHold(t, filepath.Dir(o.File))
	}
}

func TestRunRefusesBeforeItWaits(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_QUIRKS", "no_host_export") // so that the device lacks a capability
	setup := newSetup(t, "")
	for kind, spoil := range map[error]func(*Options){
		job.ErrSettings:   func(o *Options) { o.Chunk = 1 << 30 },
		job.ErrSource:     func(o *Options) { o.File = notAFile },
		job.ErrTarget:     func(o *Options) { o.File = filepath.Join(o.File, "missing", "file") },
		job.ErrCapability: func(o *Options) { o.Path = job.OnlyDMA },
	} {
		o := setup.dpu
		spoil(&o)
		_, err := Run(t.Context(), o)
		jobtest.MustFail(t, err, kind)
	}
	o := setup.dpu
	o.Representor = "ff:1f.7"
	if _, err := Run(t.Context(), o); !errors.As(err, new(*doca.NotFoundError)) {
		t.Errorf("got %v, want that there is no such representor", err)
	}
}

// A side that cannot start is run until the other, which waits, has been told so. That takes one run, unless the
// machine is busy.
func TestFailedStartIsReported(t *testing.T) {
	setup := newSetup(t, "")
	setup.host.Log, setup.dpu.Log = lenientLogs(t)
	for name, way := range setup.directions() {
		t.Run(name, func(t *testing.T) {
			waiting, failing := *way[0], *way[1]
			jobtest.WriteFile(t, waiting.File, "content")
			failing.File = notAFile
			waited := make(chan error, 1)
			go func() {
				_, err := Run(t.Context(), waiting)
				waited <- err
			}()
			for {
				_, err := Run(t.Context(), failing)
				jobtest.MustFail(t, err, job.ErrSource)
				select {
				case told := <-waited:
					said, is := errors.AsType[*native.PeerAborted](told)
					if !is || said.Code != wire.AbortSource || said.Text != err.Error() {
						t.Errorf("the side that waited says %v", told)
					}
					must(t, os.Remove(waiting.File))
					return
				case <-time.After(time.Second): // it tries again
				}
			}
		})
	}
}

// A DPU side that cannot start does not disturb another process that serves the representor, and a host that cannot
// start not the copy of another one.
func TestFailedStartDisturbsNoCopy(t *testing.T) {
	setup := newSetup(t, "")
	listener, err := comch.Listen(setup.DPU, setup.OpenRepresentor(t), reference.ServerName)
	must(t, err)
	defer listener.Close()
	host, err := comch.DialOnce(t.Context(), setup.Host, reference.ServerName)
	must(t, err)
	defer host.Close()
	dpu, err := listener.AcceptOnly(t.Context(), comch.Within(time.Minute))
	must(t, err)
	for _, o := range []Options{setup.host, setup.dpu} {
		o.File = notAFile
		_, err := Run(t.Context(), o)
		jobtest.MustFail(t, err, job.ErrSource)
		must(t, host.Send(t.Context(), []byte("still here")))
		_, err = dpu.Recv(t.Context())
		must(t, err)
	}
}

// A copy that cannot go on, because the engine holds it, ends with its context and leaves nothing.
func TestRunEndsWithItsContext(t *testing.T) {
	because := errors.New("it was enough")
	setup := newSetup(t, "task_latency_us=60000000")
	setup.host.Log, setup.dpu.Log = lenientLogs(t)
	for name, way := range setup.directions() {
		t.Run(name, func(t *testing.T) {
			sender, receiver := way[0], way[1]
			jobtest.WriteFile(t, sender.File, content(10*testChunk))
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(50*time.Millisecond, func() { cancel(because) })
			defer timer.Stop()
			both := setup.run(ctx)
			for side, err := range both.errs {
				if err == nil {
					t.Errorf("the %s says that a copy succeeded which cannot have", side)
				}
			}
			jobtest.MustHold(t, filepath.Dir(receiver.File))
			must(t, os.Remove(sender.File))
		})
	}
}

func TestRunWithoutProgress(t *testing.T) {
	setup := newSetup(t, "task_latency_us=60000000")
	setup.dpu.IdleTimeout = 20 * time.Millisecond
	setup.host.Log, setup.dpu.Log = lenientLogs(t)
	jobtest.WriteFile(t, setup.host.File, content(testChunk))
	both := setup.run(t.Context())
	mustBe(t, both.errs[wire.DPU], job.ErrIdle)
	if both.errs[wire.Host] == nil {
		t.Error("the host says that a copy succeeded which cannot have")
	}
	jobtest.MustHold(t, filepath.Dir(setup.dpu.File))
}
