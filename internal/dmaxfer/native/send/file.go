package send

import (
	"context"
	"fmt"
	"io"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// This file is the life of a file that is sent in chunks, from the receiver's answer to its result:
//
//	answered ─┬─ sum ─► sendSum ─► answered
//	          └─ need ─► feed ─► openFile ─► nextChunk ... chunkRead ─► end ─► sendEnd ─► Sender.decide

// answered follows the receiver's answer for an entry, which may be a file or not.
func (s *Sender) answered(ctx context.Context, a native.Answer) error {
	e := s.record(a.Entry)
	switch {
	case a.Kind == native.AnswerHave:
		s.removeLeftovers(ctx)
		e.change = a.Change
		s.decide(e, job.ActionOfHave(a.Change, s.t.Params.Plan.DryRun), nil)
	case a.Kind == native.AnswerExists:
		s.decide(e, job.Existing, nil)
	case a.Kind == native.AnswerSum:
		logEntry(s.t.Params, e).Msg("entry compared")
		s.sendSum(ctx, e)
	case s.t.Params.Plan.DryRun:
		e.change = a.Change
		s.decide(e, job.WouldCopy, nil)
	default:
		return s.needed(ctx, e, a)
	}
	return nil
}

// needed has the content of a file sent, or the rest of it.
func (s *Sender) needed(ctx context.Context, e *entry, a native.Answer) error {
	e.resume = int64(a.Offset)
	e.become(needed)
	role.LogNeeded(logEntry(s.t.Params, e), e.resume)
	s.t.Stats.Begins(e.size, e.resume)
	if a.Discarded != 0 && !s.t.Params.Config.Local { // otherwise the receiver tells the same user
		s.t.Stats.Notify(job.Warned{Text: fmt.Sprintf(
			"sending all of %s: the %s does not use what an interrupted copy has left of it: %s",
			e.path, s.t.Params.Config.Side.Other(), a.Discarded)})
	}
	if err := sendAttributes(ctx, s.t, e); err != nil {
		return err
	}
	s.feed.add(e)
	s.wake()
	return nil
}

// sendSum computes and sends the digest of a file, which the receiver then answers again.
func (s *Sender) sendSum(ctx context.Context, e *entry) {
	s.digests.Add(ctx, func(ctx context.Context) role.Call {
		sum, expected, err := sumOf(ctx, s.t.Params, e)
		if err == nil {
			err = checkContent(s.t, e.size, expected)
		}
		return func(ctx context.Context) error {
			if err != nil || e.isDecided() { // the receiver may have failed it meanwhile
				return s.cannotSend(e, err)
			}
			message, err := s.t.Session.Sum(s.t.Message, e.number, sum.Bytes())
			if err != nil {
				return err
			}
			return s.t.Link.Send(ctx, message)
		}
	})
}

// nextChunk reads the next chunk of the current file. Several lanes may do so for the same file.
func (f *feed) nextChunk(ctx context.Context, e *entry, buffer []byte, unit *pump.Unit) (filled bool, err error) {
	if !e.acquire() {
		f.leave(e)
		return false, nil
	}
	if err := f.openFile(ctx, e); err != nil {
		return false, f.giveUp(e, err)
	}
	chunk, err := e.reader.Next(buffer)
	if err == io.EOF {
		f.leave(e)
		return false, f.chunkRead(ctx, e, true, nil)
	}
	if err != nil {
		return false, f.giveUp(e, err)
	}
	unit.SetChunk(e.number, chunk)
	unit.Ref = e
	return true, nil
}

// openFile opens a file before its first chunk. The caller has acquired it.
func (f *feed) openFile(ctx context.Context, e *entry) error {
	f.opening <- struct{}{}
	defer func() { <-f.opening }()
	if e.reader != nil {
		return nil
	}
	c, err := e.open(ctx)
	if err != nil {
		return err
	}
	p := f.t.Params
	if c.source != nil && p.Plan.Tree { // a single file was checked before
		if err := p.CheckHoles(c.source, e.path); err != nil {
			c.close()
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.content, e.ledger = c, digest.NewLedger(p.Plan.Digest, int(p.Plan.Depth))
	if c.stream != nil {
		e.reader = pump.NewStreamReader(c.stream)
	} else {
		e.reader = pump.NewFileReader(c.source, e.resume, p.Holes())
	}
	return nil
}

// giveUp goes on without a file that cannot be sent.
func (f *feed) giveUp(e *entry, err error) error {
	f.leave(e)
	e.giveUp()
	return f.cannotSend(e, err)
}

// chunkRead notes that a chunk has been added to the ledger by add, or that the reader has come to its end. After the
// last of both it announces the end of the file.
func (f *feed) chunkRead(ctx context.Context, e *entry, ended bool, add func(*digest.Ledger) error) error {
	last, err := e.chunkRead(ended, add)
	if err != nil || !last {
		return err
	}
	defer e.release()
	if err := f.end(ctx, e); err != nil {
		return f.cannotSend(e, err)
	}
	return nil
}

// end announces the end of a file that was sent in chunks, and has not changed.
func (f *feed) end(ctx context.Context, e *entry) error {
	size, sum := e.ledger.Prefix(), e.ledger.Sum()
	if e.content.source != nil && !f.t.Params.Plan.AllowChanging {
		if err := verifySource(ctx, f.t.Params, e.content.source, sum); err != nil {
			return err
		}
	}
	if err := checkContent(f.t, size, sum); err != nil {
		return err
	}
	f.box.Add(pump.Announcement{End: &pump.End{Entry: e.number, Size: size, Sum: sum}})
	f.box.Flush()
	return nil
}

// checkContent notes what has been read of the only file, and compares it with what the user allows.
func checkContent(t *role.Transfer, size int64, sum digest.Sum) error {
	if t.Params.Plan.Tree {
		return nil
	}
	t.Stats.Content(size, sum)
	return t.Params.CheckContent(size, sum)
}

// sendEnd sends the end of a file. The receiver commits it when it has all of the content.
func (t *transmitter) sendEnd(ctx context.Context, end *pump.End) error {
	e, _ := t.of.Session.Record(end.Entry).(*entry)
	if e == nil || e.isDecided() {
		return nil
	}
	if err := t.sendChunks(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message, err := t.of.Session.End(t.of.Message, end.Entry, uint64(end.Size), end.Sum.Bytes())
	if err != nil {
		return err
	}
	t.ended = true
	return t.sendWhole(ctx, message, e)
}
