// Package cabi calls DOCA: it is the boundary between Go and DOCA's functions, of either provider.
//
//	        package doca (Go)
//	               │  ABI: integers, opaque handles, C memory
//	┌──────────────▼───────────────────────────────────────┐
//	│ native.go      one method per DOCA call (calls.h)    │
//	│ engine.c       copies and completions in batches     │  provider-neutral C
//	│ channel.c      Comch callbacks turned into events    │
//	│ port*.c        consumers and producers, in batches   │
//	├───────────── struct doca_ops (abi/ops.h) ────────────┤  filled from one list: abi/doca_functions.def
//	│ vendor.c                 │ package device            │
//	│ DOCA's libraries, dlopen │ the software device       │
//	└──────────────────────────┴───────────────────────────┘
//
// The states of a context (ContextState); poll drives it from one to the next:
//
//	Idle ── start ──► Starting ── progress ──► Running ── stop, or a failure ──► Stopping ── progress ──► Idle
//
// Without cgo the package has the same interface, and its Open functions return abi.ErrNoCgo. Only
// package doca imports it. It must not log, keep policy or start goroutines.
package cabi

import "unsafe"

// Handles of DOCA's objects. They point to C memory, never to Go's.
type (
	Devinfo        unsafe.Pointer // struct doca_devinfo *
	DevinfoList    unsafe.Pointer // struct doca_devinfo **
	Dev            unsafe.Pointer // struct doca_dev *
	RepInfo        unsafe.Pointer // struct doca_devinfo_rep *
	RepInfoList    unsafe.Pointer // struct doca_devinfo_rep **
	Rep            unsafe.Pointer // struct doca_dev_rep *
	Mmap           unsafe.Pointer // struct doca_mmap *
	Progress       unsafe.Pointer // struct progress * (progress.h): the beginning of an engine, a channel or a port
	Engine         unsafe.Pointer // struct engine * (engine.h)
	Channel        unsafe.Pointer // struct channel * (channel.h)
	Connection     unsafe.Pointer // struct doca_comch_connection *
	Port           unsafe.Pointer // struct port * (port.h): a consumer or a producer
	Memory         unsafe.Pointer // start of a mapping
	ChannelMessage []byte         // bytes in the channel's arena, valid until its next poll
)

// Access is a set of doca_access_flag.
type Access uint32

// The permissions that a copy needs.
const (
	LocalReadOnly  Access = 0
	LocalReadWrite Access = 1 << 0
	PCIReadOnly    Access = 1 << 4
	PCIReadWrite   Access = 1 << 5
)

// ContextState is a doca_ctx_states.
type ContextState uint32

// The states of a DOCA context.
const (
	Idle ContextState = iota
	Starting
	Running
	Stopping
	UnknownState // DOCA does not tell
)

// Function is a doca_pci_func_type.
type Function uint32

// The kinds of PCI functions.
const (
	PhysicalFunction Function = iota
	VirtualFunction
	SubFunction
)

// Copy is one memcpy task: Len bytes from Source in SourceMap, and behind them the bytes of More further ranges, to
// Target in TargetMap. Addresses are in the address space of the memory's owner. It has the layout of struct
// engine_copy.
type Copy struct {
	SourceMap, TargetMap Mmap
	Source, Target       uint64
	Len                  uint64
	Tag                  uint64
	More                 uint64
}

// Range is a further range of the source of a Copy. It has the layout of struct engine_range.
type Range struct {
	Source uint64
	Len    uint64
}

// Completion is the result of the Copy with the same Tag. It has the layout of struct engine_completion.
type Completion struct {
	Tag    uint64
	Status Status
	_      int32
}

// EventKind is the kind of an Event (channel.h).
type EventKind uint32

// The events of a channel.
const (
	Connected EventKind = iota + 1 // unless Status is a failure: DOCA does not supply the connection
	Disconnected
	Message
	Sent
	StateChanged
	NewConsumer     // of the peer; its id is the tag
	ExpiredConsumer // likewise
)

// Event is one event of a channel. It has the layout of struct channel_event.
type Event struct {
	Kind       EventKind
	Status     Status
	Connection Connection
	Tag        uint64
	Offset     uint32
	Len        uint32
	State      ContextState
	_          uint32
}

// ChannelConfig describes a Comch server (Rep set) or client.
type ChannelConfig struct {
	Dev          Dev
	Rep          Rep
	Name         string
	MaxMessage   uint32 // bytes
	ReceiveQueue uint32 // messages
	Sends        uint32 // messages in flight
}

// PortTask is a buffer that a consumer posts for one message, or a message from a producer to the consumer To of the
// peer. ImmediateOffset is where its immediate data begins in the batch's immediate data. With Len 0 it has immediate
// data only. It has the layout of struct port_task.
type PortTask struct {
	Map             Mmap
	Address         uint64
	Len             uint64
	Tag             uint64
	To              uint32
	ImmediateOffset uint32
	ImmediateLen    uint32
	_               uint32
}

// PortCompletion is the result of a PortTask. It has the layout of struct port_completion.
type PortCompletion struct {
	Tag          uint64
	Len          uint64 // consumer: bytes received
	Status       Status
	Producer     uint32 // consumer: id of the sending producer
	ImmediateLen uint32 // consumer: bytes of PortImmediate
	_            uint32
}

// DevinfoCaps are the capabilities that a device reports before it is opened.
type DevinfoCaps struct {
	MemcpySupported   bool   // Implements: doca_dma_cap_task_memcpy_is_supported
	MaxBufferSize     uint64 // bytes per task. Implements: doca_dma_cap_task_memcpy_get_max_buf_size
	MaxList           uint32 // buffers of a source. Implements: doca_dma_cap_task_memcpy_get_max_buf_list_len
	ExportSupported   bool   // Implements: doca_mmap_cap_is_export_pci_supported
	ImportSupported   bool   // Implements: doca_mmap_cap_is_create_from_export_pci_supported
	ServerSupported   bool   // Implements: doca_comch_cap_server_is_supported
	ClientSupported   bool   // Implements: doca_comch_cap_client_is_supported
	MaxMessage        uint32 // bytes. Implements: doca_comch_cap_get_max_msg_size
	MaxReceiveQueue   uint32 // messages. Implements: doca_comch_cap_get_max_recv_queue_size
	MaxSends          uint32 // messages. Implements: doca_comch_cap_get_max_send_tasks
	MaxServerNameSize uint32 // bytes with the zero. Implements: doca_comch_cap_get_max_name_len
	MaxClients        uint32 // of one server. Implements: doca_comch_cap_get_max_clients
	ActiveRate        uint64 // bits per second of the port. Implements: doca_devinfo_get_active_rate
	Consumer          PortCaps
	Producer          PortCaps
	MaxImmediate      uint32 // bytes. Implements: doca_comch_consumer_cap_get_max_imm_data_len
}

// PortCaps are the capabilities of the consumers or the producers of a device. Implements:
// doca_comch_consumer_cap_is_supported, doca_comch_producer_cap_is_supported, and, for a field that names X,
// doca_comch_consumer_cap_X and doca_comch_producer_cap_X.
type PortCaps struct {
	Supported bool
	MaxTasks  uint32 // of one consumer or producer. X: get_max_num_tasks
	MaxBuffer uint32 // bytes of one message. X: get_max_buf_size
	MaxList   uint32 // buffers of one message; 1: no lists. X: get_max_buf_list_len
	MaxPorts  uint32 // per connection. X: get_max_consumers, get_max_producers
}

// ABI is DOCA's interface as this program uses it, implemented by either provider. Errors are *Error. Concurrency is as
// in DOCA: an engine or a channel and everything on it is used by one goroutine at a time; other methods are safe for
// concurrent use.
type ABI interface {
	// Version returns the release of the loaded libraries. Implements: doca_version_runtime.
	Version() string
	// Libraries returns the files of the loaded libraries, with links resolved; none for the software device.
	Libraries() []string

	// Soname returns the name under which libdoca_common was loaded, "libdoca_common.so.2"; empty for the software
	// device.
	Soname() string
	// Hardware reports whether the driver uses hardware: false for the software device, also behind the development
	// kit's libraries.
	Hardware() bool
	// TimeModel returns the software device's time model, empty without one, and reports whether bytes are moved; on
	// hardware they always are.
	TimeModel() (text string, movesBytes bool)
	// LastDetail returns the driver's explanation of its last failure beyond the code; often empty.
	LastDetail() string

	// LogTo makes the driver write its own messages to fd, from level (DOCA's scale, 10 to 70) on. A release without
	// the function writes none. Implements: doca_log_backend_create_with_fd_sdk, doca_log_level_set_global_sdk_limit.
	LogTo(fd, level int) error

	// DevinfoCreateList lists the devices. Implements: doca_devinfo_create_list.
	DevinfoCreateList() (DevinfoList, []Devinfo, error)
	// DevinfoDestroyList frees the list, not the devices opened from it. Implements: doca_devinfo_destroy_list.
	DevinfoDestroyList(DevinfoList)
	// DevinfoPCIAddress returns an address such as "0000:b1:00.0". Implements: doca_devinfo_get_pci_addr_str.
	DevinfoPCIAddress(Devinfo) (string, error)
	// DevinfoIBName returns the name of the RDMA device, or "". Implements: doca_devinfo_get_ibdev_name.
	DevinfoIBName(Devinfo) string
	// DevinfoInterface returns the name of the network interface, or "". Implements: doca_devinfo_get_iface_name.
	DevinfoInterface(Devinfo) string
	// DevinfoFunction returns the kind of function that the device is, and the index of an SF. known is false if the
	// release has no such function or it fails. Implements: doca_devinfo_get_pci_func_type, doca_devinfo_get_sf_index.
	DevinfoFunction(Devinfo) (kind Function, sfIndex uint32, known bool)
	// DevinfoCaps queries all capabilities; a query that fails counts as unsupported or zero.
	DevinfoCaps(Devinfo) DevinfoCaps

	// DevOpen implements: doca_dev_open.
	DevOpen(Devinfo) (Dev, error)
	// DevClose implements: doca_dev_close.
	DevClose(Dev) error
	// DevMaxTasks implements: doca_dma_cap_get_max_num_tasks, by means of a temporary context.
	DevMaxTasks(Dev) (uint32, error)

	// RepCreateList lists the network representors. Implements: doca_devinfo_rep_create_list.
	RepCreateList(Dev) (RepInfoList, []RepInfo, error)
	// RepDestroyList implements: doca_devinfo_rep_destroy_list.
	RepDestroyList(RepInfoList)
	// RepPCIAddress implements: doca_devinfo_rep_get_pci_addr_str.
	RepPCIAddress(RepInfo) (string, error)
	// RepVUID returns the unique name of the represented function, or "". Implements: doca_devinfo_rep_get_vuid.
	RepVUID(RepInfo) string
	// RepInterface returns the network device of the representor, or "", as before DOCA 2.6. Implements:
	// doca_devinfo_rep_get_iface_name.
	RepInterface(RepInfo) string
	// RepFunction returns the kind of the represented function. Implements: doca_devinfo_rep_get_pci_func_type.
	RepFunction(RepInfo) (Function, error)
	// RepOpen implements: doca_dev_rep_open.
	RepOpen(RepInfo) (Rep, error)
	// RepClose implements: doca_dev_rep_close.
	RepClose(Rep) error

	// MemoryAlloc maps len bytes of zeroed, page-aligned memory that can be exported.
	MemoryAlloc(len int) (Memory, error)
	// MemoryAllocPrivate maps memory that cannot be exported, in huge pages if possible.
	MemoryAllocPrivate(len int) (Memory, error)
	// MemoryMapFile maps the first len bytes of the file fd as shared memory.
	MemoryMapFile(fd uintptr, len int, writable bool) (Memory, error)
	// MemoryFree unmaps memory of any of these; it must not be registered.
	MemoryFree(memory Memory, len int)

	// MmapRegister creates a started memory map over local memory. Implements: doca_mmap_create,
	// doca_mmap_set_memrange, doca_mmap_add_dev, doca_mmap_set_permissions, doca_mmap_start.
	MmapRegister(dev Dev, memory Memory, len int, access Access) (Mmap, error)
	// MmapExport returns a copy of the export descriptor. Implements: doca_mmap_export_pci.
	MmapExport(Mmap, Dev) ([]byte, error)
	// MmapImport implements: doca_mmap_create_from_export.
	MmapImport(descriptor []byte, dev Dev) (Mmap, error)
	// MmapRange returns the exporter's address and length. Implements: doca_mmap_get_memrange.
	MmapRange(Mmap) (addr, len uint64, err error)
	// MmapDestroy implements: doca_mmap_destroy.
	MmapDestroy(Mmap) error

	// Handle returns the notification handle. Implements: doca_pe_get_notification_handle.
	Handle(Progress) int
	// Arm implements: doca_pe_request_notification.
	Arm(Progress) error
	// Clear implements: doca_pe_clear_notification.
	Clear(Progress) error
	// State implements: doca_ctx_get_state.
	State(Progress) ContextState
	// Stop requests the context of an engine or a port to stop; poll until it is idle. Implements: doca_ctx_stop.
	Stop(Progress) error

	// EngineOpen starts a DMA context for up to depth copies in flight, which together have up to sources ranges.
	EngineOpen(dev Dev, depth, sources uint32) (Engine, error)
	// EngineSubmit submits copies in order and returns how many were accepted. more has the further ranges of all of
	// them, in the same order. Implements: doca_buf_chain_list, or doca_buf_chain_list_tail if the release has it.
	EngineSubmit(e Engine, copies []Copy, more []Range) (int, error)
	// EnginePoll returns up to max completions, valid until the next poll. Implements: doca_pe_progress.
	EnginePoll(e Engine, max int) []Completion
	// EngineInflight returns the number of copies submitted and not completed.
	EngineInflight(Engine) int
	// EngineClose frees an idle engine; on failure it frees nothing.
	EngineClose(Engine) error

	// ChannelOpen creates a Comch server or client that is not started.
	ChannelOpen(ChannelConfig) (Channel, error)
	// ChannelStart implements: doca_ctx_start.
	ChannelStart(Channel) error
	// ChannelRefusal returns why a server refused the client since its start: Success if none did, and if the driver
	// does not tell, as DOCA does not.
	ChannelRefusal(Channel) Status
	// ChannelSend sends a copy of message; its completion is an event with the same tag.
	ChannelSend(c Channel, to Connection, message []byte, tag uint64) error
	// ChannelPoll returns new events, valid until the next poll. Implements: doca_pe_progress. An error means that
	// events were lost for lack of memory.
	ChannelPoll(c Channel, max int) ([]Event, error)
	// ChannelBytes returns the message of an event of the last poll.
	ChannelBytes(Channel, *Event) ChannelMessage
	// ChannelDisconnect implements: doca_comch_server_disconnect.
	ChannelDisconnect(Channel, Connection) error
	// ChannelStop is Stop for a channel.
	ChannelStop(Channel) error
	// ChannelClose frees an idle channel; on failure it frees nothing.
	ChannelClose(Channel) error

	// PortOpen creates a consumer over memory, or without memory a producer, and begins its start: poll a consumer, and
	// its channel, until its State is Running. PortOpen, Stop and PortClose must be called by the goroutine that
	// uses the channel. immediate: of a consumer. Implements: doca_comch_consumer_create,
	// doca_comch_consumer_set_imm_data_len, doca_comch_consumer_task_post_recv_set_conf, doca_comch_producer_create,
	// doca_comch_producer_task_send_set_conf.
	PortOpen(on Connection, memory Mmap, depth, immediate uint32) (Port, error)
	// PortSubmit submits tasks in order and returns how many were accepted. Again: the consumer of a producer's next
	// one has posted no buffer. immediate: of a producer. Implements: doca_comch_consumer_task_post_recv_alloc_init,
	// doca_comch_producer_task_send_alloc_init, doca_task_submit.
	PortSubmit(p Port, tasks []PortTask, immediate []byte) (int, error)
	// PortID implements: doca_comch_consumer_get_id, doca_comch_producer_get_id.
	PortID(Port) (uint32, error)
	// PortPoll returns up to max completions, valid until the next poll. Implements: doca_pe_progress.
	PortPoll(p Port, max int) []PortCompletion
	// PortImmediate returns the immediate data of completion i of the last poll. Implements:
	// doca_comch_consumer_task_post_recv_get_imm_data.
	PortImmediate(p Port, i int) []byte
	// PortInflight returns the number of tasks submitted and not completed.
	PortInflight(Port) int
	// PortClose frees an idle port; on failure it frees nothing. Implements: doca_comch_consumer_destroy,
	// doca_comch_producer_destroy.
	PortClose(Port) error

	// Close unloads the provider. Nothing of it may be in use.
	Close()
}
