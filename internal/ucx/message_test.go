//go:build ucx && cgo

package ucx

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"
)

const token = 0x1122334455667788

// receiver is a side with slots 1, 3, 5 and 7 of size bytes each.
func newReceiver(t *testing.T, s Settings, size int64) (*side, *Memory) {
	t.Helper()
	r := newSide(t, s)
	m := r.alloc(4*size, LocalWrite)
	slots := Slots{Memory: m, Size: size, First: 1, Step: 2, Count: 4, Token: token}
	if err := r.worker.Receive(slots); err != nil {
		t.Fatal(err)
	}
	return r, m
}

func TestSend(t *testing.T) {
	for name, tls := range transports {
		for _, length := range []int64{1, 4096, 65537, 2 << 20} {
			t.Run(fmt.Sprintf("%s/%d", name, length), func(t *testing.T) {
				settings := Settings{Transports: tls}
				sender := newSide(t, settings)
				receiver, into := newReceiver(t, settings, length)
				from := sender.alloc(length+3, LocalRead)
				random(from.Bytes())
				sender.connect(receiver)
				if err := sender.endpoint.Send(token, 5, from, 3, length, 42); err != nil {
					t.Fatal(err)
				}
				if e := receiver.reapFrom(sender); e != (Event{Kind: Arrived, Tag: 5, Length: length}) {
					t.Fatalf("%+v", e)
				}
				if !bytes.Equal(into.Bytes()[2*length:3*length], from.Bytes()[3:3+length]) {
					t.Error("other bytes")
				}
			})
		}
	}
}

// An operation is in flight until its completion was reaped, whatever else has been polled with it.
func TestInflightUntilReaped(t *testing.T) {
	settings := Settings{Transports: transports["tcp"]}
	sender := newSide(t, settings)
	receiver, _ := newReceiver(t, settings, 64)
	from := sender.alloc(64, LocalRead)
	sender.connect(receiver)
	receiver.serve()
	for slot := range uint32(3) {
		if err := sender.endpoint.Send(token, 2*slot+1, from, 0, 64, uint64(slot)); err != nil {
			t.Fatal(err)
		}
	}
	for left := 2; left >= 0; left-- {
		if e := sender.reap(); e.Kind != Completed || sender.worker.Inflight() != left {
			t.Fatalf("%+v, and %d in flight; want %d", e, sender.worker.Inflight(), left)
		}
	}
}

// A message whose operation has ended arrives without progress of its sender. Of messages that are not received, TCP
// takes only a part of the last one.
func TestSentMessagesArrive(t *testing.T) {
	for _, size := range []int64{1 << 10, 6 << 10, 64 << 10, 255 << 10, 256 << 10, 2 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { sentMessagesArrive(t, size) })
	}
}

func sentMessagesArrive(t *testing.T, size int64) {
	most := 64 << 20 / size // more than TCP takes
	settings := Settings{Transports: transports["tcp"]}
	sender, receiver := newSide(t, settings), newSide(t, settings)
	into := receiver.alloc(most*size, LocalWrite)
	slots := Slots{Memory: into, Size: size, Step: 1, Count: uint32(most), Token: token}
	if err := receiver.worker.Receive(slots); err != nil {
		t.Fatal(err)
	}
	from := sender.alloc(size, LocalRead)
	sender.connect(receiver)
	send := func(slot int) {
		if err := sender.endpoint.Send(token, uint32(slot), from, 0, size, 0); err != nil {
			t.Fatalf("message %d: %v", slot, err)
		}
	}
	ends := func() bool {
		var events [1]Event
		for start := time.Now(); time.Since(start) < 50*time.Millisecond; runtime.Gosched() {
			if sender.worker.Poll(events[:]) == 1 {
				return true
			}
		}
		return false
	}
	send(0)
	receiver.reapFrom(sender)
	for sender.worker.Inflight() > 0 && !ends() { // UCX flushes when both are connected
		receiver.worker.Poll(nil)
	}
	sent := 1
	for send(sent); ends(); send(sent) {
		sent++
	}
	t.Logf("%d messages were sent, and the next one was not", sent)
	for range sent - 1 {
		if e := receiver.reap(); e.Kind != Arrived || e.Err != nil {
			t.Fatalf("%+v", e)
		}
	}
}
