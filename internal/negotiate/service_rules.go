package negotiate

// serviceRule is when a message of one role is in order. A message is also received in states that the peer enters by a
// message which may cross it.
type serviceRule struct {
	sent     stateSet[State] // states in which the side that sends it may be
	received stateSet[State] // states in which the other may be
	handle   func(*Service, []byte) (ServiceStep, error)
}

// The rules for all messages by the role that sends them, and by type. GREETING is sent by
// Start and in answer. REFUSED, which a flag makes final, has rules of its own in Refuse and receiveRefused.
var (
	// begun are the states in which the daemon may end the session, and in which the command may hear of it.
	begun = states(AwaitGreeting, Ready, Preparing, Requested, Copying, Closing, PeerClosing, Listing, Removing,
		Pinging, Making)
	// refusedStates are those in which the daemon may refuse a request, and the command hears of it.
	refusedStates = states(Requested, Listing, Removing, Pinging, Making)

	// A message of the native session may cross the CLOSE of the side that receives it.
	copySent     = states(Copying, PeerClosing)
	copyReceived = states(Copying, Closing)

	serviceMessages = [...][TypeMeasure + 1]serviceRule{
		Command: {
			TypeServiceGreeting: {0, states(AwaitGreeting), (*Service).receiveGreeting},
			TypeItems: {states(Ready, Preparing), states(Ready, Preparing),
				(*Service).receiveItems},
			TypeCopy: {states(Ready, Preparing), states(Ready, Preparing),
				(*Service).receiveCopy},
			TypeClose: {states(Copying, PeerClosing), states(Copying, Closing),
				(*Service).receiveClose},
			TypeList:        {states(Ready), states(Ready), (*Service).receiveList},
			TypeRemove:      {states(Ready), states(Ready), (*Service).receiveRemove},
			TypeServicePing: {states(Ready), states(Ready), (*Service).receivePing},
			TypeMakeDir:     {states(Ready), states(Ready), (*Service).receiveMakeDir},
			TypeMeasure:     {states(Ready), states(Ready), (*Service).receiveMeasure},
		},
		Daemon: {
			TypeServiceGreeting: {0, states(AwaitGreeting), (*Service).receiveAnswer},
			TypeRefused:         {refusedStates, begun, (*Service).receiveRefused},
			TypeAccepted: {states(Requested), states(Requested),
				(*Service).receiveAccepted},
			TypeClose: {states(Copying, PeerClosing), states(Copying, Closing),
				(*Service).receiveClose},
			TypeListed:      {states(Listing), states(Listing), (*Service).receiveListed},
			TypeListEnd:     {states(Listing), states(Listing), (*Service).receiveListEnd},
			TypeRemoved:     {states(Removing), states(Removing), (*Service).receiveRemoved},
			TypeServicePong: {states(Pinging), states(Pinging), (*Service).receivePong},
			TypeWorking:     {refusedStates, refusedStates, (*Service).receiveWorking},
			TypeMade:        {states(Making), states(Making), (*Service).receiveMade},
		},
	}
)

// serviceRuleOf returns the rule for a message that this role sends.
func serviceRuleOf(role ServiceRole, t Type) serviceRule {
	rules := &serviceMessages[role]
	if t >= 0 && int(t) < len(rules) {
		return rules[t]
	}
	return serviceRule{}
}

// isNative reports whether a message of this type is one of the native session of a copy.
func isNative(t Type) bool { return 0 < t && t < TypeServiceGreeting }
