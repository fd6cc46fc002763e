package doca

import (
	"errors"
	"fmt"
	"os"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
	"github.com/dma-copy/dma-copy/softdoca/device"
)

// Choice is the driver to open.
type Choice string

// The values of Choice.
const (
	ChooseAuto Choice = "auto" // DOCA if its libraries load and show a device, else the software device
	ChooseDOCA Choice = "doca"
	ChooseSoft Choice = "soft"
)

// Options select and configure a driver. The zero value is ChooseAuto with all defaults.
type Options struct {
	Choice          Choice
	RequireHardware bool   // refuse the software device
	LibraryDir      string // directory of DOCA's libraries; empty: the loader's path, then DOCA's install directories
	SoftDir         string // runtime directory of the software device; empty: DMA_COPY_SOFT_DIR or the default
	LogLevel        int    // of the driver's own messages on stderr, on DOCA's scale (10 to 70); 0: not requested
	SoftQuirks      string // "name,...": quirks of hardware; empty: DMA_COPY_SOFT_QUIRKS or none
	SoftFaults      string // "name=value,...": injected faults; empty: DMA_COPY_SOFT_FAULTS or none
	SoftFunctions   string // "vf,sf", or one of them, with the PFs; empty: DMA_COPY_SOFT_FUNCTIONS or none
	SoftLimits      string // "name=value,..."; empty: DMA_COPY_SOFT_LIMITS or BlueField's numbers
}

// Driver is an open device layer. It is safe for concurrent use.
type Driver struct {
	abi      cabi.ABI
	name     Choice
	reason   string
	fallback string
	dir      string
}

// Open opens the selected driver. It never falls back silently: Reason says why it is this one. Errors: *LoadError,
// *SoftError, ErrHardwareRequired, ErrNoCgo.
func Open(options Options) (*Driver, error) {
	driver, err := choose(options)
	if err != nil {
		return nil, err
	}
	if err := driver.accept(options); err != nil {
		driver.abi.Close()
		return nil, err
	}
	trackOpen(driver)
	return driver, nil
}

// accept checks the driver against the options and applies them.
func (d *Driver) accept(options Options) error {
	if options.RequireHardware && !d.Hardware() {
		return fmt.Errorf("%w, but %s", ErrHardwareRequired, d.reason)
	}
	if options.LogLevel == 0 {
		return nil
	}
	return d.abi.LogTo(int(os.Stderr.Fd()), options.LogLevel)
}

func choose(options Options) (*Driver, error) {
	switch options.Choice {
	case ChooseDOCA:
		return openDOCA(options, "DOCA was requested")
	case ChooseSoft:
		return openSoft(options, "the software device was requested")
	default:
		return openAuto(options)
	}
}

func openAuto(options Options) (*Driver, error) {
	driver, err := openDOCA(options, "DOCA's libraries are installed and find a device")
	if errors.Is(err, ErrNoCgo) {
		return nil, err
	}
	if err != nil {
		return fallBack(options, lowerFirst(err.Error()))
	}
	if devices, err := driver.Devices(); err == nil && len(devices) > 0 {
		return driver, nil
	}
	driver.abi.Close()
	return fallBack(options, "DOCA in "+driver.dir+" finds no device")
}

// fallBack opens the software device, because DOCA cannot be used.
func fallBack(options Options, cause string) (*Driver, error) {
	driver, err := openSoft(options, "the software device is used because "+cause)
	if err != nil {
		return nil, err
	}
	driver.fallback = cause
	return driver, nil
}

func openDOCA(options Options, reason string) (*Driver, error) {
	abi, dir, err := cabi.OpenVendor(options.LibraryDir)
	if err != nil {
		return nil, err
	}
	return &Driver{abi: abi, name: ChooseDOCA, reason: reason, dir: dir}, nil
}

func openSoft(options Options, reason string) (*Driver, error) {
	abi, err := cabi.OpenSoft(device.Settings{
		Dir: options.SoftDir, Limits: options.SoftLimits, Quirks: options.SoftQuirks, Faults: options.SoftFaults,
		Functions: options.SoftFunctions,
	})
	if errors.Is(err, ErrNoCgo) {
		return nil, err
	}
	if refused, is := errors.AsType[*cabi.Error](err); is {
		return nil, &SoftError{Reason: refused.Detail, NoProc: refused.Code == cabi.NotSupported}
	}
	if err != nil {
		return nil, &SoftError{Reason: err.Error()}
	}
	return &Driver{abi: abi, name: ChooseSoft, reason: reason}, nil
}

// lowerFirst makes a sentence fit after "because"; names such as DOCA keep their capitals.
func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'a' && s[1] <= 'z' {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}

// Name returns ChooseDOCA or ChooseSoft.
func (d *Driver) Name() Choice { return d.name }

// Hardware reports whether copies are made by a DMA engine. It is false with the development kit's libraries, which
// have DOCA's names and the software device behind them.
func (d *Driver) Hardware() bool { return d.abi.Hardware() }

// TimeModel describes, in one line, the time model of the software device; empty: none.
func (d *Driver) TimeModel() string {
	text, _ := d.abi.TimeModel()
	return text
}

// MovesBytes reports whether copies move bytes. It is false if the software device is configured to complete copies
// without them (move_bytes=0), which is for measuring.
func (d *Driver) MovesBytes() bool {
	_, moves := d.abi.TimeModel()
	return moves
}

// Reason returns why this driver was selected.
func (d *Driver) Reason() string { return d.reason }

// Fallback returns why ChooseAuto did not take DOCA: a cause, and after a colon the details. It is empty if the driver
// is DOCA, or was asked for.
func (d *Driver) Fallback() string { return d.fallback }

// Version returns the release of the loaded libraries. Implements: doca_version_runtime.
func (d *Driver) Version() string { return d.abi.Version() }

// Caution says, in one sentence, that the loaded libraries have a major version that this program does not know, and
// which releases it was tested for; empty: they have a known one, or none, as the software device.
func (d *Driver) Caution() string { return caution(d.abi) }

// LibraryDir returns the directory from which DOCA's libraries were loaded; empty for the software device.
func (d *Driver) LibraryDir() string { return d.dir }

// LibraryFiles returns the files of DOCA's libraries, with links resolved; none for the software device.
func (d *Driver) LibraryFiles() []string { return d.abi.Libraries() }

// Close unloads the driver. Everything opened from it must be closed. It never fails.
func (d *Driver) Close() error {
	if d.abi == nil {
		return nil
	}
	d.abi.Close()
	d.abi = nil
	trackClose(d)
	return nil
}
