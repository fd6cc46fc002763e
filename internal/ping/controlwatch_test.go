package ping

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/dma-copy/dma-copy/internal/comch"
)

// scriptedConn delivers messages and then an error.
type scriptedConn struct {
	comch.Conn
	messages []string
	err      error
}

func (c *scriptedConn) Recv(context.Context) ([]byte, error) {
	if len(c.messages) == 0 {
		return nil, c.err
	}
	next := c.messages[0]
	c.messages = c.messages[1:]
	return []byte(next), nil
}

// The end of the connection is told also if it comes before the message in front of it has been taken.
func TestEndBehindAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		watch := watchControl(t.Context(), &scriptedConn{messages: []string{"first", "last"}, err: gone})
		defer watch.close()
		for _, want := range []string{"first", "last"} {
			synctest.Wait() // all that can be announced has been
			message, err := watch.await(t.Context())
			if string(message) != want || err != nil {
				t.Fatalf("got %q, %v; want %q", message, err, want)
			}
		}
		for range 2 {
			if _, err := watch.await(t.Context()); err != gone {
				t.Fatalf("got %v, want %v", err, gone)
			}
		}
		if watch.quiet().Err() == nil {
			t.Fatal("the end is no longer announced")
		}
	})
}
