package role

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Stats are what a transfer tells its user: events, progress, and the summary. Its methods may be called by any
// goroutine of the transfer, except that Planned, Sent, Done and Result are the owner's.
type Stats struct {
	params  *Params
	started time.Time
	retries atomic.Int64

	messages int64 // sent to the peer; of the owner

	mu      sync.Mutex // Notify is running
	muted   bool       // and must not be called any more
	summary job.Summary
	opened  bool         // this side's window is open
	plan    *job.Planned // set once content is to be transferred
	moving  bool         // both: the phase Moving has begun
	copied  bool         // the only file has been committed
	bytes   int64        // of the files found
	offered int64        // bytes that the receiver has, by its answers
}

// NewStats returns the statistics of a transfer that begins.
func NewStats(p *Params) *Stats { return &Stats{params: p, started: time.Now()} }

// Sent counts a message to the peer.
func (s *Stats) Sent() { s.messages++ }

// Messages returns how many messages were sent to the peer.
func (s *Stats) Messages() int64 { return s.messages }

// Planned tells what is about to be transferred.
func (s *Stats) Planned(peer native.Hello) {
	plan, size := &s.params.Plan, s.params.LocalSize()
	s.mu.Lock()
	s.summary = job.Summary{
		Sent: s.params.Sends(), Path: s.params.Config.File.Path, Size: size, Protocol: wire.Native,
		DataPath: plan.Path, Chunk: int64(plan.Chunk), Depth: int(plan.Depth),
		Readback: plan.Readback && !plan.StreamTarget, Changing: plan.AllowChanging, DryRun: plan.DryRun,
	}
	if plan.Tree {
		s.summary.Tree = &job.TreeSummary{}
	}
	s.mu.Unlock()
	s.params.Config.Progress.SetTotal(size)
	s.params.LogPeer(peer)
	s.params.Config.Log.Info().Stringer("sender", plan.Sender).Stringer("data_path", plan.Path).
		Bool("tree", plan.Tree).Stringer("digest", plan.Digest).Stringer("durability", plan.Durability).
		Str("peer", peer.Software).Msg("agreed")
	s.Notify(job.PeerKnown{
		Protocol: wire.Native, Version: int(plan.Version), Software: peer.Software, Location: peer.Location,
	})
	if s.params.Sends() && s.params.Config.File.Unfinished {
		s.Notify(job.Incomplete(s.params.Config.File.Path))
	}
	if plan.Tree {
		s.Begins(job.Unknown, 0)
	}
}

// Begins tells that the content of a file of that size is about to be transferred, and how many bytes of it the
// receiver already has. In a tree the first call counts.
func (s *Stats) Begins(size, resume int64) {
	plan, progress := &s.params.Plan, s.params.Config.Progress
	s.mu.Lock()
	s.offered += resume
	first := s.plan == nil
	if first {
		s.plan = &job.Planned{
			Sent: s.params.Sends(), Tree: plan.Tree, Compare: plan.Compare, Size: size,
			Chunk: int64(plan.Chunk), Depth: int(plan.Depth),
			Digest: plan.Digest, Durability: plan.Durability, Resumed: resume,
		}
	}
	// Before another goroutine, which opens the window, finds the plan and tells that data is about to move.
	progress.SetResumed(s.offered)
	if first && !plan.Tree {
		progress.SetTotal(size)
	}
	s.mu.Unlock()
	if first && plan.Tree {
		s.Notify(*s.plan) // before the first of its entries
	}
	s.moves()
}

// WindowOpened notes that this side's window is open, and what carries the content.
func (s *Stats) WindowOpened(transport string) {
	s.mu.Lock()
	s.opened, s.summary.Transport = true, transport
	s.mu.Unlock()
	s.moves()
}

// HasWindow reports whether this side's window is open.
func (s *Stats) HasWindow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// Transport returns what carries the content; empty if this side does not know.
func (s *Stats) Transport() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.summary.Transport
}

// PeerNamed notes what carries the content by the peer's word, if it says so.
func (s *Stats) PeerNamed(transport string) {
	if transport == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.Transport = transport
}

// moves tells that data is about to move, once there is some and the window is open.
func (s *Stats) moves() {
	s.mu.Lock()
	begins := s.opened && s.plan != nil && !s.moving
	s.moving = s.moving || begins
	s.mu.Unlock()
	if !begins {
		return
	}
	s.params.Config.Progress.Enter(job.Moving)
	s.params.Config.Log.Info().Int64("bytes", s.plan.Size).Int64("chunk", s.plan.Chunk).Int("depth", s.plan.Depth).
		Int64("resumed", s.plan.Resumed).Msg("copying")
	if !s.plan.Tree {
		s.Notify(*s.plan)
	}
}

// Reused counts bytes of a file that is copied, which the receiver had and which were not sent.
func (s *Stats) Reused(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.Resumed += bytes
}

// BytesMoved counts bytes that the receiver has.
func (s *Stats) BytesMoved(length int64) { s.params.Config.Progress.ChunkMoved(length) }

// Retransmitting tells that a unit is sent again.
func (s *Stats) Retransmitting(unit *pump.Unit) {
	s.retries.Add(1)
	offset, length := int64(0), unit.Used()
	if !unit.Packed() {
		offset = unit.Chunk().Offset
	}
	s.params.Config.Log.Warn().Int64("offset", offset).Int64("bytes", length).
		Msg("checksum mismatch, retransmitting chunk")
	s.Notify(job.Retransmitted{Offset: offset, Length: length})
}

// Found counts an entry that the sender has found; size is job.Unknown for a stream.
func (s *Stats) Found(size int64) {
	s.mu.Lock()
	s.bytes += max(size, 0)
	s.mu.Unlock()
	if s.params.Plan.Tree {
		s.params.Config.Progress.FoundEntry(max(size, 0))
	}
}

// BytesFound returns how many bytes the files have that were found.
func (s *Stats) BytesFound() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Walked notes that the sender has found all entries.
func (s *Stats) Walked() {
	if s.params.Plan.Tree {
		s.params.Config.Progress.FoundAll()
	}
}

// Content notes size and digest of the only file.
func (s *Stats) Content(size int64, sum digest.Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.Size, s.summary.Sum = size, sum
}

// Decided logs and counts an entry, and tells its outcome. late is true if it has not told that, because the entry may
// fail nevertheless: the attributes of a directory are set after its content. Report or FailedLate then follows.
func (s *Stats) Decided(number uint32, done job.FileDone) (late bool) {
	s.params.LogEntry(number, done.Path, done.Kind).Err(done.Err).Msg(decisions[done.Action])
	if done.Err == nil && done.Kind == wire.EntryDirectory && s.params.Writes() {
		s.params.Config.Progress.DecidedEntry()
		return true
	}
	s.decided(done)
	return false
}

func (s *Stats) decided(done job.FileDone) {
	if done.Kind != wire.EntryFile {
		done.Bytes = 0
	}
	if !s.params.Plan.Tree {
		s.mu.Lock()
		s.summary.Updated = done.Action == job.Updated || done.Action == job.WouldUpdate
		s.summary.UpToDate = done.Action == job.Unchanged || done.Action == job.Updated
		s.summary.Existing, s.summary.Change = done.Action == job.Existing, done.Change
		s.copied = done.Action == job.Copied
		if done.Action != job.Copied && done.Action != job.Failed {
			s.summary.Size = done.Bytes
		}
		s.mu.Unlock()
		return
	}
	s.params.Config.Progress.DecidedEntry()
	done.Bytes = max(done.Bytes, 0)
	s.Report(done)
}

// Report tells the outcome of an entry of a tree, once for each.
func (s *Stats) Report(done job.FileDone) {
	s.mu.Lock()
	s.summary.Tree.Add(done)
	switch done.Action {
	case job.Unchanged, job.Updated, job.WouldUpdate, job.Copied, job.WouldCopy:
		s.summary.Size = max(s.summary.Size, 0) + done.Bytes
	}
	s.mu.Unlock()
	s.Notify(done)
}

// FailedLate logs and tells that a directory has failed after it was decided.
func (s *Stats) FailedLate(number uint32, path string, err error) {
	s.params.LogEntry(number, path, wire.EntryDirectory).Err(err).Msg(decisions[job.Failed])
	s.Report(job.FileDone{Path: path, Kind: wire.EntryDirectory, Action: job.Failed, Err: err})
}

// Skipped counts an entry of a kind that is not transferred.
func (s *Stats) Skipped(path string) {
	s.params.Config.Log.Debug().Str("path", path).Msg(decisions[job.Skipped])
	s.Found(0)
	s.decided(job.FileDone{Path: path, Action: job.Skipped})
}

// Missing counts an entry of the sender's that is not announced.
func (s *Stats) Missing(path string, kind wire.EntryKind, err error) {
	s.params.Config.Log.Debug().Str("path", path).Stringer("kind", kind).Err(err).Msg(decisions[job.Failed])
	s.Found(0)
	s.decided(job.FileDone{Path: path, Kind: kind, Action: job.Failed, Err: err})
}

// MissingThere counts entries that the sender has not announced.
func (s *Stats) MissingThere(entries int64) {
	if entries == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.Tree.AddUnreadable(entries)
}

// Done completes the summary. It may be called again when the transfer has ended.
func (s *Stats) Done(d wire.Durability) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.Durability = d
	s.summary.Messages = s.messages
}

// Result returns the summary.
func (s *Stats) Result() job.Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.summary.Tree; t != nil {
		s.summary.UpToDate = t.CopiedEntries()+t.Updated+t.Existing+t.Failed == 0 && !s.params.Plan.DryRun
	}
	s.summary.Retries = s.retries.Load()
	s.summary.Shares = s.params.Config.Progress.Stages().Shares()
	s.summary.Elapsed = time.Since(s.started)
	return s.summary
}

// SomeFailed returns job.ErrSomeFailed if the transfer is complete except for some entries.
func (s *Stats) SomeFailed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.summary.Tree != nil && s.summary.Tree.Failed > 0 {
		return job.ErrSomeFailed
	}
	return nil
}

// Renamed reports whether the receiver has the only file.
func (s *Stats) Renamed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copied || s.summary.UpToDate || s.summary.Existing
}

// Unconfirmed notes how the sender of a committed file failed to confirm.
func (s *Stats) Unconfirmed(how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.Unconfirmed = how
}

// Notify calls the caller's Notify, one call at a time.
func (s *Stats) Notify(e job.Event) {
	if s.params.Config.Notify == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.muted {
		s.params.Config.Notify(e)
	}
}

// Mute ends the calls of Notify by lanes that may return later than Run.
func (s *Stats) Mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = true
}
