package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// connection is one connection of a Server, from its begin to its end. It runs on the goroutine of Serve.
//
//	accepted ─► queue ─► TLS ─► admitted ─► greeted ─► request ─► request ... ─► ended
//	   │          └────────┴─────────┴─────────┴─ Refused
//	   └─ retire: ends it between two requests; interrupt: ends the running one, too
type connection struct {
	server   *Server
	in       Incoming
	memory   *window.KeptMemory // since the handshake
	key      identity.Public    // since the handshake
	exchange *exchange          // since the handshake
	log      zerolog.Logger     // with the number of the connection
	greeted  bool               // Observer.Authenticated was called
	items    keptItems          // of the next copy
	kept     *keptDirectory     // of the last copy; nil: none

	running   context.Context // of requests, until interrupt
	interrupt context.CancelCauseFunc
	between   context.Context // of all that comes before and between requests, until retire
	retire    context.CancelCauseFunc

	mu       sync.Mutex // guards what follows
	info     Session
	requests uint64        // so far
	request  *Record       // the running one, or nil
	permit   *permit       // for which it waits, or nil
	progress *job.Progress // of a copy
}

// Serve serves a connection to its end, and closes it and its memory. It returns why it ended: nil if the peer ended it
// between two requests. ctx ends it at once. A panic in it is counted as a bug and ends this connection only.
func (s *Server) Serve(ctx context.Context, in Incoming) (err error) {
	c := &connection{
		server: s, in: in,
		info: Session{Function: in.Function, Connected: time.Now()},
	}
	c.running, c.interrupt = context.WithCancelCause(ctx)
	defer c.interrupt(nil)
	c.between, c.retire = context.WithCancelCause(c.running)
	defer c.retire(nil)
	if err := s.begin(c); err != nil {
		return errors.Join(err, in.Conn.Close())
	}
	defer s.serving.Done()
	c.log = s.config.Log.With().Uint64("connection", c.info.ID).Logger()
	s.config.Observer.Connected(c.info)
	defer func() { c.end(err) }()
	defer func() { err = cmp.Or(failureOf(in.Conn), err) }()
	defer job.Recover(&err)
	if err := c.enter(); err != nil {
		return err
	}
	return c.serve()
}

// failureOf returns the panic that has ended a connection by itself, in a goroutine of its own; nil: there was none.
func failureOf(conn comch.Conn) error {
	failing, is := conn.(interface{ Failed() error })
	if !is {
		return nil
	}
	if d := job.DefectIn(failing.Failed()); d != nil {
		return d
	}
	return nil
}

// bug reports a panic. Other errors are none.
func (s *Server) bug(of Session, err error) {
	if defect := job.DefectIn(err); defect != nil {
		s.count(func(t *Totals) { t.Bugs++ })
		s.config.Observer.Bug(of, defect.Value, defect.Stack)
	}
}

// end releases what the connection has. The memory goes first, because its producers and consumers belong to the
// connection.
func (c *connection) end(reason error) {
	c.server.bug(c.session(), reason)
	c.items.release(c.server.memory)
	c.forget()
	if c.memory != nil {
		c.closeWith("could not release the memory of a connection", c.memory.Close)
	}
	c.closeWith("could not close a connection", c.in.Conn.Close)
	c.server.dismiss(c)
	if !c.greeted {
		c.server.count(func(t *Totals) { t.Refused++ })
		c.server.config.Observer.Refused(c.session(), exit.Code(reason), reason)
	}
	c.server.config.Observer.Disconnected(c.session(), reason)
}

// closeWith makes a call that releases something at the end of the connection. A panic of it leaves that as it is.
func (c *connection) closeWith(failure string, release func() error) {
	err := func() (err error) {
		defer job.Recover(&err)
		return release()
	}()
	if err != nil {
		c.log.Warn().Err(err).Msg(failure)
		c.server.bug(c.session(), err)
	}
}

// session returns what is known of the connection.
func (c *connection) session() Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// status returns what the connection does.
func (c *connection) status() ConnectionStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := ConnectionStatus{
		Session: c.info, Waiting: c.permit != nil && !c.permit.isGranted(), Total: job.Unknown,
	}
	if c.request != nil {
		request := *c.request
		status.Request = &request
	}
	if c.progress != nil {
		status.Progress = c.progress
		sample := c.progress.Sample()
		status.Moved, status.Resumed = sample.Moved, sample.Resumed
		if sample.Phase != job.Meeting { // before, no total was set
			status.Total = sample.Total
		}
	}
	return status
}

// The reasons for the end of a connection whose peer does not do its part in time.
var (
	errQueue     = silent("other connections from the same address did not complete their handshakes")
	errGreeting  = silent("the peer did not complete its handshake")
	errNoRequest = silent("the peer made no request")
)

// silent returns the error for a peer that was waited for in vain.
func silent(what string) error {
	return job.NewError(job.ErrIdle, job.ErrPeerIdle, "connect again", "timeout: %s", what)
}

// enter lets the peer prove its key and greet. One connection of a function does so at a time.
func (c *connection) enter() error {
	limit := c.server.config.Limits.Handshake
	waiting, cancel := context.WithTimeoutCause(c.between, limit, errQueue)
	defer cancel()
	waiting, gone := whileConnected(waiting, c.in.Conn)
	defer gone(nil)
	leave, err := c.server.queue.enter(waiting, c.in.Function)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(c.between, limit, errGreeting)
	defer cancel()
	if err := c.authenticate(ctx); err != nil {
		return err
	}
	err = c.server.admit(c)
	if err == nil {
		err = c.greet(ctx)
	}
	if err != nil {
		leave()
		return c.part(err)
	}
	return nil
}

// whileConnected returns a context that ends with the connection.
func whileConnected(ctx context.Context, conn comch.Conn) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-conn.Done():
			cancel(comch.ErrPeerLost)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// authenticate makes the handshake, which fails unless the peer has proved a key that is trusted now.
func (c *connection) authenticate(ctx context.Context) error {
	config := &c.server.config
	conn, err := secure.Server(ctx, c.in.Conn, secure.Config{
		Key: config.Key, Verify: c.server.verify, Timeout: config.Limits.Handshake, Log: c.log,
	})
	if err != nil {
		return err
	}
	limits := wire.Limits{MaxMessage: conn.MaxMessage()}
	session, err := protocol.New(protocol.Daemon, config.greeting(), limits)
	if err != nil {
		return err
	}
	session.Start()
	c.memory = window.Keep(budgetedMemory{c.in.Memory(conn), c.server.memory})
	c.key, c.exchange = conn.Peer(), newExchange(conn, session, config.Limits.IdleTimeout, c.log)
	c.mu.Lock()
	c.info.Fingerprint = c.key.String()
	c.mu.Unlock()
	return nil
}

// greet exchanges the GREETINGs.
func (c *connection) greet(ctx context.Context) error {
	step, err := c.exchange.receive(ctx)
	switch {
	case err != nil:
		return err
	case step.Event != protocol.Greeted:
		return fmt.Errorf("%s in place of the greeting", step.Event) // the session permits nothing else
	}
	c.mu.Lock()
	peer := c.exchange.session.Peer()
	c.info.Software, c.info.Machine, c.info.User = peer.Software, peer.Name, peer.User
	c.mu.Unlock()
	c.greeted = true
	c.server.config.Observer.Authenticated(c.session())
	return nil
}

// part tells the command why the session ends, and waits for a moment for it to read that.
func (c *connection) part(reason error) error {
	ctx, cancel := context.WithTimeout(context.Background(), job.PartingTime)
	defer cancel()
	refusal := protocol.Refusal{Code: codeOf(reason), Text: reason.Error(), Final: true}
	err := c.exchange.send(ctx, func(s *protocol.Session, dst []byte) ([]byte, error) {
		return s.Refuse(dst, refusal)
	})
	if err != nil { // the session may have failed, and have told the peer why
		c.log.Debug().Err(err).Msg("could not tell the peer why the connection ends")
	}
	select {
	case <-c.in.Conn.Done():
	case <-ctx.Done():
	}
	return reason
}

// serve serves requests until the connection ends.
func (c *connection) serve() error {
	for {
		step, err := c.next()
		if err == nil {
			err = c.handle(step)
		}
		switch {
		case err == nil:
		case errors.Is(err, comch.ErrPeerLost):
			return c.exchange.disconnected()
		default:
			return c.part(err)
		}
	}
}

// next waits for the next message between two requests.
func (c *connection) next() (protocol.Step, error) {
	if err := context.Cause(c.between); err != nil {
		return protocol.Step{}, err
	}
	ctx, cancel := context.WithTimeoutCause(c.between, c.server.config.Limits.RequestTimeout, errNoRequest)
	defer cancel()
	return c.exchange.receive(ctx)
}

// handle does what a message of the peer asks for. An error ends the connection; a request that failed is none.
func (c *connection) handle(step protocol.Step) error {
	if !usesKept(step) {
		c.forget()
	}
	switch step.Event {
	case protocol.PeerItems:
		c.items.add(step.Items, c.server.memory) // the session bounds their number and length
		return nil
	case protocol.CopyRequested:
		return c.copy(step.Copy)
	case protocol.ListRequested:
		return c.list(step.List)
	case protocol.RemoveRequested:
		return c.remove(step.Remove)
	case protocol.MeasureRequested:
		return c.measure(step.Measure)
	case protocol.MakeDirRequested:
		return c.makeDir(step.MakeDir)
	case protocol.Pinged:
		return c.pong(step.Ping)
	}
	return fmt.Errorf("%s between two requests", step.Event) // the session permits nothing else
}
