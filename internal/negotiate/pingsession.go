package negotiate

import (
	"bytes"
	"errors"
	"fmt"
)

// The reasons for the end of a PingSession, besides those of the other sessions.
var (
	// ErrPingVersion is a peer that speaks another version of the ping protocol.
	ErrPingVersion = errors.New("no common version of the ping protocol")
	// ErrPingSize is a payload or a text that is larger than the path permits.
	ErrPingSize = errors.New("too large for a message")
	// ErrPayload is a PONG that does not have the payload of its PING.
	ErrPayload = errors.New("a payload came back changed")
	// ErrPingLost is the end of the connection before that of the round trips.
	ErrPingLost = errors.New("the connection was lost before the last round trip")
)

// PingLocal is what this side sends.
type PingLocal struct {
	Greeting Greeting
	Text     string // for the peer's user; may be empty
}

// PingStep is the result of a message of the peer.
type PingStep struct {
	Event    Event
	Reply    []byte // to be sent to the peer; may be nil
	OnPath   bool   // the Reply goes over the path of the session, otherwise over the control channel
	Fast     bool   // with Greeted: the path is that of producers and consumers; call Consumer
	Consumer uint32 // with PeerConsumer: the id
	Text     string // with PeerText: of the peer, any bytes
}

// PingSession is one side of the round trips over one connection. It is not safe for concurrent use.
//
//	Idle ─► AwaitGreeting ─┬────────────────────────────► Pinging ─► Done
//	                       └─► Ready ─► AwaitConsumer ─────┘
//
// Call Start, pass every message to Receive or ReceiveFast, send what Next returns until it returns nothing, and do
// what the PingStep requires. Each side sends a series of a TEXT, its PINGs, one at a time, and DONE. Over
// the control channel the host's series comes first; over producers and consumers both are at the same time. The
// session is Done with both DONEs. Every state can change to Failed, which is final.
type PingSession struct {
	side       Side
	local      PingLocal
	peer       Greeting
	maxMessage int // bytes of a message of the control channel
	state      State
	fast       bool
	own, their pingSeries
	payloads   []byte // that of PING number n begins at byte n modulo payloadShift
	failure    *Error // why the state is Failed
}

// pingSeries is how far one side's round trips have come.
//
//	seriesLater ─► seriesText ─TEXT─► seriesPing ─PING─► seriesInFlight ─PONG─► seriesPing ─► ... ─DONE─► seriesOver
//
// That of the peer, which waits for the PONG itself, is never seriesInFlight.
type pingSeries struct {
	stage pingStage
	trips uint32 // that are complete, or answered
}

type pingStage uint8

const (
	seriesLater    pingStage = iota // the other side's series comes first
	seriesText                      // TEXT is next
	seriesPing                      // PING or DONE is next
	seriesInFlight                  // the PONG is next
	seriesOver
)

// payloadShift makes payloads differ between one PING and the next ones, so that an old buffer is noticed.
const payloadShift = 251

// NewPing returns a session in state Idle. maxMessage is the limit of the control channel in bytes.
func NewPing(side Side, local PingLocal, maxMessage int) *PingSession {
	local.Greeting.Version = PingVersion
	return &PingSession{side: side, local: local, maxMessage: maxMessage, state: Idle}
}

// State returns the session's state.
func (s *PingSession) State() State { return s.state }

// Peer returns the peer's GREETING; zero before it has arrived.
func (s *PingSession) Peer() Greeting { return s.peer }

// Largest returns the bytes of the largest message of the path, of either side, once the path is known.
func (s *PingSession) Largest() int {
	return PingHeader + max(int(s.local.Greeting.Size), int(s.peer.Size), MaxPingText)
}

// Start begins the session when the connection is established. It returns the GREETING to send; after the first call
// nil.
func (s *PingSession) Start() []byte {
	if s.state != Idle {
		return nil
	}
	s.state = AwaitGreeting
	return AppendGreeting(nil, s.local.Greeting)
}

// Consumer returns the CONSUMER to send for this side's consumer, whose buffers are posted. It is called in Ready.
func (s *PingSession) Consumer(id uint32) ([]byte, error) {
	if s.state != Ready {
		return nil, s.refuse(&Error{Message: TypeConsumer, Err: ErrOutOfOrder})
	}
	s.state = AwaitConsumer
	return AppendConsumer(nil, id), nil
}

// Next appends to dst the next message that this side sends by itself, over the path of the session: a TEXT, or a PING,
// whose round trip begins now. It returns nil if there is none before another message of the peer.
func (s *PingSession) Next(dst []byte) []byte {
	if s.state != Pinging {
		return nil
	}
	switch s.own.stage {
	case seriesText:
		s.own.stage = seriesPing
		return AppendText(dst, s.local.Text)
	case seriesPing:
		s.own.stage = seriesInFlight
		return AppendPing(dst, Ping{Number: s.own.trips, Payload: s.payload(s.own.trips)})
	}
	return nil
}

// Receive processes one message of the control channel and retains no reference to it. The Reply, if any, is appended
// to dst. After an error the session has failed.
func (s *PingSession) Receive(msg, dst []byte) (PingStep, error) {
	return s.receive(msg, dst, false)
}

// ReceiveFast is Receive for a message that a consumer has received.
func (s *PingSession) ReceiveFast(msg, dst []byte) (PingStep, error) {
	return s.receive(msg, dst, true)
}

// pingExpected is a message that a state expects over the control channel, or over the path, where it is another one.
// All others are out of order, except for an ABORT, which ends the session in every state.
type pingExpected struct {
	state   State
	message Type
	onPath  bool
}

var pingTransitions = map[pingExpected]func(s *PingSession, msg, dst []byte) (PingStep, error){
	{AwaitGreeting, TypeGreeting, false}: (*PingSession).acceptGreeting,
	{AwaitConsumer, TypeConsumer, false}: (*PingSession).acceptConsumer,
	{Pinging, TypeText, true}:            (*PingSession).acceptText,
	{Pinging, TypePing, true}:            (*PingSession).acceptPing,
	{Pinging, TypePong, true}:            (*PingSession).acceptPong,
	{Pinging, TypeDone, false}:           (*PingSession).acceptDone,
}

func (s *PingSession) receive(msg, dst []byte, fast bool) (PingStep, error) {
	if s.state == Failed {
		return PingStep{}, s.failure
	}
	step, err := s.dispatch(msg, dst, fast)
	if err != nil {
		return PingStep{}, s.fail(asError(err))
	}
	return step, nil
}

func (s *PingSession) dispatch(msg, dst []byte, fast bool) (PingStep, error) {
	t := typeOf(msg)
	if t == TypeAbort && !fast {
		reason, err := DecodeAbort(msg)
		if err != nil {
			return PingStep{}, err
		}
		return PingStep{}, &Error{Message: t, Err: reason}
	}
	onPath := t == TypeText || t == TypePing || t == TypePong
	accept := pingTransitions[pingExpected{s.state, t, onPath}]
	if accept == nil || fast != (onPath && s.fast) {
		return PingStep{}, &Error{Message: t, Err: ErrOutOfOrder}
	}
	return accept(s, msg, dst)
}

func (s *PingSession) acceptGreeting(msg, _ []byte) (PingStep, error) {
	peer, err := DecodeGreeting(msg)
	if err != nil {
		return PingStep{}, err
	}
	host, dpu := s.local.Greeting, peer
	if s.side == DPU {
		host, dpu = dpu, host
	}
	fast, err := decidePing(host, dpu, s.maxMessage)
	if err != nil {
		return PingStep{}, err
	}
	if limit := s.maxMessage - textSize; !fast && len(s.local.Text) > limit {
		return PingStep{}, &Error{Message: TypeText, Err: ErrPingSize, Detail: fmt.Sprintf(
			"the text of the %s has %d bytes, limit %d over the control channel", s.side, len(s.local.Text), limit)}
	}
	s.peer, s.fast = peer, fast
	if fast {
		s.state = Ready
	} else {
		s.begin()
	}
	return PingStep{Event: Greeted, Fast: fast}, nil
}

// decidePing returns whether the path is that of producers and consumers. Both sides come to the same result.
func decidePing(host, dpu Greeting, maxMessage int) (fast bool, err error) {
	fast = host.WantsFast || dpu.WantsFast
	limit, path := max(0, maxMessage-PingHeader), "the control channel"
	if fast {
		limit, path = int(min(host.Fast, dpu.Fast)), "producers and consumers"
	}
	both := []Greeting{Host: host, DPU: dpu}
	for side, g := range both {
		if fast && g.Fast == 0 {
			return false, &Error{Message: TypeGreeting, Err: ErrNoPath,
				Detail: fmt.Sprintf("the %s cannot or will not use producers and consumers", Side(side))}
		}
	}
	for side, g := range both {
		if int64(g.Size) > int64(limit) {
			return false, &Error{Message: TypeGreeting, Err: ErrPingSize,
				Detail: fmt.Sprintf("the %s wants %d bytes, limit %d over %s", Side(side), g.Size, limit, path)}
		}
	}
	return fast, nil
}

func (s *PingSession) acceptConsumer(msg, _ []byte) (PingStep, error) {
	id, err := DecodeConsumer(msg)
	if err != nil {
		return PingStep{}, err
	}
	s.begin()
	return PingStep{Event: PeerConsumer, Consumer: id}, nil
}

func (s *PingSession) begin() {
	s.state = Pinging
	s.payloads = make([]byte, payloadShift+int(s.local.Greeting.Size))
	for i, x := 0, uint32(1); i < len(s.payloads); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		s.payloads[i] = byte(x >> 8)
	}
	if s.fast || s.side == Host {
		s.own.stage = seriesText
	}
	if s.fast || s.side == DPU {
		s.their.stage = seriesText
	}
}

// payload returns that of the PING with this number.
func (s *PingSession) payload(number uint32) []byte {
	from := number % payloadShift
	return s.payloads[from : from+s.local.Greeting.Size]
}

func (s *PingSession) acceptText(msg, _ []byte) (PingStep, error) {
	text, err := DecodeText(msg)
	if err != nil {
		return PingStep{}, err
	}
	if s.their.stage != seriesText {
		return PingStep{}, &Error{Message: TypeText, Err: ErrOutOfOrder}
	}
	s.their.stage = seriesPing
	return PingStep{Event: PeerText, Text: text}, nil
}

func (s *PingSession) acceptPing(msg, dst []byte) (PingStep, error) {
	ping, err := DecodePing(msg)
	if err != nil {
		return PingStep{}, err
	}
	if s.their.stage != seriesPing || s.their.trips == s.peer.Count || ping.Number != s.their.trips {
		return PingStep{}, &Error{Message: TypePing, Err: ErrOutOfOrder, Detail: fmt.Sprintf("number %d", ping.Number)}
	}
	if len(ping.Payload) != int(s.peer.Size) {
		return PingStep{}, malformed(TypePing, "a payload of %d bytes instead of %d", len(ping.Payload), s.peer.Size)
	}
	s.their.trips++
	return PingStep{Event: Pinged, Reply: AppendPong(dst, ping), OnPath: true}, nil
}

func (s *PingSession) acceptPong(msg, dst []byte) (PingStep, error) {
	pong, err := DecodePong(msg)
	if err != nil {
		return PingStep{}, err
	}
	if s.own.stage != seriesInFlight || pong.Number != s.own.trips {
		return PingStep{}, &Error{Message: TypePong, Err: ErrOutOfOrder, Detail: fmt.Sprintf("number %d", pong.Number)}
	}
	if !bytes.Equal(pong.Payload, s.payload(pong.Number)) {
		return PingStep{}, &Error{Message: TypePong, Err: ErrPayload, Detail: fmt.Sprintf(
			"round trip %d of %d with the %s", pong.Number+1, s.local.Greeting.Count, s.side.Other())}
	}
	s.own.trips++
	s.own.stage = seriesPing
	step := PingStep{Event: RoundTrip}
	if s.own.trips == s.local.Greeting.Count {
		step.Reply = AppendDone(dst)
		s.own.stage = seriesOver
		s.afterSeries(&s.their)
	}
	return step, nil
}

func (s *PingSession) acceptDone(msg, _ []byte) (PingStep, error) {
	if err := DecodeDone(msg); err != nil {
		return PingStep{}, err
	}
	if s.their.stage != seriesPing || s.their.trips != s.peer.Count {
		return PingStep{}, &Error{Message: TypeDone, Err: ErrOutOfOrder}
	}
	s.their.stage = seriesOver
	s.afterSeries(&s.own)
	return PingStep{Event: PeerDone}, nil
}

// afterSeries follows the end of a series: the other one begins unless it has, and the session ends if both are over.
func (s *PingSession) afterSeries(to *pingSeries) {
	if to.stage == seriesLater {
		to.stage = seriesText
	}
	if s.own.stage == seriesOver && s.their.stage == seriesOver {
		s.state = Done
	}
}

// Abort ends the session. It returns the ABORT to send, or nil if the peer does not listen any more.
func (s *PingSession) Abort(code AbortCode, text string) []byte {
	if s.state == Done || s.state == Failed && s.peerEnded() {
		return nil
	}
	if s.state != Failed {
		_ = s.fail(&Error{Err: ErrAborted})
	}
	return AppendAbort(nil, code, truncateText(text, s.maxMessage-abortSize))
}

// peerEnded reports whether the session failed because of the peer's ABORT, or the loss of the peer.
func (s *PingSession) peerEnded() bool {
	_, aborted := errors.AsType[*PeerAborted](s.failure)
	return aborted || errors.Is(s.failure, ErrPingLost)
}

// Disconnected reports the end of the connection. It returns nil if the session is Done, otherwise why it failed.
func (s *PingSession) Disconnected() error {
	switch s.state {
	case Failed:
		return s.failure
	case Done:
		return nil
	}
	return s.fail(&Error{Err: ErrPingLost})
}

func (s *PingSession) fail(failure *Error) error {
	failure.State = s.state
	s.failure = failure
	s.state = Failed
	return failure
}

// refuse returns the error for a call that is not possible. Nothing was sent, so the state stays.
func (s *PingSession) refuse(misuse *Error) error {
	if s.state == Failed {
		return s.failure
	}
	misuse.State = s.state
	return misuse
}

func pingVersionError(peer uint8) *Error {
	return &Error{Message: TypeGreeting, Err: ErrPingVersion,
		Detail: fmt.Sprintf("the peer speaks version %d, this side version %d", peer, PingVersion)}
}
