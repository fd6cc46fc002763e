package pump

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// A Copier accepts no more moves than it has been made for, until their ends are taken.
func TestCopierKeepsItsDepth(t *testing.T) {
	window, private := []byte("abcd"), make([]byte, 4)
	c := NewCopier(window, private, 2, digest.CRC32C)
	moves := []Move{{Length: 1}, {Window: 1, Buffer: 1, Length: 1, Tag: 1}, {Window: 2, Buffer: 2, Length: 1, Tag: 2}}
	for _, want := range []int{2, 0} {
		if n, err := c.Submit(moves); n != want || err != nil {
			t.Errorf("accepted %d moves, want %d, %v", n, want, err)
		}
	}
	if got := string(private); got != "ab\x00\x00" {
		t.Errorf("copied %q", got)
	}
	ended := make([]Moved, 1)
	if n := c.Poll(ended); n != 1 || ended[0].Tag != 0 || c.Inflight() != 1 {
		t.Errorf("%d ended with %+v, %d are in flight", n, ended, c.Inflight())
	}
	if n, err := c.Submit(moves[2:]); n != 1 || err != nil {
		t.Errorf("accepted %d moves, %v", n, err)
	}
}

// The checksum that an engine has computed of the bytes it copied is not computed again.
func TestChecksumOfTheEngineCounts(t *testing.T) {
	r, _ := newLanesReceiver(1)
	l := r.lanes[0]
	u := &heldUnit{Unit: Unit{Record: zeroChunk(0)}}
	if got := l.checksumOf(u, Moved{Checked: true, Check: 5}); got != 5 {
		t.Errorf("got %#x in place of the engine's", got)
	}
	if got := l.checksumOf(u, Moved{}); got != zeroChunk(0).Check {
		t.Errorf("computed %#x", got)
	}
}
