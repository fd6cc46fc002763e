package role

import (
	"crypto/rand"
	"math"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Options are what both the caller of a transfer and its role in the native protocol see of it. The zero value of a
// limit is no limit.
type Options struct {
	Side        wire.Side
	Chunk       int64         // bytes; 0: chosen
	Depth       int           // slots of the window, which are the chunks in flight; 0: chosen
	Lanes       int           // of this side, each with an engine; 0: MaxLanes
	Placement   Placement     // nil: lanes are not pinned to CPUs
	IdleTimeout time.Duration // without progress

	// The stronger of the two sides' values for Digest and Durability counts.
	Digest        digest.Algorithm
	Durability    wire.Durability
	Expect        *digest.Sum // the only content that may be transferred; nil: any
	Readback      bool        // a receiver reads the target back from the disk before it commits
	NoSparse      bool        // holes are filled with zeros
	Owner, Xattrs bool        // preserve them, if the other side wants it too
	Privileged    bool        // with Xattrs: not only user attributes, as disk.MayPreserve says
	Backup        bool        // keep what is replaced as NAME~
	NoResume      bool        // neither use nor leave what a later transfer could resume
	AllowChanging bool        // a source may change during the transfer
	HideContent   bool        // receive, and do not let the sender learn by comparison what existing files contain

	// The following are for trees. The fields from Links to FilesFrom and MaxEntries have an effect on the sender only.
	Links      tree.LinkMode
	Filter     *tree.Filter // of the entries to send; nil: all
	Scope      tree.Scope   // of the files to send
	FilesFrom  []string     // paths to send, relative to the tree; nil: all
	HardLinks  bool         // preserve them, if the other side wants it too
	Checksum   bool         // compare the content of what both sides have, not size and time
	DryRun     bool         // decide what would be transferred, and change nothing
	FailFast   bool         // the first entry that fails ends the transfer
	RefuseSame bool         // if both sides have it and neither may be replaced, fail even if they are the same
	MaxEntries int64
	Mirror     *tree.Mirror // gets what is needed to remove from the target what the source lacks; nil: not wanted

	SkipLeftovers bool // a sender of a tree leaves out unfinished files; otherwise the receiver refuses them

	Bandwidth int64        // bytes per second
	Limiters  job.Limiters // shared with other transfers, each with a burst of at least 4 KiB
	MaxBytes  int64        // of the file
	MaxHoles  int64        // bytes of holes whose zeros have to be digested or read back

	Software string          // name and version for the peer: printable ASCII, at most 64 bytes
	Word     native.Word     // the peer must have the same; zero: none
	Location native.Location // of the file, for the peer's user
	Log      zerolog.Logger
	Progress *job.Progress   // updated during the transfer; may be nil
	Notify   func(job.Event) // called by one goroutine at a time, which waits for it; may be nil
}

// Config is one transfer with one peer. The zero value of a limit is no limit. The stronger of the two sides' values
// for Digest and Durability counts.
type Config struct {
	Options
	Conn   comch.Conn
	Memory window.Memory
	Paths  job.Paths // that this side can and will use
	File   *job.LocalFile
	Local  bool // the peer is in this process, and the user sees neither side

	// Pair is set where both sides know the direction: to what messages call both files. Use is then what File is.
	Pair *job.Pair
	Use  job.Use // job.AnyUse: the HELLOs decide who sends

	// Kept says that the connection and Memory are used again after this transfer. The window then has the sizes that
	// suit large files, regardless of the size of this one, so that the next transfer has the same Layout. Conn.Close
	// lets the peer receive what was sent.
	Kept bool

	// Restarted says that this is the second session over Conn: what the peer sent before its HELLO is of the first.
	Restarted bool

	StallLog zerolog.Logger // of what the transfer waited for when it was given up because of a timeout
}

// Placement gives lanes the CPUs of the process.
type Placement interface {
	// Lanes returns how to pin that many lanes; nil if they are better left to the scheduler, because the process may
	// use more CPUs than that.
	Lanes(n int) pump.Pinning
}

// Hello returns what this side has and wishes.
func (c *Config) Hello() native.Hello {
	chunk, depth := c.choice().For(0)
	h := native.Hello{
		Digest: c.digest(), Durability: c.Durability, Flags: c.flags(),
		Chunk: chunk, Depth: depth, Software: c.Software, Word: c.Word, Location: c.Location,
	}
	_, _ = rand.Read(h.Session[:]) // never fails
	return h
}

// traits returns the traits of this side's device.
func (c *Config) traits() window.Traits { return c.Memory.Traits(c.Paths) }

// digest is at least the expected digest's algorithm.
func (c *Config) digest() digest.Algorithm {
	if c.Expect != nil {
		return max(c.Digest, c.Expect.Algorithm())
	}
	return c.Digest
}

func (c *Config) flags() native.Flags {
	flags := c.Paths.Flags()
	for flag, set := range map[native.Flags]bool{
		native.FlagFile:          c.File.Source != nil || c.File.Exists && !c.File.Directory,
		native.FlagTree:          c.File.Directory,
		native.FlagStream:        c.File.Stream,
		native.FlagOverwrite:     c.File.Overwrite,
		native.FlagNoSparse:      c.NoSparse || c.File.Dense(),
		native.FlagReadback:      c.Readback,
		native.FlagOwner:         c.Owner,
		native.FlagXAttr:         c.Xattrs,
		native.FlagPrivileged:    c.Xattrs && c.Privileged,
		native.FlagAllowChanging: c.AllowChanging,
		native.FlagLinks:         c.HardLinks,
		native.FlagChecksum:      c.Checksum || c.Expect != nil,
		native.FlagDryRun:        c.DryRun,
		native.FlagRefuseSame:    c.RefuseSame,
		native.FlagFailFast:      c.FailFast,
		native.FlagReceives:      c.Use == job.TargetUse,

		native.FlagIgnoreExisting: c.File.IgnoreExisting,
		native.FlagUnfinished:     c.File.Unfinished,
	} {
		if set {
			flags |= flag
		}
	}
	return flags
}

// Proposal returns the chunk, in bytes, and the depth of the window that a side proposes which does not initiate, such
// as the DPU, whose engine copies. It depends on the size of the file: hostSize is what the DPU knows of the host's.
func (c *Config) Proposal(hostSize uint64) (chunk, depth uint32) {
	size, choice := int64(min(hostSize, math.MaxInt64)), c.choice()
	if c.Kept {
		return choice.For(0)
	}
	if c.File.Stream || c.digest().Ordered() {
		choice.Shared = false // its only lane does not share a CPU with the host's
	}
	if c.File.Source != nil {
		size = c.File.Source.Info().Size
	}
	return choice.For(size)
}

func (c *Config) choice() window.Choice {
	traits := c.traits()
	return window.Choice{
		Chunk: c.Chunk, Depth: int64(c.Depth), Initiates: c.Side.Initiates(), Traits: traits,
		Limit:  c.Limiters.With(c.Bandwidth, c.Chunk).Slowest(),
		Shared: !traits.Offloaded && c.Placement != nil && c.Placement.Lanes(MaxLanes) != nil,
	}
}
