package reference

import (
	"math"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Local is this side's knowledge about the file before it talks to the peer.
type Local struct {
	HasFile bool
	Size    uint64 // bytes, 0 for an empty file; ignored unless HasFile

	// Marked makes this side say in the padding of its DIRECTION that it is a dma-copy, even if it speaks the
	// reference protocol only. It then refuses to copy an empty file with an unmarked peer, because doca_dma_copy
	// cannot.
	Marked bool

	// Native is nil if this side speaks the reference protocol only.
	Native Native
}

// Native is the native protocol as a Session knows it.
type Native interface {
	// Versions returns the versions to offer.
	Versions() wire.Versions
	// Needed reports whether this side has what the reference protocol cannot copy, or cannot copy it by DMA.
	Needed() bool
	// Begin creates the session of this version that continues after s.
	Begin(s *Session, side wire.Side, version uint8, limits wire.Limits) error
}

// Agreement is the common result of both sides in the reference protocol.
type Agreement struct {
	Protocol wire.Protocol
	Sender   wire.Side // the side that has the file
	Size     uint64    // bytes
}

// Step is the result of a received message.
type Step struct {
	Reply     []byte // to be sent to the peer, even together with an error; may be nil
	Event     Event
	Agreement Agreement // with Agreed
	Export    Export    // with Exported

	Version uint8 // with ToNative
	// With ToNative, on the DPU: size of the host's file in bytes, not checked; 0 if the host has none.
	Size uint64
}

// Session is one side of one transfer over one connection until the peer turns out to speak the native protocol. It
// is not safe for concurrent use.
//
// Call Start, pass every received message to Receive, and do what the Step requires. Export, Finish and Disconnected
// report what happened on this side. A call that the state does not allow returns ErrOutOfOrder and changes nothing;
// a failed session returns the error that it failed with.
type Session struct {
	machine       machine
	side          wire.Side
	local         Local
	agreement     Agreement
	hostDirection Direction // on the DPU: the host's DIRECTION
	resumed       Step      // after Resume
}

// New returns a session in state Idle.
func New(side wire.Side, local Local, limits wire.Limits) *Session {
	// A larger size would be negative as a file offset.
	limits.MaxFileSize = min(limits.MaxFileSize, math.MaxInt64)
	return &Session{machine: machine{Limits: limits, State: Idle, Failed: Failed}, side: side, local: local}
}

// State returns the session's state.
func (s *Session) State() State { return s.machine.State }

// Reached returns State, or of a failed session the state in which it failed.
func (s *Session) Reached() State { return s.machine.Reached() }

// Start begins the session when the connection is established. It returns the host's DIRECTION to send. On the DPU,
// which waits for it, and after the first call it returns nil.
func (s *Session) Start() []byte {
	if s.machine.State != Idle {
		return nil
	}
	s.machine.State = AwaitDirection
	if s.side == wire.DPU {
		return nil
	}
	opening := s.direction()
	switch {
	case s.offers():
		opening.Offer = padding(offerMark, s.local.Native.Versions())
	case s.local.Marked:
		opening.Offer = noVersions
	}
	return opening.Encode()
}

// transition is a message that a state expects. All others, except for STATUS(0), are out of order.
type transition struct {
	side    wire.Side
	state   State
	message wire.Type
}

var transitions = map[transition]func(*Session, Message) (Step, error){
	{wire.Host, AwaitDirection, wire.TypeDirection}: (*Session).acceptAnswer,
	{wire.Host, AwaitStatus, wire.TypeStatus}:       (*Session).acceptSuccess,
	{wire.DPU, AwaitDirection, wire.TypeDirection}:  (*Session).answerDirection,
	{wire.DPU, AwaitExport, wire.TypeExport}:        (*Session).acceptExport,
	{wire.DPU, AwaitDisconnect, wire.TypeStatus}:    (*Session).ignoreSuccess,
}

// Receive processes one message of the peer and retains no reference to it. After an error the session has failed;
// Step.Reply is the STATUS(0) for the peer, or nil if the peer knows or does not listen any more.
func (s *Session) Receive(msg []byte) (Step, error) {
	if s.machine.State == Failed {
		return Step{}, s.machine.Failure
	}
	message, err := s.decode(msg)
	if err != nil {
		return s.failWithNotice(err)
	}
	if message == (Status{Success: false}) {
		return Step{}, s.machine.Fail(s.peerFailure())
	}
	handle, expected := transitions[transition{s.side, s.machine.State, message.Type()}]
	if !expected {
		return s.failWithNotice(wire.OutOfOrder(message.Type()))
	}
	return handle(s, message)
}

func (s *Session) decode(msg []byte) (Message, *wire.Error) {
	if len(msg) > s.machine.Limits.MaxMessage {
		return nil, wire.Malformed(0, "%d bytes, limit %d", len(msg), s.machine.Limits.MaxMessage)
	}
	message, err := Decode(msg)
	if err != nil {
		return nil, wire.AsError(err)
	}
	return message, nil
}

// answerDirection decides for both sides: the DPU knows the host's DIRECTION when it sends its own.
func (s *Session) answerDirection(message Message) (Step, error) {
	s.hostDirection = message.(Direction)
	if offered, ok := parseVersions(offerMark, s.hostDirection.Offer); ok && s.offers() {
		return s.answerOffer(offered)
	}
	if err := s.checkPlacement(s.hostDirection); err != nil {
		return s.failWithNotice(err)
	}
	answer := s.direction()
	if s.local.Marked && marked(s.hostDirection.Offer) {
		answer.Offer = noVersions
	}
	return s.agree(s.hostDirection, answer.Encode())
}

// checkPlacement decides which side has the file, by the rules of the reference program.
func (s *Session) checkPlacement(host Direction) *wire.Error {
	switch {
	case s.needsNative():
		return &wire.Error{Message: wire.TypeDirection, Err: wire.ErrNeedsNative}
	case host.FileInHost && s.local.HasFile:
		return &wire.Error{Message: wire.TypeDirection, Err: wire.ErrBothHaveFile}
	case !host.FileInHost && !s.local.HasFile:
		return &wire.Error{Message: wire.TypeDirection, Err: wire.ErrNeitherHasFile}
	}
	return nil
}

// acceptAnswer checks that the DPU's answer follows from the host's own DIRECTION.
func (s *Session) acceptAnswer(message Message) (Step, error) {
	answer := message.(Direction)
	if s.offers() {
		if step, err, answered := s.parseAnswer(answer); answered {
			return step, err
		}
	}
	if s.needsNative() {
		return s.failWithNotice(&wire.Error{Message: wire.TypeDirection, Err: wire.ErrNeedsNative})
	}
	if answer.FileInHost != s.local.HasFile {
		return s.failWithNotice(&wire.Error{Message: wire.TypeDirection, Err: wire.ErrDisagreement})
	}
	return s.agree(answer, nil)
}

// agree takes the size from the side that has the file; the other side's value has no meaning.
func (s *Session) agree(peer Direction, reply []byte) (Step, error) {
	sender, size := s.side, s.local.Size
	if !s.local.HasFile {
		sender, size = s.side.Other(), peer.Size
		if size > s.machine.Limits.MaxFileSize {
			return s.failWithNotice(wire.TooLarge(wire.TypeDirection, "the peer's file has", size,
				s.machine.Limits.MaxFileSize))
		}
	}
	if size == 0 && s.local.Marked && !marked(peer.Offer) {
		return s.failWithNotice(&wire.Error{Message: wire.TypeDirection, Err: wire.ErrEmptyFile})
	}
	s.agreement = Agreement{Protocol: wire.Reference, Sender: sender, Size: size}
	s.machine.State = AwaitExport
	return Step{Reply: reply, Event: Agreed, Agreement: s.agreement}, nil
}

func (s *Session) acceptExport(message Message) (Step, error) {
	export := message.(Export)
	if err := s.checkRange(export.Address); err != nil {
		return s.failWithNotice(err)
	}
	s.machine.State = Copying
	return Step{Event: Exported, Export: export}, nil
}

func (s *Session) acceptSuccess(Message) (Step, error) {
	s.machine.State = Done
	return Step{Event: Finished}, nil
}

func (s *Session) ignoreSuccess(Message) (Step, error) { return Step{}, nil }

// Export is called on the host after Agreed and returns the EXPORT to send: the file's bytes are at address in the
// memory that the descriptor exports. It fails with ErrTooLarge if the message exceeds Limits.MaxMessage, and with
// ErrMalformed for an empty descriptor or a range that wraps around. After either, the caller tells the peer with
// Finish(false).
func (s *Session) Export(address uint64, descriptor []byte) ([]byte, error) {
	if s.side != wire.Host || s.machine.State != AwaitExport {
		return nil, s.machine.Refuse(wire.OutOfOrder(wire.TypeExport))
	}
	if len(descriptor) == 0 {
		return nil, s.machine.Refuse(wire.Malformed(wire.TypeExport, "the descriptor is empty"))
	}
	if err := s.checkRange(address); err != nil {
		return nil, s.machine.Refuse(err)
	}
	if err := s.machine.CheckFits(wire.TypeExport, ExportHeaderSize+len(descriptor)); err != nil {
		return nil, s.machine.Refuse(err)
	}
	s.machine.State = AwaitStatus
	return Export{Address: address, Descriptor: descriptor}.Encode(), nil
}

// Finish reports the end of this side's own work and returns the message that tells the peer, or nil if there is
// none.
//
// Finish(true) is called on the DPU after the copy and, without a message, on the host in Done. Finish(false) gives
// up in any state and never fails: it returns STATUS(0) wherever the peer still listens.
func (s *Session) Finish(success bool) ([]byte, error) {
	switch {
	case !success && s.machine.State == Failed:
		return nil, nil
	case !success:
		step, _ := s.failWithNotice(&wire.Error{Err: wire.ErrAborted})
		return step.Reply, nil
	case s.side == wire.DPU && s.machine.State == Copying:
		s.machine.State = AwaitDisconnect
		return Status{Success: true}.Encode(), nil
	case s.side == wire.Host && s.machine.State == Done:
		return nil, nil
	}
	return nil, s.machine.Refuse(wire.OutOfOrder(wire.TypeStatus))
}

// Disconnected reports the end of the connection. It returns nil if the transfer was complete, otherwise ErrPeerLost
// or the error with which the session had failed. On the DPU the disconnect is the reference host's only sign of
// success.
func (s *Session) Disconnected() error {
	switch {
	case s.machine.State == Failed:
		return s.machine.Failure
	case s.machine.State == Done:
		return nil
	case s.side == wire.DPU && s.machine.State == AwaitDisconnect:
		s.machine.State = Done
		return nil
	}
	return s.machine.Fail(&wire.Error{Err: wire.ErrPeerLost})
}

func (s *Session) direction() Direction {
	if !s.local.HasFile {
		return Direction{FileInHost: s.side == wire.DPU}
	}
	return Direction{FileInHost: s.side == wire.Host, Size: s.local.Size}
}

// peerListens reports whether the peer still receives messages: the host until the DPU's STATUS(1), the DPU until the
// disconnect. After ToNative the peer expects messages of the native session.
func (s *Session) peerListens() bool {
	if s.machine.State == Failed || s.machine.State == HandedOver {
		return false
	}
	return s.side == wire.Host || s.machine.State != AwaitDisconnect && s.machine.State != Done
}

func (s *Session) peerFailure() *wire.Error {
	if s.side == wire.Host && s.machine.State == AwaitDirection {
		if s.needsNative() {
			return &wire.Error{Message: wire.TypeStatus, Err: wire.ErrNeedsNative}
		}
		return &wire.Error{Message: wire.TypeStatus, Err: wire.ErrPeerRefused}
	}
	return &wire.Error{Message: wire.TypeStatus, Err: wire.ErrPeerFailed}
}

// checkRange refuses an address from which the agreed size exceeds the address space.
func (s *Session) checkRange(address uint64) *wire.Error {
	if size := s.agreement.Size; size > 0 && address > math.MaxUint64-(size-1) {
		return wire.Malformed(wire.TypeExport, "%d bytes at address %#x wrap around", size, address)
	}
	return nil
}

func (s *Session) failWithNotice(failure *wire.Error) (Step, error) {
	var step Step
	if s.peerListens() {
		step.Reply = Status{Success: false}.Encode()
	}
	return step, s.machine.Fail(failure)
}
