package native

import (
	"cmp"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// terms are what follows for this side from its Config and from the plan that both sides have agreed upon. They do not
// change during the transfer.
type terms struct {
	config      *Config
	plan        negotiate.Plan
	logsChanges bool // the log has level DEBUG
}

func (t *terms) sends() bool { return t.plan.Sender == t.config.Side }

// tolerant reports whether the transfer goes on after an entry has failed.
func (t *terms) tolerant() bool { return t.plan.Tree && !t.plan.FailFast }

// writes reports whether anything may be changed in the target.
func (t *terms) writes() bool { return !t.plan.DryRun && !t.plan.Compare }

// failsLate reports whether an entry that the receiver has may fail nevertheless: the attributes of a directory are set
// after its content.
func (t *terms) failsLate(kind negotiate.EntryKind) bool {
	return kind == negotiate.EntryDirectory && t.writes()
}

// durability returns what a target has when it is committed. That of a stream is not known, nor that of what is only
// compared.
func (t *terms) durability() negotiate.Durability {
	if t.plan.StreamTarget || t.plan.Compare {
		return negotiate.DurabilityNone
	}
	return t.plan.Durability
}

// sumAlgorithm returns that of the digests by which content is compared before it is sent.
func (t *terms) sumAlgorithm() digest.Algorithm { return t.plan.SumDigest() }

// localSize returns that of the file on this side in bytes, or job.Unknown.
func (t *terms) localSize() int64 {
	if t.sends() && t.config.File.Source != nil {
		return t.config.File.Source.Info().Size
	}
	return job.Unknown
}

// contentLog returns the logger of the lanes.
func (t *terms) contentLog() zerolog.Logger {
	return t.config.Log.With().Str("data_path", t.plan.Path.String()).Logger()
}

// bothSides returns the end of an advice that is for both sides. The user of a copy within one process knows of none.
func (t *terms) bothSides(preposition string) string {
	if t.config.Local {
		return ""
	}
	return " " + preposition + " both sides"
}

// holes returns how the holes of a source are sent.
func (t *terms) holes() pump.Holes {
	switch {
	case !t.plan.Sparse:
		return pump.FillHoles
	case t.plan.Readback:
		return pump.CheckHoles
	default:
		return pump.KeepHoles
	}
}

// packs reports whether a file of a tree is sent together with others. One with holes is sent in chunks, and so is one
// that is to be read back.
func (t *terms) packs(info disk.Info) bool {
	if t.plan.Readback || info.Size > int64(t.plan.Chunk) {
		return false
	}
	return !t.plan.Sparse || info.Allocated >= info.Size || info.Size < smallestHole
}

// longestLink returns how many bytes the text of a link may have beside a name.
func (t *terms) longestLink(name int) int {
	return t.config.Conn.MaxMessage() - negotiate.MaxEntrySize(name, 0)
}

// inOrder reports whether chunks have to be taken in the order of their offsets.
func (t *terms) inOrder() bool {
	return t.plan.Digest.Ordered() || t.plan.StreamSource || t.config.File.Stream
}

// layout arranges this side's memory. A receiver that must keep the order holds all that can arrive out of it; one that
// need not has each lane write one chunk while the engine fetches the next. Where the lane fetches it itself, which is
// on a host that has the window, where the sender sends, and over memory that both sides map, it reuses one buffer.
// Where content arrives over connections it stays in the memory of its slot, and there is no buffer.
func (t *terms) layout() window.Layout {
	l := window.Layout{
		Path: t.plan.Path, Sends: t.sends(), Digest: t.plan.Digest,
		Chunk: int64(t.plan.Chunk), Depth: int(t.plan.Depth),
	}
	l.Lanes = min(cmp.Or(t.config.Lanes, MaxLanes), l.Depth)
	if most := int(t.config.traits().Lanes); l.Path == negotiate.PathFast && most > 0 {
		l.Lanes = min(l.Lanes, most)
	}
	if t.inOrder() ||
		l.Path.Connects() && t.plan.StreamTarget { // a connection ends when either side opens another window
		l.Lanes = 1
	}
	if l.Sends || l.Path.Connects() {
		return l
	}
	l.Buffers = l.LaneSlots(0)
	copies := l.Path.Pushed() || l.Path == negotiate.PathDMA && t.config.Side.Initiates() ||
		l.Path == negotiate.PathRMA && !t.config.traits().Distant
	if copies && !t.inOrder() {
		l.Buffers = 1
	}
	return l
}

// batch returns how many chunks one message stands for: a quarter of the window, so that the rest keeps both sides
// busy, and at most maxBatch. Where a chunk may take long, each has its own message, and so has each of a file that
// fits the window: the receiver would have nothing to do while the sender reads a large part of it.
func (t *terms) batch() int {
	if t.config.Bandwidth > 0 || len(t.config.Limiters) > 0 || t.config.File.Stream {
		return 1
	}
	size := t.localSize()
	if size != job.Unknown && !t.plan.Tree && size <= int64(t.plan.Depth)*int64(t.plan.Chunk) {
		return 1
	}
	return max(1, min(int(t.plan.Depth)/4, maxBatch/int(t.plan.Chunk)))
}

// chunkPatience returns how long a chunk may take. Where the order counts, a retransmitted one makes a whole window
// wait.
func (t *terms) chunkPatience() time.Duration {
	if t.inOrder() || t.plan.StreamTarget {
		return slowChunk * time.Duration(1+t.plan.Depth/4)
	}
	return slowChunk
}

// pinning returns how the lanes are pinned for a file of that size; nil: they are not. A device with a processor of its
// own leaves this one's CPUs alone. The single lanes of both sides are better on different CPUs, and a small file is
// transferred before pinning could pay. The lanes that receive a tree spend most of the time in system calls, which
// create one file after the other.
func (t *terms) pinning(size int64) pump.Pinning {
	if t.config.Placement == nil || t.config.traits().Distant || t.inOrder() || t.plan.StreamTarget {
		return nil
	}
	if t.plan.Tree && !t.sends() || size < smallFile {
		return nil
	}
	return t.config.Placement.Lanes(MaxLanes)
}

// check refuses what the peer may want and this side's user does not.
func (t *terms) check() error {
	if use := t.config.Use; use != job.AnyUse && t.sends() != (use == job.SourceUse) {
		return &negotiate.Error{
			State: negotiate.AwaitHello, Message: negotiate.TypeHello, Err: negotiate.ErrMalformed,
			Detail: "the peer reverses the direction that was agreed on",
		}
	}
	if e := t.config.Expect; e != nil && t.plan.Digest != e.Algorithm() {
		return job.NewError(job.ErrSettings, nil, "use the same --digest on both sides",
			"--expect names a %s digest, but the %s requires the stronger %s",
			e.Algorithm(), t.config.Side.Other(), t.plan.Digest)
	}
	if t.config.File.Discards && t.plan.Tree {
		return &negotiate.Error{
			State: negotiate.AwaitHello, Message: negotiate.TypeHello, Err: negotiate.ErrMalformed,
			Detail: "a directory for a measurement",
		}
	}
	if t.config.Expect != nil && t.plan.Tree {
		return job.NewError(job.ErrSettings, nil, "leave out --expect, and compare with dma-copy verify",
			"--expect names the digest of one file, but %s is a directory", t.config.File.Path)
	}
	if !t.plan.Tree && !t.sends() {
		if err := t.config.File.CheckFile(t.plan.Sender); err != nil {
			return err
		}
	}
	if t.plan.DryRun && (t.plan.StreamSource || t.plan.StreamTarget) {
		return job.NewError(job.ErrSettings, nil, "leave out --dry-run, or name a file or directory on both sides",
			"a stream has no plan that --dry-run could print")
	}
	return nil
}

// checkSize refuses a file, or the files of a tree, that are larger than this side's user allows.
func (t *terms) checkSize(bytes int64) error {
	switch limit := t.config.MaxBytes; {
	case limit == 0 || bytes <= limit:
		return nil
	case t.plan.Tree: // of which there may be more
		return job.NewError(job.ErrLimit, nil, "raise --max-bytes, or exclude some",
			"the files of %s have more than %s", t.config.File.Path, quantity.Bytes(uint64(limit)))
	default:
		return job.OverLimit(t.config.File.Path, bytes, limit)
	}
}

// checkFile refuses a file that the protocol cannot carry.
func checkFile(path string, bytes int64) error {
	if bytes > negotiate.MaxSize {
		return disk.NewError(disk.ErrSource, nil, "exclude it, or split it",
			"%s is too large: %s exceeds the protocol's limit of %s",
			path, quantity.Bytes(uint64(bytes)), quantity.Bytes(negotiate.MaxSize))
	}
	return nil
}

// checkEntries refuses a tree with more entries than this side's user allows.
func (t *terms) checkEntries(entries int64) error {
	if t.config.MaxEntries > 0 && entries > t.config.MaxEntries {
		return t.overEntries()
	}
	return nil
}

func (t *terms) overEntries() error {
	return job.NewError(job.ErrLimit, nil, "raise --max-entries, or exclude some",
		"%s has more than %d entries", t.config.File.Path, t.config.MaxEntries)
}

// readsHoles reports whether the zeros of a hole cost as much as data: for a digest that has no closed form for them,
// and for a readback.
func (t *terms) readsHoles() bool { return t.plan.Digest.Ordered() || t.plan.Readback }

// limitsHoles reports whether this side refuses files with many holes.
func (t *terms) limitsHoles() bool { return t.config.MaxHoles > 0 && t.readsHoles() }

// checkHoles has a sender refuse before a byte of a file moves what the receiver would refuse as the holes arrive.
func (t *terms) checkHoles(s *disk.Source, path string) error {
	if !t.limitsHoles() || !t.plan.Sparse {
		return nil
	}
	exceeded, err := s.HolesExceed(t.config.MaxHoles)
	if exceeded {
		return t.overHoles(path)
	}
	return err
}

func (t *terms) overHoles(path string) error {
	reader, next := t.plan.Digest.String(), "use --digest crc32c"
	if t.plan.Readback {
		reader, next = "--verify readback", "leave it out"
	}
	return job.NewError(job.ErrLimit, nil, next+t.bothSides("on")+", or raise --max-holes",
		"%s has more than %s of holes, which %s would read as zeros",
		path, quantity.Bytes(uint64(t.config.MaxHoles)), reader)
}

// checkContent compares what was transferred with what the user allows.
func (t *terms) checkContent(size int64, sum digest.Sum) error {
	if err := t.checkSize(size); err != nil {
		return err
	}
	if e := t.config.Expect; e != nil && sum != *e {
		return job.NewError(job.ErrDigest, nil, "check the source, or correct --expect",
			"digest mismatch of %s: got %s, expected %s", t.config.File.Path, sum, e)
	}
	return nil
}
