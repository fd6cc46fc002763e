package native

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// announcer announces the entries of a sender, as many as the protocol permits. The owner of the transfer uses it.
type announcer struct {
	*common
	finder  *finder
	entries *sentEntries
	known   func() // is called when no file will be needed any more

	waiting     []sourceEntry // to be announced
	described   []negotiate.Entry
	walked      bool   // the source has come to its end
	allKnown    bool   // known has been called
	unannounced uint32 // entries of the source that cannot be sent
}

// found takes entries from the source.
func (a *announcer) found(ctx context.Context) error {
	entries := a.finder.take()
	for i, e := range entries {
		if err := a.admit(e); err != nil {
			a.waiting = append(a.waiting, entries[i:]...) // to be released
			return err
		}
	}
	return a.advance(ctx)
}

// admit has an entry announced, unless it cannot be sent.
func (a *announcer) admit(e sourceEntry) error {
	if e.err != nil {
		return a.missing(e)
	}
	a.account.found(e.size)
	if err := a.terms.checkSize(a.account.bytesFound()); err != nil {
		return err
	}
	a.waiting = append(a.waiting, e)
	return nil
}

// missing counts an entry that the receiver does not learn of.
func (a *announcer) missing(e sourceEntry) error {
	if !a.terms.tolerant() || e.path == "" { // without its root there is no tree
		return e.err
	}
	a.unannounced++
	a.account.missing(e.path, e.kind, e.err)
	return nil
}

func (a *announcer) walkEnded(ctx context.Context) error {
	a.walked = true
	a.account.walked()
	return a.advance(ctx)
}

// advance announces as many entries as the protocol permits, and calls known after the last answer for a file.
func (a *announcer) advance(ctx context.Context) error {
	for len(a.waiting) > 0 {
		announced, err := a.announce(ctx)
		if err != nil {
			return err
		}
		if announced == 0 {
			break
		}
	}
	if len(a.waiting) < fewWaiting && !a.walked {
		a.finder.resume()
	}
	if a.walked && len(a.waiting) == 0 && a.entries.unanswered == 0 && !a.allKnown {
		a.allKnown = true
		a.known()
	}
	return nil
}

// announce sends one message with entries, and their extended attributes.
func (a *announcer) announce(ctx context.Context) (announced int, err error) {
	a.described = a.described[:0]
	for i := range a.waiting {
		held := a.waiting[i].heldAfterwards()
		if a.entries.heldThere+held > maxAttributes {
			break // the receiver would fail it
		}
		a.described = append(a.described, a.waiting[i].described)
		if held > 0 {
			break // they come right after the entry
		}
	}
	if a.session.Room() == 0 || len(a.described) == 0 {
		return 0, nil
	}
	message, used, err := a.session.Entries(a.message, a.described)
	if err != nil {
		return 0, err
	}
	sent := a.waiting[:used]
	for i := range sent {
		e := &sent[i].described
		a.entries.add(sent[i].outgoing, e.Depth)
		a.terms.config.Mirror.Announced(e.Kind, e.Depth, string(e.Name))
	}
	if err := a.link.send(ctx, message); err != nil {
		return 0, err
	}
	last := sent[used-1].outgoing
	a.waiting = a.waiting[:copy(a.waiting, a.waiting[used:])]
	if last.kind == negotiate.EntryFile {
		return used, nil // the receiver may not need them
	}
	return used, a.sendAttributes(ctx, last)
}

func (a *announcer) sendAttributes(ctx context.Context, o *outgoing) error {
	most := negotiate.MaxMetadataPart(a.terms.config.Conn.MaxMessage())
	for offset, blob := 0, o.attributes; offset < len(blob); offset += most {
		message, err := a.session.Metadata(a.message, o.number, negotiate.Metadata{
			Total: uint32(len(blob)), Offset: uint32(offset), Part: blob[offset:min(offset+most, len(blob))],
		})
		if err != nil {
			return err
		}
		if err := a.link.send(ctx, message); err != nil {
			return err
		}
	}
	o.dropAttributes()
	return nil
}

// close releases the entries that were not announced when the transfer has ended.
func (a *announcer) close() {
	for _, e := range append(a.waiting, a.finder.take()...) {
		e.decide()
	}
}
