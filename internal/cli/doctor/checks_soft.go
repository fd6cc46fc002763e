package doctor

import (
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
)

// The checks of the software device and of the peer.

// checkSoftDir judges the runtime directory by the rules of the software device, which refuses one that others can
// write to.
func checkSoftDir(dir doca.SoftDir, err error, user int) finding {
	const remedy = "name another directory with DMA_COPY_SOFT_DIR"
	switch {
	case err != nil:
		return fail(remedy, "runtime directory %s: %s", dir.Path, disk.Reason(err))
	case !dir.Exists:
		return ok("runtime directory %s does not exist yet; the first copy creates it", dir.Path)
	case !dir.Mode.IsDir():
		return fail(remedy, "runtime directory %s is not a directory", dir.Path)
	case !dir.Trusted:
		return fail("run both sides as one user, list the other in DMA_COPY_SOFT_USERS, or "+remedy,
			"runtime directory %s belongs to user %d, not to %d", dir.Path, dir.Owner, user)
	case dir.Mode.Perm()&0o022 != 0:
		return fail("chmod 700 "+dir.Path,
			"runtime directory %s can be written to by others (mode %04o)", dir.Path, dir.Mode.Perm())
	case dir.Owner != user:
		return ok("runtime directory %s (mode %04o, user %d)", dir.Path, dir.Mode.Perm(), dir.Owner)
	default:
		return ok("runtime directory %s (mode %04o)", dir.Path, dir.Mode.Perm())
	}
}

// checkPeer looks for the other side without connecting: a waiting dma-copy serves one session, and the connection
// would use it up. Servers of the software device are sockets; connecting to one without a HELLO has no effect.
func checkPeer(m machine, found inventory.Inventory, s Settings) finding {
	if found.Driver.Hardware {
		return warn("start the copy: it waits for the other side (--wait)",
			"peer: not checked on hardware, where a probe would use up the peer's waiting session")
	}
	device, problem := peerDevice(found.Devices, s)
	if device == nil {
		return problem
	}
	dir, err := m.softDir()
	if err != nil {
		return fail("fix the runtime directory first", "peer: %s", err)
	}
	if device.DPUSide {
		return checkServerIsFree(dir, device, s)
	}
	return checkServerIsThere(dir, device)
}

// peerDevice returns the device whose peer is looked for.
func peerDevice(devices []*inventory.Device, s Settings) (*inventory.Device, finding) {
	var infos []doca.DeviceInfo
	for _, d := range selected(devices, s.Device) {
		if s.Device != "" {
			return d, finding{}
		}
		infos = append(infos, d.Info())
	}
	if s.Device != "" {
		return nil, fail(`choose one that "dma-copy devices" lists`, "peer: device %s not found", s.Device)
	}
	name, err := inventory.ChooseDevice(infos, inventory.Selection{Device: s.Device, Representor: s.Representor})
	if err != nil {
		return nil, fail(inventory.HintNameDevice, "peer: %s",
			strings.TrimSuffix(err.Error(), ": "+inventory.HintNameDevice))
	}
	return peerDevice(devices, Settings{Device: name})
}

// checkServerIsThere looks for the DPU, on the host.
func checkServerIsThere(dir doca.SoftDir, device *inventory.Device) finding {
	host := device.Info()
	servers, err := dir.Servers(host.Name(), reference.ServerName)
	switch {
	case err != nil:
		return fail("", "peer: %s", err)
	case len(servers) > 0:
		return ok("peer: a DPU serves host function %[2]s on %[1]s", strings.Join(servers, ", "), host.Name())
	}
	representor := host.PCIAddress
	if host.IsSF() {
		representor = "REPRESENTOR" // its PCI address would name the PF
	}
	return fail("start it on the DPU: dma-copy -p DEVICE -r "+representor+" -f FILE",
		"peer: no DPU serves host function %s in %s", host.Name(), dir.Path).exitingWith(exit.Peer)
}

// checkServerIsFree checks on the DPU that no other process has the server name. A waiting host cannot be detected: it
// retries until a server answers.
func checkServerIsFree(dir doca.SoftDir, device *inventory.Device, s Settings) finding {
	if s.Representor == "" {
		return fail("name the host function with -r", "peer: on the DPU it depends on the host function that is served")
	}
	if !isRepresentor(device.Representors, s.Representor) {
		return fail("choose one of: "+orNone(namesOf(device.Representors)),
			"peer: %s does not represent host function %s", device.PCIAddress, s.Representor)
	}
	servers, err := dir.Servers(s.Representor, reference.ServerName)
	if err != nil {
		return fail("", "peer: %s", err)
	}
	for _, server := range servers {
		if server == device.PCIAddress {
			return fail("wait for it to end, or stop it", "peer: another process serves host function %s on %s already",
				s.Representor, server)
		}
	}
	return ok("peer: %s is free to serve host function %s; a waiting host cannot be detected",
		device.PCIAddress, s.Representor)
}

// checkTimeModel warns of a time model of the software device, and fails if that moves no bytes.
func checkTimeModel(driver inventory.Driver) []finding {
	var findings []finding
	if driver.TimeModel != "" {
		findings = append(findings,
			warn("unset DMA_COPY_SOFT_LIMITS, or remove the model from it, for the machine's own speed",
				"time model: tasks of the software device take the time of %s", driver.TimeModel))
	}
	if driver.MovesNothing {
		findings = append(findings, fail(inventory.HintMoveBytes, "%s", inventory.NoBytesMoved).exitingWith(exit.Usage))
	}
	return findings
}
