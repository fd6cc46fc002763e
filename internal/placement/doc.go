// Package placement decides on which CPUs of the machine the process runs, moves it there and sets GOMAXPROCS.
//
// A device is attached to one NUMA node: access to that node's memory is fastest for it, and completions are handled
// fastest by the node's CPUs. Memory needs no call of its own: the kernel takes a page from the node of the CPU that
// touches it first, so a process that has moved before it allocates has both.
//
// Decisions are pure: the kernel's /sys arrives as an fs.FS, so that tests build machines of any shape. Only apply.go,
// process.go and lanes.go change the process, and no other package may change its CPUs or GOMAXPROCS. This package does
// not know what the lanes and the process do with their CPUs, and reads no setting but the Wish that it is given.
package placement
