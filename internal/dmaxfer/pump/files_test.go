package pump

import (
	"context"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// contentOf returns pseudo-random bytes.
func contentOf(size, seed int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1}).Read(content)
	return content
}

// drawFiles adds files to a transfer, some of which are sent with others in one slot.
func drawFiles(t *rapid.T, p *pair) {
	p.atOnce = rapid.IntRange(1, 3).Draw(t, "at once")
	for range rapid.IntRange(1, 12).Draw(t, "more files") {
		whole := rapid.Bool().Draw(t, "whole")
		limit := 2000
		if whole {
			limit = int(p.chunk)
		}
		f := p.addFile(contentOf(rapid.IntRange(0, limit).Draw(t, "size"), len(p.files)))
		if f.whole = whole; !whole {
			p.drawContent(t, f)
		}
	}
}

// Files arrive whole, whether they are sent in chunks or in packs, and however those of several files are mixed.
func TestAnyFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPair(t)
		drawFiles(t, p)
		p.mustCopy(t)
	})
}

// newPackedPair returns a transfer of small files of these sizes, without any other.
func newPackedPair(sizes ...int) *pair {
	p := newPair(0)
	p.files, p.lanes = nil, [2]int{1, 1}
	for i, size := range sizes {
		p.addFile(contentOf(size, i)).whole = true
	}
	return p
}

// As many files share a slot as fit, each at an aligned position. Files without content share one, too.
func TestFilesShareSlots(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []int
		packs int64
	}{
		"all in one":      {[]int{10, 20, 0, 5}, 1},
		"an exact fit":    {[]int{64, 32, 32}, 2},
		"rounded up":      {[]int{31, 33, 1}, 2}, // at 0, 32, and 72
		"one each":        {[]int{40, 40, 40}, 3},
		"nothing to copy": {[]int{0, 0, 0}, 1},
		"nothing at last": {[]int{64, 0}, 1},
	} {
		for _, hostSends := range []bool{false, true} {
			for _, algorithm := range algorithms {
				p := newPackedPair(c.sizes...)
				p.algorithm, p.hostSends, p.inOrder = algorithm, hostSends, algorithm.Ordered()
				p.mustCopy(t)
				if got := p.packs.Load(); got != c.packs {
					t.Errorf("%s, %s: %d packs, want %d", name, algorithm, got, c.packs)
				}
			}
		}
	}
}

// A wrong byte in one file has the whole unit sent again, and no file of it is stored before.
func TestPackWithAWrongFileIsRetransmitted(t *testing.T) {
	for _, hostSends := range []bool{false, true} {
		for _, algorithm := range algorithms[1:] {
			p := newPackedPair(16, 16, 16, 16) // without gaps, in which a wrong byte does not count
			p.algorithm, p.hostSends, p.inOrder = algorithm, hostSends, algorithm.Ordered()
			left := native.MaxAttempt
			p.corrupt = func() bool { left--; return left >= 0 }
			p.mustCopy(t)
			if p.retransmits[0].Load() != native.MaxAttempt || p.packs.Load() != 1 {
				t.Errorf("%s: retransmitted %d times, stored %d times",
					algorithm, p.retransmits[0].Load(), p.packs.Load())
			}
		}
	}
}

// A pack that is wrong every time ends the transfer, and nothing of it is stored.
func TestPackThatNeverArrives(t *testing.T) {
	p := newPackedPair(16, 16, 16, 16)
	p.corrupt = func() bool { return true }
	p.build()
	sent, received := p.run(t.Context())
	mustBe(t, received, ErrCorrupted)
	if sent == nil || p.packs.Load() != 0 {
		t.Errorf("the sender ended with %v, %d packs were stored", sent, p.packs.Load())
	}
}

// A pack that cannot be stored ends the transfer if StorePack says so.
func TestFailureOfAPackEndsAllLanes(t *testing.T) {
	p := newPackedPair(16, 16)
	p.files[1].target.failAt = 3
	p.build()
	sent, received := p.run(t.Context())
	mustBe(t, received, errDisk)
	if sent == nil || p.afterPacks.Load() != 0 {
		t.Errorf("the sender ended with %v, %d packs were completed", sent, p.afterPacks.Load())
	}
}

// A pack is acknowledged before what StorePack wants done afterwards, so that a result follows its acknowledgement.
func TestPackIsAcknowledgedBeforeItsEnd(t *testing.T) {
	p := newPackedPair(5)
	p.build()
	acknowledged := -1
	p.receiver.config.StorePack = func(
		context.Context, *Unit, []byte,
	) (after func(), err error) {
		return func() { acknowledged = len(p.replies.Take()) }, nil
	}
	unit := &Unit{Pack: native.Pack{Files: []native.PackedFile{{Length: 5}}}}
	unit.check(p.algorithm, make([]byte, 5))
	p.receiver.TakePack(unit.Pack, nil)
	p.receiver.End()
	must(t, p.receiver.Run(t.Context()))
	if acknowledged != 1 {
		t.Errorf("%d acknowledgements when the pack had ended, want 1", acknowledged)
	}
}

// The receiver keeps nothing of the list of files that it was given, which belongs to a message.
func TestReceiverKeepsItsOwnPacks(t *testing.T) {
	p := newPackedPair(8, 8)
	p.build()
	files := []native.PackedFile{{Entry: 0, Length: 8}, {Entry: 1, Position: 8, Length: 8}}
	pack := native.Pack{Slot: 1, Files: files}
	unit := Unit{Pack: pack}
	unit.check(p.algorithm, make([]byte, 16))
	p.receiver.TakePack(pack, nil)
	clear(pack.Files)
	p.receiver.End()
	must(t, p.receiver.Run(t.Context()))
	if p.files[0].packed.Load() != 1 || p.files[1].packed.Load() != 1 {
		t.Errorf("stored %d and %d times, want 1 each", p.files[0].packed.Load(), p.files[1].packed.Load())
	}
}

// The chunks of two files wait for each other in the buffers of one lane.
func TestTwoFilesInOrder(t *testing.T) {
	for _, algorithm := range []digest.Algorithm{digest.BLAKE3, digest.XXH3} {
		p := newPair(64 * 200)
		p.addFile(contentOf(64*150+7, 1))
		p.atOnce, p.slots, p.algorithm, p.inOrder = 2, 8, algorithm, true
		if p.lanes = [2]int{1, 1}; !algorithm.Ordered() {
			p.lanes[0] = 2
		}
		p.corruptAFew(10)
		p.mustCopy(t)
	}
}

// The chunks of several files arrive over all lanes of both sides.
func TestTwoFilesOverSeveralLanes(t *testing.T) {
	for _, hostSends := range []bool{false, true} {
		p := newPair(64 * 200)
		p.addFile(contentOf(64*150+7, 1))
		p.addFile(contentOf(1, 2))
		p.atOnce, p.slots, p.lanes, p.hostSends = 3, 9, [2]int{3, 3}, hostSends
		p.corruptAFew(10)
		p.mustCopy(t)
	}
}
