// Package placement decides on which CPUs of the machine the process runs, and moves it there.
//
// A device hangs on one NUMA node: what it reads and writes is fetched fastest from memory of that node, and completions are
// handled fastest by its CPUs. Memory needs no call of its own, since the system takes a page from the node of the CPU that touches
// it first; so a process that has moved before it allocates has both.
//
// All but process.go is pure: what the kernel says in /sys arrives as an fs.FS, so that tests build machines of any shape.
package placement
