package service

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// permits are those to transfer, which the tenants of a daemon share by max-min fairness: of the tenants with waiting
// copies, the one with the fewest running copies gets the next permit, and of several the one that waits longest since
// its last. A tenant is a key, or with --auth none a function.
//
// Running copies are not interrupted for that, so a tenant whose copies are slow must not hold all permits: as long as
// other tenants have no copy running, a permit is reserved for each of them, at most half of all. Their first copies
// then wait for no other tenant, if there are at most half as many tenants as permits, and one more.
//
// Its methods are safe for concurrent use.
type permits struct {
	mu      sync.Mutex
	total   int
	free    int
	tenants map[string]struct{} // that may transfer
	clock   uint64
	holders map[string]*holder // by tenant, while it has running or waiting copies
}

// holder is a tenant that has running or waiting copies.
type holder struct {
	tenant  string
	running int
	waiting []*permit // in the order of arrival
	since   uint64    // clock of the arrival of the first of them, or of the last permit
}

// permit is the permit of one copy, from the arrival of the copy to its end; it is granted in between.
type permit struct {
	permits *permits
	of      *holder
	granted chan struct{} // closed when the copy has its permit
}

func newPermits(total int) *permits {
	return &permits{total: total, free: total, holders: make(map[string]*holder)}
}

// setTenants sets which tenants may transfer.
func (p *permits) setTenants(tenants map[string]struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tenants = tenants
	p.grantLocked()
}

// join queues a copy, which gets a permit at once if it need not wait. wait must be called next.
func (p *permits) join(tenant string) *permit {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.holders[tenant]
	if h == nil {
		h = &holder{tenant: tenant}
		p.holders[tenant] = h
	}
	if len(h.waiting) == 0 {
		h.since = p.tickLocked()
	}
	t := &permit{permits: p, of: h, granted: make(chan struct{})}
	h.waiting = append(h.waiting, t)
	p.grantLocked()
	return t
}

func (p *permits) tickLocked() uint64 {
	p.clock++
	return p.clock
}

// grantLocked gives permits to waiting copies, as long as there are some for them.
func (p *permits) grantLocked() {
	for p.free > 0 {
		h := p.nextLocked()
		if h == nil || h.running > 0 && p.free <= p.reservedLocked() {
			return
		}
		p.free--
		h.running++
		h.since = p.tickLocked()
		close(h.waiting[0].granted)
		h.waiting = slices.Delete(h.waiting, 0, 1)
	}
}

// nextLocked returns the tenant whose copy is next, or nil if none waits.
func (p *permits) nextLocked() (next *holder) {
	for _, h := range p.holders {
		if len(h.waiting) > 0 && (next == nil || h.before(next)) {
			next = h
		}
	}
	return next
}

func (h *holder) before(other *holder) bool {
	return cmp.Or(cmp.Compare(h.running, other.running), cmp.Compare(h.since, other.since)) < 0
}

// reservedLocked returns how many free permits are for tenants without a running copy.
func (p *permits) reservedLocked() int {
	idle := len(p.tenants)
	for _, h := range p.holders {
		if _, may := p.tenants[h.tenant]; may && h.running > 0 {
			idle--
		}
	}
	return min(idle, p.total/2)
}

// isGranted reports whether the copy need not wait any more.
func (t *permit) isGranted() bool { return isClosed(t.granted) }

// wait returns nil when the copy has a permit, which is to be released. If ctx ends first, the copy leaves the queue,
// and the error is the cause of ctx.
func (t *permit) wait(ctx context.Context) error {
	if t.isGranted() {
		return nil
	}
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
	}
	p := t.permits
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.isGranted() {
		p.returnLocked(t.of)
	} else {
		t.of.waiting = slices.DeleteFunc(t.of.waiting, func(other *permit) bool { return other == t })
	}
	p.forgetLocked(t.of)
	return context.Cause(ctx)
}

// release returns the permit of a copy that has ended.
func (t *permit) release() {
	p := t.permits
	p.mu.Lock()
	defer p.mu.Unlock()
	p.returnLocked(t.of)
	p.forgetLocked(t.of)
}

func (p *permits) returnLocked(h *holder) {
	h.running--
	p.free++
	p.grantLocked()
}

func (p *permits) forgetLocked(h *holder) {
	if h.running == 0 && len(h.waiting) == 0 {
		delete(p.holders, h.tenant)
	}
}

// ahead returns how many copies have to end before this one begins, if no more arrive. The number for other tenants is
// an estimate, because it depends on whose copies end first. It is at least 1.
func (t *permit) ahead() int {
	p := t.permits
	p.mu.Lock()
	defer p.mu.Unlock()
	position := max(0, slices.Index(t.of.waiting, t))
	n := 1 + position
	for _, other := range p.holders {
		if other == t.of {
			continue
		}
		earlier := t.of.running + position - other.running
		if other.since < t.of.since {
			earlier++
		}
		n += min(max(earlier, 0), len(other.waiting))
	}
	return n
}

// holderCount is how many copies of a tenant run and wait.
type holderCount struct {
	tenant           string
	running, waiting int
}

// counts returns what the tenants have that have running or waiting copies, in no order.
func (p *permits) counts() (counts []holderCount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.holders {
		counts = append(counts, holderCount{h.tenant, h.running, len(h.waiting)})
	}
	return counts
}
