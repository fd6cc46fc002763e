package job

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// capable returns a device that can do everything.
func capable() doca.DeviceInfo {
	var d doca.DeviceInfo
	d.ExportSupported, d.ImportSupported, d.MemcpySupported = true, true, true
	d.Producer.Supported, d.Consumer.Supported, d.MaxImmediate = true, true, 32
	return d
}

func TestChoosePaths(t *testing.T) {
	everything := func(*doca.DeviceInfo) {}
	noFast := func(d *doca.DeviceInfo) { d.Consumer.Supported = false }
	noDMA := func(d *doca.DeviceInfo) { d.ExportSupported, d.ImportSupported = false, false }
	nothing := func(d *doca.DeviceInfo) { noFast(d); noDMA(d) }
	const none Paths = 0
	dma, fast := PathsOf(wire.PathDMA), PathsOf(wire.PathFast)
	both := dma | fast
	for name, test := range map[string]struct {
		choice PathChoice
		device func(*doca.DeviceInfo)
		want   Paths // none: refused
	}{
		"auto, both":           {AnyPath, everything, both},
		"auto, no fast path":   {AnyPath, noFast, dma},
		"auto, no DMA":         {AnyPath, noDMA, fast},
		"auto, nothing":        {AnyPath, nothing, none},
		"dma, both":            {OnlyDMA, everything, dma},
		"dma, no DMA":          {OnlyDMA, noDMA, none},
		"fast, both":           {OnlyFast, everything, fast},
		"fast, no fast path":   {OnlyFast, noFast, none},
		"fast, no immediate":   {OnlyFast, func(d *doca.DeviceInfo) { d.MaxImmediate = 3 }, none},
		"fast, no producers":   {OnlyFast, func(d *doca.DeviceInfo) { d.Producer.Supported = false }, none},
		"fast, small buffers":  {OnlyFast, func(d *doca.DeviceInfo) { d.Consumer.MaxBuffer = 4095 }, none},
		"fast, small messages": {OnlyFast, func(d *doca.DeviceInfo) { d.Producer.MaxBuffer = 4095 }, none},
		"fast, smallest buffers": {
			OnlyFast, func(d *doca.DeviceInfo) { d.Consumer.MaxBuffer = 4096 }, fast,
		},
	} {
		device := capable()
		test.device(&device)
		for _, side := range []wire.Side{wire.Host, wire.DPU} {
			got, err := ChoosePaths(test.choice, device, side)
			switch {
			case test.want == none && !errors.Is(err, ErrCapability):
				t.Errorf("%s on the %s: %+v, %v", name, side, got, err)
			case test.want != none && (err != nil || got != test.want):
				t.Errorf("%s on the %s: %+v, %v", name, side, got, err)
			}
		}
	}
}

// A local copy needs an engine, and nothing else.
func TestCheckLocal(t *testing.T) {
	var device doca.DeviceInfo
	if err := CheckLocal(device); !errors.Is(err, ErrCapability) {
		t.Errorf("without an engine: %v", err)
	}
	device.MemcpySupported = true
	if err := CheckLocal(device); err != nil {
		t.Error(err)
	}
}

// A DPU without an engine cannot copy by DMA, even if it may import memory; a host needs no engine.
func TestEngineOfTheDPU(t *testing.T) {
	device := capable()
	device.MemcpySupported = false
	if p, err := ChoosePaths(AnyPath, device, wire.DPU); err != nil || p.Has(wire.PathDMA) {
		t.Errorf("DPU: %+v, %v", p, err)
	}
	if p, err := ChoosePaths(AnyPath, device, wire.Host); err != nil || !p.Has(wire.PathDMA) {
		t.Errorf("host: %+v, %v", p, err)
	}
}
