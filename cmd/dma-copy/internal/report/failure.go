package report

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// SideError is the failure of a copy on one side.
type SideError struct {
	Side      negotiate.Side
	Err       error
	Kept      int64  // bytes from which a later copy resumes
	Lost      string // why no verified bytes are kept; empty if none were lost
	Resumable bool   // the receiver may have kept some
}

// Error returns the error with its side.
func (e *SideError) Error() string { return fmt.Sprintf("%s: %v", e.Side, e.Err) }

// Unwrap returns the error without its side.
func (e *SideError) Unwrap() error { return e.Err }

// WriteError prints the one line that a failed run leaves on stderr: side, cause, hint.
func WriteError(w io.Writer, err error) {
	fmt.Fprintf(w, "dma-copy: %s\n", Sentence(err))
}

// Sentence returns that line without the name of the program.
func Sentence(err error) string {
	found, text := classify(err), err.Error()
	failed, sided := errors.AsType[*SideError](err)
	if sided && found.reword != nil {
		text = fmt.Sprintf("%s: %s", failed.Side, found.reword(failed.Side, failed.Err))
		if hung := job.ErrHung; errors.Is(err, hung) && !strings.Contains(text, hung.Error()) {
			text += "; " + hung.Error()
		}
	}
	if found.hint != "" {
		text += ": " + found.hint
	}
	if sided {
		text += whatIsKept(failed, found.code)
	}
	return quote.Printable(strings.ReplaceAll(text, "\n", "; "))
}

// whatIsKept returns a clause that says whether the copy can be resumed. A sender does not know; it says so only after
// failures that leave most receivers with something to resume from.
func whatIsKept(failed *SideError, code int) string {
	switch {
	case failed.Kept > 0:
		return fmt.Sprintf("; %s are kept: run the same command to resume", humanize.IBytes(uint64(failed.Kept)))
	case failed.Lost != "":
		return "; nothing is kept: " + failed.Lost
	case failed.Resumable && (code > exit.Signal || code == exit.Peer || code == exit.Limit):
		return "; run the same command to resume from what the receiver kept"
	}
	return ""
}

// LogReworded logs the full error if the line about the failure rewords it.
func LogReworded(log zerolog.Logger, err error) {
	if err != nil && classify(err).reword != nil {
		log.Debug().Err(err).Msg("full error")
	}
}
