package native

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// limitFiles sets the limit on open files of this process until the end of the test.
func limitFiles(t *testing.T, limit uint64) {
	t.Helper()
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: before.Max}))
}

// fewFiles is a limit on open files with which fewStaged files may be staged.
const (
	fewFiles  = 206
	fewStaged = 9
)

// A pack with more files than may be staged has at most one for each lane open besides, and each file is flushed before
// it gets its name.
func TestPackOfMoreFilesThanMayBeStaged(t *testing.T) {
	const files = 300
	limitFiles(t, fewFiles)
	for _, durability := range []wire.Durability{wire.DurabilityFile, wire.DurabilityFull} {
		for _, dpuSends := range []bool{false, true} {
			m := newMeeting(t, newSmallSource(files), newTarget())
			m.dpuSends, m.receiver.config.Durability = dpuSends, durability
			faulty := m.onReceiver(faultless)
			m.mustSucceed()
			m.mustHaveSame()
			calls := countStaging(t, faulty.Trace())
			if calls.mostStaged > fewStaged+role.MaxLanes || calls.named != files {
				t.Errorf("%d files were staged at once, and %d named", calls.mostStaged, calls.named)
			}
			if durability == wire.DurabilityFull && calls.namesFlushed < files {
				t.Errorf("%d names were flushed", calls.namesFlushed)
			}
		}
	}
}

// stagingCalls counts calls to a file system that concern small files.
type stagingCalls struct {
	written, flushed, named, namesFlushed, mostStaged int
}

// countStaging counts the calls of a trace. It fails the test if more files have been named than flushed.
func countStaging(t *testing.T, trace []string) (c stagingCalls) {
	t.Helper()
	for _, call := range trace {
		switch op, _, _ := strings.Cut(call, " "); op {
		case "utimes": // the last call before a file is staged; of the directory it comes last of all
			c.written++
		case "sync": // a file that is not staged
			c.flushed++
		case "syncfs":
			c.flushed, c.namesFlushed = c.written, c.named
		case "name":
			if c.mostStaged = max(c.mostStaged, c.written-c.named); c.named >= c.flushed {
				t.Errorf("%s came before a flush", call)
			}
			c.named++
		}
	}
	return c
}

// Whichever flush or name fails, what was reported as copied has its name, and nothing stays staged.
func TestPackOfManyFilesFails(t *testing.T) {
	limitFiles(t, fewFiles)
	for name, plan := range map[string]disktest.Plan{
		"a flush of content": failAfter(2, "syncfs"),
		"a flush of names":   failAfter(3, "syncfs"),
		"a name":             failAfter(30, "name"),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeeting(t, newSmallSource(300), newTarget())
			m.receiver.config.Durability = wire.DurabilityFull
			failFast(m)
			m.onReceiver(plan)
			m.run()
			mustBe(t, m.receiver.err, unix.EIO)
			left := describeTree(t, m.to, "/dst/t")
			for path, action := range m.receiver.actions() {
				if action == "copied" && left[path] == "" {
					t.Errorf("%s is reported as copied and missing", path)
				}
			}
			for path := range left {
				if strings.HasPrefix(path, ".f") {
					t.Errorf("%s is left", path)
				}
			}
			if len(m.receiver.actions()) == 0 {
				t.Error("nothing was reported")
			}
		})
	}
}
