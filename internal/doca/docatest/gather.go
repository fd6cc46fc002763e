package docatest

import (
	"errors"
	"math"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// The cases of copies of several ranges. On a device without lists, which has one range for each copy, they test that.
var gatherCases = []testCase{
	{"copy has as many ranges as the device has buffers in a list", rangesOfDevice},
	{"ranges of the host are gathered", gathersFromHost},
	{"ranges of this side are gathered", gathersLocal},
	{"every number of ranges is gathered", gathersAnyNumber},
	{"as many ranges as possible are in flight", manyRangesInFlight},
	{"ranges that leave their memory are not taken", rangeLeavesItsMemory},
	{"ranges that are together too long for the target are not taken", rangesLeaveTheTarget},
	{"more ranges than possible are not taken", tooManyRanges},
	{"a failure ends copies of several ranges", failureEndsGathering},
	{"engine closes with copies of several ranges in flight", closesGathering},
	{"memory of all ranges is kept", keepsMemoryOfRanges},
}

func rangesOfDevice(b *bench) {
	dpu := b.dpu()
	most := b.engine(dpu, 1).MaxRanges()
	if list := int(dpu.Info().MaxList); most < 1 || most > max(list, 1) || list > 1 && most == 1 {
		b.Errorf("%d ranges, and lists of %d buffers", most, list)
	}
}

// scattered returns a copy of so many ranges of source to the offset to of target, and what it copies. The ranges have
// different lengths and are not in the order of their offsets.
func scattered(source *doca.Region, from, target doca.Memory, to int64, count int) (doca.Copy, []byte) {
	var ranges []doca.Range
	var content []byte
	for i := range int64(count) {
		r := doca.Range{Offset: (i*613 + 5) % (source.Len() - rangeStep), Length: 1 + i*7%rangeStep}
		ranges = append(ranges, r)
		content = append(content, source.Bytes()[r.Offset:r.Offset+r.Length]...)
	}
	return doca.Copy{
		Source: from, SourceOffset: ranges[0].Offset, Target: target, TargetOffset: to, Length: ranges[0].Length,
		More: ranges[1:],
	}, content
}

// rangeStep is the size in bytes of the longest range.
const rangeStep = 60

// mustGather copies ranges of a source into a target, whose memory is otherwise not touched.
func (b *bench) mustGather(engine *doca.Engine, source *doca.Region, from doca.Memory, target *doca.Region, count int) {
	b.Helper()
	const to = 3
	clear(target.Bytes())
	c, content := scattered(source, from, target, to, count)
	b.must(b.copy(engine, c))
	want := make([]byte, target.Len())
	copy(want[to:], content)
	b.mustEqual(target.Bytes(), want)
}

func gathersFromHost(b *bench) {
	host, dpu := b.host(), b.dpu()
	source, target := b.allocRandom(host, 2*page, doca.RemoteRead), b.alloc(dpu, 2*page, doca.LocalWrite)
	engine := b.engine(dpu, 1)
	b.mustGather(engine, source, b.imported(dpu, source), target, engine.MaxRanges())
}

func gathersLocal(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, 2*page, doca.LocalRead), b.alloc(dpu, 2*page, doca.LocalWrite)
	engine := b.engine(dpu, 1)
	b.mustGather(engine, source, source, target, engine.MaxRanges())
}

func gathersAnyNumber(b *bench) {
	host, dpu := b.host(), b.dpu()
	source, target := b.allocRandom(host, 2*page, doca.RemoteRead), b.alloc(dpu, 2*page, doca.LocalWrite)
	remote, engine := b.imported(dpu, source), b.engine(dpu, 3)
	for count := 1; count <= engine.MaxRanges(); count++ {
		b.mustGather(engine, source, remote, target, count)
	}
}

// More ranges are submitted than the engine has buffers for, so that some of the copies wait for others.
func manyRangesInFlight(b *bench) {
	const depth, copies = 8, 40
	host, dpu := b.host(), b.dpu()
	engine := b.engine(dpu, depth)
	space := int64(engine.MaxRanges()) * rangeStep
	source, target := b.allocRandom(host, 2*page, doca.RemoteRead), b.alloc(dpu, copies*space, doca.LocalWrite)
	remote, want := b.imported(dpu, source), make([]byte, copies*space)
	var batch []doca.Copy
	for i := range int64(copies) {
		count := engine.MaxRanges()
		if i%3 == 0 {
			count = 1
		}
		c, content := scattered(source, remote, target, i*space, count)
		c.Tag = uint64(i)
		batch = append(batch, c)
		copy(want[i*space:], content)
	}
	results := map[uint64]error{}
	for len(batch) > 0 {
		n, err := engine.Submit(batch)
		if n == 0 || err != nil && !errors.Is(err, doca.ErrQueueFull) {
			b.Fatalf("%d copies were taken: %v", n, err)
		}
		batch = batch[n:]
		for tag, err := range b.reap(engine, engine.Inflight()) {
			results[tag] = err
		}
	}
	b.mustSucceed(results, copies)
	b.mustEqual(target.Bytes(), want)
}

func rangeLeavesItsMemory(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	engine := b.engine(dpu, 1)
	for _, r := range []doca.Range{
		{Length: 0}, {Length: -1}, {Offset: -1, Length: 1}, {Offset: page, Length: 1}, {Offset: 1, Length: page},
		{Length: page}, {Length: math.MaxInt64}, {Offset: math.MaxInt64, Length: math.MaxInt64},
	} {
		c := doca.Copy{Source: source, Target: target, Length: 1, More: []doca.Range{r}}
		n, err := engine.Submit([]doca.Copy{c})
		b.mustBe(err, doca.CodeInvalidValue)
		if n != 0 || engine.Inflight() != 0 {
			b.Fatalf("%+v was refused and yet is in flight", r)
		}
	}
	b.mustGather(engine, source, source, target, engine.MaxRanges())
}

// They are found before anything is submitted, as all ranges that leave their memory.
func rangesLeaveTheTarget(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	engine := b.engine(dpu, 2)
	good := doca.Copy{Source: source, Target: target, Length: 1}
	bad := good
	bad.More = []doca.Range{{Length: page / 2}, {Length: page / 2}}
	n, err := engine.Submit([]doca.Copy{good, bad})
	b.mustBe(err, doca.CodeInvalidValue)
	if n != 0 || engine.Inflight() != 0 {
		b.Fatalf("%d copies are in flight, though one of them was refused", engine.Inflight())
	}
}

func tooManyRanges(b *bench) {
	dpu := b.dpu()
	engine := b.engine(dpu, 1)
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	c, _ := scattered(source, source, target, 0, engine.MaxRanges()+1)
	n, err := engine.Submit([]doca.Copy{c})
	b.mustBe(err, doca.CodeInvalidValue)
	if n != 0 || engine.Inflight() != 0 {
		b.Fatalf("%d ranges were refused and yet are in flight", engine.MaxRanges()+1)
	}
}

func failureEndsGathering(b *bench) {
	dpu := b.dpu()
	engine := b.engine(dpu, 8)
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, 2*page, doca.LocalWrite)
	good, _ := scattered(source, source, target, 0, min(engine.MaxRanges(), 4))
	bad := good
	bad.Tag, bad.Target = 1, b.alloc(dpu, 2*page, doca.LocalRead)
	last := good
	last.Tag, last.TargetOffset = 2, page
	b.submitAll(engine, []doca.Copy{good, bad, last})
	for tag, err := range b.reap(engine, 3) {
		if tag == 1 || err != nil {
			b.mustBe(err, doca.CodeIOFailed)
		}
	}
	b.must(engine.Close())
}

func closesGathering(b *bench) {
	dpu := b.dpu()
	source, target := b.allocRandom(dpu, page, doca.LocalRead), b.alloc(dpu, 2*page, doca.LocalWrite)
	for range 20 {
		engine := b.engine(dpu, 8)
		first, _ := scattered(source, source, target, 0, min(engine.MaxRanges(), 4))
		second, _ := scattered(source, source, target, page, min(engine.MaxRanges(), 4))
		second.Tag = 1
		b.submitAll(engine, []doca.Copy{first, second})
		b.must(engine.Close())
	}
}

func keepsMemoryOfRanges(b *bench) {
	host, dpu := b.host(), b.dpu()
	source, target := b.allocRandom(host, page, doca.RemoteRead), b.alloc(dpu, page, doca.LocalWrite)
	remote, engine := b.imported(dpu, source), b.engine(dpu, 1)
	c, content := scattered(source, remote, target, 0, min(engine.MaxRanges(), 4))
	b.submitAll(engine, []doca.Copy{c})
	b.mustBe(target.Close(), doca.CodeNotPermitted)
	b.mustBe(remote.Close(), doca.CodeNotPermitted)
	b.mustSucceed(b.reap(engine, 1), 1)
	b.mustEqual(target.Bytes()[:len(content)], content)
	b.must(remote.Close())
}
