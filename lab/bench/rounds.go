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

// Candidate is one way to do the work of a group.
type Candidate interface {
	// Prepare establishes the conditions for a run. It is not timed.
	Prepare(ctx context.Context) error

	// Run does the work once.
	Run(ctx context.Context) (Run, error)

	// Check verifies the result, and its whole content if thoroughly is set. It is not timed.
	Check(ctx context.Context, thoroughly bool) error
}

// Outcome has the counted runs of a candidate, or the error that ended its runs.
type Outcome struct {
	Runs []Run
	Err  error
}

// Rounds is how often every candidate runs.
type Rounds struct {
	Warmup  int // rounds that do not count
	Counted int
}

// Measure runs every candidate once in each round, each time in another order. A candidate that fails does not run
// again. The error is the cause of ctx.
func (r Rounds) Measure(ctx context.Context, candidates []Candidate) ([]Outcome, error) {
	outcomes := make([]Outcome, len(candidates))
	for round := range r.Warmup + r.Counted {
		for _, at := range roundOrder(len(candidates), round) {
			if outcomes[at].Err != nil {
				continue
			}
			run, err := runOnce(ctx, candidates[at], round == r.Warmup+r.Counted-1)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			outcomes[at].add(run, err, round >= r.Warmup)
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

func runOnce(ctx context.Context, c Candidate, last bool) (Run, error) {
	if err := c.Prepare(ctx); err != nil {
		return Run{}, fmt.Errorf("preparing: %w", err)
	}
	run, err := c.Run(ctx)
	if checkErr := c.Check(ctx, last); err == nil && checkErr != nil {
		err = fmt.Errorf("checking: %w", checkErr)
	}
	return run, err
}

func (o *Outcome) add(run Run, err error, counts bool) {
	switch {
	case err != nil:
		o.Err = err
	case counts:
		o.Runs = append(o.Runs, run)
	}
}

// Spread returns the distribution of one duration, or nil if the candidate failed or does not report it.
func (o Outcome) Spread(pick func(Run) float64) *Spread {
	var picked []float64
	for _, run := range o.Runs {
		picked = append(picked, pick(run))
	}
	if o.Err != nil || len(picked) == 0 || picked[0] == 0 {
		return nil
	}
	s := spreadOf(picked)
	return &s
}

// SecondsOf returns the duration of a run.
func SecondsOf(r Run) float64 { return r.Seconds }

// CPUOf returns the CPU time of a run.
func CPUOf(r Run) float64 { return r.CPU }
