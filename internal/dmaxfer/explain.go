package dmaxfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file finds the cause behind a failure in the reference protocol, whose messages carry no reason.

// afterCommit is what an error means once the DPU has done its work. A received file has its name, whatever becomes of
// the host, and whether the host has saved a sent one is not known. What the host says itself counts more than either.
func (t *transfer) afterCommit(ctx context.Context, err error) error {
	if told, is := errors.AsType[*negotiate.Error](err); is && !errors.Is(told, negotiate.ErrPeerLost) {
		return err
	}
	switch {
	case err == nil:
		return nil
	case t.committed == named:
		t.options.Log.Info().Err(err).Msg(notConfirmed)
		t.summary.Unconfirmed = unconfirmed(err, t.options.Side.Other())
		return nil
	case t.committed == asked && ctx.Err() != nil:
		return outcomeUnknown(t.options.Side.Other(), err)
	}
	return err
}

// explain finds the cause behind what was noticed first.
func (t *transfer) explain(ctx context.Context, err error) error {
	if changed := t.sourceChange(ctx); changed != nil {
		return changed
	}
	switch {
	case errors.Is(err, negotiate.ErrNeedsNative) && t.place.unsized != nil:
		why := fmt.Sprintf("the %s uses the reference protocol, which does not support streams", t.options.Side.Other())
		return t.place.needsNative(why, err)
	case errors.Is(err, negotiate.ErrBothHaveFile), errors.Is(err, negotiate.ErrNeitherHasFile),
		errors.Is(err, negotiate.ErrPeerRefused):
		return t.explainPlacement(err)
	case errors.Is(err, negotiate.ErrEmptyFile):
		return t.explainEmptyFile(err)
	case errors.Is(err, negotiate.ErrPeerFailed) && t.options.Side == negotiate.DPU && t.committed != free:
		return t.explainHostFailure(err)
	default:
		return err
	}
}

// sourceChange is non-nil if a source that the peer was to get is no longer what it was: then nothing else is the
// cause.
func (t *transfer) sourceChange(ctx context.Context) error {
	if t.place.source == nil || t.agreement.Protocol == 0 || t.hung {
		return nil
	}
	if changed := t.verifySource(context.WithoutCancel(ctx)); errors.Is(changed, ErrSourceChanged) {
		return changed
	}
	return nil
}

// explainHostFailure tells the DPU's user whether there is a file that was given its name too early.
func (t *transfer) explainHostFailure(err error) error {
	if t.sends() {
		return fmt.Errorf("%w, so it does not have the file: %w", ErrHostFailed, err)
	}
	return fmt.Errorf("%w, so %s may differ from the host's file: %w", ErrHostFailed, t.place.path, err)
}

// explainEmptyFile names the side that has the file. The peer would fail without a word, since a DMA task cannot be
// empty.
func (t *transfer) explainEmptyFile(err error) error {
	path, owner := t.place.path, t.options.Side.Other()
	if t.place.source != nil {
		owner = t.options.Side
	}
	return failure(negotiate.ErrEmptyFile, err, "run dma-copy on the other side too, or create the empty file there",
		"cannot copy %s: the %s's file is empty, and the %s runs doca_dma_copy, which cannot copy empty files",
		path, owner, t.options.Side.Other())
}

const nextIfBoth = "use --overwrite on the side whose file may be replaced, or remove it there"

// explainPlacement names the file. A host learns no reason from a refusal, but it knows what it had itself.
func (t *transfer) explainPlacement(err error) error {
	path, peer := t.place.path, t.options.Side.Other()
	switch {
	case errors.Is(err, negotiate.ErrPeerRefused):
		return t.explainRefusal(err)
	case errors.Is(err, negotiate.ErrBothHaveFile):
		return failure(ErrSource, err, nextIfBoth, "both sides have the file (here: %s)", path)
	case t.place.unsized != nil:
		return failure(ErrSource, err, "name a file there",
			"%s has no known size and is sent as a stream, but the %s named a stream too", path, peer)
	case t.place.stream:
		return failure(ErrSource, err, "name a file on one side",
			"neither side has a file: this side uses a stream (-f -), and the %s uses one too or only receives", peer)
	case t.place.replaces:
		return failure(ErrSource, err, "leave out --overwrite on the sending side",
			"this side receives %s (--overwrite), but the %s has no file to send, or uses --overwrite too", path, peer)
	default:
		return failure(ErrSource, err, "check the path on the sending side",
			"neither side has the file (here: %s)", path)
	}
}

// explainRefusal lists what a DPU refuses a host for, the likely cause first. It gives no reason itself.
func (t *transfer) explainRefusal(err error) error {
	path, peer, limit := t.place.path, t.options.Side.Other(), t.peerLimit()
	switch source := t.place.source; {
	case source != nil && t.exceedsPeer(source.Info().Size):
		return failure(ErrSource, err, "see its error message; run dma-copy there too, which has no such limit",
			"the %s refused %s: it has the file too, cannot create it, or does not accept this size: "+
				"%d bytes exceed %s",
			peer, path, source.Info().Size, limit)
	case source != nil:
		return failure(ErrSource, err, "see its error message; --overwrite there would replace its file",
			"the %s refused %s: it has the file too, cannot create it, or does not accept this size", peer, path)
	case t.place.replaces:
		return failure(ErrSource, err, "leave out --overwrite on the sending side, or run dma-copy there too",
			"this side receives %s (--overwrite), but the %s has no file to send, uses --overwrite too, "+
				"or has one larger than %s",
			path, peer, limit)
	default:
		return failure(ErrSource, err, "check the path there, or run dma-copy there too, which has no such limit",
			"the %s refused to send a file for %s: it has none, cannot read it, or has one larger than %s",
			peer, path, limit)
	}
}

// peerLimit describes the largest file of an unmodified peer: one task of its device, which is likely to be this one's
// like.
func (t *transfer) peerLimit() string {
	const program = "the limit of doca_dma_copy"
	if largest := t.device.traits().largest; largest > 0 {
		return fmt.Sprintf("%s (%d bytes, if its device is like this one)", program, largest)
	}
	return program + " (one DMA task, typically 2 MiB)"
}

// exceedsPeer reports whether a file is larger than what an unmodified peer with a device like this one can copy.
func (t *transfer) exceedsPeer(size int64) bool {
	largest := t.device.traits().largest
	return largest > 0 && size > largest
}
