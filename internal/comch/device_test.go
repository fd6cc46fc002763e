//go:build cgo

package comch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

const (
	serverName = "comch test"
	longWait   = 30 * time.Second      // for what comes
	shortWait  = 10 * time.Millisecond // for what does not
)

func listen(t *testing.T, s docatest.Sides) *comch.Listener {
	t.Helper()
	listener, err := comch.Listen(s.DPU, s.OpenRepresentor(t), serverName)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := listener.Close(); err != nil {
				t.Errorf("closing the listener: %v", err)
			}
		}
	})
	return listener
}

func dial(t *testing.T, s docatest.Sides) comch.Conn {
	t.Helper()
	conn, err := comch.NewDialer(s.Host, serverName, comch.Within(longWait)).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, conn) })
	return conn
}

func accept(t *testing.T, listener *comch.Listener) comch.Conn {
	t.Helper()
	conn, err := listener.Accept(t.Context(), comch.Within(longWait))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestConnectionOverTheDeviceConforms(t *testing.T) {
	testConn(t, func(t *testing.T) (host, dpu comch.Conn) {
		s := docatest.OpenSides(t, "")
		listener := listen(t, s)
		return dial(t, s), accept(t, listener)
	})
}

func TestDialWaitsForListener(t *testing.T) {
	s := docatest.OpenSides(t, "")
	dialled := make(chan error, 1)
	var conn comch.Conn
	go func() {
		var err error
		conn, err = comch.NewDialer(s.Host, serverName, comch.Within(longWait)).Dial(t.Context())
		dialled <- err
	}()
	select {
	case err := <-dialled:
		t.Fatalf("connected without a listener: %v", err)
	case <-time.After(shortWait):
	}
	listener := listen(t, s)
	mustBe(t, <-dialled, nil)
	mustSend(t, conn, []byte("here"))
	mustReceive(t, accept(t, listener), []byte("here"))
	mustClose(t, conn)
}

func TestPeerAbsent(t *testing.T) {
	s := docatest.OpenSides(t, "")
	_, err := comch.NewDialer(s.Host, serverName, comch.Within(shortWait)).Dial(t.Context())
	mustBe(t, err, comch.ErrPeerAbsent)
	listener := listen(t, s)
	_, err = listener.Accept(t.Context(), comch.Within(shortWait))
	mustBe(t, err, comch.ErrPeerAbsent)
	_, err = listener.AcceptOnly(t.Context(), comch.Within(shortWait))
	mustBe(t, err, comch.ErrPeerAbsent)
}

func TestContextEndsTheWait(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listen(t, s)
	for name, wait := range map[string]func(context.Context) error{
		"Dial": func(ctx context.Context) error {
			_, err := comch.NewDialer(s.Host, "an unused name", comch.Within(longWait)).Dial(ctx)
			return err
		},
		"Accept": func(ctx context.Context) error {
			_, err := listener.Accept(ctx, comch.Within(longWait))
			return err
		},
		"AcceptOnly": func(ctx context.Context) error {
			_, err := listener.AcceptOnly(ctx, comch.Within(longWait))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(shortWait, func() { cancel(errEnough) })
			defer timer.Stop()
			mustBe(t, wait(ctx), errEnough)
			mustBe(t, wait(ctx), errEnough) // it has ended already
		})
	}
}

// An error of the device ends the wait at once.
func TestDeviceRefuses(t *testing.T) {
	s := docatest.OpenSides(t, "")
	_, err := comch.NewDialer(s.DPU, serverName, comch.Within(longWait)).Dial(t.Context())
	mustBe(t, err, doca.CodeNotSupported)
	rep := s.OpenRepresentor(t)
	_, err = comch.Listen(s.Host, rep, serverName)
	mustBe(t, err, doca.CodeNotSupported)
	listener, err := comch.Listen(s.DPU, rep, serverName)
	mustBe(t, err, nil)
	_, err = comch.Listen(s.DPU, rep, serverName)
	mustBe(t, err, doca.CodeAlreadyExist)
	mustBe(t, listener.Close(), nil)
}

func TestAcceptOnlyRefusesOthers(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listen(t, s)
	first := dial(t, s)
	only, err := listener.AcceptOnly(t.Context(), comch.Within(longWait))
	mustBe(t, err, nil)
	for range 3 {
		mustHaveEnded(t, dial(t, s), comch.ErrPeerLost)
		mustSend(t, first, []byte("still here"))
		mustReceive(t, only, []byte("still here"))
		mustSend(t, only, []byte("so am I"))
		mustReceive(t, first, []byte("so am I"))
	}
}

// Producers and consumers of a connection that the peer has ended fail as its messages do.
func TestFastPathOfALostPeer(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listen(t, s)
	host := dial(t, s)
	dpu, err := listener.AcceptOnly(t.Context(), comch.Within(longWait))
	mustBe(t, err, nil)
	mustClose(t, dpu)
	mustHaveEnded(t, host, comch.ErrPeerLost)
	region, err := s.Host.Alloc(1<<12, doca.LocalWrite|doca.RemoteWrite)
	mustBe(t, err, nil)
	over := host.(comch.FastPath)
	_, err = over.NewConsumer(t.Context(), region, doca.ConsumerConfig{Depth: 1})
	mustBe(t, err, comch.ErrPeerLost)
	_, err = over.NewProducer(1)
	mustBe(t, err, comch.ErrPeerLost)
	mustBe(t, region.Close(), nil)
}

// A host that is turned away is served when the server is free, within one wait.
func TestRedialUntilTheServerIsFree(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listen(t, s)
	first := dial(t, s)
	_, err := listener.AcceptOnly(t.Context(), comch.Within(longWait))
	mustBe(t, err, nil)

	dialer := comch.NewDialer(s.Host, serverName, comch.Within(longWait))
	conn, err := dialer.Dial(t.Context())
	mustBe(t, err, nil)
	for range 3 {
		mustHaveEnded(t, conn, comch.ErrPeerLost)
		mustClose(t, conn)
		conn, err = dialer.Redial(t.Context())
		mustBe(t, err, nil)
	}
	mustHaveEnded(t, conn, comch.ErrPeerLost)
	mustClose(t, conn)
	mustClose(t, first)
	mustBe(t, listener.Close(), nil)

	next := listen(t, s)
	conn, err = dialer.Redial(t.Context())
	mustBe(t, err, nil)
	mustSend(t, conn, []byte("my turn"))
	mustReceive(t, accept(t, next), []byte("my turn"))
	mustClose(t, conn)
}

// The wait is one for all attempts, whether the last of them were turned away or found no server.
func TestRedialGivesUp(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listen(t, s)
	dial(t, s)
	_, err := listener.AcceptOnly(t.Context(), comch.Within(longWait))
	mustBe(t, err, nil)
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprint("gone ", gone), func(t *testing.T) {
			err := answerInTime(func(wait comch.Wait) error {
				dialer := comch.NewDialer(s.Host, serverName, wait)
				conn, err := dialer.Dial(t.Context())
				if err != nil {
					return err
				}
				mustHaveEnded(t, conn, comch.ErrPeerLost)
				if gone {
					mustBe(t, listener.Close(), nil)
				}
				for err == nil {
					mustClose(t, conn)
					conn, err = dialer.Redial(t.Context())
				}
				return err
			})
			mustBe(t, err, comch.ErrTurnedAway)
		})
	}
}

// answerInTime dials with longer and longer waits, until the server has answered before the end of one.
func answerInTime(dial func(comch.Wait) error) error {
	for wait := shortWait; ; wait *= 2 {
		if err := dial(comch.Within(wait)); !errors.Is(err, comch.ErrPeerAbsent) || wait > longWait {
			return err
		}
	}
}

func TestContextEndsARedial(t *testing.T) {
	s := docatest.OpenSides(t, "")
	dialer := comch.NewDialer(s.Host, serverName, comch.Within(longWait))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	_, err := dialer.Redial(ctx)
	mustBe(t, err, errEnough)
}

func TestListenWhenFree(t *testing.T) {
	s := docatest.OpenSides(t, "")
	first, rep := listen(t, s), s.OpenRepresentor(t)
	next := func(ctx context.Context, wait time.Duration) (*comch.Listener, error) {
		return comch.ListenWhenFree(ctx, s.DPU, rep, []string{serverName}, comch.Within(wait))
	}
	_, err := next(t.Context(), shortWait)
	mustBe(t, err, doca.CodeAlreadyExist)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	_, err = next(ctx, longWait)
	mustBe(t, err, errEnough)

	timer := time.AfterFunc(shortWait, func() { _ = first.Close() })
	defer timer.Stop()
	second, err := next(t.Context(), longWait)
	mustBe(t, err, nil)
	mustBe(t, second.Close(), nil)

	_, err = comch.ListenWhenFree(t.Context(), s.Host, rep, []string{serverName}, comch.Within(longWait))
	mustBe(t, err, doca.CodeNotSupported)
}

func TestDialOnce(t *testing.T) {
	s := docatest.OpenSides(t, "")
	_, err := comch.DialOnce(t.Context(), s.Host, serverName)
	mustBe(t, err, doca.ErrNoServer)
	listener := listen(t, s)
	conn, err := comch.DialOnce(t.Context(), s.Host, serverName)
	mustBe(t, err, nil)
	mustSend(t, conn, []byte("here"))
	mustReceive(t, accept(t, listener), []byte("here"))
	mustClose(t, conn)
}

// A flood of messages from another host neither reaches the accepted peer nor stops it.
func TestAcceptOnlyIsNotFlooded(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listen(t, s)
	first := dial(t, s)
	only, err := listener.AcceptOnly(t.Context(), comch.Within(longWait))
	mustBe(t, err, nil)
	extra := dial(t, s)
	for extra.Send(patient(t), make([]byte, extra.MaxMessage())) == nil {
	}
	mustSend(t, first, []byte("still here"))
	mustReceive(t, only, []byte("still here"))
}

func TestListenerClose(t *testing.T) {
	s := docatest.OpenSides(t, "")
	listener := listen(t, s)
	conn := dial(t, s)
	accepted := accept(t, listener)
	waiting := make(chan error, 1)
	go func() {
		_, err := listener.AcceptOnly(t.Context(), comch.Within(longWait))
		waiting <- err
	}()
	mustBe(t, listener.Close(), nil)
	mustBe(t, <-waiting, comch.ErrClosed)
	mustHaveEnded(t, conn, comch.ErrPeerLost)
	mustHaveEnded(t, accepted, comch.ErrClosed)
	_, err := listener.Accept(t.Context(), comch.Within(longWait))
	mustBe(t, err, comch.ErrClosed)
}

// connectAndWait is the other process of TestPeerDies.
func connectAndWait(dir string) {
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: dir})
	if err == nil {
		err = connectAsHost(driver)
	}
	fmt.Println(err)
	os.Exit(1)
}

func connectAsHost(driver *doca.Driver) error {
	host, err := driver.OpenDevice("b1:00.0")
	if err != nil {
		return err
	}
	conn, err := comch.NewDialer(host, serverName, comch.Within(longWait)).Dial(context.Background())
	if err != nil {
		return err
	}
	if err := conn.Send(context.Background(), []byte("last words")); err != nil {
		return err
	}
	fmt.Println("connected")
	<-conn.Done()
	return fmt.Errorf("disconnected")
}

func TestPeerDies(t *testing.T) {
	dir := t.TempDir()
	s := docatest.OpenSidesIn(t, dir, "")
	listener := listen(t, s)
	killed := killConnected(t, dir)
	conn := accept(t, listener)
	killed()
	mustReceive(t, conn, []byte("last words"))
	mustHaveEnded(t, conn, comch.ErrPeerLost)
}

// killConnected starts a host and returns when it is connected. What it returns kills it.
func killConnected(t *testing.T, dir string) func() {
	t.Helper()
	child := startConnected(t, dir)
	return func() {
		mustBe(t, child.Kill(), nil)
		_, _ = child.Wait() // it says that it was killed
	}
}

// startConnected starts a host and returns when it is connected. It is killed at the end of the test.
func startConnected(t *testing.T, dir string) *os.Process {
	t.Helper()
	program, err := os.Executable()
	mustBe(t, err, nil)
	child := exec.CommandContext(t.Context(), program)
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	mustBe(t, err, nil)
	err = child.Start()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("these tests are emulated, and programs like them cannot be started by themselves here")
	}
	mustBe(t, err, nil)
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if line != "connected\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return child.Process
}

// A server that refuses exists, so a waiting client must not get ErrPeerAbsent.
func TestDialRefused(t *testing.T) {
	s := docatest.OpenSides(t, "max_clients=1")
	listen(t, s)
	dial(t, s)
	err := answerInTime(func(wait comch.Wait) error {
		_, err := comch.NewDialer(s.Host, serverName, wait).Dial(t.Context())
		return err
	})
	mustBe(t, err, comch.ErrRefused)

	small, err := s.DPU.Listen(s.OpenRepresentor(t), "small", doca.ChannelConfig{MaxMessage: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = small.Close() })
	_, err = comch.NewDialer(s.Host, "small", comch.Within(longWait)).Dial(t.Context())
	mustBe(t, err, comch.ErrMessageSize)
}
