package disk

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// flushedFile records what is flushed. It fails at one flush, and waits while held is open.
type flushedFile struct {
	File
	mu     sync.Mutex
	spans  []span
	failAt int // number of the flush that fails, from 1; 0: none
	cause  error
	held   chan struct{} // if not nil, no flush begins before it is closed
	panics bool          // instead of failing
}

func (f *flushedFile) SyncRange(offset, length int64) error {
	if f.held != nil {
		<-f.held
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spans = append(f.spans, span{offset, length})
	if len(f.spans) == f.failAt {
		if f.panics {
			panic("a defect")
		}
		return f.cause
	}
	return nil
}

// A panic of a flush is the error of the calls, with the stack of the flush beside a text of one line.
func TestPanicOfWriteBehind(t *testing.T) {
	for name, call := range map[string]func(*writeBehind) error{
		"add":  func(b *writeBehind) error { return b.add(100 * writeBehindStep) },
		"stop": (*writeBehind).stop,
	} {
		b := newWriteBehind(&flushedFile{failAt: 1, panics: true}, 0)
		b.queue <- span{0, writeBehindStep}
		<-b.ended
		err := call(b)
		panicked, is := errors.AsType[*flushPanic](err)
		if !is || err.Error() != "a defect" {
			t.Errorf("%s returns %v", name, err)
			continue
		}
		if value, stack := panicked.Panic(); value != "a defect" || !strings.Contains(string(stack), "SyncRange") {
			t.Errorf("%s: %v at %s", name, value, stack)
		}
	}
}

// Each whole step is flushed once and in order, whatever the sizes by which the prefix grows.
func TestBehindFlushesWholeStepsOnce(t *testing.T) { synctest.Test(t, flushWholeStepsOnce) }

func flushWholeStepsOnce(t *testing.T) {
	const from = 3 << 20
	file := &flushedFile{}
	b := newWriteBehind(file, from)
	prefix := int64(from)
	for i := range 200 {
		prefix += int64(i) * 77777
		if err := b.add(prefix); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait() // until all of it is flushed
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	next := int64(from)
	for _, s := range file.spans {
		if s.offset != next || s.length != writeBehindStep {
			t.Fatalf("%+v was flushed, where %d is next", s, next)
		}
		next += s.length
	}
	if prefix-next >= writeBehindStep {
		t.Errorf("only %d of %d bytes were flushed", next, prefix)
	}
}

// add returns a failure without waiting for the queue, stop returns it too, and nothing is flushed after it.
func TestBehindFails(t *testing.T) {
	cause := errors.New("the disk is broken")
	file := &flushedFile{failAt: 2, cause: cause}
	b := newWriteBehind(file, 0)
	err := b.add(100 * writeBehindStep)
	if err != cause {
		t.Errorf("adding more than the queue holds: %v", err)
	}
	if err := b.stop(); err != cause {
		t.Errorf("stopping: %v", err)
	}
	if len(file.spans) != 2 {
		t.Errorf("%d flushes, of which the second failed", len(file.spans))
	}
}

// stop waits for the current step, and not for the queued ones.
func TestBehindStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &flushedFile{held: make(chan struct{})}
		b := newWriteBehind(file, 0)
		if err := b.add(writeBehindSteps * writeBehindStep); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the first step is being flushed
		stopped := make(chan error)
		go func() { stopped <- b.stop() }()
		synctest.Wait()
		close(file.held)
		if err := <-stopped; err != nil || len(file.spans) != 1 {
			t.Errorf("%d steps were flushed, of which one was under way: %v", len(file.spans), err)
		}
	})
}
