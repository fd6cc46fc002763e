package reference

import (
	"errors"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file logs at level DEBUG what changes in a transfer, with the lines of package native.

// entryLine begins a line about the file.
func (t *Transfer) entryLine() *zerolog.Event {
	return t.config.Log.Debug().Str("path", t.config.File.Path).Stringer("kind", wire.EntryFile)
}

// committed is the text of the line about a file that has its name.
const committed = "entry committed"

// logEnd says that the transfer has ended, why, and what has become of the file as far as this side knows. The session
// of a peer that speaks the native protocol goes on.
func (t *Transfer) logEnd(failed error) {
	if t.outcome.Native != nil {
		return
	}
	switch {
	case t.agreement.Protocol == 0, t.committed, errors.Is(failed, wire.ErrOutcomeUnknown):
	case failed != nil:
		t.entryLine().Err(failed).Msg("entry failed")
	default: // the receiver has reported success, or has disconnected as after one
		t.entryLine().Msg(committed)
	}
	t.config.Log.Debug().Err(failed).Stringer("state", t.session.Reached()).Msg("transfer ended")
}
