package output

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/report"
)

const (
	// interruptWidth is the number of columns that the terminal adds to the line on Ctrl-C. A line that wraps could
	// not be erased.
	interruptWidth = len("^C") + 1

	barInterval    = 100 * time.Millisecond
	lineInterval   = 10 * time.Second // where lines accumulate
	alwaysInterval = time.Second      // with --progress always
)

// textReporter writes a copy as text on stderr.
type textReporter struct {
	out     io.Writer
	screen  *Screen // nil: lines only
	log     zerolog.Logger
	every   time.Duration
	quiet   bool
	verbose bool // the summary has several lines
	path    report.Path
	began   time.Time
	planned job.Planned
	plan    *bufio.Writer // of a dry run; nil: none
	speed   speed
}

var _ report.Reporter = (*textReporter)(nil)

func newText(stdout, out io.Writer, screen *Screen, f Form, log zerolog.Logger) *textReporter {
	r := &textReporter{out: out, screen: screen, log: log, quiet: f.Quiet, verbose: f.Verbose}
	if f.DryRun {
		r.plan = bufio.NewWriter(stdout)
	}
	switch {
	case f.hidesProgress():
	case screen != nil:
		r.every = barInterval
	case f.Progress == ProgressAlways:
		r.every = alwaysInterval
	default:
		r.every = lineInterval
	}
	return r
}

func (r *textReporter) Begin(path report.Path) {
	r.path, r.began, r.planned, r.speed = path, time.Now(), job.Planned{}, speed{}
}

func (r *textReporter) Event(e job.Event) {
	switch e := e.(type) {
	case job.PeerKnown:
		r.path.Location = e.Location
	case job.Planned:
		r.planned = e
		if e.Resumed > 0 && !r.quiet {
			fmt.Fprintf(r.out, "comparing %s of %s that the target has (%d %%)\n",
				quantity.Bytes(uint64(e.Resumed)), quantity.Bytes(uint64(e.Size)), 100*e.Resumed/max(1, e.Size))
		}
	case job.FileDone:
		if r.plan != nil {
			r.clear() // the plan may go to the same terminal
			fmt.Fprintln(r.plan, planLine(r.path.Side, e))
		}
	case job.Warned:
		r.log.Warn().Msg(e.Text)
	}
}

// planLine returns the line about an entry in the plan of a dry run: action, why, size of a file in bytes, path.
func planLine(side wire.Side, e job.FileDone) string {
	action, size, name := e.Action.String(), "-", report.EntryName(e.Path)
	switch e.Action {
	case job.WouldCopy:
		action = "copy"
	case job.WouldUpdate:
		action = "update"
	}
	switch e.Kind {
	case wire.EntryFile:
		size = strconv.FormatInt(e.Bytes, 10)
	case wire.EntryDirectory:
		name += "/"
	}
	if e.Action == job.Failed {
		name = report.EntrySentence(side, e.Path, e.Err)
	}
	return planRow(action, e.Change.String(), size, name)
}

// planRow returns a line of the plan of a dry run.
func planRow(action, why, size, name string) string {
	return fmt.Sprintf("%-9s  %-7s  %14s  %s", action, cmp.Or(why, "-"), size, name)
}

func (r *textReporter) Interval() time.Duration { return r.every }

func (r *textReporter) Progress(s job.Sample) {
	if s.Phase == job.Meeting {
		r.waiting()
		return
	}
	rate := r.speed.update(s)
	if r.screen != nil {
		r.screen.show(progressLine(s, rate, r.screen.width()-interruptWidth))
		return
	}
	fmt.Fprintln(r.out, progressLine(s, rate, 0))
}

// Asked prints lines that stay, on a terminal above the line of the progress.
func (r *textReporter) Asked(s job.Sample, waits []job.Snapshot) {
	line := progressLine(s, r.speed.update(s), 0)
	if s.Phase == job.Meeting && !r.path.Local {
		line = report.WaitOf(r.path).Lines(time.Since(r.began))[0]
	}
	fmt.Fprintln(r.out, line)
	for _, each := range waits {
		for _, line := range each.Lines() {
			fmt.Fprintln(r.out, "  "+line)
		}
	}
}

// waiting shows that the process waits for its peer.
func (r *textReporter) waiting() {
	switch {
	case r.path.Local:
	case r.screen != nil:
		r.screen.showWait(report.WaitOf(r.path), time.Since(r.began))
	default:
		fmt.Fprintln(r.out, report.WaitOf(r.path).Lines(time.Since(r.began))[0])
	}
}

// Result ignores a closed stderr: the copy is done.
func (r *textReporter) Result(s job.Summary) error {
	r.clear()
	if r.plan != nil && s.Tree == nil {
		fmt.Fprintln(r.plan, planLine(r.path.Side, singleFile(s)))
	}
	err := r.endPlan()
	if !r.quiet {
		writeSummary(r.out, s, r.planned, r.path, r.verbose)
	}
	return err
}

// singleFile returns what has been done about the file of a transfer without a tree.
func singleFile(s job.Summary) job.FileDone {
	e := job.FileDone{Path: s.Path, Kind: wire.EntryFile, Action: job.Copied, Bytes: s.Size}
	switch {
	case s.Updated:
		e.Action, e.Change = job.ActionOfHave(s.Change, s.DryRun), s.Change
	case s.UpToDate:
		e.Action = job.Unchanged
	case s.Existing:
		e.Action = job.Existing
	case s.DryRun:
		e.Action, e.Change = job.WouldCopy, s.Change
	}
	return e
}

// endPlan prints what is left of the plan. A reader that has closed its end has read enough.
func (r *textReporter) endPlan() error {
	if r.plan == nil {
		return nil
	}
	if err := r.plan.Flush(); err != nil && !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("print the plan: %w", err)
	}
	return nil
}

// Fail removes the progress line. The error itself is printed by main, as for any command.
func (r *textReporter) Fail(error) {
	r.clear()
	_ = r.endPlan() // the copy has failed anyway
}

func (r *textReporter) clear() {
	if r.screen != nil {
		r.screen.show("")
	}
}
