package inventory

import (
	"maps"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/ucx"
)

// Network is what connections with other machines can use. JSON names are stable.
type Network struct {
	Version    int         `json:"v"`
	UCX        string      `json:"ucx_version"`
	Transports []Transport `json:"transports"`
	RDMAPorts  []RDMAPort  `json:"rdma_ports"`
}

// Transport is a transport of UCX on a device.
type Transport struct {
	Name   string `json:"name"`   // such as "tcp" or "rc_mlx5"
	Device string `json:"device"` // as --net-devices takes it, such as "eth0" or "mlx5_0:1"
	RDMA   bool   `json:"rdma"`   // --path rma uses it
}

// RDMAPort is a port of an RDMA device that the kernel knows, whether or not UCX can use it.
type RDMAPort struct {
	Name      string     `json:"name"`
	State     string     `json:"state"`
	Active    bool       `json:"active"`
	LinkLayer string     `json:"link_layer"`
	NetDevice string     `json:"net_device"` // empty: none
	GIDs      []GIDEntry `json:"gids"`
}

// GIDEntry is an entry of a port's GID table that is in use.
type GIDEntry struct {
	Index   int    `json:"index"` // as --gid-index takes it
	Address string `json:"address"`
	Type    string `json:"type"`
}

// TakeNetwork loads UCX and lists what it can use. It returns the errors of ucx.Open.
func TakeNetwork() (n Network, err error) {
	c, err := ucx.Open(ucx.Settings{})
	if err != nil {
		return n, err
	}
	defer func() {
		if closeErr := c.Close(); err == nil {
			err = closeErr
		}
	}()
	resources, err := c.Resources()
	if err != nil {
		return n, err
	}
	return NewNetwork(c.Version(), resources, ucx.RDMAPorts()), nil
}

// NewNetwork returns the inventory of these transports and ports.
func NewNetwork(version string, resources []ucx.Resource, ports []ucx.Port) Network {
	n := Network{Version: 1, UCX: version, Transports: []Transport{}, RDMAPorts: []RDMAPort{}}
	for _, r := range resources {
		n.Transports = append(n.Transports, Transport{Name: r.Transport, Device: r.Device, RDMA: r.RDMA()})
	}
	for _, p := range ports {
		port := RDMAPort{Name: p.Name(), State: p.State, Active: p.Active, LinkLayer: p.LinkLayer,
			NetDevice: p.NetDevice, GIDs: []GIDEntry{}}
		for _, index := range slices.Sorted(maps.Keys(p.GIDs)) {
			port.GIDs = append(port.GIDs, GIDEntry{index, p.GIDs[index].Address, p.GIDs[index].Type})
		}
		n.RDMAPorts = append(n.RDMAPorts, port)
	}
	return n
}

// HasRDMA reports whether UCX can use a device for remote memory access.
func (n Network) HasRDMA() bool {
	return slices.ContainsFunc(n.Transports, func(t Transport) bool { return t.RDMA })
}

// NetDevices returns the names that --net-devices can have: names of network devices, not of memory.
func (n Network) NetDevices() []string {
	var names []string
	for _, t := range n.Transports {
		network := t.RDMA || t.Name == "tcp"
		if network && !slices.Contains(names, t.Device) {
			names = append(names, t.Device)
		}
	}
	return names
}

// UnknownDevice returns the first of some names of --net-devices that UCX does not know, or "".
func (n Network) UnknownDevice(names []string) string {
	known := n.NetDevices()
	for _, name := range names {
		if !slices.ContainsFunc(known, func(device string) bool { return isNamed(device, name) }) {
			return name
		}
	}
	return ""
}

// Permitted returns what is on the devices that --net-devices names: all if there are no names.
func (n Network) Permitted(names []string) Network {
	if len(names) == 0 {
		return n
	}
	other := func(device string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return isNamed(device, name) })
	}
	n.Transports = slices.DeleteFunc(slices.Clone(n.Transports), func(t Transport) bool { return other(t.Device) })
	n.RDMAPorts = slices.DeleteFunc(slices.Clone(n.RDMAPorts), func(p RDMAPort) bool { return other(p.Name) })
	return n
}

// isNamed reports whether a name of --net-devices means a device: a port of an RDMA device may be given without its
// number.
func isNamed(device, name string) bool { return device == name || strings.HasPrefix(device, name+":") }
