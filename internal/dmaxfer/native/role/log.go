package role

import (
	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// This file logs at level DEBUG what changes in a transfer. docs/guide/troubleshooting.md lists the lines.

// LogEntry begins a line about an entry. It is nil at other levels, which costs next to nothing: a tree has many
// entries.
func (p *Params) LogEntry(number uint32, path string, kind wire.EntryKind) *zerolog.Event {
	if !p.logsChanges {
		return nil
	}
	if path == "" {
		path = "." // the directory itself
	}
	return p.Config.Log.Debug().Uint32("entry", number).Str("path", path).Stringer("kind", kind)
}

// decisions are the texts of lines about the end of an entry, by action.
var decisions = [...]string{
	job.Copied: "entry committed", job.Unchanged: "entry unchanged", job.Updated: "entry updated",
	job.WouldUpdate: "entry would be updated", job.Skipped: "entry skipped",
	job.Failed: "entry failed", job.WouldCopy: "entry would be copied", job.Existing: "entry left as it is",
}

// LogNeeded says that the receiver needs the content of a file, or the rest of it.
func LogNeeded(event *zerolog.Event, resume int64) {
	if resume > 0 {
		event.Int64("offset", resume).Msg("entry resumed")
		return
	}
	event.Msg("entry needed")
}

// LogPeer says who the peer is and what it can do.
func (p *Params) LogPeer(peer native.Hello) {
	p.Config.Log.Debug().Str("software", peer.Software).Uint8("version", p.Plan.Version).
		Stringer("data_paths", job.PathsIn(peer.Flags)).Uint32("chunk", peer.Chunk).Uint32("depth", peer.Depth).
		Stringer("digest", peer.Digest).Stringer("durability", peer.Durability).Msg("peer known")
}

// LogWindow says that this side's end of the window is open.
func (p *Params) LogWindow(w *window.Window) {
	event, l := p.Config.Log.Debug(), p.Layout()
	if w.Transport != "" {
		event.Str("transport", w.Transport)
	}
	event.Stringer("data_path", l.Path).Int64("chunk", l.Chunk).Int("depth", l.Depth).Msg("window opened")
}
