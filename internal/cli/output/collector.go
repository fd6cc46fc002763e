package output

import (
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// Collector is the Reporter of the copies to one of many peers: it keeps what the line about the peer needs, and passes
// on how many bytes were copied. What a copy warns of is passed on, too.
type Collector struct {
	Moved  func(bytes int64) // of all copies so far; called at intervals while one runs
	Warned func(text string)
	Waits  func(s job.Sample, waits []job.Snapshot) // answers as Reporter.Asked

	// The following are set when the copies have ended.
	Causes []error     // why sources failed, of those after which others followed
	Last   job.Summary // of the last copy that succeeded, the zero one if there is none

	copies int
	before int64 // bytes of the copies that have ended
	now    int64 // bytes of the running one
}

var _ Reporter = (*Collector)(nil)

// Begin implements Reporter.
func (c *Collector) Begin(Path) {
	c.copies++
	c.before, c.now = c.before+c.now, 0
}

// Event implements Reporter.
func (c *Collector) Event(e job.Event) {
	if warned, is := e.(job.Warned); is {
		c.Warned(warned.Text)
	}
}

// Progress implements Reporter.
func (c *Collector) Progress(s job.Sample) {
	c.now = s.Moved
	c.Moved(c.before + c.now)
}

// Asked implements Reporter.
func (c *Collector) Asked(s job.Sample, waits []job.Snapshot) { c.Waits(s, waits) }

// Interval implements Reporter.
func (c *Collector) Interval() time.Duration { return time.Second }

// Result implements Reporter.
func (c *Collector) Result(s job.Summary) error {
	c.Last = s
	return nil
}

// SourceFailed implements Reporter.
func (c *Collector) SourceFailed(err error) { c.Causes = append(c.Causes, err) }

// Deleting and Deleted implement Reporter. Nothing is deleted at many peers.
func (c *Collector) Deleting(Deleting) {}

// Deleted implements Reporter.
func (c *Collector) Deleted(Deletion) {}

// Total implements Reporter.
func (c *Collector) Total(Total) error { return nil }

// Fail implements Reporter.
func (c *Collector) Fail(error) {}

// Sum returns the digest of the only file, None if there were several or none.
func (c *Collector) Sum() digest.Sum {
	if c.copies != 1 {
		return digest.Sum{}
	}
	return c.Last.Sum
}
