package sshstart

import (
	"errors"
	"net"
	"os/exec"
	"strconv"
	"sync"
)

// maxRelayed is the most connections through ssh at once: a control connection, and one for each lane.
const maxRelayed = 32

// relay passes connections to a loopback address of this machine on to the far side, each through a process of ssh.
type relay struct {
	far      *Far
	listener *net.TCPListener
	slots    chan struct{}

	serving sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	running map[*exec.Cmd]struct{}
}

// Relay returns an address of this machine from which ssh passes connections on to the far side, until Close. Other
// users of this machine can connect to it, too; the far side serves only the key of the request.
func (f *Far) Relay() (string, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", err
	}
	f.relay = &relay{
		far: f, listener: listener, slots: make(chan struct{}, maxRelayed), running: make(map[*exec.Cmd]struct{}),
	}
	f.relay.serving.Go(f.relay.accept)
	return listener.Addr().String(), nil
}

func (r *relay) accept() {
	for {
		conn, err := r.listener.AcceptTCP()
		if err != nil {
			return
		}
		r.slots <- struct{}{}
		r.serving.Go(func() {
			defer func() { <-r.slots }()
			if err := r.pass(conn); err != nil && !errors.Is(err, net.ErrClosed) {
				_, _ = r.far.messages.Write([]byte("connection through ssh: " + err.Error() + "\n"))
			}
		})
	}
}

// pass lets ssh use a connection as its stdin and stdout until either side ends.
func (r *relay) pass(conn *net.TCPConn) error {
	socket, err := conn.File()
	err = errors.Join(err, conn.Close())
	if err != nil {
		return err
	}
	target := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(r.far.Port)))
	process := command(r.far.login, []string{"-W", target})
	process.Stdin, process.Stdout, process.Stderr = socket, socket, r.far.messages
	r.mu.Lock()
	if r.closed {
		err = net.ErrClosed
	} else if err = process.Start(); err == nil {
		r.running[process] = struct{}{}
	}
	r.mu.Unlock()
	if closed := socket.Close(); err != nil {
		return errors.Join(err, closed)
	}
	_ = process.Wait() // what went wrong is in its messages
	r.mu.Lock()
	delete(r.running, process)
	r.mu.Unlock()
	return nil
}

func (r *relay) close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for process := range r.running {
		_ = process.Process.Kill()
	}
	r.mu.Unlock()
	r.serving.Wait()
	return err
}
