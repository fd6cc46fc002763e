package negotiate

import (
	"encoding/binary"
	"fmt"
)

// Type is the little-endian number in the first four bytes of every message.
type Type int32

// The types of the reference protocol's messages.
const (
	TypeDirection Type = 1
	TypeExport    Type = 2
	TypeStatus    Type = 3
)

// The types of the native protocol's messages.
const (
	TypeHello Type = iota + 0x10
	TypeAbort
	TypeReady
	TypeWindow
	TypeChunks
	TypeAcks
	TypeHeartbeat
	TypeEnd
	TypePrepared
	TypeCommit
	TypeDone
	TypeMetadata
)

var typeNames = map[Type]string{
	TypeDirection: "DIRECTION",
	TypeExport:    "EXPORT",
	TypeStatus:    "STATUS",
	TypeHello:     "HELLO",
	TypeAbort:     "ABORT",
	TypeReady:     "READY",
	TypeWindow:    "WINDOW",
	TypeChunks:    "CHUNKS",
	TypeAcks:      "ACKS",
	TypeHeartbeat: "HEARTBEAT",
	TypeEnd:       "END",
	TypePrepared:  "PREPARED",
	TypeCommit:    "COMMIT",
	TypeDone:      "DONE",
	TypeMetadata:  "METADATA",
}

// String returns the message's name in docs/PROTOCOL.md.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// typeOf returns the type of a message, or 0 if msg is too short.
func typeOf(msg []byte) Type {
	if len(msg) < typeSize {
		return 0
	}
	return Type(binary.LittleEndian.Uint32(msg))
}

const typeSize = 4
