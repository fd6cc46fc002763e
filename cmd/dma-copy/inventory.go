package main

import (
	"errors"
	"os"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// inventory is what the driver in use offers, as plain values. The JSON names are an interface: they stay, and new ones
// may come.
type inventory struct {
	Version int             `json:"version"` // of this form
	Driver  driverRecord    `json:"driver"`
	Devices []*deviceRecord `json:"devices"`
}

const inventoryVersion = 1

// What move_bytes=0 of the software device means for the user (docs/SOFTDEVICE.md).
const (
	noBytesMoved  = "NO BYTES ARE MOVED by this device: with move_bytes=0 every task succeeds without copying"
	hintMoveBytes = "remove move_bytes=0 from DMA_COPY_SOFT_LIMITS"
)

type driverRecord struct {
	Name             string   `json:"name"`
	Hardware         bool     `json:"hardware"`
	Version          string   `json:"version"`
	LibraryDirectory string   `json:"library_directory"` // empty for the software device
	LibraryFiles     []string `json:"library_files"`
	Reason           string   `json:"reason"`
	TimeModel        string   `json:"time_model,omitempty"`     // of the software device
	MovesNothing     bool     `json:"moves_no_bytes,omitempty"` // its copies succeed and do nothing
}

type deviceRecord struct {
	PCIAddress   string              `json:"pci_address"`
	RDMAName     string              `json:"rdma_name"`
	NetName      string              `json:"net_name"`
	FunctionType string              `json:"function_type"`                       // PF, VF, SF or empty
	SFIndex      *uint32             `json:"sf_index,omitempty"`                  // of an SF
	PortRate     uint64              `json:"port_rate_bits_per_second,omitempty"` // left out where unknown
	HostSide     bool                `json:"host_side"`
	DPUSide      bool                `json:"dpu_side"`
	Representors []representorRecord `json:"representors"`
	DMA          dmaRecord           `json:"dma"`
	Memory       memoryRecord        `json:"memory"`
	Comch        comchRecord         `json:"comch"`
	FastPath     fastPathRecord      `json:"fast_path"`
	Error        string              `json:"error"` // why part of it is unknown; empty if nothing is
}

type representorRecord struct {
	HostFunction string `json:"host_function"`
	FunctionType string `json:"function_type"` // PF, VF, SF or empty
	VUID         string `json:"vuid"`
}

type dmaRecord struct {
	CopySupported   bool   `json:"copy_supported"`
	MaxBytesPerTask uint64 `json:"max_bytes_per_task"`
	MaxTasks        int    `json:"max_tasks_in_flight"`       // 0: unknown
	MaxListLength   uint32 `json:"max_list_length,omitempty"` // buffers of a source; left out where unknown
}

type memoryRecord struct {
	ExportSupported bool `json:"export_supported"`
	ImportSupported bool `json:"import_supported"`
}

type comchRecord struct {
	MaxMessageBytes         uint32 `json:"max_message_bytes"`
	MaxReceiveQueueMessages uint32 `json:"max_receive_queue_messages"`
	MaxSendTasks            uint32 `json:"max_send_tasks"`
	MaxServerNameBytes      uint32 `json:"max_server_name_bytes"` // without the terminating zero
	MaxClients              uint32 `json:"max_clients,omitempty"` // of a server; left out where unknown
}

// fastPathRecord is what Comch's consumers and producers can do. What is unknown is left out.
type fastPathRecord struct {
	Consumers         portRecord `json:"consumers"`
	Producers         portRecord `json:"producers"`
	MaxImmediateBytes uint32     `json:"max_immediate_bytes,omitempty"` // of one message
}

type portRecord struct {
	Supported        bool   `json:"supported"`
	MaxPerConnection uint32 `json:"max_per_connection,omitempty"`
	MaxTasks         uint32 `json:"max_tasks_in_flight,omitempty"` // of one consumer or producer
	MaxMessageBytes  uint32 `json:"max_message_bytes,omitempty"`
	MaxListLength    uint32 `json:"max_list_length,omitempty"` // buffers of one message; 1: no lists
}

// lookThrough opens the driver that options choose for somebody who only looks: the software device gets a runtime
// directory of its own, which goes again, so that the one where copies meet is neither made nor tidied up.
func lookThrough(options doca.Options, look func(*doca.Driver) error) error {
	if dir, err := os.MkdirTemp("", "dma-copy-look-"); err == nil {
		options.SoftDir = dir
		defer os.RemoveAll(dir) // holds at most an empty lock
	}
	driver, err := doca.Open(options)
	if err != nil {
		return err
	}
	defer driver.Close()
	return look(driver)
}

// takeInventory asks the driver for everything. A device that cannot be opened is listed with the reason.
func takeInventory(driver *doca.Driver) (inventory, error) {
	infos, err := driver.Devices()
	if err != nil {
		return inventory{}, err
	}
	found := inventory{Version: inventoryVersion, Driver: recordDriver(driver), Devices: []*deviceRecord{}}
	for _, info := range infos {
		record := recordDevice(info)
		if err := record.addWhatTakesAnOpenDevice(driver, info.Name()); err != nil {
			record.Error = err.Error()
		}
		found.Devices = append(found.Devices, record)
	}
	return found, nil
}

func recordDriver(driver *doca.Driver) driverRecord {
	return driverRecord{
		Name: string(driver.Name()), Hardware: driver.Hardware(), Version: driver.Version(),
		LibraryDirectory: driver.LibraryDir(), LibraryFiles: append([]string{}, driver.LibraryFiles()...), Reason: driver.Reason(),
		TimeModel: driver.TimeModel(), MovesNothing: !driver.MovesBytes(),
	}
}

func recordDevice(info doca.DeviceInfo) *deviceRecord {
	record := &deviceRecord{
		PCIAddress: info.PCIAddress, RDMAName: info.IBName, NetName: info.Interface,
		FunctionType: info.Function, PortRate: info.ActiveRate,
		HostSide: info.ClientSupported, DPUSide: info.ServerSupported,
		Representors: []representorRecord{},
		DMA: dmaRecord{
			CopySupported: info.MemcpySupported, MaxBytesPerTask: info.MaxBufferSize, MaxListLength: info.MaxList,
		},
		Memory: memoryRecord{ExportSupported: info.ExportSupported, ImportSupported: info.ImportSupported},
		Comch: comchRecord{
			MaxMessageBytes: info.MaxMessage, MaxReceiveQueueMessages: info.MaxReceiveQueue,
			MaxSendTasks: info.MaxSends, MaxServerNameBytes: max(info.MaxServerNameSize, 1) - 1,
			MaxClients: info.MaxClients,
		},
		FastPath: fastPathRecord{
			Consumers: recordPort(info.Consumer), Producers: recordPort(info.Producer), MaxImmediateBytes: info.MaxImmediate,
		},
	}
	if info.IsSF() {
		record.SFIndex = &info.SFIndex
	}
	return record
}

func recordPort(caps doca.PortCapabilities) portRecord {
	return portRecord{
		Supported: caps.Supported, MaxPerConnection: caps.MaxPorts, MaxTasks: caps.MaxTasks,
		MaxMessageBytes: caps.MaxBuffer, MaxListLength: caps.MaxList,
	}
}

func (r *deviceRecord) addWhatTakesAnOpenDevice(driver *doca.Driver, name string) (err error) {
	device, err := driver.OpenDevice(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	return errors.Join(r.addDepth(device), r.addRepresentors(device))
}

func (r *deviceRecord) addDepth(device *doca.Device) (err error) {
	if r.DMA.CopySupported {
		r.DMA.MaxTasks, err = device.MaxDepth()
	}
	return err
}

func (r *deviceRecord) addRepresentors(device *doca.Device) error {
	infos, err := device.DescribeRepresentors()
	for _, info := range infos {
		r.Representors = append(r.Representors,
			representorRecord{HostFunction: info.PCIAddress, FunctionType: info.Function, VUID: info.VUID})
	}
	return err
}

// driverTitle names a driver with its release; the software device's release has its name in it.
func driverTitle(name string, hardware bool, version string) string {
	if name == config.DriverDOCA {
		version = "doca " + version
	}
	if hardware {
		return version + " (DMA engine)"
	}
	return version + " (software device, no hardware)"
}

// named reports whether somebody who gives this name with -p means the device.
func (r *deviceRecord) named(name string) bool {
	address, err := doca.ParsePCIAddress(name)
	return err == nil && address == r.PCIAddress || name == r.RDMAName || name == r.NetName
}
