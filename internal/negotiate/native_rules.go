package negotiate

// nativeRule is when a message of one role is in order. A message is also received in states that the peer enters by a
// message which may cross it.
type nativeRule struct {
	sent     stateSet[State] // states in which the side that sends it may be
	received stateSet[State] // states in which the other may be
	handle   func(*NativeSession, []byte) (NativeStep, error)
}

// The rules for all messages, by type. An ABORT is in order in every state, and a type without a rule in none.
var (
	connected = states(Ready, Transferring, Finishing, Cancelling)
	ongoing   = states(Transferring, Finishing)
	stopping  = states(Transferring, Finishing, Cancelling)

	sessionMessages = [...]nativeRule{
		TypeHello:     {0, states(AwaitHello), (*NativeSession).receiveHello}, // sent by Start and in answer
		TypeWindow:    {states(Ready, Transferring, Finishing), connected, (*NativeSession).receiveWindow},
		TypeHeartbeat: {connected, connected, (*NativeSession).receiveBeat},
	}
	senderMessages = [...]nativeRule{
		TypeTransfer: {states(Ready), states(Ready), (*NativeSession).receiveTransfer},
		TypeEntries:  {states(Transferring), states(Transferring), (*NativeSession).receiveEntries},
		TypeMetadata: {states(Transferring), states(Transferring), (*NativeSession).receiveMetadata},
		TypeChunks:   {ongoing, ongoing, (*NativeSession).receiveChunks},
		TypePack:     {ongoing, ongoing, (*NativeSession).receivePack},
		TypeEnd:      {ongoing, ongoing, (*NativeSession).receiveEnd},
		TypeSum:      {states(Transferring), states(Transferring), (*NativeSession).receiveSum},
		TypeFailure:  {ongoing, ongoing, (*NativeSession).receiveFailure},
		TypeFinish:   {states(Transferring), states(Transferring), (*NativeSession).receiveFinish},
	}
	receiverMessages = [...]nativeRule{
		TypeCancelled: {states(Cancelling), states(Cancelling), (*NativeSession).receiveCancelled},
		TypeAnswers:   {ongoing, stopping, (*NativeSession).receiveAnswers},
		TypeAcks:      {stopping, stopping, (*NativeSession).receiveAcks},
		TypeFailure:   {stopping, stopping, (*NativeSession).receiveFailure},
		TypeResults:   {stopping, stopping, (*NativeSession).receiveResults},
		TypeFinished:  {states(Finishing), states(Finishing), (*NativeSession).receiveFinished},
	}
)

// rule returns the rule for a message of the given role. Without a plan there are no roles.
func (n *NativeSession) rule(message Type, bySender bool) nativeRule {
	if r := ruleOf(sessionMessages[:], message); r.handle != nil || !n.planned() {
		return r
	}
	if bySender {
		return ruleOf(senderMessages[:], message)
	}
	return ruleOf(receiverMessages[:], message)
}

func ruleOf(rules []nativeRule, message Type) nativeRule {
	if message < 0 || int(message) >= len(rules) {
		return nativeRule{}
	}
	return rules[message]
}

// mayCall checks that this side has the role and is in a state in which the message is sent.
func (n *NativeSession) mayCall(message Type) error {
	if !n.planned() || !n.rule(message, n.sends()).sent.has(n.machine.state) || !n.windowPermits(message, n.side) {
		return outOfOrder(message)
	}
	return nil
}

// windowPermits reports whether a message from that side is in order as far as the window is concerned: its owner sends
// one WINDOW, and it is known when the first data is announced.
func (n *NativeSession) windowPermits(message Type, from Side) bool {
	switch message {
	case TypeWindow:
		return from == n.plan.WindowOwner() && !n.window
	case TypeChunks, TypePack:
		return n.window
	}
	return true
}

// send returns a message that was appended to dst, if this side may send it and its effect does not fail.
func (n *NativeSession) send(dst, msg []byte, effect func() error) ([]byte, error) {
	return n.machine.sendIf(n.mayCall(TypeOf(msg[len(dst):])), dst, msg, effect)
}
