package native

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// steps is a link that does nothing by itself: a test makes the calls one after another.
type steps struct {
	jobs   []func() func() error
	posted []func() error
}

func (*steps) send(context.Context, []byte) error                  { return nil }
func (s *steps) run(call func() func() error)                      { s.jobs = append(s.jobs, call) }
func (s *steps) post(call func() error)                            { s.posted = append(s.posted, call) }
func (*steps) code(error) negotiate.AbortCode                      { return negotiate.AbortFailure }
func (*steps) poller() pump.Poller                                 { return nil }
func (*steps) pace() func(ctx context.Context, length int64) error { return nil }

// loneSender is a sender whose receiver is played by the test.
type loneSender struct {
	*sender
	t     *testing.T
	steps *steps
	files []job.FileDone // that were reported
}

// newLoneSender returns a sender of a tree that has agreed with a receiver and begun the transfer.
func newLoneSender(t *testing.T) *loneSender {
	t.Helper()
	return newLoneSenderOf(t, negotiate.FlagTree, &job.LocalFile{
		FS: disktest.NewMemory("/", "/src"), Name: "/src", Path: "/src", Directory: true,
	})
}

func newLoneSenderOf(t *testing.T, what negotiate.Flags, file *job.LocalFile) *loneSender {
	t.Helper()
	conn, _ := comchtest.NewPair(4096, comchtest.Faultless, comchtest.Faultless)
	l := &loneSender{t: t, steps: &steps{}}
	c := &Config{
		Side: negotiate.Host, Conn: conn, Progress: &job.Progress{}, Log: comchtest.LogOnFailure(t, "host"), File: file,
		Memory: &sharedMemory{},
		Notify: func(e job.Event) {
			if done, is := e.(job.FileDone); is {
				l.files = append(l.files, done)
			}
		},
	}
	hello := negotiate.Hello{Version: negotiate.Supported.Max, Chunk: 4096, Depth: 4, Flags: what}
	session, err := negotiate.NewNative(negotiate.Host, hello.Version, hello, negotiate.Limits{
		MaxMessage: 4096, MaxFileSize: 1 << 40,
	})
	must(t, err)
	session.Start()
	hello.Flags &= negotiate.FlagXAttr
	step, err := session.Receive(negotiate.AppendHello(nil, hello))
	must(t, err)
	agreed := &terms{config: c, plan: step.Plan}
	a := &account{terms: agreed}
	a.planned(hello)
	l.sender = newSender(&common{agreed, session, l.steps, a, make([]byte, 0, 4096)})
	must(t, l.begin(t.Context()))
	return l
}

// announces announces an entry; size is that of a file.
func (l *loneSender) announces(kind negotiate.EntryKind, depth int, name string, size int64) {
	l.t.Helper()
	o := &outgoing{kind: kind, path: name, size: size, packed: true}
	o.open = func() (*content, error) {
		return &content{source: openedFile(l.t, repeated(name, int(size))), close: func() {}}, nil
	}
	e := negotiate.Entry{Kind: kind, Depth: depth, Name: []byte(name), Size: uint64(size)}
	l.announcer.waiting = append(l.announcer.waiting, newSourceEntry(o, e))
	must(l.t, l.announcer.advance(l.t.Context()))
}

// receives has the sender take a message.
func (l *loneSender) receives(message []byte) {
	l.t.Helper()
	step, err := l.session.Receive(message)
	must(l.t, err)
	must(l.t, l.take(l.t.Context(), step))
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
	l.announces(negotiate.EntryDirectory, 0, "", 0)
	l.announces(negotiate.EntryFile, 1, "f", 100)
	l.receives(negotiate.AppendAnswers(nil, []negotiate.Answer{{Entry: 1, Kind: negotiate.AnswerSum}}))
	finish := l.steps.jobs[len(l.steps.jobs)-1]()
	l.receives(negotiate.AppendFailure(nil, negotiate.Failure{Entry: 1, Code: negotiate.AbortTarget, Text: "no"}))
	must(t, finish())
	if len(l.files) != 1 || l.files[0].Action != job.Failed {
		t.Errorf("reported %+v", l.files)
	}
}

// A directory that fails after its result is reported once, with its path, for as long as the sender remembers it.
// Other directories are reported when they cannot fail any more.
func TestDirectoriesThatFailLate(t *testing.T) {
	l := newLoneSender(t)
	l.announces(negotiate.EntryDirectory, 0, "", 0)
	l.receives(negotiate.AppendResults(nil, []uint32{0}))
	const more = 5
	for i := range uint32(maxSettling + more) {
		l.announces(negotiate.EntryDirectory, 1, fmt.Sprintf("d%06d", i), 0)
		l.receives(negotiate.AppendResults(nil, []uint32{i + 1}))
	}
	if got := len(l.files); got != more-1 { // the last one may still contain something
		t.Errorf("%d directories were reported", got)
	}
	for _, number := range []uint32{0, more + 1} {
		failure := negotiate.Failure{Entry: number, Code: negotiate.AbortTarget, Text: "no"}
		l.receives(negotiate.AppendFailure(nil, failure))
	}
	l.entries.settling.finish()
	reported := map[string]job.Action{}
	for _, f := range l.files {
		if _, twice := reported[f.Path]; twice {
			t.Errorf("%q was reported twice", f.Path)
		}
		reported[f.Path] = f.Action
	}
	if len(reported) != maxSettling+more+1 {
		t.Errorf("%d directories were reported", len(reported))
	}
	for path, action := range reported {
		late := path == "" || path == fmt.Sprintf("d%06d", more)
		if (action == job.Failed) != late {
			t.Errorf("%q was reported as %s", path, action)
		}
	}
	if s := l.account.result().Tree; s.Directories != maxSettling+more-1 || s.Failed != 2 {
		t.Errorf("%+v", s)
	}
}

// Files whose change time moves while they are read, and nothing else, are the same.
func TestSourceIsTouched(t *testing.T) {
	from, to := disktest.NewMemory("/", "/src"), newTarget()
	from.Put("/src/small", "content")
	from.Put("/src/large", strings.Repeat("content", 5000))
	from.Without(disktest.Lacking{Local: true})
	m := newMeeting(t, from, to)
	m.mustSucceed()
	from.Without(disktest.Lacking{})
	m.mustHaveSame()
}
