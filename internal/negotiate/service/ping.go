package service

import (
	"encoding/binary"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The limits of PINGs. The limit of their number is for the user alone.
const (
	MaxPings    = 1_000_000
	MaxPingSize = 4 << 20 // bytes of a payload, also if the device takes more
	MaxPingText = 1024    // bytes
)

// PingHeader is how many bytes a PING or a PONG of the service has besides its payload.
const PingHeader = 16

// PingServerName is the Comch server name for round trips between two commands, apart from the name for copies.
const PingServerName = "dma copy ping"

// PingKind is what a PING of the service carries.
type PingKind uint8

// The kinds of PINGs.
const (
	PingBytes    PingKind = 0 // a payload, which the PONG brings back
	PingText     PingKind = 1 // text for the peer's user, at most MaxPingText bytes, any bytes when received
	PingConsumer PingKind = 2 // a Consumer, which the PONG answers with another
	pingKinds             = PingConsumer + 1
)

// String returns the name of the kind, such as "text".
func (k PingKind) String() string { return [pingKinds]string{"bytes", "text", "consumer"}[k] }

const consumerSize = 8

// Ping is the content of a PING of the service, and of the PONG that answers it.
type Ping struct {
	Number  uint32 // from 0, each one more than that before
	Kind    PingKind
	Payload []byte // at most MaxPingSize bytes
}

// AppendPing appends a PING of the service without checking it.
func AppendPing(dst []byte, p Ping) []byte {
	return appendPing(dst, wire.TypePing, p)
}

// AppendPong appends a PONG of the service without checking it.
func AppendPong(dst []byte, p Ping) []byte {
	return appendPing(dst, wire.TypePong, p)
}

// DecodePing decodes a PING of the service. Its payload is part of msg. It fails with ErrMalformed.
func DecodePing(msg []byte) (Ping, error) {
	return decodePing(msg, wire.TypePing)
}

func appendPing(dst []byte, t wire.Type, p Ping) []byte {
	c := wire.Sending(dst, t)
	p.fields(&c)
	return c.Bytes()
}

func decodePing(msg []byte, t wire.Type) (p Ping, err error) {
	c := wire.Receiving(msg, t)
	p.fields(&c)
	return p, c.End()
}

func (p *Ping) fields(c *wire.Codec) {
	wire.Integer(c, &p.Number)
	payload := wire.Length[uint32](c, len(p.Payload))
	kind := uint32(p.Kind)
	wire.Integer(c, &kind)
	c.Octets(&p.Payload, payload)
	if kind >= uint32(pingKinds) {
		c.Fail("kind %d", kind)
		return
	}
	p.Kind = PingKind(kind)
	c.Verify(func() error { return p.check(c.Type()) })
}

func (p Ping) check(t wire.Type) error {
	limit := MaxPingSize
	switch p.Kind {
	case PingText:
		limit = MaxPingText
	case PingConsumer:
		return p.checkConsumer(t)
	}
	if len(p.Payload) > limit {
		return wire.Malformed(t, "a payload of %d bytes, limit %d", len(p.Payload), limit)
	}
	return nil
}

func (p Ping) checkConsumer(t wire.Type) error {
	if len(p.Payload) != consumerSize {
		return wire.Malformed(t, "a consumer in %d bytes instead of %d", len(p.Payload), consumerSize)
	}
	if size := p.Consumer().Size; size > MaxPingSize {
		return wire.Malformed(t, "payloads of %d bytes, limit %d", size, MaxPingSize)
	}
	return nil
}

// Consumer is the payload of a PingConsumer: where the peer sends the PONGs, or the PINGs, that follow.
type Consumer struct {
	ID   uint32 // as the device knows it
	Size uint32 // bytes of their payloads, at most MaxPingSize; the same in the PONG
}

// Append appends the payload.
func (c Consumer) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, c.ID), c.Size)
}

// Consumer returns the payload of a PingConsumer that was decoded.
func (p Ping) Consumer() Consumer {
	return Consumer{ID: binary.BigEndian.Uint32(p.Payload), Size: binary.BigEndian.Uint32(p.Payload[4:])}
}
