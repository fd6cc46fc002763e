package network

import (
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// Settings are the settings of the connections of one side.
type Settings struct {
	// Key is the key of a Listener, for data connections. A client uses the key of its control connection.
	Key *identity.Key

	// Paths are the data paths that this side permits: tls, tcp, am and rma. The zero value is tls, or the one that a
	// copy asks for.
	Paths job.Paths

	// OnlyLoopback is for a client that does not check the key of the daemon: Dial connects to a loopback address only,
	// even if a name has others.
	OnlyLoopback bool

	// RefusedAtOnce lets Dial fail with ErrNotListening where it would otherwise wait for a daemon to listen.
	RefusedAtOnce bool

	// TrafficClass is the ToS byte of IPv4 and the traffic class of IPv6: six bits DSCP, two bits ECN, 0 to 255. 0
	// leaves the default of the system.
	TrafficClass int

	// Bandwidth paces each data connection at so many bytes per second (SO_MAX_PACING_RATE); 0 is no limit.
	Bandwidth int64

	// RenewAfter is after how many bytes of content a receiver on the path tls closes a data connection between two
	// transfers, and the client opens another one, with new keys; 0 is 64 GiB.
	RenewAfter int64

	// UCX chooses the devices and limits of the paths am and rma. Its TrafficClass, if 0, is the one above.
	UCX ucx.Settings

	// ReachTime is how long the first read of each lane of a window may take on the path rma, before its memory is
	// taken to be out of reach; 0 is ucxpath.DefaultReachTime. It has to be less than the idle timeout, which otherwise
	// ends the transfer before.
	ReachTime time.Duration

	// HardwareOnly is as in ucxpath.Config: it reports whether software RDMA devices cannot be used. nil: they can.
	HardwareOnly func() bool

	// Refused is called by a Listener for a connection that it has closed before it was a control connection or of use
	// to one, from several goroutines. It may be nil.
	Refused func(peer net.Addr, reason error)

	// Log has a line at level TRACE for each message of a data connection before its content, except for the records of
	// TLS handshakes.
	Log zerolog.Logger

	buffers int           // bytes of the buffers of each socket; 0 is what the system chooses
	hello   time.Duration // of each connection, instead of helloTime; 0 is that
}

// renewAfter is well below the 2^24.5 records of 16 KiB, 388 GB, up to which RFC 8446 (section 5.5) recommends to use
// a key of AES-GCM, so that this is far away even at the end of a large file. Package tls does not update keys.
const renewAfter = 64 << 30

// The limits of connections whose peers have not authenticated yet.
const (
	// helloTime is how long a peer may take for each step before it is authenticated: its first TLS message, and the
	// handshake of a data connection. A control connection has the limit of package secure.
	helloTime = 10 * time.Second

	maxUnauthenticated           = 256 // connections of a Listener
	maxUnauthenticatedPerAddress = 64  // of one IPv4 address or one IPv6 network of 64 bits
	maxDataHandshakes            = 8   // of these, data connections whose handshakes are under way
)
