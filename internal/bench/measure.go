package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Measure runs a plan. A candidate that fails is in the record, and Failed counts it. The error is for what prevents
// the whole measurement: a *job.Error about the directory, ErrOneSided, an error of doca.Open, or the cause of ctx.
// Measure leaves no file behind.
func Measure(ctx context.Context, p Plan) (*Record, error) {
	if p.Machines != nil {
		return p.measureWithoutDevice(ctx)
	}
	folder, err := os.MkdirTemp("", "dma-copy-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	limits := p.limits(os.Getenv(limitsVariable))
	driver, err := p.openDriver(folder, limits)
	if err != nil {
		return nil, err
	}
	defer driver.Close()
	names, err := findSides(driver)
	if err != nil {
		return nil, err
	}
	r := p.newRecord()
	r.Device = newDevice(driver, limits)
	m, err := p.newPairConfig(folder, names)
	if err != nil {
		return nil, err
	}
	if p.Copies != nil {
		if r.Copies, err = p.measureCopies(ctx, m); err != nil {
			return nil, err
		}
	}
	if p.Trees != nil {
		if r.Trees, err = p.measureTrees(ctx, m); err != nil {
			return nil, err
		}
	}
	if p.Connected != nil {
		if r.Connected, err = p.measureConnected(ctx, m); err != nil {
			return nil, err
		}
	}
	if p.Engine != nil {
		if r.Engine, err = p.measureEngine(ctx, driver, names, r.Device.Moves); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// measureWithoutDevice measures copies over network connections, for which no device is opened.
func (p Plan) measureWithoutDevice(ctx context.Context) (*Record, error) {
	folder, err := os.MkdirTemp("", "dma-copy-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	m, err := p.newPairConfig(folder, sideNames{})
	if err != nil {
		return nil, err
	}
	r := p.newRecord()
	r.Machines, err = p.measureMachines(ctx, m)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (p Plan) newRecord() *Record {
	return &Record{
		Version: recordVersion, Date: time.Now().UTC().Format(time.RFC3339), Command: p.Command,
		Program: p.Software, Go: runtime.Version(), Runs: p.Runs, Warmup: p.Warmup, Machine: thisMachine(),
	}
}

func newDevice(driver *doca.Driver, limits string) *Device {
	return &Device{
		Driver: string(driver.Name()), Version: driver.Version(), Hardware: driver.Hardware(), Limits: limits,
		Moves: driver.MovesBytes(), Model: driver.TimeModel(),
	}
}

func (p Plan) rounds() rounds { return rounds{warmup: p.Warmup, counted: p.Runs} }

func (p Plan) notify(format string, args ...any) { p.Tell(fmt.Sprintf(format, args...)) }
