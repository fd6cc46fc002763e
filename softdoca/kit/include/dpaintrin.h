/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of NVIDIA's compiler for a DPA, as far as code of a DPA commonly uses it: fences, which are full ones
 * here, the window to memory of the CPU, and clocks.
 */
#ifndef DPAINTRIN_H_
#define DPAINTRIN_H_

#include <stdint.h>
#include <time.h>

#include "doca_dpa_dev_buf.h"

#define __DPA_HEAP 0
#define __DPA_MEMORY 1
#define __DPA_MMIO 2
#define __DPA_SYSTEM 3

#define __DPA_R 1
#define __DPA_W 2
#define __DPA_RW 3

#define __dpa_compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define __dpa_thread_system_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __dpa_thread_fence(space, pred, succ) ((void)(space), (void)(pred), (void)(succ), __dpa_thread_system_fence())
#define __dpa_thread_memory_fence(pred, succ) __dpa_thread_fence(__DPA_MEMORY, pred, succ)
#define __dpa_thread_outbox_fence(pred, succ) __dpa_thread_fence(__DPA_MMIO, pred, succ)
#define __dpa_thread_window_fence(pred, succ) __dpa_thread_fence(__DPA_MMIO, pred, succ)
#define __dpa_thread_window_read_inv() (doca_dpa_dev_kit_window_read_inv(), __dpa_thread_system_fence())
#define __dpa_thread_window_writeback() (__dpa_thread_system_fence(), doca_dpa_dev_kit_window_writeback())
#define __dpa_thread_memory_writeback() __dpa_thread_system_fence()

static inline uint64_t dpa_kit_clock(uint64_t ticks_per_second)
{
	struct timespec now;
	timespec_get(&now, TIME_UTC);
	return (uint64_t)now.tv_sec * ticks_per_second + (uint64_t)now.tv_nsec * ticks_per_second / 1000000000u;
}

/* Microseconds, and cycles of 1 GHz. */
#define __dpa_thread_time() dpa_kit_clock(1000000u)
#define __dpa_thread_cycles() dpa_kit_clock(1000000000u)

#endif
