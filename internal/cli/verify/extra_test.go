package verify

import (
	"fmt"
	"testing"
)

func TestSetOfPaths(t *testing.T) {
	known := newPaths(3)
	for i := range 1000 {
		known.add(fmt.Sprintf("./a//%d", i))
	}
	for i := range 2000 {
		if got := known.has(fmt.Sprintf("a/%d", i)); got != (i < 1000) {
			t.Fatalf("a/%d: %t", i, got)
		}
	}
	known.add("b")
	if !known.has("b") || known.has("A/1") {
		t.Error("b is missing, or A/1 is not")
	}
}
