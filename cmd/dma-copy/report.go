package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// sideError is a failure of a run that knows which side it is.
type sideError struct {
	side negotiate.Side
	err  error
}

func (e *sideError) Error() string { return fmt.Sprintf("%s: %v", e.side, e.err) }
func (e *sideError) Unwrap() error { return e.err }

// wording says the cause of a failure in the words of whoever runs a copy, where the error has those of the protocol or
// of the device.
type wording func(*sideError) string

// ofPeer is a sentence about the other side, which takes the place of %s.
func ofPeer(sentence string) wording {
	return func(e *sideError) string { return fmt.Sprintf(sentence, e.side.Other()) }
}

// leavingOut drops what an error of that type adds to those around it.
func leavingOut[T error](e *sideError) string {
	text := e.err.Error()
	if inner, is := errors.AsType[T](e.err); is {
		text = strings.Replace(text, ": "+inner.Error(), "", 1)
	}
	return text
}

// reportError prints the error as the one line that a failed run leaves on stderr: side, cause, next step.
func reportError(w io.Writer, err error) {
	found, text := classify(err), err.Error()
	if failed, is := errors.AsType[*sideError](err); is && found.cause != nil {
		text = fmt.Sprintf("%s: %s", failed.side, found.cause(failed))
	}
	if found.next != "" {
		text += ": " + found.next
	}
	fmt.Fprintf(w, "dma-copy: %s\n", escapeUnprintable(strings.ReplaceAll(text, "\n", "; ")))
}

// logReworded keeps in the log what the line about the failure leaves out.
func logReworded(log zerolog.Logger, err error) {
	if err != nil && classify(err).cause != nil {
		log.Debug().Err(err).Msg("the failure in full")
	}
}
