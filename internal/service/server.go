package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/identity"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Server answers the requests of all connections of a daemon. Its methods are safe for concurrent use.
type Server struct {
	config  ServerConfig
	started time.Time
	queue   *queue
	permits *permits
	memory  *memoryBudget
	limiter *rate.Limiter // of all copies; nil: none
	serving sync.WaitGroup

	mu          sync.Mutex // guards what follows
	draining    bool
	trust       Trust
	shares      map[string]share.Share
	limiters    map[identity.Public]*rate.Limiter // by key, while it has connections; rate.Inf: no limit
	entering    map[*connection]struct{}          // connections that are not admitted yet
	connections map[uint64]*connection            // admitted ones
	totals      Totals
}

// NewServer makes a server. It returns the errors of share.Open for a share that cannot be opened now, or an error that
// says which setting is missing or cannot be sent to peers.
func NewServer(c ServerConfig) (*Server, error) {
	switch {
	case c.Key == nil:
		return nil, errors.New("a server needs a key")
	case c.Trust == nil && !c.AuthNone:
		return nil, errors.New("a server needs trusted keys, unless it accepts any")
	case len(c.Text) > protocol.MaxPingText:
		return nil, fmt.Errorf("the answer to pings has %d bytes, limit %d", len(c.Text), protocol.MaxPingText)
	}
	smallest := wire.Limits{MaxMessage: protocol.MaxGreeting}
	if _, err := protocol.New(protocol.Daemon, c.greeting(), smallest); err != nil {
		return nil, fmt.Errorf("the name of the daemon or of its software cannot be sent: %w", err)
	}
	if c.Observer == nil {
		c.Observer = Observers(nil)
	}
	if c.FS == nil {
		c.FS = disk.OS
	}
	c.Limits = c.Limits.withDefaults()
	shares := make(map[string]share.Share)
	for _, each := range c.Shares {
		if err := tryShare(each, c.FS); err != nil {
			return nil, err
		}
		shares[each.Name] = each
	}
	return &Server{
		config: c, started: time.Now(), trust: c.Trust, shares: shares,
		queue: newQueue(), permits: newPermits(c.Limits.Transfers), memory: &memoryBudget{limit: c.Limits.Memory},
		limiter:  newLimiter(c.Limits.Bandwidth),
		limiters: make(map[identity.Public]*rate.Limiter), connections: make(map[uint64]*connection),
		entering: make(map[*connection]struct{}),
	}, nil
}

// ReloadKeys replaces the trusted keys; nil trusts nobody. Connections of keys that are no longer trusted end after
// their running request. It has no effect on a server that accepts any key.
func (s *Server) ReloadKeys(trust Trust) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trust = trust
	s.setTenantsLocked()
	for _, each := range s.connections {
		grant, err := s.grantLocked(each.key)
		if err != nil {
			each.retire(err)
			continue
		}
		s.limitLocked(each.key, grant)
	}
}

// ReloadShares replaces the shares; running requests go on with those that they began with. If a share that is new or
// has changed cannot be opened, all shares stay as they are.
func (s *Server) ReloadShares(shares []share.Share) error {
	s.mu.Lock()
	old := s.shares
	s.mu.Unlock()
	served := make(map[string]share.Share)
	for _, each := range shares {
		served[each.Name] = each
		if each == old[each.Name] {
			s.warnOf(each)
		} else if err := tryShare(each, s.config.FS); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares = served
	return nil
}

// warnOf logs why a share cannot be used now.
func (s *Server) warnOf(served share.Share) {
	opened, err := s.open(rights{Share: served, needed: served.Access})
	if err == nil {
		err = opened.Close()
	}
	if err != nil {
		s.config.Log.Warn().Err(err).Str("share", served.Name).Msg("a share cannot be used now")
	}
}

// Drain takes no more connections and requests, and waits for the running requests until ctx ends. Then it interrupts
// them with the cause of ctx, so that they can be resumed, and waits for their end.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	for _, each := range s.connections {
		each.retire(ErrDraining)
	}
	for each := range s.entering {
		each.retire(ErrDraining)
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for _, each := range s.connections {
		each.interrupt(context.Cause(ctx))
	}
	s.mu.Unlock()
	<-ended
}

// Status returns what the server is doing.
func (s *Server) Status() Status {
	counts := s.permits.counts()
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{
		Started: s.started, Draining: s.draining, Pending: s.queue.length(), Limits: s.config.Limits,
		Memory: s.memory.inUse(), Totals: s.totals,
	}
	for _, each := range counts {
		status.Running += each.running
		status.Waiting += each.waiting
		name := s.tenantNameLocked(each.tenant)
		status.Tenants = append(status.Tenants, TenantStatus{name, each.running, each.waiting})
	}
	if s.trust != nil {
		status.TrustedKeys = len(s.trust.All())
	}
	for _, each := range s.shares {
		status.Shares = append(status.Shares, ShareStatus{each.Name, each.Path, each.Access.String()})
	}
	for _, each := range s.connections {
		status.Connections = append(status.Connections, each.status())
	}
	slices.SortFunc(status.Tenants, func(a, b TenantStatus) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(status.Shares, func(a, b ShareStatus) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(status.Connections, func(a, b ConnectionStatus) int {
		return cmp.Compare(a.Session.ID, b.Session.ID)
	})
	return status
}

// tenantNameLocked returns what users call a tenant: the name of its key, or its function. s.mu is held.
func (s *Server) tenantNameLocked(tenant string) string {
	for _, each := range s.connections {
		if name := each.session().KeyName; name != "" && each.tenant() == tenant {
			return name
		}
	}
	return tenant
}

// setTenantsLocked says to the permits which tenants may transfer: the trusted keys, or with --auth none the
// functions with connections. s.mu is held.
func (s *Server) setTenantsLocked() {
	tenants := make(map[string]struct{})
	if s.config.AuthNone {
		for _, each := range s.connections {
			tenants[each.tenant()] = struct{}{}
		}
	} else if s.trust != nil {
		for _, each := range s.trust.All() {
			tenants[each.Key.String()] = struct{}{}
		}
	}
	s.permits.setTenants(tenants)
}

// begin counts a connection that has just been made, and numbers it. It fails if no more are taken.
func (s *Server) begin(c *connection) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return ErrDraining
	}
	s.totals.Connections++
	c.info.ID = uint64(s.totals.Connections)
	s.entering[c] = struct{}{}
	s.serving.Add(1)
	return nil
}

// mostEnding is how many connections of a key may end at a time, in addition to the connections that it may have.
const mostEnding = 8

// admit registers a connection whose peer has proved its key, or returns why it may not use the daemon.
func (s *Server) admit(each *connection) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	grant, err := s.grantLocked(each.key)
	if err != nil {
		return err
	}
	if s.draining {
		return ErrDraining
	}
	limits := s.config.Limits
	all, own, kept := 0, 0, 0 // of the key: own are connected, kept are those that have ended, too
	for _, other := range s.connections {
		if other.key == each.key {
			kept++
		}
		if isClosed(other.in.Conn.Done()) {
			continue // its peer has left, and may follow it with the next command
		}
		if all++; other.key == each.key {
			own++
		}
	}
	if all >= limits.Connections || len(s.connections) >= 2*limits.Connections {
		return tooMany("the daemon has as many connections as it may have, which is %d", limits.Connections)
	}
	perKey := int(lowest(int64(limits.PerKey), int64(grant.Connections)))
	if (own >= perKey || kept >= perKey+mostEnding) && !s.config.AuthNone {
		return tooMany("this key has as many connections as it may have, which is %d", perKey)
	}
	s.limitLocked(each.key, grant)
	each.info.KeyName = grant.Name
	delete(s.entering, each)
	s.connections[each.info.ID] = each
	s.setTenantsLocked()
	return nil
}

func tooMany(cause string, limit int) error {
	return job.NewError(job.ErrLimit, nil, "wait until another command has ended", cause, limit)
}

// dismiss removes a connection that has ended.
func (s *Server) dismiss(each *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entering, each)
	delete(s.connections, each.info.ID)
	s.setTenantsLocked()
	for _, other := range s.connections {
		if other.key == each.key {
			return
		}
	}
	delete(s.limiters, each.key)
}

// grantLocked returns what a key may do now. s.mu is held.
func (s *Server) grantLocked(key identity.Public) (identity.Grant, error) {
	if s.config.AuthNone {
		return identity.Grant{}, nil
	}
	if s.trust == nil {
		return identity.Grant{}, notTrusted(key)
	}
	grant, found := s.trust.Find(key)
	if !found || grant.Key != key {
		return identity.Grant{}, notTrusted(key)
	}
	return grant, nil
}

// limitLocked gives all copies of a key, also running ones, the bandwidth of its grant. s.mu is held.
func (s *Server) limitLocked(key identity.Public, grant identity.Grant) {
	limit := rate.Inf
	if grant.Bandwidth > 0 {
		limit = rate.Limit(grant.Bandwidth)
	}
	if limiter := s.limiters[key]; limiter != nil {
		limiter.SetLimit(limit)
		return
	}
	s.limiters[key] = rate.NewLimiter(limit, smallestBurst)
}

// count changes the totals.
func (s *Server) count(change func(*Totals)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.totals)
}
