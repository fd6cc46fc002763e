package ucx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// An address of a worker, version 1: the byte of version and flags, 8 bytes that name the worker, and devices:
//
//	byte of the memory domain │ byte of flags and length │ [paths] │ [system device] │ device address │ transports
//
// and of each transport of the device
//
//	checksum of its name (2) │ overhead, bandwidth, latency (float, 4 each) │ attributes (4) │ flags, length │ address
//
// All releases of UCX 1 have it. Newer ones append what older ones ignore.
const (
	addressVersion = 0x0f // of the first byte
	addressWorker  = 0x20 // the name of the worker is there, as in every address of a worker
	addressName    = 0x10 // debugging information: a name, after a byte of its length

	domainWithoutTransports = 0x80

	deviceLast   = 0x80
	devicePaths  = 0x40
	deviceSystem = 0x20
	deviceLength = 0x1f

	transportAttributes = 4 // bytes
	transportLast       = 0x80
	transportEndpoint   = 0x40 // what only the address of an endpoint has
	transportLength     = 0x3f

	maxTransports = 128
)

// posixChecksum is the checksum of the name of the transport posix.
var posixChecksum = [2]byte{0xa7, 0xd3}

// The largest values of a transport's address that are plausible: of times in seconds, and of bytes per second. UCX
// calculates with them, and ends the process if the result is not a number.
const (
	maxTransportTime      = 10
	maxTransportBandwidth = 1e15
)

// transportAddress is the address of one transport of a device.
type transportAddress struct {
	transport [2]byte // checksum of its name
	device    []byte
	iface     []byte
	overhead  float32 // seconds
	latency   float32 // seconds
	bandwidth float32 // bytes per second
}

// addressReader takes an address apart. After the first field that is beyond the end, all are zero.
type addressReader struct {
	rest  []byte
	short bool
}

func (r *addressReader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.short, r.rest = true, nil
		return make([]byte, n)
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *addressReader) byte() byte { return r.bytes(1)[0] }

func (r *addressReader) float() float32 {
	return math.Float32frombits(binary.NativeEndian.Uint32(r.bytes(4)))
}

// parseAddress returns the transports of an address of a worker.
func parseAddress(address []byte) ([]transportAddress, error) {
	r := &addressReader{rest: address}
	switch first := r.byte(); {
	case first&addressVersion != 0:
		return nil, fmt.Errorf("version %d: %w", first&addressVersion+1, ErrInvalid)
	case first&^addressName != addressWorker:
		return nil, fmt.Errorf("flags %#x: %w", first, ErrInvalid)
	case first&addressName != 0:
		r.bytes(8)
		r.bytes(int(r.byte()))
	default:
		r.bytes(8)
	}
	return r.devices()
}

func (r *addressReader) devices() (all []transportAddress, err error) {
	for last := false; !last; {
		domain, flags := r.byte(), r.byte()
		if flags&devicePaths != 0 && r.byte() == 0 {
			return nil, fmt.Errorf("device without paths: %w", ErrInvalid)
		}
		if flags&deviceSystem != 0 {
			r.byte()
		}
		device := r.bytes(int(flags & deviceLength))
		if domain&domainWithoutTransports == 0 {
			if all, err = r.transports(all, device); err != nil {
				return nil, err
			}
		}
		if r.short {
			return nil, fmt.Errorf("it ends too early: %w", ErrInvalid)
		}
		last = flags&deviceLast != 0
	}
	return all, nil
}

// transports adds the transports of a device.
func (r *addressReader) transports(all []transportAddress, device []byte) ([]transportAddress, error) {
	for last := false; !last && !r.short; {
		t := transportAddress{device: device}
		copy(t.transport[:], r.bytes(len(t.transport)))
		t.overhead, t.bandwidth, t.latency = r.float(), r.float(), r.float()
		r.bytes(transportAttributes)
		flags := r.byte()
		t.iface = r.bytes(int(flags & transportLength))
		switch {
		case r.short:
			continue
		case flags&transportEndpoint != 0:
			return nil, fmt.Errorf("it has an endpoint: %w", ErrInvalid)
		case !isTime(t.overhead) || !isTime(t.latency) || !(t.bandwidth > 0 && t.bandwidth <= maxTransportBandwidth):
			return nil, fmt.Errorf("overhead %g s, latency %g s, %g bytes per second: %w", t.overhead, t.latency,
				t.bandwidth, ErrInvalid)
		case len(all) == maxTransports:
			return nil, fmt.Errorf("more than %d transports: %w", maxTransports, ErrInvalid)
		}
		all, last = append(all, t), flags&transportLast != 0
	}
	return all, nil
}

// isTime reports whether a value is a plausible time in seconds; NaN is not.
func isTime(seconds float32) bool { return seconds >= 0 && seconds <= maxTransportTime }

// checkAddress checks the address of a peer's worker before UCX gets it, which knows neither its length nor whether its
// values are numbers. own is the address of a worker of this side: UCX reads the parts of the other one without looking
// whether they are there.
func checkAddress(address, own []byte) error {
	if len(address) == 0 || len(address) > MaxAddress {
		return fmt.Errorf("worker address of %d bytes: %w", len(address), ErrInvalid)
	}
	theirs, err := parseAddress(address)
	if err != nil {
		return fmt.Errorf("worker address: %w", err)
	}
	ours, err := parseAddress(own)
	if err != nil {
		return fmt.Errorf("worker address of this side: %w", err)
	}
	for _, t := range theirs {
		for _, o := range ours {
			if t.transport == o.transport && !t.fits(o) {
				return fmt.Errorf("worker address with an incomplete address of a transport: %w", ErrInvalid)
			}
		}
	}
	return nil
}

// fits reports whether this side can use the address of one of its transports. The path of posix has the length of
// this side's: UCX 1.13 reads so many bytes, and ends the process where it needs a path and has none.
func (t transportAddress) fits(own transportAddress) bool {
	if t.transport == posixChecksum && len(t.iface) != len(own.iface) {
		return false
	}
	return (len(t.device) > 0 || len(own.device) == 0) && (len(t.iface) > 0 || len(own.iface) == 0)
}

// A packed key of memory: a set of memory domains (8 bytes), the type of memory, and of each domain the length of its
// part in one byte, and the part.
const (
	keyDomains = 8
	keyHost    = 0 // type of memory
)

// checkKey checks a packed key of a peer before UCX gets it, which does not know its length and takes the type of
// memory for an index.
func checkKey(packed []byte) error {
	if len(packed) <= keyDomains || len(packed) > MaxKey {
		return fmt.Errorf("remote key of %d bytes: %w", len(packed), ErrInvalid)
	}
	if kind := packed[keyDomains]; kind != keyHost {
		return fmt.Errorf("remote key of memory of type %d: %w", kind, ErrInvalid)
	}
	r := &addressReader{rest: packed[keyDomains+1:]}
	for domains := binary.NativeEndian.Uint64(packed); domains != 0 && !r.short; domains &= domains - 1 {
		r.bytes(int(r.byte()))
	}
	if r.short {
		return fmt.Errorf("remote key that ends too early: %w", ErrInvalid)
	}
	return nil
}

// padded returns a copy after which UCX finds zeros, where a transport expects more than it has got.
func padded(received []byte) []byte { return append(bytes.Clone(received), make([]byte, padding)...) }
