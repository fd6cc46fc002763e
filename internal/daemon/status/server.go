package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/daemon/unixsocket"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// SocketName is the name of the socket in the runtime directory of the daemon, unless it was given another.
const SocketName = "status.sock"

const (
	answering = 8               // processes that are answered at once; more wait
	grace     = 5 * time.Second // for a process that does not read its answer
)

// Socket is the socket of a daemon, on which it tells its status.
type Socket struct {
	listener *net.UnixListener
	daemon   Daemon
	log      zerolog.Logger
	allowed  func(uid uint32) bool
	permits  chan struct{}
	serving  sync.WaitGroup
}

// Listen creates the socket with mode 0600 and answers until Close. A socket that a killed daemon left behind
// is replaced, see unixsocket.Listen. Defects of this program are logged.
func Listen(path string, daemon Daemon, log zerolog.Logger) (*Socket, error) {
	allowed := func(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }
	return listen(path, daemon, log, allowed)
}

func listen(path string, daemon Daemon, log zerolog.Logger, allowed func(uid uint32) bool) (*Socket, error) {
	listener, err := unixsocket.Listen(path, 0o600)
	if err != nil {
		return nil, exit.Errorf(exit.Usage, "name another path with --socket PATH", "serve dma-copy status: %w", err)
	}
	s := &Socket{
		listener: listener, daemon: daemon, log: log, allowed: allowed, permits: make(chan struct{}, answering),
	}
	s.serving.Go(s.accept)
	return s, nil
}

func (s *Socket) accept() {
	for {
		s.permits <- struct{}{}
		conn, err := s.listener.AcceptUnix()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			<-s.permits
			time.Sleep(100 * time.Millisecond) // there are no descriptors, for now
			continue
		}
		if err != nil {
			return
		}
		s.serving.Go(func() {
			defer func() { <-s.permits }()
			if defect := job.DefectIn(s.answer(conn)); defect != nil {
				s.log.Error().Interface("panic", defect.Value).Bytes("stack", defect.Stack).
					Msg("a defect of dma-copy keeps the daemon from telling its status")
			}
		})
	}
}

// answer sends the document as one line. A process of another user gets none; mode 0600 keeps most of them out. The
// error, which may be a panic, is why there was no answer.
func (s *Socket) answer(conn *net.UnixConn) (err error) {
	defer conn.Close()
	defer job.Recover(&err)
	uid, err := peerUID(conn)
	if err != nil || !s.allowed(uid) {
		return err
	}
	line, err := json.Marshal(s.daemon.Document(time.Now()))
	if err != nil {
		return err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(grace)); err != nil {
		return err
	}
	_, err = conn.Write(append(line, '\n')) // the other process may have left
	return err
}

func peerUID(conn *net.UnixConn) (uid uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(controlErr, err); err != nil {
		return 0, err
	}
	return peer.Uid, nil
}

// Close ends the answers, waits for those that are being sent, and removes the socket.
func (s *Socket) Close() error {
	err := s.listener.Close()
	s.serving.Wait()
	if err != nil {
		return fmt.Errorf("close the socket of dma-copy status: %w", err)
	}
	return nil
}
