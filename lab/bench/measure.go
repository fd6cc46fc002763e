package bench

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Measure runs a plan. A candidate that fails is in the record. The error is for what prevents the whole measurement:
// the devices, the memory, or the cause of ctx. Measure leaves no file behind.
func Measure(ctx context.Context, p Plan) (*Record, error) {
	folder, err := os.MkdirTemp("", "dma-copy-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	driver, device, err := p.OpenDriver(folder)
	if err != nil {
		return nil, err
	}
	defer driver.Close()
	sides, err := FindSides(driver)
	if err != nil {
		return nil, err
	}
	r := p.NewRecord()
	r.Device = device
	if r.Engine, err = p.measureEngine(ctx, driver, sides, device.Moves); err != nil {
		return nil, err
	}
	return r, nil
}

// NewRecord returns a record without results and without a device.
func (s Settings) NewRecord() *Record {
	return &Record{
		Version: RecordVersion, Date: time.Now().UTC().Format(time.RFC3339), Command: s.Command,
		Program: s.Software, Go: runtime.Version(), Runs: s.Runs, Warmup: s.Warmup, Machine: thisMachine(),
	}
}

// OpenDriver opens the driver with a runtime directory of its own.
func (s Settings) OpenDriver(runtimeDir string) (*doca.Driver, *Device, error) {
	options := s.Driver
	options.SoftDir, options.SoftLimits = runtimeDir, s.Limits(os.Getenv(LimitsVariable))
	if options.Choice == doca.ChooseAuto {
		options.Choice = doca.ChooseSoft
	}
	driver, err := doca.Open(options)
	if err != nil {
		return nil, nil, err
	}
	return driver, &Device{
		Driver: string(driver.Name()), Version: driver.Version(), Hardware: driver.Hardware(),
		Limits: options.SoftLimits, Moves: driver.MovesBytes(), Model: driver.TimeModel(),
	}, nil
}
