package report

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// SideError is a failure of a run that knows which side it is.
type SideError struct {
	Side      negotiate.Side
	Err       error
	Kept      int64  // bytes that a later copy goes on with
	Lost      string // why there are none of those that were verified
	Resumable bool   // or the receiver may have kept some
}

func (e *SideError) Error() string { return fmt.Sprintf("%s: %v", e.Side, e.Err) }
func (e *SideError) Unwrap() error { return e.Err }

// WriteError prints the error as the one line that a failed run leaves on stderr: side, cause, next step.
func WriteError(w io.Writer, err error) {
	fmt.Fprintf(w, "dma-copy: %s\n", Sentence(err))
}

// Sentence is the line without the program's name.
func Sentence(err error) string {
	found, text := classify(err), err.Error()
	failed, sided := errors.AsType[*SideError](err)
	if sided && found.reword != nil {
		text = fmt.Sprintf("%s: %s", failed.Side, found.reword(failed.Side, failed.Err))
		if said := dmaxfer.ErrHung; errors.Is(err, said) && !strings.Contains(text, said.Error()) {
			text += "; " + said.Error()
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

// whatIsKept says that a copy need not begin anew. A sender does not know; it says so only after what leaves most receivers with
// something worth keeping.
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

// LogReworded keeps in the log what the line about the failure leaves out.
func LogReworded(log zerolog.Logger, err error) {
	if err != nil && classify(err).reword != nil {
		log.Debug().Err(err).Msg("full error")
	}
}
