package reference

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// stage is what is being done to a slot.
type stage int

const (
	vacant stage = iota // no chunk in it
	atFile              // a worker reads it from, or writes it to, the file
	atDMA               // the engine copies it
)

// route maps each stage of a slot to the next one.
type route map[stage]stage

var (
	receivingRoute = route{vacant: atDMA, atDMA: atFile, atFile: vacant}
	sendingRoute   = route{vacant: atFile, atFile: atDMA, atDMA: vacant}
)

// chunk is a range of the file, in bytes.
type chunk struct {
	offset int64
	length int64
}

// pipeline copies a file between the disk and the host's memory through a fixed number of slots.
//
//	receiving  vacant ─► atDMA ─► atFile ─► vacant
//	sending    vacant ─► atFile ─► atDMA ─► vacant
//
// The goroutine that calls run owns the engine and decides where each slot goes next; fileWorkers others do file calls.
// Chunks finish in any order, since each has its own offset in the file. Nothing is allocated per chunk.
type pipeline struct {
	config  pipelineConfig
	done    int64   // bytes
	next    int64   // offset of the first chunk that has no slot yet
	chunks  []chunk // by slot
	vacant  []int   // slots
	submits []doca.Copy
	reaped  []doca.Completion
	work    chan int // slots for the workers
	worked  chan fileResult
	filing  int // slots that are with the workers
	failure error
	inUse   atomic.Int64 // slots that are not vacant, for standstill
}

type fileResult struct {
	slot int
	err  error
}

// pipelineConfig is what a pipeline needs; all of it stays the caller's.
type pipelineConfig struct {
	engine *doca.Engine
	slots  *doca.Region // a whole number of chunks, at least one
	remote *doca.Remote // at least size bytes
	route  route
	file   func(buffer []byte, offset int64) error // reads or writes a chunk; called from several goroutines at once
	moved  func(length int64)                      // called for every chunk that is done
	size   int64
	chunk  int64
}

func newPipeline(c pipelineConfig) *pipeline {
	count := int(c.slots.Len() / c.chunk)
	p := &pipeline{
		config:  c,
		chunks:  make([]chunk, count),
		vacant:  make([]int, count),
		submits: make([]doca.Copy, 0, count),
		reaped:  make([]doca.Completion, 1),
		work:    make(chan int, count),
		worked:  make(chan fileResult, count),
	}
	for i := range p.vacant {
		p.vacant[i] = i
	}
	return p
}

// run moves the whole file. When it returns no worker is using a slot; after an error copies may be, until the engine
// is closed.
func (p *pipeline) run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range fileWorkers {
		workers.Go(p.serveFile)
	}
	defer workers.Wait()
	defer close(p.work)
	return p.loop(ctx)
}

func (p *pipeline) serveFile() {
	for slot := range p.work {
		p.worked <- fileResult{slot: slot, err: p.moveFile(slot)}
	}
}

func (p *pipeline) moveFile(slot int) (err error) {
	defer job.Recover(&err)
	return p.config.file(p.buffer(slot), p.chunks[slot].offset)
}

func (p *pipeline) buffer(slot int) []byte {
	start := int64(slot) * p.config.chunk
	return p.config.slots.Bytes()[start : start+p.chunks[slot].length]
}

// loop ends when every chunk has arrived, or when after a failure nothing is under way any more.
func (p *pipeline) loop(ctx context.Context) error {
	for {
		p.fill()
		p.inUse.Store(int64(len(p.chunks) - len(p.vacant)))
		p.submit()
		if p.finished() {
			return p.outcome()
		}
		if err := p.await(ctx); err != nil {
			return errors.Join(p.failure, err)
		}
	}
}

// finished reports whether nothing is under way, and nothing is left to do unless it failed. Copies that the engine has
// refused for now are left to do.
func (p *pipeline) finished() bool {
	if p.config.engine.Inflight() > 0 || p.filing > 0 {
		return false
	}
	return p.failure != nil || (len(p.submits) == 0 && p.next == p.config.size)
}

// outcome returns the failure, or checks that as many bytes were copied as the file has.
func (p *pipeline) outcome() error {
	if p.failure == nil && p.done != p.config.size {
		return fmt.Errorf("internal error: %d of %d bytes were accounted for", p.done, p.config.size)
	}
	return p.failure
}

// fill gives vacant slots the next chunks.
func (p *pipeline) fill() {
	for len(p.vacant) > 0 && p.next < p.config.size && p.failure == nil {
		slot := p.vacant[len(p.vacant)-1]
		p.vacant = p.vacant[:len(p.vacant)-1]
		p.chunks[slot] = chunk{offset: p.next, length: min(p.config.chunk, p.config.size-p.next)}
		p.next += p.chunks[slot].length
		p.advance(slot, vacant)
	}
}

// advance moves a slot that has done with a stage to the next.
func (p *pipeline) advance(slot int, done stage) {
	switch p.config.route[done] {
	case atFile:
		p.filing++
		p.work <- slot
	case atDMA:
		p.submits = append(p.submits, p.task(slot))
	case vacant:
		p.done += p.chunks[slot].length
		p.vacant = append(p.vacant, slot)
		p.config.moved(p.chunks[slot].length)
	}
}

func (p *pipeline) task(slot int) doca.Copy {
	c := p.chunks[slot]
	task := doca.Copy{Length: c.length, Tag: uint64(slot)}
	if p.config.route[vacant] == atDMA {
		task.Source, task.SourceOffset = p.config.remote, c.offset
		task.Target, task.TargetOffset = p.config.slots, int64(slot)*p.config.chunk
	} else {
		task.Source, task.SourceOffset = p.config.slots, int64(slot)*p.config.chunk
		task.Target, task.TargetOffset = p.config.remote, c.offset
	}
	return task
}

// submit hands the engine what is ready; what it does not accept is offered again in the next round.
func (p *pipeline) submit() {
	if len(p.submits) == 0 {
		return
	}
	if p.failure != nil {
		p.submits = p.submits[:0]
		return
	}
	n, err := p.config.engine.Submit(p.submits)
	p.submits = append(p.submits[:0], p.submits[n:]...)
	if err != nil && !errors.Is(err, doca.ErrQueueFull) {
		p.fail(fmt.Errorf("submitting a copy: %w", err))
	}
}

// await waits for the engine if it has something, else for a worker, and takes from the other what is there. One of
// them has: an engine with nothing in flight takes at least one copy.
func (p *pipeline) await(ctx context.Context) error {
	if p.config.engine.Inflight() > 0 {
		return p.awaitEngine(ctx)
	}
	return p.awaitWorker(ctx)
}

func (p *pipeline) awaitEngine(ctx context.Context) error {
	n, err := p.config.engine.Reap(ctx, p.reaped)
	if err != nil {
		return err
	}
	for _, c := range p.reaped[:n] {
		p.copied(c)
	}
	p.takeWorked()
	return nil
}

func (p *pipeline) awaitWorker(ctx context.Context) error {
	select {
	case r := <-p.worked:
		p.filed(r)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pipeline) takeWorked() {
	for {
		select {
		case r := <-p.worked:
			p.filed(r)
		default:
			return
		}
	}
}

func (p *pipeline) copied(c doca.Completion) {
	slot := int(c.Tag)
	if c.Err != nil {
		p.fail(fmt.Errorf("copying %d bytes at %d: %w", p.chunks[slot].length, p.chunks[slot].offset, c.Err))
	}
	if p.failure == nil {
		p.advance(slot, atDMA)
	}
}

func (p *pipeline) filed(r fileResult) {
	p.filing--
	p.fail(r.err)
	if p.failure == nil {
		p.advance(r.slot, atFile)
	}
}

// fail keeps the first failure: what follows it is its consequence.
func (p *pipeline) fail(err error) {
	if p.failure == nil {
		p.failure = err
	}
}
