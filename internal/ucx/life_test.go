//go:build ucx && cgo

package ucx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestReapEndsWithItsContext(t *testing.T) {
	s := newSide(t, Settings{Transports: []string{"tcp"}})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	var events [1]Event
	if n, err := s.worker.Reap(ctx, events[:]); n != 0 || !errors.Is(err, cause) {
		t.Errorf("%d events, %v", n, err)
	}
}

// The end of the context is not missed at whatever moment of Reap it comes.
func TestReapEndsWithItsContextAtAnyTime(t *testing.T) {
	s := newSide(t, Settings{Transports: []string{"tcp"}})
	for round := range 100 {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			for range round % 7 {
				runtime.Gosched()
			}
			cancel()
		}()
		var events [1]Event
		if n, err := s.worker.Reap(ctx, events[:]); n != 0 || !errors.Is(err, context.Canceled) {
			t.Fatalf("round %d: %d events, %v", round, n, err)
		}
	}
}

// busyWorker is a library whose workers cannot be armed.
type busyWorker struct {
	abi
	arms   atomic.Int64
	enough func() // is called when it was to be armed twice busyPolls times
}

func (b *busyWorker) workerArm(workerHandle) Status {
	if b.arms.Add(1) == 2*busyPolls {
		b.enough()
	}
	return statusBusy
}

// A worker that cannot be armed, because messages wait for a peer which does nothing, does not keep a CPU busy. A pause
// is never shorter than it should be, so their number is limited by the time that Reap has taken.
func TestBusyWorkerPauses(t *testing.T) {
	s := newSide(t, Settings{Transports: []string{"tcp"}})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	busy := &busyWorker{abi: s.context.abi, enough: cancel}
	s.context.abi = busy
	began := time.Now()
	var events [1]Event
	if n, err := s.worker.Reap(ctx, events[:]); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d events, %v", n, err)
	}
	limit := busyPolls + 1 + int64(time.Since(began)/busyPause)
	if arms := busy.arms.Load(); arms > limit {
		t.Errorf("the worker was to be armed %d times, limit %d", arms, limit)
	}
}

// lateEvent is a library for which an event comes while a worker is being armed, too early to be reported by the
// worker's descriptor. It is gone when ctx ends.
type lateEvent struct {
	abi
	ctx  context.Context
	came bool
}

func (l *lateEvent) workerArm(w workerHandle) Status {
	l.came = true
	return l.abi.workerArm(w)
}

func (l *lateEvent) workerPoll(w workerHandle, into []event) int {
	if n := l.abi.workerPoll(w, into); n > 0 || !l.came || l.ctx.Err() != nil {
		return n
	}
	into[0] = event{tag: 17}
	return 1
}

// unfinishedPoll is a library for which the poll after arming ends before the worker has nothing left to do, and the
// event comes with the next one. It is gone when ctx ends.
type unfinishedPoll struct {
	lateEvent
	polls int // since the worker was armed
}

func (u *unfinishedPoll) workerPoll(w workerHandle, into []event) int {
	if u.came {
		u.polls++
	}
	if u.polls < 2 {
		return u.abi.workerPoll(w, into)
	}
	return u.lateEvent.workerPoll(w, into)
}

func (u *unfinishedPoll) workerUnfinished(workerHandle) bool { return u.polls == 1 }

func TestReapAfterAnUnfinishedPoll(t *testing.T) {
	s := newSide(t, Settings{Transports: []string{"tcp"}})
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.context.abi = &unfinishedPoll{lateEvent: lateEvent{abi: s.context.abi, ctx: ctx}}
	var events [1]Event
	if n, err := s.worker.Reap(ctx, events[:]); n != 1 || err != nil || events[0].Tag != 17 {
		t.Errorf("%d events, %v: %+v", n, err, events)
	}
}

func TestReapOfAnEventBeforeArming(t *testing.T) {
	s := newSide(t, Settings{Transports: []string{"tcp"}})
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.context.abi = &lateEvent{abi: s.context.abi, ctx: ctx}
	var events [1]Event
	if n, err := s.worker.Reap(ctx, events[:]); n != 1 || err != nil || events[0].Tag != 17 {
		t.Errorf("%d events, %v: %+v", n, err, events)
	}
}

// The end of a context interrupts from a goroutine that does not know whether the worker is closed.
func TestInterruptAfterClose(t *testing.T) {
	c, err := Open(Settings{Transports: []string{"tcp"}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.NewWorker(1)
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				w.interrupt()
			}
		}
	}()
	for range 2 {
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-ended
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	var events [1]Event
	if _, err := w.Reap(t.Context(), events[:]); !errors.Is(err, ErrClosed) {
		t.Errorf("Reap: %v", err)
	}
	if _, err := w.Address(); !errors.Is(err, ErrClosed) {
		t.Errorf("Address: %v", err)
	}
	if _, err := w.Connect([]byte{1}, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("Connect: %v", err)
	}
	if _, err := c.Alloc(1, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("Alloc: %v", err)
	}
	if _, err := c.NewWorker(1); !errors.Is(err, ErrClosed) {
		t.Errorf("NewWorker: %v", err)
	}
	if _, err := c.Resources(); !errors.Is(err, ErrClosed) {
		t.Errorf("Resources: %v", err)
	}
}

func TestArguments(t *testing.T) {
	s := newSide(t, Settings{Reads: true, Transports: []string{"tcp"}})
	for _, length := range []int64{-1, 0, memoryLimit + 1} {
		if _, err := s.context.Alloc(length, LocalWrite); !errors.Is(err, ErrInvalid) {
			t.Errorf("memory of %d: %v", length, err)
		}
	}
	for _, depth := range []int{-1, 0, maxDepth + 1} {
		if _, err := s.context.NewWorker(depth); !errors.Is(err, ErrInvalid) {
			t.Errorf("worker of %d: %v", depth, err)
		}
	}
	for _, length := range []int{0, MaxAddress + 1} {
		if _, err := s.worker.Connect(make([]byte, length), 0); !errors.Is(err, ErrInvalid) {
			t.Errorf("address of %d: %v", length, err)
		}
	}
	s.connect(s)
	for _, length := range []int{0, MaxKey + 1} {
		if _, err := s.endpoint.ImportKey(make([]byte, length)); !errors.Is(err, ErrInvalid) {
			t.Errorf("key of %d: %v", length, err)
		}
	}
	m := s.alloc(100, LocalWrite|RemoteRead)
	packed, err := m.RemoteKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.endpoint.ImportKey(packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]int64{{-1, 1}, {0, 0}, {0, -1}, {0, 101}, {100, 1}, {1, 100}, {1 << 62, 1 << 62}} {
		if err := s.endpoint.Get(m, r[0], r[1], m.Address(), key, 0); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d bytes at %d: %v", r[1], r[0], err)
		}
	}
	for _, slots := range []Slots{
		{Memory: m, Size: 0, Step: 1, Count: 1}, {Memory: m, Size: 51, Step: 1, Count: 2},
		{Memory: m, Size: 1, Step: 0, Count: 1},
		{Memory: m, Size: 1, Step: 1, Count: 0}, {Memory: m, Size: 1, Step: 1 << 31, Count: 3},
		{Memory: m, Size: 1 << 62, Step: 1, Count: 4}, {Memory: m, Size: 1, Step: 1, Count: maxSlots + 1},
	} {
		if err := s.worker.Receive(slots); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", slots, err)
		}
	}
}

// A full queue, and memory that is in use: the owner of the window does not make progress meanwhile.
func TestMemoryInUseIsNotFreed(t *testing.T) {
	settings := Settings{Reads: true, Transports: []string{"tcp"}}
	reader, owner := newSide(t, settings), newSide(t, settings)
	window := owner.alloc(1<<20, RemoteRead)
	buffer, err := reader.context.Alloc(1<<20, LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	key := reader.reach(owner, window)
	for tag := range uint64(reader.worker.Depth()) {
		if err := reader.endpoint.Get(buffer, 0, 1<<20, window.Address(), key, tag); err != nil {
			t.Fatal(err)
		}
	}
	if err := reader.endpoint.Get(buffer, 0, 1, window.Address(), key, 99); !errors.Is(err, ErrQueueFull) {
		t.Errorf("one operation more than the depth: %v", err)
	}
	if n := reader.worker.Inflight(); n != reader.worker.Depth() {
		t.Errorf("%d in flight", n)
	}
	if err := buffer.Close(); !errors.Is(err, ErrStillRunning) {
		t.Errorf("memory of operations in flight was closed: %v", err)
	}
	owner.serve()
	for range reader.worker.Depth() {
		if e := reader.reap(); e.Kind != Completed || e.Err != nil {
			t.Fatalf("%+v", e)
		}
	}
	if err := reader.endpoint.Get(buffer, 0, 1, window.Address(), key, 99); err != nil {
		t.Errorf("the queue is still full: %v", err)
	}
	reader.reap()
	if err := buffer.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever the peer does, closing takes no longer than its context and then the transport's forced end. UCX has not
// allocated the window, so that the peer would have to send what is read, also over shared memory.
func TestCloseWithAPeerThatDoesNothing(t *testing.T) {
	for name, tls := range transports {
		t.Run(name, func(t *testing.T) {
			settings := Settings{Reads: true, Transports: tls}
			reader, owner := newSide(t, settings), newSide(t, settings)
			window, buffer := owner.alloc(1<<20, LocalRead), reader.alloc(1<<20, LocalWrite)
			key := reader.reach(owner, window)
			for tag := range uint64(4) {
				if err := reader.endpoint.Get(buffer, 0, 1<<20, window.Address(), key, tag); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			if err := reader.worker.Close(ctx); err != nil {
				t.Error(err)
			}
			if err := buffer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNothingLeaks(t *testing.T) {
	mustNotLeak(t, func(t *testing.T) {
		settings := Settings{Transports: []string{"tcp"}}
		sender := newSide(t, settings)
		receiver, _ := newReceiver(t, settings, 1<<20)
		from := sender.alloc(1<<20, LocalRead)
		sender.connect(receiver)
		if err := sender.endpoint.Send(token, 3, from, 0, 1<<20, 1); err != nil {
			t.Fatal(err)
		}
		receiver.reapFrom(sender)
	})
}

// Memory that UCX has allocated, and that the reader has mapped, is gone with the objects of both sides.
func TestSharedMemoryDoesNotLeak(t *testing.T) {
	mustNotLeak(t, func(t *testing.T) { readShared(t, 1<<20) })
}

// mustNotLeak calls round again and again, and expects open files and mappings not to become more. Go starts further
// threads, which have mappings, once in a while; a leak is there each time.
func mustNotLeak(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	round := func() { t.Run("round", run) }
	for range 3 {
		round() // what UCX opens once
	}
	const rounds, attempts = 20, 3
	var leaks string
	for range attempts {
		files, maps := openFiles(t), mappings(t)
		for range rounds {
			round()
		}
		filesNow, mapsNow := openFiles(t), mappings(t)
		if len(filesNow) <= len(files)+2 && mapsNow <= maps+rounds/2 {
			return
		}
		leaks = fmt.Sprintf("%d mappings, then %d; %d open files, then %d:\n%s",
			maps, mapsNow, len(files), len(filesNow), strings.Join(filesNow, "\n"))
	}
	t.Errorf("%d times in a row, after %d rounds: %s", attempts, rounds, leaks)
}

func openFiles(t *testing.T) (list []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		target, _ := os.Readlink("/proc/self/fd/" + entry.Name())
		list = append(list, fmt.Sprintf("%s %s", entry.Name(), target))
	}
	return list
}

func mappings(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(content), "\n")
}
