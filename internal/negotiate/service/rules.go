package service

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

// The rules for all messages by the role that sends them, and by type. GREETING is sent by
// Start and in answer. REFUSED, which a flag makes final, has rules of its own in Refuse and receiveRefused.
var (
	// begun are the states in which the daemon may end the session, and in which the command may hear of it.
	begun = wire.States(AwaitGreeting, Ready, Preparing, Requested, Copying, Closing, PeerClosing, Listing, Removing,
		Pinging, Making)
	// refusedStates are those in which the daemon may refuse a request, and the command hears of it.
	refusedStates = wire.States(Requested, Listing, Removing, Pinging, Making)

	// A message of the native session may cross the CLOSE of the side that receives it.
	copySent     = wire.States(Copying, PeerClosing)
	copyReceived = wire.States(Copying, Closing)

	messages = [...][wire.TypeMeasure + 1]rule{
		Command: {
			wire.TypeGreeting: {0, wire.States(AwaitGreeting), (*Session).receiveGreeting},
			wire.TypeItems: {wire.States(Ready, Preparing), wire.States(Ready, Preparing),
				(*Session).receiveItems},
			wire.TypeCopy: {wire.States(Ready, Preparing), wire.States(Ready, Preparing),
				(*Session).receiveCopy},
			wire.TypeClose: {wire.States(Copying, PeerClosing), wire.States(Copying, Closing),
				(*Session).receiveClose},
			wire.TypeList:    {wire.States(Ready), wire.States(Ready), (*Session).receiveList},
			wire.TypeRemove:  {wire.States(Ready), wire.States(Ready), (*Session).receiveRemove},
			wire.TypePing:    {wire.States(Ready), wire.States(Ready), (*Session).receivePing},
			wire.TypeMakeDir: {wire.States(Ready), wire.States(Ready), (*Session).receiveMakeDir},
			wire.TypeMeasure: {wire.States(Ready), wire.States(Ready), (*Session).receiveMeasure},
		},
		Daemon: {
			wire.TypeGreeting: {0, wire.States(AwaitGreeting), (*Session).receiveAnswer},
			wire.TypeRefused:  {refusedStates, begun, (*Session).receiveRefused},
			wire.TypeAccepted: {wire.States(Requested), wire.States(Requested),
				(*Session).receiveAccepted},
			wire.TypeClose: {wire.States(Copying, PeerClosing), wire.States(Copying, Closing),
				(*Session).receiveClose},
			wire.TypeListed:  {wire.States(Listing), wire.States(Listing), (*Session).receiveListed},
			wire.TypeListEnd: {wire.States(Listing), wire.States(Listing), (*Session).receiveListEnd},
			wire.TypeRemoved: {wire.States(Removing), wire.States(Removing), (*Session).receiveRemoved},
			wire.TypePong:    {wire.States(Pinging), wire.States(Pinging), (*Session).receivePong},
			wire.TypeWorking: {refusedStates, refusedStates, (*Session).receiveWorking},
			wire.TypeMade:    {wire.States(Making), wire.States(Making), (*Session).receiveMade},
		},
	}
)

// ruleOf returns the rule for a message that this role sends.
func ruleOf(role Role, t wire.Type) rule {
	rules := &messages[role]
	if t >= 0 && int(t) < len(rules) {
		return rules[t]
	}
	return rule{}
}

// isNative reports whether a message of this type is one of the native session of a copy.
func isNative(t wire.Type) bool { return 0 < t && t < wire.TypeGreeting }
