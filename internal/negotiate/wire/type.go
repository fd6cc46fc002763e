package wire

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
	TypeHello     Type = 0x10
	TypeWindow    Type = 0x11
	TypeHeartbeat Type = 0x12
	TypeAbort     Type = 0x13
	TypeCancelled Type = 0x14
)

// The types of the native protocol's messages about a transfer.
const (
	TypeTransfer Type = 0x20
	TypeEntries  Type = 0x21
	TypeAnswers  Type = 0x22
	TypeMetadata Type = 0x23
	TypeChunks   Type = 0x24
	TypePack     Type = 0x25
	TypeAcks     Type = 0x26
	TypeEnd      Type = 0x27
	TypeSum      Type = 0x28
	TypeFailure  Type = 0x29
	TypeResults  Type = 0x2a
	TypeFinish   Type = 0x2b
	TypeFinished Type = 0x2c
)

// The types of the service protocol's messages. Everything below TypeGreeting is a message of the native session
// of a copy.
const (
	TypeGreeting Type = 0x40
	TypeRefused  Type = 0x41
	TypeItems    Type = 0x42
	TypeCopy     Type = 0x43
	TypeAccepted Type = 0x44
	TypeClose    Type = 0x45
	TypeList     Type = 0x46
	TypeListed   Type = 0x47
	TypeListEnd  Type = 0x48
	TypeRemove   Type = 0x49
	TypeRemoved  Type = 0x4a
	TypePing     Type = 0x4b
	TypePong     Type = 0x4c
	TypeWorking  Type = 0x4d
	TypeMakeDir  Type = 0x51
	TypeMade     Type = 0x52
	TypeMeasure  Type = 0x53
)

var typeNames = map[Type]string{
	TypeDirection: "DIRECTION", TypeExport: "EXPORT", TypeStatus: "STATUS",
	TypeHello: "HELLO", TypeWindow: "WINDOW", TypeHeartbeat: "HEARTBEAT", TypeAbort: "ABORT",
	TypeCancelled: "CANCELLED",
	TypeTransfer:  "TRANSFER", TypeEntries: "ENTRIES", TypeAnswers: "ANSWERS", TypeMetadata: "METADATA",
	TypeChunks: "CHUNKS", TypePack: "PACK", TypeAcks: "ACKS", TypeEnd: "END", TypeSum: "SUM", TypeFailure: "FAILURE",
	TypeResults: "RESULTS", TypeFinish: "FINISH", TypeFinished: "FINISHED",
	TypeGreeting: "GREETING", TypeRefused: "REFUSED", TypeItems: "ITEMS", TypeCopy: "COPY", TypeAccepted: "ACCEPTED",
	TypeClose: "CLOSE", TypeList: "LIST", TypeListed: "LISTED", TypeListEnd: "LIST END", TypeRemove: "REMOVE",
	TypeRemoved: "REMOVED", TypePing: "PING", TypePong: "PONG", TypeWorking: "WORKING", TypeMakeDir: "MKDIR",
	TypeMade: "MADE", TypeMeasure: "MEASURE",
}

// String returns the message's name in docs/internals/protocol.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Known reports whether a protocol has such a message.
func (t Type) Known() bool { return typeNames[t] != "" }

// TypeOf returns the type of a message, or 0 if msg is too short. It may be one that no protocol knows.
func TypeOf(msg []byte) Type {
	if len(msg) < TypeSize {
		return 0
	}
	return Type(binary.LittleEndian.Uint32(msg))
}
