// Package softdev is the software device: DOCA's functions in C, each under its name with soft_ before it, over shared
// memory and local sockets. docs/SOFTDEVICE.md says what it keeps of the hardware.
//
//	configure, limit, model, quirk, fault     what it is set to be, and how that is read
//	config                                    what is in force; knows none of the others
//	topology                                  which devices there are
//	dev, mmap, buf, ctx, pe, task             DOCA's objects
//	dma*, schedule, copy, remote*             copies, here and in other processes' memory
//	comch*, fast, lane, consumer*, producer   control channel and fast path
//	table                                     all of them as one table of functions (Ops)
//
// To whoever calls DOCA's functions the device is that table, as DOCA's own libraries are: packages with C link on
// their own, so that no C outside this directory can name a function of the device. What the device has beside DOCA is
// exported here, in Go.
//
// memory.c belongs to it, although it is used over any device: the software device wants to know what stands behind an
// address, and where to ask there can be only one list of allocations.
package softdev

// Settings sets up the software device (soft.h). An empty string takes the environment's value, or the default.
type Settings struct {
	Dir       string // runtime directory
	Limits    string // "name=value,..."
	Quirks    string // "name,..."
	Faults    string // "name=value,..."
	Functions string // "vf,sf" or one of them: beside the physical ones
}
