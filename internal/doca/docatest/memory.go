package docatest

import (
	"errors"
	"math"
	"os"
	"path/filepath"

	"github.com/dma-copy/dma-copy/internal/doca"
)

var memoryCases = []testCase{
	{"comes zeroed, in any size", comesZeroed},
	{"no size below one or beyond reason", sizesRefused},
	{"is the file that was mapped", isTheFile},
	{"is the whole file or none of it", fileTooShort},
	{"is exported only where the other side may use it", exportNeedsAccess},
	{"with contradictory access is refused", contradictoryAccess},
}

var descriptorCases = []testCase{
	{"opens the exporter's memory", opensMemory},
	{"does not cover lies", refusesLies},
	{"is good for the DPU only", importOnlyOnDPU},
	{"that is none is refused", refusesGarbage},
	{"with any bit flipped is refused", refusesFlippedBits},
	{"dies with the memory", diesWithMemory},
	{"does not reach another export", reachesOneExport},
}

func comesZeroed(b *bench) {
	device := b.dpu()
	for _, length := range []int64{1, page - 1, page, page + 1, 64 << 20} {
		region, err := device.Alloc(length, doca.LocalWrite)
		b.must(err)
		buffer := region.Bytes()
		if int64(len(buffer)) != length || region.Len() != length {
			b.Errorf("%d bytes were asked for, and there are %d of %d", length, len(buffer), region.Len())
		}
		if buffer[0] != 0 || buffer[length-1] != 0 {
			b.Errorf("%d bytes are not zero", length)
		}
		buffer[0], buffer[length-1] = 1, 1
		if region.Address()%page != 0 {
			b.Errorf("%#x is not the start of a page", region.Address())
		}
		b.must(region.Close())
		b.must(region.Close())
	}
}

func sizesRefused(b *bench) {
	device := b.dpu()
	file := b.file(page)
	for _, length := range []int64{0, -1, math.MinInt64, math.MaxInt64} {
		_, err := device.Alloc(length, doca.LocalWrite)
		b.mustBe(err, doca.CodeInvalidValue)
		_, err = device.MapFile(file, length, doca.LocalWrite)
		b.mustBe(err, doca.CodeInvalidValue)
	}
}

func (b *bench) file(size int64) *os.File {
	b.Helper()
	file, err := os.Create(filepath.Join(b.TempDir(), "file"))
	b.must(err)
	b.Cleanup(func() { _ = file.Close() })
	content := make([]byte, size)
	fillRandom(content)
	_, err = file.Write(content)
	b.must(err)
	return file
}

// mapFile skips the case if a driver does not pin such memory.
func (b *bench) mapFile(device *doca.Device, file *os.File, length int64, access doca.Access) *doca.Region {
	b.Helper()
	region, err := device.MapFile(file, length, access)
	for _, code := range []doca.Code{doca.CodeDriver, doca.CodeNotSupported, doca.CodeNoMemory} {
		if errors.Is(err, code) {
			b.Skipf("the driver pins no file: %v", err)
		}
	}
	b.must(err)
	b.closeAtEnd(region)
	return region
}

func isTheFile(b *bench) {
	const size = 3*page + 5
	device := b.dpu()
	file := b.file(size)
	content := make([]byte, size)
	_, err := file.ReadAt(content, 0)
	b.must(err)
	mapped := b.mapFile(device, file, size, doca.LocalWrite)
	b.mustEqual(mapped.Bytes(), content)
	fresh := b.alloc(device, size, doca.LocalWrite)
	b.must(b.copy(b.engine(device, 1), doca.Copy{Source: fresh, Target: mapped, Length: size}))
	_, err = file.ReadAt(content, 0)
	b.must(err)
	b.mustEqual(content, fresh.Bytes())
}

func fileTooShort(b *bench) {
	device := b.dpu()
	file := b.file(2 * page)
	mapped := b.mapFile(device, file, 2*page, doca.LocalWrite)
	b.must(file.Truncate(page))
	fresh := b.alloc(device, 2*page, doca.LocalWrite)
	err := b.copy(b.engine(device, 1), doca.Copy{Source: mapped, Target: fresh, Length: 2 * page})
	b.mustBe(err, doca.CodeIOFailed)
}

func exportNeedsAccess(b *bench) {
	host := b.host()
	for _, access := range []doca.Access{doca.LocalRead, doca.LocalWrite} {
		if _, err := b.alloc(host, page, access).Export(); err == nil {
			b.Errorf("memory with access %d was exported", access)
		}
	}
	for _, access := range []doca.Access{doca.RemoteRead, doca.RemoteWrite, doca.RemoteWrite | doca.LocalWrite} {
		if descriptor := b.export(b.alloc(host, page, access)); len(descriptor) == 0 {
			b.Errorf("memory with access %d has an empty descriptor", access)
		}
	}
}

func contradictoryAccess(b *bench) {
	_, err := b.host().Alloc(page, doca.RemoteRead|doca.RemoteWrite)
	b.mustBe(err, doca.CodeInvalidValue)
}

func opensMemory(b *bench) {
	region := b.alloc(b.host(), 2*page, doca.RemoteRead)
	remote := b.imported(b.dpu(), region)
	if remote.Len() != region.Len() || remote.Address() != region.Address() {
		b.Errorf("%d bytes at %#x became %d at %#x", region.Len(), region.Address(), remote.Len(), remote.Address())
	}
}

func refusesLies(b *bench) {
	region, dpu := b.alloc(b.host(), page, doca.RemoteRead), b.dpu()
	descriptor := b.export(region)
	lies := []struct {
		address uint64
		length  int64
	}{
		{region.Address(), page + 1}, {region.Address(), math.MaxInt64}, {region.Address(), 0}, {region.Address(), -1},
		{region.Address() + 1, page}, {region.Address() - 1, page}, {0, page}, {math.MaxUint64, page},
		{region.Address() + page, 1}, {region.Address() - page, page},
	}
	for _, lie := range lies {
		if remote, err := dpu.Import(descriptor, lie.address, lie.length); err == nil {
			b.closeAtEnd(remote)
			b.Errorf("%d bytes at %#x were taken for %d at %#x", page, region.Address(), lie.length, lie.address)
		}
	}
	part, err := dpu.Import(descriptor, region.Address()+page-1, 1)
	b.must(err)
	b.closeAtEnd(part)
}

func importOnlyOnDPU(b *bench) {
	host := b.host()
	region := b.alloc(host, page, doca.RemoteRead)
	_, err := host.Import(b.export(region), region.Address(), region.Len())
	b.mustBe(err, doca.CodeNotSupported)
}

func refusesGarbage(b *bench) {
	dpu := b.dpu()
	region := b.alloc(b.host(), page, doca.RemoteRead)
	good := b.export(region)
	random := make([]byte, len(good))
	fillRandom(random)
	zeros := make([]byte, len(good))
	for _, bad := range [][]byte{nil, {}, {0}, good[:1], good[:len(good)/4], zeros, random, random[:7]} {
		if remote, err := dpu.Import(bad, region.Address(), region.Len()); err == nil {
			b.closeAtEnd(remote)
			b.Errorf("%d bytes of garbage were taken for a descriptor", len(bad))
		}
	}
}

func refusesFlippedBits(b *bench) {
	dpu := b.dpu()
	region := b.alloc(b.host(), page, doca.RemoteRead)
	descriptor := b.export(region)
	for bit := range 8 * len(descriptor) {
		descriptor[bit/8] ^= 1 << (bit % 8)
		if remote, err := dpu.Import(descriptor, region.Address(), region.Len()); err == nil {
			b.closeAtEnd(remote)
			b.Errorf("a descriptor with bit %d flipped was taken", bit)
		}
		descriptor[bit/8] ^= 1 << (bit % 8)
	}
	b.closeAtEnd(b.imported(dpu, region)) // and the exporter has lived through all of them
}

func diesWithMemory(b *bench) {
	dpu := b.dpu()
	region, err := b.host().Alloc(page, doca.RemoteWrite)
	b.must(err)
	descriptor := b.export(region)
	remote := b.imported(dpu, region)
	target := b.alloc(dpu, page, doca.LocalWrite)
	b.must(b.copy(b.engine(dpu, 1), doca.Copy{Source: remote, Target: target, Length: page}))
	b.must(region.Close())
	for _, c := range []doca.Copy{
		{Source: remote, Target: target, Length: page},
		{Source: target, Target: remote, Length: page},
	} {
		b.mustBe(b.copy(b.engine(dpu, 1), c), doca.CodeIOFailed)
	}
	if again, err := dpu.Import(descriptor, remote.Address(), page); err == nil {
		b.closeAtEnd(again)
		b.Error("a revoked descriptor was imported")
	}
}

// Two exports of one process are distinct, and ending one leaves the other.
func reachesOneExport(b *bench) {
	host, dpu := b.host(), b.dpu()
	first, second := b.allocRandom(host, page, doca.RemoteRead), b.alloc(host, page, doca.RemoteRead)
	if remote, err := dpu.Import(b.export(first), second.Address(), page); err == nil {
		b.closeAtEnd(remote)
		b.Error("a descriptor was taken for the memory of another")
	}
	remote := b.imported(dpu, first)
	b.export(second)
	b.must(second.Close())
	target := b.alloc(dpu, page, doca.LocalWrite)
	b.must(b.copy(b.engine(dpu, 1), doca.Copy{Source: remote, Target: target, Length: page}))
	b.mustEqual(target.Bytes(), first.Bytes())
}
