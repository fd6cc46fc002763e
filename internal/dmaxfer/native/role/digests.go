package role

import "context"

// DigestQueue makes calls that read whole files for their digests, in jobs and one after another. The owner of the
// transfer uses it.
type DigestQueue struct {
	Link  Link
	calls []func() // start the jobs; that of the first one is running
}

// Add makes a call after those that were added before, as Link.Run does.
func (d *DigestQueue) Add(ctx context.Context, job func(ctx context.Context) Call) {
	d.calls = append(d.calls, func() {
		d.Link.Run(ctx, func(ctx context.Context) Call {
			then := job(ctx)
			return func(ctx context.Context) error {
				if d.calls = d.calls[1:]; len(d.calls) > 0 {
					d.calls[0]()
				}
				return then(ctx)
			}
		})
	})
	if len(d.calls) == 1 {
		d.calls[0]()
	}
}
