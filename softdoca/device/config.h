/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration in force, which every module may read. It includes no other module: each module parses its own
 * settings (limit.h, quirk.h, fault.h, dev.h), and configure.c calls them.
 */
#ifndef DMA_COPY_SOFT_CONFIG_H
#define DMA_COPY_SOFT_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sizes.h"

/* The comments are the meanings in docs/reference/settings.md; the defaults are in config.c. */
struct soft_limits {
	uint64_t max_buf_size;        /* bytes per memcpy task */
	uint64_t max_buf_list_len;    /* buffers in a source list */
	uint64_t max_dma_tasks;       /* memcpy tasks of one context */
	uint64_t max_msg_size;        /* bytes per control message; dma-copy ends with 11 if the sides differ */
	uint64_t max_name_len;        /* bytes of a server name, with its zero */
	uint64_t max_recv_queue_size; /* messages in a receive queue */
	uint64_t max_send_tasks;      /* control messages in flight */
	uint64_t max_clients;         /* connections of one server */
	uint64_t max_fast_tasks;      /* post-receive or send tasks of one consumer or producer */
	uint64_t max_fast_buf_size;   /* bytes of one message from a producer to a consumer */
	uint64_t max_imm_data_len;    /* bytes of immediate data */
	uint64_t max_consumers;       /* consumers of one side of a connection */
	uint64_t max_producers;       /* producers of one side of a connection */
	uint64_t max_export_size;     /* bytes of an export descriptor, which is padded to them */
	uint64_t task_latency_us;     /* microseconds that a memcpy task takes at least, also with a time model */
	uint64_t pin_files;           /* 0: registering a mapped file fails, as with a driver that cannot pin one */
	uint64_t remote_mapping;      /* 0: use system calls for memory of the peer, except for sync events */
	uint64_t dpa_kernel_ms;       /* milliseconds after which a kernel of a DPA is ended; 0: never */
	uint64_t sync_wait_ms;        /* milliseconds after which a direct wait for a sync event fails; 0: never */

	/* The time model of the DMA engine (schedule.h). All 0: none, tasks are as fast as their copies. */
	uint64_t dma_latency_ns;       /* latency of one task, in addition to the time for its bytes */
	uint64_t dma_task_mb_per_s;    /* rate of one task alone, in 10^6 bytes per second; 0: no time */
	uint64_t dma_read_mb_per_s;    /* rate of all tasks of a device that read from the other side; 0: unlimited */
	uint64_t dma_write_mb_per_s;   /* rate of all tasks of a device that write to the other side; 0: unlimited */
	uint64_t dma_read_gap_ns;      /* minimum time from the start of a read to the start of the next */
	uint64_t dma_write_gap_ns;     /* minimum time from the start of a write to the start of the next */
	uint64_t dma_optimized_gap_ns; /* replaces both for tasks with OPTIMIZE_REPORTS; 0: not replaced */
	uint64_t dma_at_once;          /* tasks of a device between start and completion, at most 1024; 0: unlimited */
	uint64_t move_bytes;           /* 0: tasks complete by the time model, and no byte is copied */
	uint64_t model;                /* the preset that was named (limit.h), from 1; 0: none */
};

/* The defaults; no time model. */
extern const struct soft_limits soft_default_limits;

struct soft_faults; /* fault.h */

/*
 * The result of one soft_configure. Readers hold pointers into it without a lock, so it is replaced, never changed, and
 * the previous ones are kept.
 */
/* The PCI addresses of the two sides without their functions, as "0000:b1:00". */
struct soft_places {
	char host[sizeof("DDDD:BB:DD")], dpu[sizeof("DDDD:BB:DD")];
};

struct soft_config {
	struct soft_config *previous;
	struct soft_limits limits;
	uint32_t quirks;         /* bits by enum soft_quirk */
	uint32_t function_kinds; /* bits by enum doca_pci_func_type */
	struct soft_places places;
	struct soft_faults *faults;
	unsigned num_users;
	uid_t users[SOFT_MAX_USERS]; /* other users whose processes may be peers */
	int dirfd;
	char dir[PATH_MAX];
};

/* Returns the configuration in force; NULL before soft_configure. Any thread may call this and what follows. */
const struct soft_config *soft_config(void);

/* Puts a new one in force; the previous ones stay reachable from it. One thread at a time. */
void soft_config_set(struct soft_config *config);

/* Removes and returns the configuration and all previous ones, which are now the caller's. */
struct soft_config *soft_config_take(void);

/* An open device holds the configuration, and drops it when it is closed. */
void soft_config_hold(void);
void soft_config_drop(void);
bool soft_config_is_held(void);

/* Returns the limits in force; before soft_configure, the defaults. */
const struct soft_limits *soft_limits(void);

/* Returns the faults in force; NULL: none. */
struct soft_faults *soft_faults(void);

/* Returns the path of the runtime directory; empty before soft_configure. */
const char *soft_runtime_dir(void);

/* Returns a descriptor of it, opened O_PATH; valid while the process lives. -1 before soft_configure. */
int soft_runtime_dirfd(void);

/* Reports whether users other than ours may be peers, so that sockets must be accessible to them. */
bool soft_has_other_users(void);

/* Reports whether a process of this user may be a peer by that configuration; NULL trusts only our own. */
bool soft_config_trusts(const struct soft_config *config, uid_t uid);

#endif
