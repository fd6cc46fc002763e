package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// SideError is the failure of a copy on one side.
type SideError struct {
	Side       wire.Side
	Local      bool // of a local copy, which has both sides
	Err        error
	Kept       int64  // bytes from which a later copy resumes
	Lost       string // why no verified bytes are kept; empty if none were lost
	Resumable  bool   // the receiver may have kept some
	Partly     bool   // the receiver may have some entries of a tree, which a later copy skips
	Undirected bool   // which side receives follows from what both have

	Tree *job.TreeSummary // the result, if Err is that some entries of a tree failed; otherwise nil
}

// unbegun is the error of a copy with a daemon that has moved nothing. Whether the daemon has refused it in the service
// protocol or aborted its native session is the same for the user.
type unbegun struct{ error }

// Unwrap returns the error itself.
func (u unbegun) Unwrap() error { return u.error }

// Error returns the error with its side.
func (e *SideError) Error() string { return e.prefix() + e.Err.Error() }

// prefix is how lines about the failure begin.
func (e *SideError) prefix() string {
	if e.Local || e.Side == wire.Client || e.Side == wire.Server {
		return "" // between machines, the prompt says which one it is
	}
	return e.Side.String() + ": "
}

// Unwrap returns the error without its side.
func (e *SideError) Unwrap() error { return e.Err }

// WriteError prints the one line that a failed run leaves on stderr: side, cause, hint. For a tree, the entries that
// failed come first, each on a line. A defect is followed by its stack.
func WriteError(w io.Writer, err error) {
	if failed, is := errors.AsType[*SideError](err); is && failed.Tree != nil {
		for _, entry := range failed.Tree.Failures {
			fmt.Fprintf(w, "dma-copy: %s%s\n", failed.prefix(), EntrySentence(failed.Side, entry.Path, entry.Err))
		}
		unreadable := failed.Tree.Unreadable
		if more := failed.Tree.Failed - unreadable - int64(len(failed.Tree.Failures)); more > 0 {
			fmt.Fprintf(w, "dma-copy: %sand %s more\n", failed.prefix(), quantity.Comma(more))
		}
		if unreadable > 0 {
			fmt.Fprintf(w, "dma-copy: %s: the %s could not read %s: see its error messages\n",
				failed.Side, failed.Side.Other(), quantity.Count(unreadable, "entry"))
		}
	}
	fmt.Fprintf(w, "dma-copy: %s\n", Sentence(err))
	if defect, is := errors.AsType[*job.Defect](err); is {
		fmt.Fprintf(w, "%s", defect.Stack)
	}
}

// EntrySentence returns an entry of a tree and why it failed.
func EntrySentence(side wire.Side, path string, err error) string {
	return EntryName(path) + ": " + EntryReason(side, err)
}

// EntryReason returns why an entry of a tree failed, and the next step.
func EntryReason(side wire.Side, err error) string {
	text, hint := err.Error(), exit.Hint(err)
	if said, is := errors.AsType[*native.PeerAborted](err); is {
		text = fmt.Sprintf("the %s reports: %s", side.Other(), said.Text)
	}
	return quote.Printable(strings.ReplaceAll(phrase.Join(": ", text, hint), "\n", "; "))
}

// EntryName returns the path of an entry for a line of text.
func EntryName(path string) string { return quote.Path(cmp.Or(path, ".")) }

// Sentence returns that line without the name of the program.
func Sentence(err error) string {
	found, hint, text := exit.Find(err), exit.Hint(err), err.Error()
	failed, sided := errors.AsType[*SideError](err)
	if sided {
		if words, is := failed.reword(found); is {
			text = failed.prefix() + words
			if hung := job.ErrHung; errors.Is(err, hung) && !strings.Contains(text, hung.Error()) {
				text += "; " + hung.Error()
			}
		}
	}
	if sided && failed.Tree != nil {
		text = fmt.Sprintf("%s%s of %s failed", failed.prefix(), quantity.Comma(failed.Tree.Failed),
			quantity.Count(failed.Tree.Entries(), "entry"))
	}
	switch {
	case sided && failed.Tree != nil && failed.Undirected:
		text += ": remove the causes and run the same commands, with --ignore-existing or --overwrite on the side " +
			"that receives"
	case sided && failed.Local && hint != "":
		text += ": " + strings.TrimSuffix(hint, " and the other side's error message")
	case hint != "":
		text += ": " + hint
	}
	if sided {
		text += whatIsKept(failed, exit.Code(err))
	}
	return quote.Printable(strings.ReplaceAll(text, "\n", "; "))
}

// whatIsKept returns a clause that says whether the copy can be resumed. A sender does not know; it says so only after
// failures that leave most receivers with something to resume from.
func whatIsKept(failed *SideError, code int) string {
	leavesSome := code > exit.Signal || code == exit.Peer || code == exit.Limit
	switch {
	case failed.Kept > 0:
		return fmt.Sprintf("; %s are kept: run the same command to resume", quantity.Bytes(uint64(failed.Kept)))
	case failed.Lost != "":
		return "; nothing is kept: " + failed.Lost
	case failed.Partly && leavesSome:
		return "; run the same command to copy the rest"
	case failed.Resumable && leavesSome:
		return "; run the same command to resume from what the receiver kept"
	}
	return ""
}

// LogReworded logs the full error if the line about the failure rewords it.
func LogReworded(log zerolog.Logger, err error) {
	failed, sided := errors.AsType[*SideError](err)
	if !sided {
		return
	}
	if _, reworded := failed.reword(exit.Find(err)); reworded {
		log.Debug().Err(err).Msg("full error")
	}
}

// WithSide returns the error with its side, unless it has one.
func WithSide(side wire.Side, err error) error {
	if sided, is := errors.AsType[*SideError](err); err == nil || is && sided != nil {
		return err
	}
	if coded, is := errors.AsType[*exit.Error](err); is && coded.ExitCode() == exit.Usage {
		return err
	}
	return &SideError{Side: side, Err: err}
}
