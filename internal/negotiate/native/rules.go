package native

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// rule is when a message of one role is in order. A message is also received in states that the peer enters by a
// message which may cross it.
type rule struct {
	sent     wire.StateSet[State] // states in which the side that sends it may be
	received wire.StateSet[State] // states in which the other may be
	handle   func(*Session, []byte) (Step, error)
}

// The rules for all messages, by type. An ABORT is in order in every state, and a type without a rule in none.
var (
	connected = wire.States(Ready, Transferring, Finishing, Cancelling)
	ongoing   = wire.States(Transferring, Finishing)
	stopping  = wire.States(Transferring, Finishing, Cancelling)

	sessionMessages = [...]rule{
		wire.TypeHello:     {0, wire.States(AwaitHello), (*Session).receiveHello}, // sent by Start and in answer
		wire.TypeWindow:    {wire.States(Ready, Transferring, Finishing), connected, (*Session).receiveWindow},
		wire.TypeHeartbeat: {connected, connected, (*Session).receiveBeat},
	}
	senderMessages = [...]rule{
		wire.TypeTransfer: {wire.States(Ready), wire.States(Ready), (*Session).receiveTransfer},
		wire.TypeEntries:  {wire.States(Transferring), wire.States(Transferring), (*Session).receiveEntries},
		wire.TypeMetadata: {wire.States(Transferring), wire.States(Transferring), (*Session).receiveMetadata},
		wire.TypeChunks:   {ongoing, ongoing, (*Session).receiveChunks},
		wire.TypePack:     {ongoing, ongoing, (*Session).receivePack},
		wire.TypeEnd:      {ongoing, ongoing, (*Session).receiveEnd},
		wire.TypeSum:      {wire.States(Transferring), wire.States(Transferring), (*Session).receiveSum},
		wire.TypeFailure:  {ongoing, ongoing, (*Session).receiveFailure},
		wire.TypeFinish:   {wire.States(Transferring), wire.States(Transferring), (*Session).receiveFinish},
	}
	receiverMessages = [...]rule{
		wire.TypeCancelled: {wire.States(Cancelling), wire.States(Cancelling), (*Session).receiveCancelled},
		wire.TypeAnswers:   {ongoing, stopping, (*Session).receiveAnswers},
		wire.TypeAcks:      {stopping, stopping, (*Session).receiveAcks},
		wire.TypeFailure:   {stopping, stopping, (*Session).receiveFailure},
		wire.TypeResults:   {stopping, stopping, (*Session).receiveResults},
		wire.TypeFinished:  {wire.States(Finishing), wire.States(Finishing), (*Session).receiveFinished},
	}
)

// rule returns the rule for a message of the given role. Without a plan there are no roles.
func (n *Session) rule(message wire.Type, bySender bool) rule {
	if r := ruleOf(sessionMessages[:], message); r.handle != nil || !n.planned() {
		return r
	}
	if bySender {
		return ruleOf(senderMessages[:], message)
	}
	return ruleOf(receiverMessages[:], message)
}

func ruleOf(rules []rule, message wire.Type) rule {
	if message < 0 || int(message) >= len(rules) {
		return rule{}
	}
	return rules[message]
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
