package dmaxfer

import (
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Phase is what a copy is busy with.
type Phase uint32

// The phases, in their order.
const (
	Meeting    Phase = iota // waiting for the peer, and agreeing with it
	Preparing               // making room for the target
	Moving                  // copying
	Finishing               // flushing and verifying
	Concluding              // the last words of both sides
)

var phaseNames = [...]string{"meeting", "preparing", "moving", "finishing", "concluding"}

// String is the phase's name in progress reports.
func (p Phase) String() string { return phaseNames[p] }

// Unknown is the size of a stream.
const Unknown = -1

// Progress is how far a copy is. The copy updates it, and anybody may Sample it at any time. The zero value is that of a copy
// that has not begun.
type Progress struct {
	stages pump.Stages

	mu      sync.Mutex
	phase   Phase
	work    uint64 // done in this phase, bytes
	moved   int64
	total   int64
	resumed int64
	began   time.Time // the phase Moving
}

// Sample is a copy's progress at one moment.
type Sample struct {
	Phase   Phase
	Moved   int64         // bytes that the receiver has, those included that it had before
	Total   int64         // bytes; Unknown for a stream
	Resumed int64         // bytes that an earlier copy has brought
	Work    int64         // bytes done in this phase, such as flushed when Finishing
	Elapsed time.Duration // since the first byte could move; 0 before
	Shares  pump.Shares   // what this side's lanes spend their time on
}

// Sample reads the progress.
func (p *Progress) Sample() Sample {
	shares := p.stages.Shares()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Sample{
		Phase: p.phase, Moved: p.moved, Total: p.total, Resumed: p.resumed, Work: int64(p.work), Shares: shares,
	}
	if !p.began.IsZero() {
		s.Elapsed = time.Since(p.began)
	}
	return s
}

// plan notes how much there is to do.
func (p *Progress) plan(total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = total
}

// resume notes how much is there already.
func (p *Progress) resume(resumed int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resumed = resumed
}

// enter begins a phase, in which nothing is done yet.
func (p *Progress) enter(phase Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.work = phase, 0
	if phase == Moving {
		p.began = time.Now()
	}
}

func (p *Progress) pieceMoved(length int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved += length
	p.work += uint64(length)
}

// worked notes how much of the phase's work is done.
func (p *Progress) worked(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work = max(p.work, uint64(done))
}

// stirred notes that a piece is under way that takes its time: as the user's limit of the bandwidth, or whoever is at the other end of a
// stream, wants it.
func (p *Progress) stirred() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work++
}

// beat is what a heartbeat says.
func (p *Progress) beat() negotiate.Beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	return negotiate.Beat{Phase: uint32(p.phase), Work: p.work}
}
