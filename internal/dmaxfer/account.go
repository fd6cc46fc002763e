package dmaxfer

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is what a native copy tells its user.

// announce says what is about to be copied.
func (n *native) announce() {
	n.summary = Summary{
		Sent: n.plan.Sender == n.options.Side, Path: n.place.path, Size: n.size(), Protocol: negotiate.Native,
		Chunk: int64(n.plan.Chunk), Depth: int(n.plan.Slots), Readback: n.plan.Readback && !n.plan.StreamTarget,
		Changing: n.plan.AllowChanging,
	}
	n.progress.plan(n.size())
	if n.options.Bandwidth > 0 {
		n.limiter = rate.NewLimiter(rate.Limit(n.options.Bandwidth), int(n.plan.Chunk))
	}
	n.options.Log.Info().Stringer("sender", n.plan.Sender).Int64("bytes", n.size()).Stringer("digest", n.plan.Digest).
		Stringer("durability", n.plan.Durability).Str("peer", n.session.Peer().Software).Msg("agreed")
	n.notify(PeerKnown{Protocol: negotiate.Native, Version: int(n.plan.Version), Software: n.session.Peer().Software})
}

// size is that of the file, if anybody knows it.
func (n *native) size() int64 {
	if !n.plan.SizeKnown {
		return Unknown
	}
	return int64(n.plan.Size)
}

// resumes says how much of the file is there already.
func (n *native) resumes(resume int64) {
	n.summary.Resumed = resume
	n.progress.resume(resume)
	n.options.Log.Info().Int64("chunk", n.summary.Chunk).Int("depth", n.summary.Depth).Int64("resumed", resume).Msg("copying")
	n.notify(Planned{
		Sent: n.summary.Sent, Size: n.size(), Chunk: n.summary.Chunk, Depth: n.summary.Depth,
		Digest: n.algorithm(), Durability: n.plan.Durability, Resumed: resume,
	})
}

// pieceMoved is called by the lanes. Data from where the receiver already had the file replace what was there.
func (n *native) pieceMoved(piece pump.Chunk) {
	n.progress.pieceMoved(piece.Length)
	if piece.Kind == negotiate.DataRecord && piece.Offset+piece.Length <= n.summary.Resumed {
		n.replaced.Add(piece.Length)
	}
}

// again is called by the lanes.
func (n *native) again(piece pump.Chunk) {
	n.retries.Add(1)
	n.options.Log.Warn().Int64("offset", piece.Offset).Int64("bytes", piece.Length).
		Msg("checksum mismatch, retransmitting chunk")
	n.notify(SentAgain{Offset: piece.Offset, Length: piece.Length})
}

// done completes the summary.
func (n *native) done(d negotiate.Durability) {
	n.summary.Durability = d
	n.summary.Resumed -= n.replaced.Load()
	n.summary.Retries = n.retries.Load()
	n.summary.Messages = n.messages
	n.summary.Shares = n.progress.stages.Shares()
	n.summary.Elapsed = time.Since(n.started)
}

// notify may be called by any goroutine of the copy.
func (n *native) notify(e Event) {
	if n.options.Notify == nil {
		return
	}
	n.notifying.Lock()
	defer n.notifying.Unlock()
	if !n.over {
		n.options.Notify(e)
	}
}

// silence ends the calls of Notify by lanes that may return later than run.
func (n *native) silence() {
	n.notifying.Lock()
	defer n.notifying.Unlock()
	n.over = true
}

func (o *Options) files() disk.FS {
	if o.FS != nil {
		return o.FS
	}
	return disk.OS
}

func (o *Options) stdin() (disk.File, error) {
	if o.Stdin != nil {
		return o.Stdin()
	}
	return disk.Stdin()
}

func (o *Options) stdout() (disk.File, error) {
	if o.Stdout != nil {
		return o.Stdout()
	}
	return disk.Stdout()
}
