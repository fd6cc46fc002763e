package native

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/exit"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file is how a transfer ends: what cannot be undone, what the cause is, and who is told.

// stepUninterrupted keeps a user from interrupting what cannot be undone. A receiver that waits for the sender's last
// message gets a little time to receive it.
func (t *transfer) stepUninterrupted(ctx, late, latest context.Context) error {
	switch {
	case t.committing():
		return t.awaitCommit(ctx, latest)()
	case t.committed():
		return t.step(ctx, late)
	}
	return t.step(ctx, ctx)
}

// committed reports whether the receiver has committed what there is to commit, as far as this side knows.
func (t *transfer) committed() bool {
	return t.role != nil && (t.role.Committed() || t.session.Transfers() > 0)
}

// awaitCommit is await while a target is renamed. It serves neither the peer nor the user before until ends: what they
// could ask for comes too late. The calls that rename the target do not report how far they are, and the peer is to
// wait for them.
func (t *transfer) awaitCommit(ctx, until context.Context) (handle func() error) {
	t.lent.release()
	defer t.lent.acquire()
	select {
	case <-t.posted.arrived:
		return func() error { return t.servePosted(ctx, until) }
	case <-until.Done():
		return func() error { return job.RenameHung(t.config.File.Path, context.Cause(until)) }
	case <-t.watch.pulse():
		return func() error { return t.beatDuringCommit(until) }
	}
}

// beatDuringCommit tells the peer that this side lives, and ends a transfer whose rename does not return.
func (t *transfer) beatDuringCommit(ctx context.Context) error {
	t.seen.pulse(t.session)
	if waited := t.watch.renaming(); waited > job.LongestRename {
		return job.RenameHung(t.config.File.Path, fmt.Errorf("timeout: no answer for %s", waited))
	}
	t.config.Progress.Touch()
	if err := t.sendBeat(context.WithoutCancel(ctx)); err != nil {
		t.config.Log.Debug().Err(err).Msg("could not send a heartbeat to the peer")
	}
	return nil
}

// explain finds the cause behind what was noticed first. A side that cannot send any more may still receive the peer's
// last messages, and the device notices the loss of the peer before the control channel does: so does a look for memory
// of a peer that was killed. It returns nil if there is no reason to end.
func (t *transfer) explain(ctx context.Context, err error) error {
	if job.MayFollowLoss(err) || errors.Is(err, window.ErrUnreachable) {
		return t.awaitCause(ctx, err)
	}
	return err
}

// awaitCause does not wait for long: a single message that cannot be sent is no end of the connection. Messages that
// the peer sent before it went, and requests of it that can no longer be met, come before its last messages. After a
// FINISHED, or a message of the reference protocol, and during the rename of the only file there is no reason to end.
func (t *transfer) awaitCause(ctx context.Context, err error) error {
	enough := time.After(job.LossNotice)
	for {
		received, newErr := t.receive(ctx)
		switch {
		case newErr != nil && !job.MayFollowLoss(newErr):
			return newErr
		case received && (t.complete() || t.committing() && !t.params.Plan.Tree):
			return nil
		}
		ended, arrived := t.config.Conn.Done(), t.config.Conn.Arrived()
		if received {
			ended, arrived = nil, closed // there may be more
		}
		select {
		case <-arrived:
		case <-ended:
			return t.lost(ctx)
		case <-enough:
			select {
			case <-ended: // both have happened while this process did not run
				return t.lost(ctx)
			default:
				return err
			}
		}
	}
}

func (t *transfer) committing() bool { return t.role != nil && t.role.Committing() }

// conclude returns what an error means for the transfer. An error after the commit does not take the success away:
// the target is there, verified and as durable as was asked for, whether the sender learns of it or not. A sender has
// only the receiver's word for that, which does not count if one of them then breaks the protocol by the other's word.
func (t *transfer) conclude(err error) error {
	aborted, is := errors.AsType[*protocol.PeerAborted](err)
	broken := wire.IsViolation(err) || is && aborted.Code == wire.AbortProtocol
	if !t.committed() || t.params.Sends() && broken {
		return err
	}
	t.stats.Done(t.params.Durability())
	if t.params.Sends() {
		t.config.Log.Info().Err(err).Msg("target committed, but the receiver did not confirm the end of the transfer")
		return nil
	}
	t.config.Log.Info().Err(err).Msg(job.NotConfirmed)
	t.stats.Unconfirmed(job.Unconfirmed(err, t.config.Side.Other()))
	return nil
}

// lost follows the end of the connection, and all that the peer has sent before. It does not stop a commit.
func (t *transfer) lost(ctx context.Context) error {
	message, err := t.config.Conn.Recv(ctx)
	switch {
	case err == nil:
		return t.take(ctx, message)
	case t.committing():
		return nil
	case errors.Is(err, comch.ErrPeerLost):
		return t.session.Disconnected()
	}
	return err
}

// giveUp tells the peer why this side ends the transfer. The ABORT of a receiver means that it commits nothing more, so
// while a commit of a tree hangs it sends none: the end of the connection then leaves the sender in doubt about what it
// has ended. For a single file, and after a panic, the text of the ABORT says that the outcome is unknown.
func (t *transfer) giveUp(err error) error {
	switch {
	case t.haltCommits() || !t.params.Plan.Tree:
	case t.defect.Load() == nil:
		return err
	default:
		err = fmt.Errorf("%w (some files may have been committed without a report)", err)
	}
	return t.tell(err)
}

// tell tells the peer why this side gives up. A sender then waits for the results of what the receiver may have
// committed by then, and returns what the error has become by that.
func (t *transfer) tell(err error) error {
	unconfirmed := t.params.Sends() && t.session.Unconfirmed() > 0
	message := t.session.Abort(t.Code(err), err.Error())
	if t.session.State() != protocol.Cancelling {
		t.partWith(message)
		if !unconfirmed || toldWhy(err) {
			return err
		}
		if errors.Is(err, wire.ErrOutcomeUnknown) {
			err = wire.ErrPeerLost // which is why the session does not know
		}
		return job.OutcomeUnknown(t.config.Side.Other(), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	if sendErr := t.transmit(ctx, message); sendErr != nil {
		t.config.Log.Debug().Err(sendErr).Msg("could not report the failure to the peer")
	}
	for t.session.State() == protocol.Cancelling {
		message, recvErr := t.config.Conn.Recv(ctx)
		if recvErr != nil || ctx.Err() != nil { // heartbeats without end
			return job.OutcomeUnknown(t.config.Side.Other(), err)
		}
		step, failure := t.session.Receive(message)
		t.trace.Received(message, t.session.State())
		switch {
		case toldWhy(failure):
			return err // what it has not reported by then it has not committed
		case failure != nil:
			return job.OutcomeUnknown(t.config.Side.Other(), err)
		}
		t.takeLate(step)
	}
	if t.params.Plan.Tree || !t.stats.Renamed() {
		return err
	}
	return nil // all that there was to commit has been committed
}

// toldWhy reports whether the receiver has said why it could not commit.
func toldWhy(err error) bool {
	_, told := errors.AsType[*protocol.PeerAborted](err)
	return told
}

// takeLate counts what the receiver has committed before it was told that the transfer is given up.
func (t *transfer) takeLate(step protocol.Step) {
	switch step.Event {
	case protocol.Committed, protocol.EntryFailed, protocol.PeerFinished:
		if err := t.role.Handle(context.Background(), step); err != nil {
			t.config.Log.Debug().Err(err).Msg("after the transfer was given up")
		}
	}
}

// reportCancelled tells a sender that has given up what has been committed, and that nothing more will be. It does not
// wait for long for what is just being committed; the sender then does not know the outcome.
func (t *transfer) reportCancelled() {
	if t.haltCommits() {
		if message, err := t.session.Cancelled(t.message[:0]); err == nil {
			t.partWith(message)
		}
	}
}

// haltCommits has a receiver that gives up report what it has committed, before it says why it gives up. It does not
// wait for long for what is just being committed. It reports whether the sender has been told of all commits.
func (t *transfer) haltCommits() (reported bool) {
	if t.role == nil || t.params.Sends() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	err := t.role.Halt(ctx)
	if err == nil && t.outbox() != nil {
		err = t.role.Flush(ctx)
	}
	if err != nil {
		t.config.Log.Debug().Err(err).Msg("could not report what was committed")
	}
	return err == nil
}

// partWith sends the last message, if there is one, and lets the peer disconnect first: a connection that is cut at
// once may lose the message. One that is kept is not cut.
func (t *transfer) partWith(message []byte) {
	if message == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	if err := t.transmit(ctx, message); err != nil {
		t.config.Log.Debug().Err(err).Msg("could not report the failure to the peer")
		return
	}
	if t.config.Kept {
		return
	}
	select {
	case <-t.config.Conn.Done():
	case <-ctx.Done():
	}
}

// Code implements role.Link.
func (t *transfer) Code(err error) wire.AbortCode {
	if errors.Is(err, job.ErrOtherPath) {
		return wire.AbortOtherPath
	}
	return wire.AbortCode(exit.Code(err))
}

// released is what a transfer ends with once all that it held has been released.
type released struct {
	kept job.Kept
	err  error
}

// windUp waits until no job of the transfer is at work, and releases what it held. Where a call hangs, another
// goroutine does so when the call has returned.
func (t *transfer) windUp(failed error) (returned bool, err error) {
	idle, done := make(chan struct{}), make(chan released, 1)
	go func() {
		t.jobs.Wait()
		close(idle)
		t.ending.acquire()
		defer t.ending.release()
		var r released
		if err := t.protect(func() error { r = t.release(failed); return nil }); err != nil {
			r.err = err
		}
		done <- r
	}()
	defer t.stats.Mute()
	select {
	case <-idle:
	case <-time.After(job.ReturnTime):
		t.notifyKept(t.abandon(failed))
		return false, job.Hung(failed)
	}
	select {
	case r := <-done:
		t.notifyKept(r.kept)
		if d := t.defect.Load(); d != nil {
			return true, d
		}
		return true, errors.Join(failed, r.err)
	case <-time.After(job.ReleaseTime):
		return false, job.Hung(failed)
	}
}

func (t *transfer) notifyKept(kept job.Kept) {
	if kept != (job.Kept{}) {
		t.stats.Notify(kept)
	}
}

// abandon keeps what still can be kept while a call hangs. That may hang as well. A target that may have its final name
// by now is left alone.
func (t *transfer) abandon(failed error) (kept job.Kept) {
	if t.role == nil || t.committing() || t.committed() {
		return job.Kept{}
	}
	done := make(chan job.Kept, 1)
	go func() {
		t.ending.acquire()
		defer t.ending.release()
		var kept job.Kept
		_ = t.protect(func() error { kept = t.role.Abandon(failed); return nil }) // failed is the error that counts
		done <- kept
	}()
	select {
	case kept = <-done:
	case <-time.After(job.ReturnTime):
	}
	return kept
}

// release releases what the transfer held, apart from the window after a panic. The first failure is the one that
// counts, so what fails here is only logged then.
func (t *transfer) release(failed error) released {
	var errs []error
	var kept job.Kept
	if t.opened != nil && t.defect.Load() == nil {
		if failed == nil {
			t.opened.Clean()
		}
		if err := t.opened.Close(); err != nil {
			errs = append(errs, fmt.Errorf("releasing the window: %w", err))
		}
	}
	if t.role != nil {
		var err error
		kept, err = t.role.Close(failed)
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if failed != nil && err != nil {
		t.config.Log.Warn().Err(err).Msg("some resources could not be released")
		err = nil
	}
	return released{kept, err}
}
