package docatest

import (
	"context"
	"slices"

	"github.com/dma-copy/dma-copy/internal/doca"
)

var fastPathLifeCases = []testCase{
	{"consumers appear to the peer and expire", appearAndExpire},
	{"a connection is not closed below its producer", closedBelowProducer},
	{"a server that closes waits for its producers", serverWaitsForProducers},
	{"buffers are returned when the connection ends", buffersReturned},
	{"closes with buffers posted", closesWithBuffers},
	{"waiting ends with its context", fastCancelled},
}

func appearAndExpire(b *bench) {
	host, dpu := b.bothSides()
	memory := b.fastMemory(host)
	first := b.consumer(host, memory, doca.ConsumerConfig{Depth: 1})
	second := b.consumer(host, memory, doca.ConsumerConfig{Depth: 1})
	ids, err := dpu.AwaitPeerConsumers(b.context(), 2)
	b.must(err)
	if !slices.Equal(ids, []uint32{first.ID(), second.ID()}) {
		b.Errorf("the peer knows %v, not %d and %d", ids, first.ID(), second.ID())
	}
	b.must(first.Close())
	b.awaitPeers(dpu, func(ids []uint32) bool { return slices.Equal(ids, []uint32{second.ID()}) })
	b.must(second.Close())
	b.awaitPeers(dpu, func(ids []uint32) bool { return len(ids) == 0 })
	b.must(host.Close())
	_, err = dpu.AwaitPeerConsumers(b.context(), 1)
	b.mustBe(err, doca.ErrDisconnected)
}

func closedBelowProducer(b *bench) {
	_, dpu := b.bothSides()
	producer := b.producer(dpu)
	b.mustBe(dpu.Close(), doca.CodeInUse)
	b.must(producer.Close())
	b.must(dpu.Close())
}

func serverWaitsForProducers(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	_, dpu := b.connect(b.client(s, doca.ChannelConfig{}), server)
	producer := b.producer(side{dpu, s.dpu})
	closed := make(chan error, 1)
	go func() { closed <- server.Close() }()
	<-dpu.Done()
	b.must(producer.Close())
	b.must(<-closed)
}

func buffersReturned(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	onHost, _ := b.connect(b.client(s, doca.ChannelConfig{}), server)
	host := side{onHost, s.host}
	consumer := b.consumer(host, b.fastMemory(host), doca.ConsumerConfig{Depth: 1})
	b.post(consumer, doca.Receive{Length: 100})
	ctx, came := b.context(), make(chan doca.Received, 1)
	go func() {
		into := make([]doca.Received, 1)
		_, _ = consumer.Reap(ctx, into)
		came <- into[0]
	}()
	b.must(server.Close())
	if got := <-came; got.Err == nil || ctx.Err() != nil {
		b.Errorf("after the end of the connection came %+v", got)
	}
	<-onHost.Done() // which the consumer may see first
	if producer, err := onHost.NewProducer(1); err == nil {
		b.closeAtEnd(producer)
		b.Error("a connection that has ended has a new producer")
	}
}

func closesWithBuffers(b *bench) {
	host, dpu := b.bothSides()
	for range 20 {
		l := b.lane(dpu, host, doca.ConsumerConfig{Depth: fastSlots})
		b.post(l.consumer, make([]doca.Receive, fastSlots)...)
		b.must(l.consumer.Close())
		b.must(l.producer.Close())
	}
}

func fastCancelled(b *bench) {
	host, dpu := b.bothSides()
	l := b.lane(dpu, host, doca.ConsumerConfig{Depth: 1})
	b.mustBe(b.cancelled(func(ctx context.Context) error {
		_, err := l.producer.SendWait(ctx, []doca.FastMessage{{To: l.consumer.ID(), Source: l.source, Length: 1}})
		return err
	}), errEnough)
	b.post(l.consumer, doca.Receive{Length: 1})
	b.mustBe(b.cancelled(func(ctx context.Context) error {
		_, err := l.consumer.Reap(ctx, make([]doca.Received, 1))
		return err
	}), errEnough)
	b.mustBe(b.cancelled(func(ctx context.Context) error {
		_, err := dpu.AwaitPeerConsumers(ctx, 2)
		return err
	}), errEnough)
	b.sendFast(l, doca.FastMessage{Source: l.source, Length: 1})
	if got := b.receiveFast(l.consumer); got.Length != 1 {
		b.Errorf("received %+v", got)
	}
}
