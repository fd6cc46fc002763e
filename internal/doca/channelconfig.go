package doca

// ChannelConfig configures one side of a control channel. Zero values mean the maximum of the device or a default.
type ChannelConfig struct {
	MaxMessage   int // bytes; both sides must use the same
	ReceiveQueue int // messages queued for Recv, per connection; by default DOCA queues 64 and the connection 1024
	Sends        int // messages in flight

	// Clients is for a Server whose clients must not hold each other up: the maximum number of connections at once. One
	// client more is disconnected at once, and so is a client that has sent more messages than its connection holds
	// unread: 2048 by default, or 16 before anything was sent to it. 0: any number of connections; if one of them is
	// not read, all wait, because DOCA cannot stop the messages of one client alone. A Client ignores it.
	Clients int

	// Polled has Send and TryRecv use the device in the caller's goroutine where they can, which is faster than waking
	// the goroutine that serves the channel. Without it TryRecv only returns what that goroutine has received.
	Polled bool

	unread int // messages that a connection holds for Recv; set by withDefaults
}

func (c ChannelConfig) withDefaults(caps Capabilities) ChannelConfig {
	switch {
	case c.ReceiveQueue != 0:
		c.unread = c.ReceiveQueue
	case c.Clients > 0:
		c.unread = unreadOfClient
	default:
		c.unread = defaultUnread
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = int(caps.MaxMessage)
	}
	if c.ReceiveQueue == 0 {
		c.ReceiveQueue = min(max(defaultReceiveQueue, c.Clients*queuePerClient), int(caps.MaxReceiveQueue))
	}
	if c.Sends == 0 {
		c.Sends = min(max(defaultSends, c.Clients*sendsPerClient), int(caps.MaxSends))
	}
	return c
}

// sendLimit divides the send tasks between the clients.
func (c ChannelConfig) sendLimit() int {
	if c.Clients == 0 {
		return c.Sends
	}
	return max(1, c.Sends/c.Clients)
}
