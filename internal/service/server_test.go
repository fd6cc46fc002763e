//go:build cgo

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
)

// largeText takes a minute after the burst that a limit permits.
var largeText = strings.Repeat("0123456789abcdef", (smallestBurst+2<<20)/16)

// A server whose settings would end every connection, or say less than they should, does not start.
func TestSettingsThatCannotBeSent(t *testing.T) {
	for name, alter := range map[string]func(*ServerConfig){
		"no key":             func(c *ServerConfig) { c.Key = nil },
		"no trust":           func(c *ServerConfig) { c.Trust = nil },
		"a long text":        func(c *ServerConfig) { c.Text = strings.Repeat("a", protocol.MaxPingText+1) },
		"a long name":        func(c *ServerConfig) { c.Name = strings.Repeat("a", wire.MaxSoftwareName+1) },
		"a name in UTF-8":    func(c *ServerConfig) { c.Name = "\u00e9" },
		"a share of nothing": func(c *ServerConfig) { c.Shares[0].Path = "/none" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			alter(&w.config)
			if _, err := NewServer(w.config); err == nil {
				t.Error("the server started")
			}
			if got := w.remote.Handles(); got != 0 {
				t.Errorf("%d directories are open", got)
			}
		})
	}
}

// slow has a copy of a large file take minutes.
func slow(w *world) {
	w.config.Limits.Bandwidth = 32 << 10
	w.local.Put("/home/large", largeText)
}

// pushing starts the copy of the large file, and waits until it has begun.
func (w *world) pushing(c *Client, remote string) (ended <-chan error) {
	w.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := c.Push(w.Context(), w.copyOf("large", remote))
		done <- err
	}()
	time.Sleep(5 * time.Second)
	if got := w.server.Status(); got.Running == 0 {
		w.Fatalf("no copy runs: %+v", got)
	}
	return done
}

// Many clients at once each get what they ask for.
func TestManyClients(t *testing.T) {
	const clients, files = 16, 5
	inWorld(t, nil, func(w *world) {
		for i := range files {
			w.local.Put(fmt.Sprintf("/home/%d", i), strings.Repeat(fmt.Sprint(i), 10_000))
		}
		var running sync.WaitGroup
		for i := range clients {
			running.Go(func() {
				c, err := w.connect(w.key)
				if err != nil {
					w.Error(err)
					return
				}
				defer c.Close()
				for file := range files {
					name := fmt.Sprint(file)
					_, err := c.Push(w.Context(), w.copyOf(name, fmt.Sprintf("box/%d-%d", i, file)))
					if err != nil {
						w.Errorf("client %d: %v", i, err)
					}
				}
			})
		}
		running.Wait()
		for i := range clients {
			for file := range files {
				at := fmt.Sprintf("/srv/box/%d-%d", i, file)
				mustHave(w.T, w.remote, at, strings.Repeat(fmt.Sprint(file), 10_000))
			}
		}
		synctest.Wait()
		totals := w.server.Status().Totals
		want := Totals{Connections: clients, Requests: clients * files, Bytes: clients * files * 10_000}
		if totals != want {
			w.Errorf("the totals are %+v, want %+v", totals, want)
		}
	})
}

// Copies beyond the limit are queued in the order of arrival, and their clients are told so.
func TestTransfersWaitForTheirTurn(t *testing.T) {
	inWorld(t, func(w *world) { slow(w); w.config.Limits.Transfers = 1 }, func(w *world) {
		w.local.Put("/home/small", "small")
		ended := w.pushing(w.alice(), "box/large")
		var mu sync.Mutex
		var order []int
		var told [3][]int // by client
		var waiting sync.WaitGroup
		for i := range told {
			c := w.alice()
			c.config.Waiting = func(ahead int) { told[i] = append(told[i], ahead) }
			waiting.Go(func() {
				defer c.Close()
				if _, err := c.Push(w.Context(), w.copyOf("small", fmt.Sprintf("box/%d", i))); err != nil {
					w.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			time.Sleep(time.Second)
		}
		if got := w.server.Status(); got.Waiting != 3 || got.Running != 1 {
			w.Errorf("the status is %+v", got)
		}
		must(w.T, <-ended)
		waiting.Wait()
		if !slices.Equal(order, []int{0, 1, 2}) {
			w.Errorf("the order is %v", order)
		}
		for i, ahead := range told {
			if len(ahead) < 10 || ahead[0] != i+1 {
				w.Errorf("client %d was told %v", i, ahead)
			}
		}
		for _, r := range w.records() {
			if (r.Path == "large") != (r.Waited < time.Second) {
				w.Errorf("%s waited %s", r.Path, r.Waited)
			}
		}
	})
}

// A client that goes away while it waits gives its place to the next.
func TestClientThatGivesUpItsTurn(t *testing.T) {
	inWorld(t, func(w *world) { slow(w); w.config.Limits.Transfers = 1 }, func(w *world) {
		w.local.Put("/home/small", "small")
		ended := w.pushing(w.alice(), "box/large")
		gone := w.alice()
		time.AfterFunc(2*time.Second, func() { gone.Close() })
		_, err := gone.Push(w.Context(), w.copyOf("small", "box/gone"))
		if err == nil {
			w.Error("it did not wait")
		}
		synctest.Wait()
		if got := w.server.Status(); got.Waiting != 0 || len(got.Connections) != 1 {
			w.Errorf("the status is %+v", got)
		}
		must(w.T, <-ended)
		c := w.alice()
		_, err = c.Push(w.Context(), w.copyOf("small", "box/next"))
		must(w.T, err)
		mustLack(w.T, w.remote, "/srv/box/gone")
	})
}

// Two keys share the bandwidth of the daemon, and a key with a limit of its own has no more than that.
func TestBandwidth(t *testing.T) {
	inWorld(t, func(w *world) {
		w.prepareRights(func(g *identity.Grant) { g.Bandwidth = 128 << 10 })
		w.local.Put("/home/large", largeText)
	}, func(w *world) {
		began := time.Now()
		first, second := w.alice(), w.alice()
		ended := w.pushing(first, "box/1")
		_, err := second.Push(w.Context(), w.copyOf("large", "box/2"))
		must(w.T, errors.Join(err, <-ended))
		if got := time.Since(began); got < 60*time.Second || got > 70*time.Second { // virtual
			w.Errorf("12 MiB took %s at 128 KiB/s after a burst of 4 MiB", got)
		}
	})
}

// A drain lets running copies end, refuses new ones, and ends connections that have nothing to do.
func TestDrain(t *testing.T) {
	inWorld(t, slow, func(w *world) {
		idle, busy := w.alice(), w.alice()
		ended := w.pushing(busy, "box/large")
		drained := make(chan struct{})
		go func() {
			w.server.Drain(context.Background())
			close(drained)
		}()
		synctest.Wait()
		_, err := idle.RoundTrip(w.Context(), nil)
		if refusal, is := errors.AsType[*protocol.Refusal](err); !is || refusal.Code != wire.AbortPeer {
			w.Errorf("an idle client: %v", err)
		}
		if _, err := w.connect(w.key); err == nil {
			w.Error("a new client was served")
		}
		if got := w.server.Status(); !got.Draining || got.Running != 1 {
			w.Errorf("the status is %+v", got)
		}
		must(w.T, <-ended)
		<-drained
		mustHave(w.T, w.remote, "/srv/box/large", largeText)
	})
}

// A drain does not wait for peers that have not authenticated, nor for the rest of the queue.
func TestDrainBeforeAuthentication(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for range 3 {
			w.attack()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w.server.Drain(ctx)
		must(w.T, ctx.Err())
	})
}

// After its time, a drain interrupts what still runs; a repetition continues there.
func TestDrainInterrupts(t *testing.T) {
	inWorld(t, func(w *world) { slow(w); w.config.Limits.Transfers = 1 }, func(w *world) {
		w.local.Put("/home/small", "small")
		ended := w.pushing(w.alice(), "box/large")
		waiting := make(chan error, 1)
		go func() {
			_, err := w.alice().Push(w.Context(), w.copyOf("small", "box/small"))
			waiting <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Second, errStopped)
		defer cancel()
		w.server.Drain(ctx)
		mustRefuse(w.T, <-waiting, wire.AbortPeer, "shutting down")
		aborted, is := errors.AsType[*native.PeerAborted](<-ended)
		if !is || aborted.Code != wire.AbortTerminated {
			w.Fatalf("got %v", aborted)
		}
		mustLack(w.T, w.remote, "/srv/box/large")
		w.stop()
		w.start()
		summary, err := w.alice().Push(w.Context(), w.copyOf("large", "box/large"))
		must(w.T, err)
		if summary.Resumed < 4<<20 {
			w.Errorf("resumed at %d", summary.Resumed)
		}
	})
}

// Shares that are loaded again change what new requests may do, and not what runs.
func TestReloadShares(t *testing.T) {
	inWorld(t, slow, func(w *world) {
		c, other := w.alice(), w.alice()
		ended := w.pushing(c, "box/large")
		shares := []share.Share{{Name: "new", Path: "/srv/box", Access: share.Read}}
		must(w.T, w.server.ReloadShares(shares))
		_, err := w.list(other, "box", 0)
		mustRefuse(w.T, err, wire.AbortRefused, "no share")
		_, err = w.list(other, "new", 0)
		must(w.T, err)
		must(w.T, <-ended)
		mustHave(w.T, w.remote, "/srv/box/large", largeText)
		if got := w.server.Status().Shares; len(got) != 1 || got[0] != (ShareStatus{"new", "/srv/box", "ro"}) {
			w.Errorf("the shares are %+v", got)
		}
	})
}

// If one share cannot be opened, all stay as they are.
func TestReloadSharesThatFails(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		shares := []share.Share{
			{Name: "out", Path: "/srv/out", Access: share.Read}, {Name: "none", Path: "/none", Access: share.Read},
		}
		mustBe(w.T, w.server.ReloadShares(shares), disk.ErrSource)
		w.mustPush(c)
	})
}

// A request uses the directory that the share has when it begins, and a reload passes over what cannot be used now.
func TestShareIsReplaced(t *testing.T) {
	parent := t.TempDir()
	box, moved := filepath.Join(parent, "box"), filepath.Join(parent, "moved")
	must(t, os.Mkdir(box, 0o700))
	forbidden := false
	inWorld(t, func(w *world) {
		w.config.FS = nil
		w.config.Shares = []share.Share{{Name: "box", Path: box, Access: share.ReadWrite}}
		w.config.Forbidden = func(s share.Share, needed share.Access) bool {
			return forbidden && s.Path == box && needed == share.Write
		}
		w.local.Put("/home/f", "content")
	}, func(w *world) {
		c := w.alice()
		push := func(name string) error {
			_, err := c.Push(w.Context(), w.copyOf("f", "box/"+name))
			return err
		}
		must(w.T, push("old"))
		must(w.T, os.Rename(box, moved))
		mustRefuse(w.T, push("none"), wire.AbortTarget, "cannot open the directory of share box: no such file")
		_, err := w.list(c, "box", 0)
		mustRefuse(w.T, err, wire.AbortSource, "cannot open the directory of share box: no such file")
		must(w.T, w.server.ReloadShares(w.config.Shares))
		must(w.T, os.Mkdir(box, 0o700))
		must(w.T, push("new"))
		forbidden = true
		mustRefuse(w.T, push("forbidden"), wire.AbortRefused, "restart the daemon")
		w.mustList(c, "box", 0, `0 directory "" 0`, `1 file "new" 7`)
	})
	for _, path := range []string{filepath.Join(moved, "old"), filepath.Join(box, "new")} {
		if text, err := os.ReadFile(path); string(text) != "content" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}

// Without trusted keys nobody is served any more, and keys that are trusted later are.
func TestReloadWithoutKeys(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		idle := w.alice()
		w.server.ReloadKeys(nil)
		_, err := idle.RoundTrip(w.Context(), nil)
		mustRefuse(w.T, err, wire.AbortRefused, "does not trust")
		_, err = w.connect(w.key)
		mustBe(w.T, err, secure.ErrRefused)
		w.server.ReloadKeys(w.trusted)
		w.mustPush(w.alice())
	})
}

// A limit that a key gets during a copy slows that copy down.
func TestNewBandwidthOfAKey(t *testing.T) {
	inWorld(t, func(w *world) {
		slow(w)
		w.config.Limits.Bandwidth = 1 << 20
		w.local.Put("/home/large", strings.Repeat(largeText, 4))
	}, func(w *world) {
		began := time.Now()
		ended := w.pushing(w.alice(), "box/large")
		w.server.ReloadKeys(trust{w.key.Public(): {Name: "alice", Key: w.key.Public(), Bandwidth: 128 << 10}})
		must(w.T, <-ended)
		if got := time.Since(began); got < time.Minute { // virtual
			w.Errorf("24 MiB took %s, with 128 KiB/s from 5 s on", got)
		}
	})
}

// The connections of a key that is removed end after what they are doing; those of other keys go on.
func TestRemovedKey(t *testing.T) {
	inWorld(t, func(w *world) { slow(w); w.config.Limits.Transfers = 1 }, func(w *world) {
		bob := newKey(w.T)
		keys := trust{bob.Public(): {Name: "bob", Key: bob.Public()}}
		w.trusted[bob.Public()] = keys[bob.Public()]
		w.local.Put("/home/small", "small")
		stays, err := w.connect(bob)
		must(w.T, err)
		busy, idle, waits := w.alice(), w.alice(), w.alice()
		ended := w.pushing(busy, "box/large")
		waiting := make(chan error, 1)
		go func() {
			_, err := waits.Push(w.Context(), w.copyOf("small", "box/small"))
			waiting <- err
		}()
		synctest.Wait()
		w.server.ReloadKeys(keys)
		_, err = idle.RoundTrip(w.Context(), nil)
		if refusal, is := errors.AsType[*protocol.Refusal](err); !is || refusal.Code != wire.AbortRefused {
			w.Errorf("an idle client: %v", err)
		}
		mustRefuse(w.T, <-waiting, wire.AbortRefused, "does not trust")
		must(w.T, <-ended)
		if _, err := busy.RoundTrip(w.Context(), nil); err == nil {
			w.Error("another request was served")
		}
		_, err = w.connect(w.key)
		mustBe(w.T, err, secure.ErrRefused)
		w.mustPush(stays)
	})
}

// A client that makes no request for long is disconnected with the reason.
func TestIdleConnection(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		time.Sleep(4 * time.Minute)
		_, err := c.RoundTrip(w.Context(), nil)
		must(w.T, err)
		time.Sleep(6 * time.Minute)
		_, err = c.RoundTrip(w.Context(), nil)
		refusal, is := errors.AsType[*protocol.Refusal](err)
		if !is || refusal.Code != wire.AbortPeer || !strings.Contains(refusal.Text, "made no request") {
			w.Errorf("got %v", err)
		}
	})
}

// A peer that dies in the middle of a copy leaves what can be resumed, and no permit.
func TestPeerThatDies(t *testing.T) {
	inWorld(t, func(w *world) { slow(w); w.config.Limits.Transfers = 1 }, func(w *world) {
		c := w.alice()
		ended := w.pushing(c, "box/large")
		time.Sleep(10 * time.Second)
		must(w.T, c.exchange.conn.Close())
		if err := <-ended; err == nil {
			w.Error("the copy succeeded")
		}
		summary, err := w.alice().Push(w.Context(), w.copyOf("large", "box/large"))
		must(w.T, err)
		if summary.Resumed < 4<<20 {
			w.Errorf("resumed at %d", summary.Resumed)
		}
		if records := w.records(); !errors.Is(records[0].Err, wire.ErrPeerLost) || records[0].Bytes == 0 {
			w.Errorf("the record is %+v", records[0])
		}
	})
}

// The end of Serve's context ends what runs at once.
func TestServeIsEnded(t *testing.T) {
	inWorld(t, slow, func(w *world) {
		ended := w.pushing(w.alice(), "box/large")
		w.cancel()
		if err := <-ended; err == nil {
			w.Error("the copy succeeded")
		}
		w.serving.Wait()
	})
}

// A panic ends its own connection, is counted, and leaves nothing locked.
func TestPanic(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		bystander := w.alice()
		defer bystander.Close()
		c := w.alice()
		w.fault.Store(&disktest.Fault{Err: errPanic})
		_, err := w.list(c, "box", 0)
		if err == nil {
			w.Fatal("the list succeeded")
		}
		w.fault.Store(nil)
		must(w.T, c.Close())
		w.mustServe(bystander)
		w.mustPush(bystander)
		synctest.Wait()
		if got := w.server.Status(); got.Totals.Bugs != 1 || got.Totals.Failed != 1 || len(got.Connections) != 1 {
			w.Errorf("the status is %+v", got)
		}
		if len(w.observed.bugs) != 1 || !w.happened("ended list") || !w.happened("disconnected") {
			w.Errorf("the events are %q", w.observed.events)
		}
	})
}

// A panic in a copy ends that copy and its connection with an internal error, is counted, and disturbs no other copy.
func TestPanicInACopy(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.local.Put("/home/a", "content")
		bystander := w.alice()
		defer bystander.Close()
		c := w.alice()
		w.faulty, w.left = ".a.dma-copy-part", map[string]int{"server": 2} // of the call that panics
		w.fault.Store(&disktest.Fault{Err: errPanic})
		_, err := c.Push(w.Context(), w.copyOf("a", "box/a"))
		if aborted, is := errors.AsType[*native.PeerAborted](err); !is || aborted.Code != wire.AbortFailure ||
			!strings.Contains(aborted.Text, "internal error") {
			w.Errorf("got %v", err)
		}
		w.fault.Store(nil)
		must(w.T, c.Close())
		w.mustPush(bystander)
		w.mustPush(w.alice())
		synctest.Wait()
		if got := w.server.Status(); got.Totals.Bugs != 1 || len(w.observed.bugs) != 1 {
			w.Errorf("the status is %+v", got)
		}
	})
}

// failedConn is a connection that a panic in a goroutine of its own has ended.
type failedConn struct {
	*comch.PipeEnd
	failed *job.Defect
}

func (c failedConn) Failed() error { return c.failed }

// panicOf is a panic that a driver has recovered, and with which it has ended a connection.
type panicOf struct{ value string }

func (p panicOf) Error() string        { return p.value }
func (p panicOf) Panic() (any, []byte) { return p.value, []byte("stack") }

// brokenConn is a connection that an error has ended, and that panics when it is closed.
type brokenConn struct {
	*comch.PipeEnd
	failed error
}

func (c brokenConn) Failed() error { return c.failed }

func (c brokenConn) Close() error { panic("a defect of the end") }

// A panic in the driver of a device ends the connections that it concerns, and so does one while a connection is
// released. Both are counted, and the server goes on.
func TestPanicOfADriver(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		bystander := w.alice()
		defer bystander.Close()
		client, server := comch.Pipe(testMessage)
		must(w.T, client.Close())
		err := w.server.Serve(w.ctx, Incoming{
			Conn: brokenConn{server, panicOf{"a defect of the driver"}}, Memory: fixed(&bus{}), Function: "b1:00.1",
			Side: wire.DPU,
		})
		if d := job.DefectIn(err); d == nil || d.Value != "a defect of the driver" {
			w.Errorf("got %v", err)
		}
		w.mustServe(bystander)
		if got := w.server.Status(); got.Totals.Bugs != 2 || got.Pending != 0 {
			w.Errorf("the status is %+v", got)
		}
		want := []any{"a defect of the driver", "a defect of the end"}
		if !slices.Equal(w.observed.bugs, want) || !w.happened("disconnected") {
			w.Errorf("the defects are %v", w.observed.bugs)
		}
	})
}

// A panic of the connection itself is counted like one of a request, and has its stack.
func TestPanicOfAConnection(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		bystander := w.alice()
		defer bystander.Close()
		client, server := comch.Pipe(testMessage)
		must(w.T, client.Close())
		err := w.server.Serve(w.ctx, Incoming{
			Conn: failedConn{server, &job.Defect{Value: "a defect"}}, Memory: fixed(&bus{}), Function: "b1:00.1",
			Side: wire.DPU,
		})
		if _, is := errors.AsType[*job.Defect](err); !is {
			w.Errorf("got %v", err)
		}
		refused := w.server.refusing(nil)
		refused(nil, io.EOF)
		refused(&net.TCPAddr{}, &job.Defect{Value: "a defect of the listener"})
		w.mustServe(bystander)
		if got := w.server.Status(); got.Totals.Bugs != 2 || len(w.observed.bugs) != 2 {
			w.Errorf("the status is %+v", got)
		}
	})
}

// A panic of a sign of life ends the request with it, also if its call succeeds.
func TestPanicOfASignOfLife(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		client := w.alice()
		defer client.Close()
		synctest.Wait()
		for name, result := range map[string]error{"a call that fails": io.EOF, "a call that succeeds": nil} {
			ahead := func() int { panic("a defect") }
			err := w.server.connections[1].whileWorking(w.Context(), ahead, func(ctx context.Context) error {
				<-ctx.Done()
				return result
			})
			if _, is := errors.AsType[*job.Defect](err); !is {
				w.Errorf("%s: %v", name, err)
			}
		}
	})
}

// The observer is told of everything in order, with what each side says about itself.
func TestObserver(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.local.Put("/home/a", "content")
		c := w.alice()
		if peer := c.Peer(); peer.Name != "dpu7" || peer.User != "svc" {
			w.Errorf("the daemon is %+v", peer)
		}
		_, err := c.Push(w.Context(), w.copyOf("a", "box/a"))
		must(w.T, err)
		_, err = c.Pull(w.Context(), w.copyOf("b", "box/none"))
		mustRefuse(w.T, err, wire.AbortSource, "does not exist")
		must(w.T, c.Close())
		want := []string{
			"connected", "authenticated alice", "began push", "ended push", "began pull", "ended pull", "disconnected",
		}
		records := w.records()
		if !slices.Equal(w.observed.events, want) {
			w.Errorf("got %q", w.observed.events)
		}
		push, pull := records[0], records[1]
		if push.Session.ID != 1 || push.Session.Function != "b1:00.1" || push.Session.KeyName != "alice" ||
			push.Session.Fingerprint != w.key.Public().String() || push.Session.Software != "test 1" ||
			push.Request != 1 || push.Bytes != 7 || push.Entries != 1 || push.Code != 0 || push.Err != nil ||
			push.Share != "box" || push.Path != "a" || push.Summary.Sum.String() == "" {
			w.Errorf("the push is %+v", push)
		}
		if push.Session.Machine != "lab" || push.Session.User != "ann" || push.Local != "/home/a" ||
			pull.Local != "/home/b" {
			w.Errorf("the command says it is %+v with %q and %q", push.Session, push.Local, pull.Local)
		}
		if pull.Request != 2 || pull.Code != int(wire.AbortSource) || !errors.Is(pull.Err, job.ErrSource) {
			w.Errorf("the pull is %+v", pull)
		}
	})
}

// What the peer says when it ends a copy is recorded without the internal state in which it came.
func TestRecordOfAnAbortedCopy(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.remote.Put("/srv/box/a", "content")
		c := w.alice()
		_, err := c.Pull(w.Context(), w.copyOf("none/a", "box/a"))
		mustBe(w.T, err, job.ErrTarget)
		must(w.T, c.Close())
		if got := w.records()[0]; !strings.HasPrefix(got.Err.Error(), "the peer aborted with code 5: ") {
			w.Errorf("the pull to nowhere is %+v", got)
		}
	})
}

// The status shows how far the running copies are.
func TestStatusOfACopy(t *testing.T) {
	inWorld(t, slow, func(w *world) {
		ended := w.pushing(w.alice(), "box/large")
		time.Sleep(20 * time.Second)
		got := w.server.Status().Connections
		if len(got) != 1 || got[0].Request == nil || got[0].Request.Path != "large" || got[0].Moved < 4<<20 ||
			got[0].Total != 6<<20 {
			w.Errorf("the connections are %+v", got)
		}
		must(w.T, <-ended)
	})
}

// A share whose file system hangs ends the connection of the client, and nothing else.
func TestShareThatHangs(t *testing.T) {
	for name, request := range map[string]func(w *world, c *Client) error{
		"list": func(w *world, c *Client) error { _, err := w.list(c, "box", 0); return err },
		"pull": func(w *world, c *Client) error { _, err := c.Pull(w.Context(), w.copyOf("b", "box/a")); return err },
		"remove": func(w *world, c *Client) error {
			return c.Remove(w.Context(), removing(protocol.Place{Share: "box"}, "a"), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			inWorld(t, func(w *world) {
				w.config.Log = zerolog.New(&log).Level(zerolog.WarnLevel)
				w.remote.Put("/srv/box/a", "1")
			}, func(w *world) {
				hang := make(chan struct{})
				w.fault.Store(&disktest.Fault{Hang: hang})
				c := w.alice()
				err := request(w, c)
				if refusal, is := errors.AsType[*protocol.Refusal](err); !is || !refusal.Final {
					w.Errorf("got %v", err)
				}
				if name != "pull" {
					w.mustHaveStalled(&log, "the daemon waits for the file system of the share to answer "+name+
						" of box; asked 30.0s ago, last progress 30.0s ago")
				}
				other := w.alice()
				_, err = other.RoundTrip(w.Context(), nil)
				must(w.T, err)
				w.fault.Store(nil)
				close(hang)
				w.mustPush(other)
				must(w.T, other.Close())
			})
		})
	}
}
