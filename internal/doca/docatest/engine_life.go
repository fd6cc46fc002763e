package docatest

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/doca"
)

var engineLifeCases = []testCase{
	{"closes with copies in flight", closesInFlight},
	{"closes with failed copies in flight", closesFailed},
	{"keeps the memory of its copies", keepsMemory},
	{"is not reaped in a context that has ended", reapsInContext},
	{"reaps a few at a time", reapsAFew},
}

// Often enough that the test would not finish if each Close took its timeout.
func closesInFlight(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	for depth := range 100 {
		engine := b.engine(dpu, depth+1)
		count := min(depth+1, page/batchCopySize)
		b.submitAll(engine, batch(source, target, count))
		b.must(engine.Close())
	}
}

func closesFailed(b *bench) {
	dpu := b.dpu()
	for bad := range 4 {
		engine := b.engine(dpu, 4)
		b.submitAll(engine, b.failing(dpu, 4, bad))
		_, err := engine.Reap(b.context(), make([]doca.Completion, 1))
		b.must(err)
		b.must(engine.Close())
	}
}

func keepsMemory(b *bench) {
	host, dpu := b.host(), b.dpu()
	source, target := b.allocRandom(host, page, doca.RemoteRead), b.alloc(dpu, page, doca.LocalWrite)
	remote := b.imported(dpu, source)
	engine := b.engine(dpu, 1)
	b.submitAll(engine, batch(remote, target, 1))
	b.mustBe(target.Close(), doca.CodeNotPermitted)
	b.mustBe(remote.Close(), doca.CodeNotPermitted)
	b.mustBe(dpu.Close(), doca.CodeInUse)
	b.mustSucceed(b.reap(engine, 1), 1)
	b.mustEqual(target.Bytes()[:batchCopySize], source.Bytes()[:batchCopySize])
	b.must(target.Close())
	b.must(remote.Close())
}

// An available completion may still be returned, but Reap must not wait.
func reapsInContext(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	engine := b.engine(dpu, 2)
	b.submitAll(engine, batch(source, target, 2))
	because := errors.New("it was enough")
	ctx, cancel := context.WithCancelCause(b.Context())
	cancel(because)
	n, err := engine.Reap(ctx, make([]doca.Completion, 2))
	if n == 0 {
		b.mustBe(err, because)
	}
	b.must(engine.Close())
}

func reapsAFew(b *bench) {
	const depth = 10
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	engine := b.engine(dpu, depth)
	b.submitAll(engine, batch(source, target, depth))
	results := map[uint64]error{}
	into := make([]doca.Completion, 3)
	for engine.Inflight() > 0 {
		n, err := engine.Reap(b.context(), into)
		b.must(err)
		for _, c := range into[:n] {
			results[c.Tag] = c.Err
		}
	}
	b.mustSucceed(results, depth)
}
