package job_test

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// A target that differs may belong to a copy of another user, which only that user can continue.
func TestPairDiffers(t *testing.T) {
	for _, test := range []struct {
		pair       job.Pair
		path, want string
	}{
		{job.Pair{Source: "here", Target: "there"}, "",
			"there exists and differs from here: use --overwrite to replace it, or name another target"},
		{job.Pair{Source: "here", Target: "there"}, "a/b",
			"there exists, and a/b in it differs from that in here: " +
				"use --overwrite to replace what differs, or name another target"},
		{job.Pair{Source: "here", Target: "there", Foreign: "x belongs to uid 5"}, "file",
			"there exists and differs from here: x belongs to uid 5: copy as that user to continue that copy, " +
				"or remove that file and use --overwrite"},
	} {
		err := test.pair.Differ(test.path)
		if err.Error() != test.want || !errors.Is(err, negotiate.ErrBothHaveFile) {
			t.Errorf("%v", err)
		}
	}
}
