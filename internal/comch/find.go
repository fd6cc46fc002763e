package comch

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// FindInterval is the default of Finder.Interval: a server is found within a second.
const FindInterval = 800 * time.Millisecond

const (
	// findJitter randomizes the times between two attempts by this part, so that several hosts do not try at the same
	// time.
	findJitter = 8

	// findTime is the limit of one attempt. A server that is stopped, and so does not answer, may be replaced.
	findTime = 5 * time.Second
)

// Finder connects a host to a server that another process starts now and then, as a daemon does. It tries at first
// soon, and then less and less often, up to Interval, with one doca.Client, which is replaced only when it is connected
// or an attempt did not end by itself. It is used by one goroutine at a time, apart from RetrySoon.
type Finder struct {
	// Interval returns the longest time between two attempts, about; nil: FindInterval. It is asked before each.
	Interval func() time.Duration

	// Refused is called when the server refuses this host for another reason than before; nil: not reported. The error
	// is ErrRefused or ErrMessageSize.
	Refused func(error)

	device *doca.Device
	name   string
	client *doca.Client
	pause  time.Duration // before the next attempt; 0: there has been none
	soon   chan struct{} // has an element after RetrySoon
	last   error         // the last one passed to Refused
}

// NewFinder returns a Finder for the server called name on the DPU of a host's device.
func NewFinder(device *doca.Device, name string) *Finder {
	return &Finder{device: device, name: name, soon: make(chan struct{}, 1)}
}

// RetrySoon says that a server is likely to be there soon: the next attempt follows at once, and the ones after it
// soon. It may be called at any time.
func (f *Finder) RetrySoon() {
	select {
	case f.soon <- struct{}{}:
	default: // it will notice
	}
}

// Find tries until a server accepts this host. The very first attempt is immediate. Further ones go on in the rhythm
// that the last Find has left, also after a connection that it has found, because a server may end each at once.
// Connections are independent of the Finder. Errors: the cause of ctx; a *doca.Error if the device itself fails.
func (f *Finder) Find(ctx context.Context) (Conn, error) {
	for {
		if err := f.wait(ctx); err != nil {
			return nil, err
		}
		conn, err := f.try(ctx)
		switch {
		case err == nil:
			f.last = nil
			return conn, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, doca.ErrRefused):
			f.report(refused(err))
		case !errors.Is(err, doca.ErrNoServer) && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
	}
}

// wait waits for the time of the next attempt.
func (f *Finder) wait(ctx context.Context) error {
	length := f.pause - f.pause/findJitter + rand.N(f.pause/findJitter*2+1)
	f.pause = min(max(firstRetry, f.pause*3/2), f.interval())
	timer := time.NewTimer(length)
	defer timer.Stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-timer.C:
	case <-f.soon:
		f.pause = firstRetry
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (f *Finder) interval() time.Duration {
	if f.Interval == nil {
		return FindInterval
	}
	return f.Interval()
}

// try makes one attempt. After one that ctx has ended a doca.Client can only be closed.
func (f *Finder) try(ctx context.Context) (Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	if f.client == nil {
		client, err := f.device.NewClient(f.name, doca.ChannelConfig{Polled: true})
		if err != nil {
			return nil, err
		}
		f.client = client
	}
	established, err := f.client.Connect(ctx)
	if err == nil {
		conn := &connection{Connection: established, release: f.client.Close}
		f.client = nil
		return conn, nil
	}
	if ctx.Err() == nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return nil, context.Cause(ctx)
}

func (f *Finder) report(err error) {
	if f.Refused != nil && (f.last == nil || f.last.Error() != err.Error()) {
		f.Refused(err)
	}
	f.last = err
}

// Close ends the Finder, not its connections. Closing twice is harmless. A Close that fails can be called again.
func (f *Finder) Close() error {
	if f.client == nil {
		return nil
	}
	err := f.client.Close()
	if err == nil {
		f.client = nil
	}
	return err
}
