package role

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"golang.org/x/time/rate"
)

// Where a chunk may take long each has a message of its own, and elsewhere a message stands for at most maxBatch.
func TestBatches(t *testing.T) {
	plan := func(slots, chunk uint32) native.Plan { return native.Plan{Depth: slots, Chunk: chunk} }
	for name, c := range map[string]struct {
		plan   native.Plan
		config Config
		stream bool
		size   int64 // of the source; 0: it is the peer's
		want   int
	}{
		"a quarter of the window": {plan: plan(16, 512<<10), want: 4},
		"few slots":               {plan: plan(3, 512<<10), want: 1},
		"many slots":              {plan: plan(1024, 512<<10), want: 8},
		"large slots":             {plan: plan(32, 32<<20), want: 1},
		"paced":                   {plan: plan(16, 512<<10), config: Config{Options: Options{Bandwidth: 1}}, want: 1},
		"stream":                  {plan: plan(16, 512<<10), stream: true, want: 1},
		"a file in the window":    {plan: plan(16, 512<<10), size: 8 << 20, want: 1},
		"a larger file":           {plan: plan(16, 512<<10), size: 8<<20 + 1, want: 4},
		"a small tree":            {plan: native.Plan{Depth: 16, Chunk: 512 << 10, Tree: true}, size: 1, want: 4},
	} {
		c.config.File = &job.LocalFile{Stream: c.stream}
		if c.size > 0 {
			c.config.File.Source = disk.NewSource(nil, disk.Info{Identity: disk.Identity{Size: c.size}})
		}
		agreed := Params{Config: &c.config, Plan: c.plan}
		if got := agreed.Batch(); got != c.want {
			t.Errorf("%s: %d chunks with a message, not %d", name, got, c.want)
		}
	}
}

// A lane that fetches a chunk itself needs one buffer for it, unless chunks wait in buffers to be written in order.
func TestBuffersOfALane(t *testing.T) {
	for name, c := range map[string]struct {
		side      wire.Side
		path      wire.Path
		digest    digest.Algorithm
		offloaded bool
		buffers   int
	}{
		"DPU":                     {wire.DPU, wire.PathDMA, digest.CRC32C, false, 4},
		"DPU, in order":           {wire.DPU, wire.PathDMA, digest.SHA256, false, 8},
		"DPU, fast path":          {wire.DPU, wire.PathFast, digest.CRC32C, false, 1},
		"DPU, fast and in order":  {wire.DPU, wire.PathFast, digest.SHA256, false, 8},
		"a host":                  {wire.Host, wire.PathDMA, digest.CRC32C, false, 1},
		"a host, in order":        {wire.Host, wire.PathDMA, digest.SHA256, false, 8},
		"a host, with a card":     {wire.Host, wire.PathDMA, digest.CRC32C, true, 1},
		"a host on the fast path": {wire.Host, wire.PathFast, digest.CRC32C, false, 1},
		"RDMA":                    {wire.DPU, wire.PathRMA, digest.CRC32C, true, 4},
		"RDMA, in order":          {wire.DPU, wire.PathRMA, digest.SHA256, true, 8},
		"shared memory":           {wire.DPU, wire.PathRMA, digest.CRC32C, false, 1},
		"shared memory, in order": {wire.DPU, wire.PathRMA, digest.SHA256, false, 8},
	} {
		memory := device{traits: window.Traits{Offloaded: c.offloaded}}
		config := &Config{Options: Options{Side: c.side}, File: &job.LocalFile{}, Memory: memory}
		agreed := Params{Config: config, Plan: native.Plan{
			Sender: c.side.Other(), Path: c.path, Depth: 8, Chunk: 4096, Digest: c.digest,
		}}
		if got := agreed.Layout().Buffers; got != c.buffers {
			t.Errorf("%s: %d buffers, not %d", name, got, c.buffers)
		}
	}
}

// device is the Memory of a device that only has traits.
type device struct {
	window.Memory
	traits window.Traits
}

func (d device) Traits(job.Paths) window.Traits { return d.traits }

// fewCPUs is the Placement of a process with no more CPUs than lanes.
type fewCPUs struct{ pump.Pinning }

func (f fewCPUs) Lanes(int) pump.Pinning { return f }

// Lanes are pinned in a transfer that is worth it, unless the device copies with a processor of its own.
func TestPinning(t *testing.T) {
	const large, small = 1 << 30, 1 << 20
	plan := native.Plan{Digest: digest.CRC32C}
	with := func(change func(p *native.Plan)) native.Plan {
		p := plan
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		plan      native.Plan
		size      int64
		placement Placement
		stream    bool
		offloaded bool
		pinned    bool
	}{
		"large":            {plan: plan, size: large, placement: fewCPUs{}, pinned: true},
		"without a wish":   {plan: plan, size: large},
		"a distant device": {plan: plan, size: large, placement: fewCPUs{}, offloaded: true},
		"small":            {plan: plan, size: small, placement: fewCPUs{}},
		"of unknown size":  {plan: plan, size: job.Unknown, placement: fewCPUs{}},
		"ordered": {
			plan: with(func(p *native.Plan) { p.Digest = digest.SHA256 }), size: large, placement: fewCPUs{},
		},
		"from a stream": {
			plan: with(func(p *native.Plan) { p.StreamSource = true }), size: large, placement: fewCPUs{},
		},
		"to a stream": {
			plan: with(func(p *native.Plan) { p.StreamTarget = true }), size: large, placement: fewCPUs{},
		},
		"a stream's side": {plan: plan, size: large, placement: fewCPUs{}, stream: true},
	} {
		agreed := Params{Plan: c.plan, Config: &Config{
			Options: Options{Placement: c.placement},
			Memory:  device{traits: window.Traits{Offloaded: c.offloaded}}, File: &job.LocalFile{Stream: c.stream},
		}}
		if got := agreed.Pinning(c.size); (got != nil) != c.pinned {
			t.Errorf("%s: pinned by %v", name, got)
		}
		if got := agreed.Config.choice().Shared; got != (c.placement != nil && !c.offloaded) {
			t.Errorf("%s: CPUs are shared: %t", name, got)
		}
	}
}

// A device that can have only one producer or consumer on a connection has one lane.
func TestLanesOfAConnection(t *testing.T) {
	for limit, want := range map[int64]int{0: MaxLanes, 1: 1, 2: 2, 64: MaxLanes} {
		agreed := Params{
			Config: &Config{File: &job.LocalFile{}, Memory: device{traits: window.Traits{Lanes: limit}}},
			Plan:   native.Plan{Path: wire.PathFast, Depth: 8, Chunk: 4096, Digest: digest.CRC32C},
		}
		if got := agreed.Layout().Lanes; got != want {
			t.Errorf("%d per connection: %d lanes, not %d", limit, got, want)
		}
	}
}

// On the paths with connections both sides arrange their windows alike, whichever end is a stream: each connection is
// of both. A receiver has no buffers beside its slots.
func TestLanesOfConnectionsFollowThePlan(t *testing.T) {
	for name, plan := range map[string]native.Plan{
		"files":         {},
		"stream source": {StreamSource: true},
		"stream target": {StreamTarget: true},
		"ordered":       {Digest: wire.DigestBLAKE3},
	} {
		for _, path := range []wire.Path{wire.PathTLS, wire.PathTCP} {
			plan.Path, plan.Sender, plan.Chunk, plan.Depth = path, wire.Client, 4096, 4
			layouts := map[wire.Side]window.Layout{}
			for side, stream := range map[wire.Side]bool{
				wire.Client: plan.StreamSource, wire.Server: plan.StreamTarget,
			} {
				agreed := Params{Plan: plan, Config: &Config{
					Options: Options{Side: side},
					File:    &job.LocalFile{Stream: stream}, Memory: device{},
				}}
				layouts[side] = agreed.Layout()
			}
			sends, receives := layouts[wire.Client], layouts[wire.Server]
			if sends.Lanes != receives.Lanes || sends.Buffers != 0 || receives.Buffers != 0 {
				t.Errorf("%s, %s: the sender has %+v, the receiver %+v", path, name, sends, receives)
			}
		}
	}
}

// A chunk takes no longer than an eighth of a second of the slowest limit.
func TestChunkOfLimitedTransfer(t *testing.T) {
	for _, test := range []struct {
		bandwidth int64
		limiters  []*rate.Limiter
		want      uint32
	}{
		{0, nil, 2 << 20},
		{0, []*rate.Limiter{rate.NewLimiter(rate.Inf, 0)}, 2 << 20},
		{0, []*rate.Limiter{rate.NewLimiter(1<<20, 1<<20)}, 128 << 10},
		{1 << 19, []*rate.Limiter{rate.NewLimiter(1<<20, 1<<20)}, 64 << 10},
		{1 << 30, []*rate.Limiter{rate.NewLimiter(1<<20, 1<<20), rate.NewLimiter(1<<18, 1<<18)}, 32 << 10},
	} {
		c := Config{Options: Options{Bandwidth: test.bandwidth, Limiters: test.limiters}, Memory: device{}}
		if got, _ := c.choice().For(0); got != test.want {
			t.Errorf("%d and %d limiters: chunks of %d bytes, want %d",
				test.bandwidth, len(test.limiters), got, test.want)
		}
	}
}
