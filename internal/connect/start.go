package connect

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
	"github.com/dma-copy/dma-copy/internal/sshstart"
)

const (
	answerTime = 5 * time.Second // for a far side that runs to answer at one of its addresses
	relayTime  = 2 * time.Minute // for ssh to log in again, and the far side to answer through it
)

// Start starts a daemon with ssh for this connection alone, which ends with it, and connects: to the first of its
// addresses at which it answers, or else through ssh. Both sides have new keys, which they exchange by ssh. It uses all
// fields of d that are about connections between machines, and all of the request but the key. stderr takes what ssh
// and the daemon say while they run. It returns the errors of Connect and sshstart.Start.
func Start(
	ctx context.Context, d Daemon, login share.Login, request sshstart.Request, stderr io.Writer, log zerolog.Logger,
) (*Conn, error) {
	key, err := identity.Generate()
	if err != nil {
		return nil, err
	}
	request.Key = key.Public()
	wait := time.Duration(0)
	if d.WaitGiven {
		wait = d.Wait
	}
	far, err := sshstart.Start(ctx, login, request, wait, stderr)
	if err != nil {
		return nil, err
	}
	log.Info().Stringer("machine", login).Str("directory", request.Directory).Msg("ssh has started the far side")
	d.Identity = Identity{key: key, trusted: new(identity.Trusted), verify: func(answers identity.Public) error {
		if answers != far.Key {
			return errNotStarted
		}
		return nil
	}}
	d.Wait, d.WaitGiven, d.Waiting = answerTime, false, func(report.Wait) func() { return func() {} }
	c, err := d.connectTo(ctx, far, login, log)
	if err != nil {
		return nil, errors.Join(err, far.Close())
	}
	c.OnEnd(far.Close)
	c.Path.Peer.Key = login.String()
	return c, nil
}

var errNotStarted = errors.New("it is not the one that ssh has started")

// connectTo connects to a far side that runs.
func (d Daemon) connectTo(
	ctx context.Context, far *sshstart.Far, login share.Login, log zerolog.Logger,
) (*Conn, error) {
	for _, d.Address = range far.Reachable(ctx) {
		c, err := Connect(ctx, d, log)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		log.Info().Str("address", d.Address).Err(err).Msg("not the far side, trying the next address")
	}
	log.Info().Msg("no address of the far side can be reached: connecting through ssh")
	var err error
	if d.Address, err = far.Relay(); err != nil {
		return nil, err
	}
	d.Wait = relayTime
	c, err := Connect(ctx, d, log)
	switch {
	case err == nil:
		c.Path.Address = login.String() + " through ssh"
		return c, nil
	case ctx.Err() != nil:
		return nil, err
	}
	return nil, exit.Errorf(exit.Peer, "let sshd there forward connections (AllowTcpForwarding local), or open a "+
		"port and run dma-copy serve", "dma-copy on %s runs and cannot be reached: %w", login, err)
}
