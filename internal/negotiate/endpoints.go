package negotiate

import "encoding/binary"

// endpointsVersion is the first byte of the descriptor of a window on PathTLS, PathTCP, PathMessages and PathRMA.
const endpointsVersion = 1

// The limits of the descriptor of a window of a network connection. In a worker's address UCX 1.13 has 29 bytes for a
// network device with an IPv4 address and 41 for one with an IPv6 address, and it can have 127 devices and transports.
// The addresses of two lanes fit in a message.
const (
	MaxLanes         = 64      // connections or workers of a window
	MaxWorkerAddress = 6 << 10 // bytes of the address of a UCX worker
	MaxRemoteKey     = 2 << 10 // bytes of a packed UCX remote key
	TokenSize        = 8       // bytes of the token of PathMessages
)

// lanesSize is the size of the descriptor of a window on PathTLS or PathTCP.
const lanesSize = 10

// AppendLanes appends the descriptor of a window on PathTLS or PathTCP: the number of connections, one for each of the
// receiver's lanes, and a number that no other window of the control connection has. Slot s is sent over connection s
// modulo lanes.
func AppendLanes(dst []byte, lanes int, window uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, endpointsVersion, byte(lanes)), window)
}

// Lanes returns the number of connections in the descriptor of a window on PathTLS or PathTCP, from 1 to one for each
// slot, at most MaxLanes; and the number of the window. It fails with ErrMalformed.
func Lanes(descriptor []byte, depth uint32) (lanes int, window uint64, err error) {
	if len(descriptor) != lanesSize || descriptor[0] != endpointsVersion {
		return 0, 0, malformed(TypeWindow, "a descriptor of %d bytes is none of data connections", len(descriptor))
	}
	lanes, err = countLanes(descriptor[1], depth)
	return lanes, binary.BigEndian.Uint64(descriptor[2:]), err
}

// countLanes checks the number of lanes that a descriptor names.
func countLanes(lanes byte, depth uint32) (int, error) {
	if lanes == 0 || lanes > MaxLanes || uint32(lanes) > depth {
		return 0, malformed(TypeWindow, "%d lanes for %d slots", lanes, depth)
	}
	return int(lanes), nil
}

// Workers are the UCX workers of the owner of a window on PathMessages or PathRMA, as a peer reaches them. What is in
// an address or a key is UCX's.
type Workers struct {
	Addresses [][]byte // on PathMessages of the receiver's lanes: slot s is sent to number s modulo their number
	Key       []byte   // on PathRMA of the memory of the window; on PathMessages a random token that messages must have
}

// workersSize is the size of the descriptor without its addresses and key.
const workersSize = 4

// AppendWorkers appends the descriptor of a window on PathMessages or PathRMA without checking it.
func AppendWorkers(dst []byte, w Workers) []byte {
	dst = append(dst, endpointsVersion, byte(len(w.Addresses)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(w.Key)))
	for _, address := range w.Addresses {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(address)))
		dst = append(dst, address...)
	}
	return append(dst, w.Key...)
}

// DecodeWorkers decodes the descriptor of a window on PathMessages, which has at least one address, at most one for
// each slot, and a token, or on PathRMA, which has one address and a key. It fails with ErrMalformed. What it returns
// refers to the descriptor.
func DecodeWorkers(descriptor []byte, path Path, depth uint32) (Workers, error) {
	if len(descriptor) < workersSize || descriptor[0] != endpointsVersion {
		return Workers{}, malformed(TypeWindow, "a descriptor of %d bytes is none of UCX workers", len(descriptor))
	}
	count, err := countLanes(descriptor[1], depth)
	if err != nil {
		return Workers{}, err
	}
	key := int(binary.BigEndian.Uint16(descriptor[2:]))
	w, rest := Workers{}, descriptor[workersSize:]
	for range count {
		var address []byte
		if address, rest, err = cutAddress(rest); err != nil {
			return Workers{}, err
		}
		w.Addresses = append(w.Addresses, address)
	}
	if len(rest) != key {
		return Workers{}, malformed(TypeWindow, "%d bytes instead of a key of %d", len(rest), key)
	}
	w.Key = rest
	return w, w.check(path)
}

// cutAddress returns the first address, and what follows it.
func cutAddress(from []byte) (address, rest []byte, err error) {
	if len(from) < 2 {
		return nil, nil, malformed(TypeWindow, "an address is missing")
	}
	length, from := int(binary.BigEndian.Uint16(from)), from[2:]
	if length == 0 || length > MaxWorkerAddress || length > len(from) {
		return nil, nil, malformed(TypeWindow, "an address of %d bytes, of which %d follow", length, len(from))
	}
	return from[:length], from[length:], nil
}

// check checks what depends on the path.
func (w Workers) check(path Path) error {
	switch {
	case path == PathMessages && len(w.Key) != TokenSize:
		return malformed(TypeWindow, "a token of %d bytes; %d are required", len(w.Key), TokenSize)
	case path == PathRMA && len(w.Addresses) != 1:
		return malformed(TypeWindow, "%d workers for one memory", len(w.Addresses))
	case path == PathRMA && (len(w.Key) == 0 || len(w.Key) > MaxRemoteKey):
		return malformed(TypeWindow, "a key of %d bytes; 1 to %d are required", len(w.Key), MaxRemoteKey)
	}
	return nil
}
