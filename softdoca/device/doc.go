// Package device is the software device: DOCA's functions in C, each with the prefix soft_, over shared memory and
// local sockets. softdoca/docs/SOFTDEVICE.md describes which rules of the hardware it keeps.
//
// A module is a C file, with a header of the same name if other modules use it; a header includes only what it needs
// and compiles alone. soft.h declares what packages above use. From the bottom up:
//
//	sizes, config, now                     fixed sizes, the configuration in force, the clock; include no other module
//	error, embedded                        detail of the last failure, log, release
//	limit, quirk, fault, schedule          settings and their effects: limits, time model, quirks, injected faults
//	background                             the thread that tries tasks again which could not be executed at once
//	memory, copy, socket                   allocations, copies that cannot raise SIGBUS, sockets by name
//	remote_wire, remote_export,            exported memory: protocol, exports, the service thread, imports (remote.h is
//	remote_service, remote_import          what other modules use)
//	dev, devinfo, mmap, buf, ctx, pe       DOCA's objects; tasks are in ctx
//	dma, dma_task                          DMA contexts; what their tasks do, and when
//	comch_wire, comch_endpoint, comch,     control channel: protocol, what servers and clients share, configuration,
//	comch_server, comch_client,            servers, clients, connections, send tasks
//	comch_connection, comch_send
//	lane, fast, consumer, consumer_task,   fast path
//	producer
//	configure                              applies settings; calls the modules that parse them
//	unsupported                            functions the device does not have
//	refusable, table                       all functions as one table (Ops), with faults that refuse calls
//
// Two more directories of softdoca are linked into the development kit only, and are in C alone. sync has sync events:
//
//	sync_event, sync_share, sync_call,     life, export and import, direct calls, tasks, places that are not supported
//	sync_task, sync_unsupported
//
// dpa has a DPA and message queues to it. From the bottom up:
//
//	object, dpa, heap                      the lock and handles; DPAs; their memory
//	kernel, thread, ring                   code of a DPA while it runs; threads; queues of completion contexts
//	completion, consumer_completion,       completion contexts
//	notification
//	mapping                                copies between memory maps
//	msgq, msgq_consumer, msgq_producer     message queues, their consumers and producers
//	dpa_table                              all functions as one table (soft_dpa.h)
//
// State machines are drawn where their states are declared: contexts and tasks in ctx.h, connections in
// comch_connection.h, threads of a DPA in dpa/thread.h.
//
// Callers use that table, as they use DOCA's libraries: packages with C are linked one by one, so C outside this
// directory cannot call the device by name. Functions of the device beyond DOCA are exported here, in Go.
//
// memory.c is used with any provider. It is here because the software device must know what backs an address, so there
// can be only one list of allocations.
//
// The package must not import anything of this module but abi.
package device

// Settings are the settings of the software device (soft.h). An empty string means the environment's value, or the
// default if that is not set.
type Settings struct {
	Dir       string // runtime directory
	Limits    string // "name=value,..."
	Quirks    string // "name,..."
	Faults    string // "name=value,..."
	Functions string // "vf,sf" or one of them, in addition to the physical functions
}
