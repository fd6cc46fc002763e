package bench

import (
	"context"
	"fmt"
	"slices"
)

// Run is the result of one timed run. Copy, Connected and FirstByte are 0 if the candidate does not report them.
type Run struct {
	Seconds   float64 // from the start of the first process to the end of the last
	CPU       float64 // seconds of user and system time, of all its processes
	Copy      float64 // seconds of the transfer alone
	Connected float64 // seconds from the start until both sides were connected
	FirstByte float64 // seconds from the start until the first byte could move
}

// candidate is one way to do the work of a group.
type candidate interface {
	// prepare establishes the conditions for a run. It is not timed.
	prepare(ctx context.Context) error

	// run does the work once.
	run(ctx context.Context) (Run, error)

	// check verifies the result, and its whole content if thoroughly is set. It is not timed.
	check(ctx context.Context, thoroughly bool) error
}

// outcome has the counted runs of a candidate, or the error that ended its runs.
type outcome struct {
	runs []Run
	err  error
}

// rounds is how often every candidate runs.
type rounds struct {
	warmup  int // rounds that do not count
	counted int
}

// measure runs every candidate once in each round, each time in another order. A candidate that fails does not run
// again. The error is the cause of ctx.
func (r rounds) measure(ctx context.Context, candidates []candidate) ([]outcome, error) {
	outcomes := make([]outcome, len(candidates))
	for round := range r.warmup + r.counted {
		for _, at := range roundOrder(len(candidates), round) {
			if outcomes[at].err != nil {
				continue
			}
			run, err := runOnce(ctx, candidates[at], round == r.warmup+r.counted-1)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			outcomes[at].add(run, err, round >= r.warmup)
		}
	}
	return outcomes, nil
}

// roundOrder returns the order of one round. In as many rounds as there are candidates each is the first once, and each
// follows each other one once (twice in twice as many rounds, if their number is odd), because a run affects the next
// one, for example by fragmented memory. It is Williams' Latin square, whose rows are 0, 1, n-1, 2, n-2 and so on, each
// shifted by one from the row before.
func roundOrder(count, round int) []int {
	order := make([]int, count)
	for i := range order {
		step := (i + 1) / 2
		if i%2 == 0 {
			step = count - step
		}
		order[i] = (step + round) % count
	}
	if count%2 == 1 && round/count%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

func runOnce(ctx context.Context, c candidate, last bool) (Run, error) {
	if err := c.prepare(ctx); err != nil {
		return Run{}, fmt.Errorf("preparing: %w", err)
	}
	run, err := c.run(ctx)
	if checkErr := c.check(ctx, last); err == nil && checkErr != nil {
		err = fmt.Errorf("checking: %w", checkErr)
	}
	return run, err
}

func (o *outcome) add(run Run, err error, counts bool) {
	switch {
	case err != nil:
		o.err = err
	case counts:
		o.runs = append(o.runs, run)
	}
}

// spread returns the distribution of one duration, or nil if the candidate failed or does not report it.
func (o outcome) spread(pick func(Run) float64) *Spread {
	var picked []float64
	for _, run := range o.runs {
		picked = append(picked, pick(run))
	}
	if o.err != nil || len(picked) == 0 || picked[0] == 0 {
		return nil
	}
	s := spreadOf(picked)
	return &s
}

func secondsOf(r Run) float64   { return r.Seconds }
func cpuOf(r Run) float64       { return r.CPU }
func copyOf(r Run) float64      { return r.Copy }
func connectedOf(r Run) float64 { return r.Connected }
func firstByteOf(r Run) float64 { return r.FirstByte }
