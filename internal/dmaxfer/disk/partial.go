package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// targetMode is less the umask what a new target gets where its source's mode is not kept.
	targetMode = 0o644

	// privateMode is what a target has until it is whole: nobody but its owner may read it.
	privateMode = 0o600

	// lookingTime is how long somebody who only looks at partial files may hold one's lock.
	lockRetryDelay = 50 * time.Millisecond
)

// Partial is a target that has not got its name yet. ReadAt, WriteAt and Punch may be called concurrently, with ranges that do not
// overlap; other methods exclude each other and those.
type Partial struct {
	fs       FS
	dir      Dir
	path     string // of the target
	base     string
	want     Wanted
	replaced *uint32 // mode of what the target replaces; nil: nothing

	file        File
	placeholder File     // has the partial's name while the file has none; nil: the file has it
	opened      Identity // of what has the partial's name; only device and inode stay
	writers     writers
	name        string
	journal     *journal // nil: nothing of this copy can be resumed
	journalName string
	backupName  string
	linkName    string // of a file without a name that is about to replace the target
	renamed     string // why these names are not the usual ones

	resumed     int64        // what an earlier copy left that can be verified
	discarded   string       // why something that it left cannot
	length      int64        // of the file from Allocate to Prepare; 0: as far as was written
	written     atomic.Int64 // end of what was written or resumed
	flushed     Identity     // of the file after Flush, from which on it only changes by Prepare; zero: not flushed
	sealed      Info         // of the file, after all that this copy does to it
	lost        string       // why nothing is kept of what was verified
	writeBehind *writeBehind // nil unless it has begun
	closed      bool         // committed, kept or discarded; the handles are closed

	// noting guards prefix, doubtful and the journal's content, which Abandon needs while another call may hang.
	journalMu sync.Mutex
	prefix    int64  // verified
	untrusted string // why what the file holds is not trusted
}

// Path is the target's, with the symlinks that were followed in place of their names.
func (p *Partial) Path() string { return p.path }

// Resumable is how many bytes an earlier copy verified and left here. They are to be verified again.
func (p *Partial) Resumable() int64 { return p.resumed }

// Discarded says, in one sentence, what an earlier copy left that is not used, and why; empty if there is nothing to say.
func (p *Partial) Discarded() string { return p.discarded }

// Renamed says, in one sentence, why the partial file has another name than usual; empty if it has not.
func (p *Partial) Renamed() string { return p.renamed }

// Lost says, as the end of a sentence, why Keep has kept nothing of what was verified; empty if there is nothing to
// say.
func (p *Partial) Lost() string { return p.lost }

// File is the open file, for those who map it.
func (p *Partial) File() File { return p.file }

// ReadAt fills buffer from offset.
func (p *Partial) ReadAt(buffer []byte, offset int64) error {
	n, err := p.file.ReadAt(buffer, offset)
	if n == len(buffer) {
		return nil
	}
	return failure(ErrTarget, err, "check the disk, and copy again",
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

// wrote notes where a write has ended.
func (p *Partial) extendWritten(end int64) {
	for before := p.written.Load(); before < end && !p.written.CompareAndSwap(before, end); before = p.written.Load() {
	}
}

// Concurrent tells whether two can write at once. Otherwise one of them waits.
func (p *Partial) Concurrent() bool { return p.writers.filler != nil }

// zeros is what a hole reads as.
var zeros [1 << 20]byte

// Punch makes a range of zeros: a hole if the target is to be sparse and the file system can.
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

// Advance says that all bytes before prefix are written and verified. The journal hears of it every now and then, without a
// flush: what it claims is compared with the source before it is used, so it may be ahead of the disk.
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

// checkWritten looks whether a file of which the size is not known beforehand still has what was verified of it.
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

// note writes the journal when enough has been verified since it was written last.
func (p *Partial) recordPrefix(prefix int64) error {
	p.journalMu.Lock()
	defer p.journalMu.Unlock()
	p.prefix = prefix
	if p.journal == nil || prefix-p.journal.recorded < journalStep {
		return nil
	}
	return p.journal.write(prefix)
}

// handOver has what is verified flushed, and waits if the disk is too far behind.
func (p *Partial) flushVerified(prefix int64) error {
	if !p.want.WriteBehind {
		return nil
	}
	if p.writeBehind == nil {
		p.writeBehind = newWriteBehind(p.file, p.resumed)
	}
	if err := p.writeBehind.add(prefix); err != nil {
		return p.flushFailed(err)
	}
	return nil
}

// stopFlushing ends what handOver has begun.
func (p *Partial) stopFlushing() error {
	if p.writeBehind == nil {
		return nil
	}
	err := p.writeBehind.stop()
	p.writeBehind = nil
	if err != nil {
		return p.flushFailed(err)
	}
	return nil
}

// failed returns the error of a call that was to change the target.
func (p *Partial) failed(doing string, err error) error {
	return failure(kindOfWrite(err), err, afterFailedWrite(err), "%s %s failed: %s", doing, p.path, Reason(err))
}

// changed is the failure of a partial file that another process has changed. What it holds is not trusted any
// more.
func (p *Partial) changed(how string, args ...any) error {
	p.distrust("another process changed the partial file")
	return failure(ErrChanged, nil, "copy again when no other process writes to its directory",
		"another process changed the partial file of %s: %s", p.path, fmt.Sprintf(how, args...))
}

// flushFailed remembers it: a second flush would report success for what the first has lost.
func (p *Partial) flushFailed(err error) error {
	p.distrust("flushing it failed")
	return p.failed("flushing", err)
}

// doubt remembers why what the file holds is not trusted any more.
func (p *Partial) distrust(why string) {
	p.journalMu.Lock()
	defer p.journalMu.Unlock()
	p.untrusted = why
}

// Keep ends an interrupted copy so that a later one can go on where it stopped. It returns how many bytes are kept:
// none, and no file either, if there is nothing that could be resumed, or for the reason that Lost gives. After Commit,
// Keep or Discard it does nothing.
func (p *Partial) Keep() int64 {
	if p.closed {
		return 0
	}
	_ = p.stopFlushing() // a failure makes the content doubtful
	if p.journal == nil || p.prefix == 0 {
		p.Discard()
		return 0
	}
	if p.lost = p.reasonNotToKeep(); p.lost != "" {
		p.Discard()
		return 0
	}
	// What is beyond is not verified, and its room is of use to others. A resumed copy does both again.
	_ = p.file.Truncate(p.prefix)
	_ = p.file.SetMode(privateMode)
	p.close()
	return p.prefix
}

// whyLost is empty if a later copy will find what is verified, under the names of its file and of its journal.
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

// Abandon stands in for Keep, or for Discard if keep is false, while a call to ReadAt, WriteAt, Punch, Advance,
// Allocate, Flush or Prepare has not returned. It writes the journal or removes the two names, and leaves the files
// open and locked, since that call may still use them. It returns how many bytes are kept; 0 if that is not known, or
// none are. It may itself hang. Once the other calls have returned, Keep or Discard closes the files.
func (p *Partial) Abandon(keep bool) int64 {
	if !p.journalMu.TryLock() {
		return 0 // the journal is what hangs, and keeps what it holds
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

// reclaim takes the owner back that Prepare may have given the file: who resumes uses only files of its own.
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

// Discard removes what there is of the target, and nothing that has taken its place. After Commit, Keep or Discard it
// does nothing. The first failure is the one that is reported, so its own are not.
func (p *Partial) Discard() {
	if p.closed {
		return
	}
	_ = p.stopFlushing() // nobody wants the content
	// The journal goes first, while the lock on the other keeps others from making theirs.
	_ = p.removeJournal()
	_ = p.removeName()
	p.close()
}

// removeName removes what has the partial's name, unless another file has taken its place.
func (p *Partial) removeName() error {
	named, err := p.isNamed()
	if err != nil || !named && p.opened != (Identity{}) { // which is not known yet of one that was just made
		return err
	}
	return p.dir.Remove(p.name)
}

// isNamed reports whether the partial's name leads to the file that is open.
func (p *Partial) isNamed() (bool, error) {
	found, err := p.dir.Stat(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, CannotCreate(p.path, err)
	}
	return p.opened.SameFile(found.Identity), nil
}

// removeJournal leaves alone what is not this copy's: once the partial has got its name, another copy may have made its own.
func (p *Partial) removeJournal() error {
	if p.journal == nil {
		return nil
	}
	owns, err := p.ownsJournal()
	if err == nil && owns {
		err = p.dir.Remove(p.journalName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ownsJournal reports whether the journal's name still leads to the one that is open.
func (p *Partial) ownsJournal() (bool, error) {
	opened, err := p.journal.file.Info()
	if err != nil {
		return false, err
	}
	found, err := p.dir.Stat(p.journalName)
	return err == nil && opened.SameFile(found.Identity), err
}

// release closes whatever is open.
func (p *Partial) close() {
	p.closed = true
	p.writers.end()
	if p.journal != nil {
		_ = p.journal.file.Close() // nothing depends on it
	}
	if p.file != nil {
		_ = p.file.Close() // its content is not wanted, is verified when the copy is resumed, or was closed before
	}
	if p.placeholder != nil {
		_ = p.placeholder.Close() // is empty
	}
	_ = p.dir.Close() // is only read
}
