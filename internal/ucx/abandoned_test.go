//go:build ucx && cgo

package ucx

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A peer that fetches a message after its sender has given up never reads what the sender has at those addresses then.
// Over shared memory it reads by address, of which nothing tells it that it is not valid any more.
func TestAbandonedMessage(t *testing.T) {
	const length = 1 << 20 // fetched, and not sent with the message
	for name, tls := range transports {
		t.Run(name, func(t *testing.T) {
			settings := Settings{Transports: tls}
			sender := newSide(t, settings)
			receiver, into := newReceiver(t, settings, length)
			from := sender.alloc(length, LocalRead)
			sender.connect(receiver)
			if err := sender.endpoint.Send(token, 1, from, 0, length, 1); err != nil {
				t.Fatal(err)
			}
			receiver.reapFrom(sender)
			for sender.worker.Inflight() > 0 {
				sender.worker.Poll(make([]Event, 1))
				receiver.worker.Poll(nil)
			}
			if err := sender.endpoint.Send(token, 3, from, 0, length, 2); err != nil {
				t.Fatal(err)
			}
			address := unsafe.Pointer(unsafe.SliceData(from.Bytes()))
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			if err := errors.Join(sender.worker.Close(ended), from.Close()); err != nil {
				t.Fatal(err)
			}
			mustNotBeReused(t, address, length, name == "shared memory")
			e := receiver.reap()
			if e.Kind != Arrived || e.Tag != 3 || e.Err == nil {
				t.Errorf("%+v", e)
			}
			if got := into.Bytes()[length : 2*length]; bytes.ContainsRune(got, 's') {
				t.Error("the peer has read other memory of the sender")
			}
		})
	}
}

// mustNotBeReused puts other content at an address, unless something keeps it from there.
func mustNotBeReused(t *testing.T, address unsafe.Pointer, length int, kept bool) {
	t.Helper()
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	at, err := unix.MmapPtr(-1, 0, address, uintptr(length), unix.PROT_READ|unix.PROT_WRITE, flags)
	if kept && !errors.Is(err, unix.EEXIST) {
		t.Errorf("the addresses can be used again: %v", err)
	}
	if err != nil {
		return
	}
	secret := unsafe.Slice((*byte)(at), length)
	copy(secret, bytes.Repeat([]byte{'s'}, length))
	t.Cleanup(func() { _ = unix.Munmap(secret) })
}
