package dmaxfer

import (
	"context"
	"crypto/rand"
	"math/bits"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

const (
	// hotChunk is small enough for a slot and a buffer to stay in a core's own cache together, between one step of a piece and the next.
	hotChunk = 512 << 10

	// distantChunk and distantSlots keep an engine of 50 GB/s busy, whose copies do not pass through the caches here. Each message then
	// stands for more bytes.
	distantChunk = 1 << 20
	distantSlots = 32

	// fewPieces and smallestSlot are for a small file: pieces small enough that the stages work on several of it at once, and not so small that
	// messages cost more than bytes.
	fewPieces    = 256
	smallestSlot = 64 << 10

	// fewRounds is how often each slot is used at least before a window gets more than fewestSlots, with which no stage waits for a slot.
	fewRounds   = 32
	fewestSlots = 8

	// largestSlot and mostSlots are what a host takes that was told nothing: the DPU, whose engine copies, then chooses. They
	// bound the window at 64 MiB.
	largestSlot = 2 << 20
	mostSlots   = 32

	// mostBatched is how many bytes of pieces may wait for one message.
	mostBatched = 4 << 20

	// pacedPieces is how many pieces a paced copy moves in a second, as far as they can be so small.
	pacedPieces = 8

	// maxLanes is how many goroutines move pieces. A third one finds nothing that the two others leave idle.
	maxLanes = 2
)

// hello says what this side has and wishes.
func (o *Options) hello(p *place, of traits) negotiate.Hello {
	h := negotiate.Hello{
		Digest: negotiate.Digest(o.wantedDigest()), Durability: o.Durability, Flags: o.flags(p),
		Chunk: o.slotSize(0, of), Slots: o.slotCount(0, of), Software: o.Software,
	}
	_, _ = rand.Read(h.Session[:]) // never fails
	if p.source != nil {
		p.describe(&h)
	}
	return h
}

// describe says what the source is.
func (p *place) describe(h *negotiate.Hello) {
	info := p.source.Info()
	h.Size = uint64(info.Size)
	h.MTime = negotiate.Timestamp(info.Modified)
	h.Mode = uint32(info.Mode.Perm())
	h.UID, h.GID = info.UID, info.GID
	h.Identity = p.source.Fingerprint()
}

// dense tells whether there is a source without holes, for which a receiver can make room beforehand.
func (p *place) dense() bool {
	return p.source != nil && p.source.Info().Allocated >= p.source.Info().Size
}

// wantedDigest is strong enough for what the file is to be compared with.
func (o *Options) wantedDigest() digest.Algorithm {
	if o.Expect != nil {
		return max(o.Digest, o.Expect.Algorithm())
	}
	return o.Digest
}

func (o *Options) flags(p *place) negotiate.Flags {
	var flags negotiate.Flags
	for flag, set := range map[negotiate.Flags]bool{
		negotiate.FlagHasFile:       p.source != nil,
		negotiate.FlagStream:        p.stream,
		negotiate.FlagOverwrite:     p.overwrite,
		negotiate.FlagNoSparse:      o.NoSparse || p.dense(),
		negotiate.FlagReadback:      o.Readback,
		negotiate.FlagOwner:         o.Owner,
		negotiate.FlagXAttr:         o.Xattrs,
		negotiate.FlagAllowChanging: o.AllowChanging,
	} {
		if set {
			flags |= flag
		}
	}
	return flags
}

// slotSize is the largest power of two that is no more than what was asked for, or suits the device and a file of that size, and within what
// the device copies at once. A size of 0 is unknown.
func (o *Options) slotSize(size int64, of traits) uint32 {
	wanted := o.Chunk
	if wanted == 0 {
		wanted = o.suitableSlot(size, of)
	}
	if of.largest > 0 {
		wanted = min(wanted, of.largest)
	}
	if o.Bandwidth > 0 {
		wanted = min(wanted, o.Bandwidth/pacedPieces) // each piece is a sign of life for the peer
	}
	wanted = min(max(wanted, negotiate.MinChunk), negotiate.MaxChunk)
	return 1 << (bits.Len64(uint64(wanted)) - 1)
}

func (o *Options) suitableSlot(size int64, of traits) int64 {
	if o.Side == negotiate.Host {
		return largestSlot
	}
	most, _ := of.window()
	if size == 0 {
		return most
	}
	return min(max(size/fewPieces, smallestSlot), most)
}

// window is how large a piece is at most that a DPU chooses, and how many there are.
func (of traits) window() (chunk, slots int64) {
	switch {
	case of.distant:
		return distantChunk, distantSlots
	case of.cpus != nil:
		return hotChunk, fewestSlots // nobody waits long for a slot of who works by turns with oneself
	}
	return hotChunk, defaultSlots
}

// slotCount is as many as were asked for, or as a file of that size keeps busy, if it is not 0. All of a window is touched for the first time
// once, which costs more than to copy that much.
func (o *Options) slotCount(size int64, of traits) uint32 {
	_, most := of.window()
	switch {
	case o.Depth != 0:
		return uint32(min(o.Depth, negotiate.MaxSlots))
	case o.Side == negotiate.Host:
		return mostSlots
	case size == 0:
		return uint32(most)
	}
	rounds := size / int64(o.slotSize(size, of)) / fewRounds
	return uint32(min(max(rounds, fewestSlots), most))
}

// layout is how this side arranges its memory for the plan. A receiver that must keep the order holds all that can arrive before
// its turn; one that need not has each lane write one piece while the engine fetches the next. Where the lane fetches it itself, which is
// on the host, it fills one buffer again and again.
func (n *native) layout() layout {
	l := layout{
		sends: n.plan.Sender == n.options.Side, digest: n.algorithm(),
		chunk: int64(n.plan.Chunk), slots: int(n.plan.Slots),
	}
	l.lanes = min(maxLanes, l.slots)
	if n.inOrder() {
		l.lanes = 1
	}
	l.buffers = (l.slots + l.lanes - 1) / l.lanes
	if n.options.Side == negotiate.Host && !n.inOrder() {
		l.buffers = 1
	}
	return l
}

// batch is of how many pieces the peer hears with one message: a quarter of the window, so that the rest keeps both sides busy, and no more
// than is soon done. Where a piece may take long it hears of each.
func (n *native) batch() int {
	if n.limiter != nil || n.place.stream {
		return 1
	}
	return max(1, min(int(n.plan.Slots)/4, mostBatched/int(n.plan.Chunk)))
}

// patienceWithPiece is how long a piece may take: where the order counts, one that has to come again lets a whole window wait.
func (n *native) patienceWithPiece() time.Duration {
	if n.inOrder() || n.plan.StreamTarget {
		return slowPiece * time.Duration(1+n.plan.Slots/4)
	}
	return slowPiece
}

// inOrder is true where pieces have to be taken in the order of their offsets.
func (n *native) inOrder() bool {
	return n.algorithm().Ordered() || !n.plan.SizeKnown || n.place.stream
}

func (n *native) algorithm() digest.Algorithm { return digest.Algorithm(n.plan.Digest) }

// checkPlan refuses what the peer may want and this side's user does not.
func (n *native) checkPlan() error {
	limit := n.options.MaxBytes
	if limit > 0 && n.plan.SizeKnown && n.plan.Size > uint64(limit) {
		return overLimit(n.place.path, int64(n.plan.Size), limit)
	}
	if err := n.checkHoles(); err != nil {
		return err
	}
	if e := n.options.Expect; e != nil && n.algorithm() != e.Algorithm() {
		return failure(ErrSettings, nil, "use the same --digest on both sides",
			"--expect names a %s digest, but the %s requires the stronger %s",
			e.Algorithm(), n.options.Side.Other(), n.algorithm())
	}
	return nil
}

// readsHoles reports whether the zeros of a hole cost as much as data: for a digest that has no closed form for them,
// and for a readback.
func (n *native) readsHoles() bool { return n.algorithm().Ordered() || n.plan.Readback }

// checkHoles has a sender refuse before a byte moves what the receiver would refuse as the holes arrive.
func (n *native) checkHoles() error {
	limit := n.options.MaxHoles
	if limit == 0 || n.place.source == nil || !n.plan.Sparse || !n.readsHoles() {
		return nil
	}
	exceeded, err := n.place.source.HolesExceed(limit)
	if exceeded {
		return n.overHoles()
	}
	return err
}

func (n *native) overHoles() error {
	reader, next := n.algorithm().String(), "use --digest crc32c on both sides"
	if n.plan.Readback {
		reader, next = "--verify readback", "leave it out on both sides"
	}
	return failure(ErrLimit, nil, next+", or raise --max-holes",
		"%s has more than %s of holes, which %s would read as zeros",
		n.place.path, humanize.IBytes(uint64(n.options.MaxHoles)), reader)
}

func overLimit(path string, size, limit int64) error {
	return failure(ErrLimit, nil, "raise --max-bytes", "%s is too large: %s exceeds the limit of %s",
		path, humanize.IBytes(uint64(size)), humanize.IBytes(uint64(limit)))
}

// checkCopied compares what was copied with what may be.
func (n *native) checkCopied(size int64, sum digest.Sum) error {
	if limit := n.options.MaxBytes; limit > 0 && size > limit {
		return overLimit(n.place.path, size, limit)
	}
	if e := n.options.Expect; e != nil && sum != *e {
		return failure(ErrDigest, nil, "check the source, or correct --expect",
			"digest mismatch of %s: got %s, expected %s", n.place.path, sum, e)
	}
	return nil
}

// pace keeps the copy below the bandwidth that it is allowed; nil if it is allowed any. Waiting for that is no standstill, however
// long it takes: both sides' heartbeats are to show it. It does not look ahead to the context's deadline, as the limiter's own wait
// does, since that is not yet the cause of anything.
func (n *native) pace() func(ctx context.Context, length int64) error {
	if n.limiter == nil {
		return nil
	}
	return func(ctx context.Context, length int64) error {
		for left := n.limiter.ReserveN(time.Now(), int(length)).Delay(); left > 0; left -= n.watch.interval {
			select {
			case <-time.After(min(left, n.watch.interval)):
				n.progress.stirred()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
}
