package native

import (
	"math"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// endpointsVersion is the first byte of the descriptor of a window on PathTLS, PathTCP, PathMessages and PathRMA.
const endpointsVersion = 1

// The limits of the descriptor of a window of a network connection. In a worker's address UCX 1.13 has 29 bytes for a
// network device with an IPv4 address and 41 for one with an IPv6 address, and it can have 127 devices and transports.
// The addresses of two lanes fit in a message.
const (
	MaxWorkerAddress = 6 << 10 // bytes of the address of a UCX worker
	MaxRemoteKey     = 2 << 10 // bytes of a packed UCX remote key
	TokenSize        = 8       // bytes of the token of PathMessages
)

// AppendLanes appends the descriptor of a window on PathTLS or PathTCP: the number of connections, one for each of the
// receiver's lanes, and a number that no other window of the control connection has. Slot s is sent over connection s
// modulo lanes.
func AppendLanes(dst []byte, lanes int, window uint64) []byte {
	c := wire.Appending(dst, wire.TypeWindow)
	lanesField(&c, lanes, math.MaxUint32)
	wire.Integer(&c, &window)
	return c.Bytes()
}

// Lanes returns the number of connections in the descriptor of a window on PathTLS or PathTCP, from 1 to one for each
// slot, at most MaxLanes; and the number of the window. It fails with ErrMalformed.
func Lanes(descriptor []byte, depth uint32) (lanes int, window uint64, err error) {
	c := wire.Reading(descriptor, wire.TypeWindow)
	lanes = lanesField(&c, 0, depth)
	wire.Integer(&c, &window)
	return lanes, window, c.End()
}

// lanesField passes the version of a descriptor and a number of lanes: own of one to send. It returns the number.
func lanesField(c *wire.Codec, own int, depth uint32) int {
	version := byte(endpointsVersion)
	wire.Integer(c, &version)
	lanes := wire.Length[uint8](c, own)
	switch {
	case version != endpointsVersion:
		c.Fail("a descriptor of version %d", version)
	case lanes == 0 || lanes > wire.MaxLanes || uint32(lanes) > depth:
		c.Fail("%d lanes for %d slots", lanes, depth)
	}
	return lanes
}

// Workers are the UCX workers of the owner of a window on PathMessages or PathRMA, as a peer reaches them. The content
// of an address or a key belongs to UCX.
type Workers struct {
	Addresses [][]byte // on PathMessages of the receiver's lanes: slot s is sent to number s modulo their number
	Key       []byte   // on PathRMA of the memory of the window; on PathMessages a random token that messages must have
}

// AppendWorkers appends the descriptor of a window on PathMessages or PathRMA without checking it.
func AppendWorkers(dst []byte, w Workers) []byte {
	c := wire.Appending(dst, wire.TypeWindow)
	w.fields(&c, math.MaxUint32)
	return c.Bytes()
}

// DecodeWorkers decodes the descriptor of a window on PathMessages, which has at least one address, at most one for
// each slot, and a token, or on PathRMA, which has one address and a key. It fails with ErrMalformed. The result
// refers to the descriptor.
func DecodeWorkers(descriptor []byte, path wire.Path, depth uint32) (w Workers, err error) {
	c := wire.Reading(descriptor, wire.TypeWindow)
	w.fields(&c, depth)
	c.Verify(func() error { return w.check(path) })
	return w, c.End()
}

func (w *Workers) fields(c *wire.Codec, depth uint32) {
	lanes := lanesField(c, len(w.Addresses), depth)
	key := wire.Length[uint16](c, len(w.Key))
	if w.Addresses == nil {
		w.Addresses = make([][]byte, lanes)
	}
	for i := range w.Addresses {
		address := &w.Addresses[i]
		size := wire.Length[uint16](c, len(*address))
		c.Octets(address, size)
		if size == 0 || size > MaxWorkerAddress {
			c.Fail("an address of %d bytes, limit %d", size, MaxWorkerAddress)
		}
	}
	c.Octets(&w.Key, key)
}

// check checks what depends on the path.
func (w Workers) check(path wire.Path) error {
	switch {
	case path == wire.PathMessages && len(w.Key) != TokenSize:
		return wire.Malformed(wire.TypeWindow, "a token of %d bytes; %d are required", len(w.Key), TokenSize)
	case path == wire.PathRMA && len(w.Addresses) != 1:
		return wire.Malformed(wire.TypeWindow, "%d workers for one memory", len(w.Addresses))
	case path == wire.PathRMA && (len(w.Key) == 0 || len(w.Key) > MaxRemoteKey):
		return wire.Malformed(wire.TypeWindow, "a key of %d bytes; 1 to %d are required", len(w.Key), MaxRemoteKey)
	}
	return nil
}
