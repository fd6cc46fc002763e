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

// The types of the native protocol's messages about the session.
const (
	TypeHello Type = iota + 0x10
	TypeWindow
	TypeHeartbeat
	TypeAbort
	TypeCancelled
)

// The types of the native protocol's messages about a transfer.
const (
	TypeTransfer Type = iota + 0x20
	TypeEntries
	TypeAnswers
	TypeMetadata
	TypeChunks
	TypePack
	TypeAcks
	TypeEnd
	TypeSum
	TypeFailure
	TypeResults
	TypeFinish
	TypeFinished
)

// The types of the service protocol's messages. Everything below TypeServiceGreeting is a message of the native session
// of a copy.
const (
	TypeServiceGreeting Type = iota + 0x40
	TypeRefused
	TypeItems
	TypeCopy
	TypeAccepted
	TypeClose
	TypeList
	TypeListed
	TypeListEnd
	TypeRemove
	TypeRemoved
	TypeServicePing
	TypeServicePong
	TypeWorking
	TypeMakeDir Type = 0x51
	TypeMade    Type = 0x52
	TypeMeasure Type = 0x53
)

var typeNames = map[Type]string{
	TypeDirection: "DIRECTION",
	TypeExport:    "EXPORT",
	TypeStatus:    "STATUS",
	TypeHello:     "HELLO",
	TypeWindow:    "WINDOW",
	TypeHeartbeat: "HEARTBEAT",
	TypeAbort:     "ABORT",
	TypeCancelled: "CANCELLED",
	TypeTransfer:  "TRANSFER",
	TypeEntries:   "ENTRIES",
	TypeAnswers:   "ANSWERS",
	TypeMetadata:  "METADATA",
	TypeChunks:    "CHUNKS",
	TypePack:      "PACK",
	TypeAcks:      "ACKS",
	TypeEnd:       "END",
	TypeSum:       "SUM",
	TypeFailure:   "FAILURE",
	TypeResults:   "RESULTS",
	TypeFinish:    "FINISH",
	TypeFinished:  "FINISHED",

	TypeServiceGreeting: "GREETING",
	TypeRefused:         "REFUSED",
	TypeItems:           "ITEMS",
	TypeCopy:            "COPY",
	TypeAccepted:        "ACCEPTED",
	TypeClose:           "CLOSE",
	TypeList:            "LIST",
	TypeListed:          "LISTED",
	TypeListEnd:         "LIST END",
	TypeRemove:          "REMOVE",
	TypeRemoved:         "REMOVED",
	TypeServicePing:     "PING",
	TypeServicePong:     "PONG",
	TypeWorking:         "WORKING",
	TypeMakeDir:         "MKDIR",
	TypeMade:            "MADE",
	TypeMeasure:         "MEASURE",
}

// String returns the message's name in docs/PROTOCOL.md.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// TypeOf returns the type of a message, or 0 if msg is too short. It may be one that no protocol knows.
func TypeOf(msg []byte) Type {
	if len(msg) < typeSize {
		return 0
	}
	return Type(binary.LittleEndian.Uint32(msg))
}
