package dmaxfer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// What a user wants besides the copy, on whichever side, binds both.
func TestOptionsBindBothSides(t *testing.T) {
	right, wrong := sumOf(t, sweepScenarios()["new file of the host"].content), sumOf(t, "something else")
	for name, c := range map[string]struct {
		set  func(o *Options)
		want wire.AbortCode
	}{
		"enough bytes":     {func(o *Options) { o.MaxBytes = 1 << 20 }, 0},
		"too few bytes":    {func(o *Options) { o.MaxBytes = 5000 }, wire.AbortLimit},
		"expected":         {func(o *Options) { o.Expect = &right }, 0},
		"not expected":     {func(o *Options) { o.Expect = &wrong }, wire.AbortDigest},
		"read back":        {func(o *Options) { o.Readback = true }, 0},
		"without holes":    {func(o *Options) { o.NoSparse = true }, 0},
		"stronger digest":  {func(o *Options) { o.Digest = digest.SHA256 }, 0},
		"may change":       {func(o *Options) { o.AllowChanging = true }, 0},
		"owner, of a side": {func(o *Options) { o.Owner = true }, 0},
	} {
		for _, stream := range []bool{false, true} {
			for _, side := range []wire.Side{wire.Host, wire.DPU} {
				t.Run(fmt.Sprint(name, " on the ", side, ", stream ", stream), func(t *testing.T) {
					sc := sweepScenarios()["new file of the host"]
					sc.FromStream = stream
					wishes(t, sc, side, c.set, int(c.want))
				})
			}
		}
	}
}

// A disk so slow that a batch would take longer than the idle timeout is no standstill: each pulse carries what there
// is.
func TestSlowDisksWithDeepWindows(t *testing.T) {
	for _, slow := range []string{"read", "write"} {
		bothSides(t, func(t *testing.T, sender wire.Side) {
			sc := sweepScenarios()[fmt.Sprint("new file of the ", sender)]
			sc.Digest, sc.Depth = digest.SHA256, 64
			sc.content = noise(rand.New(rand.NewPCG(1, 2)), 64*4096, false)
			c := &checker{scenario: sc, t: t}
			sleep := func(_ wire.Side, _ int, op, _ string) *disktest.Fault {
				if op == slow {
					time.Sleep(sc.Idle / 5)
				}
				return nil
			}
			e := c.run(sc.newDisks(), fault{}, injection{file: sleep})
			c.mustSucceed("although each "+slow+" takes a fifth of the idle timeout", e)
		})
	}
}

func wishes(t *testing.T, sc scenario, side wire.Side, set func(*Options), want int) {
	t.Helper()
	c := &checker{scenario: sc, t: t}
	e := c.run(sc.newDisks(), fault{}, injection{wish: func(o *Options) {
		if o.Side == side {
			set(o)
		}
	}})
	if want == 0 {
		c.mustSucceed("as wished", e)
		return
	}
	for at, err := range e.errs {
		if exit.Code(err) != want {
			t.Errorf("the %s says %d: %v", wire.Side(at), exit.Code(err), err)
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
	disks[wire.DPU].Limit(1 << 20)
	e := c.run(disks, fault{}, injection{wish: func(o *Options) {
		if o.Side == wire.DPU {
			o.MaxBytes = 256 << 10
		}
	}})
	for side, err := range e.errs {
		if exit.Code(err) != int(wire.AbortLimit) {
			t.Errorf("the %s says %d: %v", wire.Side(side), exit.Code(err), err)
		}
	}
}

func TestExtendedAttributesArriveIfBothWantThem(t *testing.T) {
	for _, both := range []bool{true, false} {
		sc := sweepScenarios()["new file of the host"]
		sc.Xattrs = true
		c := &checker{scenario: sc, t: t}
		disks := sc.newDisks()
		c.mustSucceed("with attributes", c.run(disks, fault{}, injection{wish: func(o *Options) {
			o.Xattrs = both || o.Side == wire.Host
		}}))
		file, err := disks[wire.DPU].Open(filepath.Clean(simPath))
		must(t, err)
		attributes, err := file.Xattrs()
		must(t, err)
		must(t, file.Close())
		arrived := slices.ContainsFunc(attributes, func(a disk.Xattr) bool {
			return a.Name == "user.kind" && string(a.Value) == "test"
		})
		if arrived != both || len(attributes) > 1 {
			t.Errorf("asked for by both sides: %t, and the target has %+v", both, attributes)
		}
	}
}

// Attributes that are none are the sender's fault, and both sides say so.
func TestMalformedExtendedAttributes(t *testing.T) {
	sc := sweepScenarios()["new file of the host"]
	sc.Xattrs = true
	c := &checker{scenario: sc, t: t}
	lengthen := func(_ wire.Side, _ int, message []byte) dmaxfertest.Delivery {
		if _, m, err := native.DecodeMetadata(message); err == nil {
			m.Part[0] = 0xff // of the length of a name
		}
		return dmaxfertest.Delivery{Message: message}
	}
	e := c.run(sc.newDisks(), fault{}, injection{message: lengthen})
	for side, err := range e.errs {
		if exit.Code(err) != int(wire.AbortProtocol) {
			t.Errorf("the %s says %d: %v", wire.Side(side), exit.Code(err), err)
		}
	}
	c.finalName(e)
}

// A stream has no owner, so its target gets none.
func TestStreamsHaveNoOwner(t *testing.T) {
	sc := sweepScenarios()["new file of the host"]
	sc.FromStream = true
	c := &checker{scenario: sc, t: t}
	var owned atomic.Bool
	c.mustSucceed("from a stream", c.run(sc.newDisks(), fault{}, injection{
		wish: func(o *Options) { o.Owner = true },
		file: func(_ wire.Side, _ int, op, _ string) *disktest.Fault {
			owned.Store(owned.Load() || op == "chown")
			return nil
		},
	}))
	if owned.Load() {
		t.Error("the target got an owner")
	}
}
