package docatest

import (
	"math"

	"github.com/dma-copy/dma-copy/internal/doca"
)

var engineFailureCases = []testCase{
	{"depth must be possible", depthMustBePossible},
	{"copies that leave their memory are not taken", leavesItsMemory},
	{"a copy beyond the device's limit fails", tooLarge},
	{"memory for reading is not written", readOnlyTarget},
	{"an export for reading is not written", readOnlyExport},
	{"memory that is not this side's own is not written", remoteOnlyTarget},
	{"another device's memory is not copied", foreignMemory},
	{"one failure ends all that follows", failureEndsAll},
	{"after a failure a new engine works", newEngineWorks},
}

func depthMustBePossible(b *bench) {
	dpu := b.dpu()
	deepest, err := dpu.MaxDepth()
	b.must(err)
	for _, depth := range []int{0, -1, deepest + 1, math.MaxInt32, math.MaxInt, math.MinInt, 1 << 32, 1<<32 + 1} {
		if engine, err := dpu.NewEngine(depth); err == nil {
			b.closeAtEnd(engine)
			b.Errorf("an engine is %d deep, beyond 1 to %d", depth, deepest)
		}
	}
}

func leavesItsMemory(b *bench) {
	dpu := b.dpu()
	source, target := b.alloc(dpu, page, doca.LocalRead), b.alloc(dpu, 2*page, doca.LocalWrite)
	engine := b.engine(dpu, 1)
	for _, c := range []doca.Copy{
		{Length: 0}, {Length: -1}, {Length: page + 1}, {Length: math.MaxInt64}, {Length: math.MinInt64},
		{SourceOffset: 1, Length: page}, {SourceOffset: page, Length: 1}, {SourceOffset: -1, Length: 1},
		{SourceOffset: math.MaxInt64, Length: 1}, {TargetOffset: page + 1, Length: page},
		{TargetOffset: -1, Length: 1}, {TargetOffset: math.MaxInt64, Length: page},
		{TargetOffset: math.MinInt64, Length: 1},
	} {
		c.Source, c.Target = source, target
		n, err := engine.Submit([]doca.Copy{c})
		b.mustBe(err, doca.CodeInvalidValue)
		if n != 0 || engine.Inflight() != 0 {
			b.Fatalf("%+v was refused and yet is in flight", c)
		}
	}
	b.must(b.copy(engine, doca.Copy{Source: source, Target: target, TargetOffset: page, Length: page}))
}

func tooLarge(b *bench) {
	dpu := b.dpu()
	size := largestCopy(dpu) + 1
	source, target := b.allocRandom(dpu, size, doca.LocalRead), b.alloc(dpu, size, doca.LocalWrite)
	if err := b.copy(b.engine(dpu, 1), doca.Copy{Source: source, Target: target, Length: size}); err == nil {
		b.Errorf("%d bytes were copied at once, one more than the device's limit", size)
	}
}

func (b *bench) mustNotBeWritten(engine *doca.Engine, source, target doca.Memory, bytes []byte) {
	b.Helper()
	err := b.copy(engine, doca.Copy{Source: source, Target: target, Length: page})
	b.mustBe(err, doca.CodeIOFailed)
	b.mustEqual(bytes, make([]byte, page))
}

func readOnlyTarget(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalRead)
	b.mustNotBeWritten(b.engine(dpu, 1), source, target, target.Bytes())
}

func readOnlyExport(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(b.host(), page, doca.RemoteRead)
	b.mustNotBeWritten(b.engine(dpu, 1), source, b.imported(dpu, target), target.Bytes())
}

func remoteOnlyTarget(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.RemoteRead)
	b.mustNotBeWritten(b.engine(dpu, 1), source, target, target.Bytes())
}

func foreignMemory(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(b.host(), page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	b.mustNotBeWritten(b.engine(dpu, 1), source, target, target.Bytes())
}

// failing is a batch whose copy number bad has an invalid target.
func (b *bench) failing(dpu *doca.Device, count, bad int) []doca.Copy {
	b.Helper()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	copies := batch(source, target, count)
	copies[bad].Target = b.alloc(dpu, page, doca.LocalRead)
	return copies
}

func failureEndsAll(b *bench) {
	const depth = 8
	for bad := range depth {
		dpu := b.dpu()
		engine := b.engine(dpu, depth)
		copies := b.failing(dpu, depth, bad)
		b.submitAll(engine, copies)
		results := b.reap(engine, depth)
		for tag, err := range results {
			if tag == uint64(bad) || err != nil {
				b.mustBe(err, doca.CodeIOFailed)
			}
		}
		if n, err := engine.Submit(copies[:1]); n != 0 || err == nil {
			b.Errorf("an engine that has failed took %d copies more: %v", n, err)
		}
		b.must(engine.Close())
	}
}

func newEngineWorks(b *bench) {
	dpu := b.dpu()
	failed := b.engine(dpu, 4)
	copies := b.failing(dpu, 4, 0)
	b.submitAll(failed, copies)
	b.reap(failed, 4)
	b.must(b.copy(b.engine(dpu, 1), copies[1]))
}
