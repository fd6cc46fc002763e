package dmaxfer

import (
	"context"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// maxFileSize bounds what a peer may announce: 64 TiB, which fits any file system and a process's address space.
const maxFileSize = 1 << 46

// Options describe one transfer. The zero value of a limit is no limit.
type Options struct {
	Side        wire.Side
	Device      *doca.Device // a host function on the host, a function of the DPU there; of Run and RunLocal only
	Representor string       // on the DPU: the host function to serve, as Device.OpenRepresentor takes it
	File        string       // what is sent if it exists, otherwise created; "-": standard input or output
	FS          disk.FS      // where File is; nil: the operating system's
	Overwrite   bool         // receive, and replace File if it exists
	MakePath    bool         // RunLinked and RunLocal: receive, and create missing directories above File
	HideContent bool         // receive, and do not let the sender learn by comparison what existing files contain
	Path        job.PathChoice

	// IgnoreExisting receives, and leaves File as it is if it exists, or what is in the directory File. It excludes
	// Overwrite, and is for the native protocol.
	IgnoreExisting bool

	Chunk       int64         // bytes; 0: chosen
	Depth       int           // chunks in flight; 0: chosen
	Lanes       int           // of this side, each with an engine; 0: role.MaxLanes
	Measure     int64         // RunLinked: bytes of memory to copy instead of File, which are stored nowhere; 0: File
	Wait        time.Duration // for the peer to appear and be free
	IdleTimeout time.Duration // without progress
	Log         zerolog.Logger

	// The options from Digest to Placement are for the native protocol, apart from Expect, which only it can fulfil,
	// and Backup. Of the two sides' values for Digest and Durability the stronger counts.
	Digest        digest.Algorithm
	Durability    wire.Durability
	Expect        *digest.Sum // the only content that may be transferred; nil: any
	Readback      bool        // a receiver reads the target back from the disk before it commits
	NoSparse      bool        // holes are filled with zeros
	Owner, Xattrs bool        // preserve them, if the other side wants it too
	Backup        bool        // keep what is replaced as NAME~
	NoResume      bool        // neither use nor leave what a later transfer could resume
	AllowChanging bool        // a source may change during the transfer
	Placement     role.Placement

	// The options from Links to MaxEntries are for trees; Links to FilesFrom have an effect on the sender only.
	Links      tree.LinkMode
	HardLinks  bool         // preserve hard links within the tree, if the other side wants it too
	Filter     *tree.Filter // of the entries to send; nil: all
	FilesFrom  []string     // paths to send, relative to File; nil: all
	Checksum   bool         // compare the content of what both sides have, not size and time
	DryRun     bool         // decide what would be transferred, and change nothing
	FailFast   bool         // the first entry that fails ends the transfer
	RefuseSame bool         // if both sides have File and neither may be replaced, fail even if they are the same
	MaxEntries int64        // of a tree; 0: no limit
	Mirror     *tree.Mirror // of RunLinked: gets what the removal of what the source lacks needs; may be nil

	SkipLeftovers bool // a sender of a tree leaves out unfinished files; otherwise the receiver refuses them

	ReferenceOnly bool // speak the reference protocol with any peer

	Bandwidth   int64           // bytes per second
	Limiters    []*rate.Limiter // shared with other transfers; bytes per second, with a burst of at least 4 KiB
	MaxBytes    int64           // of the file
	MaxHoles    int64           // bytes of holes whose zeros have to be digested or read back
	MaxDuration time.Duration   // from the agreement on; enforced by the caller

	Stdin, Stdout func() (disk.File, error) // open what a File of "-" stands for; nil: those of this process
	Software      string                    // name and version for the peer: printable ASCII, at most 64 bytes
	Word          native.Word               // the peer must have the same; zero: none
	Location      native.Location           // of File, for the peer's user
	Progress      *job.Progress             // updated during the transfer; may be nil
	Notify        func(job.Event)           // called by one goroutine at a time, which waits for it; may be nil

	paths job.Paths // that follow from Path and Device
}

// Run carries out one transfer. It returns nil when the target has its final name and is durable, as far as the
// protocol lets this side know. After an error the final name holds what it held before, and nothing else is left; but
// a DPU that receives has committed before a host of the reference protocol may report a failure, and so has a side
// whose directory could not be flushed. ctx ends the transfer with its cause, unless the target has been committed by
// then. A call into the device or the file system that does not return does not keep Run from returning: the error is
// then a job.ErrHung besides. Errors are *job.Error, or those of negotiate, comch and doca.
func Run(ctx context.Context, o Options) (job.Summary, error) {
	file, err := o.prepare(ctx)
	if err != nil {
		TellPeer(ctx, o, err)
		return job.Summary{}, err
	}
	defer file.Close()
	o.Log.Info().Stringer("side", o.Side).Str("device", o.Device.Info().PCIAddress).Msg("waiting for the peer")
	if o.Side == wire.Host {
		return call(ctx, o, file)
	}
	return serve(ctx, o, file)
}

// prepare finds out whether this side can do its part, before it looks for the peer.
func (o *Options) prepare(ctx context.Context) (*job.LocalFile, error) {
	paths, err := job.ChoosePaths(o.Path, o.Device.Info(), o.Side)
	if err != nil {
		return nil, err
	}
	o.paths = paths
	if o.ReferenceOnly && !paths.Has(wire.PathDMA) {
		return nil, job.NewError(job.ErrSettings, nil, "leave out --protocol reference",
			"the reference protocol copies by DMA only")
	}
	if err := job.CheckLimits(o.Device, o.Side, o.Chunk, o.Depth); err != nil {
		return nil, err
	}
	return o.find(ctx)
}

func (o *Options) find(ctx context.Context) (*job.LocalFile, error) {
	file, err := o.findAs(ctx, job.AnyUse)
	if err != nil {
		return nil, err
	}
	if o.ReferenceOnly && file.Unsized != nil {
		file.Close()
		return nil, file.NeedsNative("the reference protocol does not support streams", nil)
	}
	if o.ReferenceOnly && file.Directory {
		return nil, job.NewError(job.ErrSettings, nil, "leave out --protocol reference, or name a file",
			"%s is a directory, and the reference protocol copies single files only", file.Path)
	}
	return file, nil
}

// findAs looks for the file of this side.
func (o *Options) findAs(ctx context.Context, use job.Use) (*job.LocalFile, error) {
	return job.Find(ctx, job.Search{
		FS: o.FS, Path: o.File, Use: use, Overwrite: o.Overwrite, IgnoreExisting: o.IgnoreExisting,
		MakePath: o.MakePath && use == job.TargetUse, DryRun: o.DryRun,
		IdleTimeout: o.IdleTimeout, Stdin: o.Stdin, Stdout: o.Stdout,
	})
}
