package dmaxfer

import (
	"context"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// maxFileSize bounds what a peer may announce: 64 TiB, which fits any file system and a process's address space.
const maxFileSize = 1 << 46

// Options describe one transfer.
type Options struct {
	role.Options // apart from Backup, those from Digest on are for the native protocol, which alone fulfils Expect

	Device      *doca.Device // a host function on the host, a function of the DPU there; of Run and RunLocal only
	Representor string       // on the DPU: the host function to serve, as Device.OpenRepresentor takes it
	File        string       // what is sent if it exists, otherwise created; "-": standard input or output
	FS          disk.FS      // where File is; nil: the operating system's
	Overwrite   bool         // receive, and replace File if it exists
	MakePath    bool         // RunLinked and RunLocal: receive, and create missing directories above File
	Path        job.PathChoice

	// IgnoreExisting receives, and leaves File as it is if it exists, or what is in the directory File. It excludes
	// Overwrite, and is for the native protocol.
	IgnoreExisting bool

	Measure       int64         // RunLinked: bytes of memory to copy instead of File, which are stored nowhere; 0: File
	Wait          time.Duration // for the peer to appear and be free
	MaxDuration   time.Duration // from the agreement on; enforced by the caller
	ReferenceOnly bool          // speak the reference protocol with any peer

	Stdin, Stdout func() (disk.File, error) // open what a File of "-" stands for; nil: this process's

	paths job.Paths // that follow from Path and Device
}

// Run carries out one transfer. It returns nil when the target has its final name and is durable, as far as the
// protocol lets this side know. After an error the final name holds what it held before, and nothing else is left; but
// a DPU that receives has committed before a host of the reference protocol may report a failure, and so has a side
// whose directory could not be flushed. ctx ends the transfer with its cause, unless the target has been committed by
// then. A call into the device or the file system that does not return does not keep Run from returning: the error is
// then a job.ErrHung besides. Errors are *job.Error, or errors of negotiate, comch and doca.
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
