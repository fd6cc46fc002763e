package output

import "github.com/dma-copy/dma-copy/internal/cli/option"

// Form is how a command that copies reports.
type Form struct {
	Output   option.OutputForm
	Progress ProgressChoice
	Events   EventChoice
	Quiet    bool // no summary, and no progress unless it is ProgressAlways
	DryRun   bool // nothing is changed, and the plan is printed
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
