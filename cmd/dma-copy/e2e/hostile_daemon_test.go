package e2e

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// hostileDaemon accepts a copy, and then sends messages of the native session, the last one again and again without a
// pause, until the command has left.
type hostileDaemon struct {
	messages [][]byte
	flooding chan struct{} // closed when it has sent many
}

// serve serves one connection.
func (d *hostileDaemon) serve(ctx context.Context, listener *network.Listener, config secure.Config) error {
	control, err := listener.Accept(ctx)
	if err != nil {
		return err
	}
	defer control.Close()
	conn, err := secure.Server(ctx, control, config)
	if err != nil {
		return err
	}
	if err := d.accept(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Recv(ctx); err != nil { // the HELLO
		return err
	}
	for i := 0; err == nil; i++ {
		if err = conn.Send(ctx, d.messages[min(i, len(d.messages)-1)]); i == 100 {
			close(d.flooding)
		}
	}
	return err
}

// accept greets a command, and accepts the copy that it asks for.
func (d *hostileDaemon) accept(ctx context.Context, conn *secure.Conn) error {
	greeting := service.Greeting{Authenticates: true}
	session, err := service.New(service.Daemon, greeting, wire.Limits{MaxMessage: conn.MaxMessage()})
	if err != nil {
		return err
	}
	session.Start()
	for session.State() != service.Copying {
		message, err := conn.Recv(ctx)
		if err != nil {
			return err
		}
		step, err := session.Receive(message)
		reply := step.Reply
		if err == nil && step.Event == service.CopyRequested {
			reply, err = session.Accept(nil, service.Accepted{Path: step.Copy.Place.Path})
		}
		if err == nil && reply != nil {
			err = conn.Send(ctx, reply)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A daemon that sends messages without end does not keep a command from ending: after a violation of the protocol, and
// after SIGINT.
func TestHostileDaemon(t *testing.T) {
	t.Parallel()
	hello := native.AppendHello(nil, native.Hello{
		Version: native.Supported.Max, Digest: wire.DigestBLAKE3, Durability: wire.DurabilityFull,
		Chunk: 512 << 10, Depth: 4,
		Flags: native.FlagReceives | native.FlagFile | native.FlagNoDMA | native.FlagTLS,
	})
	beat := native.AppendBeat(nil, native.Beat{})
	for _, c := range []struct {
		name      string
		messages  [][]byte
		interrupt bool
		code      int
	}{
		{"violation", [][]byte{beat}, false, exitProtocol},
		{"heartbeats", [][]byte{hello, beat}, true, exitInterrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newNetworkFixture(t)
			f.createFile("host", 1000)
			key, err := f.keys("dpu").Key()
			must(t, err)
			listener, err := network.Listen(t.Context(), f.address, network.Settings{Key: key})
			must(t, err)
			defer listener.Close()
			d := &hostileDaemon{messages: c.messages, flooding: make(chan struct{})}
			ended := make(chan error, 1)
			go func() { ended <- d.serve(t.Context(), listener, secure.Config{Key: key, Verify: secure.AnyKey}) }()
			push := f.command("push host/file :files/")
			if c.interrupt {
				<-d.flooding
				must(t, push.signal(syscall.SIGINT))
			}
			push.expectExit(c.code)
			if err := <-ended; !errors.Is(err, comch.ErrPeerLost) {
				t.Error(err)
			}
		})
	}
}
