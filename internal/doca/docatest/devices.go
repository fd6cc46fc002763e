package docatest

import (
	"errors"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca"
)

var deviceCases = []testCase{
	{"each device describes itself", describesItself},
	{"opened by any of its names", openedByAnyName},
	{"what is missing is named with what is there", missingDevice},
	{"an address that is none is refused", badAddress},
	{"opened twice it wants two closes", openedTwice},
	{"a device in use stays open", deviceInUse},
	{"representors of the DPU are the host's functions", representsHost},
	{"a missing representor is named with what is there", missingRepresentor},
	{"a host has no representors", hostHasNoRepresentors},
	{"a representor in use stays open", representorInUse},
}

func describesItself(b *bench) {
	infos, err := b.driver.Devices()
	b.must(err)
	for _, info := range infos {
		address, err := doca.ParsePCIAddress(info.PCIAddress)
		b.must(err)
		if address != info.PCIAddress {
			b.Errorf("%s is not in the long form", info.PCIAddress)
		}
		if info.IsHost() == info.IsDPU() {
			b.Errorf("%s is on both sides, or on none", info.PCIAddress)
		}
		checkCapabilities(b, info)
	}
}

func checkCapabilities(b *bench, info doca.DeviceInfo) {
	if info.IsHost() && !info.ExportSupported {
		b.Errorf("%s cannot export memory", info.PCIAddress)
	}
	if info.IsDPU() && (!info.ImportSupported || !info.MemcpySupported || info.MaxBufferSize == 0) {
		b.Errorf("%s cannot copy what a host exports", info.PCIAddress)
	}
	if info.MaxMessage == 0 || info.MaxReceiveQueue == 0 || info.MaxSends == 0 || info.MaxServerNameSize == 0 {
		b.Errorf("%s has a limit of nothing for messages: %+v", info.PCIAddress, info.Capabilities)
	}
}

func openedByAnyName(b *bench) {
	info := b.dpuInfo()
	long := info.PCIAddress
	short := strings.TrimPrefix(long, "0000:")
	for _, name := range []string{long, short, strings.ToUpper(long), info.IBName, info.Interface} {
		if name == "" {
			continue
		}
		device := b.open(name)
		if device.Info() != info {
			b.Errorf("%s opened %s", name, device.Info().PCIAddress)
		}
	}
}

func missingDevice(b *bench) {
	infos, err := b.driver.Devices()
	b.must(err)
	for _, name := range []string{"ff:1f.7", "no_such_device"} {
		_, err = b.driver.OpenDevice(name)
		var missing *doca.NotFoundError
		if !errors.As(err, &missing) {
			b.Fatalf("opening %s: %v", name, err)
		}
		if missing.Kind != "device" || missing.Name != name || len(missing.Available) != len(infos) {
			b.Errorf("%+v does not say what there is", missing)
		}
		if !strings.Contains(err.Error(), infos[0].PCIAddress) {
			b.Errorf("%q does not name %s", err, infos[0].PCIAddress)
		}
	}
}

func badAddress(b *bench) {
	_, err := b.driver.OpenDevice("b1:00:0")
	b.mustBe(err, doca.ErrBadAddress)
	_, err = b.dpu().OpenRepresentor("b1:00:0")
	b.mustBe(err, doca.ErrBadAddress)
}

func openedTwice(b *bench) {
	first, second := b.host(), b.host()
	b.must(first.Close())
	b.alloc(second, page, doca.LocalWrite)
}

func deviceInUse(b *bench) {
	device := b.dpu()
	region := b.alloc(device, page, doca.LocalWrite)
	b.mustBe(device.Close(), doca.CodeInUse)
	b.must(region.Close())
	engine := b.engine(device, 1)
	b.mustBe(device.Close(), doca.CodeInUse)
	b.must(engine.Close())
	b.must(device.Close())
}

func representsHost(b *bench) {
	dpu := b.dpu()
	names, err := dpu.Representors()
	b.must(err)
	host := b.hostInfo().PCIAddress
	if !slices.Contains(names, host) {
		b.Fatalf("the host's %s is not among %v", host, names)
	}
	for _, name := range []string{host, strings.TrimPrefix(host, "0000:"), strings.ToUpper(host)} {
		rep, err := dpu.OpenRepresentor(name)
		b.must(err)
		b.closeAtEnd(rep)
		if got := rep.Info().PCIAddress; got != host {
			b.Errorf("%s opened the representor of %s", name, got)
		}
	}
}

func missingRepresentor(b *bench) {
	dpu := b.dpu()
	names, err := dpu.Representors()
	b.must(err)
	for _, name := range []string{"ff:1f.7", "no_such_device", ""} {
		_, err = dpu.OpenRepresentor(name)
		var missing *doca.NotFoundError
		if !errors.As(err, &missing) || missing.Kind != "representor" || !slices.Equal(missing.Available, names) {
			b.Fatalf("got %v, want a representor that is missing among %v", err, names)
		}
	}
}

func hostHasNoRepresentors(b *bench) {
	host := b.host()
	names, err := host.Representors()
	b.must(err)
	if len(names) > 0 {
		b.Errorf("the host represents %v", names)
	}
	var missing *doca.NotFoundError
	_, err = host.OpenRepresentor(b.hostInfo().PCIAddress)
	if !errors.As(err, &missing) || len(missing.Available) > 0 {
		b.Errorf("got %v, want that there are none", err)
	}
}

func representorInUse(b *bench) {
	dpu := b.dpu()
	rep := b.representor(dpu, b.host())
	b.mustBe(dpu.Close(), doca.CodeInUse)
	server, err := dpu.Listen(rep, serverName, doca.ChannelConfig{})
	b.must(err)
	b.mustBe(rep.Close(), doca.CodeInUse)
	b.must(server.Close())
	b.must(rep.Close())
}
