//go:build cgo

package comch_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// peers is the number of connections of one listener in these tests.
const peers = 16

func listenMany(t *testing.T, s docatest.Sides, connections int) *comch.Listener {
	t.Helper()
	listener, err := comch.ListenMany(s.DPU, s.OpenRepresentor(t), serverName, connections)
	mustBe(t, err, nil)
	t.Cleanup(func() { mustBe(t, listener.Close(), nil) })
	return listener
}

func mustTalk(t *testing.T, one, other comch.Conn) {
	t.Helper()
	mustSend(t, one, []byte("ping"))
	mustReceive(t, other, []byte("ping"))
	mustSend(t, other, []byte("pong"))
	mustReceive(t, one, []byte("pong"))
}

// sendWithoutWaiting queues messages, some of which remain queued if the peer does not receive.
func sendWithoutWaiting(t *testing.T, conn comch.Conn, count int) {
	t.Helper()
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	for range count {
		if err := conn.Send(over, make([]byte, conn.MaxMessage())); err != nil {
			mustBe(t, err, errEnough)
		}
	}
}

func signal(t *testing.T, process *os.Process, s syscall.Signal) {
	t.Helper()
	mustBe(t, process.Signal(s), nil)
}

// The process of one of many peers is stopped, with and without messages on their way to it.
func TestStoppedPeerDelaysNoOther(t *testing.T) {
	dir := t.TempDir()
	s := docatest.OpenSidesIn(t, dir, "")
	listener := listenMany(t, s, peers)
	process := startConnected(t, dir)
	stopped := accept(t, listener)
	mustReceive(t, stopped, []byte("last words"))
	signal(t, process, syscall.SIGSTOP)
	sendWithoutWaiting(t, stopped, 3000)
	for i := range peers - 1 {
		host := dial(t, s)
		dpu := accept(t, listener)
		mustTalk(t, host, dpu)
		mustTalk(t, dpu, host)
		if i%2 == 0 { // some leave while the other is stopped
			mustClose(t, host)
			mustHaveEnded(t, dpu, comch.ErrPeerLost)
		}
	}
	mustClose(t, stopped)
	mustTalk(t, dial(t, s), accept(t, listener))
}

func TestListenerHasABoundedNumberOfConnections(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listenMany(t, s, 2)
	first, firstDPU := dial(t, s), accept(t, listener)
	second, secondDPU := dial(t, s), accept(t, listener)
	dialer := comch.NewDialer(s.Host, serverName, comch.Within(longWait))
	conn, err := dialer.Dial(t.Context())
	mustBe(t, err, nil)
	mustHaveEnded(t, conn, comch.ErrPeerLost)
	mustClose(t, conn)
	if listener.Refused() == 0 { // more than one, if it was refused before Dial knew of the connection, and tried again
		t.Error("no peer was refused")
	}
	mustTalk(t, first, firstDPU)
	mustTalk(t, second, secondDPU)
	mustClose(t, first)
	mustHaveEnded(t, firstDPU, comch.ErrPeerLost)
	conn, err = dialer.Redial(t.Context())
	mustBe(t, err, nil)
	mustTalk(t, conn, accept(t, listener))
	mustClose(t, conn)
}

func TestListenerClosesWhileItAccepts(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listenMany(t, s, peers)
	conn := dial(t, s)
	accepted := accept(t, listener)
	const accepting = 4
	results := make(chan error, accepting)
	for range accepting {
		go func() {
			_, err := listener.Accept(t.Context(), comch.Wait{})
			results <- err
		}()
	}
	mustBe(t, listener.Close(), nil)
	for range accepting {
		mustBe(t, <-results, comch.ErrClosed)
	}
	mustHaveEnded(t, conn, comch.ErrPeerLost)
	mustHaveEnded(t, accepted, comch.ErrClosed)
}

// The zero Wait has no end of its own.
func TestAcceptWithoutLimit(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listenMany(t, s, peers)
	accepted := make(chan error, 1)
	go func() {
		_, err := listener.Accept(t.Context(), comch.Wait{})
		accepted <- err
	}()
	dial(t, s)
	mustBe(t, <-accepted, nil)
}

func newFinder(t *testing.T, s docatest.Sides) *comch.Finder {
	t.Helper()
	finder := comch.NewFinder(s.Host, serverName)
	t.Cleanup(func() {
		for range 2 {
			mustBe(t, finder.Close(), nil)
		}
	})
	return finder
}

func find(t *testing.T, finder *comch.Finder) comch.Conn {
	t.Helper()
	conn, err := finder.Find(t.Context())
	mustBe(t, err, nil)
	t.Cleanup(func() { mustClose(t, conn) })
	return conn
}

// A server that starts later is found, and so is the next one; the connections do not depend on the Finder.
func TestFinderFindsOneServerAfterTheOther(t *testing.T) {
	s := docatest.OpenSides(t, "")
	finder := newFinder(t, s)
	ctx, cancel := context.WithTimeoutCause(t.Context(), shortWait, errEnough)
	defer cancel()
	_, err := finder.Find(ctx)
	mustBe(t, err, errEnough)
	for range 2 {
		listener := listen(t, s)
		host := find(t, finder)
		dpu := accept(t, listener)
		mustTalk(t, host, dpu)
		mustBe(t, finder.Close(), nil)
		mustTalk(t, dpu, host)
		mustBe(t, listener.Close(), nil)
		mustHaveEnded(t, host, comch.ErrPeerLost)
	}
}

// findInVain has a Finder make so many attempts to connect to a server that is not there, or refuses this host.
func findInVain(t *testing.T, finder *comch.Finder, attempts int) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	finder.Interval = func() time.Duration { // is called before each
		if attempts--; attempts < 0 {
			cancel(errEnough)
		}
		return comch.FindInterval
	}
	_, err := finder.Find(ctx)
	mustBe(t, err, errEnough)
	finder.Interval = nil
}

// Attempts that fail leave nothing open but one client.
func TestFinderLeavesNothingBehind(t *testing.T) {
	s := docatest.OpenSides(t, "")
	finder := newFinder(t, s)
	handles := -1
	for range 2 {
		findInVain(t, finder, 5)
		if now := len(doca.OpenHandles()); handles < 0 {
			handles = now
		} else if now != handles {
			t.Errorf("%d open handles, then %d", handles, now)
		}
	}
}

// A server that refuses this host is reported once, and found when it no longer refuses.
func TestFinderReportsARefusalOnce(t *testing.T) {
	s := docatest.OpenSides(t, "max_clients=1")
	listener := listen(t, s)
	first := dial(t, s)
	accept(t, listener)
	finder := newFinder(t, s)
	var reported []error
	finder.Refused = func(err error) { reported = append(reported, err) }
	findInVain(t, finder, 3)
	if len(reported) != 1 || !errors.Is(reported[0], comch.ErrRefused) {
		t.Errorf("reported %v, want one refusal", reported)
	}
	mustClose(t, first)
	mustTalk(t, find(t, finder), accept(t, listener))
}

func TestFinderReportsTheDevice(t *testing.T) {
	s := docatest.OpenSides(t, "")
	finder := comch.NewFinder(s.DPU, serverName)
	_, err := finder.Find(t.Context())
	mustBe(t, err, doca.CodeNotSupported)
	mustBe(t, finder.Close(), nil)
}
