package docatest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

var messageCases = []testCase{
	{"of one byte and of the most", messageSizes},
	{"of no size and of too much are refused", messageSizesRefused},
	{"belong to the receiver", belongToReceiver},
	{"keep their order both ways, past a slow reader", keepTheirOrder},
	{"are divided between readers", dividedBetweenReaders},
	{"wait for space, and no longer than their context", waitForSpace},
	{"through queues of one", queuesOfOne},
}

func messageSizes(b *bench) {
	host, dpu := b.pair(doca.ChannelConfig{})
	most := host.MaxMessage()
	if most != int(b.hostInfo().MaxMessage) || dpu.MaxMessage() != most {
		b.Errorf("messages have up to %d and %d bytes, not %d", most, dpu.MaxMessage(), b.hostInfo().MaxMessage)
	}
	largest := make([]byte, most)
	fillRandom(largest)
	for _, size := range []int{1, 2, most - 1, most} {
		for _, ends := range [][2]*doca.Connection{{host, dpu}, {dpu, host}} {
			b.send(ends[0], string(largest[:size]))
			b.mustReceive(ends[1], string(largest[:size]))
		}
	}
}

func messageSizesRefused(b *bench) {
	host, dpu := b.pair(doca.ChannelConfig{})
	for _, end := range []*doca.Connection{host, dpu} {
		for _, size := range []int{0, host.MaxMessage() + 1, 100 * host.MaxMessage()} {
			b.mustBe(end.Send(b.context(), make([]byte, size)), doca.CodeInvalidValue)
		}
	}
	b.talk(host, dpu)
}

func belongToReceiver(b *bench) {
	host, dpu := b.pair(doca.ChannelConfig{})
	message := []byte("first")
	b.must(host.Send(b.context(), message))
	copy(message, "FIRST")
	first, err := dpu.Recv(b.context())
	b.must(err)
	b.send(host, "other")
	b.mustReceive(dpu, "other")
	if string(first) != "first" {
		b.Errorf("a message that was received became %q", first)
	}
}

// numbered returns message i of a stream: its number, and a varying number of bytes.
func numbered(i, most int) []byte {
	message := make([]byte, 8+(i*37)%(most-8))
	binary.LittleEndian.PutUint64(message, uint64(i))
	message[len(message)-1] ^= byte(i)
	return message
}

const streamLength = 10_000

func (b *bench) sendStream(c *doca.Connection) error {
	ctx := b.context()
	for i := range streamLength {
		if err := c.Send(ctx, numbered(i, c.MaxMessage())); err != nil {
			return fmt.Errorf("sending message %d: %w", i, err)
		}
	}
	return nil
}

// receiveStream pauses now and then, so that the sender finds full queues.
func (b *bench) receiveStream(c *doca.Connection) error {
	ctx := b.context()
	for i := range streamLength {
		if i%500 == 0 {
			time.Sleep(time.Millisecond)
		}
		message, err := c.Recv(ctx)
		if err != nil {
			return fmt.Errorf("receiving message %d: %w", i, err)
		}
		if !bytes.Equal(message, numbered(i, c.MaxMessage())) {
			return fmt.Errorf("instead of message %d came %d bytes that are not it", i, len(message))
		}
	}
	return nil
}

func keepTheirOrder(b *bench) {
	host, dpu := b.pair(doca.ChannelConfig{})
	tasks := []func() error{
		func() error { return b.sendStream(host) },
		func() error { return b.sendStream(dpu) },
		func() error { return b.receiveStream(host) },
		func() error { return b.receiveStream(dpu) },
	}
	results := make(chan error, len(tasks))
	for _, task := range tasks {
		go func() { results <- task() }()
	}
	for range tasks {
		if err := <-results; err != nil {
			b.Error(err)
		}
	}
}

// Several readers empty a full queue at once, which must not block the sender.
func dividedBetweenReaders(b *bench) {
	host, dpu := b.pair(doca.ChannelConfig{ReceiveQueue: 2})
	ctx := b.context()
	var readers sync.WaitGroup
	counts := make(chan int, 4)
	for range cap(counts) {
		readers.Go(func() {
			count := 0
			for {
				if _, err := dpu.Recv(ctx); err != nil {
					break
				}
				count++
			}
			counts <- count
		})
	}
	for range 2000 {
		b.send(host, "message")
	}
	b.must(host.Close())
	readers.Wait()
	sum := 0
	for range cap(counts) {
		sum += <-counts
	}
	if sum != 2000 {
		b.Errorf("%d of 2000 messages arrived", sum)
	}
}

// fill sends until the queues are full, or seem to be because the machine is busy, and returns how many messages were
// certainly accepted.
func (b *bench) fill(c *doca.Connection) int {
	b.Helper()
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeoutCause(b.context(), 50*time.Millisecond, errEnough)
		err := c.Send(ctx, numbered(i, c.MaxMessage()))
		cancel()
		if errors.Is(err, errEnough) {
			return i
		}
		b.must(err)
	}
}

func waitForSpace(b *bench) {
	host, dpu := b.pair(doca.ChannelConfig{ReceiveQueue: 2, Sends: 2})
	for i := range b.fill(host) {
		b.mustReceive(dpu, string(numbered(i, host.MaxMessage())))
	}
}

func queuesOfOne(b *bench) {
	host, dpu := b.pair(doca.ChannelConfig{ReceiveQueue: 1, Sends: 1})
	for range 100 {
		b.talk(host, dpu)
	}
}
