package native

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is how a transfer ends: what cannot be undone, what the cause is, and who is told.

// commitState is how far this side is beyond the point of no return. It follows from the state of the session.
type commitState int

const (
	cancellable commitState = iota // the transfer can be given up
	commitSent                     // a sender has sent COMMIT, and does not know whether the receiver has committed
	committing                     // a receiver renames the target, which must not be interrupted
	committed                      // the target has its final name
)

func (t *transfer) commit() commitState {
	switch t.session.Reached() {
	case negotiate.AwaitDone:
		return commitSent
	case negotiate.Committing:
		return committing
	case negotiate.AwaitDisconnect, negotiate.Done:
		return committed
	}
	return cancellable
}

// stepUninterrupted keeps a user from interrupting what cannot be undone. A side that waits for the other's last
// message gets a little time to receive it.
func (t *transfer) stepUninterrupted(ctx, late, latest context.Context) error {
	switch t.commit() {
	case cancellable:
		return t.step(ctx)
	case committing:
		return t.stepToCommit(latest)
	default:
		return t.step(late)
	}
}

// stepToCommit serves neither the peer nor the user before ctx ends: what they could ask for comes too late. The calls
// that rename the target do not report how far they are, and the peer is to wait for them.
func (t *transfer) stepToCommit(ctx context.Context) error {
	select {
	case finish := <-t.ended:
		return finish()
	case <-ctx.Done():
		return job.RenameHung(t.config.File.Path, context.Cause(ctx))
	case <-t.watch.pulse():
		if waited := t.watch.renaming(); waited > job.LongestRename {
			return job.RenameHung(t.config.File.Path, fmt.Errorf("timeout: no answer for %s", waited))
		}
		t.config.Progress.Touch()
		if err := t.sendBeat(context.WithoutCancel(ctx)); err != nil {
			t.config.Log.Debug().Err(err).Msg("could not send a heartbeat to the peer")
		}
		return nil
	}
}

// explain finds the cause behind what was noticed first. A side that cannot send any more may still receive the peer's
// last messages, and the device notices the loss of the peer before the control channel does. It returns nil if there
// is no reason to end.
func (t *transfer) explain(ctx context.Context, err error) error {
	if job.MayFollowLoss(err) {
		return t.awaitCause(ctx, err)
	}
	return err
}

// awaitCause does not wait for long: a single message that cannot be sent is no end of the connection. What the peer
// sent before it went, and what can no longer be done as it asked, comes before its last messages. After a DONE, or a
// message of the reference protocol, and while a COMMIT is followed there is no reason to end.
func (t *transfer) awaitCause(ctx context.Context, err error) error {
	enough := time.After(job.LossNotice)
	for {
		received, newErr := t.receive(ctx)
		switch {
		case newErr != nil && !job.MayFollowLoss(newErr):
			return newErr
		case received && (t.complete() || t.commit() == committing):
			return nil
		}
		ended, arrived := t.config.Conn.Done(), t.inbox.Arrived()
		if received {
			ended, arrived = nil, closed // there may be more
		}
		select {
		case <-arrived:
		case <-ended:
			return t.lost(ctx)
		case <-enough:
			return err
		}
	}
}

// conclude returns what an error means for the transfer. What happens after the commit does not take the success away:
// the target is there, verified and as durable as was asked for, whether the sender learns of it or not. A sender that
// has sent COMMIT does not know the outcome, unless the receiver reports why it could not.
func (t *transfer) conclude(err error) error {
	switch t.commit() {
	case committed:
		t.config.Log.Info().Err(err).Msg(job.NotConfirmed)
		t.account.summary.Unconfirmed = job.Unconfirmed(err, t.config.Side.Other())
		return nil
	case commitSent:
		if _, told := errors.AsType[*negotiate.PeerAborted](err); !told {
			return job.OutcomeUnknown(t.config.Side.Other(), err)
		}
	}
	return err
}

// lost follows the end of the connection, and all that the peer has sent before. It does not stop a commit.
func (t *transfer) lost(ctx context.Context) error {
	message, err := t.inbox.Recv(ctx)
	switch {
	case err == nil:
		return t.take(ctx, message)
	case t.commit() == committing:
		return nil
	case errors.Is(err, comch.ErrPeerLost):
		return t.session.Disconnected()
	}
	return err
}

// corrupted explains the failure of lanes that have given up on a chunk; path is that of the file.
func corrupted(path string, failed error) error {
	if errors.Is(failed, pump.ErrCorrupted) {
		return job.NewError(job.ErrDigest, failed, "check the memory of both sides and the device",
			"transfer of %s failed: %v", path, failed)
	}
	return failed
}

// tell tells the peer why this side gives up.
func (t *transfer) tell(err error) { t.partWith(t.session.Abort(t.code(err), err.Error())) }

// partWith sends the last message, if there is one, and lets the peer disconnect first: a connection that is cut at
// once may lose the message.
func (t *transfer) partWith(message []byte) {
	if message == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	if err := t.config.Conn.Send(ctx, message); err != nil {
		t.config.Log.Debug().Err(err).Msg("could not report the failure to the peer")
		return
	}
	select {
	case <-t.config.Conn.Done():
	case <-ctx.Done():
	}
}

func (t *transfer) code(err error) negotiate.AbortCode {
	if t.config.ExitCode == nil {
		return negotiate.AbortFailure
	}
	return negotiate.AbortCode(t.config.ExitCode(err))
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
		t.settling.acquire()
		defer t.settling.release()
		done <- t.release(failed)
	}()
	defer t.account.mute()
	select {
	case <-idle:
	case <-time.After(job.ReturnTime):
		t.notifyKept(t.abandon(failed))
		return false, job.Hung(failed)
	}
	select {
	case r := <-done:
		t.notifyKept(r.kept)
		return true, errors.Join(failed, r.err)
	case <-time.After(job.ReleaseTime):
		return false, job.Hung(failed)
	}
}

func (t *transfer) notifyKept(kept job.Kept) {
	if kept != (job.Kept{}) {
		t.account.notify(kept)
	}
}

// abandon keeps what still can be kept while a call hangs. That may hang as well. A target that may have its final name
// by now is left alone.
func (t *transfer) abandon(failed error) (kept job.Kept) {
	if t.role == nil || t.commit() != cancellable {
		return job.Kept{}
	}
	done := make(chan job.Kept, 1)
	go func() {
		t.settling.acquire()
		defer t.settling.release()
		done <- t.role.abandon(failed)
	}()
	select {
	case kept = <-done:
	case <-time.After(job.ReturnTime):
	}
	return kept
}

// release releases what the transfer held. The first failure is the one that counts, so what fails here is only logged
// then.
func (t *transfer) release(failed error) released {
	var errs []error
	var kept job.Kept
	if t.opened != nil {
		if err := t.opened.Close(); err != nil {
			errs = append(errs, fmt.Errorf("releasing the window: %w", err))
		}
	}
	if t.role != nil {
		var err error
		kept, err = t.role.settle(failed)
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if failed != nil && err != nil {
		t.config.Log.Warn().Err(err).Msg("some resources could not be released")
		err = nil
	}
	return released{kept, err}
}
