/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixed sizes and times of the software device, in one place. A user can set its limits: their defaults
 * are in config.c, the range of each in limit.c.
 */
#ifndef DMA_COPY_SOFT_SIZES_H
#define DMA_COPY_SOFT_SIZES_H

/* ---- Settings ---- */

/* User ids that DMA_COPY_SOFT_USERS can list. */
#define SOFT_MAX_USERS 16

/* Rules that DMA_COPY_SOFT_FAULTS can list, and the longest delay that one can ask for: a day. */
#define SOFT_MAX_FAULT_RULES 32
#define SOFT_MAX_FAULT_DELAY_US (24 * 60 * 60 * 1000000ull)

/* The largest value of the limit dma_at_once: the schedule keeps that many completion times per device. */
#define SOFT_MAX_AT_ONCE 1024

/* The largest values of the limits max_fast_tasks and max_imm_data_len, which a peer may have set differently. */
#define SOFT_MAX_FAST_TASKS (1 << 16)
#define SOFT_MAX_IMM_DATA 4096

/* ---- Memory ---- */

/* Devices of one memory map: more than there are. */
#define SOFT_MMAP_MAX_DEVS 16

/* Bytes that a copy through a temporary file moves at once. */
#define SOFT_BOUNCE_BYTES ((size_t)1 << 20)

/* ---- Sync events ---- */

/* Tasks of one kind of one sync event. */
#define SOFT_MAX_SYNC_TASKS (1 << 16)

/* How often a progress engine that sleeps wakes up because a sync event has a wait task that is not satisfied. */
#define SOFT_SYNC_POLL_NS 1000000ull

/* ---- Progress ---- */

/*
 * Calls of doca_pe_progress in a row that find nothing before the engine counts as polled and yields the CPU. A program
 * that sleeps between events finds nothing only a few times in a row.
 */
#define SOFT_IDLE_POLLS 32

/* Events and completions that one call of doca_pe_progress delivers at most, in addition to the tasks in flight. */
#define SOFT_PROGRESS_EVENTS 1024

/* How long the background thread pauses between tries: after one that moved something, and at most. */
#define SOFT_JOB_PAUSE_NS 1000000ull
#define SOFT_JOB_LONGEST_PAUSE_NS 16000000ull

/* How long a producer waits before it tries again to send to a consumer whose socket is full. */
#define SOFT_FULL_LANE_NS 1000000ull

/* The largest imported memory that code of a DPA gets a copy of, because it cannot be mapped. */
#define SOFT_MAX_WINDOW (256u << 20)

/* How long stopping a thread of a DPA waits for its kernel to call a device function. */
#define SOFT_KERNEL_STOP_NS 5000000000ull

/* ---- Sockets ---- */

/* Connections to a Comch server, or to the export service, that have not yet authenticated: each costs a descriptor. */
#define SOFT_MAX_HANDSHAKES 16

/* Importers of all exports of this process. */
#define SOFT_MAX_IMPORTERS 1024

/* Connections that may wait to be accepted by the export service; it accepts as many at a time. */
#define SOFT_EXPORT_BACKLOG 64

/* How long the export service does not accept after accept has failed, for example because no descriptor is left. */
#define SOFT_ACCEPT_PAUSE_NS 100000000ull

/*
 * How long to wait for the lock of the runtime directory, whose holder may be stopped by a debugger, or not be run for
 * a while by a busy machine.
 */
#define SOFT_LOCK_WAIT_NS 5000000000ull

/* How long to wait for a thread of the other side, which a busy machine may not run for a while. */
#define SOFT_PEER_TIMEOUT_NS 5000000000ull

/* How often a waiting side checks whether the other process is stopped, and how often in a row it must find it so. */
#define SOFT_STOPPED_CHECK_NS 100000000ull
#define SOFT_STOPPED_CHECKS 3

/* How long revoking an export waits for a copy that an importer has begun. */
#define SOFT_REVOKE_NS 1000000000ull

#endif
