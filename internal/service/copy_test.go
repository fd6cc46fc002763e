//go:build cgo

package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

func TestPushAndPull(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		content := strings.Repeat("0123456789", 5000)
		w.local.Put("/home/a", content)
		c := w.alice()
		defer c.Close()
		for range 2 { // the second one finds it up to date
			summary, err := c.Push(w.Context(), w.copyOf("a", "box/a"))
			must(w.T, err)
			if !summary.Sent || summary.Size != int64(len(content)) {
				w.Errorf("the summary is %+v", summary)
			}
		}
		mustHave(w.T, w.remote, "/srv/box/a", content)
		_, err := c.Pull(w.Context(), w.copyOf("b", "box/a"))
		must(w.T, err)
		mustHave(w.T, w.local, "/home/b", content)
		if got := c.Peer(); got.Name != "dpu7" || !got.Authenticates || got.Key != w.config.Key.Public() {
			w.Errorf("the peer is %+v", got)
		}
	})
}

func TestPushKeepsAnExistingTarget(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.local.Put("/home/a", "new")
		w.remote.Put("/srv/box/a", "old")
		c := w.alice()
		defer c.Close()
		_, err := c.Push(w.Context(), w.copyOf("a", "box/a"))
		if err == nil {
			w.Fatal("it was replaced")
		}
		mustHave(w.T, w.remote, "/srv/box/a", "old")
		if r := w.records()[0]; r.Bytes != 0 || r.Entries != 0 || r.Summary.Protocol != 0 {
			w.Errorf("the record of what was not copied is %+v", r)
		}
		again := w.copyOf("a", "box/a")
		again.Options.Overwrite = true
		_, err = c.Push(w.Context(), again) // over the same connection
		must(w.T, err)
		mustHave(w.T, w.remote, "/srv/box/a", "new")
	})
}

// Messages call the daemon's file as the user has named it.
func TestNameOfTheDaemonsFile(t *testing.T) {
	inWorld(t, func(w *world) {
		w.local.Put("/home/a", "own")
		w.remote.Put("/srv/box/b", "other")
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		r := w.copyOf("a", "box/b")
		r.Daemon.Peer = "dpu"
		if _, err := c.Pull(w.Context(), r); err == nil || !strings.Contains(err.Error(), "differs from dpu:box/b:") {
			w.Errorf("got %v", err)
		}
	})
}

func TestPullOfNothing(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		_, err := c.Pull(w.Context(), w.copyOf("a", "box/none"))
		mustRefuse(w.T, err, 4, "none does not exist in share box")
		_, err = c.Push(w.Context(), w.copyOf("none", "box/none"))
		mustBe(w.T, err, job.ErrSource)
	})
}

// A push creates its target, and directories above it only where the command says so.
func TestTargetsOfPushes(t *testing.T) {
	above := func(r *CopyRequest) { r.Options.MakePath = true }
	for _, test := range []struct {
		name   string
		remote string
		with   func(*CopyRequest)
		want   string // the file; empty: that of remote
		text   string // of the refusal
	}{
		{name: "the share itself", remote: "box", text: "end the target with / to copy into it"},
		{name: "a directory", remote: "box/dir", text: "end the target with / to copy into it"},
		{name: "in a directory", remote: "box/dir/a"},
		{name: "in a directory that is missing", remote: "box/new/a", text: "use --mkpath"},
		{name: "in directories that are created", remote: "box/new/more/a", with: above},
		{name: "in a directory that would be created", remote: "box/dir/a", with: above},
		{name: "below a file", remote: "box/file/a", with: above, text: "not a directory"},
		{name: "through a symlink in the share", remote: "box/link/new/a", with: above, want: "box/dir/new/a"},
		{name: "through a symlink out of the share", remote: "box/out/new/a", with: above,
			text: "leads out of the shared directory"},
		{name: "a reserved name", remote: "box/.a.dma-copy-part", text: "reserved"},
		{name: "in a directory of a reserved name", remote: "box/.a.dma-copy-part/a", with: above, text: "reserved"},
		{name: "the name of a stream", remote: "box/-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				makeDirectories(t, w.remote, "/srv/box/dir")
				w.remote.Put("/srv/box/file", "old")
				w.remote.Symlink("dir", "/srv/box/link", 0)
				w.remote.Symlink("../keep", "/srv/box/out", 0)
				w.local.Put("/home/a", "content")
			}, func(w *world) {
				c := w.alice()
				defer c.Close()
				r := w.copyOf("a", test.remote)
				if test.with != nil {
					test.with(&r)
				}
				_, err := c.Push(w.Context(), r)
				if test.text != "" {
					if err == nil || !strings.Contains(err.Error(), test.text) {
						w.Errorf("got %v", err)
					}
					mustLack(w.T, w.remote, "/srv/keep/a")
					mustLack(w.T, w.remote, "/srv/keep/new")
					return
				}
				must(w.T, err)
				mustHave(w.T, w.remote, "/srv/"+cmp.Or(test.want, test.remote), "content")
				if r := w.records(); len(r) != 1 || "box/"+r[0].Path != test.remote {
					w.Errorf("the records are %+v", r)
				}
			})
		})
	}
}

// A directory that a push creates is as durable as the file in it.
func TestCreatedDirectoryIsDurable(t *testing.T) {
	inWorld(t, func(w *world) { w.local.Put("/home/a", "content") }, func(w *world) {
		c := w.alice()
		defer c.Close()
		w.remote.Record()
		r := w.copyOf("a", "box/new/more/a")
		r.Options.MakePath, r.Options.Durability = true, wire.DurabilityFull
		_, err := c.Push(w.Context(), r)
		must(w.T, err)
		least := w.remote.PowerLoss(func(n int) int { return n - 1 }) // nothing survives that was not flushed
		mustHave(w.T, least, "/srv/box/new/more/a", "content")
	})
}

// Items without a copy are not left for the next copy.
func TestItemsThatCannotBeSent(t *testing.T) {
	inWorld(t, func(w *world) { w.remote.Put("/srv/box/a", "content") }, func(w *world) {
		c := w.alice()
		defer c.Close()
		r := w.copyOf("b", "box")
		r.Options.FilesFrom = []string{"a\x00"}
		_, err := c.Pull(w.Context(), r)
		mustBe(w.T, err, job.ErrSettings)
		w.mustPush(c) // as nothing was sent
		r.Options.FilesFrom = []string{"a", strings.Repeat("name/", testMessage/5) + "a"}
		_, err = c.Pull(w.Context(), r)
		mustBe(w.T, err, wire.ErrTooLarge)
		_, err = c.Pull(w.Context(), w.copyOf("b", "box/a"))
		mustBe(w.T, err, wire.ErrTooLarge)
		mustLack(w.T, w.local, "/home/b")
	})
}

// Items count as memory of the daemon until the end of their copy or connection.
func TestMemoryOfItems(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config.Limits.Memory = 1 << 20
		w.remote.Put("/srv/box/a", "content")
	}, func(w *world) {
		c, other := w.alice(), w.alice()
		defer c.Close()
		must(w.T, other.sendItems(w.Context(), []protocol.Item{{Kind: protocol.ItemPath, Text: "a"}}))
		synctest.Wait()
		if got := w.server.Status().Memory; got != itemMemory+1 {
			w.Errorf("one item takes %d bytes", got)
		}
		r := w.copyOf("b", "box")
		for i := range 20_000 {
			r.Options.FilesFrom = append(r.Options.FilesFrom, fmt.Sprint(i))
		}
		_, err := c.Pull(w.Context(), r)
		mustRefuse(w.T, err, wire.AbortLimit, "memory of all connections")
		must(w.T, other.Close())
		synctest.Wait()
		if got := w.server.Status().Memory; got != 0 {
			w.Errorf("%d bytes are in use", got)
		}
		r.Options.FilesFrom = []string{"a"}
		_, err = c.Pull(w.Context(), r)
		must(w.T, err)
		mustHave(w.T, w.local, "/home/b/a", "content")
	})
}

// A dry run says what would be copied, and creates nothing.
func TestDryRun(t *testing.T) {
	inWorld(t, func(w *world) { w.local.Put("/home/a", "content") }, func(w *world) {
		c := w.alice()
		defer c.Close()
		r := w.copyOf("a", "box/new/more/a")
		r.Options.MakePath, r.Options.DryRun = true, true
		summary, err := c.Push(w.Context(), r)
		must(w.T, err)
		if !summary.DryRun || summary.Size != 7 {
			w.Errorf("the summary is %+v", summary)
		}
		record := w.records()[0]
		if !record.DryRun || record.Transfers() || record.Bytes != 0 || record.Entries != 0 || record.Code != 0 {
			w.Errorf("the record is %+v", record)
		}
		_, err = c.Push(w.Context(), w.copyOf("a", "box/a"))
		must(w.T, err)
		if record = w.records()[1]; record.DryRun || !record.Transfers() || record.Bytes != 7 {
			w.Errorf("the record of a copy is %+v", record)
		}
		must(w.T, c.Remove(w.Context(), removing(protocol.Place{Share: "box"}, "a"),
			func(string, protocol.Removal) error { return nil }))
		w.mustList(c, "box", 0, `0 directory "" 0`)
	})
}

// Trees are copied both ways, and the command says which entries the daemon sends.
func TestTrees(t *testing.T) {
	exclude, later := []tree.Rule{{Pattern: "*.tmp"}}, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name string
		with func(*CopyRequest)
		want []string
	}{
		{"all", func(*CopyRequest) {}, []string{"a", "b.tmp", "d/c"}},
		{"by a pattern", func(r *CopyRequest) { r.Rules = exclude }, []string{"a", "d/c"}},
		{"by paths", func(r *CopyRequest) { r.Options.FilesFrom = []string{"d/c"} }, []string{"d/c"}},
		{"by size", func(r *CopyRequest) { r.Options.Scope.MinSize = 2 }, []string{"b.tmp", "d/c"}},
		{"by sizes", func(r *CopyRequest) { r.Options.Scope.MinSize, r.Options.Scope.MaxSize = 2, 4 }, []string{"d/c"}},
		{"by time", func(r *CopyRequest) { r.Options.Scope.Newer = later }, nil},
		{"by times", func(r *CopyRequest) {
			r.Options.Scope.Newer, r.Options.Scope.Older = time.Unix(-1, 0), later
		}, []string{"a", "b.tmp", "d/c"}},
		{"by file system", func(r *CopyRequest) { r.Options.Scope.OneFileSystem = true }, []string{"a", "b.tmp"}},
		{"by no paths", func(r *CopyRequest) { r.Options.FilesFrom = []string{} }, nil},
		{"by many paths", func(r *CopyRequest) {
			for i := range 2000 {
				r.Options.FilesFrom = append(r.Options.FilesFrom, fmt.Sprintf("d/c%d", i))
			}
			r.Options.FilesFrom = append(r.Options.FilesFrom, "a")
		}, []string{"a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				makeDirectories(t, w.remote, "/srv/out/t", "/srv/out/t/d")
				w.remote.Mount("/srv/out/t/d")
				for _, each := range []string{"a", "b.tmp", "d/c"} {
					w.remote.Put("/srv/out/t/"+each, each)
				}
			}, func(w *world) {
				c := w.alice()
				defer c.Close()
				r := w.copyOf("t", "out/t")
				test.with(&r)
				_, err := c.Pull(w.Context(), r)
				if err != nil && !errors.Is(err, job.ErrSomeFailed) { // paths that do not exist
					w.Fatal(err)
				}
				for _, each := range []string{"a", "b.tmp", "d/c"} {
					if _, found := w.local.Get("/home/t/" + each); found != slices.Contains(test.want, each) {
						w.Errorf("%s (found: %t)", each, found)
					}
				}
			})
		})
	}
}

// The unfinished files of other copies into a share neither are sent nor are a difference.
func TestUnfinishedFilesInAShare(t *testing.T) {
	inWorld(t, func(w *world) {
		makeDirectories(t, w.remote, "/srv/box/t")
		w.remote.Put("/srv/box/t/a", "a")
		w.remote.Put("/srv/box/t/.b.dma-copy-part", "b")
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		_, err := c.Pull(w.Context(), w.copyOf("t", "box/t"))
		must(w.T, err)
		mustHave(w.T, w.local, "/home/t/a", "a")
		mustLack(w.T, w.local, "/home/t/.b.dma-copy-part")
		summary, err := c.Push(w.Context(), w.copyOf("t", "box/t"))
		if err != nil || !summary.UpToDate {
			w.Errorf("pushed back: %+v, %v", summary, err)
		}
	})
}

// What no message can carry is refused before anything is sent.
func TestImpossibleCopies(t *testing.T) {
	inWorld(t, func(w *world) {
		w.remote.Put("/srv/box/a", "content")
		w.local.Put("/home/a", "content")
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		r := w.copyOf("b", "box/a")
		r.Rules = slices.Repeat([]tree.Rule{{Pattern: "x"}}, protocol.MaxPatterns+1)
		_, err := c.Pull(w.Context(), r)
		mustBe(w.T, err, job.ErrSettings)
		_, err = c.Push(w.Context(), w.copyOf("a", "box/../a"))
		mustBe(w.T, err, wire.ErrMalformed)
		w.mustPush(c)
		r = w.copyOf("b", "box/../a")
		r.Rules = []tree.Rule{{Pattern: "x"}}
		_, err = c.Pull(w.Context(), r)
		mustBe(w.T, err, wire.ErrMalformed)
		_, err = c.RoundTrip(w.Context(), nil) // the patterns have been sent
		mustBe(w.T, err, wire.ErrMalformed)
	})
}

// A stream is pushed from standard input, and a file is pulled to standard output.
func TestStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		w.local.Put("/home/in", "streamed")
		w.local.Put("/home/out", "")
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		r := w.copyOf("a", "box/a")
		r.Options.File = job.StreamName
		r.Options.Stdin = func() (disk.File, error) { return w.local.Open("/home/in") }
		_, err := c.Push(w.Context(), r)
		must(w.T, err)
		mustHave(w.T, w.remote, "/srv/box/a", "streamed")
		r.Options.Stdout = func() (disk.File, error) {
			home, err := w.local.OpenDir("/home")
			if err != nil {
				return nil, err
			}
			defer home.Close()
			return home.Open("out", false)
		}
		_, err = c.Pull(w.Context(), r)
		must(w.T, err)
		mustHave(w.T, w.local, "/home/out", "streamed")
	})
}

// A daemon that never ends its part of a copy does not keep its client for ever.
func TestDaemonThatNeverCloses(t *testing.T) {
	inWorld(t, func(w *world) { w.local.Put("/home/a", "content") }, func(w *world) {
		c := w.alice()
		defer c.Close()
		c.exchange.conn = &withoutClose{Conn: c.exchange.conn}
		_, err := c.Push(w.Context(), w.copyOf("a", "box/a"))
		must(w.T, err)
		mustHave(w.T, w.remote, "/srv/box/a", "content")
		_, err = c.RoundTrip(w.Context(), nil)
		mustBe(w.T, err, errNoClose)
	})
}

// A daemon that breaks the protocol keeps its client for the idle timeout, and after an interruption for a moment,
// whatever it sends then.
func TestDaemonThatBreaksTheProtocol(t *testing.T) {
	for name, then := range map[string][]byte{
		"silent": nil, "malformed": heartbeat(), "heartbeats": native.AppendBeat(nil, native.Beat{}),
		"working": protocol.AppendWorking(nil, 0), "unknown type": {0xff, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) { testBrokenDaemon(t, then, 0, 6*time.Second) })
		t.Run(name+", interrupted", func(t *testing.T) { testBrokenDaemon(t, then, time.Second, 3*time.Second) })
	}
}

func testBrokenDaemon(t *testing.T, then []byte, interruptedAfter, longest time.Duration) {
	inWorld(t, func(w *world) { w.local.Put("/home/a", "content") }, func(w *world) {
		client := w.alice()
		defer client.Close()
		client.exchange.idle = 5 * time.Second
		client.exchange.conn = &brokenOff{Conn: client.exchange.conn, then: then}
		ctx, interrupt := context.WithCancelCause(w.Context())
		defer interrupt(nil)
		if interruptedAfter > 0 {
			time.AfterFunc(interruptedAfter, func() { interrupt(errStopped) })
		}
		began, request := time.Now(), w.copyOf("a", "box/a")
		request.Options.Progress = &job.Progress{}
		_, err := client.Push(ctx, request)
		mustBe(w.T, err, wire.ErrMalformed)
		if took := time.Since(began); took > longest {
			w.Errorf("took %s, at most %s", took, longest) // of virtual time
		}
		if got := request.Options.Progress.Sample().Phase; got != job.Concluding {
			w.Errorf("the phase is %s", got)
		}
	})
}

// brokenOff is a connection over which, instead of the first message of a native session, a malformed one arrives, and
// then ten times a second the same one; nil: none.
type brokenOff struct {
	comch.Conn
	then   []byte
	broken atomic.Bool
}

// Recv implements comch.Conn.
func (b *brokenOff) Recv(ctx context.Context) ([]byte, error) {
	if !b.broken.Load() {
		message, err := b.Conn.Recv(ctx)
		if err != nil || messageType(message) >= wire.TypeGreeting {
			return message, err
		}
		b.broken.Store(true)
		return message[:5], nil
	}
	if b.then != nil {
		time.Sleep(100 * time.Millisecond)
		return b.then, nil
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// TryRecv implements comch.Conn.
func (b *brokenOff) TryRecv() ([]byte, bool) {
	if b.broken.Load() {
		return nil, false
	}
	message, received := b.Conn.TryRecv()
	if received && messageType(message) < wire.TypeGreeting {
		b.broken.Store(true)
		message = message[:5]
	}
	return message, received
}

// withoutClose is a connection over which no CLOSE arrives.
type withoutClose struct{ comch.Conn }

// Recv implements comch.Conn.
func (w *withoutClose) Recv(ctx context.Context) ([]byte, error) {
	for {
		message, err := w.Conn.Recv(ctx)
		if err != nil || messageType(message) != wire.TypeClose {
			return message, err
		}
	}
}

// TryRecv implements comch.Conn.
func (w *withoutClose) TryRecv() ([]byte, bool) {
	message, received := w.Conn.TryRecv()
	if received && messageType(message) == wire.TypeClose {
		return nil, false
	}
	return message, received
}
