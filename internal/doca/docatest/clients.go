package docatest

import (
	"context"
	"errors"
	"sync"

	"github.com/dma-copy/dma-copy/internal/doca"
)

var clientsCases = []testCase{
	{"a client that does not receive delays no other", clientStopped},
	{"a client that is not read delays no other", clientUnread},
	{"a client without an answer may send little", unansweredFloods},
	{"clients come and go", clientsChurn},
	{"clients that have gone keep no other out", clientsGone},
	{"a client too many", clientTooMany},
}

// manyClients is the number of clients of one server in these tests.
const manyClients = 16

type link struct{ host, dpu *doca.Connection }

// links returns connections of a server to its clients, which are as many as it admits.
func (b *bench) links(s sides, server *doca.Server, first doca.ChannelConfig, count int) []link {
	b.Helper()
	var all []link
	for i := range count {
		config := doca.ChannelConfig{}
		if i == 0 {
			config = first
		}
		host, dpu := b.connect(b.client(s, config), server)
		all = append(all, link{host, dpu})
	}
	return all
}

// talkAll sends messages in both directions over all of the connections.
func (b *bench) talkAll(links []link) {
	b.Helper()
	for range 3 {
		for _, l := range links {
			b.talk(l.host, l.dpu)
			b.talk(l.dpu, l.host)
		}
	}
}

// sendLater queues the messages from number from up to number to, without waiting for them.
func (b *bench) sendLater(c *doca.Connection, from, to int) {
	b.Helper()
	over, cancel := context.WithCancelCause(b.context())
	cancel(errEnough)
	for i := from; i < to; i++ {
		if err := c.Send(over, numbered(i, c.MaxMessage())); err != nil {
			b.mustBe(err, errEnough)
		}
	}
}

func clientStopped(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{Clients: manyClients})
	links := b.links(s, server, doca.ChannelConfig{ReceiveQueue: 2}, manyClients)
	stopped := links[0]
	sent := b.fill(stopped.dpu)
	all := sent + 1 + 1000 // fill has given up waiting for one
	b.sendLater(stopped.dpu, sent+1, all)
	b.talkAll(links[1:])
	b.must(links[1].host.Close())
	b.talkAll(append(links[2:], b.links(s, server, doca.ChannelConfig{}, 1)...))
	for i := range all {
		b.mustReceive(stopped.host, string(numbered(i, stopped.host.MaxMessage())))
	}
}

// flood sends until the connection ends.
func (b *bench) flood(c *doca.Connection) <-chan error {
	ended := make(chan error, 1)
	go func() {
		for {
			if err := c.Send(b.Context(), []byte("unread")); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

// countUnread receives what arrived before the connection ended.
func (b *bench) countUnread(c *doca.Connection) int {
	b.Helper()
	for count := 0; ; count++ {
		if _, err := c.Recv(b.context()); err != nil {
			b.mustBe(err, doca.ErrDisconnected)
			return count
		}
	}
}

func clientUnread(b *bench) {
	s := b.sides()
	unread := min(100, int(s.dpu.Info().MaxReceiveQueue))
	server := b.listen(s, doca.ChannelConfig{Clients: manyClients, ReceiveQueue: unread})
	links := b.links(s, server, doca.ChannelConfig{}, manyClients)
	b.talkAll(links)
	for range unread {
		b.send(links[0].host, "unread")
	}
	b.talkAll(links[1:])
	ended := b.flood(links[0].host)
	b.talkAll(links[1:])
	b.mustBe(<-ended, doca.ErrDisconnected)
	<-links[0].dpu.Done()
	b.talkAll(append(links[1:], b.links(s, server, doca.ChannelConfig{}, 1)...))
	if got := b.countUnread(links[0].dpu); got != unread {
		b.Errorf("%d messages were held, want %d", got, unread)
	}
}

func unansweredFloods(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{Clients: manyClients})
	host, err := b.client(s, doca.ChannelConfig{}).Connect(b.context())
	b.must(err)
	b.mustBe(<-b.flood(host), doca.ErrDisconnected)
	dpu, err := server.Accept(b.context())
	b.must(err)
	<-dpu.Done()
	if got := b.countUnread(dpu); got > 16 {
		b.Errorf("%d messages were held of a client that was not answered", got)
	}
}

// acceptAll closes what it accepts when the peer has left.
func acceptAll(ctx context.Context, server *doca.Server) error {
	var ending sync.WaitGroup
	defer ending.Wait()
	for {
		c, err := server.Accept(ctx)
		if err != nil {
			return err
		}
		ending.Go(func() {
			<-c.Done()
			_ = c.Close()
		})
	}
}

func clientsChurn(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{Clients: manyClients})
	staying := b.links(s, server, doca.ChannelConfig{}, 3)
	ctx, cancel := context.WithCancelCause(b.context())
	accepting := make(chan error, 1)
	go func() { accepting <- acceptAll(ctx, server) }()
	for range 50 {
		client := b.client(s, doca.ChannelConfig{})
		// The server may still have earlier clients that it does not know to have left.
		if host, err := client.Connect(ctx); err == nil {
			b.sendLater(host, 0, 3)
		}
		b.must(client.Close())
		b.talk(staying[0].host, staying[0].dpu)
	}
	cancel(errEnough)
	b.mustBe(<-accepting, errEnough)
	b.talkAll(staying)
}

// More clients than wait for Accept connect and leave, before one that stays.
func clientsGone(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	for range 40 {
		client := b.client(s, doca.ChannelConfig{})
		_, err := client.Connect(b.context())
		b.must(err)
		b.must(client.Close())
	}
	host, err := b.client(s, doca.ChannelConfig{}).Connect(b.context())
	b.must(err)
	b.send(host, "still here")
	for {
		dpu, err := server.Accept(b.context())
		b.must(err)
		message, err := dpu.Recv(b.context())
		if err == nil && string(message) == "still here" {
			b.talk(host, dpu)
			return
		}
		b.mustBe(err, doca.ErrDisconnected)
	}
}

func clientTooMany(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{Clients: 2})
	links := b.links(s, server, doca.ChannelConfig{}, 2)
	b.mustBeTurnedAway(s)
	b.mustBeTurnedAway(s)
	if got := server.Rejected(); got != 2 {
		b.Errorf("%d clients were rejected, want 2", got)
	}
	b.talkAll(links)
	b.must(links[0].host.Close())
	<-links[0].dpu.Done()
	b.talkAll(append(links[1:], b.links(s, server, doca.ChannelConfig{}, 1)...))
}

// mustBeTurnedAway connects a client to a server that has enough, and disconnects it, perhaps before Connect returns.
func (b *bench) mustBeTurnedAway(s sides) {
	b.Helper()
	host, err := b.client(s, doca.ChannelConfig{}).Connect(b.context())
	if err == nil {
		_, err = host.Recv(b.context())
	}
	if !errors.Is(err, doca.ErrDisconnected) && !errors.Is(err, doca.ErrNoServer) {
		b.Errorf("a client too many got %v", err)
	}
}
