package contest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// copiesPerClient makes the share of a client a multiple of a tenth of what is fair.
const copiesPerClient = 10

// clientWork is what is copied in a run, by one client or by several at once: the same file to many targets.
type clientWork struct {
	size   int64 // bytes of the file
	copies int
}

func (w clientWork) bytes() int64 { return w.size * int64(w.copies) }

// copies returns how many copies of a file the clients make in a run.
func (p *ConnectedPlan) copies() int { return p.Clients * copiesPerClient }

// measureClients compares several clients at once with one that does the same work. Only a daemon on the DPU has
// several connections at a time.
func (b *connectedBench) measureClients(ctx context.Context) (results []ClientsResult, err error) {
	at := slices.IndexFunc(b.links, func(l *link) bool { return l.daemon.side == DaemonOnDPU })
	if b.Connected.Clients == 0 || at < 0 {
		return nil, nil
	}
	work := clientWork{size: slices.Min(b.Connected.Sizes), copies: b.Connected.copies()}
	if err := b.workspace.reset(); err != nil {
		return nil, err
	}
	if err := b.workspace.makeSource(ctx, work.size); err != nil {
		return nil, err
	}
	clients, err := b.links[at].moreClients(ctx, b.Connected.Clients)
	defer func() { err = errors.Join(err, closeClients(clients)) }()
	if err != nil {
		return nil, err
	}
	return b.compareClients(ctx, b.links[at], clients, work)
}

// moreClients connects further clients to the daemon of a link.
func (l *link) moreClients(ctx context.Context, count int) (clients []*service.Client, err error) {
	for range count {
		client, err := l.daemon.connect(ctx, l.software)
		if err != nil {
			return clients, fmt.Errorf("connecting client %d: %w", len(clients)+1, err)
		}
		clients = append(clients, client)
	}
	return clients, nil
}

func closeClients(clients []*service.Client) error {
	var errs []error
	for _, client := range clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

func (b *connectedBench) compareClients(
	ctx context.Context, l *link, clients []*service.Client, work clientWork,
) ([]ClientsResult, error) {
	var all []*clientsCopy
	var candidates []bench.Candidate
	conditions := b.workspace.newConditions(work.bytes())
	for _, v := range b.Connected.variants() {
		for _, count := range slices.Compact([]int{1, len(clients)}) {
			c := &clientsCopy{conditions: conditions, variant: v, link: l, clients: clients[:count], work: work}
			all, candidates = append(all, c), append(candidates, c)
		}
	}
	b.notify("%s at once, %d copies of %s: %s in %s each", quantity.Count(len(clients), "client"), work.copies,
		bench.SizeText(work.size), quantity.Count(len(candidates), "candidate"),
		quantity.Count(b.Runs+b.Warmup, "round"))
	outcomes, err := b.Rounds().Measure(ctx, candidates)
	if err != nil {
		return nil, err
	}
	var results []ClientsResult
	for i, c := range all {
		results = append(results, c.result(outcomes[i]))
	}
	setClientRatios(results)
	return results, nil
}

// clientsCopy is the candidate that copies a file many times. Each client takes the next copy when it has made one, so
// a client that is served more slowly makes fewer.
type clientsCopy struct {
	*conditions
	variant
	*link
	clients []*service.Client
	work    clientWork

	slowest []float64 // share of the client with the fewest copies, for each run; 1: what is fair
}

func (c *clientsCopy) Prepare(ctx context.Context) error {
	if err := c.establish(); err != nil {
		return err
	}
	for _, client := range c.clients {
		if err := c.warmUp(ctx, client, c.variant); err != nil {
			return err
		}
	}
	return nil
}

func (c *clientsCopy) targetOf(number int) string {
	return disk.Join(c.link.workspace.targetDir(), fmt.Sprint(number))
}

func (c *clientsCopy) Run(ctx context.Context) (bench.Run, error) {
	var next atomic.Int64
	made := make([]int, len(c.clients))
	run, err := c.daemon.timed(func() error {
		group, ctx := errgroup.WithContext(ctx)
		for i, client := range c.clients {
			group.Go(func() error {
				for {
					number := int(next.Add(1))
					if number > c.work.copies {
						return nil
					}
					source := c.link.workspace.source()
					if _, err := c.copy(ctx, client, c.variant, source, c.targetOf(number), false); err != nil {
						return fmt.Errorf("client %d: %w", i+1, err)
					}
					made[i]++
				}
			})
		}
		return group.Wait()
	})
	c.slowest = append(c.slowest, float64(slices.Min(made)*len(made))/float64(c.work.copies))
	return run, err
}

func (c *clientsCopy) Check(ctx context.Context, thoroughly bool) error {
	for number := 1; number <= c.work.copies; number++ {
		target := c.targetOf(number)
		info, err := os.Stat(target)
		switch {
		case err != nil:
			return err
		case info.Size() != c.work.size:
			return fmt.Errorf("copy %d has %d bytes, not %d", number, info.Size(), c.work.size)
		case !thoroughly:
			continue
		}
		at, err := filetree.CompareFiles(ctx, c.link.workspace.source(), target)
		if err == nil && at >= 0 {
			err = fmt.Errorf("copy %d differs from the source, first at offset %d", number, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *clientsCopy) result(o bench.Outcome) ClientsResult {
	r := ClientsResult{
		Clients: len(c.clients), Daemon: c.daemon.side, Copies: c.work.copies, Bytes: c.work.size,
		Direction: c.direction, Chunk: c.chunk, Depth: c.depth, Digest: c.digest, Path: c.path,
		Commands: [][]string{c.daemon.argv}, MemoryTouched: c.memoryTouched,
	}
	if o.Err != nil {
		r.Error = o.Err.Error()
		return r
	}
	r.Seconds, r.Slowest = o.Spread(bench.SecondsOf), slices.Min(c.slowest[len(c.slowest)-len(o.Runs):])
	r.Rate = float64(c.work.bytes()) / r.Seconds.P50
	if cpu := o.Spread(bench.CPUOf); cpu != nil {
		r.CPUPerGiB = cpu.P50 / (float64(c.work.bytes()) / gibibyte)
	}
	return r
}

// setClientRatios sets the ratios of several clients to the one before them, which did the same alone.
func setClientRatios(results []ClientsResult) {
	var one *ClientsResult
	for i := range results {
		r := &results[i]
		if r.Clients == 1 {
			one = r
		}
		if one != nil && one.Seconds != nil && r.Seconds != nil {
			r.Ratio = r.Rate / one.Rate
		}
	}
}
