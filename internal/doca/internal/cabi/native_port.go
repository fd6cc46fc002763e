//go:build cgo

package cabi

/*
#include "calls.h"
#include "port.h"
*/
import "C"

import "unsafe"

func port(p Port) *C.struct_port { return (*C.struct_port)(p) }

func (n *native) PortOpen(on Connection, memory Mmap, depth, immediate uint32) (Port, error) {
	var p *C.struct_port
	connection := (*C.struct_doca_comch_connection)(on)
	err := n.outcome(C.port_open(n.ops, connection, mmap(memory), C.uint32_t(depth), C.uint32_t(immediate), &p))
	return Port(p), err
}

func (n *native) PortSubmit(p Port, tasks []PortTask, immediate []byte) (int, error) {
	first := (*C.struct_port_task)(unsafe.Pointer(unsafe.SliceData(tasks)))
	bytes := (*C.uint8_t)(unsafe.SliceData(immediate))
	o := C.port_submit(port(p), first, C.uint32_t(len(tasks)), bytes)
	return int(port(p).taken), n.submission(o)
}

// submission is outcome for submissions: frequent back-pressure costs no allocation.
func (n *native) submission(o C.struct_outcome) error {
	if o.status == C.DOCA_ERROR_AGAIN {
		return Again
	}
	return n.outcome(o)
}

func (n *native) PortID(p Port) (uint32, error) {
	var id C.uint32_t
	err := n.outcome(C.port_id(port(p), &id))
	return uint32(id), err
}

func (n *native) PortPoll(p Port, limit int) []PortCompletion {
	count := C.port_poll(port(p), C.uint32_t(limit))
	first := (*PortCompletion)(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(C.struct_port{})))
	return unsafe.Slice(first, count)
}

func (n *native) PortImmediate(p Port, i int) []byte {
	completion := (*PortCompletion)(unsafe.Add(unsafe.Pointer(p),
		unsafe.Sizeof(C.struct_port{})+uintptr(i)*unsafe.Sizeof(PortCompletion{})))
	start := unsafe.Add(unsafe.Pointer(port(p).imm), i*int(port(p).imm_size))
	return unsafe.Slice((*byte)(start), completion.ImmediateLen)
}

func (n *native) PortInflight(p Port) int { return int(port(p).inflight) }

func (n *native) PortClose(p Port) error { return n.outcome(C.port_close(port(p))) }
