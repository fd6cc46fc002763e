/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Injected faults: "name=value,name=value" with
 *
 *   seed=S               seed of all random choices
 *   refuse=NAME:N:CODE   call N of that function, or of any (*), returns CODE; through soft_ops only
 *   fail=N:CODE          completion N of memcpy, control send and fast path send tasks has that code
 *   fail_memcpy=N:CODE   completion N of memcpy tasks alone has that code
 *   delay=N:US           memcpy completion N is that many microseconds late, a day at most
 *   reorder=K            memcpy tasks complete in random order, out of K at a time
 *   flip=N drop=N duplicate=N   change one bit of copy N, skip a run of its bytes, write a run twice
 *   cut=N                the connection breaks instead of sending control message N
 *   cut_every=N          the same, for every Nth control message
 *   connect=N            connection event N of a server reports failure, and the client is refused
 *   disconnect=N         disconnection event N of a server reports failure
 *   mute=N               from control message N on this process neither sends nor receives on its channels
 *   again=PERCENT        that share of submissions returns AGAIN
 *
 * N counts from 1, over the whole process and from soft_configure on. A name may occur more than once.
 */
#ifndef DMA_COPY_SOFT_FAULT_H
#define DMA_COPY_SOFT_FAULT_H

#include "config.h"
#include "doca_abi.h"

/* Parses text; *faults is NULL for none. INVALID_VALUE, with a detail; NO_MEMORY. */
doca_error_t soft_parse_faults(const char *text, struct soft_faults **faults);
void soft_free_faults(struct soft_faults *faults);

/* ---- one hook for each place; any thread may call them ---- */

/* Reports whether calls may be refused, so that soft_ops must return the table that checks. */
bool soft_fault_in_calls(void);

/* Returns SUCCESS, or the code that the call of this function must return. */
doca_error_t soft_fault_call(const char *name);

/* Return SUCCESS, or the code with which the task about to be executed must fail: a send, or a memcpy. */
doca_error_t soft_fault_completion(void);
doca_error_t soft_fault_memcpy(void);

/* Returns by how many nanoseconds the next memcpy completion is late. */
uint64_t soft_fault_delay(void);

/* Returns which of the count oldest memcpy tasks completes next, from 0. */
uint32_t soft_fault_order(uint32_t count);

enum soft_copy_fault { SOFT_COPY_WHOLE, SOFT_COPY_FLIP, SOFT_COPY_DROP, SOFT_COPY_DUPLICATE };

/* Returns what happens to the next copy of len bytes: to *run bytes from *at on. */
enum soft_copy_fault soft_fault_copy(size_t len, size_t *at, size_t *run);

enum soft_message_fault { SOFT_MESSAGE_WHOLE, SOFT_MESSAGE_CUT };

/* Returns what happens to the next control message. */
enum soft_message_fault soft_fault_message(void);

/* Report whether the server's next connection or disconnection event must report failure. */
bool soft_fault_connect(void);
bool soft_fault_disconnect(void);

/* Reports whether the channels of this process are muted. */
bool soft_fault_muted(void);

/* Returns what the next submission must return: SUCCESS or AGAIN. */
doca_error_t soft_fault_submit(void);

#endif
