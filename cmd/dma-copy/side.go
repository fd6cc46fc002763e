package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/cli/placement"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// errTimeLimit is the cause of a context that --timeout has ended.
var errTimeLimit = exit.Errorf(exit.Limit, "raise --timeout", "stopped by --timeout")

// limitTime returns a context that --timeout ends; 0 is no limit.
func limitTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w after %s", errTimeLimit, limit))
}

// side is this side of a command that both sides run: its open device, and which side it is.
type side struct {
	driver  *doca.Driver // nil: the peer is on another machine
	device  *doca.Device // as driver
	shared  bool         // others use the driver, too
	side    wire.Side
	address string // of a daemon on another machine
}

// movesNothing reports whether this is a software device that moves no bytes.
func (s *side) movesNothing() bool { return s.driver != nil && !s.driver.MovesBytes() }

// near returns the address of the device that a copy should run near, empty if there is none.
func (s *side) near() string {
	if s.device == nil {
		return ""
	}
	return placement.NearAddress(s.driver.Hardware(), s.device.Info().PCIAddress)
}

// openSide opens the driver and the device that the settings select.
func openSide(s config.Driver, chosen inventory.Selection, log zerolog.Logger) (*side, error) {
	driver, err := openDriver(s, log)
	if err != nil {
		return nil, err
	}
	on := &side{driver: driver}
	if err = on.open(chosen); err != nil {
		on.end(&err)
		return nil, err
	}
	log.Debug().Str("device", on.device.Info().Name()).Stringer("side", on.side).Msg("device opened")
	return on, nil
}

// openShared opens the device of a driver that others use, too, and that end does not close.
func openShared(driver *doca.Driver, chosen inventory.Selection) (*side, error) {
	on := &side{driver: driver, shared: true}
	if err := on.open(chosen); err != nil {
		on.end(&err)
		return nil, err
	}
	return on, nil
}

// meeting is this side of a command that both sides run. It says that it waits for the command on the other side until
// met is called.
type meeting struct {
	*side
	met  func()
	wait output.Wait
}

// meetCommand opens this side of a command that both sides run.
func meetCommand(
	ctx context.Context, r config.Reach, command string, waits output.WaitOutput, log zerolog.Logger,
) (*meeting, error) {
	on, err := openSide(r.Driver, inventory.Selection{Device: r.Device, Representor: r.Representor, Role: r.Role}, log)
	if err != nil {
		return nil, err
	}
	wait := output.WaitForCommand(on.side, on.hostFunction(r.Representor), command, r.Wait)
	return &meeting{on, sync.OnceFunc(output.Waiting(wait, waits, progressRequests(ctx))), wait}, nil
}

// end ends the side, and explains an error of work that has met nobody.
func (m *meeting) end(err *error) {
	if *err != nil {
		*err = &output.SideError{Side: m.side.side, Err: m.wait.Explain(*err)}
	}
	m.met()
	m.side.end(err)
}

// open opens the device of the driver that the settings select.
func (s *side) open(chosen inventory.Selection) (err error) {
	choose := func(devices []doca.DeviceInfo) (string, error) { return inventory.ChooseDevice(devices, chosen) }
	if s.device, err = openDevice(s.driver, choose); err != nil {
		return err
	}
	if s.side, err = inventory.ChooseSide(s.device.Info(), chosen); err != nil {
		return &output.SideError{Side: inventory.NativeSide(s.device.Info()), Err: err}
	}
	if s.side == wire.DPU && chosen.Representor == "" {
		return &output.SideError{Side: s.side, Err: missingRepresentor(s.device)}
	}
	return nil
}

// end closes what the side has opened, after work that ended with *err, to which it adds the errors of the end.
func (s *side) end(err *error) {
	if s.device != nil {
		*err = withFallback(s.driver, errors.Join(*err, closeUnlessHung(*err, s.device.Close)))
	}
	if s.driver != nil && !s.shared {
		*err = errors.Join(*err, closeUnlessHung(*err, s.driver.Close))
	}
}

// withFallback names the driver in the error of a side that has met no peer. That may be waiting on a card.
func withFallback(driver *doca.Driver, err error) error {
	if driver.Fallback() == "" || !errors.Is(err, comch.ErrPeerAbsent) {
		return err
	}
	return fmt.Errorf("%w; this side used the software device, because %s", err, shortCause(driver))
}

// shortCause returns why DOCA is not used, without the details, which the log has.
func shortCause(driver *doca.Driver) string {
	cause, _, _ := strings.Cut(driver.Fallback(), ": ")
	return cause
}

func openDriver(s config.Driver, log zerolog.Logger) (*doca.Driver, error) {
	if err := s.ValidateForDevice(); err != nil {
		return nil, err
	}
	driver, err := doca.Open(s.Options())
	if err == nil {
		logDriver(log, driver)
	}
	return driver, err
}

// openDevice opens the device that choose names.
func openDevice(driver *doca.Driver, choose func([]doca.DeviceInfo) (string, error)) (*doca.Device, error) {
	devices, err := driver.Devices()
	if err != nil {
		return nil, err
	}
	name, err := choose(devices)
	if err != nil {
		return nil, err
	}
	if driver.Fallback() != "" && inventory.IsNVIDIA(os.DirFS("/sys"), name) {
		return nil, exit.Errorf(exit.Device, "install DOCA, or use the software device with --driver soft",
			"%s is an NVIDIA device of this machine and needs DOCA, but %s", quote.Text(name), shortCause(driver))
	}
	device, err := driver.OpenDevice(name)
	if err != nil && driver.Fallback() != "" {
		err = fmt.Errorf("%w; this side uses the software device, because %s", err, shortCause(driver))
	}
	return device, err
}

func missingRepresentor(device *doca.Device) error {
	there, err := device.Representors()
	if err != nil && len(there) == 0 {
		return err
	}
	return representorNotNamed(device.Info().Name(), there)
}

// representorNotNamed returns the error of a DPU side without -r, given the names of the representors.
func representorNotNamed(device string, there []string) error {
	if len(there) == 0 {
		return exit.Errorf(exit.Device, "run dma-copy doctor",
			"--rep-pci is missing, and %s represents no host function", device)
	}
	return exit.Usagef("--rep-pci is missing: on the DPU, name the host function to serve with -r; %s represents %s",
		device, phrase.And(there))
}

// closeUnlessHung calls end unless a call hangs that may still use what end would close; then the process's end does
// it.
func closeUnlessHung(err error, end func() error) error {
	if errors.Is(err, job.ErrHung) {
		return nil
	}
	return end()
}

// logDriver logs which driver is used and why. It warns of a fallback to the software device, of a release of DOCA that
// is newer than this program, and of a time model, whose setting may have been forgotten.
func logDriver(log zerolog.Logger, driver *doca.Driver) {
	log.Info().Str("driver", string(driver.Name())).Str("version", driver.Version()).
		Str("library_dir", driver.LibraryDir()).Msg(driver.Reason())
	if driver.Fallback() != "" {
		log.Warn().Msg(fallbackWarning(driver))
	}
	if caution := driver.Caution(); caution != "" {
		log.Warn().Msg(caution)
	}
	if model := driver.TimeModel(); model != "" {
		log.Warn().Str("time_model", model).
			Msg("the software device simulates the timing of a model (DMA_COPY_SOFT_LIMITS)")
	}
}

func fallbackWarning(driver *doca.Driver) string {
	return driver.Reason() + "; --driver soft chooses it without this warning"
}

// path describes the device and driver, or the other machine, for the reports.
func (on *side) path(s config.Driver) output.Path {
	if on.device == nil {
		return output.Path{Software: softwareName(), Side: on.side, Address: on.address, Driver: "network"}
	}
	path := output.Path{
		Software: softwareName(), Side: on.side, Device: on.device.Info().Name(),
		Driver:   inventory.DriverTitle(string(on.driver.Name()), on.driver.Hardware(), on.driver.Version()),
		Hardware: on.driver.Hardware(),
	}
	if model := on.driver.TimeModel(); model != "" { // without it the rate would be taken for this machine's
		path.Driver += ", time model " + model
	}
	if s.Name == config.DriverAuto { // otherwise the user chose the driver
		path.Reason, _, _ = strings.Cut(on.driver.Reason(), ": ") // the details are in the log
	}
	if on.driver.Fallback() != "" {
		path.Warning = fallbackWarning(on.driver)
	}
	return path
}

// hostFunction returns the PCI address of the host function over which both sides meet, in its short form, or an empty
// text if this side only has another name of it.
func (s *side) hostFunction(representor string) string {
	address := representor
	if s.device != nil && s.side == wire.Host {
		address = s.device.Info().PCIAddress
	}
	parsed, err := doca.ParsePCIAddress(address)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(parsed, "0000:")
}
