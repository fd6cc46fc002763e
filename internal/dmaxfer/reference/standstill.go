package reference

import (
	"context"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// standstill is what a transfer waits for. Its owner changes it, any goroutine describes it.
type standstill struct {
	mu             sync.Mutex
	own, peer      string // what this side, or the peer, has to do next; one of them is empty
	since          time.Time
	sent, received time.Time
	copying        *pipeline // nil: no chunk moves

	agreement protocol.Agreement
}

// begin notes what has to be done now.
func (s *standstill) begin(own, peer string) {
	s.note(func() { s.own, s.peer, s.since = own, peer, time.Now() })
}

// note makes a change.
func (s *standstill) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// do makes a call that may hang, as job.Calls does. own says what it does.
func (t *Transfer) do(ctx context.Context,
	own string, grace time.Duration, call func(context.Context) error,
) error {
	t.now.begin(own, "")
	return t.calls.Do(ctx, grace, t.config.Progress.Beat, call)
}

// describe returns what the transfer waits for. The peer says nothing of its progress in this protocol.
func (t *Transfer) describe(context.Context) job.Snapshot {
	n := &t.now
	n.mu.Lock()
	defer n.mu.Unlock()
	s := job.Snapshot{
		Side: t.config.Side.String(), Peer: t.config.Side.Other().String(), State: "idle",
		Silent: ageOf(n.received, t.started), SentSince: ageOf(n.sent, t.started), Stalled: ageOf(n.since, t.started),
	}
	if n.own != "" {
		calls, still := t.calls.Calling()
		s.State, s.HasTo, s.Jobs, s.Stalled = n.own, []string{n.own}, calls, job.Age(still)
	} else if n.peer != "" {
		s.State, s.PeerHasTo = n.peer, []string{n.peer}
	}
	s.Reported = s.Stalled
	if n.copying != nil {
		s.Slots, s.Depth, s.SlotsSince = int(n.copying.inUse.Load()), len(n.copying.chunks), s.Stalled
	}
	if n.agreement.Protocol == 0 {
		return s
	}
	s.Role = job.RoleOf(n.agreement.Sender == t.config.Side)
	file := job.OpenEntry{
		Path: quote.Path(t.config.File.Path), Next: "the DPU is to copy it", Total: new(int64(n.agreement.Size)),
		Since: s.Stalled,
	}
	if t.config.Side == wire.DPU { // the host does not learn how far its file is
		file.Bytes = new(t.config.Progress.Sample().Moved)
	}
	s.Entries, s.Open = []job.OpenEntry{file}, 1
	return s
}

// ageOf returns how long ago a time was, or if it is zero another one.
func ageOf(at, otherwise time.Time) job.Age {
	if at.IsZero() {
		at = otherwise
	}
	return job.Age(time.Since(at))
}
