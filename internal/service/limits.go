package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// Limits bound what all peers of a Server can use together, and each of them. A peer or its grant can only
// lower them. The zero value of a field is its default, or no limit where the comment says so.
type Limits struct {
	Connections    int           // authenticated ones; default 64
	PerKey         int           // of these, with one key; default 16
	Transfers      int           // running copies, further ones wait, and keys share the permits; default 16
	Memory         int64         // bytes of windows, buffers and ITEMS of all connections; no limit
	Bandwidth      int64         // bytes per second of all copies together; no limit
	MaxBytes       int64         // of one file; no limit
	MaxEntries     int64         // of one directory tree; no limit
	IdleTimeout    time.Duration // of a running request without progress; default 30 s
	RequestTimeout time.Duration // between two requests; default 5 min
	Handshake      time.Duration // from the connection to the end of the greeting; default 10 s
}

// waitingHandshakes is how many connections of one function may wait while another one makes its handshake. Each of
// them costs a connection of the device and a goroutine.
const waitingHandshakes = 16

func (l Limits) withDefaults() Limits {
	setDefault(&l.Connections, 64)
	setDefault(&l.PerKey, 16)
	setDefault(&l.Transfers, 16)
	setDefault(&l.IdleTimeout, 30*time.Second)
	setDefault(&l.RequestTimeout, 5*time.Minute)
	setDefault(&l.Handshake, 10*time.Second)
	return l
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// lowest returns the smallest of the limits that are set, or 0 if there is none.
func lowest(limits ...int64) (least int64) {
	for _, l := range limits {
		if l > 0 && (least == 0 || l < least) {
			least = l
		}
	}
	return least
}

// smallestBurst lets a bandwidth limiter pass the largest chunk, regardless of its rate.
const smallestBurst = 4 << 20

// newLimiter returns a limiter of that many bytes per second, or nil for no limit.
func newLimiter(bandwidth int64) *rate.Limiter {
	if bandwidth <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(bandwidth), smallestBurst)
}

// memoryBudget bounds the bytes of the windows, buffers and ITEMS of all connections.
type memoryBudget struct {
	limit int64 // 0: none

	mu   sync.Mutex
	used int64
}

func (b *memoryBudget) reserve(bytes int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit > 0 && bytes > b.limit-b.used {
		return job.NewError(job.ErrLimit, nil, "try again later, or raise --max-memory of the daemon",
			"the daemon's limit of %d bytes for the memory of all connections is reached: %d are in use, %d are needed",
			b.limit, b.used, bytes)
	}
	b.used += bytes
	return nil
}

func (b *memoryBudget) release(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
}

func (b *memoryBudget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// budgetedMemory is a window.Memory whose windows count in a budget from when they are opened until they are closed.
type budgetedMemory struct {
	window.Memory
	budget *memoryBudget
}

// Expose implements window.Memory.
func (m budgetedMemory) Expose(ctx context.Context, l window.Layout) (*window.Window, error) {
	return m.within(l, native.Window{}, func() (*window.Window, error) { return m.Memory.Expose(ctx, l) })
}

// Open implements window.Memory.
func (m budgetedMemory) Open(ctx context.Context, l window.Layout, w native.Window) (*window.Window, error) {
	return m.within(l, w, func() (*window.Window, error) { return m.Memory.Open(ctx, l, w) })
}

func (m budgetedMemory) within(
	l window.Layout, peer native.Window, open func() (*window.Window, error),
) (*window.Window, error) {
	bytes := l.Length()
	if !l.Sends {
		bytes += int64(l.Lanes) * int64(l.Buffers) * l.Chunk
	}
	if b, is := m.Memory.(window.Buffering); is {
		bytes += b.Overhead(l, peer)
	}
	if err := m.budget.reserve(bytes); err != nil {
		return nil, err
	}
	w, err := open()
	if err != nil {
		m.budget.release(bytes)
		return nil, err
	}
	counted := w.Lend()
	counted.AddCloser(reservation{m.budget, bytes})
	counted.AddCloser(w) // first; if that fails, the memory still counts
	return counted, nil
}

// reservation is a part of a budget that Close returns.
type reservation struct {
	budget *memoryBudget
	bytes  int64
}

// Close implements io.Closer.
func (r reservation) Close() error {
	r.budget.release(r.bytes)
	return nil
}

// queue lets one connection of each function through at a time, and a few more wait.
type queue struct {
	mu     sync.Mutex
	places map[string]*places // by function
}

type places struct {
	turn  *semaphore.Weighted
	users int
}

func newQueue() *queue { return &queue{places: make(map[string]*places)} }

// enter waits for the turn until ctx ends. leave must be called afterwards, unless there is an error.
func (q *queue) enter(ctx context.Context, function string) (leave func(), err error) {
	p := q.take(function)
	if p == nil {
		return nil, fmt.Errorf("%d connections of %s wait for their handshake", waitingHandshakes, function)
	}
	if err := p.turn.Acquire(ctx, 1); err != nil {
		q.drop(function, p)
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		p.turn.Release(1)
		q.drop(function, p)
	}), nil
}

// take returns nil if too many wait already.
func (q *queue) take(function string) *places {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.places[function]
	if p == nil {
		p = &places{turn: semaphore.NewWeighted(1)}
		q.places[function] = p
	}
	if p.users == 1+waitingHandshakes {
		return nil
	}
	p.users++
	return p
}

func (q *queue) drop(function string, p *places) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(q.places, function)
	}
}

func (q *queue) length() (users int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.places {
		users += p.users
	}
	return users
}
