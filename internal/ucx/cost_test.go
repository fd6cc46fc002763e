//go:build ucx && cgo

package ucx

import (
	"testing"
)

// newGets returns what posts a get of length bytes and reaps its end.
func newGets(t *testing.T, tls []string, length int64) func() {
	t.Helper()
	settings := Settings{Reads: true, Transports: tls}
	reader, owner := newSide(t, settings), newSide(t, settings)
	window, buffer := owner.alloc(length, RemoteRead), reader.alloc(length, LocalWrite)
	key := reader.reach(owner, window)
	events, none := make([]Event, 4), make([]Event, 4)
	return func() {
		if err := reader.endpoint.Get(buffer, 0, length, window.Address(), key, 1); err != nil {
			t.Fatal(err)
		}
		for reader.worker.Inflight() > 0 {
			owner.worker.Poll(none)
			if reader.worker.Poll(events) > 0 && events[0].Err != nil {
				t.Fatal(events[0].Err)
			}
		}
		owner.worker.Poll(none)
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	for name, tls := range transports {
		get := newGets(t, tls, 4096)
		if n := testing.AllocsPerRun(100, get); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestSendDoesNotAllocate(t *testing.T) {
	for name, tls := range transports {
		sender := newSide(t, Settings{Transports: tls})
		receiver, _ := newReceiver(t, Settings{Transports: tls}, 4096)
		from := sender.alloc(4096, LocalRead)
		sender.connect(receiver)
		events := make([]Event, 1)
		n := testing.AllocsPerRun(100, func() {
			if err := sender.endpoint.Send(token, 3, from, 0, 4096, 1); err != nil {
				t.Fatal(err)
			}
			for arrived := false; sender.worker.Inflight() > 0 || !arrived; {
				sender.worker.Poll(events)
				arrived = receiver.worker.Poll(events) > 0 || arrived
			}
			if err := receiver.worker.Post(3); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
