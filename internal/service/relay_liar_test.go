//go:build cgo

package service

import (
	"context"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// liar is a target that answers to the announcement of a file that it has it already, without having compared it.
type liar struct {
	*testing.T
	answered chan struct{} // closed when it has said so
}

// serve serves the only connection of a listener.
func (l *liar) serve(ctx context.Context, listener *network.Listener, key secure.Config) error {
	control, err := listener.Accept(ctx)
	if err != nil {
		return err
	}
	defer control.Close()
	conn, err := secure.Server(ctx, control, key)
	if err != nil {
		return err
	}
	session, err := negotiate.NewService(negotiate.Daemon, negotiate.ServiceGreeting{Authenticates: true},
		negotiate.Limits{MaxMessage: conn.MaxMessage()})
	if err != nil {
		return err
	}
	session.Start()
	e := newExchange(conn, session, 10*time.Second, zerolog.Nop())
	for {
		step, err := e.receive(ctx)
		if err != nil {
			return err
		}
		if step.Event != negotiate.CopyRequested {
			continue
		}
		accepted := negotiate.Accepted{Path: step.Copy.Place.Path}
		err = e.send(ctx, func(s *negotiate.Service, dst []byte) ([]byte, error) { return s.Accept(dst, accepted) })
		if err != nil {
			return err
		}
		messages := newStream(ctx, e)
		if err := l.receive(ctx, messages); err != nil {
			return err
		}
		if err := messages.finish(nil); err != nil {
			return err
		}
	}
}

// receive has the native session of one copy.
func (l *liar) receive(ctx context.Context, messages *stream) error {
	session, err := negotiate.NewNative(negotiate.Server, negotiate.Supported.Max, negotiate.Hello{
		Digest: negotiate.DigestBLAKE3, Durability: negotiate.DurabilityFull, Chunk: 512 << 10, Depth: 4,
		Flags: negotiate.FlagReceives | negotiate.FlagOverwrite | negotiate.FlagFile | negotiate.FlagNoDMA |
			negotiate.FlagTLS,
	}, negotiate.Limits{MaxMessage: messages.MaxMessage(), MaxFileSize: 1 << 40})
	if err != nil {
		return err
	}
	session.Start()
	for session.State() != negotiate.Failed {
		message, err := messages.Recv(ctx)
		if err != nil {
			return err
		}
		step, err := session.Receive(message)
		if err != nil {
			return err
		}
		said, err := l.answer(session, step)
		if err == nil && said != nil {
			err = messages.Send(ctx, said)
		}
		if err != nil || step.Event == negotiate.PeerFinish {
			return err
		}
	}
	return nil
}

func (l *liar) answer(session *negotiate.NativeSession, step negotiate.NativeStep) ([]byte, error) {
	switch step.Event {
	case negotiate.EntriesAnnounced:
		close(l.answered)
		return session.Answers(nil, []negotiate.Answer{{Kind: negotiate.AnswerHave}})
	case negotiate.PeerFinish:
		return session.Finished(nil, negotiate.DurabilityFull, "")
	}
	return step.Reply, nil
}

// A target that says it has the file, and has not compared it, is a failure.
func TestRelayToALiar(t *testing.T) {
	r := openRelays(t, nil, nil)
	l, key := &liar{t, make(chan struct{})}, newKey(t)
	listener, err := network.Listen(t.Context(), "127.0.0.1:0", network.Settings{Key: key})
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- l.serve(t.Context(), listener, secure.Config{Key: key, Verify: secure.AnyKey}) }()
	request := r.request("file", write(t, filepath.Join(r.relay.box, "file"), 100_000))
	request.Address, request.Key = netip.MustParseAddrPort(listener.Address().String()), key.Public()
	request.Idle = 3000 // the relay waits in vain for the data connections of the target
	r.allow(request.Address.String(), netip.AddrPort{})
	c := r.relay.dial()
	_, err = c.Relay(t.Context(), request, nil)
	mustFail(t, err, negotiate.AbortTarget, "did not compare its digest")
	<-l.answered
	must(t, c.Close())
	<-ended
	must(t, listener.Close())
}
