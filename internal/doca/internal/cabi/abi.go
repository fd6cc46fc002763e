// Package cabi calls DOCA: the boundary between Go and its functions, whoever provides them.
//
//	        package doca (Go)
//	               │  ABI: integers, opaque handles, C memory
//	┌──────────────▼───────────────────────────────────────┐
//	│ native.go      one method per DOCA call (calls.h)    │
//	│ engine.c       copies and completions in batches     │  provider-neutral C
//	│ channel.c      Comch callbacks turned into events    │
//	│ port*.c        consumers and producers, in batches   │
//	├───────────── struct doca_ops (abi/ops.h) ────────────┤  filled from one list: abi/doca_functions.def
//	│ vendor.c                 │ package softdev           │
//	│ DOCA's libraries, dlopen │ the software device       │
//	└──────────────────────────┴───────────────────────────┘
//
// Without cgo the package compiles to the same interface and an Open that says so.
package cabi

import "unsafe"

// Handles of DOCA's objects. They are C memory, never Go's.
type (
	Devinfo        unsafe.Pointer // struct doca_devinfo *
	DevinfoList    unsafe.Pointer // struct doca_devinfo **
	Dev            unsafe.Pointer // struct doca_dev *
	RepInfo        unsafe.Pointer // struct doca_devinfo_rep *
	RepInfoList    unsafe.Pointer // struct doca_devinfo_rep **
	Rep            unsafe.Pointer // struct doca_dev_rep *
	Mmap           unsafe.Pointer // struct doca_mmap *
	Engine         unsafe.Pointer // struct engine * (engine.h)
	Channel        unsafe.Pointer // struct channel * (channel.h)
	Connection     unsafe.Pointer // struct doca_comch_connection *
	Port           unsafe.Pointer // struct port * (port.h): a consumer or a producer
	Memory         unsafe.Pointer // start of a mapping
	ChannelMessage []byte         // bytes in the channel's arena, valid until its next poll
)

// Access is a set of doca_access_flag. Source: doca_types.h.
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

// Copy is one memcpy task: Len bytes from Source in SourceMap to Target in TargetMap. Addresses are those of the memory's
// owner. The layout is that of struct engine_copy.
type Copy struct {
	SourceMap, TargetMap Mmap
	Source, Target       uint64
	Len                  uint64
	Tag                  uint64
}

// Completion is the end of the Copy with the same Tag. The layout is that of struct engine_completion.
type Completion struct {
	Tag    uint64
	Status Status
	_      int32
}

// EventKind tells the events of a channel apart (channel.h).
type EventKind uint32

// The events of a channel.
const (
	Connected EventKind = iota + 1 // unless Status says that DOCA does not give the connection
	Disconnected
	Message
	Sent
	StateChanged
	NewConsumer     // the peer's; its id is the tag
	ExpiredConsumer // likewise
)

// Event is one thing that happened to a channel. The layout is that of struct channel_event.
type Event struct {
	Kind       EventKind
	Status     Status
	Connection Connection
	Tag        uint64
	Offset     uint32
	Len        uint32
	Previous   ContextState
	State      ContextState
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

// Receive is room for one message, at Address in the consumer's memory; Len 0 takes immediate data only. The layout is
// that of struct port_receive.
type Receive struct {
	Address uint64
	Len     uint64
	Tag     uint64
}

// PortMessage goes from a producer to the consumer To of the peer. Its immediate data lies at ImmediateOffset of the bytes
// that come with the batch. The layout is that of struct port_message.
type PortMessage struct {
	Map             Mmap
	Address         uint64
	Len             uint64
	Tag             uint64
	To              uint32
	ImmediateOffset uint32
	ImmediateLen    uint32
	_               uint32
}

// PortCompletion is the end of a Receive or a PortMessage. The layout is that of struct port_completion.
type PortCompletion struct {
	Tag          uint64
	Len          uint64 // consumer: bytes received
	Status       Status
	Producer     uint32 // consumer: who sent it
	ImmediateLen uint32 // consumer: bytes of PortImmediate
	_            uint32
}

// DevinfoCaps is what can be asked of a device before it is opened.
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

// PortCaps is what the consumers or the producers of a device can do. Implements: doca_comch_consumer_cap_is_supported,
// doca_comch_producer_cap_is_supported, and where a field says X, that of doca_comch_consumer_cap_X and
// doca_comch_producer_cap_X.
type PortCaps struct {
	Supported bool
	MaxTasks  uint32 // of one consumer or producer. X: get_max_num_tasks
	MaxBuffer uint32 // bytes of one message. X: get_max_buf_size
	MaxList   uint32 // buffers of one message, 1 where there are no lists. X: get_max_buf_list_len
	MaxPorts  uint32 // per connection. X: get_max_consumers, get_max_producers
}

// ABI is DOCA's interface as this program uses it, whoever provides it. Errors are *Error. Threads: as DOCA, one at a
// time for an engine or a channel and everything on it; the rest may be called from anywhere.
type ABI interface {
	// Version is the release of the loaded libraries. Implements: doca_version_runtime.
	Version() string
	// Libraries are the loaded libraries' own files, behind all links; none for the software device.
	Libraries() []string
	// Hardware is false for the software device, also where it stands behind libraries of DOCA's names.
	Hardware() bool
	// TimeModel describes the software device's time model, empty without one, and tells whether bytes are moved: always
	// on hardware.
	TimeModel() (text string, movesBytes bool)
	// LastDetail is what the driver knows of its last failure beyond the code; often empty.
	LastDetail() string

	// LogTo has the driver write its own messages to fd, from level (DOCA's scale, 10 to 70) on. A release that cannot
	// stays silent. Implements: doca_log_backend_create_with_fd_sdk, doca_log_level_set_global_sdk_limit.
	LogTo(fd, level int) error

	// DevinfoCreateList lists the devices. Implements: doca_devinfo_create_list.
	DevinfoCreateList() (DevinfoList, []Devinfo, error)
	// DevinfoDestroyList frees the list, not the devices opened from it. Implements: doca_devinfo_destroy_list.
	DevinfoDestroyList(DevinfoList)
	// DevinfoPCIAddress is "0000:b1:00.0". Implements: doca_devinfo_get_pci_addr_str.
	DevinfoPCIAddress(Devinfo) (string, error)
	// DevinfoIBName is the RDMA device, or "". Implements: doca_devinfo_get_ibdev_name.
	DevinfoIBName(Devinfo) string
	// DevinfoInterface is the network interface, or "". Implements: doca_devinfo_get_iface_name.
	DevinfoInterface(Devinfo) string
	// DevinfoFunction is what kind of function the device is, and the index of an SF. known is false where the release
	// has no such function or refuses. Implements: doca_devinfo_get_pci_func_type, doca_devinfo_get_sf_index.
	DevinfoFunction(Devinfo) (kind Function, sfIndex uint32, known bool)
	// DevinfoCaps asks all capability questions; one that fails counts as unsupported or zero.
	DevinfoCaps(Devinfo) DevinfoCaps

	// DevOpen implements: doca_dev_open.
	DevOpen(Devinfo) (Dev, error)
	// DevClose implements: doca_dev_close.
	DevClose(Dev) error
	// DevMaxTasks implements: doca_dma_cap_get_max_num_tasks, through a context that lives only for the question.
	DevMaxTasks(Dev) (uint32, error)

	// RepCreateList lists the network representors. Implements: doca_devinfo_rep_create_list.
	RepCreateList(Dev) (RepInfoList, []RepInfo, error)
	// RepDestroyList implements: doca_devinfo_rep_destroy_list.
	RepDestroyList(RepInfoList)
	// RepPCIAddress implements: doca_devinfo_rep_get_pci_addr_str.
	RepPCIAddress(RepInfo) (string, error)
	// RepVUID is the represented function's unique name, or "". Implements: doca_devinfo_rep_get_vuid.
	RepVUID(RepInfo) string
	// RepFunction is what kind of function is represented. Implements: doca_devinfo_rep_get_pci_func_type.
	RepFunction(RepInfo) (Function, error)
	// RepOpen implements: doca_dev_rep_open.
	RepOpen(RepInfo) (Rep, error)
	// RepClose implements: doca_dev_rep_close.
	RepClose(Rep) error

	// MemoryAlloc maps zeroed, page-aligned, shareable memory of len bytes.
	MemoryAlloc(len int) (Memory, error)
	// MemoryAllocPrivate does the same with memory that is not to be exported, in huge pages where the system has them.
	MemoryAllocPrivate(len int) (Memory, error)
	// MemoryMapFile maps the first len bytes of the file fd, shared.
	MemoryMapFile(fd uintptr, len int, writable bool) (Memory, error)
	// MemoryFree undoes any of these; nothing may be registered over it any more.
	MemoryFree(memory Memory, len int)

	// MmapRegister creates a started memory map over local memory. Implements: doca_mmap_create,
	// doca_mmap_set_memrange, doca_mmap_add_dev, doca_mmap_set_permissions, doca_mmap_start.
	MmapRegister(dev Dev, memory Memory, len int, access Access) (Mmap, error)
	// MmapExport returns a copy of the export descriptor. Implements: doca_mmap_export_pci.
	MmapExport(Mmap, Dev) ([]byte, error)
	// MmapImport implements: doca_mmap_create_from_export.
	MmapImport(descriptor []byte, dev Dev) (Mmap, error)
	// MmapRange is the exporter's address and length. Implements: doca_mmap_get_memrange.
	MmapRange(Mmap) (addr, len uint64, err error)
	// MmapDestroy implements: doca_mmap_destroy.
	MmapDestroy(Mmap) error

	// EngineOpen starts a DMA context with room for depth copies in flight.
	EngineOpen(dev Dev, depth uint32) (Engine, error)
	// EngineHandle is the notification handle. Implements: doca_pe_get_notification_handle.
	EngineHandle(Engine) int
	// EngineSubmit submits copies in order and says how many were taken.
	EngineSubmit(Engine, []Copy) (int, error)
	// EnginePoll returns up to max completions, valid until the next poll. Implements: doca_pe_progress.
	EnginePoll(e Engine, max int) []Completion
	// EngineInflight is the number of copies submitted and not completed.
	EngineInflight(Engine) int
	// EngineArm implements: doca_pe_request_notification.
	EngineArm(Engine) error
	// EngineClear implements: doca_pe_clear_notification.
	EngineClear(Engine) error
	// EngineStop asks the context to stop; poll until EngineIdle. Implements: doca_ctx_stop.
	EngineStop(Engine) error
	// EngineIdle implements: doca_ctx_get_state.
	EngineIdle(Engine) bool
	// EngineClose frees an idle engine; on failure it frees nothing.
	EngineClose(Engine) error

	// ChannelOpen creates a Comch server or client that is not started.
	ChannelOpen(ChannelConfig) (Channel, error)
	// ChannelHandle is the notification handle. Implements: doca_pe_get_notification_handle.
	ChannelHandle(Channel) int
	// ChannelStart implements: doca_ctx_start.
	ChannelStart(Channel) error
	// ChannelRefusal is why a server did not take the client in since its start: Success if there was none, and where
	// the driver does not tell, as DOCA does not.
	ChannelRefusal(Channel) Status
	// ChannelSend sends a copy of message; its end is an event with the same tag.
	ChannelSend(c Channel, to Connection, message []byte, tag uint64) error
	// ChannelPoll returns new events, valid until the next poll. Implements: doca_pe_progress. An error means that
	// events were lost for want of memory.
	ChannelPoll(c Channel, max int) ([]Event, error)
	// ChannelBytes is the message of an event of the last poll.
	ChannelBytes(Channel, *Event) ChannelMessage
	// ChannelArm implements: doca_pe_request_notification.
	ChannelArm(Channel) error
	// ChannelClear implements: doca_pe_clear_notification.
	ChannelClear(Channel) error
	// ChannelDisconnect implements: doca_comch_server_disconnect.
	ChannelDisconnect(Channel, Connection) error
	// ChannelState implements: doca_ctx_get_state.
	ChannelState(Channel) ContextState
	// ChannelStop asks the context to stop; poll until it is idle. Implements: doca_ctx_stop.
	ChannelStop(Channel) error
	// ChannelClose frees an idle channel; on failure it frees nothing.
	ChannelClose(Channel) error

	// ConsumerOpen creates a consumer over memory and begins its start: poll it, and its channel, until PortState is
	// Running. ConsumerOpen, ProducerOpen, PortStop and PortClose are called where the channel is. Implements:
	// doca_comch_consumer_create, doca_comch_consumer_set_imm_data_len, doca_comch_consumer_task_post_recv_set_conf.
	ConsumerOpen(on Connection, memory Mmap, depth, immediate uint32) (Port, error)
	// ConsumerPost offers room for messages, in order, and says how much of it was taken. Implements:
	// doca_comch_consumer_task_post_recv_alloc_init, doca_task_submit.
	ConsumerPost(Port, []Receive) (int, error)
	// ProducerOpen creates and starts a producer. Implements: doca_comch_producer_create,
	// doca_comch_producer_task_send_set_conf.
	ProducerOpen(on Connection, depth uint32) (Port, error)
	// ProducerSend submits messages in order and says how many were taken. Again: the consumer of the next one has
	// posted nothing. Implements: doca_comch_producer_task_send_alloc_init, doca_task_submit.
	ProducerSend(p Port, messages []PortMessage, immediate []byte) (int, error)
	// PortID implements: doca_comch_consumer_get_id, doca_comch_producer_get_id.
	PortID(Port) (uint32, error)
	// PortHandle is the notification handle. Implements: doca_pe_get_notification_handle.
	PortHandle(Port) int
	// PortPoll returns up to max completions, valid until the next poll. Implements: doca_pe_progress.
	PortPoll(p Port, max int) []PortCompletion
	// PortImmediate is the immediate data of completion i of the last poll. Implements:
	// doca_comch_consumer_task_post_recv_get_imm_data.
	PortImmediate(p Port, i int) []byte
	// PortInflight is the number of tasks submitted and not completed.
	PortInflight(Port) int
	// PortArm implements: doca_pe_request_notification.
	PortArm(Port) error
	// PortClear implements: doca_pe_clear_notification.
	PortClear(Port) error
	// PortState implements: doca_ctx_get_state.
	PortState(Port) ContextState
	// PortStop asks the context to stop; poll until it is idle. Implements: doca_ctx_stop.
	PortStop(Port) error
	// PortClose frees an idle port; on failure it frees nothing. Implements: doca_comch_consumer_destroy,
	// doca_comch_producer_destroy.
	PortClose(Port) error

	// Close unloads the provider. Nothing of it may be in use.
	Close()
}
