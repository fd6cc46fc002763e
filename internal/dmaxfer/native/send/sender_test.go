package send

import (
	"context"
	"fmt"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// loneSender is a sender whose receiver is played by the test.
type loneSender struct {
	*Sender
	t     *testing.T
	link  *roletest.Link
	files []job.FileDone // that were reported
}

// newLoneSender returns a sender of a tree that has agreed with a receiver and begun the transfer.
func newLoneSender(t *testing.T) *loneSender {
	t.Helper()
	return newLoneSenderOf(t, native.FlagTree, &job.LocalFile{
		FS: disktest.NewMemory("/", "/src"), Name: "/src", Path: "/src", Directory: true,
	})
}

func newLoneSenderOf(t *testing.T, what native.Flags, file *job.LocalFile) *loneSender {
	t.Helper()
	l := &loneSender{t: t, link: &roletest.Link{}}
	c := &role.Config{
		Options: role.Options{
			Side: wire.Host,
			Notify: func(e job.Event) {
				if done, is := e.(job.FileDone); is {
					l.files = append(l.files, done)
				}
			},
		},
		File: file,
	}
	own := native.Hello{Version: native.Supported.Max, Chunk: 4096, Depth: 4, Flags: what}
	peer := own
	peer.Flags &= native.FlagXAttr
	l.Sender = New(roletest.NewTransfer(t, c, own, peer, 4096, l.link))
	must(t, l.Begin(t.Context()))
	return l
}

// announces announces an entry; size is that of a file.
func (l *loneSender) announces(kind wire.EntryKind, depth int, name string, size int64) {
	l.t.Helper()
	e := &entry{kind: kind, path: name, size: size, packed: true}
	e.open = func(context.Context) (*content, error) {
		return &content{source: openedFile(l.t, roletest.Repeated(name, int(size))), close: func() {}}, nil
	}
	described := wire.Entry{Kind: kind, Depth: depth, Name: []byte(name), Size: uint64(size)}
	l.announcer.waiting = append(l.announcer.waiting, newSourceEntry(e, described))
	must(l.t, l.announcer.advance(l.t.Context()))
}

// receives has the sender take a message.
func (l *loneSender) receives(message []byte) {
	l.t.Helper()
	step, err := l.Sender.t.Session.Receive(message)
	must(l.t, err)
	must(l.t, l.Handle(l.t.Context(), step))
}

// openedFile returns an open file with that content.
func openedFile(t *testing.T, text string) *disk.Source {
	t.Helper()
	memory := disktest.NewMemory("/")
	memory.Put("/f", text)
	file, err := memory.Open("/f")
	must(t, err)
	info, err := file.Info()
	must(t, err)
	return disk.NewSource(file, info)
}

// A receiver may fail a file while the sender computes its digest, which is not wanted any more then.
func TestFileThatFailsDuringItsDigest(t *testing.T) {
	l := newLoneSender(t)
	l.announces(wire.EntryDirectory, 0, "", 0)
	l.announces(wire.EntryFile, 1, "f", 100)
	l.receives(native.AppendAnswers(nil, []native.Answer{{Entry: 1, Kind: native.AnswerSum}}))
	finish := l.link.Jobs[len(l.link.Jobs)-1]()
	l.receives(native.AppendFailure(nil, native.Failure{Entry: 1, Code: wire.AbortTarget, Text: "no"}))
	must(t, finish(t.Context()))
	if len(l.files) != 1 || l.files[0].Action != job.Failed {
		t.Errorf("reported %+v", l.files)
	}
}

// A directory that fails after its result is reported once, with its path, for as long as the sender remembers it.
// Other directories are reported when they cannot fail any more.
func TestDirectoriesThatFailLate(t *testing.T) {
	l := newLoneSender(t)
	l.announces(wire.EntryDirectory, 0, "", 0)
	l.receives(native.AppendResults(nil, []uint32{0}))
	const more = 5
	for i := range uint32(maxPast + more) {
		l.announces(wire.EntryDirectory, 1, fmt.Sprintf("d%06d", i), 0)
		l.receives(native.AppendResults(nil, []uint32{i + 1}))
	}
	if got := len(l.files); got != more-1 { // the last one may still contain something
		t.Errorf("%d directories were reported", got)
	}
	for _, number := range []uint32{0, more + 1} {
		failure := native.Failure{Entry: number, Code: wire.AbortTarget, Text: "no"}
		l.receives(native.AppendFailure(nil, failure))
	}
	l.directories.finish()
	reported := map[string]job.Action{}
	for _, f := range l.files {
		if _, twice := reported[f.Path]; twice {
			t.Errorf("%q was reported twice", f.Path)
		}
		reported[f.Path] = f.Action
	}
	if len(reported) != maxPast+more+1 {
		t.Errorf("%d directories were reported", len(reported))
	}
	for path, action := range reported {
		late := path == "" || path == fmt.Sprintf("d%06d", more)
		if (action == job.Failed) != late {
			t.Errorf("%q was reported as %s", path, action)
		}
	}
	if s := l.Sender.t.Stats.Result().Tree; s.Directories != maxPast+more-1 || s.Failed != 2 {
		t.Errorf("%+v", s)
	}
}
