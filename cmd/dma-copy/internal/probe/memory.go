package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// The probes of memory and of the DMA engine, within one side.

const (
	publishedTask = 2 << 20 // bytes
	manyTasks     = 128     // in flight
	smallSize     = 64 << 10
)

// fill fills memory with bytes that differ from those of other seeds and of other places.
func fill(memory []byte, seed int) {
	for i := range memory {
		memory[i] = byte(i) + byte(i>>8)*3 + byte(i>>16)*7 + byte(seed)*31 + 1
	}
}

// same returns the difference of memory from what it has to have.
func same(got, want []byte) error {
	for i := range got {
		if got[i] != want[i] {
			return differs("byte %d of %d is wrong", i, len(got))
		}
	}
	return nil
}

func (t *trial) region(size int64, access doca.Access) (*doca.Region, error) {
	region, err := t.Device.Alloc(size, access)
	if err == nil {
		t.use(region.Close)
	}
	return region, err
}

// buffers returns a source, which is filled, and a target.
func (t *trial) buffers(size int64) (source, target *doca.Region, err error) {
	if source, err = t.region(size, doca.LocalRead); err != nil {
		return nil, nil, err
	}
	fill(source.Bytes(), 1)
	target, err = t.region(size, doca.LocalWrite)
	return source, target, err
}

// engine is opened after the memory of its copies, and so closed before it.
func (t *trial) engine(depth int) (*doca.Engine, error) {
	engine, err := t.Device.NewEngine(depth)
	if err == nil {
		t.use(engine.Close)
	}
	return engine, err
}

// reap submits copies and returns their completions as they come, all of them unless the engine fails.
func (t *trial) reap(engine *doca.Engine, copies ...doca.Copy) (done []doca.Completion, err error) {
	into := make([]doca.Completion, manyTasks)
	for sent := 0; len(done) < len(copies); {
		if sent < len(copies) {
			n, err := engine.Submit(copies[sent:])
			if sent += n; err != nil && !errors.Is(err, doca.ErrQueueFull) {
				return done, err
			}
		}
		n, err := engine.Reap(t.ctx, into)
		if err != nil {
			return done, err
		}
		done = append(done, into[:n]...)
	}
	return done, nil
}

// copied makes copies on an engine, which have to succeed.
func (t *trial) copied(engine *doca.Engine, copies ...doca.Copy) error {
	done, err := t.reap(engine, copies...)
	for _, c := range done {
		err = errors.Join(err, c.Err)
	}
	if err != nil {
		return differs("%d copies: %s", len(copies), firstLine(err))
	}
	return nil
}

// moved makes one copy on an engine of its own, which has to move the bytes.
func (t *trial) moved(c doca.Copy, source, target []byte) error {
	engine, err := t.engine(1)
	if err == nil {
		err = t.copied(engine, c)
	}
	if err != nil {
		return err
	}
	from, to := source[c.SourceOffset:][:c.Length], target[c.TargetOffset:][:c.Length]
	return same(to, from)
}

func firstLine(err error) string {
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return string(line)
}

func published(what string, got, want uint64) (string, error) {
	if got != want {
		return "", differs("%s: %d, published are %d", what, got, want)
	}
	return fmt.Sprintf("%s: %d", what, got), nil
}

func taskSize(t *trial) (string, error) {
	return published("bytes of a task", t.Device.Info().MaxBufferSize, publishedTask)
}

func taskLargest(t *trial) (string, error) {
	size := int64(t.Device.Info().MaxBufferSize)
	source, target, err := t.buffers(size)
	if err != nil {
		return "", err
	}
	return quantity.Bytes(uint64(size)) + " copied",
		t.moved(doca.Copy{Source: source, Target: target, Length: size}, source.Bytes(), target.Bytes())
}

// taskTooLarge expects that a task above the limit fails, and the one behind it, and that a new engine then works.
func taskTooLarge(t *trial) (string, error) {
	size := int64(t.Device.Info().MaxBufferSize) + 1
	source, target, err := t.buffers(size)
	if err != nil {
		return "", err
	}
	engine, err := t.engine(2)
	if err != nil {
		return "", err
	}
	tooLarge := doca.Copy{Source: source, Target: target, Length: size, Tag: 1}
	done, err := t.reap(engine, tooLarge, doca.Copy{Source: source, Target: target, Length: 1, Tag: 2})
	switch {
	case err != nil:
		return "", differs("it is refused when it is submitted: %s", firstLine(err))
	case len(done) != 2 || done[0].Err == nil && done[1].Err == nil:
		return "", differs("it succeeds")
	case !errors.Is(done[0].Err, doca.CodeIOFailed) && !errors.Is(done[1].Err, doca.CodeIOFailed):
		return "", differs("it fails with another error: %s", firstLine(done[0].Err))
	}
	small := doca.Copy{Source: source, Target: target, Length: smallSize}
	return "it is accepted and fails, and a new engine works", t.moved(small, source.Bytes(), target.Bytes())
}

func alignment(t *trial) (string, error) {
	source, target, err := t.buffers(smallSize)
	if err != nil {
		return "", err
	}
	for _, c := range []doca.Copy{
		{SourceOffset: 1, TargetOffset: 2, Length: 1}, {SourceOffset: 3, TargetOffset: 0, Length: 7},
		{SourceOffset: 4095, TargetOffset: 1, Length: 4097}, {SourceOffset: 63, TargetOffset: 65, Length: 30_001},
	} {
		c.Source, c.Target = source, target
		if err := t.moved(c, source.Bytes(), target.Bytes()); err != nil {
			return "", at(err, "%d bytes from %d to %d", c.Length, c.SourceOffset, c.TargetOffset)
		}
	}
	return "any offset and length", nil
}

func manyInFlight(t *trial) (string, error) { return t.inFlight(false) }

func completionOrder(t *trial) (string, error) { return t.inFlight(true) }

// inFlight has many tasks in flight, and compares bytes, or the order of the completions.
func (t *trial) inFlight(order bool) (string, error) {
	deepest, err := t.Device.MaxDepth()
	if err != nil {
		return "", err
	}
	source, target, err := t.buffers(manyTasks * 4096)
	if err != nil {
		return "", err
	}
	engine, err := t.engine(min(deepest, manyTasks))
	if err != nil {
		return "", differs("no engine for %d tasks: %s", min(deepest, manyTasks), err)
	}
	copies := make([]doca.Copy, manyTasks)
	for i := range copies {
		at := int64(i) * 4096
		copies[i] = doca.Copy{
			Source: source, Target: target, SourceOffset: at, TargetOffset: at, Length: 4096, Tag: uint64(i),
		}
	}
	done, err := t.reap(engine, copies...)
	for i, c := range done {
		if err == nil && c.Err != nil {
			err = c.Err
		}
		if order && c.Tag != uint64(i) {
			return "", differs("task %d of %d completes as number %d", c.Tag+1, manyTasks, i+1)
		}
	}
	switch {
	case err != nil:
		return "", differs("%s", firstLine(err))
	case order:
		return "as submitted", nil
	case deepest < manyTasks:
		return "", differs("at most %d tasks", deepest)
	}
	return "at most " + quantity.Count(deepest, "task"), same(target.Bytes(), source.Bytes())
}

func sourceLists(t *trial) (string, error) {
	source, target, err := t.buffers(smallSize)
	if err != nil {
		return "", err
	}
	engine, err := t.engine(1)
	if err != nil {
		return "", err
	}
	ranges := engine.MaxRanges()
	if ranges < 2 {
		return "", differs("the device has no lists")
	}
	c := doca.Copy{Source: source, Target: target, SourceOffset: 5, Length: 100}
	want := bytes.Clone(source.Bytes()[5:105])
	for i := 1; i < ranges; i++ {
		r := doca.Range{Offset: int64(i) * 301 % 60_000, Length: int64(i%7) + 1}
		c.More = append(c.More, r)
		want = append(want, source.Bytes()[r.Offset:r.Offset+r.Length]...)
	}
	if err := t.copied(engine, c); err != nil {
		return "", err
	}
	return quantity.Count(ranges, "range") + " in one task", same(target.Bytes()[:len(want)], want)
}

// readOnly expects that a copy into memory that is registered for reading fails and changes nothing.
func readOnly(t *trial) (string, error) {
	source, err := t.region(smallSize, doca.LocalRead)
	if err != nil {
		return "", err
	}
	fill(source.Bytes(), 1)
	target, err := t.region(smallSize, doca.LocalRead)
	if err != nil {
		return "", err
	}
	return t.refused(doca.Copy{Source: source, Target: target, Length: smallSize}, func() ([]byte, error) {
		return target.Bytes(), nil
	})
}

// refused expects that a copy fails, and that its target then has zeros only.
func (t *trial) refused(c doca.Copy, target func() ([]byte, error)) (string, error) {
	engine, err := t.engine(1)
	if err != nil {
		return "", err
	}
	done, err := t.reap(engine, c)
	if len(done) > 0 && err == nil {
		err = done[0].Err
	}
	if err == nil {
		return "", differs("the copy succeeds")
	}
	found := "refused: " + firstLine(err)
	after, err := target()
	if err == nil {
		err = same(after, make([]byte, len(after)))
	}
	return found, err
}

// mappedFile registers this program's own file, which is on a disk and only read.
func mappedFile(t *trial) (string, error) {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer file.Close()
	want := make([]byte, smallSize)
	if _, err := file.ReadAt(want, 0); err != nil {
		return "", err
	}
	source, err := t.Device.MapFile(file, smallSize, doca.LocalRead|doca.RemoteRead)
	if err != nil {
		return "", differs("%s", firstLine(err))
	}
	t.use(source.Close)
	target, err := t.region(smallSize, doca.LocalWrite)
	if err != nil {
		return "", err
	}
	return "registered, and copied from", t.moved(doca.Copy{Source: source, Target: target, Length: smallSize}, want,
		target.Bytes())
}

// memoryInUse ends a registration that a copy reads from. If the driver permits it, at most a read of that copy fails.
func memoryInUse(t *trial) (string, error) {
	source, target, err := t.buffers(smallSize)
	if err != nil {
		return "", err
	}
	engine, err := t.engine(1)
	if err != nil {
		return "", err
	}
	if _, err := engine.Submit([]doca.Copy{{Source: source, Target: target, Length: smallSize}}); err != nil {
		return "", err
	}
	if err := source.Close(); !errors.Is(err, doca.CodeNotPermitted) {
		return "", differs("the registration ends: %v", err)
	}
	if _, err := engine.Reap(t.ctx, make([]doca.Completion, 1)); err != nil {
		return "", err
	}
	return "refused until the copy has completed", nil
}

// window registers as much memory as a copy does at most by default, and exports it.
func window(t *trial) (string, error) {
	region, err := t.region(native.DefaultWindow, doca.LocalWrite|doca.RemoteWrite)
	if err != nil {
		return "", differs("%s", firstLine(err))
	}
	descriptor, err := region.Export()
	limit := int(t.Device.Info().MaxMessage) - 24
	switch {
	case err != nil:
		return "", differs("%s", firstLine(err))
	case len(descriptor) > limit:
		return "", differs("the descriptor has %d bytes, and a message space for %d", len(descriptor), limit)
	}
	return quantity.Bytes(uint64(native.DefaultWindow)) + " registered; descriptor of " +
		quantity.Bytes(uint64(len(descriptor))), nil
}

// severalEngines has four engines copy at the same time.
func severalEngines(t *trial) (string, error) {
	const engines = 4
	source, target, err := t.buffers(engines * smallSize)
	if err != nil {
		return "", err
	}
	var opened [engines]*doca.Engine
	for i := range opened {
		if opened[i], err = t.engine(1); err != nil {
			return "", differs("engine %d: %s", i+1, firstLine(err))
		}
	}
	for i, engine := range opened {
		at := int64(i) * smallSize
		_, err := engine.Submit([]doca.Copy{
			{Source: source, Target: target, SourceOffset: at, TargetOffset: at, Length: smallSize},
		})
		if err != nil {
			return "", differs("engine %d: %s", i+1, firstLine(err))
		}
	}
	for i, engine := range opened {
		var done [1]doca.Completion
		if _, err := engine.Reap(t.ctx, done[:]); err != nil || done[0].Err != nil {
			return "", differs("engine %d: %s", i+1, firstLine(errors.Join(err, done[0].Err)))
		}
	}
	return "four at once", same(target.Bytes(), source.Bytes())
}

func engineNotifies(t *trial) (string, error) {
	source, target, err := t.buffers(smallSize)
	if err != nil {
		return "", err
	}
	engine, err := t.engine(1)
	if err != nil {
		return "", err
	}
	waiting, cancel := context.WithTimeout(t.ctx, noticeTime)
	defer cancel()
	notified, err := engine.SubmitNotified(waiting, doca.Copy{Source: source, Target: target, Length: smallSize})
	switch {
	case err != nil:
		return "", differs("%s", firstLine(err))
	case !notified:
		return "", differs("no notification within %s", noticeTime)
	}
	if _, err := engine.Reap(t.ctx, make([]doca.Completion, 1)); err != nil {
		return "", err
	}
	return "the armed handle was readable", same(target.Bytes(), source.Bytes())
}
