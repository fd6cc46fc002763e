package dmaxfer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A host that loses the DPU tries again only if that had said nothing, in either protocol.
func TestHostRetriesAfterSilentDisconnect(t *testing.T) {
	refusal := reference.Status{Success: false}.Encode()
	disagrees := reference.Direction{FileInHost: true}.Encode()
	accepts := reference.Direction{Offer: [3]byte{0xdc, 2, 2}}.Encode()
	for name, is := range map[string]struct {
		says          []byte
		unsent        bool // the host's DIRECTION
		referenceOnly bool
		again         bool
	}{
		"nothing":                                   {nil, false, false, true},
		"nothing in the reference protocol":         {nil, false, true, true},
		"nothing, and does not listen":              {nil, true, false, true},
		"a refusal":                                 {refusal, false, false, false},
		"a refusal in the reference protocol":       {refusal, false, true, false},
		"a refusal, and does not listen":            {refusal, true, false, false},
		"something wrong":                           {disagrees, false, false, false},
		"something wrong in the reference protocol": {disagrees, false, true, false},
		"that it speaks the native protocol":        {accepts, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := hostThatLoses(t, is.says, is.unsent, is.referenceOnly)
				if got := turnedAway(err); got != is.again {
					t.Errorf("tries again: %t, after %v", got, err)
				}
			})
		})
	}
}

// A channel that fails to send the host's DIRECTION, and does not notice that it is broken, is given up as one that
// does.
func TestFirstMessageIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
		defer host.Close()
		defer dpu.Close()
		if err := runOfHost(t.Context(), t, unsendable{host}, false); !turnedAway(err) {
			t.Errorf("does not try again, after %v", err)
		}
	})
}

// unsendable is a channel that can only receive.
type unsendable struct{ comch.Conn }

func (unsendable) Send(context.Context, []byte) error { return comch.ErrPeerLost }

// A host that is stopped while the DPU turns it away says that it was stopped, even if the channel reports the loss.
func TestStoppedWhileTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, dpu := comchtest.NewPair(testMessage, comchtest.Faultless, comchtest.Faultless)
		defer host.Close()
		defer dpu.Close()
		ctx, stop := context.WithCancelCause(t.Context())
		stop(errInterrupted)
		if err := runOfHost(ctx, t, gone{unsendable{host}}, false); !errors.Is(err, errInterrupted) {
			t.Errorf("the host says: %v", err)
		}
	})
}

// gone is a channel that only reports its loss.
type gone struct{ unsendable }

func (gone) Recv(context.Context) ([]byte, error) { return nil, comch.ErrPeerLost }

// hostThatLoses is the error of a host without a file whose DPU says one thing and hangs up.
func hostThatLoses(t *testing.T, says []byte, unsent, referenceOnly bool) error {
	t.Helper()
	fault := comchtest.Faultless
	if unsent {
		fault = comchtest.Cut(0)
	}
	host, dpu := comchtest.NewPair(testMessage, fault, comchtest.Faultless)
	defer host.Close()
	go func() {
		if says != nil {
			_ = dpu.Send(t.Context(), says)
		}
		if !unsent {
			_, _ = dpu.Recv(t.Context())
			_ = dpu.Close()
		}
	}()
	synctest.Wait()
	return runOfHost(t.Context(), t, host, referenceOnly)
}

// runOfHost is the error of a host without a file.
func runOfHost(ctx context.Context, t *testing.T, conn comch.Conn, referenceOnly bool) error {
	t.Helper()
	on := disktest.NewMemory("/files")
	o := Options{
		Options: role.Options{Side: wire.Host, IdleTimeout: time.Minute},
		FS:      on, File: simPath, ReferenceOnly: referenceOnly,
	}
	file, err := o.find(t.Context())
	must(t, err)
	o.paths = simPaths(true)
	_, err = peer{o, file, conn, dmaxfertest.NewBus(dmaxfertest.NoDeviceFaults()).Memory(1)}.transfer(ctx)
	if err == nil {
		t.Fatal("the copy succeeded")
	}
	return err
}
