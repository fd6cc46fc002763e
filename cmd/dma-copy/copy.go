package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// The causes of a context that a time limit of the user has ended.
var (
	errTimeLimit     = exit.Errorf(exit.Limit, "raise --timeout", "stopped by --timeout")
	errDurationLimit = exit.Errorf(exit.Limit, "raise --max-duration", "stopped by --max-duration")
)

// errMovesNothing refuses a device that moves no bytes: without a digest the target would silently be a file of zeros.
var errMovesNothing error = exit.Errorf(exit.Usage, inventory.HintMoveBytes,
	"the software device is set to move no bytes, so nothing would be copied")

// runner returns the function that carries out a copy and reports on it.
func runner(streams streams) func(context.Context, config.Copy, zerolog.Logger) error {
	return func(ctx context.Context, s config.Copy, log zerolog.Logger) error {
		r := report.NewMonitor(report.New(streams.stdout, streams.stderr, streams.screen, s, log), s)
		err := withCPUProfile(s.CPUProfile, func() error { return runCopy(ctx, r, streams, s, log) })
		if err != nil {
			r.Reporter.Fail(err)
		}
		report.LogReworded(log, err)
		return err
	}
}

func runCopy(ctx context.Context, r *report.Monitor, streams streams, s config.Copy, log zerolog.Logger) error {
	if err := streams.closed.check(s); err != nil {
		return err
	}
	if s.IsStream() && streams.data.nowhere {
		return exit.Usagef(
			"-f - has nothing to read or write: " +
				"both stdin and stdout are a terminal, so connect one to a file or a pipe")
	}
	if s.Timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("%w after %s", errTimeLimit, s.Timeout))
		defer cancel()
		ctx = limited
	}
	driver, err := doca.Open(s.Driver.Options())
	if err != nil {
		return err
	}
	logDriver(log, driver)
	if driver.MovesBytes() {
		err = copyOnDevice(ctx, driver, r, streams, s, log)
	} else {
		err = errMovesNothing
	}
	return errors.Join(err, closeUnlessHung(err, driver.Close))
}

// closeUnlessHung calls end unless a call hangs that may still use what end would close; then the process's end does
// it.
func closeUnlessHung(err error, end func() error) error {
	if errors.Is(err, job.ErrHung) {
		return nil
	}
	return end()
}

// logDriver logs which driver is used and why, and warns of a time model, whose setting may have been forgotten.
func logDriver(log zerolog.Logger, driver *doca.Driver) {
	log.Info().Str("driver", string(driver.Name())).Str("version", driver.Version()).
		Str("library_dir", driver.LibraryDir()).Msg(driver.Reason())
	if model := driver.TimeModel(); model != "" {
		log.Warn().Str("time_model", model).
			Msg("the software device simulates the timing of a model (DMA_COPY_SOFT_LIMITS)")
	}
}

// copyOnDevice chooses the device and carries out the copy on it.
func copyOnDevice(
	ctx context.Context, driver *doca.Driver, r *report.Monitor, streams streams, s config.Copy, log zerolog.Logger,
) (err error) {
	devices, err := driver.Devices()
	if err != nil {
		return err
	}
	name, err := inventory.ChooseDevice(devices, selectionOf(s))
	if err != nil {
		return err
	}
	device, err := driver.OpenDevice(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeUnlessHung(err, device.Close)) }()
	side, err := inventory.ChooseSide(device.Info(), selectionOf(s))
	if err != nil {
		return &report.SideError{Side: inventory.NativeSide(device.Info()), Err: err}
	}
	if side == negotiate.DPU && s.Representor == "" {
		return &report.SideError{Side: side, Err: missingRepresentor(device)}
	}
	options := copyOptions(s, device, side, streams.data, log)
	address := device.Info().PCIAddress
	err = selectEntries(ctx, s, streams.stdin, &options)
	if err == nil {
		err = placement.Apply(placement.ThisMachine, driver.Hardware(), address, s.Placement, log)
	}
	if err != nil {
		dmaxfer.TellPeer(ctx, options, err)
		return err
	}
	r.Reporter.Begin(pathOf(driver, device, side, s))
	summary, err := transfer(ctx, r, options)
	return r.Conclude(side, summary, err)
}

// pathOf describes the device and driver of the copy for the reports.
func pathOf(driver *doca.Driver, device *doca.Device, side negotiate.Side, s config.Copy) report.Path {
	return report.Path{
		Software: softwareName(), Side: side, Device: device.Info().Name(),
		Driver: driverPath(driver), Hardware: driver.Hardware(), Reason: driverReason(driver, s),
	}
}

// driverPath returns the title of the driver and its time model, without which the rate would be taken for this
// machine's.
func driverPath(driver *doca.Driver) string {
	title := inventory.DriverTitle(string(driver.Name()), driver.Hardware(), driver.Version())
	if model := driver.TimeModel(); model != "" {
		return title + ", time model " + model
	}
	return title
}

// driverReason returns why the program chose this driver, without the details, which the log has. It is empty if the
// user chose the driver.
func driverReason(driver *doca.Driver, s config.Copy) string {
	if s.Driver.Name != config.DriverAuto {
		return ""
	}
	reason, _, _ := strings.Cut(driver.Reason(), ": ")
	return reason
}

// transfer makes the copy, within --max-duration, and lets the monitor sample its progress.
func transfer(ctx context.Context, r *report.Monitor, o dmaxfer.Options) (job.Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.Progress = &r.Progress
	o.Notify = func(e job.Event) {
		if _, met := e.(job.PeerKnown); met {
			startLimit(ctx, cancel, o.MaxDuration)
		}
		r.Event(e)
	}
	stop := r.Watch()
	defer stop()
	return dmaxfer.Run(ctx, o)
}

// startLimit cancels the copy after limit; 0 is no limit.
func startLimit(ctx context.Context, cancel context.CancelCauseFunc, limit time.Duration) {
	if limit == 0 {
		return
	}
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w after %s", errDurationLimit, limit)) })
	context.AfterFunc(ctx, func() { timer.Stop() })
}

var linkModes = map[config.LinkChoice]tree.LinkMode{
	config.LinksCopy: tree.LinksCopy, config.LinksFollow: tree.LinksFollow, config.LinksSkip: tree.LinksSkip,
}

var pathChoices = map[config.PathChoice]job.PathChoice{
	config.PathAuto: job.AnyPath, config.PathDMA: job.OnlyDMA, config.PathFast: job.OnlyFast,
}

func copyOptions(
	s config.Copy, device *doca.Device, side negotiate.Side, data dataStreams, log zerolog.Logger,
) dmaxfer.Options {
	o := dmaxfer.Options{
		Side: side, Device: device, Representor: s.Representor, File: s.File, Overwrite: s.Overwrite,
		Path: pathChoices[s.Path], Chunk: s.Chunk, Depth: s.Depth, Wait: s.Wait, IdleTimeout: s.IdleTimeout, Log: log,
		Digest: s.Digest, Durability: s.Durability, Readback: s.Verify == config.VerifyReadback,
		NoSparse: s.Sparse == config.SparseNever, Owner: s.Preserve.Owner, Xattrs: s.Preserve.Xattr, Backup: s.Backup,
		NoResume: s.NoResume, AllowChanging: s.AllowChanging, ReferenceOnly: s.Protocol == config.ProtocolReference,
		Links: linkModes[s.Links], HardLinks: s.Preserve.Links, Checksum: s.Checksum, DryRun: s.DryRun,
		FailFast: s.FailFast, RefuseSame: s.IfSame == config.SameError, MaxEntries: s.MaxEntries,
		Bandwidth: s.Bandwidth, MaxBytes: s.MaxBytes, MaxHoles: s.MaxHoles, MaxDuration: s.MaxDuration,
		Stdin: data.stdin, Stdout: data.stdout, Software: softwareName(), ExitCode: report.ExitCode,
		Placement: placement.Lanes{},
	}
	if s.Expects() {
		o.Expect = &s.Expect
	}
	return o
}

func missingRepresentor(device *doca.Device) error {
	there, err := device.Representors()
	if err != nil {
		return err
	}
	return exit.Usagef("--rep-pci is missing: on the DPU, name the host function to serve with -r; %s represents %s",
		device.Info().PCIAddress, strings.Join(there, " and "))
}

// selectionOf returns the settings that select the device and the side.
func selectionOf(s config.Copy) inventory.Selection {
	return inventory.Selection{Device: s.Device, Representor: s.Representor, Role: s.Role}
}
