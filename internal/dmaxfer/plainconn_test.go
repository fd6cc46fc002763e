package dmaxfer

import (
	"context"
	"fmt"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// plainConn is a Conn that cannot be polled.
type plainConn struct{ conn comch.Conn }

func (p plainConn) Send(ctx context.Context, message []byte) error { return p.conn.Send(ctx, message) }
func (p plainConn) Recv(ctx context.Context) ([]byte, error)       { return p.conn.Recv(ctx) }
func (p plainConn) MaxMessage() int                                { return p.conn.MaxMessage() }
func (p plainConn) Done() <-chan struct{}                          { return p.conn.Done() }
func (p plainConn) Close() error                                   { return p.conn.Close() }

func plain(_ negotiate.Side, conn comch.Conn) comch.Conn { return plainConn{conn} }

// A transport that can only wait for messages is enough for every copy.
func TestConnWithoutPolling(t *testing.T) {
	if _, polls := comch.Conn(plainConn{}).(comch.Polling); polls {
		t.Fatal("this Conn can be polled, so this shows nothing")
	}
	for name, sc := range sweepScenarios() {
		t.Run(name, func(t *testing.T) {
			c := &checker{scenario: sc, t: t}
			c.mustSucceed("without polling", c.run(c.stage(), fault{}, injection{conn: plain}))
		})
	}
}

// Such a transport notices as well that the peer is gone, with whatever message that happens.
func TestEveryNativeMessageFailsWithoutPolling(t *testing.T) {
	for name, sc := range sweepScenarios() {
		for _, from := range []negotiate.Side{negotiate.Host, negotiate.DPU} {
			t.Run(fmt.Sprint("cut of the ", from, ", ", name), func(t *testing.T) {
				sweep(t, sc, connectionLost, func(fails func(int, string) bool) injection {
					cut := func(at negotiate.Side, i int, message []byte) dmaxfertest.Delivery {
						cuts := at == from && fails(i, fmt.Sprintf("%x", message))
						return dmaxfertest.Delivery{Message: message, Cut: cuts}
					}
					return injection{conn: plain, message: cut}
				}, oneOf(negotiate.AbortPeer))
			})
		}
	}
}
