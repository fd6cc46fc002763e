package report

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
)

const (
	// interruptWidth is what the terminal adds to the line on Ctrl-C, in columns. A line that wraps could not be
	// erased.
	interruptWidth = len("^C") + 1

	barInterval    = 100 * time.Millisecond
	lineInterval   = 10 * time.Second // where lines accumulate
	alwaysInterval = time.Second      // with --progress always
)

// textReporter writes a copy as text on stderr.
type textReporter struct {
	out    io.Writer
	screen *Screen // nil: lines only
	log    zerolog.Logger
	every  time.Duration
	quiet  bool
	by     Path
	speed  speed
}

var _ Reporter = (*textReporter)(nil)

func newText(out io.Writer, screen *Screen, s config.Copy, log zerolog.Logger) *textReporter {
	p := &textReporter{out: out, screen: screen, log: log, quiet: s.Quiet}
	switch {
	case s.Progress == config.ProgressNever, s.Progress == config.ProgressAuto && s.Quiet:
	case screen != nil:
		p.every = barInterval
	case s.Progress == config.ProgressAlways:
		p.every = alwaysInterval
	default:
		p.every = lineInterval
	}
	return p
}

func (p *textReporter) Begin(by Path) { p.by = by }

func (p *textReporter) Event(e dmaxfer.Event) {
	switch e := e.(type) {
	case dmaxfer.Planned:
		if e.Resumed > 0 && !p.quiet {
			fmt.Fprintf(p.out, "resuming at %d %%: %s of %s already present\n", 100*e.Resumed/max(1, e.Size),
				humanize.IBytes(uint64(e.Resumed)), humanize.IBytes(uint64(e.Size)))
		}
	case dmaxfer.Warned:
		p.log.Warn().Msg(e.Text)
	}
}

func (p *textReporter) Interval() time.Duration { return p.every }

func (p *textReporter) Progress(s dmaxfer.Sample) {
	if s.Phase == dmaxfer.Meeting {
		p.waiting()
		return
	}
	rate := p.speed.update(s)
	if p.screen != nil {
		p.screen.show(progressLine(s, rate, p.screen.width()-interruptWidth))
		return
	}
	fmt.Fprintln(p.out, progressLine(s, rate, 0))
}

// waiting shows on a terminal that the process waits for its peer. A log does not need that line.
func (p *textReporter) waiting() {
	if p.screen != nil {
		p.screen.show(whatFits([]string{"waiting for the " + p.by.Side.Other().String()},
			p.screen.width()-interruptWidth))
	}
}

// Succeed ignores a closed stderr: the copy is done.
func (p *textReporter) Succeed(s dmaxfer.Summary) error {
	p.clear()
	if !p.quiet {
		writeSummary(p.out, s, p.by)
	}
	return nil
}

// Fail removes the progress line. The error itself is printed by main, as for any command.
func (p *textReporter) Fail(error) { p.clear() }

func (p *textReporter) clear() {
	if p.screen != nil {
		p.screen.show("")
	}
}
