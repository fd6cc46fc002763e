package contest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/lab/bench"
)

// drainTime is how long a process may take to end after SIGTERM.
const drainTime = 5 * time.Second

// child is one process of a run.
type child struct {
	path        string // empty: look up argv[0] in PATH
	argv        []string
	environment []string      // nil: that of this process
	directory   string        // empty: that of this process
	stdout      *bytes.Buffer // nil: discarded
}

// runStages runs the stages one after the other, the children of each in parallel, and returns the total time.
func runStages(ctx context.Context, stages [][]child) (run bench.Run, began time.Time, err error) {
	began = time.Now()
	for _, stage := range stages {
		cpu, err := runTogether(ctx, stage)
		if err != nil {
			return bench.Run{}, began, err
		}
		run.CPU += cpu
	}
	run.Seconds = time.Since(began).Seconds()
	return run, began, nil
}

// runTogether starts children in order, waits for all, and returns the CPU seconds of all. The first that fails ends
// the others.
func runTogether(ctx context.Context, children []child) (float64, error) {
	group, ctx := errgroup.WithContext(ctx)
	seconds := make([]float64, len(children))
	for i, j := range children {
		p, err := j.start(ctx)
		group.Go(func() error {
			if err == nil {
				seconds[i], err = p.wait(ctx)
			}
			return err
		})
	}
	err := group.Wait()
	var total float64
	for _, s := range seconds {
		total += s
	}
	return total, err
}

// process is a running child.
type process struct {
	child
	command *exec.Cmd
	stderr  bytes.Buffer
}

// start does not wait for the process, which is ended with ctx.
func (j child) start(ctx context.Context) (*process, error) {
	p := &process{child: j, command: exec.CommandContext(ctx, j.argv[0], j.argv[1:]...)}
	if j.path != "" {
		p.command.Path, p.command.Err = j.path, nil
	}
	p.command.Env, p.command.Dir, p.command.Stderr = j.environment, j.directory, &p.stderr
	if j.stdout != nil {
		j.stdout.Reset()
		p.command.Stdout = j.stdout
	}
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGTERM) }
	p.command.WaitDelay = drainTime
	return p, p.command.Start()
}

func (p *process) wait(ctx context.Context) (cpu float64, err error) {
	if err := p.command.Wait(); err != nil {
		return 0, p.failure(ctx, err)
	}
	return p.cpuSeconds(), nil
}

// cpuSeconds returns the CPU time of a process that was waited for, and of its children that it has waited for.
func (p *process) cpuSeconds() float64 {
	state := p.command.ProcessState
	return (state.UserTime() + state.SystemTime()).Seconds()
}

func (p *process) pid() int { return p.command.Process.Pid }

// runAlone starts the process, waits for it and returns its CPU time.
func (j child) runAlone(ctx context.Context) (cpu float64, err error) {
	p, err := j.start(ctx)
	if err != nil {
		return 0, err
	}
	return p.wait(ctx)
}

// failure returns an error with the last line of the process on stderr, or the cause of ctx if the process was ended
// because of another failure.
func (p *process) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	name, output := p.argv[0], strings.TrimSpace(p.stderr.String())
	if output == "" {
		return fmt.Errorf("%s: %w", name, err)
	}
	last := output[strings.LastIndexByte(output, '\n')+1:]
	return fmt.Errorf("%s: %w: %s", name, err, strings.TrimPrefix(last, name+": "))
}
