package native

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// outcomes decides the entries of a receiver, and tells the sender and the user. Any goroutine of the transfer calls
// it.
type outcomes struct {
	*common
	replies     *replies
	open        openEntries
	directories directories

	rootDecided atomic.Bool // the only file has its final name, or was there already
	changed     func()      // is called after an entry has been decided or a directory left
}

// acquire waits for permits that entries release when they are decided, and notes them in of, a field of this one. It
// reports false if the entry has been decided.
func (o *outcomes) acquire(
	ctx context.Context, e *arriving, from *weighted.Weighted, permits int64, of *int64,
) (undecided bool, err error) {
	if !from.TryAcquire(permits) {
		o.replies.hurry() // the sender has to know which files to send before
		if from.Acquire(ctx, permits) != nil {
			return false, context.Cause(ctx)
		}
	}
	return o.open.permit(e, from, permits, of), nil
}

// commit reports entries that have their final names.
func (o *outcomes) commit(entries ...*arriving) {
	if len(entries) == 0 {
		return
	}
	numbers := make([]uint32, 0, len(entries))
	claimed := make([]*arriving, 0, len(entries))
	for _, e := range entries {
		if o.open.claim(e) {
			numbers, claimed = append(numbers, e.number), append(claimed, e)
		}
	}
	o.replies.committed(numbers)
	for _, e := range claimed {
		if e.depth == 0 && e.kind == negotiate.EntryFile {
			o.rootDecided.Store(true)
		}
		o.decided(e, job.Copied, nil)
	}
}

// have answers that the target has an entry already.
func (o *outcomes) have(e *arriving) {
	if o.open.claim(e) {
		o.replies.answer(e, negotiate.Answer{Kind: negotiate.AnswerHave})
		o.decided(e, job.Unchanged, nil)
	}
}

// wouldNeed answers in a dry run that an entry would be needed, and why.
func (o *outcomes) wouldNeed(e *arriving, change negotiate.Change) {
	if o.open.claimNeeded(e) {
		e.change = change
		o.replies.answer(e, negotiate.Answer{Kind: negotiate.AnswerNeed, Change: change})
		o.decided(e, job.WouldCopy, nil)
	}
}

// keep answers that the target has something in place of an entry, which stays as it is. Hard links to a file that is
// not that of the sender are not made.
func (o *outcomes) keep(e *arriving) {
	if o.open.claimFailed(e) {
		o.replies.answer(e, negotiate.Answer{Kind: negotiate.AnswerExists})
		o.decided(e, job.Existing, nil)
	}
}

// fail reports an entry that has failed here, unless that ends the transfer.
func (o *outcomes) fail(e *arriving, err error) error {
	if _, ofFile := errors.AsType[*disk.Error](err); !ofFile || e.depth == 0 || !o.terms.tolerant() {
		return err
	}
	if o.open.claimFailed(e) {
		o.replies.failed(failure{e.number, err, false})
		o.abandonEntry(e, err)
		o.replies.hurry()
	}
	return nil
}

// withdrawn ends an entry that the sender could not send.
func (o *outcomes) withdrawn(e *arriving, err error) {
	if o.open.claimFailed(e) {
		o.abandonEntry(e, err)
	}
}

// abandonEntry ends a claimed entry that is not received, and removes what has been received of it as soon as no lane
// writes it any more.
func (o *outcomes) abandonEntry(e *arriving, err error) {
	end := func() {
		if t := e.opened(); t != nil {
			_ = settleTarget(o.terms, t, err) // the first error is the one that counts
		}
		o.decided(e, job.Failed, err)
	}
	if e.in == nil {
		end()
		return
	}
	e.in.Ignore(end)
}

// decided ends a claimed entry.
func (o *outcomes) decided(e *arriving, action job.Action, err error) {
	e.action = action
	o.debug(e).Err(err).Msg(decisions[action])
	links, in := o.open.decided(e, err != nil), e.directory
	if e.own != nil {
		e.own.Release()
	}
	if err == nil && o.terms.failsLate(e.kind) {
		o.account.decidedEntry() // it is reported when it is left
	} else {
		o.account.decided(job.FileDone{
			Path: e.path, Kind: e.kind, Bytes: e.size, Action: action, Change: e.change, Err: err,
		})
	}
	for _, l := range links {
		done, linkErr := job.Failed, errFileFailed(l)
		if err == nil && action != job.Existing {
			done, linkErr = o.hardLink(l)
		}
		if err := o.linked(l, done, linkErr); err != nil {
			o.link.post(failWith(err))
		}
	}
	if in != nil {
		o.leave(in)
	} else {
		o.changed()
	}
}

// leave removes one of what a directory waits for. After the last one it gets its final mode and times; then the one
// above it may be left.
func (o *outcomes) leave(d *directory) {
	for d != nil && o.directories.leave(d) {
		o.setAttributes(d)
		d.close()
		o.directories.closed(d)
		if d.parent == nil {
			o.changed()
		}
		d = d.parent
	}
}

// setAttributes gives a directory its final mode and times, and reports its outcome.
func (o *outcomes) setAttributes(d *directory) {
	if d.of == nil {
		return // nothing is written, or it has failed before; it has been reported
	}
	err := d.of.Leave(d.entry.meta)
	if d.unset != nil {
		err = d.unset
	}
	if err != nil {
		o.failLate(d.entry, err)
		return
	}
	o.account.report(job.FileDone{Path: d.entry.path, Kind: d.entry.kind, Action: d.entry.action})
}

// failLate reports a directory whose attributes cannot be set after its content has been received.
func (o *outcomes) failLate(e *arriving, err error) {
	if !o.terms.tolerant() {
		o.link.post(failWith(err))
		return
	}
	o.debug(e).Err(err).Msg(decisions[job.Failed])
	o.replies.failed(failure{e.number, err, true})
	o.open.failedLate()
	o.account.report(job.FileDone{Path: e.path, Kind: e.kind, Action: job.Failed, Err: err})
}

// makeLink makes a hard link, or would in a dry run, at once or when the file that it is another name of is decided. It
// fails with that file, in whose place the target may have another one.
func (o *outcomes) makeLink(l *arriving) error {
	waits, failed := o.open.awaitFile(l)
	switch {
	case waits:
		return nil
	case failed:
		return o.linked(l, job.Failed, errFileFailed(l))
	}
	action, err := o.hardLink(l)
	return o.linked(l, action, err)
}

// hardLink makes a hard link, or would make it in a dry run, and returns whether the target had it already. A file that
// is needed is replaced, and then what was another name of it is another file.
func (o *outcomes) hardLink(l *arriving) (job.Action, error) {
	in := l.directory.of
	switch {
	case o.terms.plan.DryRun && l.change == negotiate.ChangeNone && !o.open.neededFile(l.link):
		return job.Unchanged, nil
	case o.terms.plan.DryRun:
		return job.WouldCopy, nil
	case in.Fresh():
		return job.Copied, in.Link(l.name, l.link)
	}
	before, absent := in.Stat(l.name)
	if err := in.Link(l.name, l.link); err != nil {
		return job.Failed, err
	}
	if after, err := in.Stat(l.name); absent == nil && err == nil && after.SameFile(before.Identity) {
		return job.Unchanged, nil
	}
	return job.Copied, nil
}

// linked reports a hard link that has been made, or why it has not.
func (o *outcomes) linked(l *arriving, action job.Action, err error) error {
	if err != nil {
		l.change = negotiate.ChangeNone
		return o.fail(l, err)
	}
	switch action {
	case job.Unchanged:
		o.have(l)
	case job.WouldCopy:
		o.wouldNeed(l, cmp.Or(l.change, negotiate.ChangeContent))
	default:
		o.commit(l)
	}
	return nil
}

func errFileFailed(l *arriving) error {
	return disk.NewError(disk.ErrTarget, nil, "copy that file first, or leave links out of --preserve",
		"cannot create %s: it is another name of %s, which was not copied", l.path, l.link)
}
