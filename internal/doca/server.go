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
	e.onConnect = s.arrived
	go e.run()
	if err := e.call(e.start); err != nil {
		_ = e.close()
		return nil, err
	}
	trackOpen(s)
	return s, nil
}

// arrived is called by the driver of the endpoint.
func (s *Server) arrived(c *Connection) {
	c.ofServer = true
	c.closeFunc = func() error { return s.endpoint.disconnect(c) }
	if s.endpoint.clients > 0 && len(s.endpoint.connections) > s.endpoint.clients || !s.offer(c) {
		s.rejected.Add(1)
		s.endpoint.reject(c, ErrClosed)
	}
}

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
				s.arrivals <- earlier // there is space, because only the driver sends
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
		if s.endpoint.hasFinished() {
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
func (s *Server) Close() error {
	err := s.endpoint.close()
	if err == nil {
		trackClose(s)
	}
	return err
}

// Client connects to a server by name, on the host. It is safe for concurrent use, but with one Connect at a time.
type Client struct {
	endpoint *endpoint
	arrival  chan *Connection
	refused  chan error
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
	c := &Client{endpoint: e, arrival: make(chan *Connection, 1), refused: make(chan error, 1)}
	e.onConnect = c.connected
	e.onState = c.stateChanged
	go e.run()
	trackOpen(c)
	return c, nil
}

func (c *Client) connected(connection *Connection) {
	connection.closeFunc = c.Close
	select {
	case c.arrival <- connection:
	default: // no Connect is waiting for it, so it is not used
	}
}

// stateChanged is called by the driver of the endpoint. A client that is idle again failed to connect, or lost its
// connection.
func (c *Client) stateChanged(state cabi.ContextState) {
	if state == cabi.Idle {
		select {
		case c.refused <- c.idleCause():
		default:
		}
	}
}

func (c *Client) idleCause() error {
	if cause := c.endpoint.cause; cause != nil {
		return cause
	}
	if reason := c.endpoint.unconnected; reason != nil {
		return fmt.Errorf("%w (%w)", ErrNoServer, reason)
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
	if err := e.call(c.start); err == ErrClosed {
		return nil, e.finishCause()
	} else if meansNoServer(err) {
		return nil, fmt.Errorf("%w (%w)", ErrNoServer, err)
	} else if err != nil {
		return nil, err
	}
	select {
	case connection := <-c.arrival:
		return connection, nil
	case err := <-c.refused:
		return nil, err
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

// start is called by the driver of the endpoint. It drops the results of earlier attempts.
func (c *Client) start() error {
	c.endpoint.unconnected = nil
	select {
	case <-c.refused:
	default:
	}
	select {
	case <-c.arrival:
	default:
	}
	return c.endpoint.start()
}

// Close disconnects and ends the client. Closing twice is harmless. ErrStillRunning if the device does not stop within
// 10 s. A Close that fails can be called again. Implements: doca_ctx_stop, doca_comch_client_destroy.
func (c *Client) Close() error {
	err := c.endpoint.close()
	if err == nil {
		trackClose(c)
	}
	return err
}
