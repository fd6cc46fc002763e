package native

import (
	"context"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// This file is what a transfer says about itself while it stands still: in the log before it is given up because of a
// timeout, and to a user who asks.

// standstill notes at each pulse what has moved since the one before, so that nothing has to be noted when it moves.
// The owner of the transfer uses it.
type standstill struct {
	sent     uint64 // messages other than heartbeats
	messages unmoved
	slots    unmoved
}

// unmoved counts the pulses since a value changed.
type unmoved struct {
	value  uint64
	pulses int
}

func (u *unmoved) pulse(value uint64) {
	u.pulses++
	if value != u.value {
		u.value, u.pulses = value, 0
	}
}

// pulse is called at every pulse.
func (s *standstill) pulse(n *protocol.Session) {
	s.messages.pulse(s.sent)
	s.slots.pulse(2*n.Acknowledged() + uint64(n.Outstanding())) // counts what was announced and acknowledged
	for e := range n.OpenEntries() {
		if r := recordOf(e); r != nil {
			r.Motion().Beat(e.Phase, e.Acked)
		}
	}
}

// recordOf returns what the role knows of an entry; nil before it does.
func recordOf(e protocol.OpenEntry) role.Record {
	r, _ := e.Record.(role.Record)
	return r
}

// describe returns what the transfer waits for. It borrows the session from an owner that waits, and does not stop the
// lanes.
func (t *transfer) describe(ctx context.Context) job.Snapshot {
	busy := job.Snapshot{Side: t.config.Side.String(), Peer: t.config.Side.Other().String(), Busy: true}
	select {
	case t.owner <- struct{}{}:
		defer t.owner.release()
	case t.lent <- struct{}{}:
		defer t.lent.release()
	case <-ctx.Done():
		return busy
	}
	s, err := t.trySnapshot()
	if defect := job.DefectIn(err); defect != nil {
		t.config.Log.Error().Interface("panic", defect.Value).Bytes("stack", defect.Stack).
			Msg("a defect of dma-copy keeps a copy from saying what it waits for")
		return busy
	}
	return s
}

// trySnapshot is snapshot, but returns a panic as an error: its caller is no part of the transfer.
func (t *transfer) trySnapshot() (s job.Snapshot, err error) {
	defer job.Recover(&err)
	return t.snapshot(), nil
}

// snapshot is describe for the owner of the transfer.
func (t *transfer) snapshot() job.Snapshot {
	s := job.Snapshot{
		Side: t.config.Side.String(), Peer: t.config.Side.Other().String(), State: t.session.Reached().String(),
		Silent: t.age(t.watch.silent), Stalled: t.age(t.watch.unproven), Reported: t.age(t.watch.stalled),
		Jobs: int(t.running.Load()), Slots: t.session.Outstanding(), Depth: int(t.params.Plan.Depth),
		SlotsSince: t.age(t.seen.slots.pulses), SentSince: t.age(t.seen.messages.pulses), Open: t.session.Undecided(),
	}
	if !t.watch.sending.IsZero() {
		s.Sending = job.Age(time.Since(t.watch.sending))
	}
	if t.role != nil {
		s.Role = job.RoleOf(t.params.Sends())
	}
	if box := t.outbox(); box != nil {
		s.Unsent = box.Len()
	}
	var phases phaseCounts
	for e := range t.session.OpenEntries() {
		phases[e.Phase]++
		if len(s.Entries) < job.MaxOpenEntries {
			s.Entries = append(s.Entries, t.openEntry(e))
		}
	}
	s.HasTo, s.PeerHasTo = t.duties(phases)
	return s
}

func (t *transfer) openEntry(e protocol.OpenEntry) job.OpenEntry {
	open := job.OpenEntry{Number: e.Number, Phase: e.Phase.String(), Next: nextSteps[e.Phase], Since: t.age(0)}
	if r := recordOf(e); r != nil {
		open.Path, open.Since = quote.Path(r.Path()), t.age(r.Motion().Still(e.Phase, e.Acked))
	}
	if open.Path == "" && e.Number == 0 {
		open.Path = "."
	}
	if e.Kind == wire.EntryFile {
		open.Bytes = new(int64(e.Acked))
		if e.SizeKnown {
			open.Total = new(int64(e.Size))
		}
	}
	return open
}

// age returns how long that many pulses take, and those that were not seen.
func (t *transfer) age(pulses int) job.Age { return job.Age(t.watch.since(pulses + t.watch.held)) }

// nextSteps says what is to happen to an entry in each phase.
var nextSteps = map[protocol.OpenPhase]string{
	protocol.PhaseUnanswered: "the receiver is to answer",
	protocol.PhaseNeeded:     "the sender is to send its content",
	protocol.PhaseAsked:      "the sender is to compute its digest",
	protocol.PhaseSummed:     "the receiver is to compare its digest",
	protocol.PhaseEnded:      "the receiver is to commit it",
}

// phaseCounts are the numbers of entries in each phase.
type phaseCounts [protocol.PhaseEnded + 1]int

// duties returns what this side and the peer have to do next.
func (t *transfer) duties(phases phaseCounts) (own, peer []string) {
	if t.role == nil {
		return nil, []string{"send its HELLO"}
	}
	var senders, receivers []string
	add := func(to *[]string, count int, format, noun string) {
		if count > 0 {
			*to = append(*to, fmt.Sprintf(format, quantity.Count(count, noun)))
		}
	}
	add(&receivers, t.session.Outstanding(), "acknowledge %s", "slot")
	add(&receivers, phases[protocol.PhaseUnanswered], "answer %s", "entry")
	add(&receivers, phases[protocol.PhaseSummed], "compare the digests of %s", "entry")
	add(&receivers, phases[protocol.PhaseEnded], "commit %s", "entry")
	add(&senders, phases[protocol.PhaseAsked], "compute the digests of %s", "entry")
	add(&senders, phases[protocol.PhaseNeeded], "send the content of %s", "entry")
	if t.session.Settled() {
		switch t.session.Reached() {
		case protocol.Ready:
			senders = append(senders, "begin the transfer")
		case protocol.Transferring:
			senders = append(senders, "announce entries, or the end")
		default:
			receivers = append(receivers, "confirm the end")
		}
	}
	own, peer = receivers, senders
	if t.params.Sends() {
		own, peer = senders, receivers
	}
	switch {
	case t.stats.HasWindow():
	case t.ownsWindow(), t.session.HasWindow():
		own = append(own, "open the window")
	default:
		peer = append(peer, "open the window")
	}
	return own, peer
}
