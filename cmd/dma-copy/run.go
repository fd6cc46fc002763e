package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// errTimeLimit is the cause of a context that --timeout ended.
var errTimeLimit = errors.New("stopped by --timeout")

// runner returns the function that carries out one run.
func runner(streams streams) func(context.Context, settings, zerolog.Logger) error {
	return func(ctx context.Context, s settings, log zerolog.Logger) error {
		if s.Timeout > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("%w after %s", errTimeLimit, s.Timeout))
			defer cancel()
			ctx = limited
		}
		driver, err := doca.Open(s.driverOptions())
		if err != nil {
			return err
		}
		defer driver.Close()
		logDriver(log, driver)
		err = runOn(ctx, driver, streams, s, log)
		logReworded(log, err)
		return err
	}
}

// logDriver says which driver it is and why.
func logDriver(log zerolog.Logger, driver *doca.Driver) {
	log.Info().Str("driver", string(driver.Name())).Str("version", driver.Version()).
		Str("library_dir", driver.LibraryDir()).Msg(driver.Reason())
}

// runOn carries out the run on the device that fits.
func runOn(ctx context.Context, driver *doca.Driver, streams streams, s settings, log zerolog.Logger) (err error) {
	devices, err := driver.Devices()
	if err != nil {
		return err
	}
	name, err := chooseDevice(devices, s)
	if err != nil {
		return err
	}
	device, err := driver.OpenDevice(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	side, err := chooseSide(device.Info(), s)
	if err != nil {
		return &sideError{side: sideOf(device.Info()), err: err}
	}
	if err := transfer(ctx, device, driver, side, streams, s, log); err != nil {
		return &sideError{side: side, err: err}
	}
	return nil
}

func transfer(
	ctx context.Context, device *doca.Device, driver *doca.Driver, side negotiate.Side,
	streams streams, s settings, log zerolog.Logger,
) error {
	if side == negotiate.DPU && s.Representor == "" {
		return missingRepresentor(device)
	}
	summary, err := dmaxfer.Run(ctx, dmaxfer.Options{
		Side: side, Device: device, Representor: s.Representor, File: s.File, Overwrite: s.Overwrite,
		Chunk: s.Chunk, Depth: s.Depth, Wait: s.Wait, IdleTimeout: s.IdleTimeout, Log: log,
	})
	if err == nil && !s.Quiet {
		writeSummary(streams.stderr, summary, side, driver, choiceOf(driver, s))
	}
	return err
}

func missingRepresentor(device *doca.Device) error {
	there, err := device.Representors()
	if err != nil {
		return err
	}
	return usagef("--rep-pci is missing: on the DPU, name the host function to serve with -r; %s represents %s",
		device.Info().PCIAddress, strings.Join(there, " and "))
}
