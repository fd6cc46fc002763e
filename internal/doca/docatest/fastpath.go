package docatest

import (
	"context"
	"errors"
	"slices"

	"github.com/dma-copy/dma-copy/internal/doca"
)

var fastPathCases = []testCase{
	{"bytes and immediate data go both ways", bothWays},
	{"immediate data of one byte and of the most", immediateSizes},
	{"batches keep their order and their data apart", batchesOfMessages},
	{"a message without a buffer is refused", withoutBufferRefused},
	{"invalid buffers are refused, and more than the depth", invalidBuffersRefused},
	{"several at once keep their streams whole", severalStreams},
}

// side is one end of a connection and its device.
type side struct {
	*doca.Connection
	device *doca.Device
}

// bothSides returns both sides of a new connection.
func (b *bench) bothSides() (host, dpu side) {
	b.Helper()
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	onHost, onDPU := b.connect(b.client(s, doca.ChannelConfig{}), server)
	return side{onHost, s.host}, side{onDPU, s.dpu}
}

// lane is a producer, with a page of memory, and a consumer of the other side, with another.
type lane struct {
	producer       *doca.Producer
	consumer       *doca.Consumer
	source, target *doca.Region
}

const sendDepth = 4

// lane returns when the producer's side knows the consumer.
func (b *bench) lane(from, to side, config doca.ConsumerConfig) lane {
	b.Helper()
	l := lane{source: b.fastMemory(from), target: b.fastMemory(to), producer: b.producer(from)}
	l.consumer = b.consumer(to, l.target, config)
	b.awaitPeers(from, func(ids []uint32) bool { return slices.Contains(ids, l.consumer.ID()) })
	return l
}

func (b *bench) fastMemory(s side) *doca.Region {
	b.Helper()
	return b.alloc(s.device, page, doca.LocalWrite|doca.RemoteWrite)
}

func (b *bench) consumer(s side, memory *doca.Region, config doca.ConsumerConfig) *doca.Consumer {
	b.Helper()
	consumer, err := s.NewConsumer(b.context(), memory, config)
	b.must(err)
	b.closeAtEnd(consumer)
	return consumer
}

func (b *bench) producer(s side) *doca.Producer {
	b.Helper()
	producer, err := s.NewProducer(sendDepth)
	b.must(err)
	b.closeAtEnd(producer)
	return producer
}

// awaitPeers waits until a side's list of its peer's consumers is as wanted.
func (b *bench) awaitPeers(s side, wanted func([]uint32) bool) {
	b.Helper()
	ctx := b.context()
	for ids, changed := s.PeerConsumers(); !wanted(ids); ids, changed = s.PeerConsumers() {
		select {
		case <-changed:
		case <-ctx.Done():
			b.Fatalf("the peer's consumers are still %v", ids)
		}
	}
}

// offer posts buffers, within the depth: a driver may return AGAIN for reasons that its user cannot know.
func offer(ctx context.Context, c *doca.Consumer, buffers ...doca.Receive) error {
	for len(buffers) > 0 {
		n, err := c.Post(buffers)
		if err != nil && !errors.Is(err, doca.ErrQueueFull) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		buffers = buffers[n:]
	}
	return nil
}

// post posts a buffer and pushes it to the peer.
func (b *bench) post(c *doca.Consumer, buffers ...doca.Receive) {
	b.Helper()
	b.must(offer(b.context(), c, buffers...))
	if n, err := c.Push(make([]doca.Received, 1)); n != 0 || err != nil {
		b.Fatalf("pushing buffers received %d messages, error %v", n, err)
	}
}

// sendFast sends a message and waits for its completion.
func (b *bench) sendFast(l lane, m doca.FastMessage) {
	b.Helper()
	m.To = l.consumer.ID()
	if n, err := l.producer.SendWait(b.context(), []doca.FastMessage{m}); n != 1 || err != nil {
		b.Fatalf("%d of 1 message sent: %v", n, err)
	}
	into := make([]doca.Completion, sendDepth)
	n, err := l.producer.Reap(b.context(), into)
	b.must(err)
	if n != 1 || into[0].Tag != m.Tag || into[0].Err != nil {
		b.Fatalf("message %d completed as %+v", m.Tag, into[:n])
	}
}

func (b *bench) receiveFast(c *doca.Consumer) doca.Received {
	b.Helper()
	into := make([]doca.Received, 1)
	n, err := c.Reap(b.context(), into)
	b.must(err)
	if n != 1 {
		b.Fatal("the posted buffers did not come back")
	}
	b.must(into[0].Err)
	return into[0]
}

func bothWays(b *bench) {
	host, dpu := b.bothSides()
	for _, way := range [][2]side{{dpu, host}, {host, dpu}} {
		l := b.lane(way[0], way[1], doca.ConsumerConfig{Depth: 4, Immediate: 16})
		fillRandom(l.source.Bytes())
		b.post(l.consumer, doca.Receive{Offset: 2048, Length: 50, Tag: 7}, doca.Receive{Tag: 8})
		message := doca.FastMessage{Source: l.source, Offset: 100, Length: 24, Immediate: []byte("with bytes"), Tag: 1}
		b.sendFast(l, message)
		b.sendFast(l, doca.FastMessage{Immediate: []byte("alone"), Tag: 2})

		got := b.receiveFast(l.consumer)
		if got.Tag != 7 || got.Length != 24 || string(got.Immediate) != "with bytes" ||
			got.Producer != l.producer.ID() {
			b.Errorf("received %+v from producer %d", got, l.producer.ID())
		}
		if got := b.receiveFast(l.consumer); got.Tag != 8 || got.Length != 0 || string(got.Immediate) != "alone" {
			b.Errorf("received %+v", got)
		}
		want := make([]byte, page)
		copy(want[2048:], l.source.Bytes()[100:124])
		b.mustEqual(l.target.Bytes(), want)
	}
}

func immediateSizes(b *bench) {
	host, dpu := b.bothSides()
	most := int(b.hostInfo().MaxImmediate)
	l := b.lane(dpu, host, doca.ConsumerConfig{Depth: 1, Immediate: most})
	data := make([]byte, most)
	fillRandom(data)
	for _, size := range []int{1, most - 1, most} {
		b.post(l.consumer, doca.Receive{})
		b.sendFast(l, doca.FastMessage{Immediate: data[:size]})
		b.mustEqual(b.receiveFast(l.consumer).Immediate, data[:size])
	}
}

func batchesOfMessages(b *bench) {
	host, dpu := b.bothSides()
	l := b.lane(dpu, host, doca.ConsumerConfig{Depth: 3, Immediate: 8})
	fillRandom(l.source.Bytes())
	words := []string{"one", "", "three"}
	var buffers []doca.Receive
	var messages []doca.FastMessage
	for i, word := range words {
		at := int64(i)
		buffers = append(buffers, doca.Receive{Offset: at * 1000, Length: 1000, Tag: uint64(i)})
		messages = append(messages, doca.FastMessage{
			To: l.consumer.ID(), Source: l.source, Offset: at * 1000, Length: 10 + at, Immediate: []byte(word),
		})
	}
	b.post(l.consumer, buffers...)
	for len(messages) > 0 {
		n, err := l.producer.SendWait(b.context(), messages)
		if !errors.Is(err, doca.ErrQueueFull) {
			b.must(err)
		}
		messages = messages[n:]
	}
	completions := make([]doca.Completion, sendDepth)
	for l.producer.Inflight() > 0 { // nothing moves that is not reaped
		n, err := l.producer.Reap(b.context(), completions)
		b.must(err)
		for _, c := range completions[:n] {
			b.must(c.Err)
		}
	}
	for i, word := range words {
		got := b.receiveFast(l.consumer)
		if got.Tag != uint64(i) || got.Length != 10+int64(i) || string(got.Immediate) != word {
			b.Fatalf("message %d came as %+v", i, got)
		}
		at := i * 1000
		b.mustEqual(l.target.Bytes()[at:at+10+i], l.source.Bytes()[at:at+10+i])
	}
}

func withoutBufferRefused(b *bench) {
	host, dpu := b.bothSides()
	l := b.lane(dpu, host, doca.ConsumerConfig{Depth: 2})
	message := doca.FastMessage{To: l.consumer.ID(), Source: l.source, Length: 10}
	refused := func(m doca.FastMessage, cause error) {
		b.Helper()
		n, err := l.producer.Send([]doca.FastMessage{m})
		if b.mustBe(err, cause); n != 0 {
			b.Errorf("%d messages were taken nevertheless", n)
		}
	}
	refused(message, doca.ErrQueueFull)
	b.post(l.consumer, doca.Receive{Length: 9}) // less than the message wants
	refused(message, doca.CodeInvalidValue)
	message.Length = 9
	message.Offset = page - 8
	refused(message, doca.CodeInvalidValue)
	message.Offset = 0
	b.sendFast(l, message)
	if got := b.receiveFast(l.consumer); got.Length != 9 {
		b.Errorf("received %+v after messages that were refused", got)
	}
	message.To++
	refused(message, doca.CodeInvalidValue)
}

func invalidBuffersRefused(b *bench) {
	host, _ := b.bothSides()
	consumer := b.consumer(host, b.fastMemory(host), doca.ConsumerConfig{Depth: 2})
	invalid := []doca.Receive{
		{Offset: page - 96, Length: 97}, {Offset: -1, Length: 1}, {Length: -1}, {Offset: page, Length: 1},
	}
	for _, receive := range invalid {
		_, err := consumer.Post([]doca.Receive{receive})
		b.mustBe(err, doca.CodeInvalidValue)
	}
	b.post(consumer, doca.Receive{Length: page}, doca.Receive{Offset: page - 96, Length: 96})
	n, err := consumer.Post([]doca.Receive{{Length: 1}})
	if b.mustBe(err, doca.ErrQueueFull); n != 0 || consumer.Inflight() != 2 {
		b.Errorf("%d more buffers were accepted, %d in flight of depth 2", n, consumer.Inflight())
	}
}
