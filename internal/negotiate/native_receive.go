package negotiate

// This file is what a NativeSession does with the peer's messages.

// nativeTurn is a message that the protocol expects. What is not in nativeTurns, and not allowed at any time, is out of
// order.
type nativeTurn struct {
	sends   bool // this side; false before it is known
	state   State
	message Type
}

type nativeHandler func(*NativeSession, []byte) (NativeStep, error)

var nativeTurns = map[nativeTurn]nativeHandler{
	{false, AwaitHello, TypeHello}:      (*NativeSession).takeHello,
	{true, AwaitReady, TypeWindow}:      (*NativeSession).takeWindow,
	{false, Preparing, TypeWindow}:      (*NativeSession).takeWindow,
	{true, AwaitReady, TypeReady}:       (*NativeSession).takeReady,
	{false, Receiving, TypeChunks}:      (*NativeSession).takeChunks,
	{true, Sending, TypeAcks}:           (*NativeSession).takeAcks,
	{false, Receiving, TypeMetadata}:    (*NativeSession).takeMetadata,
	{false, Receiving, TypeEnd}:         (*NativeSession).takeEnd,
	{true, AwaitPrepared, TypePrepared}: (*NativeSession).takePrepared,
	{false, AwaitCommit, TypeCommit}:    (*NativeSession).takeCommit,
	{true, AwaitDone, TypeDone}:         (*NativeSession).takeDone,
}

// Receive takes one message of the peer and keeps no reference to it. With an error the session has failed, and the
// Reply tells the peer, unless the peer knows or listens no more. Receive allocates nothing for CHUNKS, ACKS and
// HEARTBEAT.
func (n *NativeSession) Receive(msg []byte) (NativeStep, error) {
	if n.state == Failed {
		return NativeStep{}, n.failure
	}
	if len(msg) > n.limits.MaxMessage {
		return n.failWithNotice(malformed(0, "%d bytes, limit %d", len(msg), n.limits.MaxMessage))
	}
	message := typeOf(msg)
	if n.mayBeReference(message) {
		return n.takeReference(message, msg)
	}
	if message == TypeAbort && n.state != HandedOver {
		return n.takeAbort(msg)
	}
	step, err := n.dispatch(message, msg)
	if err != nil && n.state != Failed {
		return n.failWithNotice(err)
	}
	return step, err
}

func (n *NativeSession) dispatch(message Type, msg []byte) (NativeStep, error) {
	sends := n.planned() && n.sends()
	if handle, expected := nativeTurns[nativeTurn{sends, n.state, message}]; expected {
		return handle(n, msg)
	}
	if message == TypeHeartbeat && n.planned() {
		return n.takeBeat(msg)
	}
	if _, known := typeNames[message]; !known {
		return NativeStep{}, malformed(message, "unknown type, in %d bytes", len(msg))
	}
	return NativeStep{}, outOfOrder(message)
}

// takeHello makes the plan. The DPU answers with its own HELLO even if there is nothing to copy: the host then sees the
// reason for itself.
func (n *NativeSession) takeHello(msg []byte) (NativeStep, error) {
	peer, err := DecodeHello(msg)
	if err != nil {
		return NativeStep{}, err
	}
	host, dpu, reply := n.own, peer, []byte(nil)
	if n.side == DPU {
		host, dpu, reply = peer, n.own, AppendHello(nil, n.own)
	}
	plan, err := Decide(host, dpu, n.limits)
	if hopeless(err) {
		return NativeStep{Reply: reply}, n.fail(asFailure(err))
	}
	if err != nil {
		return NativeStep{}, err
	}
	n.adopt(plan, peer)
	return NativeStep{Reply: reply, Event: Planned, Plan: plan}, nil
}

func (n *NativeSession) adopt(plan Plan, peer Hello) {
	n.plan, n.peer = plan, peer
	n.slots = newSlotTable(plan.Slots)
	n.state = Preparing
	if n.sends() {
		n.state = AwaitReady
		n.acks = make([]Ack, 0, n.most(MaxAcks))
	} else {
		n.records = make([]Record, 0, n.most(MaxRecords))
	}
}

// most is how many elements a list may have: each has a slot of its own.
func (n *NativeSession) most(fit func(maxMessage int) int) int {
	return min(fit(n.limits.MaxMessage), int(n.plan.Slots))
}

func (n *NativeSession) takeWindow(msg []byte) (NativeStep, error) {
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
	n.open()
	return NativeStep{Event: WindowOpened, Window: w}, nil
}

func (n *NativeSession) takeReady(msg []byte) (NativeStep, error) {
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
	n.open()
	return NativeStep{Event: PeerReady, Resume: resume}, nil
}

// open lets the records flow once the window is known to the DPU and the receiver is ready.
func (n *NativeSession) open() {
	if !n.window || !n.ready {
		return
	}
	n.state = Receiving
	if n.sends() {
		n.state = Sending
	}
}

func (n *NativeSession) takeChunks(msg []byte) (NativeStep, error) {
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

func (n *NativeSession) takeAcks(msg []byte) (NativeStep, error) {
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

func (n *NativeSession) takeMetadata(msg []byte) (NativeStep, error) {
	m, err := DecodeMetadata(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.addMetadata(m); err != nil {
		return NativeStep{}, err
	}
	m.Part = n.keep(m.Part)
	return NativeStep{Event: PeerMetadata, Metadata: m}, nil
}

func (n *NativeSession) takeEnd(msg []byte) (NativeStep, error) {
	t, err := DecodeEnd(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.checkEnd(t); err != nil {
		return NativeStep{}, err
	}
	n.size = t.Size
	n.state = Verifying
	return NativeStep{Event: PeerEnded, Size: t.Size, Digest: n.keep(t.Digest)}, nil
}

func (n *NativeSession) takePrepared(msg []byte) (NativeStep, error) {
	t, err := DecodePrepared(msg)
	if err != nil {
		return NativeStep{}, err
	}
	if err := n.checkPrepared(t); err != nil {
		return NativeStep{}, err
	}
	n.state = Deciding
	return NativeStep{Event: PeerPrepared, Size: t.Size, Digest: n.keep(t.Digest)}, nil
}

func (n *NativeSession) takeCommit(msg []byte) (NativeStep, error) {
	if err := DecodeCommit(msg); err != nil {
		return NativeStep{}, err
	}
	n.state = Committing
	return NativeStep{Event: PeerCommit}, nil
}

func (n *NativeSession) takeDone(msg []byte) (NativeStep, error) {
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

func (n *NativeSession) takeBeat(msg []byte) (NativeStep, error) {
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

// takeAbort ends the session. Nothing is said in reply to a reason.
func (n *NativeSession) takeAbort(msg []byte) (NativeStep, error) {
	reason, err := DecodeAbort(msg)
	if err != nil {
		return n.failWithNotice(err)
	}
	return NativeStep{}, n.fail(&Error{Message: TypeAbort, Err: reason})
}

// keep copies what a step refers to: the message belongs to somebody else.
func (n *NativeSession) keep(octets []byte) []byte {
	n.octets = append(n.octets[:0], octets...)
	return n.octets
}
