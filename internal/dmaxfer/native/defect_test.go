package native

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A panic of a lane or a job ends the transfer with an error that has its stack, and the peer learns of it. The window,
// which a device may still use, stays as it is.
func TestPanicEndsTheTransfer(t *testing.T) {
	for name, c := range map[string]struct {
		call   string // to the receiver's file system that panics
		within string // a function of the stack
	}{
		"a lane with a chunk": {call: "write .large.dma-copy-part", within: "receiverLane"},
		"a lane with a pack":  {call: "write f000", within: "storePack"},
		"the planner":         {call: "mkdir t", within: "planDirectory"},
		"a finishing job":     {call: "sync .large.dma-copy-part", within: "prepare"},
		"a flushing job":      {call: "syncfs .", within: "commitStaged"},
		"a renaming job":      {call: "name f001", within: "renameStaged"},
	} {
		t.Run(name, func(t *testing.T) {
			from := newSmallSource(3)
			from.Put("/src/large", roletest.Repeated("large", 3*4096))
			m := newMeeting(t, from, newTarget())
			m.receiver.config.Durability = wire.DurabilityFull
			m.onReceiver(func(_ int, op, name string) *disktest.Fault {
				if op+" "+name == c.call {
					panic("a defect")
				}
				return nil
			})
			m.mustHaveDefect(c.within)
		})
	}
}

// mustHaveDefect runs the transfer, and fails the test unless the receiver ends with a panic below a function, its
// window stays, and the sender has been told. What the panicking call had open stays open.
func (m *meeting) mustHaveDefect(within string) {
	m.t.Helper()
	synctest.Test(m.t, m.meet)
	defect, is := errors.AsType[*job.Defect](m.receiver.err)
	if !is || defect.Value != "a defect" || !strings.Contains(string(defect.Stack), within) {
		m.t.Errorf("the receiver ended with %v, want a defect within %s", m.receiver.err, within)
	}
	mustBe(m.t, m.receiver.err, job.ErrHung)
	if !abortedWith(m.sender.err, wire.AbortFailure) || !strings.Contains(m.sender.err.Error(), "internal error") {
		m.t.Errorf("the sender ended with %v", m.sender.err)
	}
	if got := m.closed.Load(); got != 0 {
		m.t.Errorf("%d windows of the receiver were closed", got)
	}
}

// A flush in the background that panics ends the transfer in the same way, and leaves nothing open.
func TestPanicOfABackgroundFlush(t *testing.T) {
	const size = 16 << 20
	from := newSmallSource(3)
	from.Put("/src/large", strings.Repeat("x", size))
	m := newMeeting(t, from, newTarget())
	m.receiver.config.Durability = wire.DurabilityFull
	flushing := make(chan struct{})
	var writes atomic.Int64
	m.onReceiver(func(_ int, op, _ string) *disktest.Fault {
		switch {
		case op == "flush":
			close(flushing)
			panic("a defect")
		case op == "write" && writes.Add(1) > size*3/4/4096: // enough is verified to be flushed
			<-flushing
		}
		return nil
	})
	m.mustHaveDefect("writeBehind")
	if text := m.receiver.err.Error(); strings.Contains(text, "\n") {
		t.Errorf("the error has several lines: %s", text)
	}
	if open := m.to.Handles(); open != 0 {
		t.Errorf("%d files and directories are open", open)
	}
}

// A panic in what the transfer's own loop calls ends it in the same way.
func TestPanicOfTheLoopEndsTheTransfer(t *testing.T) {
	m := newMeeting(t, newSmallSource(3), newTarget())
	notify := m.receiver.config.Notify
	m.receiver.config.Notify = func(e job.Event) {
		if _, known := e.(job.PeerKnown); known {
			panic("a defect")
		}
		notify(e)
	}
	m.mustHaveDefect("converse")
}

// A transfer that ends without a panic closes its window, successful or not.
func TestWindowIsClosedWithoutAPanic(t *testing.T) {
	m := newMeeting(t, newSmallSource(3), newTarget())
	m.mustSucceed()
	if got := m.closed.Load(); got != 1 {
		t.Errorf("%d windows of the receiver were closed", got)
	}
}
