//go:build cgo

package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
)

// A key gets in only if everything that is asked about it says so.
func TestKeysThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		trust func(w *world) Trust
	}{
		{"no key is trusted", func(*world) Trust { return trust{} }},
		{"another key is trusted", func(w *world) Trust {
			other := newKey(w.T).Public()
			return trust{other: {Name: "bob", Key: other}}
		}},
		{"the grant of another key is found", func(w *world) Trust {
			return trust{w.key.Public(): {Name: "bob", Key: newKey(w.T).Public()}}
		}},
		{"the search fails", func(w *world) Trust { return failingTrust{w.trusted} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, func(w *world) { w.config.Trust = test.trust(w) }, func(w *world) {
				_, err := w.connect(w.key)
				mustBe(w.T, err, secure.ErrRefused)
				synctest.Wait()
				if status := w.server.Status(); len(status.Connections) != 0 || status.Totals.Refused != 1 {
					w.Errorf("the status is %+v", status)
				}
				if !w.happened("refused") || w.happened("authenticated alice") {
					w.Errorf("the events are %q", w.observed.events)
				}
			})
		})
	}
}

// failingTrust finds a grant and says that there is none.
type failingTrust struct{ trust }

// Find implements Trust.
func (f failingTrust) Find(key identity.Public) (identity.Grant, bool) {
	g, _ := f.trust.Find(key)
	return g, false
}

// A client does not use a daemon with another key, or one that accepts any key unless it is told to.
func TestDaemonsThatAreRefused(t *testing.T) {
	inWorld(t, func(w *world) { w.config.AuthNone, w.config.Trust = true, nil }, func(w *world) {
		_, err := w.connect(nil)
		mustBe(w.T, err, ErrRefused)
		raw, shared := w.dial("b1:00.1")
		anybody := ClientConfig{Conn: raw, Memory: fixed(shared), Verify: secure.AnyKey, Anonymous: true}
		c, err := Connect(w.Context(), anybody)
		must(w.T, err)
		w.mustPush(c)
		must(w.T, c.Close())
		raw, shared = w.dial("b1:00.1")
		anybody.Conn, anybody.Memory = raw, fixed(shared)
		anybody.Verify = func(identity.Public) error { return errors.New("unknown") }
		_, err = Connect(w.Context(), anybody)
		if _, refused := errors.AsType[*secure.UntrustedError](err); !refused {
			w.Errorf("got %v", err)
		}
	})
}

// mustPush checks that a client can use a share.
func (w *world) mustPush(c *Client) {
	w.Helper()
	w.local.Put("/home/s", "content")
	_, err := c.Push(w.Context(), w.copyOf("s", "box/s"))
	must(w.T, err)
}

// What a key may do is what the share and the grant both allow.
func TestRights(t *testing.T) {
	only := func(name string, a share.Access) func(*identity.Grant) {
		return func(g *identity.Grant) { g.Shares = map[string]share.Access{name: a} }
	}
	overwrite := func(r *CopyRequest) { r.Options.Overwrite = true }
	owner := func(r *CopyRequest) { r.Options.Owner = true }
	for _, test := range []struct {
		name   string
		grant  func(*identity.Grant)
		pull   bool
		remote string
		with   func(*CopyRequest)
		text   string // of the refusal; empty: it succeeds
		code   wire.AbortCode
	}{
		{name: "push", remote: "box/new"},
		{name: "push to a share to write", remote: "in/new"},
		{name: "push to a share to read", remote: "out/new", text: "may not write to share"},
		{name: "pull", pull: true, remote: "box/old"},
		{name: "pull from a share to read", pull: true, remote: "out/old"},
		{name: "pull from a share to write", pull: true, remote: "in/old", text: "may not read from share"},
		{name: "push to no share", remote: "none/new", text: "no share"},
		{name: "push to a share of others", grant: only("out", share.Read), remote: "box/new", text: "no share"},
		{name: "pull of a share of others", grant: only("out", share.Read), pull: true, remote: "box/old",
			text: "no share"},
		{name: "pull of an own share", grant: only("out", share.Read), pull: true, remote: "out/old"},
		{name: "push with the right to read", grant: only("box", share.Read), remote: "box/new", text: "may not write"},
		{name: "pull with the right to write", grant: only("box", share.Write), pull: true, remote: "box/old",
			text: "may not read"},
		{name: "more than the share", grant: only("out", share.ReadWrite), remote: "out/new", text: "may not write"},
		{name: "overwrite", remote: "box/old", with: overwrite},
		{name: "overwrite where nothing may be replaced", remote: "keep/old", with: overwrite,
			text: "nothing may be replaced"},
		{name: "a new file where nothing may be replaced", remote: "keep/new"},
		{name: "the owner", remote: "box/new", with: owner, text: "may not set the owner"},
		{name: "the owner, to a key that may", grant: func(g *identity.Grant) { g.Owner = true }, remote: "box/new",
			with: owner},
		{name: "up to the limit of the key", grant: func(g *identity.Grant) { g.MaxBytes = 3 }, remote: "box/new"},
		{name: "beyond the limit of the key", grant: func(g *identity.Grant) { g.MaxBytes = 2 }, remote: "box/new",
			text: "exceeds", code: wire.AbortLimit},
		{name: "pull beyond the limit of the key", grant: func(g *identity.Grant) { g.MaxBytes = 2 }, pull: true,
			remote: "box/old", text: "exceeds", code: wire.AbortLimit},
		{name: "push beyond the limit of the share", remote: "keep/other", text: "exceeds", code: wire.AbortLimit,
			with: func(r *CopyRequest) { r.Options.File = "/home/longer" }},
		{name: "pull beyond the limit of the share", pull: true, remote: "keep/longer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, func(w *world) { w.prepareRights(test.grant) }, func(w *world) {
				c := w.alice()
				defer c.Close()
				r := w.copyOf("new", test.remote)
				if test.with != nil {
					test.with(&r)
				}
				copied := c.Push
				if test.pull {
					r.Options.File = "/home/pulled"
					copied = c.Pull
				}
				_, err := copied(w.Context(), r)
				if test.text == "" {
					must(w.T, err)
					return
				}
				code := test.code
				if code == 0 {
					code = wire.AbortRefused
				}
				mustRefuse(w.T, err, code, test.text)
				mustLack(w.T, w.local, "/home/pulled")
				mustHave(w.T, w.remote, "/srv/keep/old", "old")
				if records := w.records(); len(records) != 1 || records[0].Code != int(code) || records[0].Err == nil {
					w.Errorf("the records are %+v", records)
				}
			})
		})
	}
}

func (w *world) prepareRights(alter func(*identity.Grant)) {
	w.local.Put("/home/new", "new")
	w.local.Put("/home/longer", "longer")
	w.remote.Put("/srv/keep/longer", "longer")
	for _, name := range []string{"box", "in", "out", "keep"} {
		w.remote.Put("/srv/"+name+"/old", "old")
	}
	if alter == nil {
		return
	}
	grant := w.trusted[w.key.Public()]
	alter(&grant)
	w.trusted[w.key.Public()] = grant
}

// The files of a tree count together, on the side that receives and on the one that sends.
func TestLimitsOfTrees(t *testing.T) {
	for name, alter := range map[string]func(*world){
		"bytes of a share":       func(w *world) { w.config.Shares[0].MaxBytes = 5 },
		"entries of a share":     func(w *world) { w.config.Shares[0].MaxEntries = 2 },
		"bytes of the daemon":    func(w *world) { w.config.Limits.MaxBytes = 5 },
		"entries of the daemon":  func(w *world) { w.config.Limits.MaxEntries = 2 },
		"the smallest of limits": func(w *world) { w.config.Shares[0].MaxBytes, w.config.Limits.MaxBytes = 5, 1<<40 },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				alter(w)
				makeDirectories(t, w.local, "/home/tree")
				for _, each := range []string{"a", "b", "c"} {
					w.local.Put("/home/tree/"+each, "12")
				}
			}, func(w *world) {
				c := w.alice()
				defer c.Close()
				_, err := c.Push(w.Context(), w.copyOf("tree", "box/tree"))
				aborted, is := errors.AsType[*native.PeerAborted](err)
				if !is || aborted.Code != wire.AbortLimit {
					w.Errorf("got %v", err)
				}
				records := w.records()
				if len(records) != 1 || !errors.Is(records[0].Err, job.ErrLimit) {
					w.Errorf("the records are %+v", records)
				}
			})
		})
	}
}

// Limits lower each other, and 0 is none.
func TestLowest(t *testing.T) {
	for _, test := range []struct {
		limits []int64
		want   int64
	}{
		{nil, 0}, {[]int64{0, 0}, 0}, {[]int64{0, 7}, 7}, {[]int64{7, 0}, 7}, {[]int64{7, 5, 9}, 5},
		{[]int64{-1, 3}, 3},
	} {
		if got := lowest(test.limits...); got != test.want {
			t.Errorf("lowest of %v is %d, want %d", test.limits, got, test.want)
		}
	}
}

// Connections beyond a limit are refused with the reason; one that ends makes room.
func TestLimitsOnConnections(t *testing.T) {
	for _, test := range []struct {
		name  string
		alter func(*world)
		text  string
	}{
		{"all", func(w *world) { w.config.Limits.Connections = 2 }, "the daemon has as many connections"},
		{"each key", func(w *world) { w.config.Limits.PerKey = 2 }, "this key has as many connections"},
		{"the key's grant", func(w *world) {
			w.prepareRights(func(g *identity.Grant) { g.Connections = 2 })
		}, "this key has as many connections"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, test.alter, func(w *world) {
				first, second := w.alice(), w.alice()
				_, err := w.connect(w.key)
				mustRefuse(w.T, err, wire.AbortLimit, test.text)
				must(w.T, first.Close())
				synctest.Wait()
				third := w.alice()
				must(w.T, errors.Join(second.Close(), third.Close()))
			})
		})
	}
}

// The windows of all connections count together, as long as they are open.
func TestLimitOnMemory(t *testing.T) {
	inWorld(t, func(w *world) { w.config.Limits.Memory = 100_000 }, func(w *world) {
		w.local.Put("/home/a", strings.Repeat("x", 50_000))
		first, second := w.alice(), w.alice()
		_, err := first.Push(w.Context(), w.copyOf("a", "box/a"))
		must(w.T, err)
		used := w.server.Status().Memory
		if used == 0 || used > 100_000 {
			w.Fatalf("%d bytes are used", used)
		}
		w.server.memory.limit = used + 1
		_, err = second.Push(w.Context(), w.copyOf("a", "box/b"))
		aborted, is := errors.AsType[*native.PeerAborted](err)
		if !is || aborted.Code != wire.AbortLimit || !strings.Contains(aborted.Text, "memory of all connections") {
			w.Errorf("got %v", err)
		}
		must(w.T, first.Close())
		synctest.Wait()
		_, err = second.Push(w.Context(), w.copyOf("a", "box/b"))
		must(w.T, err)
		must(w.T, second.Close())
		synctest.Wait()
		if used := w.server.Status().Memory; used != 0 {
			w.Errorf("%d bytes are used in the end", used)
		}
	})
}

// slowMemory takes a time to release a window, as a device does.
type slowMemory struct {
	*bus
	release time.Duration
}

// Open implements window.Memory.
func (m slowMemory) Open(ctx context.Context, l window.Layout, of native.Window) (*window.Window, error) {
	w, err := m.bus.Open(ctx, l, of)
	if err == nil {
		w.AddCloser(slowCloser(m.release))
	}
	return w, err
}

// slowCloser is how long a release takes.
type slowCloser time.Duration

// Close implements io.Closer.
func (c slowCloser) Close() error {
	time.Sleep(time.Duration(c))
	return nil
}

// pushSlowly pushes a file in a connection of its own, whose memory the daemon releases slowly.
func (w *world) pushSlowly(release time.Duration, to string) error {
	host, dpu := comch.Pipe(testMessage)
	shared := &bus{}
	w.serving.Go(func() {
		_ = w.server.Serve(w.ctx, Incoming{
			Conn: dpu, Memory: fixed(slowMemory{shared, release}), Function: "b1:00.1", Side: wire.DPU,
		})
	})
	c, err := Connect(w.Context(), ClientConfig{
		Conn: host, Memory: fixed(shared), Key: w.key, Verify: w.verify, Software: "test 1", Log: zerolog.Nop(),
	})
	if err != nil {
		return err
	}
	_, err = c.Push(w.Context(), w.copyOf("a", to))
	return errors.Join(err, c.Close())
}

// A command that follows another one is not refused because the daemon still releases what that one used.
func TestConnectionsThatEndAreWaitedFor(t *testing.T) {
	inWorld(t, func(w *world) { w.config.Limits.PerKey = 1 }, func(w *world) {
		w.local.Put("/home/a", "a")
		for i := range 3 {
			must(w.T, w.pushSlowly(job.PartingTime/5, fmt.Sprintf("box/%d", i)))
		}
	})
}

// A key cannot leave behind any number of connections that the daemon cannot release.
func TestConnectionsThatEndAreLimited(t *testing.T) {
	inWorld(t, func(w *world) { w.config.Limits.PerKey = 1 }, func(w *world) {
		w.local.Put("/home/a", "a")
		for i := range 1 + mostEnding {
			must(w.T, w.pushSlowly(time.Minute, fmt.Sprintf("box/%d", i)))
		}
		mustRefuse(w.T, w.pushSlowly(time.Minute, "box/more"), wire.AbortLimit, "this key has as many connections")
	})
}
