package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSyncLooksAheadIfNeeded counts the copies of sync --delete, which makes a dry run before the copy only if the
// target has something that the source does not have, or that is in the way.
func TestSyncLooksAheadIfNeeded(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	d := f.serve("")
	for direction, line := range map[string]string{
		"push": "sync -l DEBUG --delete host/pushed/. :files/pushed",
		"pull": "sync -l DEBUG --delete :files/pulled/. host/pulled",
	} {
		source, target := filepath.Join(f.dir, "host", "pushed"), f.share("pushed")
		if direction == "pull" {
			source, target = f.share("pulled"), filepath.Join(f.dir, "host", "pulled")
		}
		create := func(elements ...string) {
			t.Helper()
			path := filepath.Join(elements...)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, []byte(path), 0o644))
		}
		expectCopies := func(want int) {
			t.Helper()
			sync := f.expectCommand(line)
			if got := strings.Count(sync.stderr.String(), `"message":"copy accepted"`); got != want {
				t.Errorf("%s: %d copies and dry runs, want %d", direction, got, want)
			}
		}
		for _, name := range []string{"a", "b/c", "d"} {
			create(source, name)
		}
		must(t, os.Mkdir(target, 0o755))
		expectCopies(1) // the target is empty
		expectCopies(1) // both are the same
		create(source, "new")
		expectCopies(1)
		create(target, "b", "extra")
		expectCopies(2)
		must(t, os.Remove(filepath.Join(target, "a")))
		must(t, os.Mkdir(filepath.Join(target, "a"), 0o755))
		expectCopies(3) // and another copy when the way is clear
		expectCopies(1)
	}
	d.stop()
}
