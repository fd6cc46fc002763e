package doca_test

import (
	"context"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// fastStage is both sides of one connection, in one process.
type fastStage struct {
	t             *testing.T
	ctx           context.Context
	host, dpu     *doca.Device
	server        *doca.Server
	client        *doca.Client
	onHost, onDPU *doca.Connection
	representor   *doca.Representor
	driver        *doca.Driver
}

// newFastStage connects both sides over the software device. All of it is closed at the test's end, and nothing may be
// left open then.
func newFastStage(t *testing.T, options doca.Options) *fastStage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	options.Choice, options.SoftDir = doca.ChooseSoft, t.TempDir()
	driver, err := doca.Open(options)
	if err != nil {
		if err == doca.ErrNoCgo {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	s := &fastStage{t: t, ctx: ctx, driver: driver}
	t.Cleanup(s.close)
	s.host, s.dpu = must(driver.OpenDevice("b1:00.0"))(t), must(driver.OpenDevice("03:00.0"))(t)
	s.representor = must(s.dpu.OpenRepresentor("b1:00.0"))(t)
	s.server = must(s.dpu.Listen(s.representor, "fast", doca.ChannelConfig{}))(t)
	s.client = must(s.host.NewClient("fast", doca.ChannelConfig{}))(t)
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

// hangUp ends the connection from both sides.
func (s *fastStage) hangUp() {
	s.check(s.client.Close())
	s.check(s.server.Close())
}

func (s *fastStage) close() {
	s.hangUp()
	s.check(s.representor.Close())
	s.check(s.host.Close())
	s.check(s.dpu.Close())
	s.check(s.driver.Close())
	for _, handle := range doca.OpenHandles() {
		s.t.Errorf("left open: %s", handle)
	}
}

func (s *fastStage) alloc(device *doca.Device, size int64) *doca.Region {
	s.t.Helper()
	region := must(device.Alloc(size, doca.LocalWrite|doca.RemoteWrite))(s.t)
	s.t.Cleanup(func() { s.check(region.Close()) })
	return region
}

// consumer and producer are closed by the test's end, before what they were made from.
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
