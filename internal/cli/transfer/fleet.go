package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/fleet"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/share"
)

// pushToPeers carries out push with a list of peers and reports on it. refused is why the settings are refused, or nil.
func pushToPeers(
	ctx context.Context, streams root.Streams, s *Settings, refused error, log zerolog.Logger,
) error {
	r := output.NewFleet(streams.Stdout, streams.Stderr, streams.Screen, s.Form, log)
	err := copying.WithCPUProfile(s.CPUProfile, func() error {
		if refused != nil {
			return refused
		}
		p := &peersPush{settings: s, streams: streams, reporter: r, log: log}
		stop := r.Watch(root.ProgressRequests(ctx), p.requests.Pass)
		defer stop()
		ctx, cancel := root.LimitTime(ctx, s.Timeout)
		defer cancel()
		p.driver = sync.OnceValues(func() (*doca.Driver, error) {
			var err error
			p.opened, err = connect.OpenDriver(s.Driver.Options(), log)
			return p.opened, err
		})
		if err := p.prepare(ctx); err != nil {
			return err
		}
		return p.copyToAll(ctx)
	})
	return output.Ended(r, log, err)
}

// peersPush is one push to the peers of a list. Its fields do not change while copies run.
type peersPush struct {
	settings *Settings
	streams  root.Streams
	reporter *output.Fleet
	log      zerolog.Logger
	requests root.PeerRequests

	targets  []fleet.Target
	sources  []disk.Identity // of settings.Local, at the start; the zero Identity of a directory
	selected dmaxfer.Options // only what Select has set
	rules    []tree.Rule
	limiter  *rate.Limiter                // that all copies share; nil: none
	driver   func() (*doca.Driver, error) // opens it for all when the first needs it: its settings have to stay
	opened   *doca.Driver                 // by driver; nil: not yet
}

// copyToAll copies to the peers of the list and reports on them.
func (p *peersPush) copyToAll(ctx context.Context) error {
	p.reporter.Begin(len(p.targets))
	began := time.Now()
	tried, hung := make([]bool, len(p.targets)), error(nil)
	fleet.Run(ctx, len(p.targets), p.settings.Parallel, p.send, func(i int, result *output.PeerResult) bool {
		tried[i] = true
		if errors.Is(result.Err, job.ErrHung) {
			hung = result.Err
		}
		p.reporter.Ended(result)
		return result.Err == nil || !p.settings.Options.FailFast
	})
	left := p.reportRest(ctx, tried)
	err := p.reporter.Total(time.Since(began))
	if p.opened != nil {
		err = errors.Join(err, connect.CloseUnlessHung(hung, p.opened.Close))
	}
	if ctx.Err() != nil && (left || err != nil) {
		return fmt.Errorf("%w: run the same command for the rest", context.Cause(ctx))
	}
	return err
}

// prepare does once what every copy needs, before the first peer is looked for.
func (p *peersPush) prepare(ctx context.Context) error {
	s := p.settings
	listed := ""
	if s.To == option.Stream {
		listed = "--to -"
	}
	if err := copying.CheckStreams(p.streams.Closed, s.Settings, copying.OneStream(listed, true)); err != nil {
		return err
	}
	err := fileio.Interruptible(ctx, p.readTargets)
	if err != nil {
		return err
	}
	if p.rules, err = copying.Select(ctx, s.Settings, p.streams.Stdin, &p.selected); err != nil {
		return err
	}
	if p.sources, err = findSources(ctx, s); err != nil {
		return err
	}
	if err = s.Contact.Identify(p.streams.Env, p.log); err != nil {
		return err
	}
	if s.Options.Bandwidth > 0 {
		p.limiter = sharedLimiter(s.Options.Bandwidth)
	}
	return placement.Apply(placement.ThisMachine, "", s.Placement, p.log)
}

// sharedLimiter returns the limiter of all copies for a number of bytes per second. Its burst is what passes in an
// eighth of a second, so that short copies keep to it, too.
func sharedLimiter(bandwidth int64) *rate.Limiter {
	burst := min(max(bandwidth/8, 64<<10), wire.MaxChunk)
	return rate.NewLimiter(rate.Limit(bandwidth), int(burst))
}

func (p *peersPush) readTargets() error {
	var target *share.Remote
	if len(p.settings.Remote) > 0 {
		target = &p.settings.Remote[0]
	}
	parse := func(from io.Reader) ([]fleet.Target, error) { return fleet.ParseTargets(from, target) }
	targets, err := copying.ReadList("--to", p.settings.To, p.streams.Stdin, p.settings.IdleTimeout, parse)
	p.targets = targets
	for _, target := range targets {
		_, refused := p.settings.ForTarget(target.Remote).Ends()
		err = cmp.Or(err, refused)
	}
	return err
}

// findSources returns the identities of the sources. One that cannot be sent is an error now, not one of each peer.
func findSources(ctx context.Context, s *Settings) ([]disk.Identity, error) {
	all := make([]disk.Identity, len(s.Local))
	for i, path := range s.Local {
		file, err := job.Find(ctx, job.Search{
			FS: disk.OS, Path: path, Use: job.SourceUse, IdleTimeout: s.IdleTimeout,
		})
		if err != nil {
			return nil, err
		}
		file.Close()
		if all[i], err = identityOf(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// identityOf returns the identity of a file, the zero one for a directory.
func identityOf(path string) (disk.Identity, error) {
	info, err := disk.OS.Stat(path)
	if err != nil {
		return disk.Identity{}, disk.CannotStat(path, err)
	}
	if info.Mode.IsDir() {
		return disk.Identity{}, nil
	}
	return info.Identity, nil
}

// unchanged returns an error if a source is not what it was at the start, so that no two peers get different content.
func (p *peersPush) unchanged() error {
	if p.settings.Options.AllowChanging {
		return nil
	}
	for i, path := range p.settings.Local {
		now, err := identityOf(path)
		if err != nil {
			return err
		}
		if now != p.sources[i] {
			return job.NewError(job.ErrSourceChanged, nil, "run the same command again for all peers",
				"%s changed while it was copied to other peers", path)
		}
	}
	return nil
}

// send copies to the peer at an index of the list.
func (p *peersPush) send(ctx context.Context, index int) *output.PeerResult {
	target := p.targets[index]
	name := target.Remote.String()
	result := p.reporter.Peer(name, target.Line, p.log.With().Str("peer", name).Logger())
	ctx, end := p.requests.PassTo(ctx)
	defer end()
	result.Err = p.copyTo(ctx, target, result)
	return result
}

// copyTo copies the sources to a peer.
func (p *peersPush) copyTo(ctx context.Context, target fleet.Target, result *output.PeerResult) (err error) {
	s := p.settings.ForTarget(target.Remote)
	log := p.log.With().Str("peer", result.Name).Logger()
	daemon := reachOf(s)
	daemon.Warned = true
	daemon.Open = func(chosen inventory.Selection) (*connect.Side, error) {
		driver, err := p.driver()
		if err != nil {
			return nil, err
		}
		return connect.OpenShared(driver, chosen)
	}
	daemon.Waits = p.reporter.WaitOutput(result.Name, target.Line)
	ctx, c, err := contact.Connect(ctx, p.streams, daemon, log)
	if err != nil {
		return err
	}
	defer c.End(&err)
	result.Path = c.Path
	if c.MovesNothing() {
		return connect.ErrMovesNothing
	}
	if err := p.unchanged(); err != nil {
		return err
	}
	t := copiesOf(ctx, c, s, result, log)
	t.Rules, t.Options = p.rules, p.options(c, s, log)
	err = run(ctx, t, s)
	result.Done = t.Total
	return err
}

// options returns the options of the copies to a peer. The lanes of many copies share all CPUs, so they are not pinned.
func (p *peersPush) options(c *connect.Conn, s *Settings, log zerolog.Logger) dmaxfer.Options {
	o := copying.Options(s.Settings, c.Device, c.Side.Is, p.streams.Local, log)
	o.Filter, o.FilesFrom, o.Placement = p.selected.Filter, p.selected.FilesFrom, nil
	if p.limiter != nil {
		o.Bandwidth, o.Limiters = 0, []*rate.Limiter{p.limiter}
	}
	return o
}

// reportRest reports the peers that were not tried, and whether there are any.
func (p *peersPush) reportRest(ctx context.Context, tried []bool) (left bool) {
	reason := errFailFast
	if ctx.Err() != nil {
		reason = context.Cause(ctx)
	}
	for i, target := range p.targets {
		if !tried[i] {
			p.reporter.NotStarted(target.Remote.String(), target.Line, reason)
			left = true
		}
	}
	return left
}

var errFailFast = errors.New("not started after the failure of another peer (--fail-fast)")
