package service

import (
	"fmt"

	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// rights are what one request may do with its share. They are looked up for each request, and hold until its end.
type rights struct {
	share.Share          // with the access of the key
	needed               share.Access
	overwrite, owner     bool
	maxBytes, maxEntries int64           // 0: no limit
	limiters             []*rate.Limiter // that its copy shares with others
}

// notTrusted is the error for a key without a grant.
func notTrusted(key identity.Public) error {
	return job.NewError(ErrRefused, nil, "run \"dma-copy keys trust\" with this key on the daemon's side",
		"the daemon does not trust the key %s", key)
}

// verify refuses a key that may not use the daemon now.
func (s *Server) verify(key identity.Public) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.grantLocked(key)
	return err
}

// listCommand returns the command that lists a share, or for none all of them. The daemon knows what the connection is
// over, and not the name that the peer's configuration has for it.
func (c *connection) listCommand(name string) string {
	if c.in.Side == wire.Server {
		return "dma-copy ls " + share.Scheme + "HOST/" + name
	}
	return "dma-copy ls :" + name
}

// authorize returns the rights to a share for an operation that needs the given access. A share that the key may not
// use at all is refused in the same words as one that does not exist.
func (c *connection) authorize(name string, needed share.Access) (rights, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	grant, err := s.grantLocked(c.key)
	if err != nil {
		return rights{}, err
	}
	served, found := s.shares[name]
	access := share.Access(0)
	if found {
		access = grant.Access(name, served.Access)
	}
	switch {
	case access == 0:
		return rights{}, job.NewError(ErrRefused, nil, fmt.Sprintf("run %q to see the shares", c.listCommand("")),
			"the daemon has no share %s for this key", quote.Text(name))
	case !access.Allows(needed):
		return rights{}, job.NewError(ErrRefused, nil, "ask for the right on the daemon's side",
			"this key may not %s share %s", verbs[needed&^access], quote.Text(name))
	}
	served.Access = access
	limits := s.config.Limits
	r := rights{
		Share: served, needed: needed, overwrite: !served.NoOverwrite, owner: grant.Owner,
		maxBytes:   lowest(limits.MaxBytes, grant.MaxBytes),
		maxEntries: lowest(limits.MaxEntries, grant.MaxEntries),
	}
	if needed.Allows(share.Write) { // the limits of a share are for what it receives
		r.maxBytes, r.maxEntries = lowest(r.maxBytes, served.MaxBytes), lowest(r.maxEntries, served.MaxEntries)
	}
	r.limiters = s.limitersLocked(c.key)
	return r, nil
}

// limitersLocked returns the bandwidth limits of a key. s.mu is held.
func (s *Server) limitersLocked(key identity.Public) (limiters []*rate.Limiter) {
	for _, l := range []*rate.Limiter{s.limiter, s.limiters[key]} {
		if l != nil {
			limiters = append(limiters, l)
		}
	}
	return limiters
}

var verbs = map[share.Access]string{
	share.Read: "read from", share.Write: "write to", share.ReadWrite: "read from and write to",
}

// visibleShares returns the shares in which a key may use something, with the access that it has.
func (s *Server) visibleShares(key identity.Public) (visible []share.Share, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	grant, err := s.grantLocked(key)
	if err != nil {
		return nil, err
	}
	for _, each := range s.shares {
		if each.Access = grant.Access(each.Name, each.Access); each.Access != 0 {
			visible = append(visible, each)
		}
	}
	return visible, nil
}

// open opens the directory that the share has now: nothing of a share is held between requests, so that a file system
// that has been mounted on its path is the one that is used. It makes calls that may hang.
func (s *Server) open(r rights) (*share.Opened, error) {
	if s.config.Forbidden != nil && s.config.Forbidden(r.Share, r.needed) {
		return nil, job.NewError(ErrRefused, nil, "restart the daemon",
			"the directory of share %s was replaced or mounted over after the start of the daemon, whose sandbox "+
				"does not permit the new one", r.Name)
	}
	opened, err := share.Open(r.Share, s.config.FS)
	if err == nil {
		return opened, nil
	}
	kind := job.ErrSource
	if r.needed.Allows(share.Write) {
		kind = job.ErrTarget
	}
	return nil, job.NewError(kind, nil, "check on the daemon's side that it exists and that its user may read it",
		"cannot open the directory of share %s: %s", r.Name, disk.Reason(err))
}

// tryShare opens the directory of a share for a moment. The error is for the operator.
func tryShare(s share.Share, fs disk.FS) error {
	opened, err := share.Open(s, fs)
	if err != nil {
		return err
	}
	return opened.Close()
}
