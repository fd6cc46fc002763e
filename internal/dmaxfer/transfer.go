package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

const (
	// noticeTime is how long a failing side tries to tell its peer, and then waits for the peer to hang up: who is told
	// and then cut off at once may lose the news.
	noticeTime = time.Second

	// patienceUnit is how much of a file earns the idle timeout once more while the other side works and, in this
	// protocol, cannot say how far it is.
	patienceUnit = 256 << 20
)

// transfer is one copy with one peer. One goroutine owns it.
type transfer struct {
	options   Options
	place     *place
	conn      comch.Conn
	device    memoryLayer // for the native protocol
	session   *negotiate.Session
	agreement negotiate.Agreement
	target    *disk.Partial  // of a receiver, from the agreement on
	memory    *fileMemory    // of the host, from the agreement on
	works     sync.WaitGroup // of within
	roomy     bool           // the target is open and has its room
	hung      bool           // a work has not returned; what works set is then only theirs
	early     []byte         // a message that came before it was asked for
	committed commitment     // naming from the rename on; on a DPU then named, or asked of a file it sent
	progress  *Progress
	started   time.Time
	summary   Summary
}

func newTransfer(o Options, p *place, conn comch.Conn, device memoryLayer) *transfer {
	limits := negotiate.Limits{MaxMessage: conn.MaxMessage(), MaxFileSize: maxFileSize}
	local := p.local()
	local.Marked = true
	if !o.ReferenceOnly {
		hello := o.hello(p, device.traits())
		local.Native = &hello
	}
	t := &transfer{
		options: o, place: p, conn: conn, device: device, started: time.Now(), progress: o.Progress,
		session: negotiate.NewSession(o.Side, local, limits),
	}
	if t.progress == nil {
		t.progress = &Progress{}
	}
	return t
}

// run tells the peer about every failure that the peer can still hear of, and gives back what the copy held.
func (t *transfer) run(ctx context.Context) error {
	err := t.lead(ctx)
	if t.release(); t.hung {
		return hung(err)
	}
	return err
}

func (t *transfer) lead(ctx context.Context) error {
	err := t.afterCommit(ctx, t.converse(ctx))
	if err == nil {
		return nil
	}
	return t.giveUp(ctx, err)
}

// giveUp tells the peer of a failure, if it can still hear of it, and returns the cause behind it.
func (t *transfer) giveUp(ctx context.Context, err error) error {
	if t.session.State() == negotiate.HandedOver {
		return t.explain(ctx, err) // the peer has been told
	}
	if t.tellNative(err) {
		return err
	}
	if notice, _ := t.session.Finish(false); notice != nil {
		t.notify(notice)
	}
	if t.options.Side == negotiate.DPU || t.hung || t.memory != nil {
		t.linger()
	}
	return t.explain(ctx, err)
}

// within does what may take long in another goroutine, as long as it gets on. What hangs is never waited for again.
func (t *transfer) within(ctx context.Context, patience time.Duration, work func(context.Context) error) error {
	slow := func() error { return stalled(patience) }
	t.works.Add(1)
	returned, err := within(ctx, patience, t.progress.beat, slow, func(ctx context.Context) error {
		defer t.works.Done()
		return work(ctx)
	})
	t.hung = t.hung || !returned
	return err
}

// tellNative is for a side that gives up when the other is about to say which protocol it speaks: if that is the native
// one, it is told the cause, unless that is its own silence. In the reference's protocol there is only STATUS(0), which
// is left to the caller unless the session answers with it.
func (t *transfer) tellNative(err error) bool {
	silent := errors.Is(err, ErrIdle) && !errors.Is(err, ErrHung)
	if t.session.State() != negotiate.AwaitDirection || t.options.ReferenceOnly || silent {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	message, recvErr := t.conn.Recv(ctx)
	if recvErr != nil {
		return false
	}
	step, recvErr := t.session.Receive(message)
	native := recvErr == nil && step.Event == negotiate.ToNative
	if step.Reply != nil && (native || recvErr != nil) {
		t.notify(step.Reply)
	}
	if !native {
		return false
	}
	newNative(t.options, t.place, t.conn, t.device, step.Native).tell(err)
	return true
}

// converse follows the session to its end. What cannot be taken back is not interrupted: the peer gets a little time
// for its last word.
func (t *transfer) converse(ctx context.Context) error {
	late := overtime(ctx, partingTime)
	err := t.send(ctx, t.session.Start())
	if errors.Is(err, comch.ErrPeerLost) {
		err = t.lastWords(ctx)
	}
	if err != nil {
		return err
	}
	for t.session.State() != negotiate.Done && t.session.State() != negotiate.HandedOver {
		within := ctx
		if t.committed != free {
			within = late
		}
		message, err := t.receive(within)
		if errors.Is(err, comch.ErrPeerLost) {
			err = t.session.Disconnected()
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := t.take(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// lastWords keeps what a peer said that could not be sent this side's first message: it may have said why it left. A
// channel that fails to send need not notice that it is broken, so a silent one is soon given up.
func (t *transfer) lastWords(ctx context.Context) error {
	parting, cancel := context.WithTimeout(ctx, partingTime)
	defer cancel()
	message, err := t.receive(parting)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		return t.session.Disconnected()
	}
	t.early = message
	return nil
}

// take lets the session judge a message, answers it, and does what it asks for.
func (t *transfer) take(ctx context.Context, message []byte) error {
	step, err := t.session.Receive(message)
	if err != nil {
		if step.Reply != nil {
			t.notify(step.Reply)
		}
		return err
	}
	if err := t.send(ctx, step.Reply); err != nil {
		return err
	}
	return t.act(ctx, step)
}

// act does what the session asks for.
func (t *transfer) act(ctx context.Context, step negotiate.Step) error {
	switch step.Event {
	case negotiate.ToNative:
		return t.speakNative(ctx, step)
	case negotiate.Agreed:
		return t.prepare(ctx, step.Agreement)
	case negotiate.Exported:
		if t.agreement.Protocol == 0 {
			if err := t.prepare(ctx, step.Agreement); err != nil {
				return err
			}
		}
		return t.copyAndReport(ctx, step.Export)
	case negotiate.Finished:
		return t.conclude(ctx)
	}
	return nil
}

// speakNative does the whole copy in the native protocol, unless the peer turns out to speak the reference's after all.
func (t *transfer) speakNative(ctx context.Context, step negotiate.Step) error {
	if err := t.propose(step); err != nil {
		return err
	}
	native := newNative(t.options, t.place, t.conn, t.device, step.Native)
	err := native.run(ctx)
	t.summary = native.summary
	if peer, is := errors.AsType[*referencePeer](err); is {
		return t.act(ctx, peer.step)
	}
	return err
}

// propose has the DPU, whose engine copies, choose the slots by the size of the file.
func (t *transfer) propose(step negotiate.Step) error {
	if t.options.Side == negotiate.Host {
		return nil
	}
	size, of := int64(min(step.Size, math.MaxInt64)), t.device.traits()
	if t.place.stream || t.options.wantedDigest().Ordered() {
		of.cpus = nil // its only lane does not share a processor with the host's
	}
	if t.place.source != nil {
		size = t.place.source.Info().Size
	}
	return step.Native.Propose(t.options.slotSize(size, of), t.options.slotCount(size, of))
}

// prepare makes room for what was agreed. The host then exports its memory; the DPU waits for that.
func (t *transfer) prepare(ctx context.Context, a negotiate.Agreement) error {
	t.agreement = a
	t.summary = Summary{Sent: t.sends(), Path: t.place.path, Size: int64(a.Size), Protocol: a.Protocol}
	t.options.Log.Info().Stringer("sender", a.Sender).Uint64("bytes", a.Size).Msg("agreed")
	if err := t.checkAllowed(); err != nil {
		return err
	}
	t.announce()
	if !t.sends() {
		if err := t.createTarget(ctx, int64(a.Size)); err != nil {
			return err
		}
	}
	if t.options.Side == negotiate.DPU {
		return nil
	}
	if err := t.expose(ctx); err != nil {
		return err
	}
	return t.export(ctx)
}

// checkAllowed refuses what the user does not want, or what nobody can check in this protocol.
func (t *transfer) checkAllowed() error {
	if t.options.Expect != nil {
		return failure(negotiate.ErrNeedsNative, nil, "run dma-copy on the other side too, or leave out --expect",
			"the %s uses the reference protocol, which has no digest to compare with %s",
			t.options.Side.Other(), t.options.Expect)
	}
	if limit := t.options.MaxBytes; limit > 0 && t.summary.Size > limit {
		return overLimit(t.place.path, t.summary.Size, limit)
	}
	return nil
}

// announce tells the user of the agreement. The host does not know in what pieces the DPU copies.
func (t *transfer) announce() {
	t.progress.plan(t.summary.Size)
	if t.options.Notify == nil {
		return
	}
	t.options.Notify(PeerKnown{Protocol: t.agreement.Protocol})
	t.options.Notify(Planned{Sent: t.sends(), Size: t.summary.Size})
}

func (t *transfer) sends() bool { return t.agreement.Sender == t.options.Side }

func (t *transfer) createTarget(ctx context.Context, size int64) error {
	t.progress.enter(Preparing)
	err := t.within(ctx, t.longPatience(), func(ctx context.Context) error {
		target, err := disk.OpenPartial(t.options.files(), t.place.given, disk.Wanted{
			Size: size, Known: true, Overwrite: t.place.overwrite, Backup: t.options.Backup,
		})
		if err != nil {
			return err
		}
		t.target = target
		return target.Allocate(ctx, t.progress.worked)
	})
	if t.roomy = err == nil; t.roomy && t.options.Notify != nil {
		for _, sentence := range warningsOf(t.target) {
			t.options.Notify(Warned{Text: sentence})
		}
	}
	return err
}

// expose makes the whole file memory that the DPU reads or writes.
func (t *transfer) expose(ctx context.Context) error {
	return t.within(ctx, t.longPatience(), func(ctx context.Context) error {
		memory, err := t.exposed(ctx)
		if err == nil {
			t.memory = memory
		}
		return err
	})
}

func (t *transfer) exposed(ctx context.Context) (*fileMemory, error) {
	if t.sends() {
		return exposeSource(ctx, t.options.Device, t.place.source, t.options.Log)
	}
	return exposeTarget(t.options.Device, t.target, t.summary.Size, t.options.Log)
}

func (t *transfer) export(ctx context.Context) error {
	t.summary.Anonymous = t.memory.anonymous && t.summary.Size > 0
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

// copyAndReport is the DPU's part. Success is reported only once this side has done all of its own work.
func (t *transfer) copyAndReport(ctx context.Context, e negotiate.Export) error {
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
	return t.send(overtime(ctx, partingTime), message)
}

// conclude ends the peer's access to this side's memory, and then makes the received file durable, or finds out whether the
// sent one is still what it was. Nobody may write to a file that is about to get its name.
func (t *transfer) conclude(ctx context.Context) error {
	if err := t.takeMemoryBack(ctx); err != nil {
		return err
	}
	var err error
	done := named
	if t.sends() {
		done, err = asked, t.verifySource(ctx)
	} else {
		err = t.commitTarget(ctx)
	}
	if err != nil {
		return err
	}
	if t.options.Side == negotiate.DPU {
		t.committed = done
	}
	t.summary.Elapsed = time.Since(t.started)
	return nil
}

func (t *transfer) verifySource(ctx context.Context) error {
	return t.within(ctx, t.options.IdleTimeout, func(context.Context) error { return t.place.source.Verify() })
}

func (t *transfer) commitTarget(ctx context.Context) error {
	t.progress.enter(Finishing)
	err := t.within(ctx, t.longPatience(), func(ctx context.Context) error {
		return t.target.Prepare(ctx, disk.Metadata{Size: t.summary.Size}, negotiate.DurabilityFull, t.progress.worked)
	})
	if err != nil {
		return err
	}
	t.committed = naming
	err = t.within(overtime(ctx, namingTime), max(t.options.IdleTimeout, longestNaming), func(context.Context) error {
		return t.target.Commit(negotiate.DurabilityFull)
	})
	if t.hung {
		return maybeNamed(t.place.path, err)
	}
	return err
}

func (t *transfer) takeMemoryBack(ctx context.Context) error {
	if t.memory == nil {
		return nil
	}
	err := t.within(ctx, t.longPatience(), func(ctx context.Context) error {
		if !t.sends() {
			if err := t.memory.save(ctx, t.target, t.summary.Size); err != nil {
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

// release undoes what a copy that went wrong has left. While a work has not returned that is only the name of a partial
// file, with which nothing can be done in this protocol.
func (t *transfer) release() {
	done := make(chan struct{})
	undo := func() {
		t.giveBack()
		close(done)
	}
	if t.hung {
		undo = func() {
			t.abandon()
			close(done)
			t.works.Wait()
			t.giveBack()
		}
	}
	go undo()
	select {
	case <-done:
	case <-time.After(releaseTime):
		t.hung = true
	}
}

func (t *transfer) abandon() {
	if t.roomy && t.committed == free {
		t.target.Abandon(false)
	}
}

func (t *transfer) giveBack() {
	if t.memory != nil {
		if err := t.memory.close(); err != nil {
			t.options.Log.Warn().Err(err).Msg("the file's memory stays registered until this process ends")
		}
	}
	if t.target != nil {
		t.target.Discard()
	}
}

// ---- messages ----

func (t *transfer) send(ctx context.Context, message []byte) error {
	if message == nil {
		return nil
	}
	ctx, stop := t.untilSilent(ctx, t.options.IdleTimeout)
	defer stop()
	return t.conn.Send(ctx, message)
}

func (t *transfer) receive(ctx context.Context) ([]byte, error) {
	if message := t.early; message != nil {
		t.early = nil
		return message, nil
	}
	ctx, stop := t.untilSilent(ctx, t.patience())
	defer stop()
	return t.conn.Recv(ctx)
}

// untilSilent is ctx for as long as the peer may be silent. It ends with what the peer was to do by then. The caller
// calls stop.
func (t *transfer) untilSilent(ctx context.Context, patience time.Duration) (within context.Context, stop func()) {
	silent := t.silent(patience) // of the state now: the countdown is another goroutine
	ctx, end := context.WithCancelCause(ctx)
	c := newCountdown(ctx, patience, func() { end(silent) })
	return ctx, func() {
		c.stop()
		end(nil)
	}
}

// patience is how long the peer may be silent. While it makes room, copies or saves it has nothing to say in this protocol,
// so a large file earns it more.
func (t *transfer) patience() time.Duration {
	switch t.session.State() {
	case negotiate.AwaitExport, negotiate.AwaitStatus, negotiate.AwaitDisconnect:
		return t.longPatience()
	default:
		return t.options.IdleTimeout
	}
}

// longPatience is for work on all of the file of which nothing may show, on either side.
func (t *transfer) longPatience() time.Duration {
	return t.options.IdleTimeout * time.Duration(1+t.agreement.Size/patienceUnit)
}

func (t *transfer) silent(patience time.Duration) error {
	return failure(ErrIdle, nil, "check the other side, or raise --idle-timeout",
		"timeout: no message from the %s for %s, %s", t.options.Side.Other(), patience, waitedFor[t.session.State()])
}

// waitedFor says in a user's words what a silent peer was to do in each state.
var waitedFor = map[negotiate.State]string{
	negotiate.AwaitDirection:  "waiting for it to report whether it has the file",
	negotiate.AwaitExport:     "waiting for access to its memory",
	negotiate.Copying:         "while the copy was running",
	negotiate.AwaitStatus:     "waiting for it to copy the file",
	negotiate.AwaitDisconnect: "waiting for it to disconnect",
}

// notify sends what a failing side still has to say. It uses a deadline of its own, because the copy's context may be
// what has ended.
func (t *transfer) notify(message []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), noticeTime)
	defer cancel()
	if err := t.conn.Send(ctx, message); err != nil {
		t.options.Log.Debug().Err(err).Msg("could not report the failure to the peer")
	}
}

// linger lets the peer take the bad news and hang up first. The DPU's end of the channel takes the host's with it; the
// host's memory may be in use until the DPU has stopped its copy.
func (t *transfer) linger() {
	select {
	case <-t.conn.Done():
	case <-time.After(noticeTime):
	}
}
