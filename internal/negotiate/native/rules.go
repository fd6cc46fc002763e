package native

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// rule is when a message of one role is in order. A message is also received in states that the peer enters by a
// message which may cross it.
type rule struct {
	sent, received wire.StateSet[State] // states in which the side that sends it may be, and the other
	handle         func(*Session, []byte) (Step, error)
}

// The rules for all messages, by type. An ABORT is in order in every state, and a type without a rule in none.
var (
	in        = wire.States[State]
	connected = in(Ready, Transferring, Finishing, Cancelling)
	ongoing   = in(Transferring, Finishing)
	stopping  = in(Transferring, Finishing, Cancelling)

	sessionMessages = [...]rule{
		wire.TypeHello:     {0, in(AwaitHello), (*Session).receiveHello}, // sent by Start and in answer
		wire.TypeWindow:    {in(Ready, Transferring, Finishing), connected, (*Session).receiveWindow},
		wire.TypeHeartbeat: {connected, connected, (*Session).receiveBeat},
	}
	senderMessages = [...]rule{
		wire.TypeTransfer: {in(Ready), in(Ready), (*Session).receiveTransfer},
		wire.TypeEntries:  {in(Transferring), in(Transferring), (*Session).receiveEntries},
		wire.TypeMetadata: {in(Transferring), in(Transferring), (*Session).receiveMetadata},
		wire.TypeChunks:   {ongoing, ongoing, (*Session).receiveChunks},
		wire.TypePack:     {ongoing, ongoing, (*Session).receivePack},
		wire.TypeEnd:      {ongoing, ongoing, (*Session).receiveEnd},
		wire.TypeSum:      {in(Transferring), in(Transferring), (*Session).receiveSum},
		wire.TypeFailure:  {ongoing, ongoing, (*Session).receiveFailure},
		wire.TypeFinish:   {in(Transferring), in(Transferring), (*Session).receiveFinish},
	}
	receiverMessages = [...]rule{
		wire.TypeCancelled: {in(Cancelling), in(Cancelling), (*Session).receiveCancelled},
		wire.TypeAnswers:   {ongoing, stopping, (*Session).receiveAnswers},
		wire.TypeAcks:      {stopping, stopping, (*Session).receiveAcks},
		wire.TypeFailure:   {stopping, stopping, (*Session).receiveFailure},
		wire.TypeResults:   {stopping, stopping, (*Session).receiveResults},
		wire.TypeFinished:  {in(Finishing), in(Finishing), (*Session).receiveFinished},
	}
)

// rule returns the rule for a message of the given role. Without a plan there are no roles.
func (n *Session) rule(message wire.Type, bySender bool) rule {
	if r := wire.RuleOf(sessionMessages[:], message); r.handle != nil || !n.planned() {
		return r
	}
	if bySender {
		return wire.RuleOf(senderMessages[:], message)
	}
	return wire.RuleOf(receiverMessages[:], message)
}

// mayCall checks that this side has the role and is in a state in which the message is sent.
func (n *Session) mayCall(message wire.Type) error {
	if !n.planned() || !n.rule(message, n.sends()).sent.Has(n.machine.State) || !n.windowPermits(message, n.side) {
		return wire.OutOfOrder(message)
	}
	return nil
}

// windowPermits reports whether a message from that side is in order as far as the window is concerned: its owner sends
// one WINDOW, and it is known when the first data is announced.
func (n *Session) windowPermits(message wire.Type, from wire.Side) bool {
	switch message {
	case wire.TypeWindow:
		return from == n.plan.WindowOwner() && !n.window
	case wire.TypeChunks, wire.TypePack:
		return n.window
	}
	return true
}

// send returns a message that was appended to dst, if this side may send it and its effect does not fail.
func (n *Session) send(dst, msg []byte, effect func() error) ([]byte, error) {
	return n.machine.SendIf(n.mayCall(wire.TypeOf(msg[len(dst):])), dst, msg, effect)
}
