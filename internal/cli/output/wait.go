package output

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/background"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/report"
)

// showWait shows on the screen the longest form that fits.
func (screen *Screen) showWait(w report.Wait, lasted time.Duration) {
	for _, line := range w.Lines(lasted) {
		if len(line) <= screen.width()-interruptWidth {
			screen.show(line)
			return
		}
	}
}

// WaitOutput is how a command says that it waits.
type WaitOutput struct {
	Screen *Screen                                   // shows it; nil: there is none
	Say    func(w report.Wait, lasted time.Duration) // says it on request, and without a screen every 10 s
	Quiet  bool                                      // only on request
}

// NewWaitOutput returns the output of a command that waits for one peer: events on stdout, or text on stderr, whose
// screen is as for New.
func NewWaitOutput(
	stdout, stderr io.Writer, screen *Screen, form option.OutputForm, quiet bool, log zerolog.Logger,
) WaitOutput {
	if events := NewEvents(stdout, form, log); events != nil {
		return WaitOutput{Quiet: quiet, Say: func(w report.Wait, lasted time.Duration) {
			events.Write("waiting", waitingOf(w, lasted))
		}}
	}
	if quiet {
		screen = nil
	}
	return WaitOutput{Screen: screen, Quiet: quiet, Say: func(w report.Wait, lasted time.Duration) {
		fmt.Fprintln(stderr, w.Lines(lasted)[0])
	}}
}

// Waiting says that the process waits, from a moment on, and each time that asked delivers a signal, until stop is
// called. Without a Say it does nothing.
func Waiting(w report.Wait, to WaitOutput, asked <-chan os.Signal) (stop func()) {
	if to.Say == nil {
		return func() {}
	}
	began := time.Now()
	say := func() { to.Say(w, time.Since(began)) }
	switch {
	case to.Screen != nil:
		end := background.Watch(barInterval, func() { to.Screen.showWait(w, time.Since(began)) }, asked, say)
		return func() {
			end()
			to.Screen.show("")
		}
	case to.Quiet:
		return background.Answer(asked, say)
	}
	return background.Watch(lineInterval, say, asked, say)
}

// waitingEvent says that a command waits for its peer.
type waitingEvent struct {
	For     string  `json:"for"`
	Peer    string  `json:"peer,omitempty"`
	Line    int     `json:"line,omitempty"`
	Start   string  `json:"start,omitempty"`
	Elapsed float64 `json:"elapsed_seconds"`
	Limit   float64 `json:"wait_seconds,omitempty"`
}

func waitingOf(wait report.Wait, lasted time.Duration) waitingEvent {
	e := waitingEvent{
		For: wait.For, Elapsed: lasted.Seconds(), Limit: wait.Limit.Seconds(),
	}
	if len(wait.Start) > 0 {
		e.Start = wait.Start[0]
	}
	return e
}
