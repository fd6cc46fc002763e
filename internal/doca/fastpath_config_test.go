package doca_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Numbers beyond the range of DOCA's types are refused, not truncated.
func TestFastPathChecksConfiguration(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	region := s.alloc(s.host, 4096)
	for _, config := range []doca.ConsumerConfig{
		{Depth: 0}, {Depth: -1}, {Depth: 1 << 20}, {Depth: 1<<32 + 1},
		{Depth: 1, Immediate: -1}, {Depth: 1, Immediate: 1 << 20},
		{Depth: 1, Immediate: 1 << 32},
	} {
		if consumer, err := s.onHost.NewConsumer(s.ctx, region, config); !errors.Is(err, doca.CodeInvalidValue) {
			t.Errorf("%+v: %v", config, err)
			s.check(consumer.Close())
		}
	}
	for _, depth := range []int{0, -1, 1 << 20, 1<<32 + 1} {
		if producer, err := s.onDPU.NewProducer(depth); !errors.Is(err, doca.CodeInvalidValue) {
			t.Errorf("depth %d: %v", depth, err)
			s.check(producer.Close())
		}
	}
}

// It must not be used.
func TestFastPathRefusesHugeImmediateData(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	s.consumer(s.onHost, s.alloc(s.host, 4096), doca.ConsumerConfig{Depth: 1, Immediate: 1})
	producer := s.producer(s.onDPU, 1)
	huge := must(unix.Mmap(-1, 0, 1<<32+1, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE))(t)
	t.Cleanup(func() { s.check(unix.Munmap(huge)) })
	message := []doca.FastMessage{{To: s.consumerOf(s.onDPU), Immediate: huge}}
	if n, err := producer.Send(message); n != 0 || !errors.Is(err, doca.CodeInvalidValue) {
		t.Errorf("sent %d: %v", n, err)
	}
}

// A consumer without descriptors for its waiter is closed nevertheless.
func TestConsumerClosesWithoutSleep(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	consumer := s.consumer(s.onHost, s.alloc(s.host, 4096), doca.ConsumerConfig{Depth: 1})
	s.check(doca.MakeSleepless(consumer, 4))
	s.check(consumer.Close())
}
