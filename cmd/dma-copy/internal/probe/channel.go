package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// The probes of the control channel that need one side. Their server names are those of no copy.
const (
	probeName   = "dma copy probe"
	nobodysName = "dma copy probe nobody"
	victimName  = "dma copy probe victim"
)

const (
	publishedMessage = 4080 // bytes
	retryPause       = 20 * time.Millisecond
)

func messageSize(t *trial) (string, error) {
	return published("bytes of a message", uint64(t.Device.Info().MaxMessage), publishedMessage)
}

func queues(t *trial) (string, error) {
	info := t.Device.Info()
	found := fmt.Sprintf("receive queue of %s, %s to send",
		quantity.Count(int(info.MaxReceiveQueue), "message"), quantity.Count(int(info.MaxSends), "task"))
	if info.MaxReceiveQueue < 64 || info.MaxSends < 64 {
		return "", differs("%s", found)
	}
	return found, nil
}

// server offers a name to the host function, on the DPU.
func (t *trial) server(name string) (*doca.Server, error) {
	rep, err := t.Device.OpenRepresentor(t.Representor)
	if err != nil {
		return nil, err
	}
	t.use(rep.Close)
	server, err := t.Device.Listen(rep, name, doca.ChannelConfig{})
	if err == nil {
		t.use(server.Close)
	}
	return server, err
}

// channelNotifies arms the engine of a server or a client.
func channelNotifies(t *trial) (string, error) {
	var err error
	if server, failed := t.server(probeName); failed == nil {
		err = server.TryArming()
	} else if client, failedToo := t.client(nobodysName); failedToo == nil {
		err = client.TryArming()
	} else {
		return "", errors.Join(failed, failedToo)
	}
	if err != nil {
		return "", differs("%s", firstLine(err))
	}
	return "the engine of the channel can be armed", nil
}

func serverName(t *trial) (string, error) {
	if _, err := t.server(probeName); err != nil {
		return "", err
	}
	if _, err := t.server(probeName); !errors.Is(err, doca.CodeAlreadyExist) {
		return "", differs("a second server of the same name: %v", err)
	}
	return "a second server of the same name is refused", nil
}

func teardownOrder(t *trial) (string, error) {
	rep, err := t.Device.OpenRepresentor(t.Representor)
	if err != nil {
		return "", err
	}
	t.use(rep.Close)
	server, err := t.Device.Listen(rep, probeName, doca.ChannelConfig{})
	if err != nil {
		return "", err
	}
	t.use(server.Close)
	if err := rep.Close(); !errors.Is(err, doca.CodeInUse) {
		return "", differs("the representor of a server closes: %v", err)
	}
	return "the representor of a server does not close before it", nil
}

// client is a client for a server of the DPU, on the host.
func (t *trial) client(name string) (*doca.Client, error) {
	client, err := t.Device.NewClient(name, doca.ChannelConfig{})
	if err == nil {
		t.use(client.Close)
	}
	return client, err
}

func noServer(t *trial) (string, error) {
	client, err := t.client(nobodysName)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(t.ctx, noticeTime)
	defer cancel()
	_, err = client.Connect(ctx)
	_, hasReason := errors.AsType[*doca.Error](err)
	switch {
	case err == nil:
		return "", differs("a client connects without a server")
	case ctx.Err() != nil:
		return "", differs("no answer within %s", noticeTime)
	case hasReason || !errors.Is(err, doca.ErrNoServer):
		return "", differs("%s", firstLine(err))
	}
	return "the client returns to idle", nil
}

// connect tries until a server of that name accepts this host, or ctx ends.
func (t *trial) connect(ctx context.Context, name string) (*doca.Connection, error) {
	client, err := t.client(name)
	if err != nil {
		return nil, err
	}
	for {
		conn, err := client.Connect(ctx)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(retryPause):
		}
	}
}

// Victim has a connection, as a server of the DPU or a client on the host, until ctx ends or the process is killed.
func Victim(ctx context.Context, o Options) error {
	t := &trial{run: &run{Options: o}, base: ctx, ctx: ctx}
	var err error
	if o.Side == negotiate.DPU {
		_, err = t.server(victimName)
	} else {
		_, err = t.connect(ctx, victimName)
	}
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, t.close())
}
