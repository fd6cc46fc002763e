package dmaxfer

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// maxFileSize bounds what a peer may announce: 64 TiB, which fits any file system and a process's address space.
const maxFileSize = 1 << 46

// Options is one copy.
type Options struct {
	Side        negotiate.Side
	Device      *doca.Device  // a host function on the host, a function of the DPU there
	Representor string        // on the DPU: PCI address of the host function to serve
	File        string        // what is sent if it is there, else what is created; "-": standard input or output
	FS          disk.FS       // where File is; nil: the operating system's
	Overwrite   bool          // receive, and replace File if it is there
	Chunk       int64         // bytes per copy; 0: chosen
	Depth       int           // copies in flight; 0: chosen
	Wait        time.Duration // for the peer to appear and be free
	IdleTimeout time.Duration // without progress
	Log         zerolog.Logger

	// What only the native protocol can do. Of two sides' wishes for Digest and Durability the stronger counts.
	Digest        digest.Algorithm
	Durability    negotiate.Durability
	Expect        *digest.Sum // the only content that may be copied; nil: any
	Readback      bool        // a receiver reads the target back from the disk before it gets its name
	NoSparse      bool        // holes are copied as zeros
	Owner, Xattrs bool        // keep them, if the other side wants it too
	Backup        bool        // keep what is replaced as NAME~
	NoResume      bool        // neither use nor leave what a later copy could go on with
	AllowChanging bool        // a source may change while it is copied
	ReferenceOnly bool        // speak the reference's protocol, whoever is on the other side

	Bandwidth   int64         // bytes per second; 0: as fast as it goes
	MaxBytes    int64         // of the file; 0: no limit but maxFileSize
	MaxHoles    int64         // bytes of holes whose zeros have to be digested or read back; 0: no limit
	MaxDuration time.Duration // from the agreement on; 0: no limit

	Stdin, Stdout func() (disk.File, error) // open what a File of "-" stands for, or say in an *Error why not; nil: this process's own
	Software      string                    // what the peer is told of this program: printable ASCII, at most 64 bytes
	Progress      *Progress                 // updated as the copy goes on; nil: nobody looks
	Notify        func(Event)               // called by one goroutine at a time, and not for long; nil: nobody wants to know
	ExitCode      func(error) int           // what this program ends with after an error, which is what the peer is told; nil: 1
}

// Summary is what a successful copy did. Sum to Shares are of the native protocol only.
type Summary struct {
	Sent      bool   // by this side; otherwise received
	Path      string // as given, with the symlinks at its end resolved; "-" for a stream
	Size      int64  // bytes
	Elapsed   time.Duration
	Protocol  negotiate.Protocol
	Chunk     int64 // bytes per copy; 0 on the host in the reference protocol, where the peer decides
	Depth     int   // copies in flight; 0 on the host in the reference protocol
	Anonymous bool  // the host held the file in memory, because the driver would not pin a mapping of it

	Sum        digest.Sum           // of what was read on one side and written on the other; None: nothing was verified
	Durability negotiate.Durability // of the receiver's file
	Readback   bool                 // the receiver compared what it read back from the disk
	Resumed    int64                // bytes that an earlier copy had brought; this run copied the rest of Size
	Retries    int64                // pieces that had to be sent more than once
	Messages   int64                // to the peer, in the native protocol
	Changing   bool                 // the source was allowed to change meanwhile, and may not be any more what was copied
	Shares     pump.Shares          // what this side's lanes spent their time on

	// Unconfirmed says, of a receiver that has committed, how the sender left it without a confirmation; empty: it did
	// not.
	Unconfirmed string
}

// Run carries out one copy. It returns nil when the receiver's file has its name and is durable, as far as the protocol
// lets this side know. On an error the final name holds what it held before, and nothing else is left behind; but a DPU
// that receives has the whole file under its name before a host of the reference protocol may report a failure, and so
// has a side whose directory could not be flushed. ctx ends the copy with its cause, unless the file has its name by
// then. A call into the device or the file system that does not return does not keep Run from returning: the error is
// then an ErrHung besides. Errors are *Error, or those of negotiate, comch and doca.
func Run(ctx context.Context, o Options) (Summary, error) {
	place, err := prepare(ctx, &o)
	if err != nil {
		TellPeer(ctx, o, err)
		return Summary{}, err
	}
	defer place.close()
	o.Log.Info().Stringer("side", o.Side).Str("device", o.Device.Info().PCIAddress).Msg("waiting for the peer")
	if o.Side == negotiate.Host {
		return call(ctx, o, place)
	}
	return serve(ctx, o, place)
}

// prepare finds out whether this side can do its part, before it looks for the peer. A source without a size becomes a
// stream in o.
func prepare(ctx context.Context, o *Options) (*place, error) {
	if err := checkDevice(*o); err != nil {
		return nil, err
	}
	p, err := find(ctx, *o)
	if err != nil {
		return nil, err
	}
	streaming, err := p.asOptions(*o)
	if err != nil {
		p.close()
		return nil, err
	}
	*o = streaming
	return p, nil
}

func checkDevice(o Options) error {
	if err := checkCapable(o.Device.Info(), o.Side); err != nil {
		return err
	}
	return checkShape(o.Device, o.Side, o.Chunk, o.Depth)
}
