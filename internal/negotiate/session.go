// Package negotiate is the wire protocol between a host and its DPU: which of them has the file, how large it is,
// where it lies in the host's memory, and how the copy ended. A Session speaks the protocol of NVIDIA's doca_dma_copy,
// to the byte and in both roles, and finds out whether the peer speaks the native protocol, too; a NativeSession then
// speaks that. It turns bytes into bytes: no I/O, no goroutine, no clock. docs/PROTOCOL.md specifies it.
package negotiate

import "math"

// Local is what this side knows of the file before it talks to the peer.
type Local struct {
	HasFile bool
	Size    uint64 // bytes, 0 for an empty file; ignored unless HasFile

	// Marked has this side say in the padding of its DIRECTION that it is a dma-copy, also where it speaks the
	// reference protocol only, and refuse to copy an empty file with a peer that does not: doca_dma_copy cannot.
	Marked bool

	// Native is what this side would say in the native protocol; nil if it speaks the reference protocol only.
	Native *Hello
	// Versions of the native protocol to speak; zero for those that are Supported.
	Versions Versions
}

// Agreement is what both sides settled on.
type Agreement struct {
	Protocol Protocol
	Sender   Side   // the side that has the file
	Size     uint64 // bytes
}

// Step is what a received message asks of the caller.
type Step struct {
	Reply     []byte // to be sent to the peer, even together with an error; nil if nothing is
	Event     Event
	Agreement Agreement // with Agreed
	Export    Export    // with Exported

	Version uint8          // with ToNative
	Native  *NativeSession // with ToNative; not started
	Size    uint64         // with ToNative, on the DPU: bytes of the host's file by its first word, which may be anything; 0 without one
}

// Session is one side of one copy over one connection, until the peer turns out to speak the native protocol. It is not
// safe for concurrent use.
//
// Start it, hand every received message to Receive, and do what the Step says. Export, Finish and Disconnected report
// what happened on this side. A call that the state does not allow returns ErrOutOfOrder and changes nothing; a failed
// session repeats the error that it failed with.
type Session struct {
	side          Side
	local         Local
	limits        Limits
	state         State
	agreement     Agreement
	hostDirection Direction // the host's, on the DPU
	failure       *Error    // why the state is Failed
}

// NewSession returns a session in state Idle.
func NewSession(side Side, local Local, limits Limits) *Session {
	// A larger size would turn negative as a file offset.
	limits.MaxFileSize = min(limits.MaxFileSize, math.MaxInt64)
	if local.Versions == (Versions{}) {
		local.Versions = Supported
	}
	return &Session{side: side, local: local, limits: limits, state: Idle}
}

// State is where the session stands.
func (s *Session) State() State { return s.state }

// Start opens the session as soon as the connection stands. The host gets the DIRECTION to send, the DPU, which waits
// for one, gets nil; so does every call but the first.
func (s *Session) Start() []byte {
	if s.state != Idle {
		return nil
	}
	s.state = AwaitDirection
	if s.side == DPU {
		return nil
	}
	opening := s.direction()
	switch {
	case s.offers():
		opening.Offer = s.local.Versions.padding(offerMark)
	case s.local.Marked:
		opening.Offer = noVersions
	}
	return opening.Encode()
}

// turn is a message that the protocol expects. Whatever is not in turns, and is no STATUS(0), is out of order.
type transition struct {
	side    Side
	state   State
	message Type
}

var transitions = map[transition]func(*Session, Message) (Step, error){
	{Host, AwaitDirection, TypeDirection}: (*Session).acceptAnswer,
	{Host, AwaitStatus, TypeStatus}:       (*Session).acceptSuccess,
	{DPU, AwaitDirection, TypeDirection}:  (*Session).answerDirection,
	{DPU, AwaitExport, TypeExport}:        (*Session).acceptExport,
	{DPU, AwaitDisconnect, TypeStatus}:    (*Session).ignoreSuccess,
}

// Receive takes one message of the peer and keeps no reference to it. With an error the session has failed, and
// Step.Reply is the STATUS(0) that tells the peer, or nil if the peer knows or listens no more.
func (s *Session) Receive(msg []byte) (Step, error) {
	if s.state == Failed {
		return Step{}, s.failure
	}
	message, err := s.decode(msg)
	if err != nil {
		return s.failWithNotice(err)
	}
	if message == (Status{Success: false}) {
		return Step{}, s.fail(s.peerFailure())
	}
	handle, expected := transitions[transition{s.side, s.state, message.Type()}]
	if !expected {
		return s.failWithNotice(&Error{Message: message.Type(), Err: ErrOutOfOrder})
	}
	return handle(s, message)
}

func (s *Session) decode(msg []byte) (Message, *Error) {
	if len(msg) > s.limits.MaxMessage {
		return nil, malformed(0, "%d bytes, limit %d", len(msg), s.limits.MaxMessage)
	}
	message, err := Decode(msg)
	if err != nil {
		return nil, asError(err)
	}
	return message, nil
}

// answerDirection decides for both sides. The protocol lets the DPU judge because it hears the host first.
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

// checkPlacement is the DPU's judgement of who has the file, by the reference's rules.
func (s *Session) checkPlacement(host Direction) *Error {
	switch {
	case s.streams():
		return &Error{Message: TypeDirection, Err: ErrNeedsNative}
	case host.FileInHost && s.local.HasFile:
		return &Error{Message: TypeDirection, Err: ErrBothHaveFile}
	case !host.FileInHost && !s.local.HasFile:
		return &Error{Message: TypeDirection, Err: ErrNeitherHasFile}
	}
	return nil
}

// acceptAnswer checks that the DPU came to the only conclusion that the host's own DIRECTION allows.
func (s *Session) acceptAnswer(message Message) (Step, error) {
	answer := message.(Direction)
	if s.offers() {
		if step, err, answered := s.parseAnswer(answer); answered {
			return step, err
		}
	}
	if s.streams() {
		return s.failWithNotice(&Error{Message: TypeDirection, Err: ErrNeedsNative})
	}
	if answer.FileInHost != s.local.HasFile {
		return s.failWithNotice(&Error{Message: TypeDirection, Err: ErrDisagreement})
	}
	return s.agree(answer, nil)
}

// agree takes the size from the side that has the file; what the other one put there means nothing.
func (s *Session) agree(peer Direction, reply []byte) (Step, error) {
	sender, size := s.side, s.local.Size
	if !s.local.HasFile {
		sender, size = s.side.Other(), peer.Size
		if size > s.limits.MaxFileSize {
			return s.failWithNotice(tooLarge(TypeDirection, "the peer's file has", size, s.limits.MaxFileSize))
		}
	}
	if size == 0 && s.local.Marked && !marked(peer.Offer) {
		return s.failWithNotice(&Error{Message: TypeDirection, Err: ErrEmptyFile})
	}
	s.agreement = Agreement{Protocol: Reference, Sender: sender, Size: size}
	s.state = AwaitExport
	return Step{Reply: reply, Event: Agreed, Agreement: s.agreement}, nil
}

func (s *Session) acceptExport(message Message) (Step, error) {
	export := message.(Export)
	if err := s.checkRange(export.Address); err != nil {
		return s.failWithNotice(err)
	}
	s.state = Copying
	return Step{Event: Exported, Export: export}, nil
}

func (s *Session) acceptSuccess(Message) (Step, error) {
	s.state = Done
	return Step{Event: Finished}, nil
}

func (s *Session) ignoreSuccess(Message) (Step, error) { return Step{}, nil }

// Export, on the host after Agreed, returns the EXPORT to send: the file's bytes are, or are to be put, at address in
// the memory that the descriptor opens. ErrTooLarge if the message is longer than Limits.MaxMessage, ErrMalformed for
// an empty descriptor or a range that wraps; after either, tell the peer with Finish(false).
func (s *Session) Export(address uint64, descriptor []byte) ([]byte, error) {
	if s.side != Host || s.state != AwaitExport {
		return nil, s.refuse(&Error{Message: TypeExport, Err: ErrOutOfOrder})
	}
	if len(descriptor) == 0 {
		return nil, s.refuse(malformed(TypeExport, "the descriptor is empty"))
	}
	if err := s.checkRange(address); err != nil {
		return nil, s.refuse(err)
	}
	if size := ExportHeaderSize + len(descriptor); size > s.limits.MaxMessage {
		return nil, s.refuse(tooLarge(TypeExport, "the message has", uint64(size), uint64(max(0, s.limits.MaxMessage))))
	}
	s.state = AwaitStatus
	return Export{Address: address, Descriptor: descriptor}.Encode(), nil
}

// Finish says how this side's own work ended and returns the message that tells the peer, or nil if there is none.
//
// Finish(true) is for the DPU after the copy and, without a message, for the host in Done. Finish(false) gives up in
// any state: STATUS(0) wherever the peer still listens, and never an error.
func (s *Session) Finish(success bool) ([]byte, error) {
	switch {
	case !success && s.state == Failed:
		return nil, nil
	case !success:
		step, _ := s.failWithNotice(&Error{Err: ErrAborted})
		return step.Reply, nil
	case s.side == DPU && s.state == Copying:
		s.state = AwaitDisconnect
		return Status{Success: true}.Encode(), nil
	case s.side == Host && s.state == Done:
		return nil, nil
	}
	return nil, s.refuse(&Error{Message: TypeStatus, Err: ErrOutOfOrder})
}

// Disconnected takes the end of the connection: nil if the copy was complete, otherwise ErrPeerLost or the error that
// the session had failed with before. The DPU gets no other word from the reference host that all is well.
func (s *Session) Disconnected() error {
	switch {
	case s.state == Failed:
		return s.failure
	case s.state == Done:
		return nil
	case s.side == DPU && s.state == AwaitDisconnect:
		s.state = Done
		return nil
	}
	return s.fail(&Error{Err: ErrPeerLost})
}

func (s *Session) direction() Direction {
	if !s.local.HasFile {
		return Direction{FileInHost: s.side == DPU}
	}
	return Direction{FileInHost: s.side == Host, Size: s.local.Size}
}

// peerListens is false once nobody waits for our messages: the host stops listening at the DPU's STATUS(1), the DPU
// only at the disconnect. A peer that went over to the native protocol listens to the NativeSession.
func (s *Session) peerListens() bool {
	if s.state == Failed || s.state == HandedOver {
		return false
	}
	return s.side == Host || s.state != AwaitDisconnect && s.state != Done
}

func (s *Session) peerFailure() *Error {
	if s.side == Host && s.state == AwaitDirection {
		if s.streams() {
			return &Error{Message: TypeStatus, Err: ErrNeedsNative}
		}
		return &Error{Message: TypeStatus, Err: ErrPeerRefused}
	}
	return &Error{Message: TypeStatus, Err: ErrPeerFailed}
}

// checkRange refuses an address from which the agreed size runs past the end of the address space.
func (s *Session) checkRange(address uint64) *Error {
	if size := s.agreement.Size; size > 0 && address > math.MaxUint64-(size-1) {
		return malformed(TypeExport, "%d bytes at address %#x wrap around", size, address)
	}
	return nil
}

func (s *Session) failWithNotice(failure *Error) (Step, error) {
	var step Step
	if s.peerListens() {
		step.Reply = Status{Success: false}.Encode()
	}
	return step, s.fail(failure)
}

func (s *Session) fail(failure *Error) error {
	failure.State = s.state
	s.failure = failure
	s.state = Failed
	return failure
}

// refuse answers a call that cannot be obeyed. Nothing has been said to the peer, so the state stays.
func (s *Session) refuse(misuse *Error) error {
	if s.state == Failed {
		return s.failure
	}
	misuse.State = s.state
	return misuse
}
