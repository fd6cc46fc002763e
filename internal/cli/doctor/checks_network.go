package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// The checks of connections with other machines (--driver ucx, --listen).

// examineNetwork runs them in the order in which problems are best fixed. Without UCX, copies go over TLS all the same,
// but the user has asked for it.
func examineNetwork(m machine, s Settings) []finding {
	found, err := m.network()
	findings := []finding{checkUCX(found, err)}
	if err == nil {
		findings = append(findings, checkTransports(found), checkNetDevices(found, s.NetDevices), checkRDMA(found))
		permitted := found.Permitted(s.NetDevices)
		findings = append(findings, checkGID(permitted, s.Network), checkAcknowledgements(permitted, s),
			checkDeviceMemory(permitted, s.DeviceMemory))
		if permitted.HasRDMA() {
			findings = append(findings, checkMemlock(m, lockedByRDMA, ""), checkVerbs(m))
		}
	}
	return append(append(findings, examineListen(m, s)...), checkUser(m))
}

// examineListen runs the checks of what every connection with another machine needs, with or without UCX.
func examineListen(m machine, s Settings) []finding {
	findings := []finding{checkTrafficClass(s.TrafficClass), checkPacing(m.pacing())}
	if s.Listen.IsValid() {
		findings = append(findings, checkListen(m, s))
	}
	keys, err := m.keys()
	return append(findings, checkKeys(keys, err))
}

func checkUCX(found inventory.Network, err error) finding {
	if err != nil {
		return fail("", "UCX: %s; without it only the paths tls and tcp are possible", err)
	}
	return ok("UCX: release %s", found.UCX)
}

func checkTransports(found inventory.Network) finding {
	var names []string
	for _, t := range found.Transports {
		names = append(names, t.Name+"/"+t.Device)
	}
	if len(names) == 0 {
		return fail("check UCX_TLS and UCX_NET_DEVICES in the environment", "transports: UCX can use none")
	}
	return ok("transports: %s", strings.Join(names, ", "))
}

// checkNetDevices judges --net-devices.
func checkNetDevices(found inventory.Network, names []string) finding {
	known := found.NetDevices()
	if len(names) == 0 {
		return ok("network devices: any of %s", strings.Join(known, ", "))
	}
	if unknown := found.UnknownDevice(names); unknown != "" {
		return fail("give some of: "+strings.Join(known, ", "), "network devices: UCX knows no %s", quote.Bare(unknown))
	}
	return ok("network devices: %s", strings.Join(names, ", "))
}

// checkRDMA judges the ports of RDMA devices. A machine without any is not wrong.
func checkRDMA(found inventory.Network) finding {
	var active, idle []string
	for _, port := range found.RDMAPorts {
		if port.Active {
			active = append(active, port.Name)
			continue
		}
		idle = append(idle, fmt.Sprintf("%s (%s)", port.Name, strings.ToLower(port.State)))
	}
	switch {
	case len(found.RDMAPorts) == 0:
		return ok("RDMA devices: none; files are copied over TLS")
	case len(active) == 0:
		return warn("check the cable, the switch and ip link", "RDMA devices: no port is active: %s",
			strings.Join(idle, ", "))
	case !found.HasRDMA():
		return warn("install the device's user-space driver (ibverbs-providers) and UCX with its RDMA transports",
			"RDMA devices: %s, but UCX has no transport for them", strings.Join(active, ", "))
	default:
		return ok("RDMA devices: %s", strings.Join(append(active, idle...), ", "))
	}
}

// checkGID judges --gid-index for the ports that may be used.
func checkGID(found inventory.Network, s contact.Network) finding {
	if s.GIDIndex == nil {
		return ok("GID index: chosen by UCX")
	}
	var has []string
	for _, port := range found.RDMAPorts {
		for _, gid := range port.GIDs {
			if gid.Index == *s.GIDIndex {
				has = append(has, fmt.Sprintf("%s has %s (%s)", port.Name, gid.Address, gid.Type))
			}
		}
	}
	if len(has) == 0 {
		return fail("choose one that dma-copy devices --driver ucx lists",
			"GID index: no port has an entry %d in its GID table", *s.GIDIndex)
	}
	return ok("GID index: %d: %s", *s.GIDIndex, strings.Join(has, ", "))
}

// checkAcknowledgements judges --ack-timeout and --ack-retries: an RDMA device that gives up after the idle timeout
// leaves a copy that ends without the device's reason.
func checkAcknowledgements(found inventory.Network, s Settings) finding {
	derived := s.AckTimeout == 0 && s.AckRetries == 0
	switch {
	case found.HasRDMA():
	case derived:
		return ok("acknowledgements: left to TCP without RDMA devices")
	default:
		return warn("leave --ack-timeout and --ack-retries out",
			"acknowledgements: without RDMA devices, these settings have no effect")
	}
	timeout, retries := ucx.AckFor(s.IdleTimeout)
	timeout, retries = cmp.Or(s.AckTimeout, timeout), cmp.Or(s.AckRetries, retries)
	what := fmt.Sprintf("acknowledgements: an RDMA device sends again after %s, %s", timeout,
		quantity.Count(retries, "time"))
	limit := ucx.AckLimit(timeout, retries)
	switch {
	case limit > s.IdleTimeout:
		return warn("lower them, or raise --idle-timeout", "%s, and so may give up as late as %s, after "+
			"--idle-timeout %s", what, limit, s.IdleTimeout)
	case derived:
		return ok("%s, as follows from --idle-timeout %s", what, s.IdleTimeout)
	default:
		return ok("%s", what)
	}
}

// checkDeviceMemory judges --device-memory, which only some transports of UCX have a use for.
func checkDeviceMemory(found inventory.Network, size int64) finding {
	if size == 0 {
		return ok("device memory: chosen by UCX")
	}
	var users []string
	for _, t := range found.Transports {
		if t.RDMA && strings.HasSuffix(t.Name, "_mlx5") {
			users = append(users, t.Name+"/"+t.Device)
		}
	}
	if len(users) == 0 {
		return warn("leave --device-memory out",
			"device memory: no transport here uses it; those for ConnectX-5 and newer do")
	}
	return ok("device memory: %s for each buffer of %s", quantity.Bytes(uint64(size)), strings.Join(users, ", "))
}

// lockedByRDMA is what a copy over RDMA locks at most, in bytes: a window, buffers of that size, and a worker for each
// lane.
const lockedByRDMA = 2*window.DefaultWindow + role.MaxLanes*ucx.WorkerMemoryRDMA

// The parts of a ToS byte.
const (
	ecnBits   = 0b11
	dscpShift = 2
)

func checkTrafficClass(class int) finding {
	switch {
	case class == 0:
		return ok("traffic class: the default of the system")
	case class&ecnBits != 0:
		return warn("give a multiple of 4", "traffic class: %d has the bits of ECN set, which congestion control uses",
			class)
	default:
		return ok("traffic class: %d, which is the DSCP %d", class, class>>dscpShift)
	}
}

// checkPacing judges whether the kernel can pace connections, which a copy with --bwlimit asks for.
func checkPacing(err error) finding {
	if err != nil {
		return fail("leave --bwlimit out", "pacing: the kernel cannot limit the rate of a TCP connection: %s", err)
	}
	return ok("pacing: the kernel can limit the rate of a TCP connection, for --bwlimit")
}

func checkListen(m machine, s Settings) finding {
	if owner, taken := m.listener(s.Listen); taken {
		return fail("stop it, or choose another port", "port: %s is in use by %s", s.Listen, owner)
	}
	return ok("port: %s is free", s.Listen)
}

// keys is what a check needs to know of the keys of this machine.
type keys struct {
	path    string
	own     error // of reading this side's key; nil: there is one
	trusted int
	refused []error // for these files no key is trusted
}

func checkKeys(k keys, err error) finding {
	switch {
	case err != nil:
		return fail("choose another directory with --keys", "keys: %s", err).exitingWith(exit.Usage)
	case errors.Is(k.own, identity.ErrNoKey):
		return fail("run dma-copy keys new", "keys: none in %s", quote.Bare(k.path)).exitingWith(exit.Usage)
	case k.own != nil:
		return fail("", "keys: %s", k.own).exitingWith(exit.Refused)
	case len(k.refused) > 0:
		return warn("", "keys: a trusted key is not used: %s", errors.Join(k.refused...))
	case k.trusted == 0:
		return warn("run dma-copy keys trust with the key of the other machine", "keys: no key is trusted in %s",
			quote.Bare(k.path))
	default:
		return ok("keys: this machine's own, and %s, in %s", quantity.Count(k.trusted, "trusted one"),
			quote.Bare(k.path))
	}
}

// readKeys reads the keys in a directory, or in the default one if the path is empty.
func readKeys(path string, user int, variable func(string) string) (keys, error) {
	if path == "" {
		var err error
		if path, err = identity.DefaultDirectory(user, variable); err != nil {
			return keys{}, err
		}
	}
	store, err := identity.OpenStore(path)
	if err != nil {
		return keys{}, err
	}
	k := keys{path: store.Path()}
	_, k.own = store.Key()
	trusted, err := store.Load()
	if err != nil {
		return k, err
	}
	k.trusted, k.refused = len(trusted.All()), trusted.Refused()
	return k, nil
}
