package network

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// mustBeDefect checks that an error is a panic with a function in its stack.
func mustBeDefect(t *testing.T, err error, within string) {
	t.Helper()
	defect, is := errors.AsType[*job.Defect](err)
	if !is || !strings.Contains(string(defect.Stack), within) {
		t.Errorf("%v, want a defect within %s", err, within)
	}
}

// panics is what a connection has read already.
type panics struct{}

func (panics) Read([]byte) (int, error) { panic("a defect") }

// ends returns both ends of a TCP connection.
func ends(t *testing.T) (server, client *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	accepted, err := listener.Accept()
	must(t, err)
	return accepted.(*net.TCPConn), dialed.(*net.TCPConn)
}

// A panic of the reader or the writer of a control connection ends that connection. After one of the reader the peer
// can still be told.
func TestPanicEndsTheConnection(t *testing.T) {
	message := []byte{applicationData, 3, 3, 0, 1, 'x'}
	for _, name := range []string{"read", "write"} {
		t.Run(name, func(t *testing.T) {
			socket, peerSocket := ends(t)
			var already io.Reader = panics{}
			if name == "write" {
				already = strings.NewReader("")
			}
			c, err := newControl(socket, already, &Settings{})
			must(t, err)
			peer, err := newControl(peerSocket, strings.NewReader(""), &Settings{})
			must(t, err)
			if name == "write" {
				c.out.waiting = make([]waitingMessage, 1) // of no Send
				c.run(c.write)
			}
			<-c.Done()
			_, err = c.Recv(patient(t))
			mustBeDefect(t, err, name)
			mustBeDefect(t, c.Failed(), name)
			must(t, c.Send(patient(t), message))
			got, err := peer.Recv(patient(t))
			if err != nil || !bytes.Equal(got, message) {
				t.Errorf("the peer received %q, %v", got, err)
			}
			must(t, c.Close())
			if _, err := peer.Recv(patient(t)); !errors.Is(err, comch.ErrPeerLost) {
				t.Errorf("the peer: %v", err)
			}
			must(t, peer.Close())
		})
	}
}

// A panic while a listener finds out what a connection is for ends that connection, and is told to whom refusals are.
func TestPanicOfTheListenerEndsTheConnection(t *testing.T) {
	refused := make(refusals, 1)
	m := newMachines(t, refused.settings)
	m.sessions.mu.Lock()
	m.sessions.bySecret = map[secret]*session{{}: nil} // which no code expects
	m.sessions.mu.Unlock()
	conn := m.plain(t)
	dataConn(func(*tls.Config) {})(t, m, conn)
	mustBeDefect(t, <-refused, "expect")
	mustBeClosed(t, conn)
	m.sessions.mu.Lock()
	clear(m.sessions.bySecret)
	m.sessions.mu.Unlock()
	m.mustBeEmpty(t)
	m.meet(t).close(t)
}
