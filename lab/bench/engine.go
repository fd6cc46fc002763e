package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// memoryPair is the memory on both sides for one direction.
type memoryPair struct {
	source, target           doca.Memory // for the engine
	sourceBytes, targetBytes []byte      // the same memory as seen by this process
}

// engineCopy is the candidate for one task size at one depth in one direction.
type engineCopy struct {
	device *doca.Device
	memory memoryPair
	chunk  int64
	depth  int
	bytes  int64
	moves  bool // false: tasks complete without copying

	engine *doca.Engine
	loop   engineLoop
}

// Prepare opens an engine and clears the target, which may have the content of an earlier run.
func (c *engineCopy) Prepare(context.Context) (err error) {
	if deepest, err := c.device.MaxDepth(); err == nil && c.depth > deepest {
		return fmt.Errorf("depth %d exceeds the device's limit of %d tasks in flight", c.depth, deepest)
	}
	if !taskFits(c.device, c.chunk) {
		return fmt.Errorf("tasks of %s exceed the device's limit of %s",
			SizeText(c.chunk), SizeText(int64(c.device.Info().MaxBufferSize)))
	}
	clear(c.memory.targetBytes[:c.window()])
	if c.engine, err = c.device.NewEngine(c.depth); err != nil {
		return err
	}
	c.loop = newEngineLoop(c)
	return nil
}

// window returns the size of the memory in use, which is that of a transfer with this chunk and depth.
func (c *engineCopy) window() int64 { return c.chunk * int64(c.depth) }

func (c *engineCopy) tasks() int { return int((c.bytes + c.chunk - 1) / c.chunk) }

func (c *engineCopy) Run(ctx context.Context) (Run, error) {
	before, began := processorTime(), time.Now()
	if err := c.loop.run(ctx, c.tasks()); err != nil {
		return Run{}, err
	}
	return Run{Seconds: time.Since(began).Seconds(), CPU: processorTime() - before}, nil
}

// Check closes the engine, also after a failed run.
func (c *engineCopy) Check(_ context.Context, thoroughly bool) error {
	if err := c.engine.Close(); err != nil {
		return err
	}
	used := min(c.window(), int64(c.tasks())*c.chunk)
	if thoroughly && c.moves && !bytes.Equal(c.memory.sourceBytes[:used], c.memory.targetBytes[:used]) {
		return errors.New("the target differs from the source")
	}
	return nil
}

// engineLoop keeps the queue of an engine full. It allocates nothing while it runs.
type engineLoop struct {
	engine      *doca.Engine
	vacant      []int // slots
	copies      []doca.Copy
	waiting     []doca.Copy // those of copies that the engine has not accepted yet
	completions []doca.Completion
	copyOf      func(slot int) doca.Copy
}

func newEngineLoop(c *engineCopy) engineLoop {
	loop := engineLoop{
		engine: c.engine, vacant: make([]int, c.depth), copies: make([]doca.Copy, 0, c.depth),
		completions: make([]doca.Completion, c.depth),
		copyOf: func(slot int) doca.Copy {
			at := int64(slot) * c.chunk
			return doca.Copy{
				Source: c.memory.source, Target: c.memory.target,
				SourceOffset: at, TargetOffset: at, Length: c.chunk, Tag: uint64(slot),
			}
		},
	}
	for slot := range loop.vacant {
		// The last one is used first, so that few tasks use only the start of the window.
		loop.vacant[slot] = c.depth - 1 - slot
	}
	return loop
}

func (l *engineLoop) run(ctx context.Context, tasks int) error {
	for begun, done := 0, 0; done < tasks; {
		begun += l.fill(tasks - begun)
		if err := l.submit(); err != nil {
			return err
		}
		n, err := l.reap(ctx)
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}

// fill prepares a copy for each vacant slot, at most so many, once the engine has accepted the previous ones. It
// returns their number.
func (l *engineLoop) fill(most int) int {
	if len(l.waiting) > 0 {
		return 0
	}
	l.copies = l.copies[:0]
	for len(l.vacant) > 0 && len(l.copies) < most {
		last := len(l.vacant) - 1
		l.copies = append(l.copies, l.copyOf(l.vacant[last]))
		l.vacant = l.vacant[:last]
	}
	l.waiting = l.copies
	return len(l.copies)
}

func (l *engineLoop) submit() error {
	if len(l.waiting) == 0 {
		return nil
	}
	taken, err := l.engine.Submit(l.waiting)
	l.waiting = l.waiting[taken:]
	if errors.Is(err, doca.ErrQueueFull) {
		return nil
	}
	return err
}

func (l *engineLoop) reap(ctx context.Context) (int, error) {
	n, err := l.engine.Reap(ctx, l.completions)
	if err != nil {
		return n, err
	}
	for _, completion := range l.completions[:n] {
		if completion.Err != nil {
			return n, completion.Err
		}
		l.vacant = append(l.vacant, int(completion.Tag))
	}
	return n, nil
}

// processorTime returns the CPU time that this process has used so far, in seconds.
func processorTime() float64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func fillNoise(memory []byte) {
	_, _ = rand.NewChaCha8([32]byte{2}).Read(memory) // never fails
}
