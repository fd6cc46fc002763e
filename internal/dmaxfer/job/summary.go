package job

import (
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Summary is the result of a successful transfer, or of a tree in which some entries failed. The fields from Sum to
// Shares are set in the native protocol only.
type Summary struct {
	Sent      bool   // by this side; otherwise received
	Path      string // as given, with the symlinks at its end resolved; "-" for a stream
	Target    string // of a copy within one process, whose source is Path; otherwise empty
	Size      int64  // bytes; of a tree, of all files that both sides have now
	Elapsed   time.Duration
	Protocol  wire.Protocol
	DataPath  wire.Path // of the content
	Transport string    // what carries the content on that path, as UCX names it; empty if the path says it all
	Chunk     int64     // bytes; 0 on the host in the reference protocol, where the peer decides
	Depth     int       // chunks in flight; 0 on the host in the reference protocol
	Anonymous bool      // the host held the file in anonymous memory: the driver would not pin a mapping of it

	Sum        digest.Sum      // of what was read on one side and written on the other; None: not verified
	Durability wire.Durability // of the target
	Readback   bool            // the receiver verified what it read back from the disk
	Resumed    int64           // bytes that an earlier transfer had left; this one copied the rest of Size
	Retries    int64           // chunks that were retransmitted
	Messages   int64           // sent to the peer
	Changing   bool            // the source was allowed to change during the transfer
	Shares     pump.Shares     // of the lanes' time, by stage

	Tree     *TreeSummary  // nil for a file or a stream
	DryRun   bool          // nothing was changed; the numbers say what would have been copied
	UpToDate bool          // both sides had the same file or tree, and nothing was transferred
	Existing bool          // the receiver has left the file that exists in its place
	Updated  bool          // only attributes of the only file were set, or would have been in a dry run
	Change   native.Change // of the only file: as in FileDone

	// Unconfirmed reports, on a receiver that has committed, how the sender failed to confirm; empty if it confirmed.
	Unconfirmed string
}
