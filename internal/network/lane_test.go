package network

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// joining is a connection that holds back what is written from the time that it is told to, so that it leaves in one
// piece.
type joining struct {
	net.Conn
	joins bool
	held  []byte
}

// Write implements net.Conn.
func (j *joining) Write(b []byte) (int, error) {
	if !j.joins {
		return j.Conn.Write(b)
	}
	j.held = append(j.held, b...)
	return len(b), nil
}

// answerAtOnce answers a data connection as a server does, and sends a frame outside of TLS together with the record of
// the answer.
func answerAtOnce(listener net.Listener, key *identity.Key, answer byte, frame []byte) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	config, err := secure.DataServer(key, secure.AnyKey)
	if err != nil {
		return err
	}
	j := &joining{Conn: conn}
	server := tls.Server(j, config)
	if _, err := io.ReadFull(server, make([]byte, greetingSize)); err != nil { // after the handshake
		return err
	}
	j.joins = true
	if _, err := server.Write([]byte{answer}); err != nil {
		return err
	}
	_, err = conn.Write(append(j.held, frame...))
	return err
}

// A frame that arrives together with the last record of TLS is not taken for a part of TLS.
func TestFrameBehindTheLastRecord(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, listener.Close()) }()
	sent := make(chan error, 1)
	go func() {
		sent <- answerAtOnce(listener, m.server, taken, []byte("\x00\x00\x00\x03\x00\x00\x00\x07content"))
	}()

	conn, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	dialed := newLane(conn, tls.Client, both.client.DataClient())
	must(t, within(patient(t), conn, func() error {
		return dialed.join(&Settings{}, secret{}, laneID{window: 1})
	}))
	must(t, <-sent)
	dialed.leaveTLS()
	var arrived atomic.Int64
	place := func(_, length uint32) ([]byte, error) { return make([]byte, length), nil }
	slot, content, err := dialed.readFrame(place, &arrived)
	if err != nil || slot != 3 || string(content) != "content" {
		t.Errorf("slot %d: %q, %v", slot, content, err)
	}
	must(t, dialed.Close())
}

// Another answer than that of the protocol refuses the connection, and is not logged as the one that takes it.
func TestOtherAnswer(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, listener.Close()) }()
	sent := make(chan error, 1)
	go func() { sent <- answerAtOnce(listener, m.server, taken+1, nil) }()

	conn, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	dialed := newLane(conn, tls.Client, both.client.DataClient())
	var logged bytes.Buffer
	err = within(patient(t), conn, func() error {
		return dialed.join(&Settings{Log: zerolog.New(&logged)}, secret{}, laneID{window: 1})
	})
	must(t, <-sent)
	log := logged.String()
	if err != errNotTaken || !strings.Contains(log, `"JOIN"`) || strings.Contains(log, "JOINED") {
		t.Errorf("%v, with the log %s", err, log)
	}
}
