package e2e

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// sourceChange is a change that another program makes to a source.
type sourceChange struct {
	name  string
	apply func(path string) error
}

var sourceChanges = []sourceChange{
	{"truncated", func(path string) error { return os.Truncate(path, slowSize/2) }},
	{"appended", func(path string) error { return overwriteAt(path, slowSize, "more") }},
	{"rewritten", func(path string) error { return overwriteAt(path, slowSize/2, "other") }},
	{"rewritten_with_its_time_restored", rewriteAndRestoreTime},
	{"replaced", replaceByRename},
	{"removed", os.Remove},
}

func overwriteAt(path string, offset int64, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(text), offset)
	return errors.Join(err, file.Close())
}

func rewriteAndRestoreTime(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return errors.Join(overwriteAt(path, 0, "other"), os.Chtimes(path, info.ModTime(), info.ModTime()))
}

func replaceByRename(path string) error {
	return errors.Join(writeRandomFile(path+".new", "other", slowSize), os.Rename(path+".new", path))
}

// TestSourceChangesAtRandomTime changes the source at a random time of a transfer. Both sides end with 10, the old file
// stays under the final name, and the receiver keeps nothing to resume from.
func TestSourceChangesAtRandomTime(t *testing.T) {
	t.Parallel()
	for _, change := range sourceChanges {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			forEachSender(t, change.test)
		})
	}
}

func (c sourceChange) test(f *fixture, sender string) {
	f.createFile(sender, slowSize)
	target := f.path(peerOf(sender))
	must(f.t, writeRandomFile(target+".old", "old", 1000))
	sides, delay := f.stopInTheMiddle(sender)
	must(f.t, c.apply(f.path(sender)))
	must(f.t, sides[sender].signal(syscall.SIGCONT))
	sides.expectExit(exitSourceChanged)
	must(f.t, compareFiles(target+".old", target))
	f.expectClean()
	if f.t.Failed() {
		f.t.Logf("the source was changed %s after the transfer had begun", delay)
	}
}

// touches change no more of a source than its change time.
var touches = []sourceChange{
	{"mode", func(path string) error { return os.Chmod(path, 0o640) }},
	{"link", func(path string) error { return os.Link(path, path+".second") }},
	{"name", func(path string) error { return os.Rename(path, path+".second") }},
}

// TestSourceIsTouchedAtRandomTime changes the change time of the source at a random time of a transfer. It is read
// again, and is the same.
func TestSourceIsTouchedAtRandomTime(t *testing.T) {
	t.Parallel()
	for _, touch := range touches {
		t.Run(touch.name, func(t *testing.T) {
			t.Parallel()
			forEachSender(t, func(f *fixture, sender string) {
				f.createFile(sender, slowSize)
				copied := filepath.Join(f.dir, "copied")
				must(f.t, writeRandomFile(copied, f.t.Name(), slowSize))
				sides, _ := f.stopInTheMiddle(sender)
				must(f.t, touch.apply(f.path(sender)))
				must(f.t, sides[sender].signal(syscall.SIGCONT))
				sides.expectExit(exitOK)
				must(f.t, compareFiles(copied, f.path(peerOf(sender))))
			})
		})
	}
}

// stopInTheMiddle starts a transfer over an old file and stops its sender at a random time, which it returns, before
// the last chunks have arrived. On a busy machine it may take several attempts.
func (f *fixture) stopInTheMiddle(sender string) (sides sidePair, delay time.Duration) {
	f.t.Helper()
	receiver := peerOf(sender)
	for longest := 1500 * time.Millisecond; ; longest /= 2 {
		must(f.t, writeRandomFile(f.path(receiver), "old", 1000))
		sides = f.startSlowTransfer(map[string]string{receiver: "--overwrite"})
		delay = rand.N(longest)
		time.Sleep(delay)
		sides[sender].stop()
		if f.isInTheMiddle(receiver) {
			return sides, delay
		}
		_ = sides[sender].signal(syscall.SIGCONT) // it may have ended
		sides.expectExit(exitOK)
	}
}

// isInTheMiddle reports whether a receiver has a partial file, without the last half MiB. The sender is at most some
// chunks ahead of it, so that it has not yet looked at its source for the last time.
func (f *fixture) isInTheMiddle(receiver string) bool {
	partial := filepath.Join(filepath.Dir(f.path(receiver)), partialName)
	_, err := os.Lstat(partial)
	return err == nil && !hasDataAt(partial, slowSize-512<<10)
}
