package reference

import (
	"bytes"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// ServerName is the Comch server name on which the DPU listens and to which the host connects.
const ServerName = "dma copy server"

// ExportHeaderSize is the size of an Export in bytes, without its descriptor of at least one byte.
const ExportHeaderSize = 24

// Message is a message of the reference protocol: a Direction, an Export or a Status.
type Message interface {
	// Type returns the message's type.
	Type() wire.Type
	// Encode returns the message in a new buffer. Padding is zero, except for the Offer of a Direction.
	Encode() []byte
}

// Direction says which side has the file. The host sends one first, and the DPU answers with one.
type Direction struct {
	FileInHost bool
	Size       uint64 // bytes; valid only from the side that has the file

	// Offer is the padding. The reference protocol does not use it; the native protocol has its versions there.
	Offer [3]byte
}

// Type returns TypeDirection.
func (Direction) Type() wire.Type { return wire.TypeDirection }

// Encode returns 16 bytes.
func (d Direction) Encode() []byte {
	return wire.Encode(nil, wire.TypeDirection, &d, (*Direction).fields)
}

func (d *Direction) fields(c wire.Codec) wire.Codec {
	c.Bit(&d.FileInHost, "file_in_host")
	c.Array(d.Offer[:])
	wire.Integer(&c, &d.Size)
	return c
}

// Export gives the DPU access to the host's memory.
type Export struct {
	Address    uint64 // of the file's first byte in the host's address space
	Descriptor []byte // opaque, from doca_mmap_export_pci; never empty on the wire
}

// Type returns TypeExport.
func (Export) Type() wire.Type { return wire.TypeExport }

// Encode returns ExportHeaderSize bytes and a copy of the descriptor.
func (e Export) Encode() []byte { return wire.Encode(nil, wire.TypeExport, &e, (*Export).fields) }

func (e *Export) fields(c wire.Codec) wire.Codec {
	var padding [4]byte // any
	c.Array(padding[:])
	wire.Integer(&c, &e.Address)
	descriptor := wire.Length[uint64](&c, len(e.Descriptor))
	c.Octets(&e.Descriptor, descriptor)
	if descriptor == 0 {
		c.Fail("the descriptor is empty")
	}
	return c
}

// Status reports the success of a copy (from the DPU) or a failure (from either side).
type Status struct {
	Success bool
}

// Type returns TypeStatus.
func (Status) Type() wire.Type { return wire.TypeStatus }

// Encode returns 8 bytes.
func (s Status) Encode() []byte { return wire.Encode(nil, wire.TypeStatus, &s, (*Status).fields) }

func (s *Status) fields(c wire.Codec) wire.Codec {
	var padding [3]byte // any
	c.Bit(&s.Success, "is_success")
	c.Array(padding[:])
	return c
}

// Decode decodes one message of the reference protocol. It accepts any padding, and otherwise only what Encode can
// produce. The error is an *Error that wraps ErrMalformed. The message shares no memory with msg and is not larger
// than msg.
func Decode(msg []byte) (Message, error) {
	switch t := wire.TypeOf(msg); t {
	case wire.TypeDirection:
		return asMessage(wire.Decode(msg, t, (*Direction).fields))
	case wire.TypeExport:
		export, err := wire.Decode(msg, t, (*Export).fields)
		export.Descriptor = bytes.Clone(export.Descriptor)
		return asMessage(export, err)
	case wire.TypeStatus:
		return asMessage(wire.Decode(msg, t, (*Status).fields))
	default:
		if len(msg) < wire.TypeSize {
			return nil, wire.Malformed(0, "%d bytes, too short for a type", len(msg))
		}
		return nil, wire.Malformed(t, "unknown type")
	}
}

func asMessage[M Message](m M, err error) (Message, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}
