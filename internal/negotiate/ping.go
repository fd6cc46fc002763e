package negotiate

import "encoding/binary"

// PingServerName is the Comch server name for round trips, apart from that of copies.
const PingServerName = "dma copy ping"

// PingVersion is the version of the ping protocol that this package speaks.
const PingVersion = 1

// The limits of the ping protocol.
const (
	MaxPings    = 1_000_000 // round trips of one side
	MaxPingSize = 4 << 20   // bytes of a payload, also if the device takes more
	MaxPingText = 1024      // bytes
)

// PingHeader is how many bytes a PING or a PONG has besides its payload, and at least as many as a TEXT has.
const PingHeader = 16

const (
	greetingSize = 20
	consumerSize = 8
	textSize     = 8 // without the text
	doneSize     = 8

	greetingWantsFast = 1 // the only flag
)

// Greeting is the content of a GREETING: the round trips that a side makes.
type Greeting struct {
	Version   uint8
	WantsFast bool   // over producers and consumers, or not at all
	Count     uint32 // of its own round trips, 1 to MaxPings
	Size      uint32 // bytes of the payload of its PINGs, at most MaxPingSize
	Fast      uint32 // bytes of the largest payload for producers and consumers, at least MaxPingText; 0: uses none
}

// AppendGreeting appends a GREETING without checking it.
func AppendGreeting(dst []byte, g Greeting) []byte {
	dst = append(appendType(dst, TypeGreeting), g.Version, greetingWantsFast*wireBool(g.WantsFast), 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, g.Count)
	dst = binary.BigEndian.AppendUint32(dst, g.Size)
	return binary.BigEndian.AppendUint32(dst, g.Fast)
}

// DecodeGreeting decodes a GREETING and checks all its values. It fails with ErrMalformed, or with ErrPingVersion for
// one of another version, which may have another form.
func DecodeGreeting(msg []byte) (Greeting, error) {
	if err := checkType(msg, TypeGreeting, typeSize+1); err != nil {
		return Greeting{}, err
	}
	if version := msg[4]; version != PingVersion {
		return Greeting{}, pingVersionError(version)
	}
	if err := checkFixed(msg, TypeGreeting, greetingSize); err != nil {
		return Greeting{}, err
	}
	g := Greeting{
		Version: msg[4], WantsFast: msg[5] == greetingWantsFast, Count: binary.BigEndian.Uint32(msg[8:]),
		Size: binary.BigEndian.Uint32(msg[12:]), Fast: binary.BigEndian.Uint32(msg[16:]),
	}
	if err := firstError(checkGreetingFlags(msg[5]), checkPadding(TypeGreeting, msg[6:8]), g.check()); err != nil {
		return Greeting{}, err
	}
	return g, nil
}

func checkGreetingFlags(flags byte) error {
	if unknown := flags &^ greetingWantsFast; unknown != 0 {
		return malformed(TypeGreeting, "unknown flags %#x", unknown)
	}
	return nil
}

func (g Greeting) check() error {
	switch {
	case g.Count < 1 || g.Count > MaxPings:
		return malformed(TypeGreeting, "%d round trips; 1 to %d are possible", g.Count, MaxPings)
	case g.Size > MaxPingSize:
		return malformed(TypeGreeting, "payloads of %d bytes, limit %d", g.Size, MaxPingSize)
	case g.Fast > MaxPingSize, g.Fast > 0 && g.Fast < MaxPingText: // a TEXT has to fit
		return malformed(TypeGreeting, "payloads of %d bytes on the fast path; 0 or %d to %d are possible", g.Fast,
			MaxPingText, MaxPingSize)
	}
	return nil
}

// AppendConsumer appends a CONSUMER: the id of the consumer to which the peer sends.
func AppendConsumer(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(appendType(dst, TypeConsumer), id)
}

// DecodeConsumer decodes a CONSUMER. It fails with ErrMalformed.
func DecodeConsumer(msg []byte) (id uint32, err error) {
	if err := checkFixed(msg, TypeConsumer, consumerSize); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(msg[4:]), nil
}

// AppendText appends a TEXT. It truncates text to MaxPingText bytes and replaces invalid UTF-8.
func AppendText(dst []byte, text string) []byte {
	text = truncateText(text, MaxPingText)
	dst = binary.BigEndian.AppendUint32(appendType(dst, TypeText), uint32(len(text)))
	return append(dst, text...)
}

// DecodeText decodes a TEXT, which may have any bytes. It fails with ErrMalformed.
func DecodeText(msg []byte) (string, error) {
	if err := checkType(msg, TypeText, textSize); err != nil {
		return "", err
	}
	if err := checkTail(msg, TypeText, textSize, uint64(binary.BigEndian.Uint32(msg[4:]))); err != nil {
		return "", err
	}
	if len(msg) > textSize+MaxPingText {
		return "", malformed(TypeText, "a text of %d bytes, limit %d", len(msg)-textSize, MaxPingText)
	}
	return string(msg[textSize:]), nil
}

// Ping is the content of a PING, and of the PONG that answers it.
type Ping struct {
	Number  uint32 // from 0, each one more than that before
	Payload []byte // at most MaxPingSize
}

// AppendPing appends a PING.
func AppendPing(dst []byte, p Ping) []byte { return appendPing(dst, TypePing, p) }

// AppendPong appends a PONG.
func AppendPong(dst []byte, p Ping) []byte { return appendPing(dst, TypePong, p) }

// DecodePing decodes a PING. Its payload is part of msg. It fails with ErrMalformed.
func DecodePing(msg []byte) (Ping, error) { return decodePing(msg, TypePing) }

// DecodePong decodes a PONG. Its payload is part of msg. It fails with ErrMalformed.
func DecodePong(msg []byte) (Ping, error) { return decodePing(msg, TypePong) }

func appendPing(dst []byte, t Type, p Ping) []byte {
	dst = binary.BigEndian.AppendUint32(appendType(dst, t), p.Number)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.Payload)))
	return append(appendPadding(dst, 4), p.Payload...)
}

func decodePing(msg []byte, t Type) (Ping, error) {
	if err := checkType(msg, t, PingHeader); err != nil {
		return Ping{}, err
	}
	err := firstError(
		checkTail(msg, t, PingHeader, uint64(binary.BigEndian.Uint32(msg[8:]))),
		checkPadding(t, msg[12:PingHeader]),
	)
	if err != nil {
		return Ping{}, err
	}
	if len(msg) > PingHeader+MaxPingSize {
		return Ping{}, malformed(t, "a payload of %d bytes, limit %d", len(msg)-PingHeader, MaxPingSize)
	}
	return Ping{Number: binary.BigEndian.Uint32(msg[4:]), Payload: msg[PingHeader:]}, nil
}

// AppendDone appends a DONE: all round trips of its sender are complete.
func AppendDone(dst []byte) []byte {
	return appendPadding(appendType(dst, TypeDone), doneSize-typeSize)
}

// DecodeDone decodes a DONE. It fails with ErrMalformed.
func DecodeDone(msg []byte) error {
	if err := checkFixed(msg, TypeDone, doneSize); err != nil {
		return err
	}
	return checkPadding(TypeDone, msg[typeSize:])
}
