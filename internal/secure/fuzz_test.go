package secure

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// FuzzServer sends arbitrary messages to a server, each with its length in two bytes before it. None of them
// authenticates, and the server does not wait for more than its timeout.
func FuzzServer(f *testing.F) { fuzzHandshake(f, Server) }

// FuzzClient is FuzzServer for a client.
func FuzzClient(f *testing.F) { fuzzHandshake(f, Client) }

func fuzzHandshake(f *testing.F, side func(context.Context, comch.Conn, Config) (*Conn, error)) {
	s := newSides(f)
	one, other := comch.Pipe(4080)
	recording, answers := &recorder{PipeEnd: other}, &recorder{PipeEnd: one}
	server, client := mustMeet(f, s, answers, recording)
	_, _ = server.Close(), client.Close()
	for _, seed := range [][]byte{
		nil, []byte("\x00\x05\x16\x03\x01\x00\x05\x00\x05hello"), joined(recording.sent), joined(answers.sent),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, messages []byte) {
		synctest.Test(t, func(t *testing.T) {
			one, other := comch.Pipe(4080)
			results := start(t.Context(), one, Config{Key: s.server.Key, Verify: AnyKey}, side)
			for len(messages) > 2 {
				length := min(int(binary.BigEndian.Uint16(messages)), len(messages)-2, other.MaxMessage())
				if length > 0 && other.Send(t.Context(), messages[2:2+length]) != nil {
					break
				}
				messages = messages[2+length:]
			}
			if r := <-results; r.err == nil {
				t.Errorf("authenticated %s", r.conn.Peer())
			}
			<-other.Done()
		})
	})
}

// joined encodes messages as an input.
func joined(messages [][]byte) (input []byte) {
	for _, message := range messages {
		input = append(binary.BigEndian.AppendUint16(input, uint16(len(message))), message...)
	}
	return input
}
