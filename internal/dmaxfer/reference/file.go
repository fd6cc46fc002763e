package reference

import (
	"context"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// prepare opens and preallocates what was agreed. The host then exports its memory; the DPU waits for that.
func (t *Transfer) prepare(ctx context.Context, a protocol.Agreement) error {
	t.agreement = a
	t.now.note(func() { t.now.agreement = a })
	t.outcome.Summary = job.Summary{
		Sent: t.sends(), Path: t.config.File.Path, Size: int64(a.Size), Protocol: a.Protocol,
	}
	t.config.Log.Info().Stringer("sender", a.Sender).Uint64("bytes", a.Size).Stringer("protocol", a.Protocol).
		Msg("agreed")
	t.entryLine().Uint64("bytes", a.Size).Msg("entry planned")
	if err := t.checkAllowed(); err != nil {
		return err
	}
	t.announce()
	if t.sends() {
		t.entryLine().Msg("entry needed")
	} else if err := t.createTarget(ctx, int64(a.Size)); err != nil {
		return err
	}
	if t.config.Side == wire.DPU {
		return nil
	}
	if err := t.expose(ctx); err != nil {
		return err
	}
	return t.export(ctx)
}

// checkAllowed refuses what the user does not want, or what cannot be checked in this protocol.
func (t *Transfer) checkAllowed() error {
	if t.config.Expect != nil {
		return job.NewError(wire.ErrNeedsNative, nil, "run dma-copy on the other side too, or leave out --expect",
			"the %s uses the reference protocol, which has no digest to compare with %s",
			t.config.Side.Other(), t.config.Expect)
	}
	if t.config.Word != (native.Word{}) {
		return job.NewError(wire.ErrWordsDiffer, nil, "run dma-copy on the other side too, or leave out --with",
			"the %s uses the reference protocol, which has no --with", t.config.Side.Other())
	}
	if t.config.DryRun {
		const next = "run dma-copy on the other side too, or leave out --dry-run"
		return job.NewError(wire.ErrNeedsNative, nil, next,
			"the %s uses the reference protocol, in which only a copy shows what would be copied",
			t.config.Side.Other())
	}
	if !t.sends() {
		if err := t.config.File.CheckFile(t.config.Side.Other()); err != nil {
			return err
		}
	}
	if size := t.outcome.Summary.Size; t.config.MaxBytes > 0 && size > t.config.MaxBytes {
		return job.OverLimit(t.config.File.Path, size, t.config.MaxBytes)
	}
	return nil
}

// announce tells the user of the agreement. The host does not know in what chunks the DPU copies.
func (t *Transfer) announce() {
	t.config.Progress.SetTotal(t.outcome.Summary.Size)
	t.notify(job.PeerKnown{Protocol: t.agreement.Protocol})
	t.notify(job.Planned{Sent: t.sends(), Size: t.outcome.Summary.Size})
}

func (t *Transfer) createTarget(ctx context.Context, size int64) error {
	t.config.Progress.Enter(job.Preparing)
	err := t.do(ctx, "preallocate the file", t.longGrace(), func(ctx context.Context) error {
		partial, err := disk.OpenPartial(t.config.File.FS, t.config.File.Name, disk.Wanted{
			Size: size, Known: true, Overwrite: t.config.File.Overwrite, Backup: t.config.Backup,
			Mapped: t.config.Side == wire.Host,
		})
		if err != nil {
			return err
		}
		t.partial = partial
		t.entryLine().Msg("entry needed")
		return partial.Allocate(ctx, t.config.Progress.Worked)
	})
	if err != nil {
		return err
	}
	t.target = t.partial
	for _, sentence := range job.TargetWarnings(t.target) {
		t.notify(job.Warned{Text: sentence})
	}
	return nil
}

// expose makes the whole file memory that the DPU reads or writes.
func (t *Transfer) expose(ctx context.Context) error {
	return t.do(ctx, "register the memory of the file", t.longGrace(), func(ctx context.Context) error {
		memory, err := t.exposed(ctx)
		if err == nil {
			t.memory = memory
			t.config.Log.Debug().Bool("anonymous", memory.anonymous).Msg("window opened")
		}
		return err
	})
}

func (t *Transfer) exposed(ctx context.Context) (*fileMemory, error) {
	if t.sends() {
		return exposeSource(ctx, t.config.Device, t.config.File.Source, t.config.Log)
	}
	return expose(t.config.Device, t.target.File(), t.outcome.Summary.Size, doca.RemoteWrite, t.config.Log)
}

func (t *Transfer) export(ctx context.Context) error {
	t.outcome.Summary.Anonymous = t.memory.anonymous && t.outcome.Summary.Size > 0
	descriptor, err := t.memory.region.Export()
	if err != nil {
		return err
	}
	message, err := t.session.Export(t.memory.region.Address(), descriptor)
	if err != nil {
		return err
	}
	return t.send(ctx, message)
}

// copyAndReport is the DPU's work. It reports success only once this side has done all of its own work.
func (t *Transfer) copyAndReport(ctx context.Context, e protocol.Export) error {
	if err := t.copyWatched(ctx, e); err != nil {
		return err
	}
	if err := t.conclude(ctx); err != nil {
		return err
	}
	message, err := t.session.Finish(true)
	if err != nil {
		return err
	}
	return t.send(job.Overtime(ctx, job.PartingTime), message)
}

// conclude ends the peer's access to this side's memory, and then commits the target or verifies that the source has
// not changed. The peer must not be able to write to a file that is about to get its final name.
func (t *Transfer) conclude(ctx context.Context) error {
	if err := t.releaseMemory(ctx); err != nil {
		return err
	}
	finish := t.commitTarget
	if t.sends() {
		t.entryLine().Msg("entry sent")
		finish = t.verifySource
	}
	if err := finish(ctx); err != nil {
		return err
	}
	t.outcome.Summary.Elapsed = time.Since(t.started)
	return nil
}

func (t *Transfer) releaseMemory(ctx context.Context) error {
	if t.memory == nil {
		return nil
	}
	err := t.do(ctx, "release the memory of the file", t.longGrace(), func(ctx context.Context) error {
		if !t.sends() {
			if err := t.memory.save(ctx, t.target, t.outcome.Summary.Size); err != nil {
				return err
			}
		}
		if err := t.memory.close(); err != nil {
			return fmt.Errorf("releasing the file's memory: %w", err)
		}
		return nil
	})
	if err == nil {
		t.memory = nil
	}
	return err
}

func (t *Transfer) verifySource(ctx context.Context) error {
	return t.do(ctx, "check that the source has not changed", t.config.IdleTimeout, func(context.Context) error {
		return t.config.File.Source.Verify(nil)
	})
}

// commitTarget gives the target its final name. Once the rename has begun the target is only released, never abandoned.
func (t *Transfer) commitTarget(ctx context.Context) error {
	target, size := t.target, t.outcome.Summary.Size
	t.config.Progress.Enter(job.Finishing)
	err := t.do(ctx, "flush the file", t.longGrace(), func(ctx context.Context) error {
		return target.Prepare(ctx, disk.Metadata{Size: size}, wire.DurabilityFull, t.config.Progress.Worked)
	})
	if err != nil {
		return err
	}
	t.target = nil
	t.entryLine().Msg("entry stored")
	grace := max(t.config.IdleTimeout, job.LongestRename)
	err = t.do(job.Overtime(ctx, job.RenameGrace), "rename the file", grace, func(context.Context) error {
		return target.Commit(wire.DurabilityFull)
	})
	if t.calls.Hung() {
		return job.RenameHung(t.config.File.Path, err)
	}
	if err == nil {
		t.committed = true
		t.entryLine().Msg(committed)
	}
	return err
}

// release releases what a failed transfer has left. While a call hangs it only removes the name of the partial file,
// which cannot be resumed in this protocol; the rest follows when the call returns. It reports whether all calls have
// returned.
func (t *Transfer) release() (returned bool) {
	done := make(chan struct{})
	undo := func() {
		t.discard()
		close(done)
	}
	if t.calls.Hung() {
		undo = func() {
			if t.target != nil {
				t.target.Abandon(false)
			}
			close(done)
			t.calls.Wait()
			t.discard()
		}
	}
	go undo()
	select {
	case <-done:
		return !t.calls.Hung()
	case <-time.After(job.ReleaseTime):
		return false
	}
}

func (t *Transfer) discard() {
	if t.memory != nil {
		if err := t.memory.close(); err != nil {
			t.config.Log.Warn().Err(err).Msg("the file's memory stays registered until this process ends")
		}
	}
	if t.partial != nil {
		t.partial.Discard()
	}
}
