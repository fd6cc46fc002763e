package doca_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// shortMessage is immediate data of one byte, which is also its tag.
func shortMessage(to uint32, tag byte) doca.FastMessage {
	return doca.FastMessage{To: to, Immediate: []byte{tag}, Tag: uint64(tag)}
}

// Completions that arrive together are returned one by one, and count as in flight until then.
func TestFastPathKeepsSurplus(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	consumer := s.consumer(s.onHost, s.alloc(s.host, 4096), doca.ConsumerConfig{Depth: 3, Immediate: 1})
	producer := s.producer(s.onDPU, 3)
	to := s.consumerOf(s.onDPU)
	doca.MakeGenerous(consumer, producer)
	must(consumer.Post([]doca.Receive{{Tag: 10}, {Tag: 11}, {Tag: 12}}))(t)
	must(consumer.Push(make([]doca.Received, 1)))(t)
	must(producer.Send([]doca.FastMessage{shortMessage(to, 0), shortMessage(to, 1), shortMessage(to, 2)}))(t)
	sent, received := make([]doca.Completion, 1), make([]doca.Received, 1)
	for i := range 3 {
		n := must(producer.Reap(s.ctx, sent))(t)
		if n != 1 || sent[0].Tag != uint64(i) || sent[0].Err != nil || producer.Inflight() != 2-i {
			t.Errorf("completion %d: %d, %+v, %d in flight", i, n, sent[0], producer.Inflight())
		}
	}
	for i := range 3 {
		n := must(consumer.Reap(s.ctx, received))(t)
		r := received[0]
		if n != 1 || r.Tag != uint64(10+i) || r.Err != nil || r.Immediate[0] != byte(i) || consumer.Inflight() != 2-i {
			t.Errorf("message %d: %d, %+v, %d in flight", i, n, r, consumer.Inflight())
		}
	}
}

// Completions during SendWait are still to be reaped, and count towards the depth.
func TestSendWaitLosesNoCompletion(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	consumer := s.consumer(s.onHost, s.alloc(s.host, 4096), doca.ConsumerConfig{Depth: 1, Immediate: 1})
	producer := s.producer(s.onDPU, 2)
	to := s.consumerOf(s.onDPU)
	cancelled, cancel := context.WithCancel(s.ctx)
	cancel()
	received := make([]doca.Received, 1)
	offer := func() {
		must(consumer.Post([]doca.Receive{{}}))(t)
		must(consumer.Push(received))(t)
	}
	send := func(ctx context.Context, tag byte) error {
		_, err := producer.SendWait(ctx, []doca.FastMessage{shortMessage(to, tag)})
		return err
	}
	offer()
	s.check(send(s.ctx, 0))
	if err := send(cancelled, 1); !errors.Is(err, context.Canceled) || producer.Inflight() != 1 {
		t.Errorf("without a buffer: %v, %d in flight", err, producer.Inflight())
	}
	must(consumer.Reap(s.ctx, received))(t)
	offer()
	s.check(send(s.ctx, 1))
	if err := send(s.ctx, 2); !errors.Is(err, doca.ErrQueueFull) || producer.Inflight() != 2 {
		t.Errorf("beyond the depth: %v, %d in flight", err, producer.Inflight())
	}
	sent := make([]doca.Completion, 1)
	for tag := range uint64(2) {
		if n := must(producer.Reap(s.ctx, sent))(t); n != 1 || sent[0].Tag != tag || sent[0].Err != nil {
			t.Errorf("completion %d: %d, %+v", tag, n, sent[0])
		}
	}
}
