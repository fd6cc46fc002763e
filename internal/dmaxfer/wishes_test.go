package dmaxfer

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// What a user wants besides the copy, on whichever side, binds both.
func TestWishesBindBothSides(t *testing.T) {
	right, wrong := sumOf(t, sweepScenarios()["new file of the host"].content), sumOf(t, "something else")
	for name, c := range map[string]struct {
		set  func(o *Options)
		want negotiate.AbortCode
	}{
		"enough bytes":     {func(o *Options) { o.MaxBytes = 1 << 20 }, 0},
		"too few bytes":    {func(o *Options) { o.MaxBytes = 5000 }, negotiate.AbortLimit},
		"expected":         {func(o *Options) { o.Expect = &right }, 0},
		"not expected":     {func(o *Options) { o.Expect = &wrong }, negotiate.AbortDigest},
		"read back":        {func(o *Options) { o.Readback = true }, 0},
		"without holes":    {func(o *Options) { o.NoSparse = true }, 0},
		"stronger digest":  {func(o *Options) { o.Digest = digest.SHA256 }, 0},
		"may change":       {func(o *Options) { o.AllowChanging = true }, 0},
		"owner, of a side": {func(o *Options) { o.Owner = true }, 0},
	} {
		for _, stream := range []bool{false, true} {
			for _, side := range []negotiate.Side{negotiate.Host, negotiate.DPU} {
				t.Run(fmt.Sprint(name, " on the ", side, ", stream ", stream), func(t *testing.T) {
					sc := sweepScenarios()["new file of the host"]
					sc.FromStream = stream
					wishes(t, sc, side, c.set, int(c.want))
				})
			}
		}
	}
}

// A paced copy is cut so small that its pieces show to the peer that it goes on, unless they could not be smaller.
func TestPacedPiecesAreSmall(t *testing.T) {
	for bandwidth, want := range map[int64]uint32{0: 512 << 10, 1 << 30: 512 << 10, 2 << 20: 256 << 10, 100_000: 8192, 1: negotiate.MinChunk} {
		o := Options{Side: negotiate.DPU, Bandwidth: bandwidth}
		if got := o.slotSize(0, traits{}); got != want {
			t.Errorf("at %d bytes per second pieces have %d bytes, not %d", bandwidth, got, want)
		}
	}
}

// The DPU has small windows for small files; who was told a chunk or a depth proposes that, and the host leaves it to the DPU.
func TestSmallFilesGetSmallWindows(t *testing.T) {
	const unknown = 0
	dpu, host := Options{Side: negotiate.DPU}, Options{Side: negotiate.Host}
	for _, c := range []struct {
		o            Options
		size         int64
		chunk, slots uint32
	}{
		{dpu, unknown, 512 << 10, 16},
		{dpu, 1, 64 << 10, 8},
		{dpu, 2 << 20, 64 << 10, 8},
		{dpu, 60 << 20, 128 << 10, 15},
		{dpu, 64 << 20, 256 << 10, 8},
		{dpu, 1 << 30, 512 << 10, 16},
		{dpu, math.MaxInt64, 512 << 10, 16},
		{host, 2 << 20, 2 << 20, 32},
		{Options{Side: negotiate.DPU, Chunk: 1 << 20}, 64 << 20, 1 << 20, 8},
		{Options{Side: negotiate.DPU, Depth: 4}, 1 << 30, 512 << 10, 4},
		{Options{Side: negotiate.DPU, Depth: 1 << 20}, 1 << 30, 512 << 10, negotiate.MaxSlots},
	} {
		if chunk, slots := c.o.slotSize(c.size, traits{}), c.o.slotCount(c.size, traits{}); chunk != c.chunk || slots != c.slots {
			t.Errorf("%s, chunk %d and depth %d asked for, %d bytes: %d slots of %d bytes", c.o.Side, c.o.Chunk, c.o.Depth, c.size, slots, chunk)
		}
	}
	far := traits{distant: true}
	for size, want := range map[int64][2]uint32{unknown: {1 << 20, 32}, 2 << 20: {64 << 10, 8}, 1 << 30: {1 << 20, 32}} {
		if chunk, slots := dpu.slotSize(size, far), dpu.slotCount(size, far); chunk != want[0] || slots != want[1] {
			t.Errorf("a distant device and %d bytes: %d slots of %d bytes", size, slots, chunk)
		}
	}
	if got := dpu.slotCount(1<<30, traits{cpus: []int{0, 1}}); got != 8 {
		t.Errorf("lanes that share processors get %d slots", got)
	}
	if got := dpu.slotSize(unknown, traits{largest: 100_000}); got != 64<<10 {
		t.Errorf("a device that copies 100,000 bytes at once gets slots of %d", got)
	}
}

// Where a piece may take long the peer hears of each, and elsewhere of no more than is soon done.
func TestPiecesGoAloneWhereTheyMayTakeLong(t *testing.T) {
	plan := func(slots, chunk uint32) negotiate.Plan { return negotiate.Plan{Slots: slots, Chunk: chunk} }
	for name, c := range map[string]struct {
		n    *native
		want int
	}{
		"a quarter of the window": {&native{plan: plan(16, 512<<10), place: &place{}}, 4},
		"few slots":               {&native{plan: plan(3, 512<<10), place: &place{}}, 1},
		"many slots":              {&native{plan: plan(1024, 512<<10), place: &place{}}, 8},
		"large slots":             {&native{plan: plan(32, 32<<20), place: &place{}}, 1},
		"paced":                   {&native{plan: plan(16, 512<<10), place: &place{}, limiter: rate.NewLimiter(1, 1)}, 1},
		"stream":                  {&native{plan: plan(16, 512<<10), place: &place{stream: true}}, 1},
	} {
		if got := c.n.batch(); got != c.want {
			t.Errorf("%s: %d pieces with a message, not %d", name, got, c.want)
		}
	}
}

// Who fetches a piece itself needs one buffer for it, unless pieces wait in buffers for their turn.
func TestBuffersOfALane(t *testing.T) {
	for name, c := range map[string]struct {
		side   negotiate.Side
		digest digest.Algorithm
		want   int
	}{
		"DPU":              {negotiate.DPU, digest.CRC32C, 4},
		"DPU, in order":    {negotiate.DPU, digest.SHA256, 8},
		"a host":           {negotiate.Host, digest.CRC32C, 1},
		"a host, in order": {negotiate.Host, digest.SHA256, 8},
	} {
		n := &native{options: Options{Side: c.side}, place: &place{}, plan: negotiate.Plan{
			Sender: c.side.Other(), Slots: 8, Chunk: 4096, SizeKnown: true, Digest: negotiate.Digest(c.digest),
		}}
		if got := n.layout().buffers; got != c.want {
			t.Errorf("%s: %d buffers, not %d", name, got, c.want)
		}
	}
}

// A disk so slow that a batch would take longer than the idle timeout is no standstill: each pulse carries what there is.
func TestSlowDisksWithDeepWindows(t *testing.T) {
	for _, slow := range []string{"read", "write"} {
		bothSides(t, func(t *testing.T, sender negotiate.Side) {
			sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
			sc.Digest, sc.Slots = digest.SHA256, 64
			sc.content = noise(rand.New(rand.NewPCG(1, 2)), 64*4096, false)
			c := &checker{scenario: sc, t: t}
			e := c.run(sc.newDisks(), trouble{}, injected{file: func(_ negotiate.Side, _ int, op, _ string) *disktest.Fault {
				if op == slow {
					time.Sleep(sc.Idle / 5)
				}
				return nil
			}})
			c.mustSucceed("although each "+slow+" takes a fifth of the idle timeout", e)
		})
	}
}

func wishes(t *testing.T, sc scenario, side negotiate.Side, set func(*Options), want int) {
	t.Helper()
	c := &checker{scenario: sc, t: t}
	e := c.run(sc.newDisks(), trouble{}, injected{wish: func(o *Options) {
		if o.Side == side {
			set(o)
		}
	}})
	if want == 0 {
		c.mustSucceed("as wished", e)
		return
	}
	for at, err := range e.errs {
		if code(err) != want {
			t.Errorf("the %s says %d: %v", negotiate.Side(at), code(err), err)
		}
	}
	c.finalName(e)
	if content, found := c.target(); found {
		t.Errorf("the target is there, with %d bytes", len(content))
	}
}

func sumOf(t *testing.T, content string) digest.Sum {
	t.Helper()
	sum, _, err := digest.Of(t.Context(), digest.CRC32C, bytes.NewReader([]byte(content)))
	must(t, err)
	return sum
}

// A stream that is longer than it may be ends before it has filled the receiver's disk.
func TestStreamBeyondTheLimit(t *testing.T) {
	sc := sweepScenarios()["new file of the host"]
	sc.FromStream, sc.content = true, string(make([]byte, 4<<20))
	c := &checker{scenario: sc, t: t}
	disks := sc.newDisks()
	disks[negotiate.DPU].Limit(1 << 20)
	e := c.run(disks, trouble{}, injected{wish: func(o *Options) {
		if o.Side == negotiate.DPU {
			o.MaxBytes = 256 << 10
		}
	}})
	for side, err := range e.errs {
		if code(err) != int(negotiate.AbortLimit) {
			t.Errorf("the %s says %d: %v", negotiate.Side(side), code(err), err)
		}
	}
}

func TestExtendedAttributesArriveIfBothWantThem(t *testing.T) {
	for _, both := range []bool{true, false} {
		sc := sweepScenarios()["new file of the host"]
		sc.Xattrs = true
		c := &checker{scenario: sc, t: t}
		disks := sc.newDisks()
		c.mustSucceed("with attributes", c.run(disks, trouble{}, injected{wish: func(o *Options) {
			o.Xattrs = both || o.Side == negotiate.Host
		}}))
		file, err := disks[negotiate.DPU].Open(filepath.Clean(simPath))
		must(t, err)
		attributes, err := file.Xattrs()
		must(t, err)
		must(t, file.Close())
		if got := len(attributes) == 1 && attributes[0].Name == "user.kind" && string(attributes[0].Value) == "test"; got != both {
			t.Errorf("asked for by both sides: %t, and the target has %+v", both, attributes)
		}
	}
}

// Attributes that are none are the sender's fault, and both sides say so.
func TestExtendedAttributesThatAreNone(t *testing.T) {
	sc := sweepScenarios()["new file of the host"]
	sc.Xattrs = true
	c := &checker{scenario: sc, t: t}
	e := c.run(sc.newDisks(), trouble{}, injected{message: func(_ negotiate.Side, _ int, message []byte) fate {
		if m, err := negotiate.DecodeMetadata(message); err == nil {
			m.Part[0] = 0xff // of the length of a name
		}
		return fate{message: message}
	}})
	for side, err := range e.errs {
		if code(err) != int(negotiate.AbortProtocol) {
			t.Errorf("the %s says %d: %v", negotiate.Side(side), code(err), err)
		}
	}
	c.finalName(e)
}

// A stream has no owner: nobody takes that of some user for it.
func TestStreamsHaveNoOwner(t *testing.T) {
	sc := sweepScenarios()["new file of the host"]
	sc.FromStream = true
	c := &checker{scenario: sc, t: t}
	var owned atomic.Bool
	c.mustSucceed("from a stream", c.run(sc.newDisks(), trouble{}, injected{
		wish: func(o *Options) { o.Owner = true },
		file: func(_ negotiate.Side, _ int, op, _ string) *disktest.Fault {
			owned.Store(owned.Load() || op == "chown")
			return nil
		},
	}))
	if owned.Load() {
		t.Error("the target got an owner")
	}
}
