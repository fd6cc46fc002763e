package contact

import (
	"fmt"
	"os"
	"testing"
)

// Of a huge directory only some names are offered, but all with the same beginning if these are few.
func TestFilesHereAreLimited(t *testing.T) {
	t.Chdir(t.TempDir())
	for i := range maxOffered + 2*readTogether {
		name := fmt.Sprintf("a%d", i)
		if i == 0 {
			name = "begins-otherwise"
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(filesHere("a")); got < maxOffered || got >= maxOffered+readTogether {
		t.Errorf("%d of %d names", got, maxOffered+2*readTogether-1)
	}
	if got := filesHere("b"); len(got) != 1 || got[0] != "begins-otherwise" {
		t.Errorf("got %q", got)
	}
}
