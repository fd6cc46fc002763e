//go:build cgo

package cabi

/*
#include <stdlib.h>
#include "calls.h"
#include "channel.h"
*/
import "C"

import "unsafe"

func channel(c Channel) *C.struct_channel { return (*C.struct_channel)(c) }

func (n *native) ChannelOpen(config ChannelConfig) (Channel, error) {
	name := C.CString(config.Name)
	defer C.free(unsafe.Pointer(name))
	settings := C.struct_channel_config{
		dev:           dev(config.Dev),
		rep:           (*C.struct_doca_dev_rep)(config.Rep),
		name:          name,
		max_message:   C.uint32_t(config.MaxMessage),
		receive_queue: C.uint32_t(config.ReceiveQueue),
		sends:         C.uint32_t(config.Sends),
	}
	var opened *C.struct_channel
	err := n.outcome(C.channel_open(n.ops, &settings, &opened))
	return Channel(opened), err
}

func (n *native) ChannelStart(c Channel) error {
	n.clearDetail()
	return n.explain(n.outcome(C.channel_start(channel(c))))
}

func (n *native) ChannelRefusal(c Channel) Status { return n.refusal(channel(c).client) }

func (n *native) ChannelSend(c Channel, to Connection, message []byte, tag uint64) error {
	bytes := unsafe.Pointer(unsafe.SliceData(message))
	connection := (*C.struct_doca_comch_connection)(to)
	return n.outcome(C.channel_send(channel(c), connection, bytes, C.uint32_t(len(message)), C.uint64_t(tag)))
}

func (n *native) ChannelPoll(c Channel, limit int) ([]Event, error) {
	count := C.channel_poll(channel(c), C.uint32_t(limit))
	if channel(c).out_of_memory != 0 {
		return nil, &Error{Op: "doca_pe_progress", Code: NoMemory}
	}
	return unsafe.Slice((*Event)(unsafe.Pointer(channel(c).events)), count), nil
}

func (n *native) ChannelBytes(c Channel, e *Event) ChannelMessage {
	start := unsafe.Add(unsafe.Pointer(channel(c).arena), e.Offset)
	return unsafe.Slice((*byte)(start), e.Len)
}

func (n *native) ChannelDisconnect(c Channel, connection Connection) error {
	return n.outcome(C.channel_disconnect(channel(c), (*C.struct_doca_comch_connection)(connection)))
}

func (n *native) ChannelStop(c Channel) error { return n.outcome(C.channel_stop(channel(c))) }

func (n *native) ChannelClose(c Channel) error { return n.outcome(C.channel_close(channel(c))) }
