package report

import (
	"errors"
	"os"
	"sync"

	"github.com/dma-copy/dma-copy/internal/background"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/phrase"
)

// Monitor feeds one reporter and remembers what explains a failure. Event may be called while it samples.
type Monitor struct {
	Progress job.Progress // of the copy, for dmaxfer.Options
	asked    Asked
	path     Path

	mu       sync.Mutex
	reporter Reporter // called with mu held while the copy runs
	native   bool
	planned  job.Planned
	kept     job.Kept // what a failed copy has left on this side
}

// Asked is what a copy was asked for that may have no effect.
type Asked struct {
	BeyondReference []string // flags that have none with a peer of the reference protocol
	Readback        bool
	List            bool // of paths to send
}

// NewMonitor returns the monitor of one copy.
func NewMonitor(to Reporter, asked Asked) *Monitor { return &Monitor{reporter: to, asked: asked} }

// Begin is called before the copy starts.
func (m *Monitor) Begin(path Path) {
	m.path = path
	m.reporter.Begin(path)
}

// Event is for dmaxfer.Options.Notify.
func (m *Monitor) Event(e job.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := e.(type) {
	case job.PeerKnown:
		m.native = e.Protocol == wire.Native
		m.reporter.Event(e)
		m.warnOfReference()
		return
	case job.Planned:
		m.planned = e
		m.reporter.Event(e)
		m.warnOfReadback()
		m.warnOfList()
		return
	case job.Kept:
		m.kept = e
		return
	case job.FileDone:
		e.Err = m.reasonOf(e.Err)
		m.reporter.Event(e)
		return
	}
	m.reporter.Event(e)
}

// reasonOf returns why an entry failed. In a local copy it does not matter which side has told the other.
func (m *Monitor) reasonOf(err error) error {
	if said, is := errors.AsType[*native.PeerAborted](err); is && m.path.Local {
		return exit.Errorf(int(said.Code), "", "%s", said.Text)
	}
	return err
}

// warnOfReference warns of settings that have no effect with a peer of the reference protocol.
func (m *Monitor) warnOfReference() {
	if missed := m.asked.BeyondReference; !m.native && len(missed) > 0 {
		verb := "have"
		if len(missed) == 1 {
			verb = "has"
		}
		text := "the copy uses the reference protocol, where " + phrase.And(missed) + " " + verb + " no effect"
		m.reporter.Event(job.Warned{Text: text})
	}
}

// warnOfReadback warns that a readback compares nothing without a digest. It takes both sides to disable the digest.
func (m *Monitor) warnOfReadback() {
	if m.native && m.asked.Readback && m.planned.Digest == digest.None {
		m.reporter.Event(job.Warned{
			Text: "--verify readback compares nothing, because no side computes a digest (--digest none)",
		})
	}
}

// warnOfList warns of a list of paths where this side sends no tree. Patterns may be the machine's defaults. A daemon
// that sends a tree has the list from here.
func (m *Monitor) warnOfList() {
	switch {
	case !m.asked.List || m.planned.Tree && (m.planned.Sent || m.planned.Compare || m.path.Remote != ""):
	case m.planned.Sent || m.path.Remote != "":
		m.reporter.Event(job.Warned{Text: "the source is a file, where --files-from has no effect"})
	default:
		m.reporter.Event(job.Warned{Text: "this side receives, where --files-from has no effect"})
	}
}

// Watch passes samples of the progress to the reporter at its interval, and with what the copy waits for whenever asked
// delivers a signal, until stop is called.
func (m *Monitor) Watch(asked <-chan os.Signal) (stop func()) {
	return background.Watch(m.reporter.Interval(), func() { m.sample(m.reporter.Progress) }, asked, func() {
		waits := m.Progress.Snapshots()
		m.sample(func(s job.Sample) { m.reporter.Asked(s, waits) })
	})
}

func (m *Monitor) sample(to func(job.Sample)) {
	sample := m.Progress.Sample()
	if m.path.Local {
		sample.Shares = sample.Shares.WithoutPeer()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	to(sample)
}

// Conclude reports the result of a copy that has ended with err on this side. It returns the error of the run, with
// what the copy has left behind.
func (m *Monitor) Conclude(s job.Summary, err error) error {
	if s.Tree != nil {
		for i := range s.Tree.Failures {
			s.Tree.Failures[i].Err = m.reasonOf(s.Tree.Failures[i].Err)
		}
	}
	if err == nil {
		return m.reporter.Result(s)
	}
	err = m.path.Wait.Explain(err)
	if moved := m.Progress.Sample(); m.path.Remote != "" && moved.Moved == 0 && moved.Files == 0 {
		err = unbegun{err}
	}
	failed := &SideError{
		Side: m.path.Side, Local: m.path.Local, Err: err,
		Kept: m.kept.Bytes, Lost: m.kept.Lost, Resumable: m.resumable(),
		Partly: m.planned.Tree && m.Progress.Sample().Files > 0, Undirected: !m.path.Local && m.path.Remote == "",
	}
	if s.Tree == nil || !errors.Is(err, job.ErrSomeFailed) {
		return failed
	}
	failed.Tree = s.Tree
	return errors.Join(failed, m.reporter.Result(s))
}

// resumable reports whether a copy that this side has sent a part of may be resumed, as far as this side knows. A local
// copy knows what it has kept.
func (m *Monitor) resumable() bool {
	sent := m.planned.Sent && !m.path.Local
	return m.native && sent && m.planned.Digest != digest.None && m.planned.Size != job.Unknown &&
		m.Progress.Sample().Moved > 0
}
