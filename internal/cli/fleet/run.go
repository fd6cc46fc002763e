package fleet

import "context"

// Run calls send for each number below count, in order, at most parallel at once, each in a goroutine of its own, and
// calls ended in its own goroutine as each returns. It starts none once ctx has ended, or ended has returned false;
// those that run are waited for.
func Run[R any](
	ctx context.Context, count, parallel int, send func(context.Context, int) R, ended func(int, R) bool,
) {
	type end struct {
		index  int
		result R
	}
	ends := make(chan end)
	goOn := true
	for next, running := 0, 0; ; {
		for goOn && ctx.Err() == nil && next < count && running < parallel {
			index := next
			next, running = next+1, running+1
			go func() { ends <- end{index, send(ctx, index)} }()
		}
		if running == 0 {
			return
		}
		e := <-ends
		running--
		goOn = ended(e.index, e.result) && goOn
	}
}
