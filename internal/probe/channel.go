package probe

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The probes of the control channel that need one side, and the process to be killed. No copy has these server names.
const (
	probeName   = "dma copy probe"
	nobodysName = "dma copy probe nobody"
	childName   = "dma copy probe child"
)

func messageSize(t *trial) string {
	return t.published("bytes of a message", uint64(t.Device.Info().MaxMessage), 4080)
}

func queueSize(t *trial) string {
	info := t.Device.Info()
	found := fmt.Sprintf("%d messages to receive, %d to send", info.MaxReceiveQueue, info.MaxSends)
	if min(info.MaxReceiveQueue, info.MaxSends) < 64 {
		t.differs("%s", found)
	}
	return found
}

func (t *trial) representor() *doca.Representor {
	rep, err := t.Device.OpenRepresentor(t.Representor)
	t.need(err)
	t.use(rep.Close)
	return rep
}

// server offers a name to the host function, on the DPU.
func (t *trial) server(rep *doca.Representor, name string) *doca.Server {
	server, err := t.Device.Listen(rep, name, doca.ChannelConfig{})
	t.need(err)
	t.use(server.Close)
	return server
}

// client is a client for a server of the DPU, on the host.
func (t *trial) client(name string) *doca.Client {
	client, err := t.Device.NewClient(name, doca.ChannelConfig{})
	t.need(err)
	t.use(client.Close)
	return client
}

func channelNotifies(t *trial) string {
	if t.Side == wire.DPU {
		t.check(t.server(t.representor(), probeName).TryArming())
	} else {
		t.check(t.client(nobodysName).TryArming())
	}
	return "the engine of the channel can be armed"
}

func serverName(t *trial) string {
	rep := t.representor()
	t.server(rep, probeName)
	second, err := t.Device.Listen(rep, probeName, doca.ChannelConfig{})
	if err == nil {
		t.use(second.Close)
	}
	if !errors.Is(err, doca.CodeAlreadyExist) {
		t.differs("a second server of the same name: %v", err)
	}
	return "a second server of the same name is refused"
}

func noServer(t *trial) string {
	ctx, cancel := context.WithTimeout(t.ctx, noticeTime)
	defer cancel()
	_, err := t.client(nobodysName).Connect(ctx)
	if _, hasReason := errors.AsType[*doca.Error](err); hasReason || !errors.Is(err, doca.ErrNoServer) {
		t.differs("it ends with: %v", err)
	}
	return "the client returns to idle"
}

// connect tries until a server of that name accepts this host.
func (t *trial) connect(name string) *doca.Connection {
	client := t.client(name)
	for {
		conn, err := client.Connect(t.ctx)
		if err == nil {
			return conn
		}
		select {
		case <-t.ctx.Done():
			t.need(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Child has a connection, as a server of the DPU or a client on the host, until ctx ends or the process is killed.
func Child(ctx context.Context, o Options) error {
	t := &trial{run: &run{Options: o}}
	_, err := t.guarded(ctx, 2*probeTime, func() string {
		if o.Side == wire.DPU {
			t.server(t.representor(), childName)
		} else {
			t.connect(childName)
		}
		<-t.ctx.Done()
		return ""
	})
	if t.hung != nil {
		return errors.Join(err, t.hung)
	}
	return errors.Join(err, t.close())
}

// startChild starts a child and returns a function that kills it.
func (t *trial) startChild() (kill func() error) {
	command := t.Child()
	_, err := command.StdinPipe() // with this process it ends, and so does the child
	t.need(err)
	t.need(command.Start())
	kill = sync.OnceValue(func() error {
		_ = command.Process.Kill() // it may have ended
		err := command.Wait()
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			err = nil
		}
		return err
	})
	t.use(kill)
	return kill
}
