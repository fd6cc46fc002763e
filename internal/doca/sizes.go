package doca

import "time"

// The sizes and times of the device layer, in one place. The sizes of what a device offers are its Capabilities.
const (
	// defaultReceiveQueue is the number of messages that DOCA queues per connection unless configured.
	defaultReceiveQueue = 64

	// defaultUnread is the number of messages that a Connection queues for Recv unless configured.
	defaultUnread = 1024

	// unreadOfClient replaces defaultUnread on a server with several clients, where one more ends the connection: a
	// tree may cause a message for each of 1024 slots and of 1024 announced entries. unreadBeforeAnswer is the limit of
	// a client to which nothing was sent yet.
	unreadOfClient     = 2048
	unreadBeforeAnswer = 16

	// queuePerClient and sendsPerClient are what DOCA queues, and has in flight, for each client of several.
	queuePerClient = 16
	sendsPerClient = 16

	// defaultSends is the number of messages in flight unless configured.
	defaultSends = 64

	// maxRanges is the maximum number of ranges of one copy, regardless of what the device allows: a task then costs
	// little for each of them, and an engine needs little memory for their buffers.
	maxRanges = 64

	// pollBatch is the number of events taken from DOCA at once.
	pollBatch = 16

	// pendingConnections is the number of connected clients that may wait for Accept; one more is disconnected.
	pendingConnections = 16

	// drainTime is how long a Close waits for the device to release memory.
	drainTime = 10 * time.Second

	// retryPause is the pause before retrying what no notification announces.
	retryPause = time.Millisecond

	// unconnectedPause is the pause between two polls of a driver without notifications that has no connections.
	unconnectedPause = 10 * time.Millisecond

	// minRetryPause and maxRetryPause bound the growing pause before retrying what was refused for a reason that no
	// notification announces.
	minRetryPause = 10 * time.Microsecond
	maxRetryPause = 5 * time.Millisecond

	// idleSpins is how often a port is polled in vain before its owner sleeps. The owner of a channel sleeps at once:
	// it has few messages, and polling costs more than wakeups.
	idleSpins = 32

	// spinTime is how long an engine is polled in vain before its owner sleeps, and spinPolls how often between two
	// readings of the clock. Sleeping and being woken takes about 25 microseconds, mostly of CPU time.
	spinTime  = 25 * time.Microsecond
	spinPolls = 16

	// lockTries and lockPause bound the wait for the lock of the software device's directory, which is held briefly. If
	// its holder is stopped, the directory is read without the lock.
	lockTries = 100
	lockPause = time.Millisecond
)
