package secure

import (
	"context"
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
	comchtest.TestConn(t, func(t *testing.T) (one, other comch.Conn) {
		raw, rawOther := comch.Pipe(4080)
		server, client := mustMeet(t, s, raw, rawOther)
		return server, client
	})
}
