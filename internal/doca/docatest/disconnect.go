package docatest

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

var disconnectCases = []testCase{
	{"is known to both ends", knownToBothEnds},
	{"comes with the end of the server", comesWithServer},
	{"does not take back messages", doesNotTakeBack},
	{"unblocks both ends", unblocksBothEnds},
	{"may come from both ends at once", fromBothEnds},
	{"frees the place for the next", freesThePlace},
}

// ends are the two ends of a connection, by which of them disconnects.
type ends struct{ closing, other *doca.Connection }

// eitherEnd runs a case twice: the host disconnects, and the DPU disconnects.
func (b *bench) eitherEnd(config doca.ChannelConfig, run func(*bench, ends)) {
	b.Run("host", func(t *testing.T) {
		b := &bench{T: t, driver: b.driver, polled: b.polled}
		host, dpu := b.pair(config)
		run(b, ends{closing: host, other: dpu})
	})
	b.Run("dpu", func(t *testing.T) {
		b := &bench{T: t, driver: b.driver, polled: b.polled}
		host, dpu := b.pair(config)
		run(b, ends{closing: dpu, other: host})
	})
}

func (b *bench) mustHaveEnded(c *doca.Connection, cause error) {
	b.Helper()
	<-c.Done()
	_, err := c.Recv(b.context())
	b.mustBe(err, cause)
	b.mustBe(c.Send(b.context(), []byte("late")), cause)
}

func knownToBothEnds(b *bench) {
	b.eitherEnd(doca.ChannelConfig{}, func(b *bench, e ends) {
		b.must(e.closing.Close())
		b.mustHaveEnded(e.closing, doca.ErrClosed)
		b.mustHaveEnded(e.other, doca.ErrDisconnected)
		b.must(e.other.Close())
		b.must(e.closing.Close())
		b.must(e.other.Close())
	})
}

func comesWithServer(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	host, dpu := b.connect(b.client(s, doca.ChannelConfig{}), server)
	b.must(server.Close())
	b.mustHaveEnded(dpu, doca.ErrClosed)
	b.mustHaveEnded(host, doca.ErrDisconnected)
}

func doesNotTakeBack(b *bench) {
	b.eitherEnd(doca.ChannelConfig{}, func(b *bench, e ends) {
		messages := []string{"one", "two", "three"}
		for _, message := range messages {
			b.send(e.closing, message)
		}
		b.must(e.closing.Close())
		for _, message := range messages {
			b.mustReceive(e.other, message)
		}
		b.mustHaveEnded(e.other, doca.ErrDisconnected)
	})
}

// block starts a Send and a Recv that only the end of the connection can end. A queue that seems to be full may still
// have space, on a busy machine, so there may be several calls of Send.
func (b *bench) block(c *doca.Connection) <-chan error {
	b.Helper()
	b.fill(c)
	ctx := b.context()
	results := make(chan error, 2)
	go func() {
		var err error
		for err == nil {
			err = c.Send(ctx, []byte("there is no space"))
		}
		results <- err
	}()
	go func() {
		_, err := c.Recv(ctx)
		results <- err
	}()
	return results
}

func unblocksBothEnds(b *bench) {
	small := doca.ChannelConfig{ReceiveQueue: 2, Sends: 2}
	b.Run("closing", func(t *testing.T) {
		b := &bench{T: t, driver: b.driver, polled: b.polled}
		b.eitherEnd(small, func(b *bench, e ends) {
			results := b.block(e.closing)
			b.must(e.closing.Close())
			b.mustBe(<-results, doca.ErrClosed)
			b.mustBe(<-results, doca.ErrClosed)
		})
	})
	b.Run("other", func(t *testing.T) {
		b := &bench{T: t, driver: b.driver, polled: b.polled}
		b.eitherEnd(small, func(b *bench, e ends) {
			results := b.block(e.other)
			b.must(e.closing.Close())
			b.mustBe(<-results, doca.ErrDisconnected)
			b.mustBe(<-results, doca.ErrDisconnected)
		})
	})
}

func fromBothEnds(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	for range 20 {
		host, dpu := b.connect(b.client(s, doca.ChannelConfig{}), server)
		results := make(chan error, 4)
		for _, end := range []*doca.Connection{host, dpu, host, dpu} {
			go func() { results <- end.Close() }()
		}
		for range cap(results) {
			b.must(<-results)
		}
		<-host.Done()
		<-dpu.Done()
	}
}

func freesThePlace(b *bench) {
	s := b.sides()
	for range 20 {
		server := b.listen(s, doca.ChannelConfig{})
		client := b.client(s, doca.ChannelConfig{})
		b.talk(b.connect(client, server))
		b.must(client.Close())
		b.must(server.Close())
	}
}
