package native

import (
	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file logs at level DEBUG what changes in a transfer. docs/TROUBLESHOOTING.md lists the lines.

// debug begins a line about an entry. It is nil at other levels, which costs next to nothing: a tree has many entries.
func (t *terms) debug(number uint32, path string, kind negotiate.EntryKind) *zerolog.Event {
	if !t.logsChanges {
		return nil
	}
	return t.entryLine(number, path, kind)
}

func (t *terms) entryLine(number uint32, path string, kind negotiate.EntryKind) *zerolog.Event {
	if path == "" {
		path = "." // the directory itself
	}
	return t.config.Log.Debug().Uint32("entry", number).Str("path", path).Stringer("kind", kind)
}

// decisions are the texts of lines about the end of an entry, by action.
var decisions = [...]string{
	job.Copied: "entry committed", job.Unchanged: "entry unchanged", job.Skipped: "entry skipped",
	job.Failed: "entry failed", job.WouldCopy: "entry would be copied", job.Existing: "entry left as it is",
}

// debug begins a line about an entry of the sender.
func (s *sentEntries) debug(o *outgoing) *zerolog.Event {
	return s.terms.debug(o.number, o.path, o.kind)
}

// debug begins a line about an entry of the receiver.
func (o *outcomes) debug(e *arriving) *zerolog.Event { return o.terms.debug(e.number, e.path, e.kind) }

// logNeeded says that the receiver needs the content of a file, or the rest of it.
func logNeeded(event *zerolog.Event, resume int64) {
	if resume > 0 {
		event.Int64("offset", resume).Msg("entry resumed")
		return
	}
	event.Msg("entry needed")
}

// logPeer says who the peer is and what it can do.
func (t *terms) logPeer(peer negotiate.Hello) {
	event := t.config.Log.Debug()
	if event == nil {
		return
	}
	event.Str("software", peer.Software).Uint8("version", t.plan.Version).
		Stringer("data_paths", pathsOf(peer.Flags)).Uint32("chunk", peer.Chunk).Uint32("depth", peer.Depth).
		Stringer("digest", peer.Digest).Stringer("durability", peer.Durability).Msg("peer known")
}

// logWindow says that this side's end of the window is open.
func (t *terms) logWindow(w *window.Window) {
	event := t.config.Log.Debug()
	if event == nil {
		return
	}
	l := t.layout()
	if w.Transport != "" {
		event.Str("transport", w.Transport)
	}
	event.Stringer("data_path", l.Path).Int64("chunk", l.Chunk).Int("depth", l.Depth).Msg("window opened")
}

// logEnd says that the transfer has ended, and why.
func (t *transfer) logEnd(failed error) {
	t.config.Log.Debug().Err(failed).Stringer("state", t.session.Reached()).Int64("messages", t.account.messages).
		Msg("transfer ended")
}
