package docatest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// timeout is the timeout of a case. It only ends a test that hangs: a busy machine needs long for 20,000 messages.
const timeout = 3 * time.Minute

// page is the size of memory for cases that do not depend on it.
const page = 4096

// bench is the environment of one case. Everything that it opens is closed, twice, at the end of the case.
type bench struct {
	*testing.T
	driver *doca.Driver
	polled bool // as in doca.ChannelConfig, for all channels
}

func (b *bench) context() context.Context {
	ctx, cancel := context.WithTimeout(b.Context(), timeout)
	b.Cleanup(cancel)
	return ctx
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) mustBe(err, wanted error) {
	b.Helper()
	if !errors.Is(err, wanted) {
		b.Fatalf("got %v, want %v", err, wanted)
	}
}

func (b *bench) closeAtEnd(c io.Closer) { closeAtEnd(b.T, c) }

// info describes the first device that wanted accepts.
func (b *bench) info(wanted func(doca.DeviceInfo) bool) doca.DeviceInfo {
	b.Helper()
	infos, err := b.driver.Devices()
	b.must(err)
	for _, info := range infos {
		if wanted(info) {
			return info
		}
	}
	b.Fatal("the driver does not show devices of both sides")
	return doca.DeviceInfo{}
}

func (b *bench) hostInfo() doca.DeviceInfo { return b.info(doca.DeviceInfo.IsHost) }
func (b *bench) dpuInfo() doca.DeviceInfo  { return b.info(doca.DeviceInfo.IsDPU) }

func (b *bench) open(name string) *doca.Device {
	b.Helper()
	device, err := b.driver.OpenDevice(name)
	b.must(err)
	b.closeAtEnd(device)
	return device
}

func (b *bench) host() *doca.Device { return b.open(b.hostInfo().PCIAddress) }
func (b *bench) dpu() *doca.Device  { return b.open(b.dpuInfo().PCIAddress) }

// representor opens the representor of the function that host is.
func (b *bench) representor(dpu, host *doca.Device) *doca.Representor {
	b.Helper()
	rep, err := dpu.OpenRepresentor(host.Info().PCIAddress)
	b.must(err)
	b.closeAtEnd(rep)
	return rep
}

func (b *bench) alloc(device *doca.Device, length int64, access doca.Access) *doca.Region {
	b.Helper()
	region, err := device.Alloc(length, access)
	b.must(err)
	b.closeAtEnd(region)
	return region
}

// allocRandom allocates memory with random bytes, the same in every run.
func (b *bench) allocRandom(device *doca.Device, length int64, access doca.Access) *doca.Region {
	b.Helper()
	region := b.alloc(device, length, access)
	fillRandom(region.Bytes())
	return region
}

func fillRandom(buffer []byte) {
	_, _ = rand.NewChaCha8([32]byte{1}).Read(buffer)
}

func (b *bench) export(region *doca.Region) []byte {
	b.Helper()
	descriptor, err := region.Export()
	b.must(err)
	return descriptor
}

func (b *bench) imported(dpu *doca.Device, region *doca.Region) *doca.Remote {
	b.Helper()
	remote, err := dpu.Import(b.export(region), region.Address(), region.Len())
	b.must(err)
	b.closeAtEnd(remote)
	return remote
}

func (b *bench) engine(device *doca.Device, depth int) *doca.Engine {
	b.Helper()
	engine, err := device.NewEngine(depth)
	b.must(err)
	b.closeAtEnd(engine)
	return engine
}

// copy submits one copy, waits for it, and returns its error: drivers may refuse an invalid one at either point.
func (b *bench) copy(engine *doca.Engine, c doca.Copy) error {
	b.Helper()
	n, err := engine.Submit([]doca.Copy{c})
	if err != nil {
		return err
	}
	if n != 1 {
		b.Fatalf("Submit took %d copies of 1 and gave no reason", n)
	}
	return b.reap(engine, 1)[c.Tag]
}

// reap waits for count completions and returns their errors by tag; no tag may occur twice.
func (b *bench) reap(engine *doca.Engine, count int) map[uint64]error {
	b.Helper()
	results := map[uint64]error{}
	into := make([]doca.Completion, count)
	for len(results) < count {
		n, err := engine.Reap(b.context(), into)
		b.must(err)
		if n == 0 {
			b.Fatalf("%d of %d copies never completed", count-len(results), count)
		}
		for _, c := range into[:n] {
			if _, twice := results[c.Tag]; twice {
				b.Fatalf("copy %d completed twice", c.Tag)
			}
			results[c.Tag] = c.Err
		}
	}
	return results
}

func (b *bench) mustEqual(got, want []byte) {
	b.Helper()
	if !bytes.Equal(got, want) {
		b.Fatalf("%d bytes are not what was copied", len(want))
	}
}
