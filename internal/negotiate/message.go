package negotiate

import "bytes"

// ServerName is the Comch server name on which the DPU listens and to which the host connects.
const ServerName = "dma copy server"

// ExportHeaderSize is the size of an Export in bytes, without its descriptor of at least one byte.
const ExportHeaderSize = 24

// Message is a message of the reference protocol: a Direction, an Export or a Status.
type Message interface {
	// Type returns the message's type.
	Type() Type
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
func (Direction) Type() Type { return TypeDirection }

// Encode returns 16 bytes.
func (d Direction) Encode() []byte { return encode(nil, TypeDirection, &d, (*Direction).fields) }

func (d *Direction) fields(c codec) codec {
	c.bit(&d.FileInHost, "file_in_host")
	c.array(d.Offer[:])
	integer(&c, &d.Size)
	return c
}

// Export gives the DPU access to the host's memory.
type Export struct {
	Address    uint64 // of the file's first byte in the host's address space
	Descriptor []byte // opaque, from doca_mmap_export_pci; never empty on the wire
}

// Type returns TypeExport.
func (Export) Type() Type { return TypeExport }

// Encode returns ExportHeaderSize bytes and a copy of the descriptor.
func (e Export) Encode() []byte { return encode(nil, TypeExport, &e, (*Export).fields) }

func (e *Export) fields(c codec) codec {
	var padding [4]byte // any
	c.array(padding[:])
	integer(&c, &e.Address)
	descriptor := length[uint64](&c, len(e.Descriptor))
	c.octets(&e.Descriptor, descriptor)
	if descriptor == 0 {
		c.fail("the descriptor is empty")
	}
	return c
}

// Status reports the success of a copy (from the DPU) or a failure (from either side).
type Status struct {
	Success bool
}

// Type returns TypeStatus.
func (Status) Type() Type { return TypeStatus }

// Encode returns 8 bytes.
func (s Status) Encode() []byte { return encode(nil, TypeStatus, &s, (*Status).fields) }

func (s *Status) fields(c codec) codec {
	var padding [3]byte // any
	c.bit(&s.Success, "is_success")
	c.array(padding[:])
	return c
}

// Decode decodes one message of the reference protocol. It accepts any padding, and otherwise only what Encode can
// produce. The error is an *Error that wraps ErrMalformed. The message shares no memory with msg and is not larger
// than msg.
func Decode(msg []byte) (Message, error) {
	switch t := TypeOf(msg); t {
	case TypeDirection:
		return asMessage(decode(msg, t, (*Direction).fields))
	case TypeExport:
		export, err := decode(msg, t, (*Export).fields)
		export.Descriptor = bytes.Clone(export.Descriptor)
		return asMessage(export, err)
	case TypeStatus:
		return asMessage(decode(msg, t, (*Status).fields))
	default:
		if len(msg) < typeSize {
			return nil, malformed(0, "%d bytes, too short for a type", len(msg))
		}
		return nil, malformed(t, "unknown type")
	}
}

func asMessage[M Message](m M, err error) (Message, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}
