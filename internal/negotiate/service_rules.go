package negotiate

// serviceRule is when a message of one role is in order. A message is also received in states that the peer enters by a
// message which may cross it.
type serviceRule struct {
	sent     stateSet // states in which the side that sends it may be
	received stateSet // states in which the other may be
	handle   func(*Service, []byte) (ServiceStep, error)
}

// The rules for all messages by the role that sends them, and by type from TypeServiceGreeting. GREETING is sent by
// Start and in answer. REFUSED, which a flag makes final, has rules of its own in Refuse and receiveRefused.
var (
	// begun are the states in which the daemon may end the session, and in which the command may hear of it.
	begun = states(AwaitGreeting, Ready, Preparing, Requested, Copying, Closing, PeerClosing, Listing, Removing,
		Pinging)
	// refusedStates are those in which the daemon may refuse a request, and the command hears of it.
	refusedStates = states(Requested, Listing, Removing, Pinging)

	// A message of the native session may cross the CLOSE of the side that receives it.
	copySent     = states(Copying, PeerClosing)
	copyReceived = states(Copying, Closing)

	serviceMessages = [...][TypeWorking - TypeServiceGreeting + 1]serviceRule{
		Command: {
			TypeServiceGreeting - TypeServiceGreeting: {0, states(AwaitGreeting), (*Service).receiveGreeting},
			TypeItems - TypeServiceGreeting: {states(Ready, Preparing), states(Ready, Preparing),
				(*Service).receiveItems},
			TypeCopy - TypeServiceGreeting: {states(Ready, Preparing), states(Ready, Preparing),
				(*Service).receiveCopy},
			TypeClose - TypeServiceGreeting: {states(Copying, PeerClosing), states(Copying, Closing),
				(*Service).receiveClose},
			TypeList - TypeServiceGreeting:        {states(Ready), states(Ready), (*Service).receiveList},
			TypeRemove - TypeServiceGreeting:      {states(Ready), states(Ready), (*Service).receiveRemove},
			TypeServicePing - TypeServiceGreeting: {states(Ready), states(Ready), (*Service).receivePing},
		},
		Daemon: {
			TypeServiceGreeting - TypeServiceGreeting: {0, states(AwaitGreeting), (*Service).receiveAnswer},
			TypeRefused - TypeServiceGreeting:         {refusedStates, begun, (*Service).receiveRefused},
			TypeAccepted - TypeServiceGreeting: {states(Requested), states(Requested),
				(*Service).receiveAccepted},
			TypeClose - TypeServiceGreeting: {states(Copying, PeerClosing), states(Copying, Closing),
				(*Service).receiveClose},
			TypeListed - TypeServiceGreeting:      {states(Listing), states(Listing), (*Service).receiveListed},
			TypeListEnd - TypeServiceGreeting:     {states(Listing), states(Listing), (*Service).receiveListEnd},
			TypeRemoved - TypeServiceGreeting:     {states(Removing), states(Removing), (*Service).receiveRemoved},
			TypeServicePong - TypeServiceGreeting: {states(Pinging), states(Pinging), (*Service).receivePong},
			TypeWorking - TypeServiceGreeting: {
				states(Requested, Copying, PeerClosing, Listing, Removing, Pinging),
				states(Requested, Copying, Closing, Listing, Removing, Pinging), (*Service).receiveWorking},
		},
	}
)

// serviceRuleOf returns the rule for a message that this role sends.
func serviceRuleOf(role ServiceRole, t Type) serviceRule {
	rules := &serviceMessages[role]
	if at := t - TypeServiceGreeting; at >= 0 && int(at) < len(rules) {
		return rules[at]
	}
	return serviceRule{}
}

// isNative reports whether a message of this type is one of the native session of a copy.
func isNative(t Type) bool { return 0 < t && t < TypeServiceGreeting }
