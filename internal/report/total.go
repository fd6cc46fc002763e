package report

import (
	"errors"
	"slices"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Deletion is an entry of the target that the source does not have.
type Deletion struct {
	Path   string // below the target; any bytes but NUL
	Kind   wire.EntryKind
	DryRun bool  // it would be deleted
	Err    error // why it is still there; nil otherwise

	InTheWay bool // the source has something else of its name, or of the name of a directory above it
}

// Reason returns why it is deleted, if the source has its name.
func (d Deletion) Reason() string {
	if d.InTheWay {
		return native.ChangeType.String()
	}
	return ""
}

// Deleting is what a sync is about to delete.
type Deleting struct {
	Entries int
	Of      int64      // entries that the target had before the copy; 0: unknown
	First   []Deletion // of these
	DryRun  bool
}

// Total is what a command has done for all of its sources together.
type Total struct {
	Sources int64 // that were tried
	Failed  int64 // of these
	Files   int64 // that were copied
	Bytes   int64 // of these
	Elapsed time.Duration

	Deletes bool  // entries were to be deleted
	Deleted int64 // entries, or in a dry run those that would be
	Kept    int64 // entries that could not be deleted
	DryRun  bool
}

// Add counts a source by its result.
func (t *Total) Add(s job.Summary, err error) {
	t.Sources++
	if err != nil {
		t.Failed++
	}
	switch {
	case s.Tree != nil:
		t.Files += s.Tree.Files
		t.Bytes += s.Tree.Bytes
	case err == nil && !s.UpToDate && !s.Existing && !s.DryRun:
		t.Files++
		t.Bytes += s.Size
	}
	t.DryRun = t.DryRun || s.DryRun
}

// Delete counts a deletion.
func (t *Total) Delete(d Deletion) {
	t.Deletes = true
	if d.Err != nil {
		t.Kept++
	} else {
		t.Deleted++
	}
}

// Worthy reports whether the total says more than the result of the only source does.
func (t *Total) Worthy() bool { return t.Sources > 1 || t.Deletes }

// SomeSources returns the error of a command some of whose sources failed, each of which has been reported; nil if none
// has.
func SomeSources(tried int, failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	return exit.Errorf(CommonCode(tried, failures), "see the errors above, and run the same command for the rest",
		"%d of %d sources failed", len(failures), tried)
}

// CommonCode returns the exit code of a command that has tried several things, some of which failed: their code if all
// failed with the same one.
func CommonCode(tried int, failures []error) int {
	code := exit.Code(failures[0])
	another := func(err error) bool { return exit.Code(err) != code }
	if len(failures) < tried || slices.ContainsFunc(failures, another) {
		return exit.SomeFailed
	}
	return code
}

// Unfinished reports whether the error of one source ends the command: the daemon, the device or the user is gone.
func Unfinished(err error) bool {
	code := exit.Code(err)
	return code == exit.Peer || code == exit.Device || code == exit.Protocol || code > exit.Signal ||
		errors.Is(err, job.ErrHung)
}
