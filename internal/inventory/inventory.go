// Package inventory describes the driver in use and its devices as plain values, and chooses the device of a copy.
//
// The JSON names of its types are an interface for other programs: they stay, and new ones may be added. It opens
// devices only to ask for their capabilities; it judges nothing (package doctor does) and copies nothing.
package inventory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// Inventory describes the driver and its devices.
type Inventory struct {
	Version int       `json:"v"`
	Driver  Driver    `json:"driver"`
	Devices []*Device `json:"devices"`
}

const version = 1

// The meaning of move_bytes=0 of the software device for the user (softdoca/docs/SOFTDEVICE.md).
const (
	NoBytesMoved  = "NO BYTES ARE MOVED by this device: with move_bytes=0 every task succeeds without copying"
	HintMoveBytes = "remove move_bytes=0 from DMA_COPY_SOFT_LIMITS"
)

// Driver describes the driver in use.
type Driver struct {
	Name             string   `json:"name"`
	Hardware         bool     `json:"hardware"`
	Version          string   `json:"version"`
	LibraryDirectory string   `json:"library_directory"` // empty for the software device
	LibraryFiles     []string `json:"library_files"`
	Reason           string   `json:"reason"`
	TimeModel        string   `json:"time_model,omitempty"`     // of the software device
	MovesNothing     bool     `json:"moves_no_bytes,omitempty"` // its copies succeed and move nothing
}

// Device describes one device of the driver.
type Device struct {
	PCIAddress   string        `json:"pci_address"`
	RDMAName     string        `json:"rdma_name"`
	NetName      string        `json:"net_name"`
	FunctionType string        `json:"function_type"`                       // PF, VF, SF or empty
	SFIndex      *uint32       `json:"sf_index,omitempty"`                  // of an SF
	PortRate     uint64        `json:"port_rate_bits_per_second,omitempty"` // left out where unknown
	HostSide     bool          `json:"host_side"`
	DPUSide      bool          `json:"dpu_side"`
	Representors []Representor `json:"representors"`
	DMA          DMA           `json:"dma"`
	Memory       Memory        `json:"memory"`
	Comch        Comch         `json:"comch"`
	FastPath     FastPath      `json:"fast_path"`
	Error        string        `json:"error"` // why part of it is unknown; empty if nothing is
}

// Representor describes the representor of a host function on the DPU.
type Representor struct {
	HostFunction string `json:"host_function"`
	FunctionType string `json:"function_type"` // PF, VF, SF or empty
	VUID         string `json:"vuid"`
	NetName      string `json:"net_name"` // network device on the DPU; empty: unknown
}

// Info returns the representor as the device layer describes it.
func (r Representor) Info() doca.RepresentorInfo {
	return doca.RepresentorInfo{
		PCIAddress: r.HostFunction, Function: r.FunctionType, VUID: r.VUID, Interface: r.NetName,
	}
}

// DMA describes the DMA engine of a device.
type DMA struct {
	CopySupported   bool   `json:"copy_supported"`
	MaxBytesPerTask uint64 `json:"max_bytes_per_task"`
	MaxTasks        int    `json:"max_tasks_in_flight"`       // 0: unknown
	MaxListLength   uint32 `json:"max_list_length,omitempty"` // buffers of a source; left out where unknown
}

// Memory describes what can be done with memory on a device.
type Memory struct {
	ExportSupported bool `json:"export_supported"`
	ImportSupported bool `json:"import_supported"`
}

// Comch describes the control channel of a device.
type Comch struct {
	MaxMessageBytes         uint32 `json:"max_message_bytes"`
	MaxReceiveQueueMessages uint32 `json:"max_receive_queue_messages"`
	MaxSendTasks            uint32 `json:"max_send_tasks"`
	MaxServerNameBytes      uint32 `json:"max_server_name_bytes"` // without the terminating zero
	MaxClients              uint32 `json:"max_clients,omitempty"` // of a server; left out where unknown
}

// FastPath describes Comch's consumers and producers. Unknown values are left out.
type FastPath struct {
	Consumers         Port   `json:"consumers"`
	Producers         Port   `json:"producers"`
	MaxImmediateBytes uint32 `json:"max_immediate_bytes,omitempty"` // of one message
}

// Port describes a consumer or producer.
type Port struct {
	Supported        bool   `json:"supported"`
	MaxPerConnection uint32 `json:"max_per_connection,omitempty"`
	MaxTasks         uint32 `json:"max_tasks_in_flight,omitempty"` // of one consumer or producer
	MaxMessageBytes  uint32 `json:"max_message_bytes,omitempty"`
	MaxListLength    uint32 `json:"max_list_length,omitempty"` // buffers of one message; 1: no lists
}

// Look opens the driver that options choose and calls look with it. The software device gets a temporary runtime
// directory, so that the one in which copies meet is neither created nor cleaned up.
func Look(options doca.Options, look func(*doca.Driver) error) error {
	if dir, err := os.MkdirTemp("", "dma-copy-look-"); err == nil {
		options.SoftDir = dir
		defer os.RemoveAll(dir) // contains at most an empty lock file
	}
	driver, err := doca.Open(options)
	if err != nil {
		return err
	}
	defer driver.Close()
	return look(driver)
}

// Take asks the driver for all of the inventory. A device that cannot be opened is listed with the reason.
func Take(driver *doca.Driver) (Inventory, error) {
	infos, err := driver.Devices()
	if err != nil {
		return Inventory{}, err
	}
	found := Inventory{Version: version, Driver: recordDriver(driver), Devices: []*Device{}}
	for _, info := range infos {
		record := recordDevice(info)
		if err := record.addWhatTakesAnOpenDevice(driver, info.Name()); err != nil {
			record.Error = err.Error()
		}
		found.Devices = append(found.Devices, record)
	}
	return found, nil
}

func recordDriver(driver *doca.Driver) Driver {
	return Driver{
		Name: string(driver.Name()), Hardware: driver.Hardware(), Version: driver.Version(),
		LibraryDirectory: driver.LibraryDir(), LibraryFiles: append([]string{}, driver.LibraryFiles()...),
		Reason: driver.Reason(), TimeModel: driver.TimeModel(), MovesNothing: !driver.MovesBytes(),
	}
}

func recordDevice(info doca.DeviceInfo) *Device {
	record := &Device{
		PCIAddress: info.PCIAddress, RDMAName: info.IBName, NetName: info.Interface,
		FunctionType: info.Function, PortRate: info.ActiveRate,
		HostSide: info.ClientSupported, DPUSide: info.ServerSupported,
		Representors: []Representor{},
		DMA: DMA{
			CopySupported: info.MemcpySupported, MaxBytesPerTask: info.MaxBufferSize, MaxListLength: info.MaxList,
		},
		Memory: Memory{ExportSupported: info.ExportSupported, ImportSupported: info.ImportSupported},
		Comch: Comch{
			MaxMessageBytes: info.MaxMessage, MaxReceiveQueueMessages: info.MaxReceiveQueue,
			MaxSendTasks: info.MaxSends, MaxServerNameBytes: max(info.MaxServerNameSize, 1) - 1,
			MaxClients: info.MaxClients,
		},
		FastPath: FastPath{
			Consumers: recordPort(info.Consumer), Producers: recordPort(info.Producer),
			MaxImmediateBytes: info.MaxImmediate,
		},
	}
	if info.IsSF() {
		record.SFIndex = &info.SFIndex
	}
	return record
}

func recordPort(caps doca.PortCapabilities) Port {
	return Port{
		Supported: caps.Supported, MaxPerConnection: caps.MaxPorts, MaxTasks: caps.MaxTasks,
		MaxMessageBytes: caps.MaxBuffer, MaxListLength: caps.MaxList,
	}
}

func (r *Device) addWhatTakesAnOpenDevice(driver *doca.Driver, name string) (err error) {
	device, err := driver.OpenDevice(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	return errors.Join(r.addDepth(device), r.addRepresentors(device))
}

func (r *Device) addDepth(device *doca.Device) (err error) {
	if r.DMA.CopySupported {
		r.DMA.MaxTasks, err = device.MaxDepth()
	}
	return err
}

func (r *Device) addRepresentors(device *doca.Device) error {
	infos, err := device.DescribeRepresentors()
	for _, info := range infos {
		r.Representors = append(r.Representors, Representor{
			HostFunction: info.PCIAddress, FunctionType: info.Function, VUID: info.VUID, NetName: info.Interface,
		})
	}
	return err
}

// Info returns what of the description selects a device and its data path, as the device layer describes it.
func (r *Device) Info() doca.DeviceInfo {
	return doca.DeviceInfo{
		PCIAddress: r.PCIAddress, IBName: r.RDMAName, Interface: r.NetName, Function: r.FunctionType,
		Capabilities: doca.Capabilities{
			ClientSupported: r.HostSide, ServerSupported: r.DPUSide, MemcpySupported: r.DMA.CopySupported,
			ExportSupported: r.Memory.ExportSupported, ImportSupported: r.Memory.ImportSupported,
			Consumer: r.FastPath.Consumers.capabilities(), Producer: r.FastPath.Producers.capabilities(),
			MaxImmediate: r.FastPath.MaxImmediateBytes,
		},
	}
}

func (p Port) capabilities() doca.PortCapabilities {
	return doca.PortCapabilities{Supported: p.Supported, MaxBuffer: p.MaxMessageBytes}
}

// DriverTitle returns the name of a driver with its version; the version of the software device contains its name.
func DriverTitle(name string, hardware bool, version string) string {
	if name == string(doca.ChooseDOCA) {
		version = "doca " + version
	}
	if hardware {
		return version + " (DMA engine)"
	}
	return version + " (software device, no hardware)"
}

// Named reports whether the device has this name: its PCI address in any form, its RDMA or its net device name.
func (r *Device) Named(name string) bool {
	address, err := doca.ParsePCIAddress(name)
	return err == nil && address == r.PCIAddress || name == r.RDMAName || name == r.NetName
}

// Libraries returns the directory of DOCA's libraries with the names of their files.
func Libraries(directory string, files []string) string {
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	return directory + ": " + strings.Join(names, ", ")
}

// Sides returns the sides that a device can be on, for messages.
func Sides(d *Device) string {
	switch {
	case d.HostSide && d.DPUSide:
		return "the host side or the DPU side"
	case d.HostSide:
		return "the host side"
	case d.DPUSide:
		return "the DPU side"
	default:
		return "neither side: it has no control channel"
	}
}
