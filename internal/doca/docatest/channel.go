package docatest

import (
	"context"
	"errors"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca"
)

const serverName = "docatest"

var channelCases = []testCase{
	{"server first", serverFirst},
	{"client first, again and again", clientFirst},
	{"a client connects again after its server has gone", connectsAgain},
	{"several clients of one server", severalClients},
	{"clients that are not accepted", clientsUnaccepted},
	{"servers of different names", differentNames},
	{"a name has one server for each representor", nameTaken},
	{"a name of a length that is none", badNames},
	{"a host cannot serve, a DPU cannot connect", wrongSides},
	{"accepting ends with its context", acceptCancelled},
	{"connecting ends with its context", connectCancelled},
	{"accepting ends with the server", acceptClosed},
}

// sides are both devices and the representor.
type sides struct {
	host, dpu *doca.Device
	rep       *doca.Representor
}

func (b *bench) sides() sides {
	b.Helper()
	host, dpu := b.host(), b.dpu()
	return sides{host: host, dpu: dpu, rep: b.representor(dpu, host)}
}

func (b *bench) listen(s sides, config doca.ChannelConfig) *doca.Server {
	b.Helper()
	config.Polled = b.polled
	server, err := s.dpu.Listen(s.rep, serverName, config)
	b.must(err)
	b.closeAtEnd(server)
	return server
}

func (b *bench) client(s sides, config doca.ChannelConfig) *doca.Client {
	b.Helper()
	config.Polled = b.polled
	client, err := s.host.NewClient(serverName, config)
	b.must(err)
	b.closeAtEnd(client)
	return client
}

// If more clients connect than wait for Accept, the others are disconnected, perhaps before Connect returns. The first
// one stays connected.
func clientsUnaccepted(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	first, err := b.client(s, doca.ChannelConfig{}).Connect(b.context())
	b.must(err)
	var last *doca.Connection
	for range 20 {
		last, err = b.client(s, doca.ChannelConfig{}).Connect(b.context())
	}
	if err == nil {
		_, err = last.Recv(b.context())
		b.mustBe(err, doca.ErrDisconnected)
	} else {
		b.mustBe(err, doca.ErrNoServer)
	}
	dpu, err := server.Accept(b.context())
	b.must(err)
	b.talk(first, dpu)
}

// connect returns both ends of a new connection.
func (b *bench) connect(client *doca.Client, server *doca.Server) (host, dpu *doca.Connection) {
	b.Helper()
	host, err := client.Connect(b.context())
	b.must(err)
	dpu, err = server.Accept(b.context())
	b.must(err)
	return host, dpu
}

// pair is a connection of its own client and server.
func (b *bench) pair(config doca.ChannelConfig) (host, dpu *doca.Connection) {
	b.Helper()
	s := b.sides()
	server := b.listen(s, config)
	return b.connect(b.client(s, config), server)
}

func (b *bench) send(c *doca.Connection, message string) {
	b.Helper()
	b.must(c.Send(b.context(), []byte(message)))
}

func (b *bench) mustReceive(c *doca.Connection, want string) {
	b.Helper()
	got, err := c.Recv(b.context())
	b.must(err)
	if string(got) != want {
		b.Fatalf("received %q, want %q", got, want)
	}
}

// talk sends one message in each direction.
func (b *bench) talk(one, other *doca.Connection) {
	b.Helper()
	b.send(one, "ping")
	b.mustReceive(other, "ping")
	b.send(other, "pong")
	b.mustReceive(one, "pong")
}

func serverFirst(b *bench) { b.talk(b.pair(doca.ChannelConfig{})) }

func clientFirst(b *bench) {
	s := b.sides()
	client := b.client(s, doca.ChannelConfig{})
	for range 20 {
		_, err := client.Connect(b.context())
		b.mustBe(err, doca.ErrNoServer)
	}
	b.talk(b.connect(client, b.listen(s, doca.ChannelConfig{})))
}

func connectsAgain(b *bench) {
	s := b.sides()
	client := b.client(s, doca.ChannelConfig{})
	for range 3 {
		server := b.listen(s, doca.ChannelConfig{})
		host, dpu := b.connectPatiently(client, server)
		b.talk(host, dpu)
		b.must(server.Close())
		<-host.Done()
	}
}

// connectPatiently retries while the client still ends its last connection.
func (b *bench) connectPatiently(client *doca.Client, server *doca.Server) (host, dpu *doca.Connection) {
	b.Helper()
	ctx := b.context()
	for {
		host, err := client.Connect(ctx)
		if err == nil {
			dpu, err := server.Accept(ctx)
			b.must(err)
			return host, dpu
		}
		if !errors.Is(err, doca.CodeBadState) {
			b.must(err)
		}
	}
}

func severalClients(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	type ends struct{ host, dpu *doca.Connection }
	var all []ends
	for range 5 {
		host, dpu := b.connect(b.client(s, doca.ChannelConfig{}), server)
		all = append(all, ends{host, dpu})
	}
	for _, e := range all {
		b.talk(e.host, e.dpu)
	}
	b.must(all[2].host.Close())
	_, err := all[2].dpu.Recv(b.context())
	b.mustBe(err, doca.ErrDisconnected)
	b.must(all[3].dpu.Close())
	_, err = all[3].host.Recv(b.context())
	b.mustBe(err, doca.ErrDisconnected)
	for _, i := range []int{0, 1, 4} {
		b.talk(all[i].dpu, all[i].host)
	}
}

func differentNames(b *bench) {
	s := b.sides()
	b.listen(s, doca.ChannelConfig{})
	other, err := s.dpu.Listen(s.rep, serverName+" 2", doca.ChannelConfig{})
	b.must(err)
	b.closeAtEnd(other)
	client, err := s.host.NewClient(serverName+" 2", doca.ChannelConfig{})
	b.must(err)
	b.closeAtEnd(client)
	b.talk(b.connect(client, other))
}

func nameTaken(b *bench) {
	s := b.sides()
	b.listen(s, doca.ChannelConfig{})
	for range 3 {
		_, err := s.dpu.Listen(s.rep, serverName, doca.ChannelConfig{})
		b.mustBe(err, doca.CodeAlreadyExist)
	}
	otherHost := b.open(b.info(func(i doca.DeviceInfo) bool {
		return i.IsHost() && i.PCIAddress != s.host.Info().PCIAddress
	}).PCIAddress)
	same, err := s.dpu.Listen(b.representor(s.dpu, otherHost), serverName, doca.ChannelConfig{})
	b.must(err)
	b.closeAtEnd(same)
	b.talk(b.connect(b.client(sides{host: otherHost}, doca.ChannelConfig{}), same))
}

func badNames(b *bench) {
	s := b.sides()
	longestName := int(s.dpu.Info().MaxServerNameSize) - 1
	for _, name := range []string{"", strings.Repeat("n", longestName+1), strings.Repeat("n", 10*longestName)} {
		if server, err := s.dpu.Listen(s.rep, name, doca.ChannelConfig{}); err == nil {
			b.closeAtEnd(server)
			b.Errorf("a server has a name of %d bytes", len(name))
		}
		if client, err := s.host.NewClient(name, doca.ChannelConfig{}); err == nil {
			b.closeAtEnd(client)
			b.Errorf("a client looks for a name of %d bytes", len(name))
		}
	}
	longest, err := s.dpu.Listen(s.rep, strings.Repeat("n", longestName), doca.ChannelConfig{})
	b.must(err)
	b.closeAtEnd(longest)
}

func wrongSides(b *bench) {
	s := b.sides()
	_, err := s.host.Listen(s.rep, serverName, doca.ChannelConfig{})
	b.mustBe(err, doca.CodeNotSupported)
	_, err = s.dpu.NewClient(serverName, doca.ChannelConfig{})
	b.mustBe(err, doca.CodeNotSupported)
}

// cancelled calls f with a context that ends after f has had time to begin, and returns its error.
func (b *bench) cancelled(f func(context.Context) error) error {
	b.Helper()
	ctx, cancel := context.WithCancelCause(b.context())
	begun, result := make(chan struct{}), make(chan error, 1)
	go func() {
		close(begun)
		result <- f(ctx)
	}()
	<-begun
	cancel(errEnough)
	return <-result
}

var errEnough = errors.New("it was enough")

func acceptCancelled(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	b.mustBe(b.cancelled(func(ctx context.Context) error {
		_, err := server.Accept(ctx)
		return err
	}), errEnough)
	b.talk(b.connect(b.client(s, doca.ChannelConfig{}), server))
}

func connectCancelled(b *bench) {
	client := b.client(b.sides(), doca.ChannelConfig{})
	err := b.cancelled(func(ctx context.Context) error {
		_, err := client.Connect(ctx)
		return err
	})
	if !errors.Is(err, errEnough) && !errors.Is(err, doca.ErrNoServer) {
		b.Errorf("got %v, want the cause of the context, or that there is no server", err)
	}
}

func acceptClosed(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	_, err := b.client(s, doca.ChannelConfig{}).Connect(b.context())
	b.must(err)
	b.must(server.Close())
	for range 20 {
		_, err := server.Accept(b.context())
		b.mustBe(err, doca.ErrClosed)
	}
}
