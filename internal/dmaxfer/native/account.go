package native

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// account is what a transfer tells its user: events, progress, and the summary, which the owner of the transfer writes.
type account struct {
	terms    *terms
	messages int64 // sent to the peer
	started  time.Time
	summary  job.Summary
	retries  atomic.Int64
	replaced atomic.Int64 // bytes that an earlier transfer had left, and that were sent nevertheless

	mu    sync.Mutex // Notify is running
	muted bool       // and must not be called any more
}

// planned tells what is about to be transferred.
func (a *account) planned(peer negotiate.Hello) {
	plan, size := &a.terms.plan, a.terms.size()
	a.summary = job.Summary{
		Sent: a.terms.sends(), Path: a.terms.config.File.Path, Size: size, Protocol: negotiate.Native,
		Chunk: int64(plan.Chunk), Depth: int(plan.Depth), Readback: plan.Readback && !plan.StreamTarget,
		Changing: plan.AllowChanging,
	}
	a.terms.config.Progress.SetTotal(size)
	a.terms.config.Log.Info().Stringer("sender", plan.Sender).Int64("bytes", size).Stringer("digest", plan.Digest).
		Stringer("durability", plan.Durability).Str("peer", peer.Software).Msg("agreed")
	a.notify(job.PeerKnown{Protocol: negotiate.Native, Version: int(plan.Version), Software: peer.Software})
}

// begins tells that the transfer begins, and how many bytes of the file the receiver already has.
func (a *account) begins(resume int64) {
	a.summary.Resumed = resume
	a.terms.config.Progress.SetResumed(resume)
	a.terms.config.Log.Info().Int64("chunk", a.summary.Chunk).Int("depth", a.summary.Depth).
		Int64("resumed", resume).Msg("copying")
	a.notify(job.Planned{
		Sent: a.summary.Sent, Size: a.terms.size(), Chunk: a.summary.Chunk, Depth: a.summary.Depth,
		Digest: a.terms.plan.Digest, Durability: a.terms.plan.Durability, Resumed: resume,
	})
}

// chunkMoved is called by the lanes. Data below what the receiver already had replaces what was there.
func (a *account) chunkMoved(chunk pump.Chunk) {
	a.terms.config.Progress.ChunkMoved(chunk.Length)
	if chunk.Kind == negotiate.DataRecord && chunk.Offset+chunk.Length <= a.summary.Resumed {
		a.replaced.Add(chunk.Length)
	}
}

// retransmitting is called by the lanes.
func (a *account) retransmitting(chunk pump.Chunk) {
	a.retries.Add(1)
	a.terms.config.Log.Warn().Int64("offset", chunk.Offset).Int64("bytes", chunk.Length).
		Msg("checksum mismatch, retransmitting chunk")
	a.notify(job.Retransmitted{Offset: chunk.Offset, Length: chunk.Length})
}

// done completes the summary.
func (a *account) done(d negotiate.Durability) {
	a.summary.Durability = d
	a.summary.Resumed -= a.replaced.Load()
	a.summary.Retries = a.retries.Load()
	a.summary.Messages = a.messages
	a.summary.Shares = a.terms.config.Progress.Stages().Shares()
	a.summary.Elapsed = time.Since(a.started)
}

// notify may be called by any goroutine of the transfer.
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
