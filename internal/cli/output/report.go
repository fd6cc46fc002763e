// Package output tells the user about a copy: progress and results as text or as JSON events.
//
// Each form is a report.Reporter. The JSON events are an interface for other programs, described by
// docs/events.schema.json: fields are only ever added. This package must not start, stop or influence a copy.
package output

import (
	"io"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/report"
)

// New returns the reporter of a form. Events go to stdout, or to stderr if stdout may be where the file's bytes go;
// text goes to stderr, whose screen is nil unless it is a terminal that can move its cursor, and the plan of a dry
// run to stdout.
func New(stdout, stderr io.Writer, screen *Screen, f Form, toStdout bool, log zerolog.Logger) report.Reporter {
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

// Ended reports the error of a command, if there is one, and returns it.
func Ended(to interface{ Fail(error) }, log zerolog.Logger, err error) error {
	if err != nil {
		to.Fail(err)
	}
	report.LogReworded(log, err)
	return err
}
