package pump

import (
	"sync/atomic"
	"time"
)

// Stage is an activity of a lane.
type Stage int

// The stages. Copying counts only the time in which the lane had no other work.
const (
	Reading   Stage = iota // reading from the source
	Checking               // computing checksums and digests
	Copying                // waiting for the engine
	Writing                // writing to the target
	Peer                   // waiting for the peer
	RateLimit              // waiting for the bandwidth limit
	stageCount
)

var stageNames = [stageCount]string{"read", "digest", "copy", "write", "peer", "rate limit"}

// String returns the stage's name in the summary.
func (s Stage) String() string { return stageNames[s] }

// Stages adds up the time that the lanes of a transfer spend in each stage. It is safe for concurrent use.
type Stages struct {
	spent [stageCount]atomic.Int64 // nanoseconds
}

// Shares is the fraction of the lanes' time, 0 to 1, spent in each stage. All are zero before any work.
type Shares [stageCount]float64

// Shares returns the current fractions.
func (s *Stages) Shares() Shares {
	var shares Shares
	for i := range s.spent {
		shares[i] = float64(s.spent[i].Load())
	}
	return shares.normalized()
}

// normalized returns fractions whose sum is 1, unless all are zero.
func (s Shares) normalized() Shares {
	var total float64
	for _, share := range s {
		total += share
	}
	if total > 0 {
		for i := range s {
			s[i] /= total
		}
	}
	return s
}

// Busiest returns the stage with the largest share, the bottleneck of the transfer.
func (s Shares) Busiest() Stage {
	busiest := Reading
	for i := range s {
		if s[i] > s[busiest] {
			busiest = Stage(i)
		}
	}
	return busiest
}

// WithoutPeer returns the fractions of the time that was not spent in waiting for the peer.
func (s Shares) WithoutPeer() Shares {
	s[Peer] = 0
	return s.normalized()
}

// clock attributes elapsed time to stages.
type clock struct {
	stages *Stages
	last   time.Time
}

func (s *Stages) start() clock { return clock{stages: s, last: time.Now()} }

// charge adds the time since start or the last charge to stage.
func (c *clock) charge(stage Stage) {
	now := time.Now()
	c.stages.spent[stage].Add(int64(now.Sub(c.last)))
	c.last = now
}
