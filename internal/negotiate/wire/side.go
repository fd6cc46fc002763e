package wire

// Side is one end of the connection.
type Side int

// The sides of a channel between a host and its DPU, and those of a network connection. The host is the Comch client
// and owns the window of PathDMA; the DPU is the server and has the DMA engine. The client is the command that has
// connected to a daemon on another machine, the server that daemon. They speak the native protocol only, as the host
// and the DPU do.
const (
	Host   Side = 0
	DPU    Side = 1
	Client Side = 2
	Server Side = 3
)

var sideNames = []string{Host: "host", DPU: "DPU", Client: "client", Server: "server"}

// String returns the side's name in messages to the user.
func (s Side) String() string { return NameOf(sideNames, s, "side") }

// others is the only table of the pairs.
var others = [...]Side{Host: DPU, DPU: Host, Client: Server, Server: Client}

// Other returns the peer's side.
func (s Side) Other() Side { return others[s] }

// Initiates reports whether the side sends the first message of a session: the host and the client do. The other one
// chooses what only one side can choose.
func (s Side) Initiates() bool { return s == Host || s == Client }

// Protocol is the protocol that both sides use.
type Protocol int

// Reference is the protocol of NVIDIA's doca_dma_copy, Native the one between two dma-copy.
const (
	Reference Protocol = 1
	Native    Protocol = 2
)

var protocolNames = []string{Reference: "reference", Native: "native"}

// String returns the protocol's name in messages to the user.
func (p Protocol) String() string { return NameOf(protocolNames, p, "protocol") }
