// Package report has what a command that copies or connects says, and the errors that it ends with.
//
// A Reporter says it in one form; a Monitor feeds the Reporter from the events and the progress of a copy. Errors carry
// exit codes and hints (package exit). This package must not start, stop or influence a copy.
package report

import (
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// Reporter reports on one copy, or on copies of several sources one after another, as text or as JSON lines. Its
// methods are called by one goroutine at a time.
type Reporter interface {
	// Begin is called before each copy starts.
	Begin(path Path)

	// Event is called for each event of the copy.
	Event(e job.Event)

	// Progress is called with a sample at each interval. An interval of 0 is for no progress.
	Progress(s job.Sample)
	Interval() time.Duration

	// Asked is called with a sample, and with what the copy waits for, when the user has asked for it, also if there is
	// no interval.
	Asked(s job.Sample, waits []job.Snapshot)

	// Result reports what the copy has done. It returns an error if what was reported could not be written.
	Result(s job.Summary) error

	// SourceFailed is called instead of Fail if other sources follow.
	SourceFailed(err error)

	// Deleting is called once before the first entry is deleted, or would be.
	Deleting(d Deleting)

	// Deleted is called for each entry of the target that the source does not have, after Result.
	Deleted(d Deletion)

	// Total is called at the end where there are several sources, or deletions. Its error is like the error of Result.
	Total(t Total) error

	// Fail is called with the error of a copy that failed, after Result if some entries of a tree failed.
	Fail(err error)
}
