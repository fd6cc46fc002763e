package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// party is one side of a meeting.
type party struct {
	search  job.Search
	config  role.Config
	files   []job.FileDone
	events  []job.Event
	summary job.Summary
	err     error

	interruptAt int // entries after which the user interrupts; 0: never
	interrupt   context.CancelCauseFunc
}

// errInterrupted is the cause of an interruption.
var errInterrupted = errors.New("interrupted")

func (p *party) notify(e job.Event) {
	if done, is := e.(job.FileDone); is {
		p.files = append(p.files, done)
		if len(p.files) == p.interruptAt {
			p.interrupt(errInterrupted)
		}
	}
	p.events = append(p.events, e)
}

// actions returns what became of the entries by path, for example "copied". The root has the path ".".
func (p *party) actions() map[string]string {
	actions := make(map[string]string)
	for _, f := range p.files {
		path := f.Path
		if path == "" {
			path = "."
		}
		if actions[path] != "" {
			actions[path] += ", "
		}
		actions[path] += f.Action.String()
	}
	return actions
}

// meeting is a transfer between two sides in this process. The sender is the host unless dpuSends.
type meeting struct {
	t                *testing.T
	from, to         *disktest.Memory
	sender, receiver *party
	dpuSends         bool
	late             bool                 // the DPU opens the window when nothing else happens any more
	corrupted        int                  // copies of the DPU that arrive with a wrong byte, of the first ones
	ended            func()               // is called when both sides have ended; may be nil
	alter            func(message []byte) // may change a message on its way; may be nil

	// memory returns the device of a side. If nil, there is none.
	memory func(of wire.Side) window.Memory
	closed atomic.Int64 // windows of the DPU, without memory

	mu       sync.Mutex
	messages map[wire.Type]int
	answers  []protocol.Answer // of the receiver
	failures []protocol.Failure
}

// newMeeting prepares the transfer of /src to /dst/t, each in a file system of its own.
func newMeeting(t *testing.T, from, to *disktest.Memory) *meeting {
	m := &meeting{
		t: t, from: from, to: to, sender: &party{}, receiver: &party{}, messages: make(map[wire.Type]int),
	}
	for side, p := range map[string]*party{"sender": m.sender, "receiver": m.receiver} {
		p.config = role.Config{
			Options: role.Options{
				Digest: digest.CRC32C, Chunk: 4096, Depth: 4, IdleTimeout: 10 * time.Second,
				Log: comchtest.LogOnFailure(t, side), Notify: p.notify,
			},
		}
	}
	m.sender.search = job.Search{FS: from, Path: "/src", IdleTimeout: time.Second}
	m.receiver.search = job.Search{FS: to, Path: "/dst/t", IdleTimeout: time.Second}
	return m
}

// newTarget returns a file system in which /dst/t can be created.
func newTarget() *disktest.Memory { return disktest.NewMemory("/", "/dst") }

// run transfers, in virtual time. Both sides must have closed everything in the end.
func (m *meeting) run() {
	m.t.Helper()
	synctest.Test(m.t, m.meet)
	for side, memory := range map[string]*disktest.Memory{"sender": m.from, "receiver": m.to} {
		if got := memory.Handles(); got != 0 {
			m.t.Errorf("%d files and directories of the %s are open", got, side)
		}
	}
}

func (m *meeting) meet(t *testing.T) {
	const maxMessage = 4096
	host, dpu := comchtest.NewPair(maxMessage, comchtest.Faultless, comchtest.Faultless)
	shared := &sharedMemory{late: m.late, closed: &m.closed}
	shared.corrupted.Store(int64(m.corrupted))
	ends, parties := [2]*comchtest.End{host, dpu}, [2]*party{m.sender, m.receiver}
	if m.dpuSends {
		parties = [2]*party{m.receiver, m.sender}
	}
	var sides sync.WaitGroup
	for i, side := range []wire.Side{wire.Host, wire.DPU} {
		p := parties[i]
		file, err := job.Find(t.Context(), p.search)
		must(t, err)
		defer file.Close()
		p.config.Side, p.config.Memory, p.config.File = side, shared, file
		p.config.Paths = job.PathsOf(wire.PathDMA)
		if m.memory != nil {
			p.config.Memory = m.memory(side)
		}
		p.config.Conn = &tapped{End: ends[i], meeting: m}
		session, err := protocol.New(side, protocol.Supported.Max, p.config.Hello(), wire.Limits{
			MaxMessage: maxMessage, MaxFileSize: 1 << 40,
		})
		must(t, err)
		ctx, interrupt := context.WithCancelCause(t.Context())
		defer interrupt(nil)
		p.interrupt = interrupt
		sides.Go(func() {
			result, err := Run(ctx, p.config, session, 0)
			p.summary, p.err = result.Summary, err
			_ = ends[i].Close() // cannot fail
		})
	}
	sides.Wait()
	if m.ended != nil {
		m.ended()
	}
}

// mustSucceed runs the transfer, and fails the test unless both sides report the same success.
func (m *meeting) mustSucceed() {
	m.t.Helper()
	m.run()
	if m.sender.err != nil || m.receiver.err != nil {
		m.t.Fatalf("sender: %v\nreceiver: %v", m.sender.err, m.receiver.err)
	}
	m.mustAgree()
}

// mustFailInPart runs the transfer, and fails the test unless both sides report that exactly these entries failed.
func (m *meeting) mustFailInPart(paths ...string) {
	m.t.Helper()
	m.run()
	mustBe(m.t, m.sender.err, job.ErrSomeFailed)
	mustBe(m.t, m.receiver.err, job.ErrSomeFailed)
	m.mustAgree()
	for side, p := range map[string]*party{"sender": m.sender, "receiver": m.receiver} {
		var failed []string
		for path, action := range p.actions() {
			if action == job.Failed.String() {
				failed = append(failed, path)
			}
		}
		slices.Sort(failed)
		if !slices.Equal(failed, paths) {
			m.t.Errorf("failed on the %s: %q, want %q", side, failed, paths)
		}
	}
}

// mustAgree fails the test unless both sides count the same, and report each entry once.
func (m *meeting) mustAgree() {
	m.t.Helper()
	for side, p := range map[string]*party{"sender": m.sender, "receiver": m.receiver} {
		for path, actions := range p.actions() {
			if strings.Contains(actions, ",") {
				m.t.Errorf("the %s reports %s as %s", side, path, actions)
			}
		}
	}
	if m.sender.summary.Tree == nil || m.receiver.summary.Tree == nil {
		if m.sender.summary.Sum != m.receiver.summary.Sum || m.sender.summary.Size != m.receiver.summary.Size {
			m.t.Errorf("summaries:\n%+v\n%+v", m.sender.summary, m.receiver.summary)
		}
		return
	}
	counts := [2]string{}
	for i, p := range []*party{m.sender, m.receiver} {
		s := *p.summary.Tree
		s.Failures, s.Unreadable = nil, 0 // only one side knows them
		counts[i] = fmt.Sprintf("%+v", s)
	}
	if counts[0] != counts[1] {
		m.t.Errorf("counts:\n%s\n%s", counts[0], counts[1])
	}
}

// mustHaveSame fails the test unless the target has what the source has.
func (m *meeting) mustHaveSame() {
	m.t.Helper()
	mustBeSame(m.t, describeTree(m.t, m.to, "/dst/t"), describeTree(m.t, m.from, "/src"))
}

func mustBeSame(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("%s is\n%.200s, want\n%.200s", path, got[path], want[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if want[path] == "" {
			t.Errorf("%s is %.200s, want nothing", path, got[path])
		}
	}
}

// tapped is an end of a connection that records what is sent.
type tapped struct {
	*comchtest.End
	meeting *meeting
}

// Send implements comch.Conn.
func (c *tapped) Send(ctx context.Context, message []byte) error {
	c.meeting.record(message)
	if c.meeting.alter != nil {
		c.meeting.alter(message)
	}
	return c.End.Send(ctx, message)
}

// sent reports whether a message of this type has been sent by either side.
func (m *meeting) sent(kind wire.Type) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.messages[kind] > 0
}

func (m *meeting) record(message []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind := wire.Type(message[0])
	m.messages[kind]++
	switch kind {
	case wire.TypeAnswers:
		m.answers, _ = protocol.DecodeAnswers(m.answers, message)
	case wire.TypeFailure:
		failure, _ := protocol.DecodeFailure(message)
		m.failures = append(m.failures, failure)
	}
}

// sharedMemory is the Memory of both sides of a meeting.
type sharedMemory struct {
	late      bool
	corrupted atomic.Int64 // copies that arrive with a wrong byte, of the next ones
	window    []byte
	closed    *atomic.Int64 // windows that were opened and are closed again
}

// Close implements io.Closer for the windows that were opened.
func (s *sharedMemory) Close() error {
	s.closed.Add(1)
	return nil
}

// Paths implements Memory.
func (*sharedMemory) Paths(job.PathChoice) (job.Paths, error) {
	return job.PathsOf(wire.PathDMA), nil
}

// Check implements Memory.
func (*sharedMemory) Check(int64, int) error { return nil }

// Traits implements Memory.
func (*sharedMemory) Traits(job.Paths) window.Traits { return window.Traits{} }

// Expose implements Memory.
func (s *sharedMemory) Expose(_ context.Context, l window.Layout) (*window.Window, error) {
	s.window = make([]byte, l.Length())
	w := window.NewHostWindow(l, s.window)
	w.Address, w.Descriptor = 4096, []byte("window")
	return w, nil
}

// Open implements Memory. Its engines copy with the CPU.
func (s *sharedMemory) Open(_ context.Context, l window.Layout, _ protocol.Window) (*window.Window, error) {
	if s.late {
		time.Sleep(time.Second) // virtual
	}
	w, own := &window.Window{}, make([]byte, l.Length())
	w.AddCloser(s)
	if l.Sends {
		w.Slots = pump.NewSlots(own, l.Chunk)
	}
	for range l.Lanes {
		if l.Sends {
			w.Engines = append(w.Engines, s.engine(own, s.window, l.Depth, l.Digest))
			continue
		}
		buffers := make([]byte, int64(l.Buffers)*l.Chunk)
		w.Buffers = append(w.Buffers, pump.NewSlots(buffers, l.Chunk))
		w.Engines = append(w.Engines, s.engine(s.window, buffers, l.Buffers, l.Digest))
	}
	return w, nil
}

// engine returns an engine of the DPU.
func (s *sharedMemory) engine(from, to []byte, depth int, a digest.Algorithm) pump.Engine {
	return &corruptingEngine{Copier: pump.NewCopier(from, to, depth, a), to: to, left: &s.corrupted}
}

// corruptingEngine changes a byte of its copies on the way as long as some of those left are to be corrupted. All
// engines of a side count the same ones: which engine gets a unit is chance.
type corruptingEngine struct {
	*pump.Copier
	to   []byte
	left *atomic.Int64
}

// Submit implements pump.Engine.
func (e *corruptingEngine) Submit(moves []pump.Move) (int, error) {
	if e.left.Add(-1) < 0 {
		return e.Copier.Submit(moves)
	}
	only := moves[0]
	only.Plain = true // the lane computes the checksum
	n, err := e.Copier.Submit([]pump.Move{only})
	if n > 0 {
		e.to[only.Buffer] ^= 1
	}
	return n, err
}

// describeTree returns a sentence about each entry of a directory by its path, and about the directory as ".".
func describeTree(t *testing.T, memory *disktest.Memory, root string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	dir, err := memory.OpenDir(root)
	must(t, err)
	describeInto(t, found, memory, dir, root, ".")
	return found
}

// describeInto closes dir.
func describeInto(t *testing.T, into map[string]string, memory *disktest.Memory, dir disk.Dir, at, path string) {
	t.Helper()
	info, err := dir.Info()
	must(t, err)
	xattrs, err := dir.Xattrs()
	must(t, err)
	into[path] = fmt.Sprintf("directory %s %v %q", info.Mode.Perm(), info.Modified, xattrs)
	names, err := disk.Names(dir)
	must(t, err)
	for _, name := range names {
		info, err := dir.Stat(name)
		must(t, err)
		below := filepath.Join(path, name)
		switch {
		case info.Mode.IsDir():
			child, err := dir.OpenBeneath(name)
			must(t, err)
			describeInto(t, into, memory, child, filepath.Join(at, name), below)
		case info.Mode&fs.ModeSymlink != 0:
			link, err := dir.ReadLink(name)
			must(t, err)
			into[below] = fmt.Sprintf("symlink to %s %v", link.Text, info.Modified)
		default:
			text, _ := memory.Get(filepath.Join(at, name))
			into[below] = fmt.Sprintf("file %s %v %d links %s", info.Mode.Perm(), info.Modified, info.Links, text)
		}
	}
	must(t, dir.Close())
}

// change applies changes to the file or directory of this name in a directory.
func change(t *testing.T, memory *disktest.Memory, path string, with func(f attributed) error) {
	t.Helper()
	self := memory.Self()
	memory.SetSelf(disk.Self{UID: 0}) // regardless of its mode
	defer memory.SetSelf(self)
	dir, err := memory.OpenDir(filepath.Dir(path))
	must(t, err)
	info, err := dir.Stat(filepath.Base(path))
	must(t, err)
	if info.Mode.IsDir() {
		child, err := dir.OpenBeneath(filepath.Base(path))
		must(t, err)
		must(t, errors.Join(with(child), child.Close(), dir.Close()))
		return
	}
	file, err := dir.Open(filepath.Base(path), false)
	must(t, err)
	must(t, errors.Join(with(file), file.Close(), dir.Close()))
}

// attributed is a file or a directory.
type attributed interface {
	SetMode(permissions uint32) error
	SetModified(at disk.Timestamp) error
	SetXattr(attribute disk.Xattr) error
}

// setAttributes gives a file or directory a mode and a modification time in seconds.
func setAttributes(t *testing.T, memory *disktest.Memory, path string, mode uint32, seconds int64) {
	t.Helper()
	change(t, memory, path, func(f attributed) error {
		return errors.Join(f.SetModified(disk.Timestamp{Sec: seconds, Nsec: 7}), f.SetMode(mode))
	})
}
