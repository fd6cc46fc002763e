package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// RelayConfig says to which other daemons a Server pushes files for its peers. The zero value is none.
type RelayConfig struct {
	To       []share.RelayTarget
	Listen   netip.AddrPort   // of this daemon, to which it never pushes; not valid: it listens nowhere
	Settings network.Settings // of the connections; Paths is tls, whatever it is set to

	// dial connects to a target in place of DialNetwork, if it is not nil: the simulation has no network.
	dial func(context.Context, netip.AddrPort, ClientConfig) (*Client, error)
}

// permits reports whether files may be pushed to an address.
func (r *RelayConfig) permits(address netip.AddrPort) bool {
	for _, each := range r.To {
		if each.Permits(address) {
			return !r.isOwn(address)
		}
	}
	return false
}

// isOwn reports whether this daemon itself listens at an address.
func (r *RelayConfig) isOwn(address netip.AddrPort) bool {
	if !r.Listen.IsValid() || r.Listen.Port() != address.Port() {
		return false
	}
	if !r.Listen.Addr().IsUnspecified() {
		return r.Listen.Addr().Unmap().WithZone("") == address.Addr()
	}
	own, err := net.InterfaceAddrs()
	if err != nil || address.Addr().IsLoopback() {
		return true
	}
	for _, each := range own {
		if prefix, err := netip.ParsePrefix(each.String()); err == nil && prefix.Addr().Unmap() == address.Addr() {
			return true
		}
	}
	return false
}

// relay answers a RELAY: it pushes a file to another daemon, as a command with the key of this daemon.
func (c *connection) relay(r negotiate.RelayRequest) error {
	record := Record{
		Operation: Relay, Share: r.Source.Share, Path: r.Source.Path,
		Target: share.Remote{
			Address: r.Address.String(), Share: r.Target.Share, Path: r.Target.Path,
		}.String(),
		TargetKey: identity.Public(r.Key).String(),
	}
	return c.perform(record, func(record *Record) (failed, fatal error) {
		if err := c.mayRelay(r); err != nil {
			return c.refuse(err)
		}
		permit, err := c.awaitPermit()
		if err != nil {
			return c.refuse(err)
		}
		releasePermit := sync.OnceFunc(permit.release)
		defer releasePermit()
		record.Waited = time.Since(record.Began)
		side, err := c.prepareRelay(r)
		switch {
		case endsConnection(err):
			return err, err
		case err != nil:
			return c.refuse(err)
		}
		defer side.close()
		return c.pushFor(record, r, side, releasePermit)
	})
}

// mayRelay returns why this daemon does not relay, or not for this key or to this target. Nothing in it depends on
// whether there is a target at the address.
func (c *connection) mayRelay(r negotiate.RelayRequest) error {
	config := &c.server.config
	grant, err := c.server.grant(c.key)
	switch {
	case err != nil:
		return err
	case config.AuthNone || len(config.Relay.To) == 0:
		return job.NewError(ErrRefused, nil, "start it with --relay-to", "the daemon pushes nothing to other daemons")
	case !grant.Relay:
		return job.NewError(ErrRefused, nil, "run \"dma-copy keys trust --relay\" on the daemon's side",
			"this key may not have files pushed to other daemons")
	case !config.Relay.permits(r.Address):
		return job.NewError(ErrRefused, nil, "add it to --relay-to of the daemon",
			"the daemon pushes nothing to %s", r.Address)
	case identity.Public(r.Key) == config.Key.Public():
		return job.NewError(ErrRefused, nil, "name another daemon", "the target is the daemon itself")
	}
	return c.mayCopy(pullOf(r))
}

// pullOf returns the copy that needs the same rights at this daemon as a relay does.
func pullOf(r negotiate.RelayRequest) negotiate.CopyRequest {
	return negotiate.CopyRequest{Direction: negotiate.CopyPull, Place: r.Source}
}

// prepareRelay finds the file, if the key still has its rights. What it returns is to be closed.
func (c *connection) prepareRelay(r negotiate.RelayRequest) (*copySide, error) {
	if err := c.mayRelay(r); err != nil {
		return nil, err
	}
	side, err := c.prepare(pullOf(r), nil)
	if err != nil {
		return nil, err
	}
	if err := side.becomePush(r); err != nil {
		side.close()
		return nil, err
	}
	return side, nil
}

// becomePush makes the options of a daemon that sends those of a command that does.
func (s *copySide) becomePush(r negotiate.RelayRequest) error {
	algorithm := r.Sum.Digest
	expected, err := digest.NewSum(algorithm, r.Sum.Value[:algorithm.Size()])
	name := quote.Text(r.Source.Path)
	switch {
	case err != nil:
		return err
	case s.accepted.Kind != negotiate.CopyFile:
		return job.NewError(job.ErrSource, nil, "name a file", "%s in share %s is a directory", name, s.Name)
	case s.accepted.Size != r.Size:
		return job.NewError(job.ErrSourceChanged, nil, "push it to the daemon again",
			"%s in share %s has %d bytes instead of %d", name, s.Name, s.accepted.Size, r.Size)
	case s.options.Digest > algorithm:
		return job.NewError(job.ErrSettings, nil, "push with the same --digest",
			"the daemon compares by %s at least, and not by %s", s.options.Digest, algorithm)
	}
	o := &s.options
	o.Side, o.Path, o.Expect, o.Digest = negotiate.Client, job.AnyPath, &expected, algorithm
	o.Durability, o.Readback = r.Durability, false
	o.Overwrite, o.Backup = r.Flags.Has(negotiate.CopyOverwrite), r.Flags.Has(negotiate.CopyBackup)
	o.NoResume, o.MakePath = r.Flags.Has(negotiate.CopyNoResume), r.Flags.Has(negotiate.CopyMakePath)
	if idle := time.Duration(r.Idle) * time.Millisecond; idle > 0 {
		o.IdleTimeout = min(o.IdleTimeout, idle)
	}
	return nil
}

// pushFor pushes the file, says how far it has come, and how it ended. releasePermit lets another copy begin.
func (c *connection) pushFor(
	record *Record, r negotiate.RelayRequest, side *copySide, releasePermit func(),
) (failed, fatal error) {
	progress := &job.Progress{}
	c.mu.Lock()
	c.progress = progress
	c.mu.Unlock()
	side.options.Progress = progress
	state := relayState{size: r.Size, progress: progress}
	failed = c.whileSaying(c.running, state.relaying, func(ctx context.Context) (err error) {
		record.Summary, err = c.pushTo(ctx, r, side)
		return err
	})
	releasePermit()
	record.keepPath()
	if failed == nil {
		failed = checkRelayed(record.Summary, *side.options.Expect)
	}
	if failed != nil {
		record.Summary = job.Summary{}
	}
	record.count(progress)
	if errors.Is(failed, job.ErrHung) {
		return failed, failed
	}
	result := negotiate.Relayed{Bytes: min(uint64(max(0, record.Bytes)), r.Size)}
	if failed == nil {
		result.UpToDate, result.Sum = record.Summary.UpToDate, r.Sum
	} else {
		result.Code, result.Text = c.server.code(failed), relayReason(failed)
	}
	return failed, c.send(func(s *negotiate.Service, dst []byte) ([]byte, error) { return s.Relayed(dst, result) })
}

// relayState is what a RELAYING tells.
type relayState struct {
	size, moved uint64
	progress    *job.Progress
}

// relaying encodes a RELAYING. What a retransmission counts twice is left out.
func (r *relayState) relaying(s *negotiate.Service, dst []byte) ([]byte, error) {
	r.moved = min(r.size, max(r.moved, uint64(max(0, r.progress.Sample().Moved))))
	return s.Relaying(dst, r.moved)
}

// relayContact is how long a relay waits for the connection to the target, and then for a permit there, at most: the
// command has other sources.
const relayContact = 10 * time.Second

// pushTo connects to the target and pushes the file.
func (c *connection) pushTo(
	ctx context.Context, r negotiate.RelayRequest, side *copySide,
) (summary job.Summary, err error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	config, o := &c.server.config, side.options
	timeout := min(relayContact, o.IdleTimeout)
	limit := &permitLimit{timeout: timeout, giveUp: giveUp}
	client, err := c.server.dialTarget(ctx, r.Address, timeout, ClientConfig{
		Key: config.Key, Verify: onlyKey(r.Key), Software: o.Software, Name: config.Name, User: config.User,
		IdleTimeout: o.IdleTimeout, Waiting: limit.waiting, Log: o.Log,
	})
	if err != nil {
		return job.Summary{}, err
	}
	defer func() {
		if !errors.Is(err, job.ErrHung) { // otherwise a call still uses its memory
			err = cmp.Or(err, client.Close())
		}
	}()
	return client.Push(ctx, CopyRequest{
		Options: o, Place: r.Target, Daemon: share.Remote{Address: r.Address.String()},
		Local: path.Join(r.Source.Share, r.Source.Path), // which is not relative to a directory that others know
	})
}

func (s *Server) dialTarget(
	ctx context.Context, address netip.AddrPort, wait time.Duration, c ClientConfig,
) (*Client, error) {
	if dial := s.config.Relay.dial; dial != nil {
		return dial(ctx, address, c)
	}
	settings := s.config.Relay.Settings
	settings.Paths = job.PathsOf(negotiate.PathTLS)
	return DialNetwork(ctx, NetworkMeeting{
		Address: address.String(), Wait: wait, Settings: settings,
		budgeted: func(m native.Memory) native.Memory { return budgetedMemory{m, s.memory} },
	}, c)
}

// onlyKey returns a ClientConfig.Verify that accepts one key.
func onlyKey(key identity.Public) func(identity.Public) error {
	return func(proved identity.Public) error {
		if proved != key {
			return errors.New("it is not that of the request")
		}
		return nil
	}
}

// permitLimit ends a push that waits too long for other copies at the target. Two daemons that push to each other would
// otherwise wait for each other's permits.
type permitLimit struct {
	timeout time.Duration
	giveUp  context.CancelCauseFunc
	since   time.Time // of the first call
}

// waiting is a ClientConfig.Waiting.
func (l *permitLimit) waiting(ahead int) {
	switch {
	case ahead == 0:
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = time.Now()
	case time.Since(l.since) >= l.timeout:
		l.giveUp(job.NewError(job.ErrLimit, nil, "push to it from elsewhere, or later",
			"the target served other copies for %s", l.timeout))
	}
}

// checkRelayed returns an error unless the target has compared or received the content that is expected.
func checkRelayed(s job.Summary, expected digest.Sum) error {
	if s.Sum == expected {
		return nil
	}
	return job.NewError(job.ErrTarget, nil, "check the target",
		"the target says that it has the file, and did not compare its digest")
}

// relayReason returns why a push failed, for the command: what the target said, or what this daemon found.
func relayReason(err error) string {
	if refused, is := errors.AsType[*negotiate.Refusal](err); is {
		return "the target refused: " + quote.Printable(refused.Text)
	}
	if aborted, is := errors.AsType[*negotiate.PeerAborted](err); is {
		return "the target aborted: " + quote.Printable(aborted.Text)
	}
	if errors.Is(err, job.ErrDigest) {
		return "the file has changed: its digest is not that of the request"
	}
	return fmt.Sprintf("push to the target: %v", err)
}
