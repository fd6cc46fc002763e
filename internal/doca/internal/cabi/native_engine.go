//go:build cgo

package cabi

/*
#include "calls.h"
#include "engine.h"
*/
import "C"

import "unsafe"

func engine(e Engine) *C.struct_engine { return (*C.struct_engine)(e) }

func (n *native) EngineOpen(d Dev, depth, sources uint32) (Engine, error) {
	var e *C.struct_engine
	err := n.outcome(C.engine_open(n.ops, dev(d), C.uint32_t(depth), C.uint32_t(sources), &e))
	return Engine(e), err
}

func (n *native) EngineSubmit(e Engine, copies []Copy, more []Range) (int, error) {
	first := (*C.struct_engine_copy)(unsafe.Pointer(unsafe.SliceData(copies)))
	ranges := (*C.struct_engine_range)(unsafe.Pointer(unsafe.SliceData(more)))
	s := C.engine_submit(engine(e), first, C.uint32_t(len(copies)), ranges)
	return int(s.submitted), n.submission(s.outcome)
}

func (n *native) EnginePoll(e Engine, limit int) []Completion {
	count := C.engine_poll(engine(e), C.uint32_t(limit))
	first := (*Completion)(unsafe.Pointer(uintptr(e) + unsafe.Sizeof(C.struct_engine{})))
	return unsafe.Slice(first, count)
}

func (n *native) EngineInflight(e Engine) int { return int(engine(e).inflight) }

func (n *native) EngineClose(e Engine) error { return n.outcome(C.engine_close(engine(e))) }
