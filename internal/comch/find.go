package comch

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// The times between two attempts of a Finder: a server is found within a second. They are randomized, so that several
// hosts do not try at the same time.
const (
	shortestFind = 700 * time.Millisecond
	longestFind  = 900 * time.Millisecond

	// findTime is the limit of one attempt. A server that is stopped, and so does not answer, may be replaced.
	findTime = 5 * time.Second
)

// Finder connects a host to a server that another process starts now and then, as a daemon does. It tries about every
// 0.8 s with one doca.Client, which is replaced only when it is connected or an attempt did not end by itself. It is
// used by one goroutine at a time.
type Finder struct {
	// Refused is called when the server refuses this host for another reason than before; nil: not reported. The error
	// is ErrRefused or ErrMessageSize.
	Refused func(error)

	device *doca.Device
	name   string
	client *doca.Client
	next   time.Time // of the next attempt
	last   error     // the last one passed to Refused
}

// NewFinder returns a Finder for the server called name on the DPU of a host's device.
func NewFinder(device *doca.Device, name string) *Finder {
	return &Finder{device: device, name: name}
}

// Find tries until a server accepts this host. The first attempt is immediate, unless the last Find returned less than
// an interval ago. Connections are independent of the Finder. Errors: the cause of ctx; a *doca.Error if the device
// itself fails.
func (f *Finder) Find(ctx context.Context) (Conn, error) {
	for {
		if err := sleepUntil(ctx, f.next); err != nil {
			return nil, err
		}
		conn, err := f.try(ctx)
		f.next = time.Now().Add(shortestFind + rand.N(longestFind-shortestFind))
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

// try makes one attempt. After one that ctx has ended a doca.Client can only be closed.
func (f *Finder) try(ctx context.Context) (Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	if f.client == nil {
		client, err := f.device.NewClient(f.name, doca.ChannelConfig{})
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

// sleepUntil returns the cause of ctx if that ends first.
func sleepUntil(ctx context.Context, when time.Time) error {
	timer := time.NewTimer(time.Until(when))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
