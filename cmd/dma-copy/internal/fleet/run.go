package fleet

import "context"

// End is the end of one assignment, with a result of the caller's type.
type End[R any] struct {
	Assignment
	Outcome Outcome
	Result  R
}

// Run makes the copies of a Planner, each in a goroutine of its own, and calls ended in its own goroutine as each ends.
// It starts none once ctx has ended, or ended has returned false; those that run are waited for. It returns when none
// runs any more; the Planner then says how many peers were not reached.
func Run[R any](
	ctx context.Context, p *Planner, send func(context.Context, Assignment) (Outcome, R), ended func(End[R]) bool,
) {
	ends := make(chan End[R])
	goOn := true
	for running := 0; ; {
		for goOn && ctx.Err() == nil {
			a, is := p.Next()
			if !is {
				break
			}
			running++
			go func() {
				outcome, result := send(ctx, a)
				ends <- End[R]{a, outcome, result}
			}()
		}
		if running == 0 {
			return
		}
		end := <-ends
		running--
		p.End(end.Assignment, end.Outcome)
		goOn = ended(end) && goOn
	}
}
