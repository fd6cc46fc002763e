package connect

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/release"
	"github.com/dma-copy/dma-copy/internal/report"
)

// Side is this side of a command that both sides run: its open device, and which side it is.
type Side struct {
	Driver  *doca.Driver // nil: the peer is on another machine
	Device  *doca.Device // as driver
	shared  bool         // others use the driver, too
	Is      wire.Side
	Address string // of a daemon on another machine
}

// MovesNothing reports whether this is a software device that moves no bytes.
func (s *Side) MovesNothing() bool { return s.Driver != nil && !s.Driver.MovesBytes() }

// Near returns the address of the device that a copy should run near, empty if there is none.
func (s *Side) Near() string {
	if s.Device == nil {
		return ""
	}
	return placement.NearAddress(s.Driver.Hardware(), s.Device.Info().PCIAddress)
}

// Open opens the driver and the device that the settings select.
func Open(s doca.Options, chosen inventory.Selection, log zerolog.Logger) (*Side, error) {
	driver, err := OpenDriver(s, log)
	if err != nil {
		return nil, err
	}
	on := &Side{Driver: driver}
	if err = on.open(chosen); err != nil {
		on.End(&err)
		return nil, err
	}
	log.Debug().Str("device", on.Device.Info().Name()).Stringer("side", on.Is).Msg("device opened")
	return on, nil
}

// OpenShared opens the device of a driver that others use, too, and that end does not close.
func OpenShared(driver *doca.Driver, chosen inventory.Selection) (*Side, error) {
	on := &Side{Driver: driver, shared: true}
	if err := on.open(chosen); err != nil {
		on.End(&err)
		return nil, err
	}
	return on, nil
}

// open opens the device of the driver that the settings select.
func (s *Side) open(chosen inventory.Selection) (err error) {
	choose := func(devices []doca.DeviceInfo) (string, error) { return inventory.ChooseDevice(devices, chosen) }
	if s.Device, err = OpenDevice(s.Driver, choose); err != nil {
		return err
	}
	if s.Is, err = inventory.ChooseSide(s.Device.Info(), chosen); err != nil {
		return &report.SideError{Side: inventory.NativeSide(s.Device.Info()), Err: err}
	}
	if s.Is == wire.DPU && chosen.Representor == "" {
		return &report.SideError{Side: s.Is, Err: missingRepresentor(s.Device)}
	}
	return nil
}

// End closes what the side has opened, after work that ended with *err, to which it adds the errors of the end.
func (s *Side) End(err *error) {
	if s.Device != nil {
		*err = withFallback(s.Driver, errors.Join(*err, CloseUnlessHung(*err, s.Device.Close)))
	}
	if s.Driver != nil && !s.shared {
		*err = errors.Join(*err, CloseUnlessHung(*err, s.Driver.Close))
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

// DriverUCX is the choice of no driver: connections with other machines, for which UCX must load.
const DriverUCX doca.Choice = "ucx"

// CheckDriver refuses the driver of connections with other machines where a device is needed.
func CheckDriver(s doca.Options) error {
	if s.Choice == DriverUCX {
		return exit.Usagef("--driver ucx is for daemons on other machines (ucx://HOST:PORT/SHARE/PATH, " +
			"serve --listen): over a device give auto, doca or soft")
	}
	return nil
}

// OpenDriver opens the driver that the settings select, and logs which one that is.
func OpenDriver(s doca.Options, log zerolog.Logger) (*doca.Driver, error) {
	if err := CheckDriver(s); err != nil {
		return nil, err
	}
	driver, err := doca.Open(s)
	if err == nil {
		LogDriver(log, driver)
	}
	return driver, err
}

// OpenDevice opens the device that choose names.
func OpenDevice(driver *doca.Driver, choose func([]doca.DeviceInfo) (string, error)) (*doca.Device, error) {
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

// CloseUnlessHung calls end unless a call hangs that may still use what end would close; then the process's end does
// it.
func CloseUnlessHung(err error, end func() error) error {
	if errors.Is(err, job.ErrHung) {
		return nil
	}
	return end()
}

// LogDriver logs which driver is used and why. It warns of a fallback to the software device, of a release of DOCA that
// is newer than this program, and of a time model, whose setting may have been forgotten.
func LogDriver(log zerolog.Logger, driver *doca.Driver) {
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

// Path describes the device and driver, or the other machine, for the reports.
func (on *Side) Path(s doca.Options) report.Path {
	if on.Device == nil {
		return report.Path{Software: release.SoftwareName(), Side: on.Is, Address: on.Address, Driver: "network"}
	}
	path := report.Path{
		Software: release.SoftwareName(), Side: on.Is, Device: on.Device.Info().Name(),
		Driver:   inventory.DriverTitle(string(on.Driver.Name()), on.Driver.Hardware(), on.Driver.Version()),
		Hardware: on.Driver.Hardware(),
	}
	if model := on.Driver.TimeModel(); model != "" { // without it the rate would be taken for this machine's
		path.Driver += ", time model " + model
	}
	if s.Choice == doca.ChooseAuto { // otherwise the user chose the driver
		path.Reason, _, _ = strings.Cut(on.Driver.Reason(), ": ") // the details are in the log
	}
	if on.Driver.Fallback() != "" {
		path.Warning = fallbackWarning(on.Driver)
	}
	return path
}

// HostFunction returns the PCI address of the host function over which both sides meet, in its short form, or an empty
// text if this side only has another name of it.
func (s *Side) HostFunction(representor string) string {
	address := representor
	if s.Device != nil && s.Is == wire.Host {
		address = s.Device.Info().PCIAddress
	}
	parsed, err := doca.ParsePCIAddress(address)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(parsed, "0000:")
}

// ErrMovesNothing refuses a device that moves no bytes: without a digest the target would silently be a file of zeros.
var ErrMovesNothing error = exit.Errorf(exit.Usage, inventory.HintMoveBytes,
	"the software device is set to move no bytes, so nothing would be copied")
