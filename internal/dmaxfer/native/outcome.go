package native

import (
	"errors"
	"hash/maphash"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// This file is how the entries of a receiver end.

// commit reports entries that have their final names. Any goroutine of the transfer calls it.
func (r *receiver) commit(entries ...*arriving) { r.commitAs(job.Copied, entries...) }

// commitAs is commit for entries of which some were there before.
func (r *receiver) commitAs(action job.Action, entries ...*arriving) {
	if len(entries) == 0 {
		return
	}
	if action == job.Unchanged {
		for _, e := range entries {
			r.have(e)
		}
		return
	}
	numbers := make([]uint32, 0, len(entries))
	claimed := make([]*arriving, 0, len(entries))
	for _, e := range entries {
		if r.claim(e) {
			numbers, claimed = append(numbers, e.number), append(claimed, e)
		}
	}
	r.box.Add(pump.Reply{Other: numbers})
	for _, e := range claimed {
		if e.depth == 0 && e.kind == negotiate.EntryFile {
			r.setRoot(renamed)
		}
		r.decided(e, action, nil)
	}
}

// have answers that the target has an entry already.
func (r *receiver) have(e *arriving) {
	if r.claim(e) {
		r.box.Add(pump.Reply{Other: negotiate.Answer{Entry: e.number, Kind: negotiate.AnswerHave}})
		r.decided(e, job.Unchanged, nil)
	}
}

func (r *receiver) setRoot(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.root = o
}

// hurry has sent soon what there is for the peer.
func (r *receiver) hurry() {
	r.box.Flush()
	r.box.Call()
}

// fail reports an entry that has failed here, unless that ends the transfer. Any goroutine of the transfer calls it.
func (r *receiver) fail(e *arriving, err error) error {
	if _, ofFile := errors.AsType[*disk.Error](err); !ofFile || e.depth == 0 || !r.terms.tolerant() {
		return err
	}
	if r.claimFailed(e) {
		r.box.Add(pump.Reply{Other: failure{e.number, err, false}})
		r.abandonEntry(e, err)
		r.hurry()
	}
	return nil
}

// failOwner is fail for the owner of the transfer.
func (r *receiver) failOwner(e *arriving, err error) error {
	if err := r.fail(e, err); err != nil {
		return err
	}
	return r.flush(r.working)
}

// abandonEntry ends a claimed entry that is not received, and removes what has been received of it as soon as no lane
// writes it any more.
func (r *receiver) abandonEntry(e *arriving, err error) {
	if e.in == nil {
		r.decided(e, job.Failed, err)
		return
	}
	e.in.Ignore(func() {
		_ = r.settleTarget(e.target, err) // the first error is the one that counts
		r.decided(e, job.Failed, err)
	})
}

// entered notes that a directory is on the stack of the planner.
func (r *receiver) entered(d *directory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.pending++
	r.directories[d] = true
	if d.parent != nil {
		d.parent.pending++
	}
}

// leave removes one of what a directory waits for. After the last one it gets its final mode and times; then the one
// above it may be left.
func (r *receiver) leave(d *directory) {
	for d != nil {
		r.mu.Lock()
		d.pending--
		last := d.pending == 0
		r.mu.Unlock()
		if !last {
			return
		}
		r.setAttributes(d)
		d.close()
		r.mu.Lock()
		delete(r.directories, d)
		r.mu.Unlock()
		d = d.parent
	}
	r.checkComplete()
}

// setAttributes gives a directory its final mode and times, and reports its outcome.
func (r *receiver) setAttributes(d *directory) {
	if d.of == nil {
		return // nothing is written, or it has failed before; it has been reported
	}
	if err := d.of.Leave(d.entry.meta); err != nil {
		r.failLate(d.entry, err)
		return
	}
	r.account.report(job.FileDone{Path: d.entry.path, Kind: d.entry.kind, Action: d.entry.action})
}

// failure is an entry that has failed here.
type failure struct {
	entry uint32
	err   error
	late  bool // a directory that has been reported as committed
}

// failLate reports a directory whose attributes cannot be set after its content has been received.
func (r *receiver) failLate(e *arriving, err error) {
	if !r.terms.tolerant() {
		r.link.post(failWith(err))
		return
	}
	r.box.Add(pump.Reply{Other: failure{e.number, err, true}})
	r.mu.Lock()
	r.failed++
	r.mu.Unlock()
	r.account.report(job.FileDone{Path: e.path, Kind: e.kind, Action: job.Failed, Err: err})
}

// claim makes the caller the one that decides an entry. It then adds the reply for the peer, which may announce
// another entry in its place as soon as that has been sent, and calls decided.
func (r *receiver) claim(e *arriving) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claimLocked(e)
}

// claimFailed is claim for an entry that fails. A hard link that is announced later learns of it.
func (r *receiver) claimFailed(e *arriving) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.claimLocked(e) {
		return false
	}
	if r.terms.plan.Links && e.kind == negotiate.EntryFile {
		r.failedFiles.add(e.path)
	}
	return true
}

// claimLocked is claim for a caller that has locked r.mu.
func (r *receiver) claimLocked(e *arriving) bool {
	place := &r.table[e.number%negotiate.MaxOpen]
	if *place != e {
		return false
	}
	*place = nil
	return true
}

// decided ends a claimed entry.
func (r *receiver) decided(e *arriving, action job.Action, err error) {
	r.mu.Lock()
	r.open--
	if e.counted {
		r.needed--
	}
	if err != nil {
		r.failed++
	}
	links, in := e.links, e.directory
	e.action = action
	r.mu.Unlock()
	if err == nil && r.terms.failsLate(e.kind) {
		r.account.decidedEntry() // it is reported when it is left
	} else {
		r.account.decided(e.path, e.kind, e.size, action, err)
	}
	for _, l := range links {
		action, linkErr := job.Failed, errFileFailed(l)
		if err == nil {
			action, linkErr = hardLink(l)
		}
		if err := r.linked(l, action, linkErr); err != nil {
			r.link.post(failWith(err))
		}
	}
	if in != nil {
		r.leave(in)
	} else {
		r.checkComplete()
	}
}

// makeLink makes a hard link, at once or when the file that it is another name of is decided. It fails with that file,
// in whose place the target may have another one.
func (r *receiver) makeLink(l *arriving) error {
	waits, failed := r.awaitFile(l)
	switch {
	case waits:
		return nil
	case failed:
		return r.linked(l, job.Failed, errFileFailed(l))
	}
	action, err := hardLink(l)
	return r.linked(l, action, err)
}

// hardLink makes a hard link, and returns whether the target had it already.
func hardLink(l *arriving) (job.Action, error) {
	in := l.directory.of
	if in.Fresh() {
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

// awaitFile has a hard link wait for its file if that is undecided, and otherwise reports whether the file has failed.
func (r *receiver) awaitFile(l *arriving) (waits, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.table {
		if e != nil && e.kind == negotiate.EntryFile && e.path == l.link {
			e.links = append(e.links, l)
			return true, false
		}
	}
	return false, r.failedFiles.has(l.link)
}

// linked reports a hard link that has been made, or why it has not.
func (r *receiver) linked(l *arriving, action job.Action, err error) error {
	if err != nil {
		return r.fail(l, err)
	}
	r.commitAs(action, l)
	return nil
}

func errFileFailed(l *arriving) error {
	return disk.NewError(disk.ErrTarget, nil, "see the failure of that file",
		"cannot create %s: it is another name of %s, which failed", l.path, l.link)
}

// failedPaths is a set of paths that takes little memory, however long they are and however many there are. It may have
// a path that was not added, but that is as unlikely as a collision of 64-bit hashes, unless there are more than
// maxFailedPaths; then it has all.
type failedPaths struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newFailedPaths() failedPaths {
	return failedPaths{seed: maphash.MakeSeed(), hashes: make(map[uint64]struct{})}
}

func (f *failedPaths) add(path string) {
	if len(f.hashes) <= maxFailedPaths {
		f.hashes[maphash.String(f.seed, path)] = struct{}{}
	}
}

func (f *failedPaths) has(path string) bool {
	_, has := f.hashes[maphash.String(f.seed, path)]
	return has || len(f.hashes) > maxFailedPaths
}
