package doca

import "github.com/dma-copy/dma-copy/internal/doca/internal/cabi"

// generous is a device that may return more completions per poll than requested.
type generous struct{ cabi.ABI }

func (g generous) PortPoll(p cabi.Port, _ int) []cabi.PortCompletion {
	return g.ABI.PortPoll(p, 1<<16)
}

// MakeGenerous makes the devices of both return all completions at once.
func MakeGenerous(c *Consumer, p *Producer) {
	c.port.abi, p.port.abi = generous{c.port.abi}, generous{p.port.abi}
}

// slow is a device that takes a number of polls to become idle.
type slow struct {
	cabi.ABI
	polls *int
}

func (s slow) State(p cabi.Progress) cabi.ContextState {
	if *s.polls > 0 {
		return cabi.Stopping
	}
	return s.ABI.State(p)
}

func (s slow) PortPoll(p cabi.Port, most int) []cabi.PortCompletion {
	*s.polls--
	return s.ABI.PortPoll(p, most)
}

// MakeSleepless puts a consumer into the state of one whose waiter could not be created, on a device that takes that
// many polls to stop.
func MakeSleepless(c *Consumer, polls int) error {
	err := c.port.waiter.close()
	c.port.waiter = nil
	c.port.abi = slow{c.port.abi, &polls}
	return err
}

// MaxRangesFor returns the number of ranges of one copy on a device that reports lists of so many buffers.
func MaxRangesFor(list uint32) int {
	d := &Device{}
	d.info.MaxList = list
	return d.maxRanges()
}
