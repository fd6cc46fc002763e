package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

const (
	// targetMode is the mode of a new target, less the umask, if the source's mode is not preserved.
	targetMode = 0o644

	// privateMode is the mode of a partial file: only its owner may read it.
	privateMode = 0o600
)

// Partial is a target before its final rename. ReadAt, WriteAt and Punch may be called concurrently for disjoint
// ranges; all other methods must be called alone. The package comment shows its states.
type Partial struct {
	fs       FS
	dir      Dir
	path     string // of the target
	base     string // last element of path
	want     Wanted
	replaced *uint32 // mode of the file that the target replaces; nil: none

	file        File
	placeholder File     // has the partial's name while file has none; nil: file has it
	opened      Identity // of the file with the partial's name; only device and inode are used
	writers     writers
	names       names
	locks       io.Closer // of directories; nil: a Tree has them
	journal     *journal  // nil: this transfer cannot be resumed
	renamed     string    // why the names are not the usual ones

	basis       File   // that is replaced, until Allocate has copied its content; nil: none is used
	resumed     int64  // bytes of an earlier transfer, or of the basis, that can be verified
	discarded   string // a sentence that says why an earlier transfer's file is not used
	because     wire.Discarded
	length      int64        // of the file between Allocate and Prepare; 0: as written
	written     atomic.Int64 // end of what was written or resumed
	flushed     Identity     // after Flush, when only Prepare may change the file; zero: not flushed
	sealed      Info         // after Prepare, when nothing may change the file
	lost        string       // why Keep kept nothing
	writeBehind *writeBehind // nil: not started
	closed      bool         // committed, kept or discarded

	// journalMu guards prefix, untrusted and the journal's content. Abandon needs them while another call may hang.
	journalMu sync.Mutex
	prefix    int64  // verified bytes
	untrusted string // why the file's content is not trusted
}

// Path returns the target's path, with followed symlinks replaced by their targets.
func (p *Partial) Path() string { return p.path }

// Resumable returns, after Allocate, how many bytes of an earlier transfer are in the file, and of the file that is
// replaced. They must be verified.
func (p *Partial) Resumable() int64 { return p.resumed }

// Discarded returns a sentence about an earlier transfer's file that is not used, and why; empty if there is none.
func (p *Partial) Discarded() string { return p.discarded }

// DiscardedBecause returns the reason that the sentence of Discarded gives; 0 if there is none, or Resumable is not 0.
func (p *Partial) DiscardedBecause() wire.Discarded {
	if p.resumed > 0 {
		return 0
	}
	return p.because
}

// Renamed returns a sentence that says why the partial file does not have the usual name; empty if it has.
func (p *Partial) Renamed() string { return p.renamed }

// Lost returns why Keep has kept nothing of the verified content, as the end of a sentence; empty if it has.
func (p *Partial) Lost() string { return p.lost }

// File returns the open file, for callers that map it.
func (p *Partial) File() File { return p.file }

// ReadAt fills buffer from offset.
func (p *Partial) ReadAt(buffer []byte, offset int64) error {
	n, err := p.file.ReadAt(buffer, offset)
	if n == len(buffer) {
		return nil
	}
	return NewError(ErrTarget, err, "check the disk, and copy again",
		"reading %s back failed at byte %d: %s", p.path, offset+int64(n), Reason(err))
}

// WriteAt writes all of buffer at offset.
func (p *Partial) WriteAt(buffer []byte, offset int64) error {
	if err := p.writers.writeAt(p.file, buffer, offset); err != nil {
		return p.failed("writing", err)
	}
	p.extendWritten(offset + int64(len(buffer)))
	return nil
}

// extendWritten raises written to the end of a write.
func (p *Partial) extendWritten(end int64) {
	for before := p.written.Load(); before < end && !p.written.CompareAndSwap(before, end); before = p.written.Load() {
	}
}

// Concurrent reports whether two lanes can write at the same time. Otherwise one of them waits.
func (p *Partial) Concurrent() bool { return p.writers.filler != nil }

// zeros is the content of holes; read-only.
var zeros [zerosSize]byte

// Punch makes a range of zeros: a hole if the target is sparse and the file system supports holes.
func (p *Partial) Punch(offset, length int64) error {
	if p.want.Sparse {
		err := p.file.PunchHole(offset, length)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return p.failed("punching a hole in", err)
		}
	}
	if err := p.fillWithZeros(offset, length); err != nil {
		return p.failed("writing", err)
	}
	p.extendWritten(offset + length)
	return nil
}

func (p *Partial) fillWithZeros(offset, length int64) error {
	for end := offset + length; offset < end; {
		n, err := p.file.WriteAt(zeros[:min(int64(len(zeros)), end-offset)], offset)
		if err != nil {
			return err
		}
		offset += int64(n)
	}
	return nil
}

// Advance records that all bytes below prefix are written and verified. It updates the journal every 16 MiB without
// flushing: a resumed transfer compares what the journal says with the source.
func (p *Partial) Advance(prefix int64) error {
	if prefix <= p.prefix {
		return nil
	}
	if err := p.checkWritten(prefix); err != nil {
		return err
	}
	if err := p.flushVerified(prefix); err != nil {
		return err
	}
	if err := p.recordPrefix(prefix); err != nil {
		return p.failed("writing the journal of", err)
	}
	return nil
}

// checkWritten checks that a file of unknown final size still has its verified bytes.
func (p *Partial) checkWritten(prefix int64) error {
	if p.want.Known {
		return nil
	}
	info, err := p.file.Info()
	if err != nil {
		return p.failed("examining", err)
	}
	if verified := min(prefix, p.written.Load()); info.Size < verified {
		return p.changed("it has %d bytes and not %d", info.Size, verified)
	}
	return nil
}

// recordPrefix writes the journal if enough bytes were verified since the last time.
func (p *Partial) recordPrefix(prefix int64) error {
	p.journalMu.Lock()
	defer p.journalMu.Unlock()
	p.prefix = prefix
	if p.journal == nil || prefix-p.journal.recorded < journalStep {
		return nil
	}
	return p.journal.write(prefix)
}

// flushVerified queues verified bytes for the write-behind, and waits if the disk is too far behind.
func (p *Partial) flushVerified(prefix int64) error {
	if !p.want.WriteBehind {
		return nil
	}
	if p.writeBehind == nil {
		p.writeBehind = newWriteBehind(p.file, p.prefix)
	}
	if err := p.writeBehind.add(prefix); err != nil {
		return p.flushFailed(err)
	}
	return nil
}

// stopFlushing ends the write-behind, if there is one. After a failure the content is not trusted.
func (p *Partial) stopFlushing() error {
	b := p.writeBehind
	if b == nil {
		return nil
	}
	p.writeBehind = nil
	err := b.stop()
	if err != nil {
		p.distrustFlushed()
	}
	return err
}

// failed returns the error of a call that was to change the target.
func (p *Partial) failed(doing string, err error) error { return callFailed(doing, p.path, err) }

// changed returns the error for a partial file that another process has changed, whose content is not trusted any
// more.
func (p *Partial) changed(how string, args ...any) error {
	p.distrust("another process changed the partial file")
	return NewError(ErrChanged, nil, "copy again when no other process writes to its directory",
		"another process changed the partial file of %s: %s", p.path, fmt.Sprintf(how, args...))
}

// flushFailed returns the error of a flush, after which the content is not trusted. The panic of a write-behind becomes
// one of the caller, which can recover from it.
func (p *Partial) flushFailed(err error) error {
	p.distrustFlushed()
	if panicked, is := errors.AsType[*flushPanic](err); is {
		panic(panicked)
	}
	return p.failed("flushing", err)
}

// distrustFlushed marks the content as not trusted: a second flush would succeed although the first one lost data.
func (p *Partial) distrustFlushed() { p.distrust("flushing it failed") }

// distrust records why the file's content is not trusted any more.
func (p *Partial) distrust(why string) {
	p.journalMu.Lock()
	defer p.journalMu.Unlock()
	p.untrusted = why
}

// Keep ends an interrupted transfer so that a later one can resume it. It returns the number of bytes kept. This is
// 0, and the file is removed, if nothing can be resumed or for the reason that Lost returns. After Commit, Keep or
// Discard it does nothing.
func (p *Partial) Keep() int64 {
	if p.closed {
		return 0
	}
	_ = p.stopFlushing() // a failure makes the content untrusted
	if p.journal == nil || p.prefix == 0 {
		p.Discard()
		return 0
	}
	if p.lost = p.reasonNotToKeep(); p.lost != "" {
		p.Discard()
		return 0
	}
	// Bytes beyond the prefix are not verified, and occupy space. A resumed transfer repeats both calls.
	_ = p.file.Truncate(p.prefix)
	_ = p.file.SetMode(privateMode)
	p.close()
	return p.prefix
}

// reasonNotToKeep returns an empty string if a later transfer will find the verified bytes under the names of file
// and journal.
func (p *Partial) reasonNotToKeep() string {
	if p.untrusted != "" {
		return p.untrusted
	}
	if named, err := p.isNamed(); err != nil || !named {
		return "the partial file was removed or replaced"
	}
	if info, err := p.file.Info(); err != nil || info.Size < p.prefix {
		return "the partial file was truncated by another process"
	}
	if owns, err := p.ownsJournal(); err != nil || !owns {
		return "the partial file's journal was removed or replaced"
	}
	if err := p.recordAll(); err != nil {
		return "writing the partial file's journal failed: " + Reason(err)
	}
	if err := p.takeBackOwner(); err != nil {
		return "setting the owner of the partial file failed: " + Reason(err)
	}
	return ""
}

// Abandon replaces Keep, or Discard if keep is false, while a call of ReadAt, WriteAt, Punch, Advance, Allocate,
// Flush or Prepare has not returned. It writes the journal or removes the names, and leaves the files open and
// locked, because that call may still use them. It returns the number of bytes kept, or 0 if that is unknown. It may
// hang itself. When the other calls have returned, Keep or Discard closes the files.
func (p *Partial) Abandon(keep bool) int64 {
	if !p.journalMu.TryLock() {
		return 0 // writing the journal hangs; it keeps its old content
	}
	defer p.journalMu.Unlock()
	if p.closed {
		return 0
	}
	if keep && p.journal != nil && p.prefix > 0 && p.reasonNotToKeep() == "" {
		return p.prefix
	}
	_ = p.removeJournal()
	_ = p.removeName()
	return 0
}

// takeBackOwner reverts the owner that Prepare may have set, because a transfer resumes only files of its own user.
func (p *Partial) takeBackOwner() error {
	if !p.want.Preserve.Owner {
		return nil
	}
	info, err := p.file.Info()
	if self := p.fs.Self(); err == nil && info.UID != self.UID {
		err = p.file.SetOwner(self.UID, info.GID)
	}
	return err
}

func (p *Partial) recordAll() error {
	if p.prefix <= p.journal.recorded {
		return nil
	}
	return p.journal.write(p.prefix)
}

// Discard removes the partial file and its journal, but nothing that has replaced them. After Commit, Keep or Discard
// it does nothing. It reports no errors, because an earlier one is already reported.
func (p *Partial) Discard() {
	if p.closed {
		return
	}
	_ = p.stopFlushing() // the content is not needed
	// The journal is removed first, while the lock on the file keeps other transfers from creating theirs.
	_ = p.removeJournal()
	_ = p.removeName()
	p.close()
}

// removeName removes the partial's name unless it leads to another file.
func (p *Partial) removeName() error {
	named, err := p.isNamed()
	if err != nil || !named && p.opened != (Identity{}) { // the identity of a new file may not be known yet
		return err
	}
	return p.dir.Remove(p.names.partial)
}

// isNamed reports whether the partial's name leads to the open file.
func (p *Partial) isNamed() (bool, error) {
	found, err := p.dir.Stat(p.names.partial)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, CannotCreate(p.path, err)
	}
	return p.opened.SameFile(found.Identity), nil
}

// removeJournal removes the journal unless it is another transfer's: once the partial file is renamed, another
// transfer to the same target may have created its own.
func (p *Partial) removeJournal() error {
	if p.journal == nil {
		return nil
	}
	owns, err := p.ownsJournal()
	if err == nil && owns {
		err = p.dir.Remove(p.names.journal)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ownsJournal reports whether the journal's name leads to the open journal.
func (p *Partial) ownsJournal() (bool, error) {
	opened, err := p.journal.file.Info()
	if err != nil {
		return false, err
	}
	found, err := p.dir.Stat(p.names.journal)
	return err == nil && opened.SameFile(found.Identity), err
}

// close closes all handles.
func (p *Partial) close() {
	p.closed = true
	p.writers.end()
	p.closeBasis()
	if p.journal != nil {
		_ = p.journal.file.Close() // its content need not be durable
	}
	if p.file != nil {
		_ = p.file.Close() // discarded, verified again when resumed, or closed before
	}
	if p.placeholder != nil {
		_ = p.placeholder.Close() // empty
	}
	_ = p.dir.Close() // opened for reading
	if p.locks != nil {
		_ = p.locks.Close() // they end with the process
	}
}
