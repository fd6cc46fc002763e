package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/placement"
)

// checkPlacement reports on which CPUs a copy would run, unless the system decides. Devices with the same result share
// a line.
func checkPlacement(m machine, found inventory.Inventory, s Settings) []finding {
	if err := device.ValidatePlacement(s.Placement); err != nil {
		return []finding{failPlacement(err)}
	}
	var decisions []placement.Decision
	devices := map[placement.Decision][]string{}
	for _, address := range nearAddresses(found, s) {
		decision, err := placement.Choose(m.placement, s.Placement, address)
		if err != nil {
			return []finding{failPlacement(err)}
		}
		if !slices.Contains(decisions, decision) {
			decisions = append(decisions, decision)
		}
		devices[decision] = append(devices[decision], address)
	}
	var findings []finding
	for _, decision := range decisions {
		findings = append(findings, describePlacement(decision, devices[decision], s)...)
	}
	return findings
}

// nearAddresses lists the addresses for which the CPUs of a copy are decided separately.
func nearAddresses(found inventory.Inventory, s Settings) []string {
	if !s.Placement.IsAuto() || !found.Driver.Hardware {
		return []string{placement.NearAddress(false, "")}
	}
	var addresses []string
	for _, d := range selected(found.Devices, s.Device) {
		addresses = append(addresses, placement.NearAddress(true, d.PCIAddress))
	}
	return addresses
}

// failPlacement is a failure only if a copy would be refused, too.
func failPlacement(err error) finding {
	if _, is := errors.AsType[*exit.Error](err); is {
		return fail("", "placement: %s", err).exitingWith(exit.Usage) // the message has the fix
	}
	return warn("", "placement: %s", err)
}

// describePlacement returns nothing for a device on no NUMA node, or if there is one node only.
func describePlacement(decision placement.Decision, devices []string, s Settings) []finding {
	on := fmt.Sprintf("%s on NUMA node %d", strings.Join(devices, ", "), decision.Node)
	switch {
	case decision.CPUs.Empty() && decision.HasNode():
		return []finding{warn("allow some of them (cpuset, taskset): copies work without, but slower",
			"placement: %s, but this process may not use any of its CPUs", on)}
	case decision.CPUs.Empty():
		return nil
	case s.Placement.IsAuto():
		return []finding{ok("placement: %s; a copy runs on its CPUs %s", on, decision.CPUs)}
	default:
		return []finding{ok("placement: a copy runs on CPUs %s, because of %s", decision.CPUs, s.Placement.Flag())}
	}
}
