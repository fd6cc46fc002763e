/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the software device share.
 *
 *   configure  from the texts of settings to their values ctx         context state machine
 *   config     the values in force, a leaf                limit       names and bounds of the limits
 *   dev*       devices, representors                      pe          progress engine, notification handle
 *   topology   which of them there are                    task        task ownership and submission
 *   mmap       memory maps                                dma*        memcpy tasks
 *   memory     what stands behind registered memory       comch*      control channel
 *   remote*    exported memory, seen from another process copy        copies that survive a shrinking file
 *   buf        buffers, chains, inventories               socket      sockets in the runtime directory
 *   consumer*, producer, fast, lane                       its fast path
 *   model      presets of the DMA engine's time model     schedule    its due times, and a device's clock
 *   quirk      what hardware does beside its documents    fault*      faults on request
 *   error      names of results                           detail      why the last call failed
 *   log        where its messages go                      version     its release
 *   dpa        what a DPA or a GPU would do               unsupported what else it does not have
 *   table      the functions as a table                   batch       batches of tasks
 *
 * Threads: as in DOCA, a progress engine and everything connected to it belong to one thread at a time. What is shared
 * by the whole process (device reference counts, the registry of exports) is behind locks in its own file.
 */
#ifndef DMA_COPY_SOFT_CORE_H
#define DMA_COPY_SOFT_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "config.h"
#include "schedule.h"
#include "shown.h"
#include "soft.h"

/* ---- detail, log ---- */

/* Sets what soft_last_detail answers, and logs it. Any thread may call. */
void soft_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line to whatever log there is, at DOCA_LOG_LEVEL_DEBUG or DOCA_LOG_LEVEL_WARNING. Any thread may call. */
void soft_log(uint32_t level, const char *message);

/* ---- dpa, unsupported ---- */

/* The answer of what the device does not have: a program that passes nonsense still learns so. */
static inline doca_error_t soft_unsupported(bool valid)
{
	return valid ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

/* ---- socket ---- */

/* chmod of what fd refers to, also if it was opened O_PATH, and never of what a symlink leads to. -1 with errno set. */
int soft_set_mode(int fd, mode_t mode);

/*
 * Sockets (AF_UNIX, SOCK_SEQPACKET, non-blocking, close-on-exec) under a short name in the runtime directory. Both
 * answer a descriptor or the negative errno. listen: -EADDRINUSE if somebody alive has the name; a dead one's is taken
 * over. connect waits at most timeout_ns for a place in the backlog; -ECONNREFUSED and -ENOENT: nobody is there.
 */
int soft_socket_listen(const char *name, int backlog);
int soft_socket_connect(const char *name, uint64_t timeout_ns);

/* Removes our listening socket's name. */
void soft_socket_unlink(const char *name);

/*
 * True if the other end belongs to our effective user or to one of DMA_COPY_SOFT_USERS; otherwise the detail says why
 * not. *pid is 0 if its process is invisible here.
 */
bool soft_socket_peer(int fd, pid_t *pid);

/* The other end is closed, or its process is gone. */
bool soft_socket_hung_up(int fd);

/* Removes sockets ("mem.*", "comch.*") that dead processes left in the runtime directory. A lock on the file "lock" in
 * it, which whoever makes a socket holds too, hides the moment between bind and listen. */
void soft_sweep_runtime_dir(void);

/* ---- dev ---- */

enum soft_side { SOFT_HOST, SOFT_DPU };

struct doca_devinfo {
	enum soft_side side;
	enum doca_pci_func_type kind;
	uint32_t sf_index;     /* of a scalable function */
	const char *pci_addr;  /* "0000:b1:00.0"; of a scalable function, its parent's */
	const char *comch_key; /* what Comch addresses know it by: unique, as long as a PCI address */
	const char *ibdev_name;
	const char *iface_name;
	uint16_t vhca_id;
};

struct doca_devinfo_rep {
	const struct doca_devinfo *function; /* of the host, which it represents */
	const char *vuid;
	const char *iface_name;
};

struct doca_dev {
	const struct doca_devinfo *info;
	struct soft_clock clock;
	atomic_uint users; /* mmaps, contexts and representors that hold it: close answers IN_USE while there are any */
	unsigned opened;   /* under dev.c's lock */
};

struct doca_dev_rep {
	const struct doca_devinfo_rep *info;
	struct doca_dev *dev;
	atomic_uint users;
};

/* ---- pe, ctx, task ---- */

/*
 * What a kind of context (DMA, Comch server, Comch client) gives to the shared state machine:
 *
 *            start == SUCCESS
 *   IDLE ────────────────────────► RUNNING ──── doca_ctx_stop, nothing outstanding ────► IDLE
 *     │                              ▲ │
 *     │ start == IN_PROGRESS         │ │ doca_ctx_stop, or soft_ctx_fail
 *     ▼                              │ ▼
 *   STARTING ── soft_ctx_running ────┘ STOPPING ── all tasks freed and quiet() ── progress ──► IDLE
 *     └──────── soft_ctx_fail (could not start) ── progress ──► IDLE
 */
struct soft_ctx_class {
	const char *name;
	bool is_comch;

	/* SUCCESS: it runs. IN_PROGRESS: progress will call soft_ctx_running or soft_ctx_fail. Else: refused, IDLE. */
	doca_error_t (*start)(struct doca_ctx *ctx);

	/* What doca_ctx_stop asks first: IN_USE while something must be stopped before. NULL: nothing ever must. */
	doca_error_t (*stoppable)(const struct doca_ctx *ctx);

	/* The context has just left RUNNING or STARTING for STOPPING: flush what is queued, tell the peers. */
	void (*stopping)(struct doca_ctx *ctx);

	/* Nothing but tasks (connections, say) keeps the context from IDLE. */
	bool (*quiet)(const struct doca_ctx *ctx);

	/* The context has just become IDLE: release what start acquired. */
	void (*idle)(struct doca_ctx *ctx);

	/* Delivers at most one event or completion. True if something moved. Called in every state but IDLE. */
	bool (*progress)(struct doca_ctx *ctx);

	/* CLOCK_MONOTONIC nanoseconds from when progress has something to do without any watched descriptor
	 * becoming readable; 0 = now; UINT64_MAX = never. */
	uint64_t (*ready_at)(const struct doca_ctx *ctx);

	/* What doca_task_try_submit checks first: INVALID_VALUE for a task that could only fail. */
	doca_error_t (*validate)(const struct doca_task *task);

	/* Takes the task: SUCCESS, or AGAIN when the queue is full. The shared code has checked state and ownership. */
	doca_error_t (*submit)(struct doca_task *task);

	/* The task has ended: calls the program's success or error callback. */
	void (*ended)(struct doca_task *task);

	/* The task goes back to its pool. */
	void (*release)(struct doca_task *task);
};

struct doca_ctx {
	const struct soft_ctx_class *class;
	struct doca_dev *dev;
	struct doca_pe *pe;
	struct doca_ctx *next; /* on the same pe */
	enum doca_ctx_states state;
	union doca_data user_data;
	doca_ctx_state_changed_callback_t state_changed;
	size_t allocated_tasks; /* taken from the pool and not yet freed */
	size_t inflight_tasks;  /* submitted and not yet completed */
};

/*
 *   POOLED ── allocated ──► OWNED ── submitted ──► SUBMITTED ── completes ──► OWNED
 *     ▲                       │                        │ doca_task_free
 *     │◄── doca_task_free ────┘                        ▼
 *     └◄─────────────────────── its callback has returned ── RELEASED
 */
enum soft_task_state { SOFT_TASK_POOLED, SOFT_TASK_OWNED, SOFT_TASK_SUBMITTED, SOFT_TASK_RELEASED };

/* Embedded first in every kind of task. */
struct doca_task {
	struct doca_ctx *ctx;
	struct doca_task *next; /* in its pool or in its context's queue */
	union doca_data user_data;
	doca_error_t status;
	enum soft_task_state state;
	bool optimized; /* submitted with OPTIMIZE_REPORTS */
};

/* Prepares the part of a context that all kinds share; the device gains a user. */
void soft_ctx_init(struct doca_ctx *ctx, const struct soft_ctx_class *class, struct doca_dev *dev);

/* IN_USE unless IDLE; otherwise disconnects it from its engine and drops the device. For X_destroy. */
doca_error_t soft_ctx_fini(struct doca_ctx *ctx);

/* STARTING -> RUNNING. */
void soft_ctx_running(struct doca_ctx *ctx);

/* RUNNING -> STOPPING or STARTING -> IDLE, for a reason of the device's own: a task failed, the peer is gone. */
void soft_ctx_fail(struct doca_ctx *ctx);

/* BAD_STATE unless IDLE: the guard of every configuration call. */
doca_error_t soft_ctx_configurable(const struct doca_ctx *ctx);

/* A submitted task has ended: its callback is called, and a task that was freed in flight goes back to its pool. */
void soft_task_complete(struct doca_task *task, doca_error_t status);

/* Counts a task out of its pool as allocated by the user. BAD_STATE unless the context is RUNNING. */
doca_error_t soft_task_take(struct doca_task *task, struct doca_ctx *ctx);

/* Adds fd to what wakes the engine, or takes it away again. OPERATING_SYSTEM. */
doca_error_t soft_pe_watch(struct doca_pe *pe, int fd, uint32_t epoll_events);
void soft_pe_unwatch(struct doca_pe *pe, int fd);

/* Work has appeared that no descriptor announces (a task was submitted); wakes an armed engine. */
void soft_pe_notify(struct doca_pe *pe);

/* A progress has ended, or a submission was told to try again (moved is false). Polling in vain yields the CPU. */
void soft_pe_polled(struct doca_pe *pe, bool moved);

uint64_t soft_now_ns(void);

/* ---- mmap, remote ---- */

struct soft_import; /* another process's exported memory */
struct soft_export;

#define SOFT_MMAP_MAX_DEVS 16 /* more than there are devices */

struct doca_mmap {
	bool started, was_started, has_range;
	void *addr;
	size_t len;
	uint32_t permissions;
	uint32_t max_devs, num_devs;
	struct doca_dev *devs[SOFT_MMAP_MAX_DEVS]; /* an import has exactly one */
	atomic_uint bufs;
	bool thread_safe;      /* buffers are not counted, and not waited for */
	atomic_uint consumers; /* that were made over it */
	atomic_uint shared;    /* by consumers, with producers that may write into it */
	union doca_data user_data;
	doca_mmap_memrange_free_cb_t *free_cb;
	void *free_cookie;
	struct soft_export *export; /* NULL until exported; dies at stop */
	struct soft_import *import; /* non-NULL: made by create_from_export */
};

bool soft_mmap_has_dev(const struct doca_mmap *mmap, const struct doca_dev *dev);

struct soft_range {
	void *addr; /* in the exporter's address space */
	size_t len;
	uint32_t permissions; /* the exporter's PCI_READ_ONLY or PCI_READ_WRITE */
};

/* Makes [addr, len) reachable for whoever holds the descriptor. The descriptor lives as long as the export. */
doca_error_t soft_export_open(const struct soft_range *range, struct soft_export **export);
void soft_export_descriptor(const struct soft_export *export, const void **desc, size_t *len);

/* Ends all access at once: on SUCCESS no importer is touching, or will touch, the memory. IN_USE: one is stopped in the
 * middle of a copy, or lies about it; none can begin another, the export stays, and this can be called again. */
doca_error_t soft_export_close(struct soft_export *export);

/* INVALID_VALUE: not one of our descriptors. DRIVER: the exporter is gone, or refuses. */
doca_error_t soft_import_open(const void *desc, size_t len, struct soft_import **import, struct soft_range *range);
void soft_import_close(struct soft_import *import);

/* Copies between local memory and the exporter's [remote, remote + len), which the caller has found to lie within the
 * range. IO_FAILED if the exporter revoked it, died, or its memory is not there; NOT_PERMITTED if the kernel refuses. */
doca_error_t soft_import_read(struct soft_import *import, void *local, const void *remote, size_t len);
doca_error_t soft_import_write(struct soft_import *import, void *remote, const void *local, size_t len);

/* ---- copy ---- */

/* Copies within this process. Memory of MEMORY_FILE kind is accessed by pread and pwrite, so that a file which shrank
 * is IO_FAILED and not a SIGBUS. */
doca_error_t soft_copy_local(void *to, const void *from, size_t len);

/* The same where one end is a mapping that can be trusted to stay. */
doca_error_t soft_copy_from_mapping(void *to, const void *mapped, size_t len);
doca_error_t soft_copy_to_mapping(void *mapped, const void *from, size_t len);

/* All of len bytes between local memory and [offset, offset + len) of fd, which is never extended. IO_FAILED. */
doca_error_t soft_copy_from_fd(int fd, uint64_t offset, void *to, size_t len);
doca_error_t soft_copy_to_fd(int fd, uint64_t offset, const void *from, size_t len);

/* ---- buf ---- */

struct doca_buf {
	struct doca_buf_inventory *inventory;
	struct doca_mmap *mmap;
	uint8_t *head;
	size_t len;
	uint8_t *data;
	size_t data_len;
	uint16_t refcount;
	bool counted;           /* by its mmap */
	struct doca_buf *next;  /* in its chain, or in the inventory's free list */
	struct doca_buf *first; /* of its chain; itself when alone or first */
	struct doca_buf *last;  /* valid in the first of a chain */
};

/* NULL if a task of a context on dev may use the buffer, otherwise the reason. */
const char *soft_buf_usage_error(const struct doca_buf *buf, const struct doca_dev *dev);

/* Bytes that fit behind the data. Only for buffers that may be used. */
size_t soft_buf_tailroom(const struct doca_buf *buf);

#endif
