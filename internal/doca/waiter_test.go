package doca

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func openEventfd(t *testing.T) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func signalEventfd(t *testing.T, fd int) {
	if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Error(err)
	}
}

// openWaiter watches a handle that is readable after signal.
func openWaiter(t *testing.T) (w *waiter, signal func()) {
	t.Helper()
	handle := openEventfd(t)
	w, err := newWaiter(handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w, func() { signalEventfd(t, handle) }
}

// waits starts a wait and reports its end.
func waits(w *waiter) <-chan error {
	result := make(chan error, 1)
	go func() { result <- w.wait(time.Time{}) }()
	return result
}

func mustEnd(t *testing.T, result <-chan error) {
	t.Helper()
	select {
	case err := <-result:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the wait does not end")
	}
}

func TestWaitEndsWhenHandleIsReadable(t *testing.T) {
	w, signal := openWaiter(t)
	result := waits(w)
	signal()
	mustEnd(t, result)
	mustEnd(t, waits(w)) // the handle is still readable
}

func TestWakeEndsThisWaitOrTheNext(t *testing.T) {
	w, _ := openWaiter(t)
	result := waits(w)
	w.wake()
	mustEnd(t, result)
	w.wake()
	w.wake()
	mustEnd(t, waits(w))
}

// Two wakes end one wait; the next one waits again.
func TestWakesAreNotCounted(t *testing.T) {
	w, _ := openWaiter(t)
	w.wake()
	w.wake()
	mustEnd(t, waits(w))
	result := waits(w)
	select {
	case <-result:
		t.Error("a wake was counted twice")
	case <-time.After(20 * time.Millisecond):
	}
	w.wake()
	mustEnd(t, result)
}

func TestWaitEndsAtDeadline(t *testing.T) {
	w, signal := openWaiter(t)
	if err := w.wait(time.Now().Add(time.Millisecond)); err != nil {
		t.Error(err)
	}
	if err := w.wait(time.Now().Add(-time.Second)); err != nil {
		t.Error(err)
	}
	signal()
	mustEnd(t, waits(w)) // an old deadline does not stay
}

// A context that ends must have finished with the waiter when the wait returns, or it would write to another descriptor
// of the same number. Here that descriptor is the bait.
func TestWaitWithLeavesNothingBehind(t *testing.T) {
	bait := openEventfd(t)
	for range 200 {
		waitAndReplace(t, bait)
	}
	var taken [8]byte
	if _, err := unix.Read(bait, taken[:]); err != unix.EAGAIN {
		t.Errorf("the bait was taken: %d, %v", taken[0], err)
	}
}

// waitAndReplace waits for an event that has occurred, while an ended context is about to wake the waiter. Then it
// closes the waiter and puts bait at the number of its wakeup descriptor.
func waitAndReplace(t *testing.T, bait int) {
	t.Helper()
	handle := openEventfd(t)
	w, err := newWaiter(handle)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	signalEventfd(t, handle)
	cancel()
	if err := errors.Join(w.waitWith(ctx), w.close(), unix.Dup3(bait, w.wakeup, unix.O_CLOEXEC)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(w.wakeup) }) // a copy of the bait
}

func TestWaiterNeedsAHandle(t *testing.T) {
	before := countDescriptors(t)
	if w, err := newWaiter(-1); err == nil {
		_ = w.close()
		t.Fatal("nothing was watched")
	}
	if after := countDescriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
