package service

import (
	"fmt"

	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// rights are what one request may do with its share. They are looked up for each request, and hold until its end.
type rights struct {
	*share.Opened        // with the access of the key
	open                 *openShare
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
	if c.in.Side == negotiate.Server {
		return "dma-copy ls " + share.Scheme + "HOST/" + name
	}
	return "dma-copy ls :" + name
}

// authorize returns the rights to a share for an operation that needs the given access. A share that the key may not
// use at all is refused in the same words as one that does not exist. The rights are to be released.
func (c *connection) authorize(name string, needed share.Access) (rights, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	grant, err := s.grantLocked(c.key)
	if err != nil {
		return rights{}, err
	}
	opened := s.shares[name]
	access := share.Access(0)
	if opened != nil {
		access = grant.Access(name, opened.Access)
	}
	switch {
	case access == 0:
		return rights{}, job.NewError(ErrRefused, nil, fmt.Sprintf("run %q to see the shares", c.listCommand("")),
			"the daemon has no share %s for this key", quote.Text(name))
	case !access.Allows(needed):
		return rights{}, job.NewError(ErrRefused, nil, "ask for the right on the daemon's side",
			"this key may not %s share %s", verbs[needed&^access], quote.Text(name))
	}
	opened.users++
	limits := s.config.Limits
	r := rights{
		Opened: opened.Limited(access), open: opened, overwrite: !opened.NoOverwrite, owner: grant.Owner,
		maxBytes:   lowest(limits.MaxBytes, grant.MaxBytes),
		maxEntries: lowest(limits.MaxEntries, grant.MaxEntries),
	}
	if needed.Allows(share.Write) { // those of a share are for what it receives
		r.maxBytes, r.maxEntries = lowest(r.maxBytes, opened.MaxBytes), lowest(r.maxEntries, opened.MaxEntries)
	}
	for _, l := range []*rate.Limiter{s.limiter, s.limiters[c.key]} {
		if l != nil {
			r.limiters = append(r.limiters, l)
		}
	}
	return r, nil
}

var verbs = map[share.Access]string{
	share.Read: "read from", share.Write: "write to", share.ReadWrite: "read from and write to",
}

// visibleShares returns those of which a key may use something, with the access that it has.
func (s *Server) visibleShares(key identity.Public) (visible []share.Share, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	grant, err := s.grantLocked(key)
	if err != nil {
		return nil, err
	}
	for _, each := range s.shares {
		shown := each.Share
		if shown.Access = grant.Access(each.Name, each.Access); shown.Access != 0 {
			visible = append(visible, shown)
		}
	}
	return visible, nil
}

// openShare is a share that requests use. It is closed when it has been replaced and the last of them has ended.
type openShare struct {
	*share.Opened
	users int // guarded by Server.mu: requests, and one for being the current one
}

func openShares(shares []share.Share, fs disk.FS) (map[string]*openShare, error) {
	opened := make(map[string]*openShare)
	for _, each := range shares {
		one, err := share.Open(each, fs)
		if err != nil {
			for _, other := range opened {
				_ = other.Close() // it was only opened
			}
			return nil, err
		}
		opened[each.Name] = &openShare{Opened: one, users: 1}
	}
	return opened, nil
}

// release lets go of a share.
func (s *Server) release(o *openShare) {
	s.mu.Lock()
	o.users--
	last := o.users == 0
	s.mu.Unlock()
	if !last {
		return
	}
	if err := o.Close(); err != nil {
		s.config.Log.Warn().Err(err).Str("share", o.Name).Msg("could not close the share")
	}
}

func (s *Server) releaseAll(shares map[string]*openShare) {
	for _, each := range shares {
		s.release(each)
	}
}
