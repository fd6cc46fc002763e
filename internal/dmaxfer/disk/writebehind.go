package disk

// How much of a target may wait to be flushed while more of it arrives. Steps are small, so that even a slow disk finishes one now
// and then; the bound keeps a fast peer from filling this machine's memory with what a slow disk has still to take.
const (
	writeBehindStep  = 8 << 20
	writeBehindSteps = 16
)

// behind flushes a file's content behind its writers. Whoever hands it more than it may hold waits for the disk.
//
//	writers ─ handOver ─► queue ─► run: SyncRange, step by step
type writeBehind struct {
	file  File
	next  int64 // what is before has been handed over
	queue chan span
	ended chan struct{}
	err   error // of the first flush that failed; read it after ended
}

type span struct{ offset, length int64 }

func newWriteBehind(file File, from int64) *writeBehind {
	b := &writeBehind{file: file, next: from, queue: make(chan span, writeBehindSteps), ended: make(chan struct{})}
	go b.run()
	return b
}

// run stops flushing at the first failure, after which nothing that it could find would count.
func (b *writeBehind) run() {
	defer close(b.ended)
	for s := range b.queue {
		if b.err = b.file.SyncRange(s.offset, s.length); b.err != nil {
			return
		}
	}
}

// handOver takes what is written before prefix, in whole steps. It returns the error of an earlier flush.
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

// stop waits for the step that is being flushed, and returns the error of the first flush that failed. What waits behind that step is
// left alone: whoever gives up has no use for it, and whoever finishes the file flushes it with an eye on the context and on the progress.
func (b *writeBehind) stop() error {
	for len(b.queue) > 0 {
		select {
		case <-b.queue:
		default: // run was faster
		}
	}
	close(b.queue)
	<-b.ended
	return b.err
}
