package doca_test

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// Frequent calls into C do not allocate.
func TestFastPathAllocatesNothing(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	target, source := s.alloc(s.host, 4096), s.alloc(s.dpu, 4096)
	consumer := s.consumer(s.onHost, target, doca.ConsumerConfig{Depth: 1})
	producer := s.producer(s.onDPU, 1)
	messages := []doca.FastMessage{{To: s.consumerOf(s.onDPU), Source: source, Length: 64}}
	receives, received := []doca.Receive{{Length: 64}}, make([]doca.Received, 1)
	completions := make([]doca.Completion, 1)
	perMessage := testing.AllocsPerRun(200, func() {
		_, err1 := consumer.Post(receives)
		_, err2 := consumer.Push(received)
		_, err3 := producer.Send(messages)
		_, err4 := producer.Reap(s.ctx, completions)
		_, err5 := consumer.Reap(s.ctx, received)
		if err := errors.Join(err1, err2, err3, err4, err5, received[0].Err); err != nil {
			t.Fatal(err)
		}
	})
	if perMessage > 0 {
		t.Errorf("%v allocations per message", perMessage)
	}
}

// Quirks, and queues that refuse at random, do not affect the users of the fast path.
func TestFastPathSurvives(t *testing.T) {
	for _, options := range []doca.Options{
		{SoftQuirks: "all"},
		{SoftFaults: "seed=11,again=60"},
		{SoftQuirks: "all", SoftFaults: "seed=12,again=60"},
	} {
		t.Run(options.SoftQuirks+" "+options.SoftFaults, func(t *testing.T) {
			docatest.Stream(t, openSoftWith(t, options), 50)
		})
	}
}

// A failed message completes with an error, and the next one arrives.
func TestFastPathReportsFailures(t *testing.T) {
	s := newFastStage(t, doca.Options{SoftFaults: "fail=1:DRIVER"})
	target, source := s.alloc(s.host, 4096), s.alloc(s.dpu, 4096)
	consumer := s.consumer(s.onHost, target, doca.ConsumerConfig{Depth: 1})
	producer := s.producer(s.onDPU, 1)
	if n, err := consumer.Post([]doca.Receive{{Length: 10}}); n != 1 || err != nil {
		t.Fatalf("posted %d: %v", n, err)
	}
	if n, err := consumer.Push(make([]doca.Received, 1)); n != 0 || err != nil {
		t.Fatalf("pushed %d: %v", n, err)
	}
	messages := []doca.FastMessage{{To: s.consumerOf(s.onDPU), Source: source, Length: 10, Tag: 5}}
	if c := s.sendOne(producer, messages); c.Tag != 5 || !errors.Is(c.Err, doca.CodeDriver) {
		t.Errorf("completion %+v", c)
	}
	if c := s.sendOne(producer, messages); c.Tag != 5 || c.Err != nil {
		t.Errorf("completion %+v", c)
	}
	received := make([]doca.Received, 1)
	n, err := consumer.Reap(s.ctx, received)
	if n != 1 || err != nil || received[0].Err != nil || received[0].Length != 10 {
		t.Errorf("received %d, %v: %+v", n, err, received[0])
	}
}

// Every start in which a call is refused fails with an error and leaves nothing open.
func TestFastPathCallsRefused(t *testing.T) {
	for _, call := range []string{
		"doca_comch_consumer_create", "doca_comch_consumer_set_imm_data_len",
		"doca_comch_consumer_task_post_recv_set_conf",
		"doca_comch_consumer_get_id", "doca_comch_producer_create", "doca_comch_producer_task_send_set_conf",
		"doca_comch_producer_get_id", "doca_buf_inventory_create", "doca_buf_inventory_start",
	} {
		t.Run(call, func(t *testing.T) {
			s := newFastStage(t, doca.Options{SoftFaults: "refuse=" + call + ":1:DRIVER"})
			region := s.alloc(s.host, 4096)
			consumer, err1 := s.onHost.NewConsumer(s.ctx, region, doca.ConsumerConfig{Depth: 1})
			producer, err2 := s.onDPU.NewProducer(1)
			if err := errors.Join(err1, err2); !errors.Is(err, doca.CodeDriver) {
				t.Errorf("refused: %v", err)
			}
			if consumer != nil {
				s.check(consumer.Close())
			}
			if producer != nil {
				s.check(producer.Close())
			}
		})
	}
}
