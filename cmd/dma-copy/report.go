package main

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

// sideError is a failure of a run that knows which side it is.
type sideError struct {
	side      negotiate.Side
	err       error
	kept      int64  // bytes that a later copy goes on with
	lost      string // why there are none of those that were verified
	resumable bool   // or the receiver may have kept some
}

func (e *sideError) Error() string { return fmt.Sprintf("%s: %v", e.side, e.err) }
func (e *sideError) Unwrap() error { return e.err }

// reportError prints the error as the one line that a failed run leaves on stderr: side, cause, next step.
func reportError(w io.Writer, err error) {
	fmt.Fprintf(w, "dma-copy: %s\n", sentence(err))
}

// sentence is the line without the program's name.
func sentence(err error) string {
	found, text := classify(err), err.Error()
	failed, sided := errors.AsType[*sideError](err)
	if sided && found.reword != nil {
		text = fmt.Sprintf("%s: %s", failed.side, found.reword(failed.side, failed.err))
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
func whatIsKept(failed *sideError, code int) string {
	switch {
	case failed.kept > 0:
		return fmt.Sprintf("; %s are kept: run the same command to resume", humanize.IBytes(uint64(failed.kept)))
	case failed.lost != "":
		return "; nothing is kept: " + failed.lost
	case failed.resumable && (code > exit.Signal || code == exit.Peer || code == exit.Limit):
		return "; run the same command to resume from what the receiver kept"
	}
	return ""
}

// logReworded keeps in the log what the line about the failure leaves out.
func logReworded(log zerolog.Logger, err error) {
	if err != nil && classify(err).reword != nil {
		log.Debug().Err(err).Msg("full error")
	}
}
