package secure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/identity"
)

// sides has a key for each side; each accepts the key of the other one only.
type sides struct{ server, client Config }

func newSides(t testing.TB) sides {
	t.Helper()
	server, client := newKey(t), newKey(t)
	return sides{
		server: Config{Key: server, Verify: only(client.Public())},
		client: Config{Key: client, Verify: only(server.Public())},
	}
}

func newKey(t testing.TB) *identity.Key {
	t.Helper()
	key, err := identity.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// result is what Server or Client returned.
type result struct {
	conn *Conn
	err  error
}

// start authenticates one side in another goroutine.
func start(
	ctx context.Context, conn comch.Conn, c Config, side func(context.Context, comch.Conn, Config) (*Conn, error),
) <-chan result {
	results := make(chan result, 1)
	go func() {
		secured, err := side(ctx, conn, c)
		results <- result{secured, err}
	}()
	return results
}

// mustMeet authenticates both sides of a connection.
func mustMeet(t testing.TB, s sides, one, other comch.Conn) (server, client *Conn) {
	t.Helper()
	accepting := start(t.Context(), one, s.server, Server)
	client, err := Client(t.Context(), other, s.client)
	if err != nil {
		t.Fatal(err)
	}
	accepted := <-accepting
	if accepted.err != nil {
		t.Fatal(accepted.err)
	}
	return accepted.conn, client
}

func TestConnConforms(t *testing.T) {
	s := newSides(t)
	comchtest.TestConnInMemory(t, func(t *testing.T) (one, other comch.Conn) {
		raw, rawOther := comch.Pipe(4080)
		server, client := mustMeet(t, s, raw, rawOther)
		return server, client
	})
}

func TestMessageIsAtMostOneRecord(t *testing.T) {
	s := newSides(t)
	one, other := comch.Pipe(100 << 10)
	server, client := mustMeet(t, s, one, other)
	if server.MaxMessage() != maxRecord {
		t.Errorf("a message has up to %d bytes, want those of one record", server.MaxMessage())
	}
	whole := bytes.Repeat([]byte("whole"), maxRecord)[:maxRecord]
	comchtest.MustSend(t, client, whole)
	comchtest.MustReceive(t, server, whole)
	closeBoth(t, server, client)
}

// meddler passes on what is sent, until a test changes that.
type meddler struct {
	*comch.PipeEnd
	meddle func(message []byte) (instead [][]byte) // nil: none
}

func (m *meddler) Send(ctx context.Context, message []byte) error {
	instead := [][]byte{message}
	if m.meddle != nil {
		instead = m.meddle(bytes.Clone(message))
	}
	for _, message := range instead {
		if err := m.PipeEnd.Send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// meet returns the two ends of a connection whose client's messages a test can change.
func meet(t *testing.T) (server, client *Conn, m *meddler) {
	t.Helper()
	one, other := comch.Pipe(4080)
	m = &meddler{PipeEnd: other}
	server, client = mustMeet(t, newSides(t), one, m)
	t.Cleanup(func() { closeBoth(t, server, client) })
	return server, client, m
}

// One message is one record, which shows nothing of it but its length.
func TestMessagesAreRecords(t *testing.T) {
	server, client, m := meet(t)
	var sent [][]byte
	m.meddle = func(message []byte) [][]byte {
		sent = append(sent, message)
		return [][]byte{message}
	}
	for _, length := range []int{1, 100, client.MaxMessage()} {
		message := bytes.Repeat([]byte("x"), length)
		comchtest.MustSend(t, client, message)
		comchtest.MustReceive(t, server, message)
		if len(sent) != 1 || len(sent[0]) != length+Overhead || bytes.Contains(sent[0], []byte("xxxxx")) {
			t.Errorf("a message of %d bytes became %d records, the first %q", length, len(sent), sent[0])
		}
		sent = nil
	}
}

// Whatever happens to a message on its way, it is not received, and the connection ends for both sides. The messages
// before it were received.
func TestChangedMessagesEndTheConnection(t *testing.T) {
	changes := map[string]func(message, earlier []byte) [][]byte{
		"lost":        func(_, _ []byte) [][]byte { return nil },
		"repeated":    func(message, _ []byte) [][]byte { return [][]byte{message, message} },
		"replayed":    func(_, earlier []byte) [][]byte { return [][]byte{earlier} },
		"cut":         func(message, _ []byte) [][]byte { return [][]byte{message[:len(message)-1]} },
		"longer":      func(message, _ []byte) [][]byte { return [][]byte{append(message, 0)} },
		"split":       func(message, _ []byte) [][]byte { return [][]byte{message[:10], message[10:]} },
		"header only": func(message, _ []byte) [][]byte { return [][]byte{message[:recordHeader]} },
		"empty record": func(_, _ []byte) [][]byte {
			return [][]byte{append([]byte("\x17\x03\x03\x00\x11"), make([]byte, 17)...)}
		},
		"one byte":    func(_, _ []byte) [][]byte { return [][]byte{{0x17}} },
		"plain text":  func(_, _ []byte) [][]byte { return [][]byte{[]byte("a message of more than 22 bytes")} },
		"plain alert": func(_, _ []byte) [][]byte { return [][]byte{{0x15, 3, 3, 0, 2, 1, 0}} },
		"plain record": func(_, _ []byte) [][]byte {
			return [][]byte{append([]byte("\x16\x03\x03\x00\x20"), make([]byte, 32)...)}
		},
		"two in one": func(message, _ []byte) [][]byte { return [][]byte{append(message, message...)} },
	}
	for i := range Overhead + 3 { // the size of the message, which is "sec"
		changes[fmt.Sprint("bit of byte ", i)] = func(message, _ []byte) [][]byte {
			message[i] ^= 1 << (i % 8)
			return [][]byte{message}
		}
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) { testChangedMessage(t, change, name == "repeated") })
	}
}

// testChangedMessage changes the second of three messages. once says that it is still received, but not twice.
func testChangedMessage(t *testing.T, change func(message, earlier []byte) [][]byte, once bool) {
	server, client, m := meet(t)
	var earlier []byte
	m.meddle = func(message []byte) [][]byte {
		earlier = message
		return [][]byte{message}
	}
	comchtest.MustSend(t, client, []byte("fir"))
	m.meddle = func(message []byte) [][]byte { return change(message, earlier) }
	comchtest.MustSend(t, client, []byte("sec"))
	m.meddle = nil
	comchtest.MustSend(t, client, []byte("thi"))
	comchtest.MustReceive(t, server, []byte("fir"))
	if once {
		comchtest.MustReceive(t, server, []byte("sec"))
	}
	message, err := server.Recv(comchtest.Patient(t))
	if !errors.Is(err, ErrRecord) {
		t.Fatalf("received %q, %v; want %v", message, err, ErrRecord)
	}
	comchtest.MustHaveEnded(t, server, ErrRecord)
	_, err = client.Recv(comchtest.Patient(t))
	if !errors.Is(err, comch.ErrPeerLost) && !errors.Is(err, ErrRecord) {
		t.Errorf("the sender of the message got %v", err)
	}
}

func TestTruncationIsNoClose(t *testing.T) {
	server, client, m := meet(t)
	comchtest.MustSend(t, client, []byte("last"))
	comchtest.MustBe(t, m.PipeEnd.Close(), nil) // without close_notify
	comchtest.MustReceive(t, server, []byte("last"))
	_, err := server.Recv(t.Context())
	if !errors.Is(err, comch.ErrPeerLost) || errors.Is(err, ErrPeerClosed) {
		t.Errorf("got %v", err)
	}
}

// After a message that the channel did not take nothing is sent: for the peer it would be a record with a wrong number,
// and the lost connection an attack.
func TestNothingFollowsAMessageThatWasNotSent(t *testing.T) {
	server, client, m := meet(t)
	comchtest.MustSend(t, client, []byte("last"))
	m.meddle = func([]byte) [][]byte { return [][]byte{make([]byte, m.MaxMessage()+1)} } // which is not taken
	failed := client.Send(t.Context(), []byte("not taken"))
	m.meddle = nil
	if failed == nil {
		t.Fatal("the message was taken")
	}
	comchtest.MustBe(t, client.Send(t.Context(), []byte("more")), failed)
	comchtest.MustClose(t, client)
	comchtest.MustReceive(t, server, []byte("last"))
	if _, err := server.Recv(t.Context()); !errors.Is(err, comch.ErrPeerLost) || errors.Is(err, ErrPeerClosed) {
		t.Errorf("got %v", err)
	}
}

func TestCloseIsToldToThePeer(t *testing.T) {
	server, client, _ := meet(t)
	comchtest.MustSend(t, client, []byte("last"))
	comchtest.MustClose(t, client)
	comchtest.MustReceive(t, server, []byte("last"))
	for range 2 {
		_, err := server.Recv(t.Context())
		comchtest.MustBe(t, err, ErrPeerClosed)
		comchtest.MustBe(t, err, comch.ErrPeerLost)
	}
}

func TestPolling(t *testing.T) {
	server, client, m := meet(t)
	if message, received := server.TryRecv(); received {
		t.Fatalf("received %q, which nobody sent", message)
	}
	comchtest.MustSend(t, client, []byte("first"))
	<-server.Arrived()
	if message, received := server.TryRecv(); !received || string(message) != "first" {
		t.Fatalf("received %q, %t", message, received)
	}
	comchtest.MustSend(t, m.PipeEnd, []byte("not a record"))
	if message, received := server.TryRecv(); received {
		t.Fatalf("received %q", message)
	}
	comchtest.MustHaveEnded(t, server, ErrRecord)
	if message, received := server.TryRecv(); received {
		t.Fatalf("received %q after the end", message)
	}
}

// While a goroutine waits in Recv, a poller does not take the message away between its arrival and its decryption.
func TestPollingBesideRecv(t *testing.T) {
	server, client, _ := meet(t)
	received := make(chan error, 1)
	go func() {
		_, err := server.Recv(t.Context())
		received <- err
	}()
	for i := range 3 {
		comchtest.MustSend(t, client, []byte{byte(i)})
	}
	comchtest.MustBe(t, <-received, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(comchtest.ErrEnough)
	server.receiving <- struct{}{} // another goroutine receives
	if _, received := server.TryRecv(); received {
		t.Error("two goroutines receive at once")
	}
	_, err := server.Recv(ctx)
	comchtest.MustBe(t, err, comchtest.ErrEnough)
	<-server.receiving
	for i := 1; i < 3; i++ {
		comchtest.MustReceive(t, server, []byte{byte(i)})
	}
}
