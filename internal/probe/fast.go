package probe

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// The probes of producers and consumers. Either side can be the one that receives.

// consume opens a consumer over memory of its own, with one buffer posted unless size is 0. It returns a function that
// waits for the message and returns its bytes.
func (t *trial) consume(conn *doca.Connection, size int64) (received func() []byte) {
	region := t.region(max(size, 1), doca.LocalWrite|doca.RemoteWrite)
	consumer, err := conn.NewConsumer(t.ctx, region, doca.ConsumerConfig{Depth: 1})
	t.check(err)
	t.use(consumer.Close)
	if size > 0 {
		_, err = consumer.Post([]doca.Receive{{Length: size}})
		t.check(err)
		_, err = consumer.Push(make([]doca.Received, 1))
		t.check(err)
	}
	return func() []byte {
		var got [1]doca.Received
		_, err := consumer.Reap(t.ctx, got[:])
		t.check(errors.Join(err, got[0].Err))
		return region.Bytes()[:got[0].Length]
	}
}

// producer opens a producer, and returns it with a message to the only consumer of the peer.
func (t *trial) producer(conn *doca.Connection, size int64) (*doca.Producer, []doca.FastMessage) {
	ids, err := conn.AwaitPeerConsumers(t.ctx, 1)
	t.check(err)
	source := t.source(size)
	producer, err := conn.NewProducer(1)
	t.check(err)
	t.use(producer.Close)
	return producer, []doca.FastMessage{{To: ids[0], Source: source, Length: size}}
}

func (t *trial) produce(conn *doca.Connection, size int64) {
	producer, message := t.producer(conn, size)
	_, err := producer.SendWait(t.ctx, message)
	t.check(err)
	var done [1]doca.Completion
	_, err = producer.Reap(t.ctx, done[:])
	t.check(errors.Join(err, done[0].Err))
}

// fastLink is link, on a device with the capabilities that the fast path needs.
func (t *trial) fastLink() *doca.Connection {
	if lacks := job.LacksForFast(t.Device.Info()); lacks != "" {
		t.need(errors.New("the device " + lacks))
	}
	_, conn := t.link()
	return conn
}

func fastPath(t *trial) string {
	conn := t.fastLink()
	want := t.source(smallSize).Bytes()
	received := t.consume(conn, smallSize)
	t.ask("produce %d", smallSize)
	t.same(received(), want)
	t.ask("consume %d", smallSize)
	t.produce(conn, smallSize)
	if t.ask("consumed") != sum(want) {
		t.differs("the host receives other bytes")
	}
	return "64 KiB in each direction"
}

// noBuffer sends to a consumer that has posted none.
func noBuffer(t *trial) string {
	conn := t.fastLink()
	t.ask("consume")
	producer, message := t.producer(conn, 1)
	if n, err := producer.Send(message); n != 0 || !errors.Is(err, doca.ErrQueueFull) {
		t.differs("it accepts %d messages: %v", n, err)
	}
	return "the producer's submission is refused with AGAIN"
}
