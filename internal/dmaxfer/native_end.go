package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is how a native copy ends: what cannot be taken back, what was really the cause, and who is told.

// commitment is what a part has done that it cannot take back.
type commitment int

const (
	free   commitment = iota // nothing: the copy can be given up
	asked                    // a sender has let the receiver give the file its name, and does not know yet whether it has
	naming                   // a receiver gives the file its name, which nothing may interrupt
	named                    // the file has it
)

// overtime ends a little later than ctx.
func overtime(ctx context.Context, by time.Duration) context.Context {
	late, end := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		time.AfterFunc(by, func() { end(context.Cause(ctx)) })
	})
	return late
}

func (n *native) commitment() commitment {
	if n.part == nil {
		return free
	}
	return n.part.commitment()
}

// stepAsCommitted keeps a user from interrupting what cannot be taken back. Whoever waits for the other side's last word gets
// a little time to hear it.
func (n *native) stepAsCommitted(ctx, late, latest context.Context) error {
	switch n.commitment() {
	case free:
		return n.step(ctx)
	case naming:
		return n.stepToCommit(latest)
	default:
		return n.step(late)
	}
}

// explain finds the cause behind what was noticed first. Who cannot send to the peer any more may still have its last words, and
// the device notices a peer's end before the control channel does. It returns nil if there is no reason to end.
func (n *native) explain(ctx context.Context, err error) error {
	if mayFollowLoss(err) {
		return n.awaitNews(ctx, err)
	}
	return err
}

// mayFollowLoss tells whether an error is what is noticed of a peer that is gone.
func mayFollowLoss(err error) bool {
	for _, sign := range []error{comch.ErrPeerLost, doca.CodeIOFailed, doca.CodeDriver} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// awaitNews does not wait for long: a single message that cannot be sent is no end of the connection. What the peer said before it went,
// and what can no longer be done as it asked, comes before its last words.
// After a DONE, or while a COMMIT is followed, there is no reason to end.
func (n *native) awaitNews(ctx context.Context, err error) error {
	enough := time.After(deathNotice)
	for {
		heard, newErr := n.hear(ctx)
		switch {
		case newErr != nil && !mayFollowLoss(newErr):
			return newErr
		case heard && (n.session.State() == negotiate.Done || n.commitment() == naming):
			return nil
		}
		ended := n.conn.Done()
		arrived := n.conn.Arrived()
		if heard {
			ended, arrived = nil, atOnce // there may be more
		}
		select {
		case <-arrived:
		case <-ended:
			return n.lost(ctx)
		case <-enough:
			return err
		}
	}
}

// conclude is what an error means for the copy. What happens after the file has got its name does not take the success away: it is
// there, verified and as durable as was asked for, whether the sender hears of it or not. A sender that has asked for that
// knows nothing, unless the receiver says why it could not.
func (n *native) conclude(err error) error {
	switch n.commitment() {
	case named:
		n.options.Log.Info().Err(err).Msg(notConfirmed)
		n.summary.Unconfirmed = unconfirmed(err, n.options.Side.Other())
		return nil
	case asked:
		if _, told := errors.AsType[*negotiate.PeerAborted](err); !told {
			return outcomeUnknown(n.options.Side.Other(), err)
		}
	}
	return err
}

const notConfirmed = "target committed, but the sender did not confirm"

// unconfirmed is, for the summary, how the sender of a committed file kept this side from knowing that it knows.
func unconfirmed(err error, sender negotiate.Side) string {
	if mayFollowLoss(err) || errors.Is(err, negotiate.ErrPeerLost) {
		return fmt.Sprintf("the %s disconnected without confirming", sender)
	}
	return fmt.Sprintf("the %s did not confirm", sender)
}

// outcomeUnknown is for a sender that gives up when the receiver may be about to commit.
func outcomeUnknown(receiver negotiate.Side, err error) error {
	return failure(negotiate.ErrOutcomeUnknown, nil, "compare both files (dma-copy verify)",
		"transfer outcome unknown: the %s did not confirm the commit: %v", receiver, err)
}

// namingTime is how long after an interruption the calls that give the file its name may take.
const namingTime = 10 * time.Second

// stepToCommit does not hear the peer, nor the user before ctx ends: what they could say comes too late. The calls that
// give a file its name do not say how far they are, and the peer is to wait for them.
func (n *native) stepToCommit(ctx context.Context) error {
	select {
	case finish := <-n.ended:
		return finish()
	case <-ctx.Done():
		return maybeNamed(n.place.path, context.Cause(ctx))
	case <-n.watch.pulse():
		if waited := n.watch.naming(); waited > longestNaming {
			return maybeNamed(n.place.path, fmt.Errorf("timeout: no answer for %s", waited))
		}
		n.progress.stirred()
		if err := n.sayAlive(context.WithoutCancel(ctx)); err != nil {
			n.options.Log.Debug().Err(err).Msg("could not send a heartbeat to the peer")
		}
		return nil
	}
}

// maybeNamed is the end of a receiver whose file system does not say whether the file has its name.
func maybeNamed(path string, why error) error {
	return failure(ErrIdle, why, "compare both files (dma-copy verify)",
		"transfer outcome unknown: the final rename of %s did not return (%v)", path, why)
}

// lost follows the end of the connection, and all that the peer has said before. It does not keep a file from its name.
func (n *native) lost(ctx context.Context) error {
	message, err := n.conn.Recv(ctx)
	switch {
	case err == nil:
		return n.take(ctx, message)
	case n.commitment() == naming:
		return nil
	case errors.Is(err, comch.ErrPeerLost):
		return n.session.Disconnected()
	}
	return err
}

// corrupted explains why lanes have given up, if that is it.
func (n *native) corrupted(failed error) error {
	if errors.Is(failed, pump.ErrCorrupted) {
		return failure(ErrDigest, failed, "check the memory of both sides and the device",
			"transfer of %s failed: %v", n.place.path, failed)
	}
	return failed
}

// leave gives the window back as soon as nothing moves any more, and before the file gets its name, so that a failure is one of the copy.
func (n *native) leave() error {
	if err := n.reach.close(); err != nil {
		return fmt.Errorf("releasing the window: %w", err)
	}
	return nil
}

// partingTime is how long a side that gives up stays to be heard. With the longest pulse it is within the second that a side
// may take beyond its idle timeout.
const partingTime = 500 * time.Millisecond

// tell says why this side gives up.
func (n *native) tell(err error) { n.partWith(n.session.Abort(n.code(err), err.Error())) }

// partWith says the last word, if there is one, and lets the peer hang up first, since who is cut off at once may lose the news.
func (n *native) partWith(message []byte) {
	if message == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	if err := n.conn.Send(ctx, message); err != nil {
		n.options.Log.Debug().Err(err).Msg("could not report the failure to the peer")
		return
	}
	select {
	case <-n.conn.Done():
	case <-ctx.Done():
	}
}

func (n *native) code(err error) negotiate.AbortCode {
	if n.options.ExitCode == nil {
		return negotiate.AbortFailure
	}
	return negotiate.AbortCode(n.options.ExitCode(err))
}

// parting is what is left of a copy when all that it held has been given back.
type parting struct {
	kept Kept // for a later copy
	err  error
}

// windUp waits until nothing of the copy is at work, and gives back what it held. Where a call hangs, another goroutine
// does so when the call has returned.
func (n *native) windUp(failed error) (returned bool, err error) {
	idle, released := make(chan struct{}), make(chan parting, 1)
	go func() {
		n.jobs.Wait()
		close(idle)
		n.settling.take()
		defer n.settling.leave()
		released <- n.release(failed)
	}()
	defer n.silence()
	select {
	case <-idle:
	case <-time.After(returnTime):
		n.sayKept(n.abandon(failed))
		return false, hung(failed)
	}
	select {
	case p := <-released:
		n.sayKept(p.kept)
		return true, errors.Join(failed, p.err)
	case <-time.After(releaseTime):
		return false, hung(failed)
	}
}

func (n *native) sayKept(kept Kept) {
	if kept != (Kept{}) {
		n.notify(kept)
	}
}

// abandon keeps what still can be kept while a call hangs. That may hang as well.
func (n *native) abandon(failed error) (kept Kept) {
	if n.part == nil {
		return Kept{}
	}
	done := make(chan Kept, 1)
	go func() {
		n.settling.take()
		defer n.settling.leave()
		done <- n.part.abandon(failed)
	}()
	select {
	case kept = <-done:
	case <-time.After(returnTime):
	}
	return kept
}

// release gives back what the copy held. The first failure is the one that counts, so what fails here is only logged then.
func (n *native) release(failed error) parting {
	var errs []error
	var kept Kept
	if n.opened != nil {
		if err := n.opened.close(); err != nil {
			errs = append(errs, fmt.Errorf("releasing the window: %w", err))
		}
	}
	if n.part != nil {
		var err error
		kept, err = n.part.settle(failed)
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if failed != nil && err != nil {
		n.options.Log.Warn().Err(err).Msg("some resources could not be released")
		err = nil
	}
	return parting{kept, err}
}

// referencePeer is why a native copy ends that was none: the host's offer was an accident of its memory.
type referencePeer struct {
	session *negotiate.Session
	step    negotiate.Step
}

// Error is only read if nobody goes on in the reference protocol.
func (*referencePeer) Error() string { return "the peer uses the reference protocol" }
