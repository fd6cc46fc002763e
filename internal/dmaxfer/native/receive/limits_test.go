package receive

import (
	"testing"

	"golang.org/x/sys/unix"
)

// limitFiles sets the limit on open files of this process until the end of the test.
func limitFiles(t *testing.T, limit uint64) {
	t.Helper()
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: before.Max}))
}

// With few descriptors there are few of each kind, but always one.
func TestFileLimits(t *testing.T) {
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	for _, limit := range []uint64{64, 256, 1024, 4096, min(before.Cur, 1<<20)} {
		limitFiles(t, limit)
		for local, others := range map[bool]int64{false: otherFiles, true: otherFiles + senderFiles} {
			targets, staged := fileLimits(local)
			if targets < 1 || staged < 1 ||
				int64(limit) > others+filesOfATarget && targets*filesOfATarget+staged+others > int64(limit) {
				t.Errorf("of %d descriptors there are %d targets and %d staged files", limit, targets, staged)
			}
		}
	}
}
