package traffic

import (
	"slices"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/service"
)

const (
	// Interval is the time between two samples.
	Interval = time.Second
	// Kept is the maximum number of samples.
	Kept = 600
)

// Sample is the average rate of copies since the sample before it, or since the first copy after a pause.
type Sample struct {
	Time     time.Time `json:"time"`     // of its end, in UTC
	Received int64     `json:"received"` // bytes per second
	Sent     int64     `json:"sent"`     // bytes per second
}

// History keeps the rates of copies, as a service.Observer. It takes a sample each Interval while
// copies run, and one after the last of them; between copies there are no samples, and no timer runs. Any goroutine
// may call its methods.
type History struct {
	*Counter

	status   func() service.Status
	sampling sync.WaitGroup
	ended    chan struct{} // closed by Close

	mu      sync.Mutex
	active  bool // a goroutine takes samples
	closed  bool
	samples []Sample // at most Kept, oldest first
}

var _ service.Observer = (*History)(nil)

// NewHistory returns a history without samples. status is called for each sample. Close must be called.
func NewHistory(status func() service.Status) *History {
	return &History{Counter: NewCounter(), status: status, ended: make(chan struct{})}
}

// Began implements service.Observer.
func (h *History) Began(r service.Record) {
	h.Counter.Began(r)
	if !r.Transfers() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active || h.closed {
		return
	}
	h.active = true
	began, before := time.Now(), h.counted()
	h.sampling.Go(func() { h.sample(began, before) })
}

// sample takes samples until no copy runs.
func (h *History) sample(began time.Time, before Bytes) {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-h.ended:
			return
		}
		now, count := time.Now(), h.Count(h.status())
		h.add(sampleOf(now, now.Sub(began), before, count))
		if h.pause(count) {
			return
		}
		began, before = now, count
	}
}

func sampleOf(now time.Time, elapsed time.Duration, before, after Bytes) Sample {
	rate := func(bytes int64) int64 { return int64(float64(bytes) / elapsed.Seconds()) }
	return Sample{
		Time: now.UTC(), Received: rate(after.Received - before.Received), Sent: rate(after.Sent - before.Sent),
	}
}

func (h *History) add(s Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) == Kept {
		h.samples = slices.Delete(h.samples, 0, 1)
	}
	h.samples = append(h.samples, s)
}

// pause reports whether no copy runs and all bytes are in the samples. Then the next copy begins to sample again.
func (h *History) pause(sampled Bytes) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.active = !h.idle() || h.counted() != sampled
	return !h.active
}

// Samples returns the samples that are kept, oldest first.
func (h *History) Samples() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Sample{}, h.samples...)
}

// Close ends the sampling. It must be called once.
func (h *History) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	close(h.ended)
	h.sampling.Wait()
}
