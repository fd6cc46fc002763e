package docatest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

const (
	fastSlots  = 8                // of a consumer's memory
	fastSize   = page / fastSlots // bytes of each message
	fastNumber = 8                // bytes of immediate data: the message's number
)

// Stream sends messages from a producer to a consumer of the driver, which must arrive whole and in order, however
// often the device returns AGAIN.
func Stream(t *testing.T, driver *doca.Driver, messages int) {
	t.Helper()
	CheckHandles(t, driver)
	b := &bench{T: t, driver: driver}
	host, dpu := b.bothSides()
	b.stream(messages, b.streamLane(dpu, host))
}

// Each lane has a goroutine and an engine at each end.
func severalStreams(b *bench) {
	host, dpu := b.bothSides()
	b.stream(200, b.streamLane(dpu, host), b.streamLane(host, dpu), b.streamLane(dpu, host))
}

func (b *bench) streamLane(from, to side) lane {
	b.Helper()
	return b.lane(from, to, doca.ConsumerConfig{Depth: fastSlots, Immediate: fastNumber})
}

func (b *bench) stream(messages int, lanes ...lane) {
	b.Helper()
	ctx := b.context()
	var work sync.WaitGroup
	check := func(err error) {
		if err != nil {
			b.Error(err)
		}
	}
	for _, l := range lanes {
		work.Go(func() { check(l.sendAll(ctx, uint64(messages))) })
		work.Go(func() { check(l.receiveAll(ctx, uint64(messages))) })
	}
	work.Wait()
}

func fillNumbered(number uint64, into []byte) {
	random := rand.NewChaCha8([32]byte{byte(number), byte(number >> 8)})
	_, _ = random.Read(into)
}

func (l lane) sendAll(ctx context.Context, count uint64) error {
	into := make([]doca.Completion, 1)
	m := doca.FastMessage{To: l.consumer.ID(), Source: l.source, Length: fastSize}
	for number := range count {
		fillNumbered(number, l.source.Bytes()[:fastSize])
		m.Immediate = binary.LittleEndian.AppendUint64(nil, number)
		if _, err := l.producer.SendWait(ctx, []doca.FastMessage{m}); err != nil {
			return fmt.Errorf("sending message %d: %w", number, err)
		}
		if n, err := l.producer.Reap(ctx, into); n != 1 || err != nil || into[0].Err != nil {
			return fmt.Errorf("message %d completed %d times: %w", number, n, errors.Join(err, into[0].Err))
		}
	}
	return nil
}

// receiveAll posts each slot again as soon as it has checked its message.
func (l lane) receiveAll(ctx context.Context, count uint64) error {
	for slot := range int64(fastSlots) {
		if err := l.offerSlot(ctx, uint64(slot)); err != nil {
			return err
		}
	}
	into := make([]doca.Received, fastSlots)
	for number := uint64(0); number < count; {
		n, err := l.consumer.Reap(ctx, into)
		if err != nil {
			return fmt.Errorf("receiving message %d: %w", number, err)
		}
		for _, got := range into[:n] {
			if err := l.checkNumbered(got, number); err != nil {
				return err
			}
			number++
		}
		for _, got := range into[:n] {
			if err := l.offerSlot(ctx, got.Tag); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l lane) offerSlot(ctx context.Context, slot uint64) error {
	return offer(ctx, l.consumer, doca.Receive{Offset: int64(slot) * fastSize, Length: fastSize, Tag: slot})
}

func (l lane) checkNumbered(got doca.Received, number uint64) error {
	want := make([]byte, fastSize)
	fillNumbered(number, want)
	bytesCame := l.target.Bytes()[got.Tag*fastSize:][:fastSize]
	numberCame := binary.LittleEndian.AppendUint64(nil, number)
	if got.Err != nil || !bytes.Equal(got.Immediate, numberCame) || !bytes.Equal(bytesCame, want) {
		return fmt.Errorf("instead of message %d came %+v", number, got)
	}
	return nil
}
