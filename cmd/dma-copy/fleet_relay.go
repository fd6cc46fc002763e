package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/fleet"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
)

const (
	// maxRelays bounds the connections of a command to peers that serve others.
	maxRelays = 512

	// relayWait is for a peer that was reached before. One that refuses connections may be starting again.
	relayWait = 5 * time.Second

	// slowestTarget is how many bytes a target at least compares or flushes in a second, during which it reports no
	// progress.
	slowestTarget = 4 << 20

	// peerIdle is the idle timeout of a daemon that was not given another one.
	peerIdle = 30 * time.Second

	// busyPause is between two attempts to copy to a peer that may still receive from a relay that was lost.
	busyPause = 500 * time.Millisecond
)

// relays has what push --fanout knows of the only source and of the peers that have it. Safe for concurrent use.
type relays struct {
	source string
	size   int64 // of the source

	mu   sync.Mutex
	sum  digest.Sum              // of the source; zero: not known yet
	keys map[int]identity.Public // that peers with the source have proved, by their index in the list
	lost map[int]time.Time       // until when peers may receive from a relay that was lost, by their index
}

// newRelays returns the relays of a push of one source, whose identity is the zero one for a directory.
func newRelays(source string, at disk.Identity) (*relays, error) {
	info, err := disk.OS.Stat(source)
	if err != nil {
		return nil, disk.CannotStat(source, err)
	}
	if !info.Mode.IsRegular() {
		return nil, exit.Usagef("--fanout: %s is not a regular file, and peers pass on nothing else: leave it out",
			quote.Text(source))
	}
	return &relays{source: source, size: at.Size, keys: map[int]identity.Public{}, lost: map[int]time.Time{}}, nil
}

var errSourceDiffers = job.NewError(job.ErrSourceChanged, nil, "run the same command again for all peers",
	"the source changed while it was copied: peers have received different content")

// received takes note of a peer that has the source, with the digest that was compared, if any.
func (r *relays) received(peer int, key identity.Public, sum digest.Sum) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case sum.Algorithm() == digest.None:
	case r.sum.Algorithm() == digest.None:
		r.sum = sum
	case sum.Algorithm() == r.sum.Algorithm() && sum != r.sum:
		return errSourceDiffers
	}
	r.keys[peer] = key
	return nil
}

// keyOf returns the key of a peer that has the source.
func (r *relays) keyOf(peer int) identity.Public {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[peer]
}

// relayLost takes note of a relay that may have ended without the peer knowing, which then notices within that time. A
// peer receives a file from one sender at a time.
func (r *relays) relayLost(peer int, err error, within time.Duration) {
	_, refused := errors.AsType[*negotiate.Refusal](err)
	if refused || ofRelay(err) != nil {
		return // it has not begun the copy, or has ended it itself
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[peer] = time.Now().Add(within)
}

// mayStillSend reports whether a copy of this side to the peer may have failed because a relay still sends to it.
func (r *relays) mayStillSend(peer int, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return report.ExitCode(err) == exit.Target && time.Now().Before(r.lost[peer])
}

// ofRelay returns what a relay has said about a copy that failed, nil if it has said nothing.
func ofRelay(err error) *negotiate.RelayFailure {
	failed, _ := errors.AsType[*negotiate.RelayFailure](err)
	return failed
}

// digest returns the digest of the source: that of the first copy, or, if no copy has one because the peers had the
// source already, that of the file.
func (r *relays) digest(ctx context.Context) (digest.Sum, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sum.Algorithm() != digest.None {
		return r.sum, nil
	}
	file, err := fileio.Open(r.source)
	if err != nil {
		return digest.Sum{}, err
	}
	defer file.Close()
	sum, _, err := digest.Of(ctx, digest.BLAKE3, file.File)
	switch {
	case ctx.Err() != nil:
		return digest.Sum{}, context.Cause(ctx)
	case err != nil:
		return digest.Sum{}, file.Failed(err)
	}
	if err := file.Unchanged(); err != nil {
		return digest.Sum{}, err
	}
	r.sum = sum
	return sum, nil
}

// peerCalls is how a push reaches the peers of its list. Safe for concurrent use.
type peerCalls interface {
	// copyTo copies the sources to a peer. It returns who the daemon is, the zero Peer if it was not reached.
	copyTo(context.Context, fleet.Target, *report.Collector, *report.PeerResult) (service.Peer, error)

	// meet connects to a peer, and returns who the daemon is.
	meet(context.Context, fleet.Target, *report.PeerResult) (service.Peer, error)

	// ask asks the daemon of a peer, which must prove the key, to copy its file to another one. The request has no
	// Source yet. The errors are those of Client.Relay and of the connection.
	ask(
		ctx context.Context, from fleet.Target, key identity.Public, r negotiate.RelayRequest, moved func(uint64),
	) (negotiate.Relayed, error)
}

// planner returns the Planner of the push. Peers that are reached over a device have no address, so that only this side
// serves them; neither does any other serve what is not a peer.
func (p *peersPush) planner() *fleet.Planner {
	bounds := fleet.Bounds{Parallel: p.settings.AtOnce()}
	if p.relays == nil {
		return fleet.NewPlanner(len(p.targets), bounds)
	}
	bounds.Fanout, bounds.Relays = p.settings.Fanout, maxRelays
	planner := fleet.NewPlanner(len(p.targets), bounds)
	for i, target := range p.targets {
		at, err := p.settings.Choose(target.Remote, p.settings.Device, p.settings.Representor)
		if err != nil || at.Address == "" {
			planner.Direct(i)
		}
	}
	return planner
}

// reportRelay reports that a peer could not serve another one, which waits for this side.
func (p *peersPush) reportRelay(end fleet.End[report.PeerResult], givenUp map[int]bool) {
	from, to := p.targets[end.From], p.targets[end.To]
	log := p.log.With().Stringer("relay", from.Remote).Stringer("peer", to.Remote).Logger()
	log.Info().Err(end.Result.Err).Msg("not served by the relay: waiting for this side")
	report.LogReworded(log, end.Result.Err)
	if end.Outcome == fleet.NotRelayed || givenUp[end.From] {
		p.reporter.NotRelayed(to.Line)
		return
	}
	givenUp[end.From] = true
	p.reporter.RelayGivenUp(from.Remote.String(), from.Line, to.Line, end.Result.Err)
}

// relay lets a peer that has the source copy it to another one.
func (p *peersPush) relay(ctx context.Context, a fleet.Assignment) (fleet.Outcome, report.PeerResult) {
	from, to := p.targets[a.From], p.targets[a.To]
	result := report.PeerResult{Name: to.Remote.String(), Line: to.Line}
	p.reporter.Moved(to.Line, 0)
	began := time.Now()
	request, err := p.requestFor(ctx, to, &result)
	if err != nil {
		result.Err = err
		return fleet.PeerFailed, result
	}
	key := p.relays.keyOf(a.From)
	if identity.Public(request.Key) == key || request.Address.Addr().Zone() != "" {
		return fleet.NotRelayed, result // to itself, or to an address that means another machine there
	}
	end, err := p.askRelay(ctx, from, to, key, request)
	if err != nil {
		result.Err = err
		p.relays.relayLost(a.To, err, max(p.settings.IdleTimeout, peerIdle)+relayWait)
		return relayOutcome(ctx, err), result
	}
	result.Total.Add(job.Summary{Size: p.relays.size, UpToDate: end.UpToDate}, nil)
	result.Total.Elapsed, result.Via = time.Since(began), from.Remote.String()
	result.Sum, _ = digest.NewSum(end.Sum.Digest, end.Sum.Value[:end.Sum.Digest.Size()])
	if err := p.relays.received(a.To, request.Key, result.Sum); err != nil {
		result.Err = err
		return fleet.PeerFailed, result
	}
	return fleet.Received, result
}

// relayOutcome returns the outcome of a relayed copy that failed. A relay that says that the target is to blame, or has
// no turn for it, goes on: the target is served by this side, whose copy shows whether that is so.
func relayOutcome(ctx context.Context, err error) fleet.Outcome {
	failed := ofRelay(err)
	switch {
	case ctx.Err() != nil, errors.Is(err, errDurationLimit):
		return fleet.PeerFailed
	case failed != nil && (failed.Code == negotiate.AbortTarget || failed.Code == negotiate.AbortLimit):
		return fleet.NotRelayed
	default:
		return fleet.RelayFailed
	}
}

// requestFor connects to the target once, so that a relay gets the address and the key of a daemon that was met, and a
// target that cannot be reached is not blamed on the relay.
func (p *peersPush) requestFor(
	ctx context.Context, to fleet.Target, result *report.PeerResult,
) (negotiate.RelayRequest, error) {
	if err := p.unchanged(); err != nil {
		return negotiate.RelayRequest{}, err
	}
	sum, err := p.relays.digest(ctx)
	if err != nil {
		return negotiate.RelayRequest{}, err
	}
	met, err := p.calls.meet(ctx, to, result)
	if err != nil {
		return negotiate.RelayRequest{}, err
	}
	planned, err := p.endsFor(to)
	if err != nil {
		return negotiate.RelayRequest{}, err
	}
	r := negotiate.RelayRequest{
		Size: uint64(p.relays.size), Sum: negotiate.Sum{Digest: sum.Algorithm()}, Address: met.Address, Key: met.Key,
		Target: planned.request.Place, Durability: p.settings.Durability,
		Flags: service.PushFlags(copyOptions(p.settings.Copy, nil, negotiate.Client, dataStreams{}, zerolog.Nop())),
		Idle:  uint32(min(p.settings.IdleTimeout.Milliseconds(), negotiate.MaxRelayIdle)),
	}
	sum.CopyTo(r.Sum.Value[:])
	return r, nil
}

// endsFor returns source and target of the copy to a peer.
func (p *peersPush) endsFor(to fleet.Target) (ends, error) {
	t := &transfers{settings: p.settings.ForTarget(to.Remote)}
	all, err := t.plan()
	if err != nil {
		return ends{}, err
	}
	return all[0], nil
}

// askRelay asks a peer for a copy, and ends it when nothing moves for too long: signs of life alone do not keep it.
func (p *peersPush) askRelay(
	ctx context.Context, from, to fleet.Target, key identity.Public, r negotiate.RelayRequest,
) (negotiate.Relayed, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	startLimit(ctx, cancel, p.settings.MaxDuration)
	timeout := p.progressTimeout(0)
	timer := time.AfterFunc(timeout, func() {
		cancel(job.NewError(job.ErrIdle, nil, "check it and the daemon that it copies to",
			"timeout: the relay reports no progress"))
	})
	defer timer.Stop()
	var last uint64
	return p.calls.ask(ctx, from, key, r, func(moved uint64) {
		if moved > last {
			last = moved
			timer.Reset(p.progressTimeout(moved))
		}
		p.reporter.Moved(to.Line, int64(moved))
	})
}

// progressTimeout returns how long a relayed copy may report no progress after so many bytes. The relay has the same
// idle timeout, and is given the time to say so. Before the first byte and after the last one, the target may compare
// or flush the whole file.
func (p *peersPush) progressTimeout(moved uint64) time.Duration {
	idle := p.settings.IdleTimeout + relayWait
	if moved > 0 && moved < uint64(p.relays.size) {
		return idle
	}
	return idle + job.LongestRename + time.Duration(p.relays.size/slowestTarget)*time.Second
}

// networkCalls reaches daemons.
type networkCalls struct{ *peersPush }

var _ peerCalls = networkCalls{}

// copyTo implements peerCalls.
func (p networkCalls) copyTo(
	ctx context.Context, target fleet.Target, collector *report.Collector, result *report.PeerResult,
) (peer service.Peer, err error) {
	s := p.settings.ForTarget(target.Remote)
	err = p.withPeer(ctx, s, target, func(c contact, log zerolog.Logger) error {
		result.Path, peer = c.path, c.client.Peer()
		if c.movesNothing() {
			return errMovesNothing
		}
		if err := p.unchanged(); err != nil {
			return err
		}
		t := &transfers{contact: c, settings: s, reporter: collector, log: log, rules: p.rules}
		t.options = p.options(c, s, log)
		err := t.runPrepared(ctx)
		result.Total = t.total
		return err
	})
	return peer, err
}

// meet implements peerCalls.
func (p networkCalls) meet(
	ctx context.Context, target fleet.Target, result *report.PeerResult,
) (peer service.Peer, err error) {
	s := p.settings.ForTarget(target.Remote)
	err = p.withPeer(ctx, s, target, func(c contact, _ zerolog.Logger) error {
		result.Path, peer = c.path, c.client.Peer()
		return nil
	})
	return peer, err
}

// ask implements peerCalls.
func (p networkCalls) ask(
	ctx context.Context, from fleet.Target, key identity.Public, r negotiate.RelayRequest, moved func(uint64),
) (end negotiate.Relayed, err error) {
	s := p.settings.ForTarget(from.Remote)
	s.Wait, s.WaitGiven = min(s.Wait, relayWait), true
	err = p.withPeer(ctx, s, from, func(c contact, log zerolog.Logger) error {
		if c.client.Peer().Key != key {
			return exit.Errorf(exit.Refused, "", "another daemon answers at its address: the key is %s",
				c.client.Peer().Key)
		}
		planned, err := p.endsFor(from)
		if err != nil {
			return err
		}
		r.Source = planned.request.Place
		log.Debug().Stringer("to", r.Address).Msg("asking the daemon to copy to another one")
		end, err = c.client.Relay(ctx, r, moved)
		return err
	})
	return end, err
}

// withPeer connects to one peer of the list and calls run with the connection and the log of the peer.
func (p *peersPush) withPeer(
	ctx context.Context, s *config.Transfer, peer fleet.Target, run func(contact, zerolog.Logger) error,
) error {
	name := peer.Remote.String()
	log := p.log.With().Str("peer", name).Logger()
	daemon := reachOf(s)
	daemon.open, daemon.warned = p.driver.open, true
	daemon.waits = p.reporter.WaitOutput(name, peer.Line)
	return withDaemon(ctx, p.streams, daemon, log, func(c contact) error { return run(c, log) })
}
