package receive

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// loneReceiver is a receiver of a tree with extended attributes, whose sender is played by the test.
type loneReceiver struct {
	*Receiver
	t         *testing.T
	memory    *disktest.Memory
	link      *roletest.Link
	sender    *native.Session
	announced []*entry

	// What the receiver has sent.
	needed   []uint32
	created  []uint32
	failures map[uint32]string
}

// newLoneReceiver returns a receiver that has entered the root. Its planner runs until the test's bubble ends.
func newLoneReceiver(t *testing.T) *loneReceiver {
	t.Helper()
	const maxMessage = 2 * native.MaxMetadata
	l := &loneReceiver{t: t, memory: disktest.NewMemory("/", "/dst"), failures: make(map[uint32]string)}
	l.link = &roletest.Link{Sent: l.sent}
	c := &role.Config{
		Options: role.Options{Side: wire.DPU, Notify: func(job.Event) {}},
		File:    &job.LocalFile{FS: l.memory, Name: "/dst/t", Path: "/dst/t", Directory: true},
	}
	own := native.Hello{Version: native.Supported.Max, Chunk: 4096, Depth: 4, Flags: native.FlagXAttr}
	peer := own
	peer.Flags |= native.FlagTree
	l.Receiver = New(roletest.NewTransfer(t, c, own, peer, maxMessage, l.link))
	must(t, l.Begin(t.Context()))
	go l.link.Jobs[0]()
	var err error
	l.sender, err = native.New(wire.Host, peer.Version, peer, wire.Limits{MaxMessage: maxMessage, MaxFileSize: 1 << 40})
	must(t, err)
	l.sender.Start()
	_, err = l.sender.Receive(native.AppendHello(nil, own))
	must(t, err)
	begin, err := l.sender.Transfer(nil)
	must(t, err)
	must(t, l.receives(begin))
	l.announces(wire.Entry{Kind: wire.EntryDirectory})
	return l
}

// sent notes a message of the receiver.
func (l *loneReceiver) sent(message []byte) error {
	switch wire.Type(message[0]) {
	case wire.TypeAnswers:
		answers, err := native.DecodeAnswers(nil, message)
		for _, a := range answers {
			if a.Kind == native.AnswerNeed {
				l.needed = append(l.needed, a.Entry)
			}
		}
		return err
	case wire.TypeResults:
		results, err := native.DecodeResults(nil, message)
		l.created = append(l.created, results...)
		return err
	case wire.TypeFailure:
		failure, err := native.DecodeFailure(message)
		l.failures[failure.Entry] = failure.Text
		return err
	}
	return nil
}

// ends closes the receiver.
func (l *loneReceiver) ends() {
	l.t.Helper()
	if !l.finisher.finishing {
		close(l.planner.queue)
	}
	synctest.Wait()
	_, err := l.Close(nil)
	must(l.t, err)
	if got := l.memory.Handles(); got != 0 {
		l.t.Errorf("%d files and directories are open", got)
	}
}

// receives has the receiver take a message, and send what follows from it.
func (l *loneReceiver) receives(message []byte) error {
	l.t.Helper()
	step, err := l.Receiver.t.Session.Receive(message)
	must(l.t, err)
	if err := l.Handle(l.t.Context(), step); err != nil {
		return err
	}
	synctest.Wait()
	return l.Flush(l.t.Context())
}

// announces announces an entry. One with extended attributes remains in announced.
func (l *loneReceiver) announces(e wire.Entry) (number uint32) {
	l.t.Helper()
	message, _, err := l.sender.Entries(nil, []wire.Entry{e})
	must(l.t, err)
	must(l.t, l.receives(message))
	number = uint32(len(l.announced))
	l.announced = append(l.announced, l.Receiver.t.Session.Record(number).(*entry))
	return number
}

// announcesMany announces entries of the root with extended attributes.
func (l *loneReceiver) announcesMany(kind wire.EntryKind, prefix string, count int) (numbers []uint32) {
	l.t.Helper()
	for i := range count {
		e := wire.Entry{
			Kind: kind, Depth: 1, Flags: wire.EntryHasMetadata, Mode: 0o700,
			Name: fmt.Appendf(nil, "%s%03d", prefix, i),
		}
		if kind == wire.EntrySymlink {
			e.Link = []byte("text")
		}
		numbers = append(numbers, l.announces(e))
	}
	return numbers
}

// sendsAttributes sends extended attributes of entries, each the same.
func (l *loneReceiver) sendsAttributes(numbers []uint32, blob []byte) {
	l.t.Helper()
	for _, number := range numbers {
		must(l.t, l.receives(native.AppendMetadata(nil, number, native.Metadata{
			Total: uint32(len(blob)), Part: blob,
		})))
	}
	if got := l.heldBytes(); got > 2*role.MaxAttributes {
		l.t.Errorf("%d bytes of extended attributes are held", got)
	}
}

// withdraws fails entries on the sender.
func (l *loneReceiver) withdraws(numbers []uint32) {
	l.t.Helper()
	for _, number := range numbers {
		must(l.t, l.receives(native.AppendFailure(nil, native.Failure{
			Entry: number, Code: wire.AbortSource, Text: "unreadable",
		})))
	}
}

// heldBytes returns how many bytes of extended attributes the undecided entries and the open directories have.
func (l *loneReceiver) heldBytes() (bytes int) {
	for _, e := range l.announced {
		bytes += cap(e.attributes)
		if e.meta.Xattrs == nil {
			continue
		}
		for attribute := range e.meta.Xattrs {
			bytes += len(attribute.Name) + len(attribute.Value)
		}
	}
	return bytes
}

// mustHoldNothing fails the test unless the whole limit is available again.
func (l *loneReceiver) mustHoldNothing() {
	l.t.Helper()
	if got := l.heldBytes(); got != 0 {
		l.t.Errorf("%d bytes of extended attributes are held", got)
	}
	for name, permits := range map[string]*weighted.Weighted{
		"files": l.results.limits.fileAttributes, "others": l.results.limits.otherAttributes,
	} {
		if !permits.TryAcquire(role.MaxAttributes) {
			l.t.Errorf("permits of %s were not released", name)
		}
	}
}

// atLimit is how many entries may have the largest extended attributes.
const atLimit = role.MaxAttributes / native.MaxMetadata

// A receiver needs no more files at once than it can hold the extended attributes of. It needs others as soon as the
// sender has said that they are smaller, or the files are decided.
func TestAttributesOfNeededFilesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoneReceiver(t)
		files := l.announcesMany(wire.EntryFile, "f", 3*atLimit)
		mustNeed := func(count int) {
			t.Helper()
			if got := len(l.needed); got != count {
				t.Fatalf("%d files are needed, want %d", got, count)
			}
		}
		mustNeed(atLimit)
		l.sendsAttributes(files[:atLimit-1], roletest.Blob(native.MaxMetadata))
		mustNeed(atLimit)
		l.sendsAttributes(files[atLimit-1:atLimit], roletest.Blob(100))
		mustNeed(atLimit) // a file may have more than what was released
		l.withdraws(files[:1])
		mustNeed(atLimit + 1)
		l.withdraws(files[1:3])
		mustNeed(atLimit + 3)
		l.withdraws(files[3:])
		for _, e := range l.announced {
			if !e.isDecided() {
				t.Errorf("%s is undecided", e.path)
			}
		}
		l.mustHoldNothing()
		l.ends()
	})
}

// A directory or symlink fails alone whose extended attributes would exceed the limit. This side holds them until the
// planner comes to the entry, which waits here for files.
func TestAttributesOfOtherEntriesAreBounded(t *testing.T) {
	const more = 5
	synctest.Test(t, func(t *testing.T) {
		l := newLoneReceiver(t)
		files := l.announcesMany(wire.EntryFile, "a", atLimit+1)
		others := l.announcesMany(wire.EntryDirectory, "d", atLimit/2+more)
		l.sendsAttributes(others, roletest.Blob(native.MaxMetadata))
		symlinks := l.announcesMany(wire.EntrySymlink, "l", atLimit/2+more)
		l.sendsAttributes(symlinks, roletest.Blob(native.MaxMetadata))
		others = append(others, symlinks...)
		if got := len(l.created); got != 1 {
			t.Errorf("%d entries were created, want the root", got)
		}
		l.withdraws(files)
		if got := len(l.created); got != 1+atLimit {
			t.Errorf("%d entries were created", got)
		}
		if got := slices.Sorted(maps.Keys(l.failures)); !slices.Equal(got, others[atLimit:]) {
			t.Errorf("%d failed, want %d", got, others[atLimit:])
		}
		for _, text := range l.failures {
			if !strings.Contains(text, "cannot create l0") || !strings.Contains(text, "exceed 16 MiB") {
				t.Errorf("failed with %q", text)
			}
		}
		l.mustHoldNothing()
		l.ends()
	})
}

// A directory does not hold its extended attributes while it is filled.
func TestOpenDirectoriesHoldNoAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoneReceiver(t)
		for i := range 2 * atLimit {
			number := l.announces(wire.Entry{
				Kind: wire.EntryDirectory, Depth: i + 1, Flags: wire.EntryHasMetadata, Mode: 0o700,
				Name: []byte("d"),
			})
			l.sendsAttributes([]uint32{number}, roletest.Blob(native.MaxMetadata))
		}
		if len(l.planner.stack) != 2*atLimit+1 || len(l.failures) != 0 {
			t.Errorf("%d directories are open, failed: %v", len(l.planner.stack), l.failures)
		}
		l.mustHoldNothing()
		l.ends()
	})
}

// Malformed extended attributes end the transfer when they arrive, for whatever they are.
func TestMalformedAttributesAreRefusedOnArrival(t *testing.T) {
	for _, kind := range []wire.EntryKind{
		wire.EntryFile, wire.EntryDirectory, wire.EntrySymlink,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLoneReceiver(t)
			number := l.announcesMany(kind, "e", 1)[0]
			blob := roletest.Attribute(6, 2, "user.av")
			err := l.receives(native.AppendMetadata(nil, number, native.Metadata{
				Total: uint32(len(blob)), Part: blob,
			}))
			mustBe(t, err, wire.ErrMalformed)
			l.ends()
		})
	}
}

// Permits for the extended attributes of a file that has been decided meanwhile are not kept.
func TestPermitsOfADecidedFile(t *testing.T) {
	l, e := newLimits(nil, 1), &entry{kind: wire.EntryFile}
	if !l.fileAttributes.TryAcquire(native.MaxMetadata) || !e.decide() {
		t.Fatal("the entry was decided")
	}
	if e.keepPermits(l.fileAttributes, native.MaxMetadata, &e.attributed) {
		t.Error("a decided entry keeps permits")
	}
	l.release(e)
	if !l.fileAttributes.TryAcquire(role.MaxAttributes) {
		t.Error("permits were not released")
	}
}
