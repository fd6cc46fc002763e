package negotiate

import "encoding/binary"

// ServicePingHeader is how many bytes a PING or a PONG of the service has besides its payload.
const ServicePingHeader = 16

const servicePingText = 1 // the only flag

// ServicePing is the content of a PING of the service, and of the PONG that answers it.
type ServicePing struct {
	Number  uint32 // from 0, each one more than that before
	Text    bool   // the payload is text for the peer's user, at most MaxPingText bytes, any bytes when received
	Payload []byte // of a PONG that of its PING, unless it is text
}

// AppendServicePing appends a PING of the service without checking it.
func AppendServicePing(dst []byte, p ServicePing) []byte {
	return appendServicePing(dst, TypeServicePing, p)
}

// AppendServicePong appends a PONG of the service without checking it.
func AppendServicePong(dst []byte, p ServicePing) []byte {
	return appendServicePing(dst, TypeServicePong, p)
}

// DecodeServicePing decodes a PING of the service. Its payload is part of msg. It fails with ErrMalformed.
func DecodeServicePing(msg []byte) (ServicePing, error) {
	return decodeServicePing(msg, TypeServicePing)
}

// DecodeServicePong decodes a PONG of the service. Its payload is part of msg. It fails with ErrMalformed.
func DecodeServicePong(msg []byte) (ServicePing, error) {
	return decodeServicePing(msg, TypeServicePong)
}

func appendServicePing(dst []byte, t Type, p ServicePing) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, t), p.Number)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.Payload)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(servicePingText*wireBool(p.Text)))
	return append(dst, p.Payload...)
}

func decodeServicePing(msg []byte, t Type) (ServicePing, error) {
	if err := checkType(msg, t, ServicePingHeader); err != nil {
		return ServicePing{}, err
	}
	if err := checkTail(msg, t, ServicePingHeader, uint64(binary.BigEndian.Uint32(msg[8:]))); err != nil {
		return ServicePing{}, err
	}
	flags := binary.BigEndian.Uint32(msg[12:])
	if unknown := flags &^ servicePingText; unknown != 0 {
		return ServicePing{}, malformed(t, "unknown flags %#x", unknown)
	}
	p := ServicePing{
		Number: binary.BigEndian.Uint32(msg[4:]), Text: flags == servicePingText, Payload: msg[ServicePingHeader:],
	}
	if err := p.check(t); err != nil {
		return ServicePing{}, err
	}
	return p, nil
}

func (p ServicePing) check(t Type) error {
	if limit := p.limit(); len(p.Payload) > limit {
		return malformed(t, "a payload of %d bytes, limit %d", len(p.Payload), limit)
	}
	return nil
}

// limit returns the largest payload in bytes.
func (p ServicePing) limit() int {
	if p.Text {
		return MaxPingText
	}
	return MaxPingSize
}
