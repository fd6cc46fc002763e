package dmaxfer

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

var (
	simSeeds = flag.Uint64("sim.seeds", fewSeeds, "how many seeds each simulation tries")
	simFirst = flag.Uint64("sim.first", 1, "the first of them")
	simSeed  = flag.Uint64("sim.seed", 0, "the only one, if not 0")
)

// TestSimulation has two complete sides copy in virtual time over a memory layer, a network and disks of their own.
// Each seed is a copy without a fault, which counts what happens in it, then up to three with a fault at one of these
// moments, which find what the one before has left, and then another without.
func TestSimulation(t *testing.T) {
	first, last := *simFirst, *simFirst+*simSeeds-1
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { simulate(t, seed) }) // a deadlock, too, tells the name
	}
}

func simulate(t *testing.T, seed uint64) {
	t.Helper()
	sc, random := newScenario(seed)
	check := &checker{scenario: sc, t: t}
	defer check.report("TestSimulation")
	clean := check.attempt(sc.newDisks(), fault{})
	check.mustSucceed("without faults", clean)
	disks := sc.newDisks()
	for range 1 + random.IntN(3) {
		before := check.leftover(disks)
		check.fault = newFault(random, sc, clean.steps)
		check.judge(check.attempt(disks, check.fault))
		if t.Failed() || check.done() {
			return
		}
		check.mustStillHave(before, check.leftover(disks))
		if check.fault.Kind == sourceChanged {
			putSparse(disks[sc.Sender], sc.sourcePath(), sc.content)
		}
	}
	left := check.leftover(disks)
	check.Corruption = 0
	after := check.attempt(disks, fault{})
	check.mustSucceed("after the fault", after)
	check.resumed(left, after)
}

// checker holds the attempts of one seed to what is promised.
type checker struct {
	scenario
	t     *testing.T
	fault fault
	disks [2]*disktest.Memory
	last  *attempt

	tolerance time.Duration // beyond the idle timeout, of a peer that only claims progress

	otherSource bool // what was kept is not of what the source is now
	garbled     bool // a chunk may have got a wrong offset, which a resumed transfer finds and repairs
	untidy      bool // a side was stopped, or failed, between two names
}

func (c *checker) report(test string) {
	if c.t.Failed() {
		c.t.Logf("seed %d: %+v", c.Seed, c.describe())
		c.t.Logf("fault: %v", c.fault)
		c.t.Logf("again with: go test ./internal/dmaxfer -run %s -sim.seed=%d", test, c.Seed)
	}
}

func (c *checker) describe() scenario {
	told := c.scenario
	told.content, told.old = "", ""
	return told
}

// attempt runs one with a fault.
func (c *checker) attempt(disks [2]*disktest.Memory, what fault) results {
	c.t.Helper()
	result := c.run(disks, what, injection{})
	c.inTime(result)
	return result
}

// run runs one in a bubble, which fails if a goroutine is left.
func (c *checker) run(disks [2]*disktest.Memory, what fault, with injection) (result results) {
	c.t.Helper()
	c.disks = disks
	synctest.Test(c.t, func(*testing.T) {
		a := newAttempt(c.scenario, disks, what)
		a.injection = with
		c.last = a
		result = a.run()
		synctest.Wait()
	})
	c.nothingIsOpen()
	return result
}

func (c *checker) nothingIsOpen() {
	c.t.Helper()
	for side, on := range c.disks {
		if n := on.Handles(); n != 0 {
			c.t.Errorf("the %s has %d handles left", wire.Side(side), n)
		}
	}
	if n := c.last.bus.Left(); n != 0 {
		c.t.Errorf("%d windows and engines are left", n)
	}
}

// inTime allows a side the idle timeout, the tolerance, and a second, after anything has moved.
func (c *checker) inTime(e results) {
	c.t.Helper()
	for side, at := range e.ended {
		if took := at.Sub(time.Unix(0, c.last.progress.Load())); took > c.Idle+c.tolerance+time.Second {
			c.t.Errorf("the %s ended %s after the last progress: %v", wire.Side(side), took, e.errs[side])
		}
	}
}

func (c *checker) target() (content string, found bool) {
	return c.disks[c.Sender.Other()].Get(c.targetPath())
}

// done is true if there is nothing left to copy.
func (c *checker) done() bool {
	content, found := c.target()
	return found && !c.ToStream && (!c.Overwrite || content != c.old || content == c.content)
}

func (c *checker) mustSucceed(when string, e results) {
	c.t.Helper()
	for side, err := range e.errs {
		if err != nil {
			c.t.Errorf("%s the %s failed: %v", when, wire.Side(side), err)
		}
	}
	if got, found := c.target(); !found || got != c.content {
		c.t.Errorf("%s the target has %d bytes (%t) that are not the source's %d",
			when, len(got), found, len(c.content))
	}
	c.names(false)
}

// judge checks what holds for any fault.
func (c *checker) judge(e results) {
	c.t.Helper()
	c.otherSource = c.otherSource || c.fault.Kind == sourceChanged
	c.garbled = c.garbled || c.fault.Kind == messageGarbled
	c.untidy = c.untidy || c.last.dead[c.Sender.Other()].Load() || c.fault.Kind == diskFails
	c.finalName(e)
	c.agreement(e)
	may := false
	for _, err := range e.errs {
		may = may || err != nil
	}
	switch exit.Code(e.errs[c.Sender]) {
	case int(wire.AbortSourceChanged):
		may = may && c.last.dead[c.Sender.Other()].Load() // it would be of no use
	}
	c.names(may)
}

// finalName holds the old content or the new.
func (c *checker) finalName(e results) {
	c.t.Helper()
	got, found := c.target()
	receiver, sender := c.Sender.Other(), c.Sender
	alive := func(side wire.Side) bool { return !c.last.dead[side].Load() }
	switch {
	case c.ToStream:
		if !strings.HasPrefix(c.content, got) && c.fault.Kind != sourceChanged && c.fault.Kind != messageGarbled {
			c.t.Errorf("the stream got %d bytes that are not the source's", len(got))
		}
	case found == c.Overwrite && got == c.old, found && got == c.content:
	case found && c.fault.Kind == sourceChanged && c.changedBefore(e):
		return
	default:
		c.t.Errorf("the final name holds %d bytes (%t), neither the old nor the new content", len(got), found)
	}
	if err := e.errs[receiver]; err != nil && alive(receiver) && c.done() && c.content != c.old && !c.mayBeNamed() {
		c.t.Errorf("the receiver has given the file its name, and yet it says: %v", err)
	}
	for _, side := range []wire.Side{receiver, sender} {
		if alive(side) && e.errs[side] == nil && got != c.content && c.fault.Kind != sourceChanged {
			c.t.Errorf("the %s says that all is well, and the target has %d bytes of other content", side, len(got))
		}
	}
}

// mayBeNamed is true where the directory could fail after the file has its name.
func (c *checker) mayBeNamed() bool { return c.fault.Kind == diskFails }

// changedBefore is true of a source that was already changed when it was opened.
func (c *checker) changedBefore(e results) bool {
	source, _ := c.disks[c.Sender].Get(c.sourcePath())
	got, _ := c.target()
	return e.errs[wire.Host] == nil && e.errs[wire.DPU] == nil && got == source
}

// agreement is that both sides say the same, as far as they can know it.
func (c *checker) agreement(e results) {
	c.t.Helper()
	sent, received := e.errs[c.Sender], e.errs[c.Sender.Other()]
	if (sent == nil) == (received == nil) && !e.native {
		return // the reference protocol, in which they begin, carries no reasons
	}
	unknown := errors.Is(sent, wire.ErrOutcomeUnknown)
	switch c.fault.Kind {
	case crashed:
		c.survivor(e)
		return
	case messageCut, messageGarbled:
		if unknown && (received == nil || exit.Code(received) == int(wire.AbortProtocol)) {
			return // a sender that no longer understands the receiver does not learn the outcome
		}
		if exit.Code(sent) == int(wire.AbortProtocol) && received == nil {
			return // or does not trust what it has learnt
		}
	case connectionLost, peerSilent, cancelled:
		if unknown && received == nil {
			return
		}
	}
	if exit.Code(sent) != exit.Code(received) {
		c.t.Errorf("the sender says %d (%v), and the receiver %d (%v)", exit.Code(sent), sent, exit.Code(received),
			received)
	}
}

// survivor is the side that did not crash. It knows of nothing but the silence.
func (c *checker) survivor(e results) {
	c.t.Helper()
	if !c.last.struck.Load() {
		return
	}
	side := c.fault.Side.Other()
	err := e.errs[side]
	if err == nil {
		return // finalName has seen that this is true
	}
	if exit.Code(err) != int(wire.AbortPeer) {
		c.t.Errorf("the %s, whose peer crashed, says %d: %v", side, exit.Code(err), err)
	}
}

// names looks for what should not be in the receiver's directory. A partial file and its journal may only be kept
// together.
func (c *checker) names(mayKeep bool) {
	c.t.Helper()
	receiver := c.Sender.Other()
	names := c.list(receiver)
	partial, journal := false, false
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, ".dma-copy-part"):
			partial = true
		case strings.HasSuffix(name, ".dma-copy-journal"):
			journal = true
		case name == "file", name == "stream" && c.ToStream, name == "file~" && c.Backup && c.Overwrite:
		case strings.HasSuffix(name, ".dma-copy-new") && c.untidy:
		case strings.HasPrefix(name, "file~") && c.Backup && c.Overwrite && c.untidy: // of a copy that failed late
		default:
			c.t.Errorf("the receiver is left with %q", names)
		}
	}
	if (partial || journal) && !mayKeep {
		c.t.Errorf("the receiver is left with %q, which is of no use", names)
	}
	if partial != journal && !c.untidy {
		c.t.Errorf("the receiver is left with %q", names)
	}
	if names := c.list(c.Sender); len(names) != 1 {
		c.t.Errorf("the sender is left with %q", names)
	}
}

func (c *checker) list(side wire.Side) []string {
	dir, err := c.disks[side].OpenDir("/files")
	if err != nil {
		c.t.Fatal(err)
	}
	defer dir.Close()
	names, err := disk.Names(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return names
}

// leftover is how much of the file an interrupted copy kept.
func (c *checker) leftover(disks [2]*disktest.Memory) int64 {
	if c.NoResume || c.FromStream || c.ToStream || c.Digest == digest.None {
		return 0
	}
	found, err := disk.FindPartials(disks[c.Sender.Other()], "/files")
	if err != nil {
		c.t.Fatal(err)
	}
	if len(found) == 0 {
		return 0
	}
	if found[0].InUse {
		c.t.Errorf("%s is still locked", found[0].Name)
	}
	return found[0].Prefix
}

// mustStillHave is that a copy which goes on and fails loses nothing, unless the disk is to blame, or a garbled digest.
func (c *checker) mustStillHave(before, left int64) {
	c.t.Helper()
	if left < before && !c.otherSource && c.fault.Kind != diskFails && c.fault.Kind != messageGarbled {
		c.t.Errorf("%d bytes were there to go on with, and then only %d", before, left)
	}
}

// resumed holds a copy that goes on to what it was left.
func (c *checker) resumed(left int64, e results) {
	c.t.Helper()
	if c.otherSource {
		return
	}
	there := left
	if c.usesBasis() {
		there = max(left, min(int64(len(c.old)), int64(len(c.content))))
	}
	if chunk := e.told[c.Sender].Chunk; chunk > 0 && there < int64(len(c.content)) {
		there -= there % chunk // a part of a chunk is sent again
	}
	if e.resume != there {
		c.t.Errorf("%d bytes were kept, %d were there, and %d resumed", left, there, e.resume)
	}
	if there <= left && e.resent != 0 && !c.garbled {
		c.t.Errorf("%d bytes that were kept were sent again", e.resent)
	}
	c.toldOfResume(e)
}

// usesBasis reports whether a copy begins with the content of the file that it replaces.
func (c *checker) usesBasis() bool {
	return c.Overwrite && !c.NoResume && !c.FromStream && !c.ToStream && c.Digest != digest.None
}

// toldOfResume expects both sides to tell what was there and did not have to be sent.
func (c *checker) toldOfResume(e results) {
	c.t.Helper()
	for side, told := range e.told {
		if e.errs[side] == nil && told.Protocol == wire.Native && told.Resumed != e.resume-e.resent {
			c.t.Errorf("the %s tells of %d bytes resumed: there were %d, of which %d were sent again",
				wire.Side(side), told.Resumed, e.resume, e.resent)
		}
	}
}
