package role

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The sizes of a transfer apart from its window, in bytes.
const (
	// maxBatch is how many bytes of chunks one message announces or acknowledges at most.
	maxBatch = 4 << 20

	// smallFile is the size below which a file is transferred before pinning its lanes could pay.
	smallFile = 16 << 20

	// smallestHole is the size below which a sparse file is sent without its holes.
	smallestHole = 64 << 10

	// MaxAttributes is how many bytes of extended attributes a receiver holds of needed files, and of directories and
	// symlinks that it has not planned yet, each; and how many a sender holds of entries that it has found.
	MaxAttributes = 16 << 20
)

// MaxLanes is how many goroutines move units, unless Config.Lanes says otherwise. A third one finds nothing that
// the two others leave idle.
const MaxLanes = 2

// Params are what follows for this side from its Config and from the plan that both sides have agreed upon. They do not
// change during the transfer.
type Params struct {
	Config *Config
	Plan   native.Plan

	logsChanges bool // the log has level DEBUG
}

// NewParams returns the parameters before an agreement, which sets Plan.
func NewParams(c *Config) *Params {
	return &Params{Config: c, logsChanges: c.Log.GetLevel() <= zerolog.DebugLevel}
}

// Sends reports whether this side is the sender.
func (p *Params) Sends() bool { return p.Plan.Sender == p.Config.Side }

// Tolerant reports whether the transfer goes on after an entry has failed.
func (p *Params) Tolerant() bool { return p.Plan.Tree && !p.Plan.FailFast }

// Writes reports whether anything may be changed in the target.
func (p *Params) Writes() bool { return !p.Plan.DryRun && !p.Plan.Compare }

// Durability returns what a target has when it is committed. It is not known for a stream, nor for a file that is only
// compared.
func (p *Params) Durability() wire.Durability {
	if p.Plan.StreamTarget || p.Plan.Compare {
		return wire.DurabilityNone
	}
	return p.Plan.Durability
}

// LocalSize returns the size of the file on this side in bytes, or job.Unknown.
func (p *Params) LocalSize() int64 {
	if p.Sends() && p.Config.File.Source != nil {
		return p.Config.File.Source.Info().Size
	}
	return job.Unknown
}

// ContentLog returns the logger of the lanes.
func (p *Params) ContentLog() zerolog.Logger {
	return p.Config.Log.With().Str("data_path", p.Plan.Path.String()).Logger()
}

// BothSides returns the end of an advice that is for both sides. The user of a copy within one process knows of none.
func (p *Params) BothSides(preposition string) string {
	if p.Config.Local {
		return ""
	}
	return " " + preposition + " both sides"
}

// Holes returns how the holes of a source are sent.
func (p *Params) Holes() pump.Holes {
	switch {
	case !p.Plan.Sparse:
		return pump.FillHoles
	case p.Plan.Readback:
		return pump.CheckHoles
	default:
		return pump.KeepHoles
	}
}

// Packs reports whether a file of a tree is sent together with others. One with holes is sent in chunks, and so is one
// that is to be read back.
func (p *Params) Packs(info disk.Info) bool {
	if p.Plan.Readback || info.Size > int64(p.Plan.Chunk) {
		return false
	}
	return !p.Plan.Sparse || info.Allocated >= info.Size || info.Size < smallestHole
}

// LongestLink returns how many bytes the text of a link may have beside a name.
func (p *Params) LongestLink(name int) int {
	return p.Config.Conn.MaxMessage() - native.MaxEntrySize(name, 0)
}

// InOrder reports whether chunks have to be taken in the order of their offsets.
func (p *Params) InOrder() bool {
	return p.Plan.Digest.Ordered() || p.Plan.StreamSource || p.Config.File.Stream
}

// Layout arranges this side's memory. A receiver that must keep the order holds all that can arrive out of it; one that
// need not has each lane write one chunk while the engine fetches the next. Where the lane fetches it itself, which is
// on a host that has the window, where the sender sends, and over memory that both sides map, it reuses one buffer.
// Where content arrives over connections it stays in the memory of its slot, and there is no buffer.
func (p *Params) Layout() window.Layout {
	l := window.Layout{
		Path: p.Plan.Path, Sends: p.Sends(), Digest: p.Plan.Digest,
		Chunk: int64(p.Plan.Chunk), Depth: int(p.Plan.Depth),
	}
	l.Lanes = min(cmp.Or(p.Config.Lanes, MaxLanes), l.Depth)
	if most := int(p.Config.traits().Lanes); l.Path == wire.PathFast && most > 0 {
		l.Lanes = min(l.Lanes, most)
	}
	if p.InOrder() ||
		l.Path.Connects() && p.Plan.StreamTarget { // a connection ends when either side opens another window
		l.Lanes = 1
	}
	if l.Sends || l.Path.Connects() {
		return l
	}
	l.Buffers = l.LaneSlots(0)
	copies := l.Path.Pushed() || l.Path == wire.PathDMA && p.Config.Side.Initiates() ||
		l.Path == wire.PathRMA && !p.Config.traits().Offloaded
	if copies && !p.InOrder() {
		l.Buffers = 1
	}
	return l
}

// Batch returns how many chunks one message stands for: a quarter of the window, so that the rest keeps both sides
// busy, and at most maxBatch. Where a chunk may take long, each has its own message, and so has each of a file that
// fits the window: the receiver would have nothing to do while the sender reads a large part of it.
func (p *Params) Batch() int {
	if p.Config.Bandwidth > 0 || len(p.Config.Limiters) > 0 || p.Config.File.Stream {
		return 1
	}
	size := p.LocalSize()
	if size != job.Unknown && !p.Plan.Tree && size <= int64(p.Plan.Depth)*int64(p.Plan.Chunk) {
		return 1
	}
	return max(1, min(int(p.Plan.Depth)/4, maxBatch/int(p.Plan.Chunk)))
}

// ChunkGrace returns how long a chunk may take. Where the order counts, a retransmitted one makes a whole window
// wait.
func (p *Params) ChunkGrace() time.Duration {
	if p.InOrder() || p.Plan.StreamTarget {
		return SlowChunk * time.Duration(1+p.Plan.Depth/4)
	}
	return SlowChunk
}

// Pace returns how a lane waits until the bandwidth limits permit a chunk; nil without a limit. The role calls it once.
func (p *Params) Pace() func(ctx context.Context, length int64) error {
	limiters := p.Config.Limiters.With(p.Config.Bandwidth, int64(p.Plan.Chunk))
	return limiters.Pace(job.PulseOf(p.Config.IdleTimeout), p.Config.Progress.Touch)
}

// Pinning returns how the lanes are pinned for a file of that size; nil: they are not. A device with a processor of its
// own leaves this one's CPUs alone. The single lanes of both sides are better on different CPUs, and a small file is
// transferred before pinning could pay. The lanes that receive a tree spend most of the time in system calls, which
// create one file after the other.
func (p *Params) Pinning(size int64) pump.Pinning {
	if p.Config.Placement == nil || p.Config.traits().Offloaded || p.InOrder() || p.Plan.StreamTarget {
		return nil
	}
	if p.Plan.Tree && !p.Sends() || size < smallFile {
		return nil
	}
	return p.Config.Placement.Lanes(MaxLanes)
}

// Check refuses what the peer may want and this side's user does not.
func (p *Params) Check() error {
	if use := p.Config.Use; use != job.AnyUse && p.Sends() != (use == job.SourceUse) {
		return &wire.Error{
			State: native.AwaitHello, Message: wire.TypeHello, Err: wire.ErrMalformed,
			Detail: "the peer reverses the direction that was agreed on",
		}
	}
	if e := p.Config.Expect; e != nil && p.Plan.Digest != e.Algorithm() {
		return job.NewError(job.ErrSettings, nil, "use the same --digest on both sides",
			"--expect names a %s digest, but the %s requires the stronger %s",
			e.Algorithm(), p.Config.Side.Other(), p.Plan.Digest)
	}
	if p.Config.File.Discards && p.Plan.Tree {
		return &wire.Error{
			State: native.AwaitHello, Message: wire.TypeHello, Err: wire.ErrMalformed,
			Detail: "a directory for a measurement",
		}
	}
	if p.Config.Expect != nil && p.Plan.Tree {
		return job.NewError(job.ErrSettings, nil, "leave out --expect, and compare with dma-copy verify",
			"--expect names the digest of one file, but %s is a directory", p.Config.File.Path)
	}
	if !p.Plan.Tree && !p.Sends() {
		if err := p.Config.File.CheckFile(p.Plan.Sender); err != nil {
			return err
		}
	}
	if p.Plan.DryRun && (p.Plan.StreamSource || p.Plan.StreamTarget) {
		return job.NewError(job.ErrSettings, nil, "leave out --dry-run, or name a file or directory on both sides",
			"a stream has no plan that --dry-run could print")
	}
	return nil
}

// CheckSize refuses a file, or the files of a tree, that are larger than this side's user allows.
func (p *Params) CheckSize(bytes int64) error {
	switch limit := p.Config.MaxBytes; {
	case limit == 0 || bytes <= limit:
		return nil
	case p.Plan.Tree: // there may be more bytes
		return job.OverTotal(p.Config.File.Path, limit)
	default:
		return job.OverLimit(p.Config.File.Path, bytes, limit)
	}
}

// LimitsHoles reports whether this side refuses files with many holes: it may where their zeros cost as much as data,
// for a digest that has no closed form for them, and for a readback.
func (p *Params) LimitsHoles() bool {
	return p.Config.MaxHoles > 0 && (p.Plan.Digest.Ordered() || p.Plan.Readback)
}

// CheckHoles has a sender refuse before a byte of a file moves what the receiver would refuse as the holes arrive.
func (p *Params) CheckHoles(s *disk.Source, path string) error {
	if !p.LimitsHoles() || !p.Plan.Sparse {
		return nil
	}
	exceeded, err := s.HolesExceed(p.Config.MaxHoles)
	if exceeded {
		return p.OverHoles(path)
	}
	return err
}

// OverHoles returns the error for a file with more holes than this side's user allows.
func (p *Params) OverHoles(path string) error {
	reader, next := p.Plan.Digest.String(), "use --digest crc32c"
	if p.Plan.Readback {
		reader, next = "--verify readback", "leave it out"
	}
	return job.OverHoles(path, p.Config.MaxHoles, reader, next+p.BothSides("on"))
}

// CheckContent compares what was transferred with what the user allows.
func (p *Params) CheckContent(size int64, sum digest.Sum) error {
	if err := p.CheckSize(size); err != nil {
		return err
	}
	if e := p.Config.Expect; e != nil && sum != *e {
		return job.NewError(job.ErrDigest, nil, "check the source, or correct --expect",
			"digest mismatch of %s: got %s, expected %s", p.Config.File.Path, sum, e)
	}
	return nil
}

// Corrupted explains the failure of lanes that have given up on a chunk.
func (p *Params) Corrupted(failed error) error {
	if errors.Is(failed, pump.ErrCorrupted) {
		return job.NewError(job.ErrDigest, failed, "check the memory"+p.BothSides("of")+" and the device",
			"transfer of %s failed: %v", p.Config.File.Path, failed)
	}
	return failed
}

// How long work may take that shows no progress.
const (
	// SlowChunk is how long one chunk may take that the bandwidth limit or a disk delays. It is within the second that
	// a side may take beyond its idle timeout.
	SlowChunk = time.Second

	// SlowEntry is how long one entry of a tree may take, for example on a disk that writes its journal.
	SlowEntry = 20 * time.Millisecond

	// SlowFlush is how long the flush of a file system may take.
	SlowFlush = 2 * time.Minute

	// SlowWalk is how long a sender may look for something to send.
	SlowWalk = 10 * time.Minute

	// slowestDisk is how many bytes per second are allocated, flushed or read back at least.
	slowestDisk = 4 << 20
)

// SlowWork returns how long an honest peer may need to allocate, flush or read back that many bytes.
func SlowWork(bytes int64) time.Duration {
	return SlowChunk + time.Duration(max(bytes, 0)/slowestDisk)*time.Second
}
