package receive

import (
	"testing"
	"testing/synctest"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// A tree stays open while a job still flushes what it has renamed, although every entry is decided and no lane is at
// work.
func TestTreeIsNotClosedWhileAJobUsesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoneReceiver(t)
		number := l.announces(wire.Entry{Kind: wire.EntryFile, Depth: 1, Name: []byte("f")})
		e := l.announced[number]
		file, err := e.directory.of.Stage(e.name, nil, e.meta)
		must(t, err)
		l.packs.staging.permits.TryAcquire(1)
		l.packs.stage([]stagedFile{{entry: e, file: file}})
		for _, start := range l.link.Posted {
			must(t, start(t.Context()))
		}
		l.withdraws([]uint32{e.number})
		must(t, l.receives(native.AppendFinish(nil, 2, 0, "")))
		l.finisher.lanesEnded = true
		synctest.Wait()
		must(t, l.finisher.check(t.Context()))
		if l.finisher.concluding {
			t.Error("the tree may be closed before the job has flushed it")
		}
		must(t, l.link.Jobs[1]()(t.Context()))
		if !l.finisher.concluding {
			t.Error("the transfer does not end after the job")
		}
		l.ends()
	})
}

// A directory stays open while one of its files is compared, although the sender withdraws the file.
func TestDirectoryWaitsForAComparison(t *testing.T) {
	left := false
	r := &results{directories: &directories{open: make(map[*directory]bool), rootLeft: func() { left = true }}}
	link := &roletest.Link{}
	d := &digests{planner: &planner{results: r}, queue: role.DigestQueue{Link: link}}
	in := &directory{}
	r.directories.add(in)
	d.compare(t.Context(), &entry{number: 1, depth: 1, directory: in}, digest.Sum{})
	r.directories.leave(in) // the last that the planner has in it
	if left || r.directories.allLeft() {
		t.Error("the directory has been left")
	}
	r.directories.leave(in) // the comparison
	if !left || !r.directories.allLeft() {
		t.Error("the directory has not been left")
	}
}

// A sender that begins another transfer in the session breaks the protocol. What was received counts.
func TestSecondTransferIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoneReceiver(t)
		session := l.Receiver.t.Session
		must(t, l.receives(native.AppendFinish(nil, 1, 0, "")))
		_, err := session.Finished(nil, l.Receiver.t.Params.Plan.Durability, "")
		must(t, err)
		mustBe(t, l.receives(wire.AppendEmpty(nil, wire.TypeTransfer)), wire.ErrOutOfOrder)
		l.ends()
	})
}

// A receiver that gives up when everything is decided does not close the tree as complete.
func TestTransferThatIsGivenUpDoesNotConclude(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoneReceiver(t)
		must(t, l.receives(native.AppendFinish(nil, 1, 0, "")))
		l.finisher.lanesEnded = true
		must(t, l.Halt(t.Context()))
		must(t, l.Flush(t.Context()))
		if l.finisher.concluding {
			t.Error("the tree is closed as complete")
		}
		l.ends()
	})
}
