//go:build ucx && cgo

package ucx

import (
	"bytes"
	"fmt"
	"testing"
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
