package negotiate

import (
	"encoding/binary"
)

// ServerName is the Comch server name on which the DPU listens and to which the host connects.
const ServerName = "dma copy server"

// Sizes of the messages, in bytes.
const (
	DirectionSize    = 16 // exactly
	ExportHeaderSize = 24 // a descriptor of at least one byte follows
	StatusSize       = 8  // exactly
)

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

// Encode returns DirectionSize bytes.
func (d Direction) Encode() []byte {
	msg := newMessage(TypeDirection, DirectionSize)
	msg[4] = wireBool(d.FileInHost)
	copy(msg[5:], d.Offer[:])
	binary.BigEndian.PutUint64(msg[8:], d.Size)
	return msg
}

// Export gives the DPU access to the host's memory.
type Export struct {
	Address    uint64 // of the file's first byte in the host's address space
	Descriptor []byte // opaque, from doca_mmap_export_pci; never empty on the wire
}

// Type returns TypeExport.
func (Export) Type() Type { return TypeExport }

// Encode returns ExportHeaderSize bytes and a copy of the descriptor.
func (e Export) Encode() []byte {
	msg := newMessage(TypeExport, ExportHeaderSize+len(e.Descriptor))
	binary.BigEndian.PutUint64(msg[8:], e.Address)
	binary.BigEndian.PutUint64(msg[16:], uint64(len(e.Descriptor)))
	copy(msg[ExportHeaderSize:], e.Descriptor)
	return msg
}

// Status reports the success of a copy (from the DPU) or a failure (from either side).
type Status struct {
	Success bool
}

// Type returns TypeStatus.
func (Status) Type() Type { return TypeStatus }

// Encode returns StatusSize bytes.
func (s Status) Encode() []byte {
	msg := newMessage(TypeStatus, StatusSize)
	msg[4] = wireBool(s.Success)
	return msg
}

// Decode decodes one message of the reference protocol. It accepts any padding, and otherwise only what Encode can
// produce. The error is an *Error that wraps ErrMalformed. The message shares no memory with msg and is not larger
// than msg.
func Decode(msg []byte) (Message, error) {
	if len(msg) < typeSize {
		return nil, malformed(0, "%d bytes, too short for a type", len(msg))
	}
	switch t := Type(binary.LittleEndian.Uint32(msg)); t {
	case TypeDirection:
		return decodeDirection(msg)
	case TypeExport:
		return decodeExport(msg)
	case TypeStatus:
		return decodeStatus(msg)
	default:
		return nil, malformed(t, "unknown type")
	}
}

func decodeDirection(msg []byte) (Message, error) {
	if len(msg) != DirectionSize {
		return nil, malformed(TypeDirection, "%d bytes instead of %d", len(msg), DirectionSize)
	}
	if msg[4] > 1 {
		return nil, malformed(TypeDirection, "file_in_host is %d instead of 0 or 1", msg[4])
	}
	return Direction{
		FileInHost: msg[4] == 1,
		Size:       binary.BigEndian.Uint64(msg[8:]),
		Offer:      [3]byte(msg[5:8]),
	}, nil
}

func decodeExport(msg []byte) (Message, error) {
	if len(msg) <= ExportHeaderSize {
		return nil, malformed(TypeExport, "%d bytes, too short for a descriptor", len(msg))
	}
	descriptor := msg[ExportHeaderSize:]
	if declared := binary.BigEndian.Uint64(msg[16:]); declared != uint64(len(descriptor)) {
		return nil, malformed(TypeExport, "declares a descriptor of %d bytes, carries %d", declared, len(descriptor))
	}
	return Export{
		Address:    binary.BigEndian.Uint64(msg[8:]),
		Descriptor: append([]byte(nil), descriptor...),
	}, nil
}

func decodeStatus(msg []byte) (Message, error) {
	if len(msg) != StatusSize {
		return nil, malformed(TypeStatus, "%d bytes instead of %d", len(msg), StatusSize)
	}
	if msg[4] > 1 {
		return nil, malformed(TypeStatus, "is_success is %d instead of 0 or 1", msg[4])
	}
	return Status{Success: msg[4] == 1}, nil
}

func newMessage(t Type, size int) []byte {
	msg := make([]byte, size)
	binary.LittleEndian.PutUint32(msg, uint32(t))
	return msg
}

func wireBool(b bool) byte {
	if b {
		return 1
	}
	return 0
}
