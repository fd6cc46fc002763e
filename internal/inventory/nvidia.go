package inventory

import (
	"io/fs"
	"path"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// vendorNVIDIA is the PCI vendor of NVIDIA's network devices, which were Mellanox's, as the kernel shows it.
const vendorNVIDIA = "0x15b3"

// IsNVIDIA reports whether a device of this machine has the name and is made by NVIDIA. The name is a PCI address, or
// belongs to an RDMA device or a net device. sys is what the kernel shows in /sys.
func IsNVIDIA(sys fs.FS, name string) bool {
	places := []string{path.Join("class/infiniband", name, "device"), path.Join("class/net", name, "device")}
	if address, err := doca.ParsePCIAddress(name); err == nil {
		places = []string{path.Join("bus/pci/devices", address)}
	}
	for _, place := range places {
		vendor, err := fs.ReadFile(sys, path.Join(place, "vendor"))
		if err == nil && strings.TrimSpace(string(vendor)) == vendorNVIDIA {
			return true
		}
	}
	return false
}
