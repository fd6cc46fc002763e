package pump

import (
	"context"
	"testing"
)

// A piece whose time has come is stored before the next one waits for its own: otherwise a slow copy would move by the window, and
// an interrupted one would have little to show.
func TestPacedPiecesDoNotWaitForEachOther(t *testing.T) {
	p := newPair(64 * 50)
	p.hostSends, p.lanes, p.slots = false, [2]int{1, 1}, 8
	p.build()
	var allowed int64
	p.receiver.Pace = func(_ context.Context, bytes int64) error {
		if waits := allowed - p.stored; waits > 0 {
			t.Errorf("%d bytes have waited for their time and are not stored", waits)
		}
		allowed += bytes
		return nil
	}
	sent, received := p.run(t.Context())
	must(t, sent)
	must(t, received)
	if allowed != p.stored || allowed == 0 {
		t.Errorf("%d bytes were allowed, %d stored", allowed, p.stored)
	}
}
