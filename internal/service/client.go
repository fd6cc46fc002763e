package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/identity"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
)

// ClientConfig is what a Client is made of.
type ClientConfig struct {
	Conn   comch.Conn
	Memory func(*secure.Conn) window.Memory // of this connection only; called once, after the daemon has proved its key
	Key    *identity.Key                    // nil: one of its own, for a daemon that does not authenticate

	// Verify returns an error unless the daemon may have this key. It must not be nil; secure.AnyKey accepts all.
	Verify func(identity.Public) error

	// Anonymous permits a daemon that accepts any key. Otherwise Connect fails with ErrRefused.
	Anonymous bool

	Software    string          // name and version of this program: printable ASCII, at most 64 bytes
	Name        string          // of this machine, for the daemon: printable ASCII, at most 64 bytes; may be empty
	User        string          // of this program, likewise
	IdleTimeout time.Duration   // without an answer or a sign of life of the daemon; 0: 30 s
	Waiting     func(ahead int) // called about once a second while other copies have to end first; may be nil
	Log         zerolog.Logger

	wait  time.Duration // for a daemon that authenticates both sides and greets
	until time.Time     // its end; zero: there is none
}

// waiting returns the config of a command that has a time to reach the daemon, from now on.
func (c ClientConfig) waiting(wait time.Duration) ClientConfig {
	c.wait, c.until = wait, time.Now().Add(wait)
	return c
}

// shortestEntry is the time that a daemon has to authenticate and to greet, also at the end of the wait for it.
const shortestEntry = time.Second

// entering returns the context for that.
func (c *ClientConfig) entering(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.until.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, max(time.Until(c.until), shortestEntry),
		fmt.Errorf("%w within %s", secure.ErrTimeout, c.wait))
}

// Peer describes the daemon, as it says itself but for its key.
type Peer struct {
	protocol.Greeting
	Key identity.Public
}

// Client is a connection of a command to a daemon. It makes one request at a time, and is used by one goroutine at a
// time, apart from Close and Waits. After the loss of the connection, or a request that was interrupted, all further
// requests fail.
type Client struct {
	config   ClientConfig
	conn     comch.Conn         // of the device
	memory   *window.KeptMemory // since the handshake
	exchange *exchange
	peer     Peer
	broken   error // why there can be no further request
	awaited  awaited

	disconnect func() error // what Close also ends
}

// passes reports whether a later attempt to connect may succeed: the daemon may have too many connections, or others
// of this machine that do not complete their handshakes.
func passes(err error) bool {
	return errors.Is(err, ErrTurnedAway) || errors.Is(err, secure.ErrTimeout) || errors.Is(err, secure.ErrSilent)
}

// Connect authenticates both sides and greets the daemon. It fails with secure.ErrRefused if the daemon does not trust
// the key, with *secure.UntrustedError if Verify refuses the daemon's, with ErrRefused if the daemon accepts any key
// and Anonymous is not set, with *protocol.Refusal if the daemon takes no further connection, and with the errors of
// packages secure, comch and negotiate. ErrTurnedAway stands for a connection that is lost before the daemon has sent
// anything. The Client owns Conn, which is closed after an error.
func Connect(ctx context.Context, config ClientConfig) (*Client, error) {
	setDefault(&config.IdleTimeout, 30*time.Second)
	if config.Waiting == nil {
		config.Waiting = func(int) {}
	}
	c := &Client{
		config: config, conn: config.Conn,
		disconnect: func() error { return nil },
	}
	if err := c.enter(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Client) enter(ctx context.Context) error {
	ctx, cancel := c.config.entering(ctx)
	defer cancel()
	conn, err := secure.Client(ctx, c.conn, secure.Config{
		Key: c.config.Key, Verify: c.config.Verify, Log: c.config.Log,
	})
	if errors.Is(err, comch.ErrPeerLost) {
		return ErrTurnedAway
	}
	if err != nil {
		return err
	}
	c.memory = window.Keep(c.config.Memory(conn))
	session, err := protocol.New(protocol.Command, protocol.Greeting{
		Software: c.config.Software, Name: c.config.Name, User: c.config.User,
	}, wire.Limits{MaxMessage: conn.MaxMessage()})
	if err != nil {
		return err
	}
	c.exchange = newExchange(conn, session, c.config.IdleTimeout, c.config.Log)
	defer c.awaited.begin("", protocol.Place{})()
	err = c.exchange.send(ctx, func(s *protocol.Session, _ []byte) ([]byte, error) { return s.Start(), nil })
	if err != nil {
		return err
	}
	if _, err := c.answer(ctx); err != nil {
		return err
	}
	c.peer = Peer{Greeting: session.Peer(), Key: conn.Peer()}
	c.config.Log.Debug().Str("software", c.peer.Software).Str("machine", c.peer.Name).
		Stringer("fingerprint", c.peer.Key).Uint8("version", c.peer.Version).Msg("connection made")
	if !c.peer.Authenticates && !c.config.Anonymous {
		return job.NewError(ErrRefused, nil, "give it trusted keys, or use --auth none on this side, too",
			"the daemon accepts any key (--auth none)")
	}
	return nil
}

// Peer returns who the daemon is.
func (c *Client) Peer() Peer { return c.peer }

// Close ends the connection, also during a request, and releases its memory. Closing twice is harmless.
func (c *Client) Close() error {
	var err error
	if c.memory != nil {
		err = c.memory.Close()
	}
	err = errors.Join(err, c.conn.Close(), c.disconnect())
	c.config.Log.Debug().Err(err).Msg("connection ended")
	return err
}

// answer returns the daemon's next message that is not a sign of life. A request that the daemon has refused is a
// *protocol.Refusal.
func (c *Client) answer(ctx context.Context) (protocol.Step, error) {
	for {
		step, err := c.receive(ctx)
		switch {
		case err != nil:
			return step, c.fail(err)
		case step.Event == protocol.PeerWorking:
			c.config.Waiting(int(step.Ahead))
		case step.Event == protocol.Refused:
			return step, step.Refusal
		default:
			return step, nil
		}
	}
}

func (c *Client) receive(ctx context.Context) (protocol.Step, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.IdleTimeout, job.NewError(job.ErrIdle, job.ErrPeerIdle,
		"check the daemon", "timeout: no message from the daemon for %s", c.config.IdleTimeout))
	defer cancel()
	step, err := c.exchange.receive(ctx)
	if err == nil {
		c.awaited.received()
	}
	return step, err
}

// send sends a message of a request.
func (c *Client) send(ctx context.Context, encode encoding) error {
	if c.broken != nil {
		return c.broken
	}
	if err := c.exchange.send(ctx, encode); err != nil {
		if _, misuse := errors.AsType[*wire.Error](err); misuse {
			return err // nothing was sent
		}
		return c.fail(c.lastWord(err))
	}
	return nil
}

// lastWord returns why the daemon has ended the connection, if it has said so, and otherwise err.
func (c *Client) lastWord(err error) error {
	if !errors.Is(err, comch.ErrPeerLost) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	_, word := c.exchange.receive(ctx)
	if _, is := errors.AsType[*protocol.Refusal](word); is {
		return word
	}
	return err
}

// fail ends the use of the connection. It returns err, and before that logs what a timeout has ended.
func (c *Client) fail(err error) error {
	if waits := c.awaited.describe(); waits != "" && errors.Is(err, job.ErrIdle) {
		c.config.Log.Warn().Msg(job.Stall + waits)
	}
	if c.broken == nil {
		c.broken = err
	}
	return err
}

// List calls each for what is at a place, and below it: of a directory its entries, or with protocol.ListRecursive all
// that is below, depth first and sorted by name. The first entry, whose Path is empty, is that at the place itself;
// with protocol.ListItself it is the only one. The zero place is a directory of the shares, whose modes are the rights
// of this key. The result says whether the list is complete. An error of each ends the connection.
func (c *Client) List(
	ctx context.Context, place protocol.Place, flags protocol.ListFlags, each func(share.Entry) error,
) (protocol.ListEnd, error) {
	defer c.awaited.begin(List, place)()
	request := protocol.ListRequest{Place: place, Flags: flags}
	err := c.send(ctx, func(s *protocol.Session, dst []byte) ([]byte, error) { return s.List(dst, request) })
	if err != nil {
		return protocol.ListEnd{}, err
	}
	var names []string // on the path of the last entry
	for {
		step, err := c.answer(ctx)
		if err != nil || step.Event == protocol.PeerListEnd {
			return step.ListEnd, err
		}
		for _, listed := range step.Listed {
			if listed.Depth > 0 {
				names = append(names[:listed.Depth-1], listed.Name)
			}
			if err := each(entryOf(listed, names)); err != nil {
				return protocol.ListEnd{}, c.fail(err)
			}
		}
	}
}

// entryOf returns a listed entry with these names on its path.
func entryOf(l protocol.Listed, names []string) share.Entry {
	return share.Entry{
		Kind: l.Kind, Depth: l.Depth, Path: strings.Join(names, "/"), Mode: l.Mode, Modified: disk.Timestamp(l.MTime),
		Size: int64(l.Size), Link: l.Link, File: uint64(l.File), Mounted: l.Mounted,
	}
}

// Remove removes what is at paths below a place, in their order, and goes on after failures. It calls each with every
// path and its result; of RemoveRequest.Files, a path at which nothing is has the code AbortSource. An error of each
// ends the removal, after up to as many more paths as a message has.
func (c *Client) Remove(
	ctx context.Context, r protocol.RemoveRequest, each func(path string, result protocol.Removal) error,
) error {
	defer c.awaited.begin(Remove, r.Place)()
	for len(r.Paths) > 0 {
		used := 0
		err := c.send(ctx, func(s *protocol.Session, dst []byte) (message []byte, err error) {
			message, used, err = s.Remove(dst, r)
			return message, err
		})
		if err != nil {
			return err
		}
		step, err := c.answer(ctx)
		if err != nil {
			return err
		}
		for i, result := range step.Removed {
			if err := each(r.Paths[i], result); err != nil {
				return err
			}
		}
		r.Paths = r.Paths[used:]
	}
	return nil
}

// MakeDir creates a directory at a place, and with parents those above it that are missing. A *protocol.Refusal says
// why it could not, also if it exists and parents is not set.
func (c *Client) MakeDir(ctx context.Context, place protocol.Place, parents bool) error {
	defer c.awaited.begin(Mkdir, place)()
	request := protocol.MakeDirRequest{Place: place, Parents: parents}
	err := c.send(ctx, func(s *protocol.Session, dst []byte) ([]byte, error) { return s.MakeDir(dst, request) })
	if err == nil {
		_, err = c.answer(ctx)
	}
	return err
}

// RoundTrip sends a payload of up to MaxPing bytes, which comes back, and returns the time of the round trip.
func (c *Client) RoundTrip(ctx context.Context, payload []byte) (time.Duration, error) {
	began := time.Now()
	_, err := c.roundTrip(ctx, protocol.PingBytes, payload)
	return time.Since(began), err
}

// Text sends a text for the daemon's user, and returns the daemon's text: any bytes.
func (c *Client) Text(ctx context.Context, text string) (string, error) {
	answer, err := c.roundTrip(ctx, protocol.PingText, []byte(text))
	return string(answer), err
}

func (c *Client) roundTrip(ctx context.Context, kind protocol.PingKind, payload []byte) (answer []byte, err error) {
	defer c.awaited.begin(Ping, protocol.Place{})()
	err = c.send(ctx, func(s *protocol.Session, dst []byte) ([]byte, error) { return s.Ping(dst, payload, kind) })
	if err != nil {
		return nil, err
	}
	step, err := c.answer(ctx)
	return step.Ping.Payload, err
}

// MaxPing returns the size of the largest payload of RoundTrip in bytes.
func (c *Client) MaxPing() int {
	return min(protocol.MaxPingSize, c.exchange.conn.MaxMessage()-protocol.PingHeader)
}
