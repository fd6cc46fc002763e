package docatest

import (
	"github.com/dma-copy/dma-copy/internal/doca"
)

var engineCases = []testCase{
	{"copies local memory", copiesLocal},
	{"copies from the host in every size", copiesFromHost},
	{"copies to the host in every size", copiesToHost},
	{"copies between offsets and touches nothing else", copiesBetweenOffsets},
	{"has as many in flight as the device allows", manyInFlight},
	{"takes what fits of a batch", takesWhatFits},
	{"does nothing that is not reaped", movesWhenReaped},
	{"of one device reaches what another imported", reachesOtherFunction},
}

// seams are the sizes at which a copy may fail: around pages, chunk sizes of programs, and the device's limit.
func seams(largest int64) []int64 {
	sizes := []int64{1}
	for _, seam := range []int64{page, 1 << 16, 1 << 20} {
		if seam < largest-1 {
			sizes = append(sizes, seam-1, seam, seam+1)
		}
	}
	return append(sizes, largest-1, largest)
}

func largestCopy(device *doca.Device) int64 { return int64(device.Info().MaxBufferSize) }

func copiesLocal(b *bench) {
	dpu := b.dpu()
	largest := largestCopy(dpu)
	source, target := b.allocRandom(dpu, largest, doca.LocalRead), b.alloc(dpu, largest, doca.LocalWrite)
	b.copyInEverySize(b.engine(dpu, 1), source, target, source, target)
}

func copiesFromHost(b *bench) {
	host, dpu := b.host(), b.dpu()
	largest := largestCopy(dpu)
	source, target := b.allocRandom(host, largest, doca.RemoteRead), b.alloc(dpu, largest, doca.LocalWrite)
	b.copyInEverySize(b.engine(dpu, 1), b.imported(dpu, source), target, source, target)
}

func copiesToHost(b *bench) {
	host, dpu := b.host(), b.dpu()
	largest := largestCopy(dpu)
	source, target := b.allocRandom(dpu, largest, doca.LocalRead), b.alloc(host, largest, doca.RemoteWrite)
	b.copyInEverySize(b.engine(dpu, 1), source, b.imported(dpu, target), source, target)
}

// copyInEverySize copies from one memory to another, whose bytes are source and target.
func (b *bench) copyInEverySize(engine *doca.Engine, from, to doca.Memory, source, target *doca.Region) {
	b.Helper()
	for _, size := range seams(from.Len()) {
		clear(target.Bytes())
		b.must(b.copy(engine, doca.Copy{Source: from, Target: to, Length: size, Tag: uint64(size)}))
		b.mustEqual(target.Bytes()[:size], source.Bytes()[:size])
		b.mustEqual(target.Bytes()[size:], make([]byte, from.Len()-size))
	}
}

func copiesBetweenOffsets(b *bench) {
	host, dpu := b.host(), b.dpu()
	source, target := b.allocRandom(host, 4*page, doca.RemoteRead), b.alloc(dpu, 4*page, doca.LocalWrite)
	const from, to, length = page - 3, 2*page + 7, page + 11
	b.must(b.copy(b.engine(dpu, 1), doca.Copy{
		Source: b.imported(dpu, source), SourceOffset: from, Target: target, TargetOffset: to, Length: length,
	}))
	want := make([]byte, 4*page)
	copy(want[to:to+length], source.Bytes()[from:])
	b.mustEqual(target.Bytes(), want)
}

const batchCopySize = 64 // bytes of one copy of a batch

// batch divides two memories into count copies of batchCopySize bytes, with the copy's number as the tag.
func batch(source, target doca.Memory, count int) []doca.Copy {
	copies := make([]doca.Copy, count)
	for i := range copies {
		offset := int64(i) * batchCopySize
		copies[i] = doca.Copy{
			Source: source, SourceOffset: offset, Target: target, TargetOffset: offset, Length: batchCopySize,
			Tag: uint64(i),
		}
	}
	return copies
}

func (b *bench) submitAll(engine *doca.Engine, copies []doca.Copy) {
	b.Helper()
	n, err := engine.Submit(copies)
	b.must(err)
	if n != len(copies) || engine.Inflight() != len(copies) {
		b.Fatalf("of %d copies %d were taken and %d are in flight", len(copies), n, engine.Inflight())
	}
}

func (b *bench) mustSucceed(results map[uint64]error, count int) {
	b.Helper()
	for tag := range uint64(count) {
		if err, completed := results[tag]; !completed || err != nil {
			b.Errorf("copy %d: completed %t: %v", tag, completed, err)
		}
	}
}

func manyInFlight(b *bench) {
	host, dpu := b.host(), b.dpu()
	depth, err := dpu.MaxDepth()
	b.must(err)
	size := int64(depth) * batchCopySize
	source, target := b.allocRandom(host, size, doca.RemoteRead), b.alloc(dpu, size, doca.LocalWrite)
	engine := b.engine(dpu, depth)
	if engine.Depth() != depth {
		b.Errorf("the engine is %d deep, not %d", engine.Depth(), depth)
	}
	for range 3 {
		clear(target.Bytes())
		b.submitAll(engine, batch(b.imported(dpu, source), target, depth))
		_, err := engine.Submit(batch(target, target, 1))
		b.mustBe(err, doca.ErrQueueFull)
		b.mustSucceed(b.reap(engine, depth), depth)
		b.mustEqual(target.Bytes(), source.Bytes())
	}
}

func takesWhatFits(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	engine := b.engine(dpu, 3)
	copies := batch(source, target, 5)
	n, err := engine.Submit(copies)
	b.mustBe(err, doca.ErrQueueFull)
	if n != 3 {
		b.Fatalf("%d copies of 5 were taken, not 3", n)
	}
	results := b.reap(engine, 3)
	b.submitAll(engine, copies[3:])
	for tag, err := range b.reap(engine, 2) {
		results[tag] = err
	}
	b.mustSucceed(results, 5)
	if n, err := engine.Submit(nil); n != 0 || err != nil {
		b.Errorf("of no copies %d were taken: %v", n, err)
	}
}

// Bytes may move at any time, but completions appear only when the program polls.
func movesWhenReaped(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	engine := b.engine(dpu, 4)
	b.submitAll(engine, batch(source, target, 4))
	if engine.Inflight() != 4 {
		b.Errorf("%d copies are in flight, not 4", engine.Inflight())
	}
	b.mustSucceed(b.reap(engine, 4), 4)
	if n, err := engine.Reap(b.context(), make([]doca.Completion, 1)); n != 0 || err != nil {
		b.Errorf("%d completions came of nothing: %v", n, err)
	}
}

// All functions of the DPU share one engine, which can access what was imported through any of them.
func reachesOtherFunction(b *bench) {
	first := b.dpuInfo().PCIAddress
	other := b.open(b.info(func(i doca.DeviceInfo) bool { return i.IsDPU() && i.PCIAddress != first }).PCIAddress)
	source, target := b.allocRandom(b.host(), page, doca.RemoteRead), b.alloc(other, page, doca.LocalWrite)
	b.must(b.copy(b.engine(other, 1), doca.Copy{Source: b.imported(b.dpu(), source), Target: target, Length: page}))
	b.mustEqual(target.Bytes(), source.Bytes())
}
