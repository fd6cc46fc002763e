package receive

import (
	"errors"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// results decides entries, and tells the sender and the user. Any goroutine of the transfer calls it.
type results struct {
	t           *role.Transfer
	replies     *replies
	limits      *limits
	links       *links
	directories *directories
	rootDecided atomic.Bool // the only file has its final name, or was there already
}

// log begins a line about an entry.
func (r *results) log(e *entry) *zerolog.Event { return r.t.Params.LogEntry(e.number, e.path, e.kind) }

// commit reports entries that have their final names.
func (r *results) commit(entries ...*entry) {
	if len(entries) == 0 {
		return
	}
	numbers := make([]uint32, 0, len(entries))
	claimed := make([]*entry, 0, len(entries))
	for _, e := range entries {
		if r.links.claim(e, made) {
			numbers, claimed = append(numbers, e.number), append(claimed, e)
		}
	}
	r.replies.committed(numbers)
	for _, e := range claimed {
		if e.depth == 0 && e.kind == wire.EntryFile {
			r.rootDecided.Store(true)
		}
		r.t.Stats.Reused(e.resume - e.refused)
		r.decided(e, job.Copied, nil)
	}
}

// have answers that the target has an entry already, of a file whose attributes were set with the one that differed.
func (r *results) have(e *entry) {
	if r.links.claim(e, made) {
		r.replies.answer(e, native.Answer{Kind: native.AnswerHave, Change: e.change})
		r.decided(e, job.ActionOfHave(e.change, r.t.Params.Plan.DryRun), nil)
	}
}

// wouldNeed answers in a dry run that an entry would be needed, and why.
func (r *results) wouldNeed(e *entry, change native.Change) {
	if r.links.claim(e, wouldBeMade) {
		e.change = change
		r.replies.answer(e, native.Answer{Kind: native.AnswerNeed, Change: change})
		r.decided(e, job.WouldCopy, nil)
	}
}

// keep answers that the target has something at the path of an entry, which stays as it is. Hard links to a file that
// is not the sender's are not made.
func (r *results) keep(e *entry) {
	if r.links.claim(e, notMade) {
		r.replies.answer(e, native.Answer{Kind: native.AnswerExists})
		r.decided(e, job.Existing, nil)
	}
}

// fail reports an entry that has failed here, unless that ends the transfer.
func (r *results) fail(e *entry, err error) error {
	if _, ofFile := errors.AsType[*disk.Error](err); !ofFile || e.depth == 0 || !r.t.Params.Tolerant() {
		return err
	}
	if r.links.claim(e, notMade) {
		r.replies.failed(failure{e.number, err, false})
		r.remove(e, err)
		r.replies.requestFlush()
	}
	return nil
}

// withdrawn ends an entry that the sender could not send.
func (r *results) withdrawn(e *entry, err error) {
	if r.links.claim(e, notMade) {
		r.remove(e, err)
	}
}

// remove removes what has been received of a claimed entry as soon as no lane writes it any more, and ends the entry.
func (r *results) remove(e *entry, err error) {
	end := func() {
		if t := e.opened(); t != nil {
			_ = endTarget(r.t.Params, t, err) // the first error is the one that counts
		}
		r.decided(e, job.Failed, err)
	}
	if e.in == nil {
		end()
		return
	}
	e.in.Ignore(end)
}

// decided ends a claimed entry.
func (r *results) decided(e *entry, action job.Action, err error) {
	e.action = action
	if action == job.Copied || action == job.Failed {
		e.change = native.ChangeNone
	}
	r.limits.release(e)
	if e.own != nil {
		e.own.Release()
	}
	r.t.Stats.Decided(e.number, job.FileDone{
		Path: e.path, Kind: e.kind, Bytes: e.size, Action: action, Change: e.change, Err: err,
	})
	for _, l := range e.waiting {
		done, linkErr := job.Failed, r.errFileFailed(l)
		if err == nil && action != job.Existing {
			done, linkErr = r.hardLink(l)
		}
		if err := r.linked(l, done, linkErr); err != nil {
			r.t.Link.Post(role.FailWith(err))
		}
	}
	if e.directory != nil {
		r.directories.leave(e.directory)
	}
}
