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
	err   error // of the first flush that failed, a *flushPanic if it panicked; valid after ended
}

type span struct{ offset, length int64 }

// flushPanic is the panic of a flush.
type flushPanic struct {
	value any
	stack []byte
}

// Error implements error.
func (p *flushPanic) Error() string { return fmt.Sprint(p.value) }

// Panic returns the value and the stack of the flush.
func (p *flushPanic) Panic() (value any, stack []byte) { return p.value, p.stack }

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
			b.err = &flushPanic{value, debug.Stack()}
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
			return b.err
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
	return b.err
}
