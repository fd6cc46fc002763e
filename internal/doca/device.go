package doca

import (
	"cmp"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// DeviceInfo describes a device that can be opened.
type DeviceInfo struct {
	PCIAddress string // "0000:b1:00.1"; an SF has its PF's address
	IBName     string // RDMA device, may be empty
	Interface  string // network interface, may be empty
	Function   string // "PF", "VF" or "SF"; empty: unknown, as before DOCA 3.1
	SFIndex    uint32 // of an SF: N of its auxiliary device mlx5_core.sf.N, which is not always its SF number
	Capabilities
}

// Capabilities are what a device can do. Sizes are in bytes, queues in messages, rates in bits per second; zero means
// unknown or unsupported.
type Capabilities = cabi.DevinfoCaps

// PortCapabilities are what the consumers or the producers of a device can do; zero means unknown.
type PortCapabilities = cabi.PortCaps

// IsHost reports whether the device is a host function, which can be a Comch client and not a server.
func (i DeviceInfo) IsHost() bool { return i.ClientSupported && !i.ServerSupported }

// IsDPU reports whether the device is a function of the DPU, which can be a Comch server.
func (i DeviceInfo) IsDPU() bool { return i.ServerSupported }

// Name returns the name by which OpenDevice opens this device and no other: its PCI address, or the RDMA device of an
// SF, which shares the PCI address of its PF.
func (i DeviceInfo) Name() string {
	if i.IsSF() && i.IBName != "" {
		return i.IBName
	}
	return i.PCIAddress
}

// IsSF reports whether the device is known to be an SF.
func (i DeviceInfo) IsSF() bool { return i.Function == functionNames[cabi.SubFunction] }

// Named reports whether this is one of the names of the device: its PCI address in either form, its RDMA device or its
// network device.
func (i DeviceInfo) Named(name string) bool {
	long, err := longName(name)
	return err == nil && long != "" && (long == i.PCIAddress || long == i.IBName || long == i.Interface)
}

// Device is an open device. It is safe for concurrent use.
type Device struct {
	driver *Driver
	abi    cabi.ABI
	dev    cabi.Dev
	info   DeviceInfo
}

// Devices lists the devices, SFs last. Implements: doca_devinfo_create_list.
func (d *Driver) Devices() ([]DeviceInfo, error) {
	var infos []DeviceInfo
	err := d.withDevices(func(all []listed[cabi.Devinfo, DeviceInfo]) (err error) {
		for _, device := range all {
			infos, err = append(infos, device.info), cmp.Or(err, device.err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return infos, nil
}

// withDevices calls use with all devices.
func (d *Driver) withDevices(use func([]listed[cabi.Devinfo, DeviceInfo]) error) error {
	if d.abi == nil {
		return ErrClosed
	}
	list, devinfos, err := d.abi.DevinfoCreateList()
	if err != nil {
		return err
	}
	defer d.abi.DevinfoDestroyList(list)
	return use(describeAll(devinfos, d.describe))
}

func (d *Driver) describe(devinfo cabi.Devinfo) (DeviceInfo, error) {
	address, err := d.abi.DevinfoPCIAddress(devinfo)
	info := DeviceInfo{
		PCIAddress:   address,
		IBName:       d.abi.DevinfoIBName(devinfo),
		Interface:    d.abi.DevinfoInterface(devinfo),
		Capabilities: d.abi.DevinfoCaps(devinfo),
	}
	if kind, index, known := d.abi.DevinfoFunction(devinfo); known {
		info.Function, info.SFIndex = functionNames[kind], index
	}
	return info, err
}

// OpenDevice opens the device with a PCI address in either form, or the name of its RDMA or network device. A PCI
// address that a PF shares with SFs opens the PF. A device whose PCI address cannot be read is skipped; its error is
// returned if no other device has the name. Errors: ErrBadAddress, *NotFoundError, *Error. Implements: doca_dev_open.
func (d *Driver) OpenDevice(name string) (*Device, error) {
	var device *Device
	err := d.withDevices(func(all []listed[cabi.Devinfo, DeviceInfo]) error {
		found, err := find(all, "device", name)
		if err != nil {
			return err
		}
		dev, err := d.abi.DevOpen(found.handle)
		device = &Device{driver: d, abi: d.abi, dev: dev, info: found.info}
		return err
	})
	if err != nil {
		return nil, err
	}
	trackOpen(device)
	return device, nil
}

// Info returns a description of the device.
func (d *Device) Info() DeviceInfo { return d.info }

// Offloaded reports whether copies are the work of another processor, as copies of hardware are, or take the time of
// one: then they neither need this process's caches nor benefit from them.
func (d *Device) Offloaded() bool {
	model, _ := d.abi.TimeModel()
	return d.abi.Hardware() || model != ""
}

// MaxDepth returns the maximum number of copies in flight of one Engine. Implements: doca_dma_cap_get_max_num_tasks.
func (d *Device) MaxDepth() (int, error) {
	if d.dev == nil {
		return 0, ErrClosed
	}
	depth, err := d.abi.DevMaxTasks(d.dev)
	return int(depth), err
}

// Close closes the device. CodeInUse while something opened from it is open. Implements: doca_dev_close.
func (d *Device) Close() error {
	if d.dev == nil {
		return nil
	}
	if err := d.abi.DevClose(d.dev); err != nil {
		return err
	}
	d.dev = nil
	trackClose(d)
	return nil
}
