package disk

import (
	"fmt"
	"runtime/debug"
)

// writeBehind flushes a file's content in the background while more is written. A writer that is too far ahead waits
// for the disk.
//
//	writers ─ add ─► queue ─► run: SyncRange, step by step
type writeBehind struct {
	file  File
	next  int64 // bytes below are queued or flushed
	queue chan span
	ended chan struct{}
	err   error // of the first flush that failed; valid after ended
	panic any   // of a flush, which becomes one of the caller; valid after ended
}

type span struct{ offset, length int64 }

// newWriteBehind starts flushing a file from the given offset on.
func newWriteBehind(file File, from int64) *writeBehind {
	b := &writeBehind{file: file, next: from, queue: make(chan span, writeBehindSteps), ended: make(chan struct{})}
	go b.run()
	return b
}

// run stops at the first failure: the content is not trusted then.
func (b *writeBehind) run() {
	defer close(b.ended)
	defer func() {
		if value := recover(); value != nil {
			b.panic = fmt.Sprintf("%v\n%s", value, debug.Stack())
		}
	}()
	for s := range b.queue {
		if b.err = b.file.SyncRange(s.offset, s.length); b.err != nil {
			return
		}
	}
}

// add queues what is written below prefix, in whole steps. It returns the error of an earlier flush.
func (b *writeBehind) add(prefix int64) error {
	for prefix-b.next >= writeBehindStep {
		select {
		case b.queue <- span{b.next, writeBehindStep}:
			b.next += writeBehindStep
		case <-b.ended:
			return b.result()
		}
	}
	return nil
}

// stop waits for the current step and returns the error of the first flush that failed. It drops queued steps: an
// interrupted transfer does not need them, and a complete one flushes the rest in Flush, which observes the context.
func (b *writeBehind) stop() error {
	for len(b.queue) > 0 {
		select {
		case <-b.queue:
		default: // run has just taken it
		}
	}
	close(b.queue)
	<-b.ended
	return b.result()
}

func (b *writeBehind) result() error {
	if b.panic != nil {
		panic(b.panic)
	}
	return b.err
}
