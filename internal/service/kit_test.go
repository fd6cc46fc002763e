//go:build cgo

package service

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
)

// bus has the windows that the two sides of a connection share, in the memory of this process. It is the window.Memory
// of both.
type bus struct {
	mu      sync.Mutex
	windows [][]byte // the descriptor is an index
}

// Paths implements window.Memory.
func (*bus) Paths(job.PathChoice) (job.Paths, error) { return job.PathsOf(wire.PathDMA), nil }

// Check implements window.Memory.
func (*bus) Check(int64, int) error { return nil }

// Traits implements window.Memory.
func (*bus) Traits(job.Paths) window.Traits { return window.Traits{} }

// Expose implements window.Memory.
func (b *bus) Expose(_ context.Context, l window.Layout) (*window.Window, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	slots := make([]byte, l.Length())
	w := window.NewHostWindow(l, slots)
	w.Address, w.Descriptor = 4096, []byte{byte(len(b.windows))}
	b.windows = append(b.windows, slots)
	return w, nil
}

// Open implements window.Memory. Its engines copy with the CPU.
func (b *bus) Open(_ context.Context, l window.Layout, of native.Window) (*window.Window, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, own, peers := &window.Window{}, make([]byte, l.Length()), b.windows[of.Descriptor[0]]
	if l.Sends {
		w.Slots = pump.NewSlots(own, l.Chunk)
	}
	for range l.Lanes {
		from, to, depth := own, peers, l.Depth
		if !l.Sends {
			from, to, depth = peers, make([]byte, int64(l.Buffers)*l.Chunk), l.Buffers
			w.Buffers = append(w.Buffers, pump.NewSlots(to, l.Chunk))
		}
		w.Engines = append(w.Engines, pump.NewCopier(from, to, depth, l.Digest))
	}
	return w, nil
}

// trust is a Trust that the test can change.
type trust map[identity.Public]identity.Grant

// Find implements Trust.
func (t trust) Find(key identity.Public) (identity.Grant, bool) {
	g, found := t[key]
	return g, found
}

// All implements Trust.
func (t trust) All() (all []identity.Grant) {
	for _, g := range t {
		all = append(all, g)
	}
	return all
}

// observed is an Observer that keeps what it is told.
type observed struct {
	mu     sync.Mutex
	ended  []Record
	events []string
	bugs   []any
}

func (o *observed) note(event string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, event)
}

func (o *observed) Connected(Session)                 { o.note("connected") }
func (o *observed) Authenticated(s Session)           { o.note("authenticated " + s.KeyName) }
func (o *observed) Refused(_ Session, _ int, _ error) { o.note("refused") }
func (o *observed) Disconnected(Session, error)       { o.note("disconnected") }
func (o *observed) Began(r Record)                    { o.note("began " + string(r.Operation)) }

func (o *observed) Ended(r Record) {
	o.note("ended " + string(r.Operation))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = append(o.ended, r)
}

func (o *observed) Bug(_ Session, value any, _ []byte) {
	o.note("bug")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bugs = append(o.bugs, value)
}

// records returns those of the requests that have ended, when nothing more happens.
func (w *world) records() []Record {
	synctest.Wait()
	w.observed.mu.Lock()
	defer w.observed.mu.Unlock()
	return slices.Clone(w.observed.ended)
}

// happened reports whether the observer was told of an event, when nothing more happens.
func (w *world) happened(event string) bool {
	synctest.Wait()
	w.observed.mu.Lock()
	defer w.observed.mu.Unlock()
	return slices.Contains(w.observed.events, event)
}

// world is a server on the DPU with clients on the host, each with a disk in memory, in virtual time.
type world struct {
	*testing.T
	sides    docatest.Sides
	config   ServerConfig
	trusted  trust
	key      *identity.Key // of the client called "alice"
	observed *observed
	log      zerolog.Logger                 // of the commands
	remote   *disktest.Memory               // of the server: /srv/box is the share "box", /srv/in "in", and so on
	local    *disktest.Memory               // of the clients: /home
	fault    atomic.Pointer[disktest.Fault] // of every operation of the server's disk; nil: none
	left     map[string]int                 // handles that stay open, by whose disk it is; nil: none
	faulty   string                         // name of the only file with the fault; empty: all

	server  *Server
	serving sync.WaitGroup
	cancel  context.CancelFunc
	ctx     context.Context // of Serve
}

const testMessage = 4096

// errStopped is the cause of the end of a drain.
var errStopped = error(exit.Interrupted{Signal: syscall.SIGTERM})

// inWorld runs a test in virtual time, with a server that alter has configured. At its end nothing is left open.
func inWorld(t *testing.T, alter func(*world), test func(*world)) {
	t.Helper()
	w := newWorld(t)
	if alter != nil {
		alter(w)
	}
	synctest.Test(t, func(t *testing.T) {
		w.T = t
		w.start()
		defer w.stop()
		test(w)
	})
	for name, disk := range map[string]*disktest.Memory{"server": w.remote, "clients": w.local} {
		if got := disk.Handles(); got != w.left[name] {
			t.Errorf("%d files and directories of the %s are open", got, name)
		}
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, docatest.OpenSides(t, ""))
}

// newWorldWith is newWorld with devices that are open already, or without any.
func newWorldWith(t *testing.T, sides docatest.Sides) *world {
	t.Helper()
	alice, daemonLog := newKey(t), comchtest.LogOnFailure(t, "daemon")
	w := &world{
		T: t, sides: sides, key: alice, observed: &observed{}, log: comchtest.LogOnFailure(t, "command"),
		remote: disktest.NewMemory("/", "/srv", "/srv/box", "/srv/in", "/srv/out", "/srv/keep"),
		local:  disktest.NewMemory("/", "/home"),
	}
	w.trusted = trust{alice.Public(): {Name: "alice", Key: alice.Public()}}
	w.config = ServerConfig{
		Key: newKey(t), Trust: w.trusted, FS: disktest.NewFaulty(w.remote, w.plan), Name: "dpu7", User: "svc",
		Text:     "hello",
		Observer: w.observed, Log: daemonLog,
		Shares: []share.Share{
			{Name: "box", Path: "/srv/box", Access: share.ReadWrite},
			{Name: "in", Path: "/srv/in", Access: share.Write},
			{Name: "out", Path: "/srv/out", Access: share.Read},
			{Name: "keep", Path: "/srv/keep", Access: share.ReadWrite, NoOverwrite: true, MaxBytes: 5},
		},
		Copy: dmaxfer.Options{
			Options: role.Options{Chunk: 4096, Depth: 4, Digest: digest.CRC32C, Software: "test 1", Log: daemonLog},
			Path:    job.OnlyDMA,
		},
	}
	return w
}

// errPanic is the error of a fault that is a panic instead.
var errPanic = errors.New("panic")

// plan is that of the server's disk.
func (w *world) plan(_ int, op, name string) *disktest.Fault {
	fault := w.fault.Load()
	if op == "close" || fault == nil || w.faulty != "" && name != w.faulty {
		return nil
	}
	if fault.Err == errPanic {
		panic(errPanic)
	}
	return fault
}

func newKey(t *testing.T) *identity.Key {
	t.Helper()
	key, err := identity.Generate()
	must(t, err)
	return key
}

// start starts the server. It is called in the bubble.
func (w *world) start() {
	var err error
	w.server, err = NewServer(w.config)
	must(w.T, err)
	w.ctx, w.cancel = context.WithCancel(context.Background())
}

// stop ends the server and everything that is connected to it.
func (w *world) stop() {
	w.cancel()
	w.serving.Wait()
}

// dial returns a raw connection that the server serves.
func (w *world) dial(function string) (raw *comch.PipeEnd, shared *bus) {
	host, dpu := comch.Pipe(testMessage)
	shared = &bus{}
	w.serving.Go(func() {
		_ = w.server.Serve(w.ctx, Incoming{
			Conn: dpu, Memory: fixed(shared), Function: function, Side: wire.DPU,
		})
	})
	return host, shared
}

// fixed returns a function for the memory that does not depend on the peer.
func fixed(m window.Memory) func(*secure.Conn) window.Memory {
	return func(*secure.Conn) window.Memory { return m }
}

// connect connects a client with a key.
func (w *world) connect(key *identity.Key) (*Client, error) { return w.connectAs(key, "b1:00.1") }

func (w *world) connectAs(key *identity.Key, function string) (*Client, error) {
	raw, shared := w.dial(function)
	return Connect(w.Context(), ClientConfig{
		Conn: raw, Memory: fixed(shared), Key: key, Verify: w.verify, Software: "test 1", Log: w.log,
		Name: "lab", User: "ann",
	})
}

// verify accepts the server's key only.
func (w *world) verify(key identity.Public) error {
	if key != w.config.Key.Public() {
		return errors.New("another key")
	}
	return nil
}

// alice returns a client with the trusted key.
func (w *world) alice() *Client {
	w.Helper()
	c, err := w.connect(w.key)
	must(w.T, err)
	return c
}

// copyOf returns a copy between /home/NAME and a path such as "box/a".
func (w *world) copyOf(name, remote string) CopyRequest {
	at, path, _ := strings.Cut(remote, "/")
	return CopyRequest{
		Options: dmaxfer.Options{
			Options: role.Options{
				Side: wire.Host, Chunk: 4096, Depth: 4, Digest: digest.CRC32C, IdleTimeout: 30 * time.Second,
				Log: w.log, Software: "test 1",
			},
			File: "/home/" + name, FS: w.local, Path: job.OnlyDMA,
		},
		Place: protocol.Place{Share: at, Path: path}, Local: "/home/" + name,
	}
}

// mustRefuse checks that a request was refused with a code and a text.
func mustRefuse(t *testing.T, err error, code wire.AbortCode, text string) {
	t.Helper()
	refusal, is := errors.AsType[*protocol.Refusal](err)
	if !is || refusal.Code != code || !strings.Contains(refusal.Text, text) {
		t.Fatalf("got %v, want a refusal with code %d and %q", err, code, text)
	}
}

// mustHave checks the content of a file.
func mustHave(t *testing.T, disk *disktest.Memory, path, want string) {
	t.Helper()
	if got, found := disk.Get(path); !found || string(got) != want {
		t.Fatalf("%s has %d bytes (found: %t), want %d", path, len(got), found, len(want))
	}
}

func mustLack(t *testing.T, disk *disktest.Memory, path string) {
	t.Helper()
	if _, found := disk.Get(path); found {
		t.Fatalf("there is %s", path)
	}
}

// makeDirectories creates directories on a disk.
func makeDirectories(t *testing.T, disk *disktest.Memory, paths ...string) {
	t.Helper()
	for _, each := range paths {
		parent, err := disk.OpenDir(path.Dir(each))
		must(t, err)
		must(t, parent.MakeDir(path.Base(each), 0o755))
		must(t, parent.Close())
	}
}

// removing returns the request to remove what is at paths below a place.
func removing(place protocol.Place, paths ...string) protocol.RemoveRequest {
	return protocol.RemoveRequest{Place: place, Paths: paths}
}
