// Package doctor checks the requirements of a copy on this machine and says how to meet them.
//
// A check judges what a machine, a value that tests can build, says about itself; each finding is one line with a fix.
// Nothing here changes anything, connects to a peer or moves data; package probe does, for results that are printed
// here.
package doctor

import (
	"errors"
	"io"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/probe"
)

// Run examines this machine, makes the probes unless they are nil, and prints what both have found. It returns an error
// if a check has failed or the device is not as assumed, and otherwise the error of the probes.
func Run(w io.Writer, s Settings, probes func() ([]probe.Result, error)) error {
	findings := examine(thisMachine(s), s)
	if probes == nil {
		return writeFindings(w, findings, nil, nil, s)
	}
	results, err := probes()
	return writeFindings(w, findings, results, err, s)
}

// examine runs every check, in the order in which problems are best fixed.
func examine(m machine, s Settings) []finding {
	switch {
	case s.Driver.Name == device.DriverUCX:
		return examineNetwork(m, s)
	case s.Listen.IsValid() && s.Device == "" && s.Representor == "":
		return append(examineListen(m, s), checkUser(m))
	case s.Listen.IsValid():
		return append(examineListen(m, s), examineDevices(m, s)...)
	default:
		return examineDevices(m, s)
	}
}

func examineDevices(m machine, s Settings) []finding {
	installed, installErr := m.installation()
	found, driverErr := m.inventory()
	findings := []finding{
		checkMode(m.root), checkInstall(installed, installErr, s), checkDriver(found.Driver, driverErr, installErr, s),
	}
	if driverErr == nil {
		findings = append(findings, checkTimeModel(found.Driver)...)
		findings = append(findings, checkDevices(found.Devices, s))
		findings = append(findings, checkEachDevice(selected(found.Devices, s.Device))...)
		findings = append(findings, checkRepresentors(found.Devices, s))
		if found.Driver.Hardware {
			findings = append(findings, checkMemlock(m, window.DefaultWindow,
				"enough for a DPU; a host locks the whole file"), checkVerbs(m))
		}
		findings = append(findings, checkPlacement(m, found, s)...)
	}
	findings = append(findings, checkUser(m))
	if s.Driver.Name != device.DriverDOCA && !found.Driver.Hardware && !errors.Is(driverErr, doca.ErrNoCgo) {
		dir, err := m.softDir()
		findings = append(findings, checkSoftDir(dir, err, m.user().id))
	}
	findings = append(findings, checkLeftovers(m))
	findings = append(findings, checkPartials(m)...)
	if s.Peer && !s.Probe && driverErr == nil {
		findings = append(findings, checkPeer(m, found, s))
	}
	return findings
}
