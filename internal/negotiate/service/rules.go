package service

import "github.com/dma-copy/dma-copy/internal/negotiate/wire"

// rule is when a message of one role is in order. A message is also received in states that the peer enters by a
// message which may cross it.
type rule struct {
	sent, received wire.StateSet[State] // states in which the side that sends it may be, and the other
	handle         func(*Session, []byte) (Step, error)
}

// The rules for all messages by the role that sends them, and by type. GREETING is sent by Start and in answer.
// REFUSED, which a flag makes final, has rules of its own in Refuse and receiveRefused.
var (
	in = wire.States[State]

	// begun are the states in which the daemon may end the session, and in which the command may hear of it.
	begun = in(AwaitGreeting, Ready, Preparing, Requested, Copying, Closing, PeerClosing, Listing, Removing,
		Pinging, Making)
	// refusedStates are those in which the daemon may refuse a request, and the command hears of it.
	refusedStates = in(Requested, Listing, Removing, Pinging, Making)

	// A message of the native session may cross the CLOSE of the side that receives it.
	copySent     = in(Copying, PeerClosing)
	copyReceived = in(Copying, Closing)

	messages = [...][wire.TypeMeasure + 1]rule{
		Command: {
			wire.TypeGreeting: {0, in(AwaitGreeting), (*Session).receiveGreeting},
			wire.TypeItems:    {in(Ready, Preparing), in(Ready, Preparing), (*Session).receiveItems},
			wire.TypeCopy:     {in(Ready, Preparing), in(Ready, Preparing), (*Session).receiveCopy},
			wire.TypeClose:    {in(Copying, PeerClosing), in(Copying, Closing), (*Session).receiveClose},
			wire.TypeList:     {in(Ready), in(Ready), (*Session).receiveList},
			wire.TypeRemove:   {in(Ready), in(Ready), (*Session).receiveRemove},
			wire.TypePing:     {in(Ready), in(Ready), (*Session).receivePing},
			wire.TypeMakeDir:  {in(Ready), in(Ready), (*Session).receiveMakeDir},
			wire.TypeMeasure:  {in(Ready), in(Ready), (*Session).receiveMeasure},
		},
		Daemon: {
			wire.TypeGreeting: {0, in(AwaitGreeting), (*Session).receiveAnswer},
			wire.TypeRefused:  {refusedStates, begun, (*Session).receiveRefused},
			wire.TypeAccepted: {in(Requested), in(Requested), (*Session).receiveAccepted},
			wire.TypeClose:    {in(Copying, PeerClosing), in(Copying, Closing), (*Session).receiveClose},
			wire.TypeListed:   {in(Listing), in(Listing), (*Session).receiveListed},
			wire.TypeListEnd:  {in(Listing), in(Listing), (*Session).receiveListEnd},
			wire.TypeRemoved:  {in(Removing), in(Removing), (*Session).receiveRemoved},
			wire.TypePong:     {in(Pinging), in(Pinging), (*Session).receivePong},
			wire.TypeWorking:  {refusedStates, refusedStates, (*Session).receiveWorking},
			wire.TypeMade:     {in(Making), in(Making), (*Session).receiveMade},
		},
	}
)

// ruleOf returns the rule for a message that this role sends.
func ruleOf(role Role, t wire.Type) rule { return wire.RuleOf(messages[role][:], t) }

// isNative reports whether a message of this type is one of the native session of a copy.
func isNative(t wire.Type) bool { return 0 < t && t < wire.TypeGreeting }
