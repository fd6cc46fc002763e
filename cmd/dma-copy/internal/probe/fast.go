package probe

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// The probes of producers and consumers. Either side can be the one that receives.

// consume opens a consumer over memory of its own, with one buffer of that size posted unless that is 0.
func (t *trial) consume(conn *doca.Connection, size int64) (*doca.Consumer, *doca.Region, error) {
	region, err := t.region(max(size, 1), doca.LocalWrite|doca.RemoteWrite)
	if err != nil {
		return nil, nil, err
	}
	consumer, err := conn.NewConsumer(t.ctx, region, doca.ConsumerConfig{Depth: 1})
	if err != nil {
		return nil, nil, err
	}
	t.use(consumer.Close)
	if size > 0 {
		if _, err = consumer.Post([]doca.Receive{{Length: size}}); err == nil {
			_, err = consumer.Push(make([]doca.Received, 1))
		}
	}
	return consumer, region, err
}

// consumed waits for the message and returns its bytes.
func consumed(ctx context.Context, consumer *doca.Consumer, region *doca.Region) ([]byte, error) {
	var got [1]doca.Received
	if _, err := consumer.Reap(ctx, got[:]); err != nil {
		return nil, err
	}
	return region.Bytes()[:got[0].Length], got[0].Err
}

// produce opens a producer, and has it send a message to the only consumer of the peer.
func (t *trial) produce(ctx context.Context, conn *doca.Connection, size int64) ([]byte, error) {
	ids, err := conn.AwaitPeerConsumers(ctx, 1)
	if err != nil {
		return nil, err
	}
	source, err := t.region(size, doca.LocalRead)
	if err != nil {
		return nil, err
	}
	fill(source.Bytes(), 3)
	producer, err := conn.NewProducer(1)
	if err != nil {
		return nil, err
	}
	t.use(producer.Close)
	if _, err := producer.SendWait(ctx, []doca.FastMessage{{To: ids[0], Source: source, Length: size}}); err != nil {
		return nil, err
	}
	var done [1]doca.Completion
	if _, err := producer.Reap(ctx, done[:]); err != nil {
		return nil, err
	}
	return source.Bytes(), done[0].Err
}

func fastPath(t *trial) (string, error) {
	_, conn, err := t.link()
	if err != nil {
		return "", err
	}
	consumer, region, err := t.consume(conn, smallSize)
	if err != nil {
		return "", differs("a consumer: %s", firstLine(err))
	}
	if _, err := t.ask("produce %d", smallSize); err != nil {
		return "", differs("%s", firstLine(err))
	}
	got, err := consumed(t.ctx, consumer, region)
	if err == nil {
		want := make([]byte, smallSize)
		fill(want, 3)
		err = same(got, want)
	}
	if err == nil {
		_, err = t.ask("consume %d", smallSize)
	}
	if err != nil {
		return "", differs("%s", firstLine(err))
	}
	sent, err := t.produce(t.ctx, conn, smallSize)
	if err != nil {
		return "", differs("%s", firstLine(err))
	}
	if received, err := t.ask("consumed"); received != sum(sent) || err != nil {
		return "", differs("the host receives %q, error %v", received, err)
	}
	return fmt.Sprintf("%d bytes in each direction", smallSize), nil
}

// noBuffer sends to a consumer that has posted none.
func noBuffer(t *trial) (string, error) {
	_, conn, err := t.link()
	if err != nil {
		return "", err
	}
	if _, err := t.ask("consume"); err != nil {
		return "", err
	}
	ids, err := conn.AwaitPeerConsumers(t.ctx, 1)
	if err != nil {
		return "", err
	}
	source, err := t.region(1, doca.LocalRead)
	if err != nil {
		return "", err
	}
	producer, err := conn.NewProducer(1)
	if err != nil {
		return "", err
	}
	t.use(producer.Close)
	n, err := producer.Send([]doca.FastMessage{{To: ids[0], Source: source, Length: 1}})
	if n != 0 || !errors.Is(err, doca.ErrQueueFull) {
		return "", differs("it accepts %d messages: %v", n, err)
	}
	return "the producer's submission is refused with AGAIN", nil
}
