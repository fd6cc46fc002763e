package network

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/secure"
)

func TestStalled(t *testing.T) {
	for name, c := range map[string]struct {
		info unix.TCPInfo
		want error
	}{
		"our packets are lost":       {unix.TCPInfo{Unacked: 1, Backoff: 3}, secure.ErrPacketsLost},
		"the peer's packets are":     {unix.TCPInfo{Bytes_received: 100, Rcv_ooopack: 1}, secure.ErrPacketsLost},
		"a packet is on its way":     {unix.TCPInfo{Unacked: 1, Bytes_received: 1}, nil},
		"nothing came":               {unix.TCPInfo{}, secure.ErrSilent},
		"the peer stopped answering": {unix.TCPInfo{Bytes_received: 100}, nil},
	} {
		if got := stalled(&c.info); !errors.Is(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A peer that takes what is sent and never answers is not blamed for its key.
func TestSilentPeer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	control, err := Dial(t.Context(), listener.Addr().String(), time.Minute, Settings{})
	must(t, err)
	config := secure.Config{Key: newKey(t), Verify: secure.AnyKey, Timeout: 50 * time.Millisecond}
	_, err = secure.Client(t.Context(), control, config)
	if !errors.Is(err, secure.ErrSilent) {
		t.Errorf("error %v", err)
	}
}
