//go:build cgo

package cabi

/*
#include "calls.h"
#include "engine.h"
*/
import "C"

import (
	"math"
	"unsafe"
)

func devinfo(d Devinfo) *C.struct_doca_devinfo { return (*C.struct_doca_devinfo)(d) }
func dev(d Dev) *C.struct_doca_dev             { return (*C.struct_doca_dev)(d) }

func (n *native) DevinfoCreateList() (DevinfoList, []Devinfo, error) {
	var list **C.struct_doca_devinfo
	var count C.uint32_t
	n.clearDetail()
	if err := n.check("doca_devinfo_create_list", C.call_doca_devinfo_create_list(n.ops, &list, &count)); err != nil {
		return nil, nil, n.explain(err)
	}
	infos := make([]Devinfo, 0, count)
	for _, info := range unsafe.Slice(list, count) {
		infos = append(infos, Devinfo(info))
	}
	return DevinfoList(unsafe.Pointer(list)), infos, nil
}

func (n *native) DevinfoDestroyList(list DevinfoList) {
	if C.call_doca_devinfo_destroy_list(n.ops, (**C.struct_doca_devinfo)(list)) != C.DOCA_SUCCESS {
		C.call_doca_devinfo_destroy_list(n.ops, (**C.struct_doca_devinfo)(list)) // it cannot be retried
	}
}

func (n *native) DevinfoPCIAddress(d Devinfo) (string, error) {
	var text [C.DOCA_DEVINFO_PCI_ADDR_SIZE]C.char
	err := n.check("doca_devinfo_get_pci_addr_str", C.call_doca_devinfo_get_pci_addr_str(n.ops, devinfo(d), &text[0]))
	return C.GoString(&text[0]), err
}

func (n *native) DevinfoIBName(d Devinfo) string {
	var text [C.DOCA_DEVINFO_IBDEV_NAME_SIZE]C.char
	if C.call_doca_devinfo_get_ibdev_name(n.ops, devinfo(d), &text[0], C.uint32_t(len(text))) != C.DOCA_SUCCESS {
		return ""
	}
	return C.GoString(&text[0])
}

func (n *native) DevinfoInterface(d Devinfo) string {
	var text [C.DOCA_DEVINFO_IFACE_NAME_SIZE]C.char
	if C.call_doca_devinfo_get_iface_name(n.ops, devinfo(d), &text[0], C.uint32_t(len(text))) != C.DOCA_SUCCESS {
		return ""
	}
	return C.GoString(&text[0])
}

func (n *native) DevinfoFunction(d Devinfo) (kind Function, sfIndex uint32, known bool) {
	var written C.enum_doca_pci_func_type
	if !C.has_doca_devinfo_get_pci_func_type(n.ops) ||
		C.call_doca_devinfo_get_pci_func_type(n.ops, devinfo(d), &written) != C.DOCA_SUCCESS {
		return 0, 0, false
	}
	if written == C.DOCA_PCI_FUNC_TYPE_SF {
		sfIndex = n.sfIndex(d)
	}
	return Function(written), sfIndex, true
}

func (n *native) sfIndex(d Devinfo) uint32 {
	var index C.uint32_t
	if !C.has_doca_devinfo_get_sf_index(n.ops) ||
		C.call_doca_devinfo_get_sf_index(n.ops, devinfo(d), &index) != C.DOCA_SUCCESS {
		return 0
	}
	return uint32(index)
}

func (n *native) DevinfoCaps(d Devinfo) DevinfoCaps {
	info := devinfo(d)
	var export, imports C.uint8_t
	var size C.uint64_t
	var list C.uint32_t
	C.call_doca_mmap_cap_is_export_pci_supported(n.ops, info, &export)
	C.call_doca_mmap_cap_is_create_from_export_pci_supported(n.ops, info, &imports)
	C.call_doca_dma_cap_task_memcpy_get_max_buf_size(n.ops, info, &size)
	C.call_doca_dma_cap_task_memcpy_get_max_buf_list_len(n.ops, info, &list)
	caps := DevinfoCaps{
		MemcpySupported: C.call_doca_dma_cap_task_memcpy_is_supported(n.ops, info) == C.DOCA_SUCCESS,
		MaxBufferSize:   uint64(size),
		MaxList:         uint32(list),
		ExportSupported: export != 0,
		ImportSupported: imports != 0,
		ActiveRate:      n.activeRate(d),
		Consumer:        n.consumerCaps(info),
		Producer:        n.producerCaps(info),
	}
	n.addChannelCaps(info, &caps)
	return caps
}

func (n *native) addChannelCaps(info *C.struct_doca_devinfo, caps *DevinfoCaps) {
	var message, queue, sends, name, clients, immediate C.uint32_t
	C.call_doca_comch_cap_get_max_msg_size(n.ops, info, &message)
	C.call_doca_comch_cap_get_max_recv_queue_size(n.ops, info, &queue)
	C.call_doca_comch_cap_get_max_send_tasks(n.ops, info, &sends)
	C.call_doca_comch_cap_get_max_name_len(n.ops, info, &name)
	C.call_doca_comch_cap_get_max_clients(n.ops, info, &clients)
	C.call_doca_comch_consumer_cap_get_max_imm_data_len(n.ops, info, &immediate)
	caps.ServerSupported = C.call_doca_comch_cap_server_is_supported(n.ops, info) == C.DOCA_SUCCESS
	caps.ClientSupported = C.call_doca_comch_cap_client_is_supported(n.ops, info) == C.DOCA_SUCCESS
	caps.MaxMessage, caps.MaxReceiveQueue, caps.MaxSends = uint32(message), uint32(queue), uint32(sends)
	caps.MaxServerNameSize, caps.MaxClients = uint32(name), uint32(clients)
	caps.MaxImmediate = uint32(immediate)
}

func (n *native) consumerCaps(info *C.struct_doca_devinfo) PortCaps {
	var tasks, size, list, consumers C.uint32_t
	C.call_doca_comch_consumer_cap_get_max_num_tasks(n.ops, info, &tasks)
	C.call_doca_comch_consumer_cap_get_max_buf_size(n.ops, info, &size)
	C.call_doca_comch_consumer_cap_get_max_consumers(n.ops, info, &consumers)
	if C.has_doca_comch_consumer_cap_get_max_buf_list_len(n.ops) {
		C.call_doca_comch_consumer_cap_get_max_buf_list_len(n.ops, info, &list)
	}
	return PortCaps{
		Supported: C.call_doca_comch_consumer_cap_is_supported(n.ops, info) == C.DOCA_SUCCESS,
		MaxTasks:  uint32(tasks), MaxBuffer: uint32(size), MaxList: uint32(list), MaxPorts: uint32(consumers),
	}
}

func (n *native) producerCaps(info *C.struct_doca_devinfo) PortCaps {
	var tasks, size, list, producers C.uint32_t
	C.call_doca_comch_producer_cap_get_max_num_tasks(n.ops, info, &tasks)
	C.call_doca_comch_producer_cap_get_max_buf_size(n.ops, info, &size)
	C.call_doca_comch_producer_cap_get_max_producers(n.ops, info, &producers)
	if C.has_doca_comch_producer_cap_get_max_buf_list_len(n.ops) {
		C.call_doca_comch_producer_cap_get_max_buf_list_len(n.ops, info, &list)
	}
	return PortCaps{
		Supported: C.call_doca_comch_producer_cap_is_supported(n.ops, info) == C.DOCA_SUCCESS,
		MaxTasks:  uint32(tasks), MaxBuffer: uint32(size), MaxList: uint32(list), MaxPorts: uint32(producers),
	}
}

func (n *native) activeRate(d Devinfo) uint64 {
	var written C.uint64_t
	if !C.has_doca_devinfo_get_active_rate(n.ops) ||
		C.call_doca_devinfo_get_active_rate(n.ops, devinfo(d), &written) != C.DOCA_SUCCESS {
		return 0
	}
	return bitsPerSecond(uint64(written))
}

// maxRate is above the rate of any port, in bits per second. Every double that can be a rate, read as an integer, is
// far above it, so that one form is never mistaken for the other.
const maxRate = 1 << 60

// bitsPerSecond decodes the 8 bytes that doca_devinfo_get_active_rate writes: from DOCA 2.10 on an integer in bits per
// second, in 2.7 a double in Gb/s, and between them one of both. 0: unknown.
func bitsPerSecond(written uint64) uint64 {
	if written < maxRate {
		return written
	}
	rate := math.Round(math.Float64frombits(written) * 1e9)
	if !(rate >= 0 && rate < maxRate) { // also false for NaN
		return 0
	}
	return uint64(rate)
}

func (n *native) DevOpen(d Devinfo) (Dev, error) {
	var opened *C.struct_doca_dev
	err := n.check("doca_dev_open", C.call_doca_dev_open(n.ops, devinfo(d), &opened))
	return Dev(opened), err
}

func (n *native) DevClose(d Dev) error {
	return n.check("doca_dev_close", C.call_doca_dev_close(n.ops, dev(d)))
}

func (n *native) DevMaxTasks(d Dev) (uint32, error) {
	var depth C.uint32_t
	err := n.outcome(C.engine_max_depth(n.ops, dev(d), &depth))
	return uint32(depth), err
}

func (n *native) RepCreateList(d Dev) (RepInfoList, []RepInfo, error) {
	var list **C.struct_doca_devinfo_rep
	var count C.uint32_t
	status := C.call_doca_devinfo_rep_create_list(n.ops, dev(d), C.DOCA_DEVINFO_REP_FILTER_NET, &list, &count)
	if err := n.check("doca_devinfo_rep_create_list", status); err != nil {
		return nil, nil, err
	}
	infos := make([]RepInfo, 0, count)
	for _, info := range unsafe.Slice(list, count) {
		infos = append(infos, RepInfo(info))
	}
	return RepInfoList(unsafe.Pointer(list)), infos, nil
}

func (n *native) RepDestroyList(list RepInfoList) {
	if C.call_doca_devinfo_rep_destroy_list(n.ops, (**C.struct_doca_devinfo_rep)(list)) != C.DOCA_SUCCESS {
		C.call_doca_devinfo_rep_destroy_list(n.ops, (**C.struct_doca_devinfo_rep)(list)) // it cannot be retried
	}
}

func (n *native) RepPCIAddress(r RepInfo) (string, error) {
	var text [C.DOCA_DEVINFO_REP_PCI_ADDR_SIZE]C.char
	status := C.call_doca_devinfo_rep_get_pci_addr_str(n.ops, (*C.struct_doca_devinfo_rep)(r), &text[0])
	return C.GoString(&text[0]), n.check("doca_devinfo_rep_get_pci_addr_str", status)
}

func (n *native) RepVUID(r RepInfo) string {
	var text [C.DOCA_DEVINFO_REP_VUID_SIZE]C.char
	info := (*C.struct_doca_devinfo_rep)(r)
	if C.call_doca_devinfo_rep_get_vuid(n.ops, info, &text[0], C.uint32_t(len(text))) != C.DOCA_SUCCESS {
		return ""
	}
	return C.GoString(&text[0])
}

func (n *native) RepInterface(r RepInfo) string {
	var text [C.DOCA_DEVINFO_IFACE_NAME_SIZE]C.char
	info := (*C.struct_doca_devinfo_rep)(r)
	if !C.has_doca_devinfo_rep_get_iface_name(n.ops) ||
		C.call_doca_devinfo_rep_get_iface_name(n.ops, info, &text[0], C.uint32_t(len(text))) != C.DOCA_SUCCESS {
		return ""
	}
	return C.GoString(&text[0])
}

func (n *native) RepFunction(r RepInfo) (Function, error) {
	var kind C.enum_doca_pci_func_type
	status := C.call_doca_devinfo_rep_get_pci_func_type(n.ops, (*C.struct_doca_devinfo_rep)(r), &kind)
	return Function(kind), n.check("doca_devinfo_rep_get_pci_func_type", status)
}

func (n *native) RepOpen(r RepInfo) (Rep, error) {
	var opened *C.struct_doca_dev_rep
	err := n.check("doca_dev_rep_open", C.call_doca_dev_rep_open(n.ops, (*C.struct_doca_devinfo_rep)(r), &opened))
	return Rep(opened), err
}

func (n *native) RepClose(r Rep) error {
	return n.check("doca_dev_rep_close", C.call_doca_dev_rep_close(n.ops, (*C.struct_doca_dev_rep)(r)))
}
