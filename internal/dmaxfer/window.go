package dmaxfer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// fileWorkers is how many slots are read from or written to the file at once. A second one hides the time in which the
// file system is not moving bytes; a third has nothing left to hide.
const fileWorkers = 2

// stage is what is being done to a slot.
type stage int

const (
	vacant stage = iota // no chunk in it
	atFile              // a worker reads it from, or writes it to, the file
	atDMA               // the engine copies it
)

// route is the way of a chunk through a slot.
type route map[stage]stage

var (
	receivingRoute = route{vacant: atDMA, atDMA: atFile, atFile: vacant}
	sendingRoute   = route{vacant: atFile, atFile: atDMA, atDMA: vacant}
)

// chunk is a piece of the file.
type chunk struct {
	offset int64
	length int64
}

// window moves a file between the disk and the other side's memory through a fixed number of slots.
//
//	receiving  vacant ─► atDMA ─► atFile ─► vacant
//	sending    vacant ─► atFile ─► atDMA ─► vacant
//
// The goroutine that calls run owns the engine and decides where each slot goes next; fileWorkers others do file calls.
// Chunks finish in any order, since each knows its place in the file. Nothing is allocated per chunk.
type window struct {
	engine *doca.Engine
	slots  *doca.Region
	remote *doca.Remote
	route  route
	file   func(buffer []byte, offset int64) error // read or write one chunk
	moved  func(length int64)                      // called for every chunk that has come to its end
	size   int64
	chunk  int64

	arrived int64   // bytes that have come to their end
	next    int64   // offset of the first chunk that has no slot yet
	chunks  []chunk // by slot
	vacant  []int   // slots
	submits []doca.Copy
	reaped  []doca.Completion
	work    chan int // slots for the workers
	worked  chan fileResult
	filing  int // slots that are with the workers
	failure error
}

type fileResult struct {
	slot int
	err  error
}

// windowConfig is what a window needs; all of it stays the caller's.
type windowConfig struct {
	engine *doca.Engine
	slots  *doca.Region // a whole number of chunks, at least one
	remote *doca.Remote // at least size bytes
	route  route
	file   func(buffer []byte, offset int64) error // called from several goroutines at once
	moved  func(length int64)
	size   int64
	chunk  int64
}

func newWindow(c windowConfig) *window {
	count := int(c.slots.Len() / c.chunk)
	w := &window{
		engine: c.engine, slots: c.slots, remote: c.remote, route: c.route, file: c.file, moved: c.moved,
		size: c.size, chunk: c.chunk,
		chunks:  make([]chunk, count),
		vacant:  make([]int, count),
		submits: make([]doca.Copy, 0, count),
		reaped:  make([]doca.Completion, 1),
		work:    make(chan int, count),
		worked:  make(chan fileResult, count),
	}
	for i := range w.vacant {
		w.vacant[i] = i
	}
	return w
}

// run moves the whole file. When it returns no worker is using a slot; after an error copies may be, until the engine is
// closed.
func (w *window) run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range fileWorkers {
		workers.Go(w.serveFile)
	}
	err := w.loop(ctx)
	close(w.work)
	workers.Wait()
	return err
}

func (w *window) serveFile() {
	for slot := range w.work {
		c := w.chunks[slot]
		w.worked <- fileResult{slot: slot, err: w.file(w.buffer(slot), c.offset)}
	}
}

func (w *window) buffer(slot int) []byte {
	start := int64(slot) * w.chunk
	return w.slots.Bytes()[start : start+w.chunks[slot].length]
}

// loop ends when every chunk has arrived, or when after a failure nothing is under way any more.
func (w *window) loop(ctx context.Context) error {
	for {
		w.fill()
		w.submit()
		if w.finished() {
			return w.outcome()
		}
		if err := w.await(ctx); err != nil {
			return errors.Join(w.failure, err)
		}
	}
}

// finished is true when nothing is under way, and nothing is left to do or to be done after a failure. Copies that the
// engine has refused for now are left to do.
func (w *window) finished() bool {
	if w.engine.Inflight() > 0 || w.filing > 0 {
		return false
	}
	return w.failure != nil || (len(w.submits) == 0 && w.next == w.size)
}

// outcome checks the books before it calls a copy good: every byte has come to its end, once.
func (w *window) outcome() error {
	if w.failure == nil && w.arrived != w.size {
		return fmt.Errorf("internal error: %d of %d bytes were accounted for", w.arrived, w.size)
	}
	return w.failure
}

// fill gives vacant slots the next chunks.
func (w *window) fill() {
	for len(w.vacant) > 0 && w.next < w.size && w.failure == nil {
		slot := w.vacant[len(w.vacant)-1]
		w.vacant = w.vacant[:len(w.vacant)-1]
		w.chunks[slot] = chunk{offset: w.next, length: min(w.chunk, w.size-w.next)}
		w.next += w.chunks[slot].length
		w.advance(slot, vacant)
	}
}

// advance moves a slot that has done with a stage to the next.
func (w *window) advance(slot int, done stage) {
	switch w.route[done] {
	case atFile:
		w.filing++
		w.work <- slot
	case atDMA:
		w.submits = append(w.submits, w.task(slot))
	case vacant:
		w.arrived += w.chunks[slot].length
		w.vacant = append(w.vacant, slot)
		w.moved(w.chunks[slot].length)
	}
}

func (w *window) task(slot int) doca.Copy {
	c := w.chunks[slot]
	task := doca.Copy{Length: c.length, Tag: uint64(slot)}
	if w.route[vacant] == atDMA {
		task.Source, task.SourceOffset = w.remote, c.offset
		task.Target, task.TargetOffset = w.slots, int64(slot)*w.chunk
	} else {
		task.Source, task.SourceOffset = w.slots, int64(slot)*w.chunk
		task.Target, task.TargetOffset = w.remote, c.offset
	}
	return task
}

// submit hands the engine what is ready; what it has no room for waits for the next round.
func (w *window) submit() {
	if len(w.submits) == 0 {
		return
	}
	if w.failure != nil {
		w.submits = w.submits[:0]
		return
	}
	n, err := w.engine.Submit(w.submits)
	w.submits = append(w.submits[:0], w.submits[n:]...)
	if err != nil && !errors.Is(err, doca.ErrQueueFull) {
		w.fail(fmt.Errorf("submitting a copy: %w", err))
	}
}

// await waits for the engine if it has something, else for a worker, and takes from the other what is there. One of them has:
// an engine with nothing in flight takes at least one copy.
func (w *window) await(ctx context.Context) error {
	if w.engine.Inflight() > 0 {
		return w.awaitEngine(ctx)
	}
	return w.awaitWorker(ctx)
}

func (w *window) awaitEngine(ctx context.Context) error {
	n, err := w.engine.Reap(ctx, w.reaped)
	if err != nil {
		return err
	}
	for _, c := range w.reaped[:n] {
		w.copied(c)
	}
	w.takeWorked()
	return nil
}

func (w *window) awaitWorker(ctx context.Context) error {
	select {
	case r := <-w.worked:
		w.filed(r)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *window) takeWorked() {
	for {
		select {
		case r := <-w.worked:
			w.filed(r)
		default:
			return
		}
	}
}

func (w *window) copied(c doca.Completion) {
	slot := int(c.Tag)
	if c.Err != nil {
		w.fail(fmt.Errorf("copying %d bytes at %d: %w", w.chunks[slot].length, w.chunks[slot].offset, c.Err))
	}
	if w.failure == nil {
		w.advance(slot, atDMA)
	}
}

func (w *window) filed(r fileResult) {
	w.filing--
	w.fail(r.err)
	if w.failure == nil {
		w.advance(r.slot, atFile)
	}
}

// fail keeps the first failure: what follows it is its consequence.
func (w *window) fail(err error) {
	if w.failure == nil {
		w.failure = err
	}
}
