package send

import (
	"context"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// fewWaiting is how many entries wait at most to be announced when the source passes on more.
const fewWaiting = 128

// announcer finds the entries of a transfer in one job, and announces as many of them as the protocol permits. The job
// calls find, which waits while a batch is not taken; the owner of the transfer calls everything else.
type announcer struct {
	t           *role.Transfer
	source      source             // opened by the job, closed after all jobs have ended
	batches     chan []sourceEntry // that the source has found; closed at its end, and nil after that
	directories *directories
	known       func() // is called when no file will be needed any more

	waiting     []sourceEntry // to be announced
	described   []wire.Entry
	walked      bool   // the source has come to its end
	allKnown    bool   // known has been called
	unannounced uint32 // entries of the source that cannot be sent
}

// find opens the source and passes on its entries.
func (a *announcer) find(ctx context.Context) error {
	source, err := openSource(a.t)
	if err != nil {
		return err
	}
	a.source = source
	for {
		entries, err := source.next(ctx)
		if len(entries) > 0 {
			select {
			case a.batches <- entries:
			case <-ctx.Done():
				discard(entries)
				return context.Cause(ctx)
			}
			a.t.Link.Post(a.advance)
		}
		if err == io.EOF {
			close(a.batches)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// discard releases entries that are not announced.
func discard(entries []sourceEntry) {
	for _, e := range entries {
		e.decide()
	}
}

// advance announces as many entries as the protocol permits, and calls known after the last answer for a file.
func (a *announcer) advance(ctx context.Context) error {
	if a.t.Session.State() != native.Transferring {
		return nil // the transfer was given up, or everything has been announced
	}
	for more := true; more; {
		for len(a.waiting) > 0 {
			announced, err := a.announce(ctx)
			if err != nil {
				return err
			}
			if announced == 0 {
				break
			}
		}
		var err error
		if more, err = a.takeBatch(); err != nil {
			return err
		}
	}
	if a.walked && len(a.waiting) == 0 && a.t.Session.Unanswered() == 0 && !a.allKnown {
		a.allKnown = true
		a.known()
	}
	return nil
}

// takeBatch takes entries from the source, if there are any and not too many wait.
func (a *announcer) takeBatch() (taken bool, err error) {
	if len(a.waiting) >= fewWaiting {
		return false, nil
	}
	select {
	case entries, more := <-a.batches:
		if !more {
			a.batches, a.walked = nil, true
			a.t.Stats.Walked()
		}
		for i, e := range entries {
			if err := a.admit(e); err != nil {
				discard(entries[i:])
				return false, err
			}
		}
		return true, nil
	default:
		return false, nil
	}
}

// admit has an entry announced, unless it cannot be sent.
func (a *announcer) admit(e sourceEntry) error {
	if e.err != nil {
		return a.missing(e)
	}
	a.t.Stats.Found(e.size)
	if err := a.t.Params.CheckSize(a.t.Stats.BytesFound()); err != nil {
		return err
	}
	a.waiting = append(a.waiting, e)
	return nil
}

// missing counts an entry that the receiver does not learn of.
func (a *announcer) missing(e sourceEntry) error {
	if !a.t.Params.Tolerant() || e.path == "" { // without its root there is no tree
		return e.err
	}
	a.unannounced++
	a.t.Stats.Missing(e.path, e.kind, e.err)
	return nil
}

// announce sends one message with entries, and their extended attributes.
func (a *announcer) announce(ctx context.Context) (announced int, err error) {
	a.described = a.described[:0]
	for i := range a.waiting {
		held := a.waiting[i].heldAfterwards()
		if held > 0 && a.heldThere()+held > role.MaxAttributes {
			break // the receiver would fail it
		}
		a.described = append(a.described, a.waiting[i].described)
		if held > 0 {
			break // they come right after the entry
		}
	}
	if a.t.Session.Room() == 0 || len(a.described) == 0 {
		return 0, nil
	}
	message, used, err := a.t.Session.Entries(a.t.Message, a.described)
	if err != nil {
		return 0, err
	}
	for i := range used {
		a.announced(a.waiting[i].entry, &a.described[i])
	}
	if err := a.t.Link.Send(ctx, message); err != nil {
		return 0, err
	}
	last := a.waiting[used-1].entry
	a.waiting = a.waiting[:copy(a.waiting, a.waiting[used:])]
	if last.kind == wire.EntryFile {
		return used, nil // the receiver may not need them
	}
	return used, sendAttributes(ctx, a.t, last)
}

// heldThere returns how many bytes of extended attributes the receiver holds.
func (a *announcer) heldThere() (bytes int64) {
	for open := range a.t.Session.OpenEntries() {
		if e, is := open.Record.(*entry); is && !e.isDecided() {
			bytes += e.heldThere
		}
	}
	return bytes
}

// announced notes that an entry is being announced.
func (a *announcer) announced(e *entry, as *wire.Entry) {
	e.number, e.heldThere = as.Number, e.heldAfterwards()
	a.t.Session.Attach(e.number, e)
	logEntry(a.t.Params, e).Int64("bytes", e.size).Msg("entry planned")
	e.become(announced)
	a.directories.announced(e, as.Depth)
	a.t.Params.Config.Mirror.Announced(as.Kind, as.Depth, string(as.Name))
}

// sendAttributes sends the extended attributes of an entry.
func sendAttributes(ctx context.Context, t *role.Transfer, e *entry) error {
	most := native.MaxMetadataPart(t.Params.Config.Conn.MaxMessage())
	for offset, blob := 0, e.attributes; offset < len(blob); offset += most {
		message, err := t.Session.Metadata(t.Message, e.number, native.Metadata{
			Total: uint32(len(blob)), Offset: uint32(offset), Part: blob[offset:min(offset+most, len(blob))],
		})
		if err != nil {
			return err
		}
		if err := t.Link.Send(ctx, message); err != nil {
			return err
		}
	}
	e.dropAttributes()
	return nil
}

// close releases the source, and the entries that were not announced when the transfer has ended.
func (a *announcer) close() {
	if a.source != nil {
		a.source.close()
	}
	discard(a.waiting)
	select {
	case entries := <-a.batches:
		discard(entries)
	default:
	}
}
