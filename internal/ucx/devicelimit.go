package ucx

import (
	"fmt"
	"net"
	"os"
	"slices"
)

const (
	// maxResources is how many transports and devices a context of UCX 1.13 has at most. With more, an assertion in it
	// ends the process.
	maxResources = 127

	// More than a machine has of transports within itself, and more than one RDMA port has.
	localResources = 7
	portResources  = 6
)

// checkDevices returns an ErrTooManyDevices if nobody has chosen network devices and there may be too many. The error
// says what to do. A host of containers has one for each of them.
func (s Settings) checkDevices() error {
	if _, chosen := os.LookupEnv("UCX_NET_DEVICES"); chosen || len(s.NetDevices) > 0 || s.local() {
		return nil
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil // UCX finds out by itself
	}
	active := 0
	for _, each := range interfaces {
		if each.Flags&net.FlagUp != 0 && hasAddress(each) {
			active++
		}
	}
	return checkResources(active, len(RDMAPorts()))
}

// hasAddress reports whether UCX uses an interface: an interface of a container on a bridge has no address.
func hasAddress(i net.Interface) bool {
	addresses, _ := i.Addrs()
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		network, is := a.(*net.IPNet)
		return is && !network.IP.IsLinkLocalUnicast()
	})
}

// local reports whether all transports are within the machine.
func (s Settings) local() bool {
	for _, transport := range s.Transports {
		if !slices.Contains([]string{"self", "posix", "sysv", "cma", "knem", "xpmem"}, transport) {
			return false
		}
	}
	return len(s.Transports) > 0
}

func checkResources(interfaces, ports int) error {
	if interfaces+portResources*ports+localResources <= maxResources {
		return nil
	}
	return fmt.Errorf("%w: %d network interfaces and %d RDMA ports (name those to use with --net-devices, or in "+
		"UCX_NET_DEVICES)", ErrTooManyDevices, interfaces, ports)
}
