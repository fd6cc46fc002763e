package reference

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file finds the cause behind a failure, because the messages of this protocol carry no reason.

// afterSuccess returns what an error means once the DPU has reported success. A received file has its final name, even
// if the host fails later; whether the host has saved a sent one is not known. A report of the host itself takes
// precedence.
func (t *Transfer) afterSuccess(ctx context.Context, err error) error {
	if told, is := errors.AsType[*wire.Error](err); is && !errors.Is(told, wire.ErrPeerLost) {
		return err
	}
	switch {
	case err == nil || !t.reportedSuccess():
		return err
	case !t.sends():
		t.config.Log.Info().Err(err).Msg(job.NotConfirmed)
		t.outcome.Summary.Unconfirmed = job.Unconfirmed(err, t.config.Side.Other())
		return nil
	case ctx.Err() != nil:
		return job.OutcomeUnknown(t.config.Side.Other(), err)
	}
	return err
}

// explain finds the cause behind what was noticed first.
func (t *Transfer) explain(ctx context.Context, err error) error {
	if changed := t.sourceChange(ctx); changed != nil {
		return changed
	}
	switch {
	case errors.Is(err, wire.ErrPeerRefused):
		return t.explainRefusal(err)
	case errors.Is(err, wire.ErrEmptyFile):
		return t.explainEmptyFile(err)
	case errors.Is(err, wire.ErrPeerFailed) && t.reportedSuccess():
		return t.explainHostFailure(err)
	}
	return t.config.File.Explain(t.config.Side, err)
}

// sourceChange returns an error if a source that the peer was to get has changed: then that is the cause.
func (t *Transfer) sourceChange(ctx context.Context) error {
	if t.config.File.Source == nil || t.agreement.Protocol == 0 || t.calls.Hung() {
		return nil
	}
	if changed := t.verifySource(context.WithoutCancel(ctx)); errors.Is(changed, job.ErrSourceChanged) {
		return changed
	}
	return nil
}

// explainHostFailure tells the DPU's user whether there is a file that got its final name too early.
func (t *Transfer) explainHostFailure(err error) error {
	const next = "see its error message"
	if t.sends() {
		return job.NewError(job.ErrHostFailed, err, next, "%s, so it does not have the file", job.ErrHostFailed)
	}
	return job.NewError(job.ErrHostFailed, err, next, "%s, so %s may differ from the host's file", job.ErrHostFailed,
		t.config.File.Path)
}

// explainEmptyFile names the side that has the file. The peer would fail without a reason, since a DMA task cannot be
// empty.
func (t *Transfer) explainEmptyFile(err error) error {
	path, owner := t.config.File.Path, t.config.Side.Other()
	if t.config.File.Source != nil {
		owner = t.config.Side
	}
	return job.NewError(wire.ErrEmptyFile, err,
		"run dma-copy on the other side too, or create the empty file there",
		"cannot copy %s: the %s's file is empty, and the %s runs doca_dma_copy, which cannot copy empty files",
		path, owner, t.config.Side.Other())
}

// explainRefusal lists what a DPU refuses a host for, the likely cause first. The DPU gives no reason itself.
func (t *Transfer) explainRefusal(err error) error {
	path, peer, limit := t.config.File.Path, t.config.Side.Other(), t.peerLimit()
	switch source := t.config.File.Source; {
	case source != nil && t.exceedsPeer(source.Info().Size):
		return job.NewError(job.ErrSource, err,
			"see its error message; run dma-copy there too, which has no such limit",
			"the %s refused %s: it has the file too, cannot create it, or does not accept this size: "+
				"%d bytes exceed %s",
			peer, path, source.Info().Size, limit)
	case source != nil:
		return job.NewError(job.ErrSource, err, "see its error message; --overwrite there would replace its file",
			"the %s refused %s: it has the file too, cannot create it, or does not accept this size", peer, path)
	case t.config.File.Exists:
		return job.NewError(job.ErrSource, err, "leave out --overwrite on the sending side, or run dma-copy there too",
			"this side receives %s (--overwrite), but the %s has no file to send, uses --overwrite too, "+
				"or has one larger than %s",
			path, peer, limit)
	default:
		return job.NewError(job.ErrSource, err,
			"check the path there, or run dma-copy there too, which has no such limit",
			"the %s refused to send a file for %s: it has none, cannot read it, or has one larger than %s",
			peer, path, limit)
	}
}

// peerLimit describes the largest file of an unmodified peer: one task of its device, which is likely to be like this
// side's.
func (t *Transfer) peerLimit() string {
	const program = "the limit of doca_dma_copy"
	if largest := t.largestTask(); largest > 0 {
		return fmt.Sprintf("%s (%d bytes, if its device is like this one)", program, largest)
	}
	return program + " (one DMA task, typically 2 MiB)"
}

// exceedsPeer reports whether a file is larger than what an unmodified peer with a device like this one can copy.
func (t *Transfer) exceedsPeer(size int64) bool {
	largest := t.largestTask()
	return largest > 0 && size > largest
}

// largestTask returns how many bytes one DMA task of this side's device copies; 0 if that is not known.
func (t *Transfer) largestTask() int64 {
	if t.config.Device == nil {
		return 0
	}
	return int64(t.config.Device.Info().MaxBufferSize)
}
