package native

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// account is what a transfer tells its user: events, progress, and the summary. Its methods may be called by any
// goroutine of the transfer, except that planned, done and result are the owner's.
type account struct {
	terms    *terms
	messages int64 // sent to the peer; written by the owner
	started  time.Time
	retries  atomic.Int64
	replaced atomic.Int64 // bytes that an earlier transfer had left, and that were sent nevertheless

	mu      sync.Mutex // Notify is running
	muted   bool       // and must not be called any more
	summary job.Summary
	opened  bool         // this side's window is open
	plan    *job.Planned // set once content is to be transferred
	moving  bool         // both: the phase Moving has begun
	copied  bool         // the only file has been committed
	bytes   int64        // of the files found
}

// planned tells what is about to be transferred.
func (a *account) planned(peer negotiate.Hello) {
	plan, size := &a.terms.plan, a.terms.localSize()
	a.mu.Lock()
	a.summary = job.Summary{
		Sent: a.terms.sends(), Path: a.terms.config.File.Path, Size: size, Protocol: negotiate.Native,
		DataPath: plan.Path, Chunk: int64(plan.Chunk), Depth: int(plan.Depth),
		Readback: plan.Readback && !plan.StreamTarget, Changing: plan.AllowChanging, DryRun: plan.DryRun,
	}
	if plan.Tree {
		a.summary.Tree = &job.TreeSummary{}
	}
	a.mu.Unlock()
	a.terms.config.Progress.SetTotal(size)
	a.terms.logPeer(peer)
	a.terms.config.Log.Info().Stringer("sender", plan.Sender).Stringer("data_path", plan.Path).
		Bool("tree", plan.Tree).Stringer("digest", plan.Digest).Stringer("durability", plan.Durability).
		Str("peer", peer.Software).Msg("agreed")
	a.notify(job.PeerKnown{
		Protocol: negotiate.Native, Version: int(plan.Version), Software: peer.Software, Location: peer.Location,
	})
	if a.terms.sends() && a.terms.config.File.Unfinished {
		a.notify(job.Incomplete(a.terms.config.File.Path))
	}
	if plan.Tree {
		a.begins(job.Unknown, 0)
	}
}

// begins tells that the content of a file of that size is about to be transferred, and how many bytes of it the
// receiver already has. Of a tree the first call counts.
func (a *account) begins(size, resume int64) {
	plan, progress := &a.terms.plan, a.terms.config.Progress
	a.mu.Lock()
	a.summary.Resumed += resume
	first := a.plan == nil
	if first {
		a.plan = &job.Planned{
			Sent: a.terms.sends(), Tree: plan.Tree, Compare: plan.Compare, Size: size,
			Chunk: int64(plan.Chunk), Depth: int(plan.Depth),
			Digest: plan.Digest, Durability: plan.Durability, Resumed: resume,
		}
	}
	// Before another goroutine, which opens the window, finds the plan and tells that data is about to move.
	progress.SetResumed(a.summary.Resumed)
	if first && !plan.Tree {
		progress.SetTotal(size)
	}
	a.mu.Unlock()
	if first && plan.Tree {
		a.notify(*a.plan) // before the first of its entries
	}
	a.moves()
}

// windowOpened notes that this side's window is open, and what carries the content.
func (a *account) windowOpened(transport string) {
	a.mu.Lock()
	a.opened, a.summary.Transport = true, transport
	a.mu.Unlock()
	a.moves()
}

// hasWindow reports whether this side's window is open.
func (a *account) hasWindow() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.opened
}

// transport returns what carries the content; empty if this side does not know.
func (a *account) transport() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.summary.Transport
}

// peerNamed notes what carries the content by the peer's word, if it says so.
func (a *account) peerNamed(transport string) {
	if transport == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.summary.Transport = transport
}

// moves tells that data is about to move, once there is some and the window is open.
func (a *account) moves() {
	a.mu.Lock()
	begins := a.opened && a.plan != nil && !a.moving
	a.moving = a.moving || begins
	a.mu.Unlock()
	if !begins {
		return
	}
	a.terms.config.Progress.Enter(job.Moving)
	a.terms.config.Log.Info().Int64("bytes", a.plan.Size).Int64("chunk", a.plan.Chunk).Int("depth", a.plan.Depth).
		Int64("resumed", a.plan.Resumed).Msg("copying")
	if !a.plan.Tree {
		a.notify(*a.plan)
	}
}

// chunkMoved counts a chunk that the receiver has. Data below what it already had replaces what was there.
func (a *account) chunkMoved(resumed int64, chunk pump.Chunk) {
	a.bytesMoved(chunk.Length)
	if chunk.Kind == negotiate.DataRecord && chunk.Offset+chunk.Length <= resumed {
		a.replaced.Add(chunk.Length)
	}
}

// bytesMoved counts bytes that the receiver has.
func (a *account) bytesMoved(length int64) { a.terms.config.Progress.ChunkMoved(length) }

// retransmitting tells that a unit is sent again.
func (a *account) retransmitting(unit *pump.Unit) {
	a.retries.Add(1)
	offset, length := int64(0), unit.Used()
	if !unit.Packed() {
		offset = unit.Chunk().Offset
	}
	a.terms.config.Log.Warn().Int64("offset", offset).Int64("bytes", length).
		Msg("checksum mismatch, retransmitting chunk")
	a.notify(job.Retransmitted{Offset: offset, Length: length})
}

// found counts an entry that the sender has found; size is job.Unknown for a stream.
func (a *account) found(size int64) {
	a.mu.Lock()
	a.bytes += max(size, 0)
	a.mu.Unlock()
	if a.terms.plan.Tree {
		a.terms.config.Progress.FoundEntry(max(size, 0))
	}
}

// bytesFound returns how many bytes the files have that were found.
func (a *account) bytesFound() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

// walked notes that the sender has found all entries.
func (a *account) walked() {
	if a.terms.plan.Tree {
		a.terms.config.Progress.FoundAll()
	}
}

// content notes size and digest of the only file.
func (a *account) content(size int64, sum digest.Sum) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.summary.Size, a.summary.Sum = size, sum
}

// decided counts an entry and tells its outcome.
func (a *account) decided(done job.FileDone) {
	if done.Kind != negotiate.EntryFile {
		done.Bytes = 0
	}
	if !a.terms.plan.Tree {
		a.mu.Lock()
		a.summary.UpToDate, a.copied = done.Action == job.Unchanged, done.Action == job.Copied
		a.summary.Existing, a.summary.Change = done.Action == job.Existing, done.Change
		if done.Action != job.Copied && done.Action != job.Failed {
			a.summary.Size = done.Bytes
		}
		a.mu.Unlock()
		return
	}
	a.decidedEntry()
	done.Bytes = max(done.Bytes, 0)
	a.report(done)
}

// decidedEntry counts an entry of a tree whose outcome is reported later.
func (a *account) decidedEntry() { a.terms.config.Progress.DecidedEntry() }

// report tells the outcome of an entry of a tree, once for each.
func (a *account) report(done job.FileDone) {
	a.mu.Lock()
	a.summary.Tree.Add(done)
	if done.Action == job.Unchanged || done.Action == job.Copied || done.Action == job.WouldCopy {
		a.summary.Size = max(a.summary.Size, 0) + done.Bytes
	}
	a.mu.Unlock()
	a.notify(done)
}

// skipped counts an entry of a kind that is not transferred.
func (a *account) skipped(path string) {
	a.terms.config.Log.Debug().Str("path", path).Msg(decisions[job.Skipped])
	a.found(0)
	a.decided(job.FileDone{Path: path, Action: job.Skipped})
}

// missing counts an entry of the sender's that is not announced.
func (a *account) missing(path string, kind negotiate.EntryKind, err error) {
	a.terms.config.Log.Debug().Str("path", path).Stringer("kind", kind).Err(err).Msg(decisions[job.Failed])
	a.found(0)
	a.decided(job.FileDone{Path: path, Kind: kind, Action: job.Failed, Err: err})
}

// missingThere counts entries that the sender has not announced.
func (a *account) missingThere(entries int64) {
	if entries == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.summary.Tree.AddUnreadable(entries)
}

// done completes the summary. It may be called again when the transfer has ended.
func (a *account) done(d negotiate.Durability) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.summary.Durability = d
	a.summary.Resumed -= a.replaced.Swap(0)
	a.summary.Messages = a.messages
}

// result returns the summary.
func (a *account) result() job.Summary {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.summary.Tree; t != nil {
		a.summary.UpToDate = t.CopiedEntries()+t.Existing+t.Failed == 0 && !a.terms.plan.DryRun
	}
	a.summary.Retries = a.retries.Load()
	a.summary.Shares = a.terms.config.Progress.Stages().Shares()
	a.summary.Elapsed = time.Since(a.started)
	return a.summary
}

// someFailed returns job.ErrSomeFailed if the transfer is complete except for some entries.
func (a *account) someFailed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.summary.Tree != nil && a.summary.Tree.Failed > 0 {
		return job.ErrSomeFailed
	}
	return nil
}

// renamed reports whether the receiver has the only file.
func (a *account) renamed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.copied || a.summary.UpToDate || a.summary.Existing
}

// unconfirmed notes how the sender of a committed file failed to confirm.
func (a *account) unconfirmed(how string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.summary.Unconfirmed = how
}

// notify calls the caller's Notify, one call at a time.
func (a *account) notify(e job.Event) {
	if a.terms.config.Notify == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.muted {
		a.terms.config.Notify(e)
	}
}

// mute ends the calls of Notify by lanes that may return later than Run.
func (a *account) mute() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.muted = true
}
