package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sync/semaphore"
)

// admission counts the connections whose peers have not authenticated yet.
type admission struct {
	mu      sync.Mutex
	all     int
	sources map[netip.Prefix]*source
}

// source is where some of them come from.
type source struct {
	connections int
	handshakes  *semaphore.Weighted // of data connections, at a time
}

func newAdmission() *admission { return &admission{sources: make(map[netip.Prefix]*source)} }

// enter admits a connection. leave must be called once, when its peer is authenticated or it has ended.
func (a *admission) enter(from net.Addr) (s *source, leave func(), err error) {
	network := sourceOf(from)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == maxUnauthenticated {
		return nil, nil, fmt.Errorf("%d connections have not authenticated yet", a.all)
	}
	s = a.sources[network]
	if s == nil {
		s = &source{handshakes: semaphore.NewWeighted(maxDataHandshakes)}
		a.sources[network] = s
	}
	if s.connections == maxUnauthenticatedPerAddress {
		return nil, nil, fmt.Errorf("%d connections from %s have not authenticated yet", s.connections, network)
	}
	a.all++
	s.connections++
	return s, sync.OnceFunc(func() { a.leave(network, s) }), nil
}

func (a *admission) leave(network netip.Prefix, s *source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all--
	if s.connections--; s.connections == 0 {
		delete(a.sources, network)
	}
}

// handshake waits for the turn of a data connection to prove its key. end must be called afterwards.
func (s *source) handshake(ctx context.Context) (end func(), err error) {
	if err := s.handshakes.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { s.handshakes.Release(1) }, nil
}

// addressOf returns the IP address of a TCP address.
func addressOf(a net.Addr) netip.Addr {
	tcp, is := a.(*net.TCPAddr)
	if !is {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}

// sourceOf returns what counts as one source: an IPv4 address, or the network of an IPv6 address, in which one machine
// can have any number of addresses.
func sourceOf(a net.Addr) netip.Prefix {
	address := addressOf(a).WithZone("")
	bits := 32
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // the bits are not too many; of no address it is the zero prefix
	return prefix
}
