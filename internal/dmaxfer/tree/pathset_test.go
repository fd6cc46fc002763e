package tree

import (
	"fmt"
	"testing"
)

// With too many failed files every further hard link fails, so that they take a bounded amount of memory.
func TestPathSetsAreBounded(t *testing.T) {
	failed := NewPathSet()
	for i := range maxPaths {
		failed.Add(fmt.Sprint(i))
	}
	if !failed.Has("0") || !failed.Has(fmt.Sprint(maxPaths-1)) || failed.Has("another") {
		t.Error("the set does not have what was added, or has more")
	}
	failed.Add("one too many")
	failed.Add("and one more")
	if !failed.Has("another") || len(failed.hashes) > maxPaths+1 {
		t.Errorf("%d paths are kept", len(failed.hashes))
	}
}
