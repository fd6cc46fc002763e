/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on request: "name=value,name=value" with
 *
 *   seed=S               for whatever is chosen at random
 *   refuse=NAME:N:CODE   the Nth call of that function, or of any (*), answers CODE; through soft_ops only
 *   fail=N:CODE          completion N of memcpy, control send and fast send tasks
 *   delay=N:US           memcpy completion N comes that many microseconds late, a day at most
 *   reorder=K            memcpy tasks complete in random order, out of K at a time
 *   flip=N drop=N duplicate=N   one bit of copy N, a run of its bytes left out, a run of them written twice
 *   cut=N                instead of control message N the connection breaks
 *   connect=N            connection event N of a server reports failure, and the client is refused
 *   disconnect=N         disconnection event N of a server reports failure
 *   mute=N               from control message N on this process neither sends nor receives on its channels
 *   again=PERCENT        so many submissions answer AGAIN
 *
 * N counts from 1, over the whole process and from soft_configure on. A name may come more than once.
 */
#ifndef DMA_COPY_SOFT_FAULT_H
#define DMA_COPY_SOFT_FAULT_H

#include "core.h"

struct soft_faults; /* one parsed text, and how far its counters have come */

/* INVALID_VALUE, with a detail; NO_MEMORY. *faults is NULL for no text. */
doca_error_t soft_parse_faults(const char *text, struct soft_faults **faults);
void soft_free_faults(struct soft_faults *faults);

/* ---- one hook for each place ---- */

/* True if calls may be refused: soft_ops is then the table that asks. */
bool soft_fault_in_calls(void);

/* SUCCESS, or what the call is to answer. */
doca_error_t soft_fault_call(const char *name);

/* SUCCESS, or what the task that is about to be executed is to fail with instead. */
doca_error_t soft_fault_completion(void);

/* Nanoseconds by which the next memcpy completion is late. */
uint64_t soft_fault_delay(void);

/* Which of the count oldest memcpy tasks is next. */
uint32_t soft_fault_order(uint32_t count);

enum soft_copy_fault { SOFT_COPY_WHOLE, SOFT_COPY_FLIP, SOFT_COPY_DROP, SOFT_COPY_DUPLICATE };

/* What happens to the next copy of len bytes, and at *at for *run of them. */
enum soft_copy_fault soft_fault_copy(size_t len, size_t *at, size_t *run);

enum soft_message_fault { SOFT_MESSAGE_WHOLE, SOFT_MESSAGE_CUT };

/* What happens to the next control message. */
enum soft_message_fault soft_fault_message(void);

/* The server's next connection event, or disconnection event, is to report failure. */
bool soft_fault_connect(void);
bool soft_fault_disconnect(void);

/* The channels of this process have fallen silent. */
bool soft_fault_muted(void);

/* SUCCESS or AGAIN. */
doca_error_t soft_fault_submit(void);

#endif
