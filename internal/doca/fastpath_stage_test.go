package doca_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// fastStage is both sides of a connection, in one process.
type fastStage struct {
	t             *testing.T
	ctx           context.Context
	host, dpu     *doca.Device
	server        *doca.Server
	client        *doca.Client
	onHost, onDPU *doca.Connection
	representor   *doca.Representor
}

// openSoftWith opens the software device until the end of the test, when nothing may be left open.
func openSoftWith(t *testing.T, options doca.Options) *doca.Driver {
	t.Helper()
	docatest.CheckHandles(t)
	options.Choice, options.SoftDir = doca.ChooseSoft, t.TempDir()
	driver, err := doca.Open(options)
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	})
	return driver
}

// newFastStage connects both sides over the software device and closes everything at the end of the test.
func newFastStage(t *testing.T, options doca.Options) *fastStage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	driver := openSoftWith(t, options)
	s := &fastStage{t: t, ctx: ctx}
	t.Cleanup(s.close)
	s.host, s.dpu = must(driver.OpenDevice("b1:00.0"))(t), must(driver.OpenDevice("03:00.0"))(t)
	s.representor = must(s.dpu.OpenRepresentor("b1:00.0"))(t)
	s.server = must(s.dpu.Listen(s.representor, "fast", doca.ChannelConfig{Polled: true}))(t)
	s.client = must(s.host.NewClient("fast", doca.ChannelConfig{Polled: true}))(t)
	s.onHost = must(s.client.Connect(ctx))(t)
	s.onDPU = must(s.server.Accept(ctx))(t)
	return s
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func (s *fastStage) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
	}
}

func (s *fastStage) close() {
	s.check(s.client.Close())
	s.check(s.server.Close())
	s.check(s.representor.Close())
	s.check(s.host.Close())
	s.check(s.dpu.Close())
}

func (s *fastStage) alloc(device *doca.Device, size int64) *doca.Region {
	s.t.Helper()
	region := must(device.Alloc(size, doca.LocalWrite|doca.RemoteWrite))(s.t)
	s.t.Cleanup(func() { s.check(region.Close()) })
	return region
}

// consumer and producer are closed at the end of the test, before the connection.
func (s *fastStage) consumer(on *doca.Connection, region *doca.Region, config doca.ConsumerConfig) *doca.Consumer {
	s.t.Helper()
	consumer := must(on.NewConsumer(s.ctx, region, config))(s.t)
	s.t.Cleanup(func() { s.check(consumer.Close()) })
	return consumer
}

func (s *fastStage) producer(on *doca.Connection, depth int) *doca.Producer {
	s.t.Helper()
	producer := must(on.NewProducer(depth))(s.t)
	s.t.Cleanup(func() { s.check(producer.Close()) })
	return producer
}

// consumerOf waits until the connection's side knows of a consumer of the peer.
func (s *fastStage) consumerOf(on *doca.Connection) uint32 {
	s.t.Helper()
	return must(on.AwaitPeerConsumers(s.ctx, 1))(s.t)[0]
}

// sendOne sends one message, when there is a buffer for it, and waits for its completion.
func (s *fastStage) sendOne(p *doca.Producer, message []doca.FastMessage) doca.Completion {
	s.t.Helper()
	if n, err := p.SendWait(s.ctx, message); n != 1 || err != nil {
		s.t.Fatalf("sent %d: %v", n, err)
	}
	into := make([]doca.Completion, 1)
	if n, err := p.Reap(s.ctx, into); n != 1 || err != nil {
		s.t.Fatalf("completed %d: %v", n, err)
	}
	return into[0]
}
