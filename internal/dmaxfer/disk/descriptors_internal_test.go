package disk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// With few descriptors there are few of each kind, but always one.
func TestDescriptorLimits(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	for _, limit := range []uint64{64, 256, 1024, 4096, min(before.Cur, 1<<20)} {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
		for sends, others := range map[bool]int64{false: otherFiles, true: otherFiles + senderFiles} {
			partials, staged := DescriptorLimits(4096, sends)
			if partials < 1 || staged < 1 ||
				int64(limit) > others+filesOfAPartial && partials*filesOfAPartial+staged+others > int64(limit) {
				t.Errorf("of %d descriptors there are %d partial and %d staged files", limit, partials, staged)
			}
		}
	}
}
