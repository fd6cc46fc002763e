package job

import (
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// Phase is what a transfer is doing.
type Phase uint32

// The phases, in their order.
const (
	Meeting    Phase = iota // waiting for the peer, and negotiating with it
	Preparing               // preallocating the target
	Moving                  // copying
	Finishing               // flushing and verifying
	Concluding              // exchanging the last messages
)

var phaseNames = [...]string{"meeting", "preparing", "moving", "finishing", "concluding"}

// String is the phase's name in progress reports.
func (p Phase) String() string { return phaseNames[p] }

// Unknown is the size of a stream.
const Unknown = -1

// Progress is how far a transfer is. The transfer updates it; any goroutine may call Sample at any time. The zero value
// stands for a transfer that has not begun.
type Progress struct {
	stages pump.Stages
	within *Progress // the lanes charge their time there instead; nil: here

	mu      sync.Mutex
	phase   Phase
	work    uint64 // done in this phase, bytes
	moved   int64
	total   int64
	resumed int64
	began   time.Time // the phase Moving

	files, filesFound, found int64
	walked                   bool

	descriptions []*description // of the sides of the transfer; replaced, never changed
}

// Sample is the progress of a transfer at one moment.
type Sample struct {
	Phase   Phase
	Moved   int64         // bytes that the receiver has, including those that it had before
	Total   int64         // bytes; Unknown for a stream
	Resumed int64         // bytes that an earlier transfer has left
	Work    int64         // bytes done in this phase, such as flushed when Finishing
	Elapsed time.Duration // since the phase Moving began; 0 before
	Shares  pump.Shares   // of the lanes' time, by stage

	// The fields below are for a tree; FilesFound is 0 for a file or a stream.
	Files      int64 // entries that are decided
	FilesFound int64 // entries that the sender has found so far
	Found      int64 // bytes of the files that it has found so far
	Walked     bool  // it has found all of them: FilesFound and Found are final
}

// NewProgressWithin returns the progress of the other side of a transfer within one process, whose lanes charge their
// time to p.
func NewProgressWithin(p *Progress) *Progress { return &Progress{within: p} }

// Restart resets the progress as if the transfer had not begun, except for the time of the stages.
func (p *Progress) Restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.work, p.moved, p.total, p.resumed, p.began = 0, 0, 0, 0, 0, time.Time{}
	p.files, p.filesFound, p.found, p.walked = 0, 0, 0, false
}

// Sample returns the progress as of now.
func (p *Progress) Sample() Sample {
	shares := p.Stages().Shares()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Sample{
		Phase: p.phase, Moved: p.moved, Total: p.total, Resumed: p.resumed, Work: int64(p.work), Shares: shares,
		Files: p.files, FilesFound: p.filesFound, Found: p.found, Walked: p.walked,
	}
	if !p.began.IsZero() {
		s.Elapsed = time.Since(p.began)
	}
	return s
}

// Stages returns where the lanes charge their time.
func (p *Progress) Stages() *pump.Stages {
	if p.within != nil {
		return p.within.Stages()
	}
	return &p.stages
}

// SetTotal sets the size of the file in bytes, or Unknown.
func (p *Progress) SetTotal(total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = total
}

// SetResumed sets how many bytes the receiver already has.
func (p *Progress) SetResumed(resumed int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resumed = resumed
}

// Enter begins a phase, whose work is then 0.
func (p *Progress) Enter(phase Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.work = phase, 0
	if phase == Moving {
		p.began = time.Now()
	}
}

// ChunkMoved adds a chunk of that many bytes that the receiver has got.
func (p *Progress) ChunkMoved(length int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved += length
	p.work += uint64(length)
}

// Worked sets how many bytes of the phase's work are done. A value below the last one changes nothing.
func (p *Progress) Worked(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work = max(p.work, uint64(done))
}

// Touch counts as progress without a byte done: a chunk is in flight that the bandwidth limit or a slow stream delays.
func (p *Progress) Touch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work++
}

// touchTick is how often a call counts as progress.
const touchTick = time.Second

// TouchDuring makes a call that does not report how far it is. It counts as progress, but not for longer than longest.
func (p *Progress) TouchDuring(longest time.Duration, call func() error) error {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(touchTick)
		defer tick.Stop()
		for range longest / touchTick {
			select {
			case <-tick.C:
				p.Touch()
			case <-stop:
				return
			}
		}
	}()
	return call()
}

// FoundEntry counts an entry of a tree, and the bytes of a file.
func (p *Progress) FoundEntry(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filesFound++
	p.found += bytes
	p.work++
}

// FoundAll says that all entries of a tree have been found.
func (p *Progress) FoundAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.walked = true
}

// DecidedEntry counts an entry of a tree that is decided.
func (p *Progress) DecidedEntry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files++
	p.work++
}

// Beat returns what a heartbeat reports.
func (p *Progress) Beat() native.Beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	return native.Beat{Phase: uint32(p.phase), Work: p.work}
}
