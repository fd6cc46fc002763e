package pump

import (
	"slices"
	"testing"
)

// Items are due when there are enough of them, or after Flush. Whoever waits is called once until they are taken.
func TestItemsAreDue(t *testing.T) {
	b := NewBatch[int](8, 3)
	mustBeDue(t, b, false)
	b.Flush() // of nothing
	mustBeDue(t, b, false)
	b.Add(1)
	b.Add(2)
	mustBeDue(t, b, false)
	b.Add(3)
	mustBeDue(t, b, true)
	b.Add(4)
	mustBeDue(t, b, true)
	if got := b.Take(); !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("took %v", got)
	}
	mustBeDue(t, b, false)
	b.Add(5)
	b.Flush()
	mustBeDue(t, b, true)
	if got := b.Take(); !slices.Equal(got, []int{5}) {
		t.Errorf("took %v", got)
	}
	mustBeDue(t, b, false)
}

// mustBeDue fails the test unless the items are due or not, as wanted, and Call sends at most one token then.
func mustBeDue(t *testing.T, b *Batch[int], want bool) {
	t.Helper()
	if b.Due() != want {
		t.Errorf("due: %v, want %v", b.Due(), want)
	}
	for len(b.Waiting()) > 0 {
		<-b.Waiting()
	}
	notified := b.notified
	b.Call()
	if called := len(b.Waiting()) == 1; called != (want && !notified) {
		t.Errorf("called: %v, after a call: %v", called, notified)
	}
	b.Call()
	if len(b.Waiting()) > 1 || want && !b.notified {
		t.Error("called twice, or not at all")
	}
}
