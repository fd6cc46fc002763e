package wire

import (
	"math/rand/v2"
	"testing"
)

// The memory of an order is bounded by the longest path.
func TestOrderIsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var o Order
	accepted, level := 0, 0
	for range 100_000 {
		e := Entry{Kind: EntryDirectory, Depth: level, Name: []byte{'a' + byte(random.UintN(26))}}
		if random.UintN(100) == 0 {
			e.Depth = int(random.UintN(uint(level) + 1))
		}
		if o.Check(&e) == nil {
			o.Add(&e)
			accepted, level = accepted+1, e.Depth+1
		}
		if len(o.path) > MaxPath || cap(o.path) > MaxPath+MaxName+1 || cap(o.ends) > MaxLevel {
			t.Fatalf("%d bytes, %d levels", cap(o.path), cap(o.ends))
		}
	}
	if accepted < MaxLevel {
		t.Errorf("%d entries", accepted)
	}
}
