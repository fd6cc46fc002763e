package contest

import (
	"context"
	"fmt"
	"os"

	"github.com/dma-copy/dma-copy/lab/bench"
)

// Measure runs a plan. A candidate that fails is in the record, and Failed counts it. The error is for what prevents
// the whole measurement: a *job.Error about the directory, the devices, or the cause of ctx.
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
	driver, device, err := p.OpenDriver(folder)
	if err != nil {
		return nil, err
	}
	defer driver.Close()
	names, err := bench.FindSides(driver)
	if err != nil {
		return nil, err
	}
	r := p.newRecord()
	r.Device = device
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
	return r, nil
}

// measureWithoutDevice measures copies over network connections, for which no device is opened.
func (p Plan) measureWithoutDevice(ctx context.Context) (*Record, error) {
	folder, err := os.MkdirTemp("", "dma-copy-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	m, err := p.newPairConfig(folder, bench.Sides{})
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

func (p Plan) newRecord() *Record { return &Record{Record: *p.NewRecord()} }

func (p Plan) notify(format string, args ...any) { p.Tell(fmt.Sprintf(format, args...)) }
