package docatest

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Waiting must not use the CPU. A wait that spins uses as much CPU time as passes, one that sleeps almost none, even on
// a busy machine; the limit of a quarter is far from both.
var idleCases = []testCase{
	{"with everything open", idleOpen},
	{"while calls wait", idleWaiting},
	{"while a reader is behind", idleReaderBehind},
	{"while a consumer and a producer wait", idleFastPath},
}

const (
	idleTime = 300 * time.Millisecond

	// idleAttempts is how often the processor time is measured until it is low: the Go runtime works in the background
	// once in a while, but a wait that spins does so every time.
	idleAttempts = 5
)

func (b *bench) mustIdle() {
	b.Helper()
	time.Sleep(idleTime / 10) // what has just been started may come to rest
	var used, passed time.Duration
	for range idleAttempts {
		before, began := b.processorTime(), time.Now()
		time.Sleep(idleTime)
		used, passed = b.processorTime()-before, time.Since(began)
		if used <= passed/4 {
			return
		}
	}
	b.Errorf("doing nothing for %s took %s of a processor, %d times in a row", passed, used, idleAttempts)
}

func (b *bench) processorTime() time.Duration {
	b.Helper()
	var usage syscall.Rusage
	b.must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func idleOpen(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	b.talk(b.connect(b.client(s, doca.ChannelConfig{}), server))
	engine := b.engine(s.dpu, 4)
	source, target := b.alloc(s.host, page, doca.RemoteRead), b.alloc(s.dpu, page, doca.LocalWrite)
	b.must(b.copy(engine, doca.Copy{Source: b.imported(s.dpu, source), Target: target, Length: page}))
	b.mustIdle()
}

func idleWaiting(b *bench) {
	s := b.sides()
	server := b.listen(s, doca.ChannelConfig{})
	host, dpu := b.connect(b.client(s, doca.ChannelConfig{}), server)
	ctx, cancel := context.WithCancelCause(b.Context())
	waits := []func() error{
		func() error { _, err := host.Recv(ctx); return err },
		func() error { _, err := dpu.Recv(ctx); return err },
		func() error { _, err := server.Accept(ctx); return err },
	}
	results := make(chan error, len(waits))
	for _, wait := range waits {
		go func() { results <- wait() }()
	}
	b.mustIdle()
	cancel(errEnough)
	for range waits {
		if err := <-results; !errors.Is(err, errEnough) {
			b.Errorf("a wait that was to end with its context ended with %v", err)
		}
	}
}

func idleReaderBehind(b *bench) {
	host, dpu := b.pair(doca.ChannelConfig{ReceiveQueue: 2, Sends: 2})
	sent := b.fill(host)
	b.mustIdle()
	for i := range sent {
		b.mustReceive(dpu, string(numbered(i, host.MaxMessage())))
	}
}

// The producer waits for a buffer, the consumer with buffers for a message.
func idleFastPath(b *bench) {
	host, dpu := b.bothSides()
	waiting := b.lane(dpu, host, doca.ConsumerConfig{Depth: 1})
	b.post(waiting.consumer, doca.Receive{Length: 1})
	full := b.lane(dpu, host, doca.ConsumerConfig{Depth: 1})
	message := []doca.FastMessage{{To: full.consumer.ID(), Source: full.source, Length: 1}}
	ctx, cancel := context.WithCancelCause(b.Context())
	results := make(chan error, 2)
	go func() { _, err := waiting.consumer.Reap(ctx, make([]doca.Received, 1)); results <- err }()
	go func() { _, err := full.producer.SendWait(ctx, message); results <- err }()
	b.mustIdle()
	cancel(errEnough)
	for range cap(results) {
		if err := <-results; !errors.Is(err, errEnough) {
			b.Errorf("a wait that was to end with its context ended with %v", err)
		}
	}
}
