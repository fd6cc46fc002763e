package negotiate

import "errors"

// This file handles the peer's messages in a NativeSession.

// nativeTransition is a message that a state expects. All others are out of order, except for those allowed at any
// time.
type nativeTransition struct {
	sends   bool // this side sends; false before that is known
	state   State
	message Type
}

type nativeHandler func(*NativeSession, []byte) (NativeStep, error)

var nativeTransitions = map[nativeTransition]nativeHandler{
	{false, AwaitHello, TypeHello}:      (*NativeSession).receiveHello,
	{true, AwaitReady, TypeWindow}:      (*NativeSession).receiveWindow,
	{false, Preparing, TypeWindow}:      (*NativeSession).receiveWindow,
	{true, AwaitReady, TypeReady}:       (*NativeSession).receiveReady,
	{false, Receiving, TypeChunks}:      (*NativeSession).receiveChunks,
	{true, Sending, TypeAcks}:           (*NativeSession).receiveAcks,
	{false, Receiving, TypeMetadata}:    (*NativeSession).receiveMetadata,
	{false, Receiving, TypeEnd}:         (*NativeSession).receiveEnd,
	{true, AwaitPrepared, TypePrepared}: (*NativeSession).receivePrepared,
	{false, AwaitCommit, TypeCommit}:    (*NativeSession).receiveCommit,
	{true, AwaitDone, TypeDone}:         (*NativeSession).receiveDone,
}

// Receive processes one message of the peer and retains no reference to it. After an error the session has failed;
// the Reply tells the peer, unless the peer knows or does not listen any more. Receive does not allocate for CHUNKS,
// ACKS and HEARTBEAT.
func (n *NativeSession) Receive(msg []byte) (NativeStep, error) {
	if n.state == Failed {
		return NativeStep{}, n.failure
	}
	if len(msg) > n.limits.MaxMessage {
		return n.failWithNotice(malformed(0, "%d bytes, limit %d", len(msg), n.limits.MaxMessage))
	}
	message := typeOf(msg)
	if n.mayBeReference(message) {
		return n.receiveReference(message, msg)
	}
	if message == TypeAbort && n.state != HandedOver {
		return n.receiveAbort(msg)
	}
	step, err := n.dispatch(message, msg)
	if err != nil && n.state != Failed {
		return n.failWithNotice(err)
	}
	return step, err
}

func (n *NativeSession) dispatch(message Type, msg []byte) (NativeStep, error) {
	sends := n.planned() && n.sends()
	if handle, expected := nativeTransitions[nativeTransition{sends, n.state, message}]; expected {
		return handle(n, msg)
	}
	if message == TypeHeartbeat && n.planned() {
		return n.receiveBeat(msg)
	}
	if _, known := typeNames[message]; !known {
		return NativeStep{}, malformed(message, "unknown type, in %d bytes", len(msg))
	}
	return NativeStep{}, outOfOrder(message)
}

// receiveHello computes the plan. The DPU sends its own HELLO even if there is nothing to copy, because the host then
// finds the same reason itself.
func (n *NativeSession) receiveHello(msg []byte) (NativeStep, error) {
	peer, err := DecodeHello(msg)
	if err != nil {
		return NativeStep{}, err
	}
	host, dpu, reply := n.own, peer, []byte(nil)
	if n.side == DPU {
		host, dpu, reply = peer, n.own, AppendHello(nil, n.own)
	}
	plan, err := Decide(host, dpu, n.limits)
	if nothingToCopy(err) {
		return NativeStep{Reply: reply}, n.fail(asError(err))
	}
	if err != nil {
		return NativeStep{}, err
	}
	n.adopt(plan, peer)
	return NativeStep{Reply: reply, Event: Planned, Plan: plan}, nil
}

// nothingToCopy reports whether the peer derives the same error from the HELLOs.
func nothingToCopy(err error) bool {
	return errors.Is(err, ErrBothHaveFile) || errors.Is(err, ErrNeitherHasFile)
}

func (n *NativeSession) adopt(plan Plan, peer Hello) {
	n.plan, n.peer = plan, peer
	n.slots = newSlotTable(plan.Depth)
	n.state = Preparing
	if n.sends() {
		n.state = AwaitReady
		n.acks = make([]Ack, 0, n.maxElements(MaxAcks))
	} else {
		n.records = make([]Record, 0, n.maxElements(MaxRecords))
	}
}

// maxElements returns the longest list that a message may have: each element needs a slot of its own.
func (n *NativeSession) maxElements(fit func(maxMessage int) int) int {
	return min(fit(n.limits.MaxMessage), int(n.plan.Depth))
}

func (n *NativeSession) receiveWindow(msg []byte) (NativeStep, error) {
	if n.side == Host || n.window {
		return NativeStep{}, outOfOrder(TypeWindow)
	}
	w, err := DecodeWindow(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if due := n.plan.WindowLength(); w.Length != due {
		return NativeStep{}, malformed(TypeWindow, "%d bytes instead of %d", w.Length, due)
	}
	n.window = true
	n.startRecords()
	return NativeStep{Event: WindowOpened, Window: w}, nil
}

func (n *NativeSession) receiveReady(msg []byte) (NativeStep, error) {
	if n.ready || n.side == Host && !n.window {
		return NativeStep{}, outOfOrder(TypeReady)
	}
	resume, err := DecodeReady(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.checkResume(resume); err != nil {
		return NativeStep{}, err
	}
	n.ready, n.resume = true, resume
	n.startRecords()
	return NativeStep{Event: PeerReady, Resume: resume}, nil
}

// startRecords allows records as soon as the DPU knows the window and the receiver is ready.
func (n *NativeSession) startRecords() {
	if !n.window || !n.ready {
		return
	}
	n.state = Receiving
	if n.sends() {
		n.state = Sending
	}
}

func (n *NativeSession) receiveChunks(msg []byte) (NativeStep, error) {
	records, err := DecodeChunks(n.records[:0], msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.announce(records); err != nil {
		return NativeStep{}, err
	}
	n.records = records
	return NativeStep{Event: Announced, Records: records}, nil
}

func (n *NativeSession) receiveAcks(msg []byte) (NativeStep, error) {
	acks, err := DecodeAcks(n.acks[:0], msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.acknowledge(acks); err != nil {
		return NativeStep{}, err
	}
	n.acks = acks
	return NativeStep{Event: Acknowledged, Acks: acks}, nil
}

func (n *NativeSession) receiveMetadata(msg []byte) (NativeStep, error) {
	m, err := DecodeMetadata(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.addMetadata(m); err != nil {
		return NativeStep{}, err
	}
	m.Part = n.copyOctets(m.Part)
	return NativeStep{Event: PeerMetadata, Metadata: m}, nil
}

func (n *NativeSession) receiveEnd(msg []byte) (NativeStep, error) {
	t, err := DecodeEnd(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.checkEnd(t); err != nil {
		return NativeStep{}, err
	}
	n.size = t.Size
	n.state = Verifying
	return NativeStep{Event: PeerEnded, Size: t.Size, Digest: n.copyOctets(t.Digest)}, nil
}

func (n *NativeSession) receivePrepared(msg []byte) (NativeStep, error) {
	t, err := DecodePrepared(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.checkPrepared(t); err != nil {
		return NativeStep{}, err
	}
	n.state = Deciding
	return NativeStep{Event: PeerPrepared, Size: t.Size, Digest: n.copyOctets(t.Digest)}, nil
}

func (n *NativeSession) receiveCommit(msg []byte) (NativeStep, error) {
	if err := DecodeCommit(msg); err != nil {
		return NativeStep{}, err
	}
	n.state = Committing
	return NativeStep{Event: PeerCommit}, nil
}

func (n *NativeSession) receiveDone(msg []byte) (NativeStep, error) {
	d, err := DecodeDone(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.checkDone(d); err != nil {
		return NativeStep{}, err
	}
	n.state = Done
	return NativeStep{Event: PeerDone, Durability: d}, nil
}

func (n *NativeSession) receiveBeat(msg []byte) (NativeStep, error) {
	b, err := DecodeBeat(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := checkBeat(b, n.peerBeat); err != nil {
		return NativeStep{}, err
	}
	n.peerBeat = b
	return NativeStep{Event: PeerBeat, Beat: b}, nil
}

// receiveAbort ends the session. An ABORT is not answered.
func (n *NativeSession) receiveAbort(msg []byte) (NativeStep, error) {
	reason, err := DecodeAbort(msg)
	if err != nil {
		return n.failWithNotice(err)
	}
	return NativeStep{}, n.fail(&Error{Message: TypeAbort, Err: reason})
}

// copyOctets copies bytes that a step refers to, because the caller may reuse the message.
func (n *NativeSession) copyOctets(octets []byte) []byte {
	n.octets = append(n.octets[:0], octets...)
	return n.octets
}

// mayBeReference reports whether the message can be that of a reference host whose padding only looked like an offer
// of the native protocol: the reference program leaves some of its padding uninitialised. Such a host sends an EXPORT
// or a STATUS where a HELLO is expected.
func (n *NativeSession) mayBeReference(message Type) bool {
	return n.reference != nil && n.side == DPU && n.state == AwaitHello &&
		(message == TypeExport || message == TypeStatus)
}

// receiveReference returns to the reference protocol.
func (n *NativeSession) receiveReference(message Type, msg []byte) (NativeStep, error) {
	if message == TypeStatus {
		return n.receiveStatus(msg)
	}
	step, err := n.reference.resumeReference(msg)
	if err != nil {
		n.failure, n.state = n.reference.failure, Failed
		return NativeStep{Reply: step.Reply}, err
	}
	n.state = HandedOver
	return NativeStep{Event: ToReference, Reference: n.reference, ReferenceStep: step}, nil
}

// receiveStatus accepts only a reference host's failure.
func (n *NativeSession) receiveStatus(msg []byte) (NativeStep, error) {
	message, err := decodeStatus(msg)
	if err != nil {
		return n.failWithNotice(err)
	}
	if message == (Status{Success: false}) {
		return NativeStep{}, n.fail(&Error{Message: TypeStatus, Err: ErrPeerFailed})
	}
	return n.failWithNotice(outOfOrder(TypeStatus))
}
