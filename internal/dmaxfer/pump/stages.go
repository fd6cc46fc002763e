package pump

import (
	"sync/atomic"
	"time"
)

// Stage is what a lane can be doing.
type Stage int

// The stages. Waiting for the engine is time in which nothing else could be done.
const (
	Reading   Stage = iota // from the source
	Checking               // computing checks and digests
	Copying                // waiting for the engine
	Writing                // to the target
	Peer                   // waiting for the peer
	RateLimit              // waiting until the bandwidth limit lets more bytes through
	stageCount
)

var stageNames = [stageCount]string{"read", "digest", "dma", "write", "peer", "rate limit"}

// String is the stage's name in the summary.
func (s Stage) String() string { return stageNames[s] }

// Stages adds up how long the lanes of a copy have been in each stage. Safe for concurrent use.
type Stages struct {
	spent [stageCount]atomic.Int64 // nanoseconds
}

// Shares is the part of the lanes' time, 0 to 1, that each stage took; all zero before anything was done.
type Shares [stageCount]float64

// Shares computes them as of now.
func (s *Stages) Shares() Shares {
	var shares Shares
	var total float64
	for i := range s.spent {
		shares[i] = float64(s.spent[i].Load())
		total += shares[i]
	}
	for i := range shares {
		if total > 0 {
			shares[i] /= total
		}
	}
	return shares
}

// Busiest is the stage with the largest share: what a faster copy would need more of.
func (s Shares) Busiest() Stage {
	busiest := Reading
	for i := range s {
		if s[i] > s[busiest] {
			busiest = Stage(i)
		}
	}
	return busiest
}

// clock charges time to stages, one after the other.
type clock struct {
	stages *Stages
	last   time.Time
}

func (s *Stages) start() clock { return clock{stages: s, last: time.Now()} }

// charge says what has been done since the clock was started or charged last.
func (c *clock) charge(stage Stage) {
	now := time.Now()
	c.stages.spent[stage].Add(int64(now.Sub(c.last)))
	c.last = now
}
