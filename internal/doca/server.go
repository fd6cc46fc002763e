package doca

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// Server accepts clients of one host function under one name, on the DPU. It is safe for concurrent use.
type Server struct {
	endpoint *endpoint
	arrivals chan *Connection
	rejected atomic.Uint64
}

// Listen starts a server for clients on the host function of rep. CodeAlreadyExist: the name is in use on this device
// and representor. CodeNotSupported: the device is on a host. Implements: doca_comch_server_create, doca_ctx_start.
func (d *Device) Listen(rep *Representor, name string, config ChannelConfig) (*Server, error) {
	if rep.rep == nil {
		return nil, ErrClosed
	}
	if !d.info.ServerSupported {
		return nil, &Error{Op: "doca_comch_cap_server_is_supported", Code: CodeNotSupported}
	}
	e, err := d.openEndpoint(rep.rep, name, config)
	if err != nil {
		return nil, err
	}
	s := &Server{endpoint: e, arrivals: make(chan *Connection, max(pendingConnections, config.Clients))}
	e.owner = s
	go e.run()
	if err := e.call(e.start); err != nil {
		_ = e.close()
		return nil, err
	}
	trackOpen(s)
	return s, nil
}

// connected implements owner.
func (s *Server) connected(c *Connection) {
	c.ofServer = true
	c.closeFunc = func() error { return s.endpoint.disconnect(c) }
	most := s.endpoint.config.Clients
	if most > 0 && len(s.endpoint.connections.open) > most || !s.offer(c) {
		s.rejected.Add(1)
		s.endpoint.reject(c, ErrClosed)
	}
}

// notConnected implements owner, as idle does. Both are about the start of a client.
func (*Server) notConnected(err error) error { return err }
func (*Server) idle()                        {}

// offer queues the connection for Accept. If the queue is full, it drops those that have ended: clients that come and
// go must not keep others out.
func (s *Server) offer(c *Connection) bool {
	if s.tryOffer(c) {
		return true
	}
	for range cap(s.arrivals) {
		select {
		case earlier := <-s.arrivals:
			if !earlier.hasEnded() {
				s.arrivals <- earlier // there is space, because only run sends
			}
		default:
		}
	}
	return s.tryOffer(c)
}

func (s *Server) tryOffer(c *Connection) bool {
	select {
	case s.arrivals <- c:
		return true
	default:
		return false
	}
}

// Rejected returns how many clients were disconnected at once because there were too many.
func (s *Server) Rejected() uint64 { return s.rejected.Load() }

// Accept returns the next client. ErrClosed after Close; the cause of ctx if that ends first.
func (s *Server) Accept(ctx context.Context) (*Connection, error) {
	select {
	case c := <-s.arrivals:
		if isClosed(s.endpoint.finished) {
			return nil, s.endpoint.finishCause()
		}
		return c, nil
	case <-s.endpoint.finished:
		return nil, s.endpoint.finishCause()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close disconnects all clients and ends the server. Closing twice is harmless. ErrStillRunning if the device does not
// stop within 10 s. A Close that fails can be called again. Implements: doca_ctx_stop, doca_comch_server_destroy.
func (s *Server) Close() error { return s.endpoint.close() }

// Client connects to a server by name, on the host. It is safe for concurrent use, but with one Connect at a time.
type Client struct {
	endpoint    *endpoint
	attempts    chan attempt // has the result of the last start
	unconnected error        // why DOCA had no connection for it when it ran; nil: it had, or did not run; run's
}

// attempt is the result of a start: a connection, or why there is none.
type attempt struct {
	connection *Connection
	err        error
}

// NewClient creates a client for the server called name. CodeNotSupported on a DPU. Implements:
// doca_comch_client_create.
func (d *Device) NewClient(name string, config ChannelConfig) (*Client, error) {
	if !d.info.ClientSupported {
		return nil, &Error{Op: "doca_comch_cap_client_is_supported", Code: CodeNotSupported}
	}
	config.Clients = 0
	e, err := d.openEndpoint(nil, name, config)
	if err != nil {
		return nil, err
	}
	c := &Client{endpoint: e, attempts: make(chan attempt, 1)}
	e.owner = c
	go e.run()
	trackOpen(c)
	return c, nil
}

// connected implements owner.
func (c *Client) connected(connection *Connection) {
	connection.closeFunc = c.Close
	c.report(attempt{connection: connection})
}

// report keeps the first result of a start. If the connection ends before Connect returns it, it does so anyway.
func (c *Client) report(result attempt) {
	select {
	case c.attempts <- result:
	default:
	}
}

// notConnected implements owner. A client whose server has gone while it started is stopped, so that it can be started
// again.
func (c *Client) notConnected(err error) error {
	if !meansNoServer(err) {
		return err
	}
	c.unconnected = err
	return c.endpoint.abi.ChannelStop(c.endpoint.channel)
}

// idle implements owner. A client that is idle again failed to connect, or lost its connection.
func (c *Client) idle() { c.report(attempt{err: c.idleCause()}) }

func (c *Client) idleCause() error {
	if cause := c.endpoint.life.cause; cause != nil {
		return cause
	}
	if c.unconnected != nil {
		return fmt.Errorf("%w (%w)", ErrNoServer, c.unconnected)
	}
	if refusal := c.endpoint.abi.ChannelRefusal(c.endpoint.channel); refusal != cabi.Success {
		return fmt.Errorf("%w: %w", ErrRefused, refusal)
	}
	return ErrNoServer
}

// Connect tries to connect once. ErrNoServer if no server answers under that name, with a *Error if DOCA gives a
// reason; ErrRefused if the server refuses this client: try again later with the same Client. After ctx has ended a
// Connect, the Client can only be closed. Implements: doca_ctx_start, doca_comch_client_get_connection.
func (c *Client) Connect(ctx context.Context) (*Connection, error) {
	e := c.endpoint
	if err := e.call(c.start); meansNoServer(err) {
		return nil, fmt.Errorf("%w (%w)", ErrNoServer, err)
	} else if err != nil {
		return nil, err
	}
	select {
	case result := <-c.attempts:
		return result.connection, result.err
	case <-e.finished:
		return nil, e.finishCause()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// meansNoServer reports whether an error of a client's start has one of the codes by which DOCA may say that no server
// answers.
func meansNoServer(err error) bool {
	return slices.ContainsFunc([]error{CodeConnectionAborted, CodeConnectionReset, CodeNotConnected, CodeTimeOut},
		func(code error) bool { return errors.Is(err, code) })
}

// start is called by run. It drops the result of an earlier attempt.
func (c *Client) start() error {
	c.unconnected = nil
	select {
	case <-c.attempts:
	default:
	}
	return c.endpoint.start()
}

// Close disconnects and ends the client. Closing twice is harmless. ErrStillRunning if the device does not stop within
// 10 s. A Close that fails can be called again. Implements: doca_ctx_stop, doca_comch_client_destroy.
func (c *Client) Close() error { return c.endpoint.close() }
