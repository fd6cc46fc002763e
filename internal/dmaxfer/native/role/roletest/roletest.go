// Package roletest plays the transfer and the peer for a test of one role.
package roletest

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Link is a role.Link that does nothing by itself: a test makes the calls one after another.
type Link struct {
	Jobs   []func() role.Call
	Posted []role.Call
	Sent   func(message []byte) error // is called for each message; nil: it is dropped
}

var _ role.Link = (*Link)(nil)

// Send implements role.Link.
func (l *Link) Send(_ context.Context, message []byte) error {
	if l.Sent == nil {
		return nil
	}
	return l.Sent(message)
}

// Run implements role.Link.
func (l *Link) Run(ctx context.Context, job func(ctx context.Context) role.Call) {
	l.Jobs = append(l.Jobs, func() role.Call { return job(ctx) })
}

// Post implements role.Link.
func (l *Link) Post(call role.Call) { l.Posted = append(l.Posted, call) }

// Code implements role.Link.
func (*Link) Code(error) wire.AbortCode { return wire.AbortFailure }

// Poller implements role.Link.
func (*Link) Poller(context.Context) pump.Poller { return nil }

// NewTransfer returns a transfer whose sides have agreed: this one has sent own, the peer has sent peer. It completes
// the config.
func NewTransfer(
	t *testing.T, c *role.Config, own, peer native.Hello, maxMessage int, link role.Link,
) *role.Transfer {
	t.Helper()
	c.Conn, _ = comchtest.NewPair(maxMessage, comchtest.Faultless, comchtest.Faultless)
	c.Progress, c.Log, c.Memory = &job.Progress{}, comchtest.LogOnFailure(t, c.Side.String()), noMemory{}
	session, err := native.New(c.Side, own.Version, own, wire.Limits{
		MaxMessage: maxMessage, MaxFileSize: 1 << 40,
	})
	if err != nil {
		t.Fatal(err)
	}
	session.Start()
	step, err := session.Receive(native.AppendHello(nil, peer))
	if err != nil {
		t.Fatal(err)
	}
	params := role.NewParams(c)
	params.Plan = step.Plan
	stats := role.NewStats(params)
	stats.Planned(peer)
	return &role.Transfer{
		Params: params, Session: session, Link: link, Stats: stats, Message: make([]byte, 0, maxMessage),
	}
}

// noMemory is a window.Memory without a window.
type noMemory struct{ window.Memory }

// Traits implements window.Memory.
func (noMemory) Traits(job.Paths) window.Traits { return window.Traits{} }

// Attribute returns one extended attribute with these lengths, true or not, as it is sent.
func Attribute(nameLength, valueLength uint32, bytes string) []byte {
	blob := binary.BigEndian.AppendUint32(nil, nameLength)
	return append(binary.BigEndian.AppendUint32(blob, valueLength), bytes...)
}

// Blob returns one extended attribute as it is sent, in so many bytes.
func Blob(bytes int) []byte {
	const header, name = 8, "user.x"
	value := bytes - header - len(name)
	return Attribute(uint32(len(name)), uint32(value), name+Repeated("v", value))
}

// Repeated returns so many bytes that repeat a text.
func Repeated(text string, size int) string { return strings.Repeat(text, size/len(text)+1)[:size] }
