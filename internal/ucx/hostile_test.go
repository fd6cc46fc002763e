//go:build ucx && cgo

package ucx

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// What a peer may send that this side does not expect. Each message is refused with an event, and after it a message
// that would be right arrives no more.
var hostileMessages = map[string]struct {
	token  uint64
	slots  []uint32 // of the messages; the last one is refused
	length int64
	text   string
}{
	"token":                   {1, []uint32{1}, 10, "an invalid token"},
	"slot 0":                  {token, []uint32{0}, 10, "slot 0, which does not exist"},
	"slot between":            {token, []uint32{4}, 10, "slot 4, which does not exist"},
	"slot after the last":     {token, []uint32{9}, 10, "slot 9, which does not exist"},
	"largest slot":            {token, []uint32{1<<32 - 1}, 10, "slot 4294967295, which does not exist"},
	"occupied":                {token, []uint32{3, 3}, 10, "slot 3, which already has a message"},
	"one byte too many":       {token, []uint32{3}, 4097, "4097 bytes, which is not a length"},
	"rendezvous of too much":  {token, []uint32{3}, 1 << 20, "1048576 bytes, which is not a length"},
	"rendezvous, no slot":     {token, []uint32{0}, 1 << 20, "slot 0, which does not exist"},
	"rendezvous, wrong token": {0, []uint32{1}, 1 << 20, "an invalid token"},
}

func TestHostileMessage(t *testing.T) {
	for tls := range transports {
		for name, message := range hostileMessages {
			t.Run(tls+"/"+name, func(t *testing.T) {
				settings := Settings{Transports: transports[tls]}
				sender := newSide(t, settings)
				receiver, memory := newReceiver(t, settings, 4096)
				guard := memory.Bytes()
				from := sender.alloc(1<<20, LocalRead)
				random(from.Bytes())
				sender.connect(receiver)
				for _, slot := range message.slots {
					if err := sender.endpoint.Send(message.token, slot, from, 0, message.length, 1); err != nil {
						t.Fatal(err)
					}
				}
				for range message.slots[1:] {
					if e := receiver.reapFrom(sender); e.Kind != Arrived || e.Err != nil {
						t.Fatalf("%+v", e)
					}
				}
				before := string(guard)
				e := receiver.reapFrom(sender)
				if e.Kind != Refused || !errors.Is(e.Err, ErrInvalid) ||
					!strings.Contains(e.Err.Error(), message.text) {
					t.Errorf("got %+v, want %q", e, message.text)
				}
				if err := sender.endpoint.Send(token, 7, from, 0, 10, 2); err != nil {
					t.Fatal(err)
				}
				receiver.mustHaveNoEvent(sender)
				if string(guard) != before {
					t.Error("the refused message, or one after it, was written")
				}
			})
		}
	}
}

// mustHaveNoEvent checks that nothing happens until the sender's last message has ended and for some time after.
func (s *side) mustHaveNoEvent(sender *side) {
	s.Helper()
	for start := time.Now(); sender.worker.Inflight() > 0 || time.Since(start) < 20*time.Millisecond; {
		var events [1]Event
		sender.worker.Poll(events[:])
		if s.worker.Poll(events[:]) > 0 {
			s.Fatalf("got %+v", events[0])
		}
		if time.Since(start) > limit {
			s.Fatal("the sender's messages do not end")
		}
	}
}

func TestSlotIsUsedAgain(t *testing.T) {
	settings := Settings{Transports: []string{"tcp"}}
	sender := newSide(t, settings)
	receiver, memory := newReceiver(t, settings, 4096)
	from := sender.alloc(4096, LocalRead)
	sender.connect(receiver)
	if err := receiver.worker.Post(3); !errors.Is(err, ErrInvalid) {
		t.Errorf("a vacant slot was posted: %v", err)
	}
	for round := range byte(20) {
		from.Bytes()[0] = round
		if err := sender.endpoint.Send(token, 3, from, 0, 4096, 1); err != nil {
			t.Fatal(err)
		}
		if e := receiver.reapFrom(sender); e != (Event{Kind: Arrived, Tag: 3, Length: 4096}) {
			t.Fatalf("%+v", e)
		}
		if got := memory.Bytes()[4096]; got != round {
			t.Fatalf("byte %d, want %d", got, round)
		}
		if err := receiver.worker.Post(3); err != nil {
			t.Fatal(err)
		}
	}
	for _, slot := range []uint32{0, 2, 9, 1 << 31} {
		if err := receiver.worker.Post(slot); !errors.Is(err, ErrInvalid) {
			t.Errorf("slot %d was posted: %v", slot, err)
		}
	}
}

// UCX serves Get without RDMA in software, and does not check the address: documented at Settings.Reads.
func TestReadsOverTCPAreNotLimitedToTheWindow(t *testing.T) {
	settings := Settings{Reads: true, Transports: []string{"tcp"}}
	reader, owner := newSide(t, settings), newSide(t, settings)
	window, secret, buffer := owner.alloc(10, RemoteRead), owner.alloc(10, LocalRead), reader.alloc(10, LocalWrite)
	copy(secret.Bytes(), "a secret")
	key := reader.reach(owner, window)
	owner.serve()
	if err := reader.endpoint.Get(buffer, 0, 8, secret.Address(), key, 1); err != nil {
		t.Fatal(err)
	}
	if e := reader.reap(); e.Err != nil || string(buffer.Bytes()[:8]) != "a secret" {
		t.Errorf("this version of UCX limits reads (%+v): update the documentation", e)
	}
}

// A worker for messages serves no reads, whatever key a peer has: nobody has given any, so only the slots can be
// written, and nothing can be read.
func TestWorkerForMessagesServesNoReads(t *testing.T) {
	for name, tls := range transports {
		t.Run(name, func(t *testing.T) {
			reads := Settings{Reads: true, Transports: tls}
			reader, another := newSide(t, reads), newSide(t, reads)
			receiver, memory := newReceiver(t, Settings{Transports: tls}, 4096)
			copy(memory.Bytes(), "a secret")
			packed, err := another.alloc(4096, LocalRead).RemoteKey()
			if err != nil {
				t.Fatal(err)
			}
			reader.connect(receiver)
			key, err := reader.endpoint.ImportKey(packed)
			if err != nil {
				t.Fatal(err)
			}
			buffer := reader.alloc(8, LocalWrite)
			if err := reader.endpoint.Get(buffer, 0, 8, memory.Address(), key, 1); err != nil {
				t.Fatal(err)
			}
			var events [1]Event
			for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
				receiver.worker.Poll(nil)
				if reader.worker.Poll(events[:]) > 0 && events[0].Err == nil {
					t.Fatalf("%+v", events[0])
				}
			}
			if string(buffer.Bytes()) != string(make([]byte, 8)) {
				t.Errorf("read %q", buffer.Bytes())
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := reader.worker.Close(ended); err != nil { // the receiver never answers
				t.Error(err)
			}
		})
	}
}
