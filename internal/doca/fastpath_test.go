package doca_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// post offers room and pushes it to the peer.
func post(t *testing.T, c *doca.Consumer, receives ...doca.Receive) {
	t.Helper()
	if n, err := c.Post(receives); err != nil || n != len(receives) {
		t.Fatalf("posted %d of %d: %v", n, len(receives), err)
	}
	for range receives {
		if n, err := c.Push(make([]doca.Received, 1)); n != 0 || err != nil {
			t.Fatalf("push: %d, %v", n, err)
		}
	}
}

func reapOne(t *testing.T, s *fastStage, c *doca.Consumer) doca.Received {
	t.Helper()
	into := make([]doca.Received, 1)
	if n, err := c.Reap(s.ctx, into); n != 1 || err != nil {
		t.Fatalf("reaped %d: %v", n, err)
	}
	return into[0]
}

func completeOne(t *testing.T, s *fastStage, p *doca.Producer) doca.Completion {
	t.Helper()
	into := make([]doca.Completion, 1)
	if n, err := p.Reap(s.ctx, into); n != 1 || err != nil {
		t.Fatalf("completed %d: %v", n, err)
	}
	return into[0]
}

func send(t *testing.T, s *fastStage, p *doca.Producer, m doca.FastMessage) {
	t.Helper()
	if n, err := p.SendWait(s.ctx, []doca.FastMessage{m}); n != 1 || err != nil {
		t.Fatalf("sent %d: %v", n, err)
	}
	if c := completeOne(t, s, p); c.Tag != m.Tag || c.Err != nil {
		t.Fatalf("completion %+v of message %d", c, m.Tag)
	}
}

func TestFastPathBothDirections(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	for _, way := range []struct {
		name     string
		to, from *doca.Connection
		at, of   *doca.Device
	}{
		{"to the host", s.onHost, s.onDPU, s.host, s.dpu},
		{"to the DPU", s.onDPU, s.onHost, s.dpu, s.host},
	} {
		t.Run(way.name, func(t *testing.T) {
			target, source := s.alloc(way.at, 8192), s.alloc(way.of, 8192)
			copy(source.Bytes()[100:], "straight into the memory")
			consumer := s.consumer(way.to, target, doca.ConsumerConfig{Depth: 4, Immediate: 16})
			producer := s.producer(way.from, 4)
			id := s.consumerOf(way.from)
			if id != consumer.ID() {
				t.Fatalf("the peer knows consumer %d, not %d", id, consumer.ID())
			}
			post(t, consumer, doca.Receive{Offset: 4096, Length: 50, Tag: 7}, doca.Receive{Tag: 8})
			send(t, s, producer, doca.FastMessage{To: id, Source: source, Offset: 100, Length: 24, Immediate: []byte("now"), Tag: 1})
			send(t, s, producer, doca.FastMessage{To: id, Immediate: []byte("only"), Tag: 2})

			got := reapOne(t, s, consumer)
			if got.Tag != 7 || got.Length != 24 || got.Err != nil || string(got.Immediate) != "now" || got.Producer != producer.ID() {
				t.Errorf("received %+v", got)
			}
			if text := target.Bytes()[4096:4120]; string(text) != "straight into the memory" {
				t.Errorf("memory has %q", text)
			}
			if got := reapOne(t, s, consumer); got.Tag != 8 || got.Length != 0 || string(got.Immediate) != "only" {
				t.Errorf("received %+v", got)
			}
		})
	}
}

func TestFastPathWithoutRoom(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	target, source := s.alloc(s.host, 4096), s.alloc(s.dpu, 4096)
	consumer := s.consumer(s.onHost, target, doca.ConsumerConfig{Depth: 2})
	producer := s.producer(s.onDPU, 2)
	message := doca.FastMessage{To: s.consumerOf(s.onDPU), Source: source, Length: 10}

	if n, err := producer.Send([]doca.FastMessage{message}); n != 0 || !errors.Is(err, doca.ErrQueueFull) {
		t.Errorf("nothing is posted, yet %d sent: %v", n, err)
	}
	post(t, consumer, doca.Receive{Length: 9})
	if n, err := producer.Send([]doca.FastMessage{message}); n != 0 || !errors.Is(err, doca.CodeInvalidValue) {
		t.Errorf("10 bytes into 9: %d sent, %v", n, err)
	}
	message.To++
	if n, err := producer.Send([]doca.FastMessage{message}); n != 0 || !errors.Is(err, doca.CodeInvalidValue) {
		t.Errorf("to nobody: %d sent, %v", n, err)
	}
	if _, err := consumer.Post([]doca.Receive{{Offset: 4000, Length: 97}}); !errors.Is(err, doca.CodeInvalidValue) {
		t.Errorf("room outside the memory: %v", err)
	}
	if n, err := consumer.Post(make([]doca.Receive, 2)); n != 1 || !errors.Is(err, doca.ErrQueueFull) {
		t.Errorf("posted %d more of depth 2: %v", n, err)
	}
}

func TestPeerConsumersComeAndGo(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	region := s.alloc(s.host, 4096)
	first := s.consumer(s.onHost, region, doca.ConsumerConfig{Depth: 1})
	second := s.consumer(s.onHost, region, doca.ConsumerConfig{Depth: 1})
	ids := must(s.onDPU.AwaitPeerConsumers(s.ctx, 2))(t)
	if !slices.Equal(ids, []uint32{first.ID(), second.ID()}) {
		t.Errorf("the peer knows %v, not %d and %d", ids, first.ID(), second.ID())
	}
	s.check(first.Close())
	for ids, changed := s.onDPU.PeerConsumers(); len(ids) == 2; ids, changed = s.onDPU.PeerConsumers() {
		select {
		case <-changed:
		case <-s.ctx.Done():
			t.Fatal("the consumer never expired")
		}
	}
	s.check(second.Close())
	s.hangUp()
	if _, err := s.onDPU.AwaitPeerConsumers(s.ctx, 1); err == nil {
		t.Error("a connection that has ended still has consumers")
	}
}

func TestConnectionWaitsForItsFastPath(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	producer := s.producer(s.onDPU, 1)
	if err := s.onDPU.Close(); !errors.Is(err, doca.CodeInUse) {
		t.Errorf("closed under its producer: %v", err)
	}
	s.check(producer.Close())
	s.check(s.onDPU.Close())
}

// The server's Close is told to wait while a producer's owner closes it.
func TestServerCloseWaitsForProducers(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	producer := s.producer(s.onDPU, 1)
	closed := make(chan error, 1)
	go func() { closed <- s.server.Close() }()
	<-s.onDPU.Done()
	s.check(producer.Close())
	s.check(<-closed)
}

func TestFastPathEndsWithItsConnection(t *testing.T) {
	s := newFastStage(t, doca.Options{})
	region := s.alloc(s.host, 4096)
	consumer := s.consumer(s.onHost, region, doca.ConsumerConfig{Depth: 1})
	post(t, consumer, doca.Receive{Length: 100})
	waiting := make(chan doca.Received, 1)
	go func() {
		into := make([]doca.Received, 1)
		_, _ = consumer.Reap(s.ctx, into)
		waiting <- into[0]
	}()
	s.check(s.server.Close())
	if got := <-waiting; got.Err == nil || s.ctx.Err() != nil {
		t.Errorf("after the connection's end: %+v", got)
	}
	<-s.onHost.Done() // the consumer may learn of the end before the control channel does
	if _, err := s.onHost.NewProducer(1); err == nil {
		t.Error("a producer on a connection that has ended")
	}
}

// Several producers and consumers, each with a goroutine and an engine of its own; each stream arrives whole and in order.
func TestFastPathManyAtOnce(t *testing.T) {
	const pairs, messages, size = 3, 200, 1024
	s := newFastStage(t, doca.Options{})
	target, source := s.alloc(s.host, pairs*8*size), s.alloc(s.dpu, pairs*size)
	var work sync.WaitGroup
	for i := range pairs {
		consumer := s.consumer(s.onHost, target, doca.ConsumerConfig{Depth: 8, Immediate: 8})
		producer := s.producer(s.onDPU, 4)
		id := must(s.onDPU.AwaitPeerConsumers(s.ctx, i+1))(t)[i]
		work.Go(func() { s.check(receiveStream(s, consumer, target, int64(i)*8*size, size, messages)) })
		work.Go(func() { s.check(sendStream(s, producer, source, int64(i)*size, size, id, messages)) })
	}
	work.Wait()
}

func pattern(number uint64, into []byte) {
	random := rand.NewChaCha8([32]byte{byte(number), byte(number >> 8)})
	_, _ = random.Read(into)
}

func sendStream(s *fastStage, p *doca.Producer, source *doca.Region, offset, size int64, to uint32, count uint64) error {
	into := make([]doca.Completion, 1)
	for number := range count {
		pattern(number, source.Bytes()[offset:offset+size])
		m := doca.FastMessage{To: to, Source: source, Offset: offset, Length: size, Immediate: binary.LittleEndian.AppendUint64(nil, number)}
		if _, err := p.SendWait(s.ctx, []doca.FastMessage{m}); err != nil {
			return fmt.Errorf("send %d: %w", number, err)
		}
		if n, err := p.Reap(s.ctx, into); n != 1 || err != nil || into[0].Err != nil {
			return fmt.Errorf("completion of %d: %d, %w", number, n, errors.Join(err, into[0].Err))
		}
	}
	return nil
}

// postPatiently offers room again and again: a driver may refuse for no reason that the caller could know.
func postPatiently(s *fastStage, c *doca.Consumer, offset, size int64) error {
	for s.ctx.Err() == nil {
		_, err := c.Post([]doca.Receive{{Offset: offset, Length: size, Tag: uint64(offset)}})
		if !errors.Is(err, doca.ErrQueueFull) {
			return err
		}
	}
	return s.ctx.Err()
}

func receiveStream(s *fastStage, c *doca.Consumer, target *doca.Region, offset, size int64, count uint64) error {
	for slot := range int64(8) {
		if err := postPatiently(s, c, offset+slot*size, size); err != nil {
			return err
		}
	}
	want, into := make([]byte, size), make([]doca.Received, 8)
	for number := uint64(0); number < count; {
		n, err := c.Reap(s.ctx, into)
		if err != nil {
			return fmt.Errorf("receive %d: %w", number, err)
		}
		for _, got := range into[:n] {
			pattern(number, want)
			at := int64(got.Tag)
			if got.Err != nil || binary.LittleEndian.Uint64(got.Immediate) != number || !bytes.Equal(target.Bytes()[at:at+size], want) {
				return fmt.Errorf("message %d is %+v", number, got)
			}
			number++
		}
		for _, got := range into[:n] {
			if err := postPatiently(s, c, int64(got.Tag), size); err != nil {
				return err
			}
		}
	}
	return nil
}

// The hot calls cross into C without allocating.
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

// What hardware does beside its documents, and queues that refuse at will, change nothing for who uses the fast path.
func TestFastPathSurvives(t *testing.T) {
	for _, options := range []doca.Options{
		{SoftQuirks: "all"},
		{SoftFaults: "seed=11,again=60"},
		{SoftQuirks: "all", SoftFaults: "seed=12,again=60"},
	} {
		t.Run(options.SoftQuirks+" "+options.SoftFaults, func(t *testing.T) {
			s := newFastStage(t, options)
			target, source := s.alloc(s.host, 8*512), s.alloc(s.dpu, 512)
			consumer := s.consumer(s.onHost, target, doca.ConsumerConfig{Depth: 8, Immediate: 8})
			producer := s.producer(s.onDPU, 4)
			id := s.consumerOf(s.onDPU)
			var work sync.WaitGroup
			work.Go(func() { s.check(receiveStream(s, consumer, target, 0, 512, 50)) })
			work.Go(func() { s.check(sendStream(s, producer, source, 0, 512, id, 50)) })
			work.Wait()
		})
	}
}

// A message that fails comes back as a completion with an error, and the next one goes through.
func TestFastPathReportsFailures(t *testing.T) {
	s := newFastStage(t, doca.Options{SoftFaults: "fail=1:TIME_OUT"})
	target, source := s.alloc(s.host, 4096), s.alloc(s.dpu, 4096)
	consumer := s.consumer(s.onHost, target, doca.ConsumerConfig{Depth: 1})
	producer := s.producer(s.onDPU, 1)
	message := doca.FastMessage{To: s.consumerOf(s.onDPU), Source: source, Length: 10, Tag: 5}
	post(t, consumer, doca.Receive{Length: 10})
	if _, err := producer.SendWait(s.ctx, []doca.FastMessage{message}); err != nil {
		t.Fatal(err)
	}
	if c := completeOne(t, s, producer); c.Tag != 5 || c.Err == nil {
		t.Errorf("completion %+v", c)
	}
	send(t, s, producer, message)
	if got := reapOne(t, s, consumer); got.Err != nil || got.Length != 10 {
		t.Errorf("received %+v", got)
	}
}

// Every start that a refused call can spoil fails with an error and leaves nothing open.
func TestFastPathCallsRefused(t *testing.T) {
	for _, call := range []string{
		"doca_comch_consumer_create", "doca_comch_consumer_set_imm_data_len", "doca_comch_consumer_task_post_recv_set_conf",
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
