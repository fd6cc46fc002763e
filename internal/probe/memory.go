package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// The probes of memory and of the DMA engine, within one side.

const (
	manyTasks = 128 // in flight
	smallSize = 64 << 10
	mostTask  = 64 << 20 // bytes of a task for which memory is taken
)

// fill fills memory with bytes that depend on the seed and the place.
func fill(memory []byte, seed int) {
	for i := range memory {
		memory[i] = byte(i) + byte(i>>8)*3 + byte(i>>16)*7 + byte(seed)*31 + 1
	}
}

// same checks that memory has the bytes that it has to have.
func (t *trial) same(got, want []byte) {
	for i := range got {
		if got[i] != want[i] {
			t.differs("byte %d of %d is wrong", i, len(got))
		}
	}
}

func (t *trial) region(size int64, access doca.Access) *doca.Region {
	region, err := t.Device.Alloc(size, access)
	t.need(err)
	t.use(region.Close)
	return region
}

// source returns memory that is filled, with the same bytes on both sides.
func (t *trial) source(size int64) *doca.Region {
	region := t.region(size, doca.LocalRead)
	fill(region.Bytes(), 1)
	return region
}

// engine is opened after the memory of its copies, and so closed before it.
func (t *trial) engine(depth int) *doca.Engine {
	if !t.Device.Info().MemcpySupported {
		t.need(errors.New("the device does not copy memory"))
	}
	engine, err := t.Device.NewEngine(depth)
	t.check(err)
	t.use(engine.Close)
	return engine
}

// reap submits copies and returns their completions as they come, all of them unless the engine fails.
func (t *trial) reap(engine *doca.Engine, copies ...doca.Copy) (done []doca.Completion, err error) {
	into := make([]doca.Completion, manyTasks)
	for sent, n := 0, 0; len(done) < len(copies); done = append(done, into[:n]...) {
		if sent < len(copies) {
			if n, err = engine.Submit(copies[sent:]); err != nil && !errors.Is(err, doca.ErrQueueFull) {
				return done, err
			}
			sent += n
		}
		if n, err = engine.Reap(t.ctx, into); err != nil {
			return done, err
		}
	}
	return done, nil
}

// copies makes copies, which have to succeed.
func (t *trial) copies(engine *doca.Engine, copies ...doca.Copy) {
	done, err := t.reap(engine, copies...)
	for _, c := range done {
		err = errors.Join(err, c.Err)
	}
	t.check(err)
}

// moves makes one copy on an engine of its own, which has to move the bytes.
func (t *trial) moves(c doca.Copy, source, target []byte) {
	t.copies(t.engine(1), c)
	t.same(target[c.TargetOffset:][:c.Length], source[c.SourceOffset:][:c.Length])
}

// refuses makes one copy, which has to fail, and to leave zeros in the target.
func (t *trial) refuses(c doca.Copy, target []byte) string {
	done, err := t.reap(t.engine(1), c)
	if err == nil && done[0].Err == nil {
		t.differs("the copy succeeds")
	}
	t.same(target, make([]byte, len(target)))
	return "the copy is refused"
}

// published checks a limit that programs have seen.
func (t *trial) published(what string, got, want uint64) string {
	if got != want {
		t.differs("%s: %d, published are %d", what, got, want)
	}
	return fmt.Sprintf("%s: %d", what, got)
}

func taskSize(t *trial) string {
	return t.published("bytes of a task", t.Device.Info().MaxBufferSize, 2<<20)
}

// largestTask returns the size of the largest task, unless that is more memory than a probe takes.
func (t *trial) largestTask() int64 {
	size := t.Device.Info().MaxBufferSize
	if size > mostTask {
		t.need(fmt.Errorf("a task of %s takes too much memory: the limit of probes is %s",
			quantity.Bytes(size), quantity.Bytes(mostTask)))
	}
	return int64(size)
}

func taskLargest(t *trial) string {
	size := t.largestTask()
	source, target := t.source(size), t.region(size, doca.LocalWrite)
	t.moves(doca.Copy{Source: source, Target: target, Length: size}, source.Bytes(), target.Bytes())
	return quantity.Bytes(uint64(size)) + " copied"
}

// taskTooLarge expects that a task above the limit fails, and that a new engine then works.
func taskTooLarge(t *trial) string {
	size := t.largestTask() + 1
	source, target := t.source(size), t.region(size, doca.LocalWrite)
	done, err := t.reap(t.engine(1), doca.Copy{Source: source, Target: target, Length: size})
	switch {
	case err != nil:
		t.differs("it is refused when it is submitted: %s", err)
	case !errors.Is(done[0].Err, doca.CodeIOFailed):
		t.differs("it ends with %v", done[0].Err)
	}
	t.moves(doca.Copy{Source: source, Target: target, Length: smallSize}, source.Bytes(), target.Bytes())
	return "it is accepted and fails, and a new engine works"
}

func alignment(t *trial) string {
	source, target := t.source(smallSize), t.region(smallSize, doca.LocalWrite)
	for _, c := range []doca.Copy{
		{SourceOffset: 1, TargetOffset: 2, Length: 1}, {SourceOffset: 3, TargetOffset: 0, Length: 7},
		{SourceOffset: 4095, TargetOffset: 1, Length: 4097}, {SourceOffset: 63, TargetOffset: 65, Length: 30_001},
	} {
		c.Source, c.Target = source, target
		t.moves(c, source.Bytes(), target.Bytes())
	}
	return "any offset and length"
}

// tasksInFlight has many tasks in flight.
func tasksInFlight(t *trial) string {
	deepest, err := t.Device.MaxDepth()
	t.need(err)
	source, target := t.source(manyTasks*4096), t.region(manyTasks*4096, doca.LocalWrite)
	copies := make([]doca.Copy, manyTasks)
	for i := range copies {
		at := int64(i) * 4096
		copies[i] = doca.Copy{Source: source, Target: target, SourceOffset: at, TargetOffset: at, Length: 4096}
	}
	t.copies(t.engine(min(deepest, manyTasks)), copies...)
	t.same(target.Bytes(), source.Bytes())
	if deepest < manyTasks {
		t.differs("at most %d tasks", deepest)
	}
	return "at most " + quantity.Count(deepest, "task")
}

func sourceLists(t *trial) string {
	source, target := t.source(smallSize), t.region(smallSize, doca.LocalWrite)
	engine := t.engine(1)
	ranges := engine.MaxRanges()
	if ranges < 2 {
		t.differs("the device has no lists")
	}
	c := doca.Copy{Source: source, Target: target, SourceOffset: 5, Length: 100}
	want := bytes.Clone(source.Bytes()[5:105])
	for i := 1; i < ranges; i++ {
		r := doca.Range{Offset: int64(i) * 301 % 60_000, Length: int64(i%7) + 1}
		c.More = append(c.More, r)
		want = append(want, source.Bytes()[r.Offset:r.Offset+r.Length]...)
	}
	t.copies(engine, c)
	t.same(target.Bytes()[:len(want)], want)
	return quantity.Count(ranges, "range") + " in one task"
}

// readOnly copies into memory that is registered for reading.
func readOnly(t *trial) string {
	source, target := t.source(smallSize), t.region(smallSize, doca.LocalRead)
	return t.refuses(doca.Copy{Source: source, Target: target, Length: smallSize}, target.Bytes())
}

// mappedFile registers this program's own file, which is on a disk and only read.
func mappedFile(t *trial) string {
	file, err := os.Open("/proc/self/exe")
	t.need(err)
	defer file.Close()
	want := make([]byte, smallSize)
	_, err = file.ReadAt(want, 0)
	t.need(err)
	source, err := t.Device.MapFile(file, smallSize, doca.LocalRead|doca.RemoteRead)
	t.check(err)
	t.use(source.Close)
	target := t.region(smallSize, doca.LocalWrite)
	t.moves(doca.Copy{Source: source, Target: target, Length: smallSize}, want, target.Bytes())
	return "registered, and copied from"
}

// memoryInUse ends a registration that a copy reads from. If the driver permits it, at most a read of that copy fails.
func memoryInUse(t *trial) string {
	source, target := t.source(smallSize), t.region(smallSize, doca.LocalWrite)
	engine := t.engine(1)
	_, err := engine.Submit([]doca.Copy{{Source: source, Target: target, Length: smallSize}})
	t.check(err)
	if err := source.Close(); !errors.Is(err, doca.CodeNotPermitted) {
		t.differs("the registration ends: %v", err)
	}
	_, err = engine.Reap(t.ctx, make([]doca.Completion, 1))
	t.check(err)
	return "refused until the copy has completed"
}

// wholeWindow registers as much memory as a copy does at most by default, and exports it.
func wholeWindow(t *trial) string {
	region, err := t.Device.Alloc(window.DefaultWindow, doca.LocalWrite|doca.RemoteWrite)
	t.check(err)
	t.use(region.Close)
	descriptor, err := region.Export()
	if errors.Is(err, doca.CodeNotSupported) {
		t.need(errors.New("this device exports no memory, so copies do not use DMA"))
	}
	t.check(err)
	if limit := int(t.Device.Info().MaxMessage) - 24; len(descriptor) > limit {
		t.differs("the descriptor has %d bytes, and a message space for %d", len(descriptor), limit)
	}
	return fmt.Sprintf("%s; descriptor of %d bytes", quantity.Bytes(window.DefaultWindow), len(descriptor))
}

// severalEngines has four engines copy at the same time.
func severalEngines(t *trial) string {
	const engines = 4
	source, target := t.source(engines*smallSize), t.region(engines*smallSize, doca.LocalWrite)
	var opened [engines]*doca.Engine
	for i := range opened {
		opened[i] = t.engine(1)
	}
	for i, engine := range opened {
		at := int64(i) * smallSize
		_, err := engine.Submit([]doca.Copy{
			{Source: source, Target: target, SourceOffset: at, TargetOffset: at, Length: smallSize},
		})
		t.check(err)
	}
	for _, engine := range opened {
		var done [1]doca.Completion
		_, err := engine.Reap(t.ctx, done[:])
		t.check(errors.Join(err, done[0].Err))
	}
	t.same(target.Bytes(), source.Bytes())
	return "four at once"
}

func engineNotifies(t *trial) string {
	source, target := t.source(smallSize), t.region(smallSize, doca.LocalWrite)
	engine := t.engine(1)
	waiting, cancel := context.WithTimeout(t.ctx, noticeTime)
	defer cancel()
	notified, err := engine.SubmitNotified(waiting, doca.Copy{Source: source, Target: target, Length: smallSize})
	t.check(err)
	if !notified {
		t.differs("no notification within %s", noticeTime)
	}
	_, err = engine.Reap(t.ctx, make([]doca.Completion, 1))
	t.check(err)
	t.same(target.Bytes(), source.Bytes())
	return "the armed handle was readable"
}
