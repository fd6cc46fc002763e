package probe

import (
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// assumption is one thing that the program assumes of hardware or driver because a document says so, or a user.
type assumption struct {
	name   string // stable: users and programs know it
	on     sides
	probe  func(*trial) (found string)
	where  string // packages below internal/ that assume it
	source string
	claim  string
	means  string // for copies, if it differs
}

// sides are the sides that can make a probe alone.
type sides uint8

const (
	host   sides = 1 << wire.Host
	dpu    sides = 1 << wire.DPU
	either       = host | dpu
	both   sides = 0 // none: the DPU makes the probe, and the host serves it
)

func (a *assumption) runsOn(side wire.Side) bool { return a.on&(1<<side) != 0 }

func (a *assumption) needsBoth() bool { return a.on == both }

// Documents that several assumptions come from.
const (
	guideCore  = "DOCA Core guide"
	guideDMA   = "DOCA DMA guide"
	guideComch = "DOCA Comch guide"
	reports    = "reports of users on BlueField-2 and BlueField-3"
)

// register has every assumption, in the order in which they are tried. The quirks of the software device
// (softdoca/device/quirk.h) behave like many of the differences.
var register = [...]assumption{
	{"task-size", either, taskSize, "dmaxfer/native", "public programs for BlueField",
		"a DMA task has at most 2 MiB",
		"chunks have at most the size that the device reports; nothing to do"},
	{"task-largest", either, taskLargest, "doca", guideDMA,
		"a task of the size that the device reports moves all its bytes",
		"large chunks fail: give a smaller --chunk"},
	{"task-too-large", either, taskTooLarge, "doca", reports,
		"a larger task is accepted, fails with IO_FAILED, and the context is replaced",
		"no copy submits one; please report it"},
	{"alignment", either, alignment, "dmaxfer/pump", "DOCA DMA guide, which names no alignment",
		"addresses and lengths of a task need no alignment",
		"small and odd files fail: use --path fast, and please report it"},
	{"tasks-in-flight", either, tasksInFlight, "doca, dmaxfer/native", reports,
		"128 tasks are in flight at once",
		"give a smaller --depth; copies may be slower"},
	{"source-lists", either, sourceLists, "doca, dmaxfer/pump", guideDMA,
		"the source of a task can be a list of buffers",
		"each small file takes a task of its own: trees of small files are slower"},
	{"permissions", either, readOnly, "dmaxfer/native", guideCore,
		"a copy into memory that is registered for reading is refused",
		"permissions are not a protection within this side; please report it"},
	{"mapped-file", either, mappedFile, "dmaxfer/reference", "no document",
		"memory of a mapped file can be registered",
		"a host with doca_dma_copy as peer copies the file to memory first, which takes as much memory as the file"},
	{"memory-in-use", either, memoryInUse, "doca", guideCore,
		"a registration cannot end while a task uses it",
		"an error in a copy could touch memory that is used for something else; please report it"},
	{"window", host, wholeWindow, "dmaxfer/native, negotiate", guideCore,
		"the default window can be registered, and its descriptor fits in a message",
		"copies by DMA fail: raise the limit on locked memory, or give a smaller --chunk and --depth"},
	{"several-engines", either, severalEngines, "dmaxfer/native", guideDMA,
		"several DMA contexts of a device copy at the same time",
		"give --lanes 1"},
	{"engine-notification", either, engineNotifies, "doca", guideCore,
		"the armed handle of a DMA engine is readable when a task has completed",
		"copies stall when they wait for the engine; please report it"},
	{"channel-notification", either, channelNotifies, "doca", reports + "; denied by " + guideComch,
		"the engine of the control channel can be armed",
		"the channel is polled: waiting takes some CPU time, and answers come up to 10 ms later"},
	{"message-size", either, messageSize, "negotiate", "public programs for BlueField",
		"a message has at most 4080 bytes",
		"messages have at most the size that the device reports; nothing to do if both sides report the same"},
	{"queue-size", either, queueSize, "doca", guideComch,
		"64 messages of a side can be in flight, and as many be queued",
		"messages of copies wait for each other: large trees are slower"},
	{"no-server", host, noServer, "comch", guideComch,
		"a client without a server returns to idle, with no error",
		"the host waits for the DPU all the same, but messages name another cause"},
	{"server-name", dpu, serverName, "comch", guideComch,
		"a server name is unique for a device and a representor",
		"two copies that serve the same host function disturb each other"},

	{"import-read", both, importRead, "dmaxfer/native", guideDMA,
		"the DPU reads memory that the host exports, at any offset",
		"no copy from the host by DMA works: use --path fast"},
	{"import-write", both, importWrite, "dmaxfer/native", guideDMA,
		"the DPU writes memory that the host exports, at any offset",
		"no copy to the host by DMA works: use --path fast"},
	{"import-range", both, importRange, "doca", "header of doca_mmap_get_memrange",
		"an import knows the range that was exported",
		"a host that announces a wrong range is noticed by the first copy only"},
	{"import-permissions", both, importReadOnly, "dmaxfer/native", guideCore,
		"memory that is exported for reading cannot be written by the DPU",
		"a DPU could change the source of a copy; please report it"},
	{"export-ends", both, exportEnds, "dmaxfer/native, dmaxfer/reference", guideCore,
		"an export ends with the registration",
		"a peer could access memory after its copy; please report it"},
	{"messages", both, messages, "comch", guideComch,
		"messages of the largest size arrive, and more than a queue holds arrive in order",
		"copies end with a protocol error; please report it"},
	{"several-clients", both, severalClients, "service", guideComch,
		"a server has several clients at once",
		"a daemon serves one command at a time"},
	{"client-leaves", both, clientLeaves, "comch", guideComch,
		"a server notices at once that a client has disconnected",
		"the DPU notices the end of a host only after --idle-timeout"},
	{"server-dies", both, serverDies, "comch", "no document; users report both",
		"a client notices at once that its server has died",
		"the host notices the death of the DPU's process only after --idle-timeout"},
	{"client-dies", both, clientDies, "comch", "no document; users report both",
		"a server notices at once that a client has died",
		"the DPU notices the death of the host's process only after --idle-timeout"},
	{"client-after-death", both, clientAfterDeath, "service", "no document; users report both",
		"a server takes the next client after one has died",
		"restart a daemon on the DPU after a command of the host was killed"},
	{"fast-path", both, fastPath, "dmaxfer/native, ping", guideComch,
		"producers and consumers carry messages in both directions",
		"--path fast does not work: use --path dma"},
	{"fast-path-buffers", both, noBuffer, "doca", guideComch,
		"a producer is refused with AGAIN while the consumer has posted no buffer",
		"copies over --path fast may fail; please report it"},
}
