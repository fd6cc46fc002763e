// Package output tells the user about a copy: progress and results as text or as JSON events, and failures with exit
// code and hint.
//
// A Reporter writes one form; a Monitor feeds it from the events and the progress of a copy. Errors carry exit codes
// and hints (package exit). The JSON events are an interface for other programs, described by docs/events.schema.json:
// fields are only ever added. This package must not start, stop or influence a copy.
package output

import (
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// Reporter reports on one copy, or on those of several sources one after another, as text or as JSON lines. Its methods
// are called by one goroutine at a time.
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

	// SourceFailed is called in place of Fail if other sources follow.
	SourceFailed(err error)

	// Deleting is called once before the first entry is deleted, or would be.
	Deleting(d Deleting)

	// Deleted is called for each entry of the target that the source does not have, after Result.
	Deleted(d Deletion)

	// Total is called at the end where there are several sources, or deletions. Its error is as that of Result.
	Total(t Total) error

	// Fail is called with the error of a copy that failed, after Result if that is of a tree of which some entries
	// failed.
	Fail(err error)
}

// New returns the reporter of a form. Events go to stdout, or to stderr if stdout may be where the file's bytes go;
// text goes to stderr, whose screen is nil unless it is a terminal that can move its cursor, and the plan of a dry
// run to stdout.
func New(stdout, stderr io.Writer, screen *Screen, f Form, toStdout bool, log zerolog.Logger) Reporter {
	switch {
	case f.Output != option.OutputJSON:
		return newText(stdout, stderr, screen, f, log)
	case toStdout:
		return newJSON(stderr, f, log)
	default:
		return newJSON(stdout, f, log)
	}
}

// Form is how a command that copies reports.
type Form struct {
	Output   option.OutputForm
	Progress ProgressChoice
	Events   EventChoice
	Quiet    bool // no summary, and no progress unless it is ProgressAlways
	DryRun   bool // nothing is changed, and the plan is printed
	Verbose  bool // the summary has several lines
}

// ProgressChoice is when the progress of a copy is shown.
type ProgressChoice string

// The choices of --progress.
const (
	ProgressAuto   ProgressChoice = "auto"
	ProgressNever  ProgressChoice = "never"
	ProgressAlways ProgressChoice = "always"
)

// EventChoice selects the entries of a tree that have an event of their own.
type EventChoice string

// The choices of --events.
const (
	EventsAll      EventChoice = "all"
	EventsFailures EventChoice = "failures"
)

// hidesProgress reports whether no progress is shown.
func (f Form) hidesProgress() bool {
	return f.Progress == ProgressNever || f.Progress == ProgressAuto && f.Quiet
}
