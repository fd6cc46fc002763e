//go:build cgo

package service

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

// countedEnd counts the messages of a connection, whatever they are.
type countedEnd struct {
	*comch.PipeEnd
	mu             sync.Mutex
	sent, received []int // their lengths in bytes
}

func (c *countedEnd) note(list *[]int, message []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, len(message))
}

func (c *countedEnd) Send(ctx context.Context, message []byte) error {
	err := c.PipeEnd.Send(ctx, message)
	if err == nil {
		c.note(&c.sent, message)
	}
	return err
}

func (c *countedEnd) Recv(ctx context.Context) ([]byte, error) {
	message, err := c.PipeEnd.Recv(ctx)
	if err == nil {
		c.note(&c.received, message)
	}
	return message, err
}

func (c *countedEnd) TryRecv() ([]byte, bool) {
	message, received := c.PipeEnd.TryRecv()
	if received {
		c.note(&c.received, message)
	}
	return message, received
}

// tracedLine is a line of level TRACE about a message.
type tracedLine struct {
	Level, Message, Protocol, Type, From, To string
	Bytes, Items                             int
	Entry                                    *int
	Connection                               int
}

// tracedLines returns the lines with a text, each without what only one side knows.
func tracedLines(t *testing.T, log *bytes.Buffer, text string, connection int) (lines []string) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var l tracedLine
		must(t, json.Unmarshal([]byte(line), &l))
		if l.Level != "trace" || l.Message != text {
			continue
		}
		states := l.From != "" && l.To != "" || l.Protocol == "tls"
		if l.Connection != connection || l.Type == "" || l.Bytes == 0 || !states {
			t.Errorf("a line lacks something: %s", line)
		}
		l.Message, l.Connection, l.From, l.To = "", 0, "", ""
		shown, _ := json.Marshal(l)
		lines = append(lines, string(shown))
	}
	return lines
}

// At level TRACE a command and a daemon log each message that is on the wire once on either side, in its order: those
// of the handshake, of the service session, and of the native sessions of copies.
func TestTraceHasEachMessage(t *testing.T) {
	var logs [2]bytes.Buffer // of the command and the daemon
	command, daemon := comch.Pipe(testMessage)
	ends := [2]*countedEnd{{PipeEnd: command}, {PipeEnd: daemon}}
	inWorld(t, func(w *world) { w.config.Log = zerolog.New(zerolog.SyncWriter(&logs[1])) }, func(w *world) {
		shared, log := &bus{}, zerolog.New(zerolog.SyncWriter(&logs[0]))
		w.serving.Go(func() {
			_ = w.server.Serve(w.ctx, Incoming{
				Conn: ends[1], Memory: fixed(shared), Function: "b1:00.1", Side: wire.DPU,
			})
		})
		c, err := Connect(w.Context(), ClientConfig{
			Conn: ends[0], Memory: fixed(shared), Key: w.key, Verify: w.verify, Software: "test 1", Log: log,
		})
		must(w.T, err)
		w.useAll(c, log)
		must(w.T, c.Close())
		synctest.Wait() // until the daemon knows: it would tell the command that it stops
		w.stop()
	})
	for from, names := range []string{"the command", "the daemon"} {
		to := 1 - from
		sent := tracedLines(t, &logs[from], "message sent", from)
		received := tracedLines(t, &logs[to], "message received", to)
		if !slices.Equal(sent, received) {
			t.Errorf("%s has sent:\n%s\nreceived:\n%s", names, strings.Join(sent, "\n"), strings.Join(received, "\n"))
		}
		if len(sent) != len(ends[from].sent) || len(received) != len(ends[to].received) {
			t.Errorf("%s: %d and %d lines for %d and %d messages", names,
				len(sent), len(received), len(ends[from].sent), len(ends[to].received))
		}
	}
}

// useAll makes a request of each kind.
func (w *world) useAll(c *Client, log zerolog.Logger) {
	w.Helper()
	w.local.Put("/home/file", strings.Repeat("content", 3000))
	makeDirectories(w.T, w.local, "/home/tree")
	w.local.Put("/home/tree/a", "one")
	w.local.Put("/home/tree/b", "two")
	for name, remote := range map[string]string{"file": "box/file", "tree": "box/tree"} {
		r := w.copyOf(name, remote)
		r.Options.Log = log
		_, err := c.Push(w.Context(), r)
		must(w.T, err)
		r = w.copyOf("back-"+name, remote)
		r.Options.Log = log
		_, err = c.Pull(w.Context(), r)
		must(w.T, err)
	}
	missing := w.copyOf("nothing", "box/missing")
	missing.Options.Log = log
	_, err := c.Pull(w.Context(), missing)
	mustRefuse(w.T, err, wire.AbortSource, "does not exist")
	box := protocol.Place{Share: "box"}
	_, err = c.List(w.Context(), box, protocol.ListRecursive, func(share.Entry) error { return nil })
	must(w.T, err)
	must(w.T, c.MakeDir(w.Context(), protocol.Place{Share: "box", Path: "new"}, false))
	must(w.T, c.Remove(w.Context(), removing(box, "new"), func(string, protocol.Removal) error { return nil }))
	_, err = c.RoundTrip(w.Context(), []byte("payload"))
	must(w.T, err)
	_, err = c.Text(w.Context(), "hello")
	must(w.T, err)
}

// messagesOf returns the lines about messages between machines, sorted, without what only one side knows. Those of the
// control connection's handshake are records, which arrive in other pieces, and heartbeats may be under way at the end.
func messagesOf(t *testing.T, log *bytes.Buffer, text string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var l struct {
			Message, Protocol, Type, Window string
			Lane, Bytes, Items              int
			Entry                           *int
		}
		must(t, json.Unmarshal([]byte(line), &l))
		if l.Message != text || l.Protocol == "tls" || l.Type == "HEARTBEAT" {
			continue
		}
		l.Message = ""
		shown, _ := json.Marshal(l)
		lines = append(lines, string(shown))
	}
	slices.Sort(lines)
	return lines
}

// Between machines both sides log each message on the control connection and on the data connections.
func TestTraceHasEachMessageBetweenMachines(t *testing.T) {
	for path, choice := range map[string]job.PathChoice{"tls": job.OnlyTLS, "tcp": job.OnlyTCP} {
		var logs [2]bytes.Buffer // of the command and the daemon
		command, daemon := zerolog.New(zerolog.SyncWriter(&logs[0])), zerolog.New(zerolog.SyncWriter(&logs[1]))
		t.Run(path, func(t *testing.T) {
			m := openMachines(t, func(m *machines) {
				m.settings.Paths, m.choice, m.daemonLog, m.config.Log = job.EveryPath, choice, daemon, daemon
			})
			c, err := DialNetwork(m.Context(), NetworkMeeting{
				Address: m.network.Address(), Wait: 30 * time.Second, Settings: m.settings,
			}, ClientConfig{Key: m.key, Verify: m.verify, Log: command})
			must(t, err)
			r := m.request("file")
			r.Options.Log = command
			write(t, r.Options.File, 5<<20)
			_, err = c.Push(m.Context(), r)
			must(t, err)
			must(t, os.Remove(r.Options.File))
			_, err = c.Pull(m.Context(), r)
			must(t, err)
			must(t, c.Close())
		})
		for from, by := range []string{"the command", "the daemon"} {
			sent := messagesOf(t, &logs[from], "message sent")
			received := messagesOf(t, &logs[1-from], "message received")
			if !slices.Equal(sent, received) {
				t.Errorf("%s: sent by %s:\n%s\nreceived:\n%s", path, by,
					strings.Join(sent, "\n"), strings.Join(received, "\n"))
			}
			kind := []string{"JOIN", "JOINED"}[from]
			if !strings.Contains(strings.Join(sent, "\n"), `"Type":"`+kind+`"`) {
				t.Errorf("%s: no %s was sent by %s:\n%s", path, kind, by, strings.Join(sent, "\n"))
			}
		}
	}
}
