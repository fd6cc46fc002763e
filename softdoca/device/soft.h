/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software device: DOCA's functions over shared memory and local sockets, for machines without a BlueField. It
 * enforces the rules of the hardware, also where the hardware is lenient, so that what runs here runs there.
 */
#ifndef DMA_COPY_SOFT_H
#define DMA_COPY_SOFT_H

#include <limits.h>
#include <stdbool.h>

#include "ops.h"

/* Returns the device as a table of DOCA functions, as configured so far. Any thread may call. */
const struct doca_ops *soft_ops(void);

/*
 * Sets the runtime directory and the limits of this process's software device. NULL means the environment's value
 * (DMA_COPY_SOFT_DIR, DMA_COPY_SOFT_LIMITS), and if that is unset the default. limits is "name=value,name=value" with
 * the names of struct soft_limits. On failure nothing changes and error receives one sentence.
 * DOCA_ERROR_INVALID_VALUE: unknown name or bad value. DOCA_ERROR_OPERATING_SYSTEM: the directory cannot be used.
 * DOCA_ERROR_IN_USE: devices are open. The first device list calls it with NULLs unless a program has.
 */
doca_error_t soft_configure(const char *dir, const char *limits, char *error, size_t error_size);

/* Writes the runtime directory that soft_configure(dir, ...) would use, without any access. False: name too long. */
bool soft_choose_dir(const char *dir, char path[PATH_MAX]);

/* Frees what soft_configure allocated, before the library is unloaded. Nothing of the device may be in use. */
void soft_unconfigure(void);

/*
 * All settings: also quirks (quirk.h, DMA_COPY_SOFT_QUIRKS), functions (dev.h, DMA_COPY_SOFT_FUNCTIONS), faults
 * (fault.h, DMA_COPY_SOFT_FAULTS), whose counters restart, and other users (DMA_COPY_SOFT_USERS).
 */
struct soft_settings {
	const char *dir;
	const char *limits;
	const char *quirks;
	const char *faults;
	const char *functions;
	const char *users; /* "uid,uid": other users whose processes may be peers */
};
doca_error_t soft_configure_all(const struct soft_settings *settings, char *error, size_t error_size);

/*
 * Reports whether a process of this user may be a peer, and may own the runtime directory, by the present environment.
 * Nothing is configured.
 */
bool soft_would_trust_user(uint32_t uid);

/*
 * Returns the name that a function has in the addresses of Comch sockets (soft_comch_address_make): of the function
 * with this PCI address in the long form, of the PF if it shares it with an SF, or with this RDMA or network device, or
 * whose representor has this VUID or network device. NULL: there is none.
 */
const char *soft_comch_key(const char *name);

/*
 * Writes the time model in force, in one line; empty without one. False: no bytes are moved (move_bytes=0), so tasks
 * complete without copying. Configures the device unless it is.
 */
bool soft_describe_model(char *text, size_t size);

/*
 * The detail of the last failure of this process: one sentence that says why, and what to change if something can be
 * changed; empty if the result code says it all. The first form returns a copy, valid until the thread's next call.
 */
const char *soft_last_detail(void);
void soft_copy_last_detail(char *text, size_t size);

/* Clears the detail, so that one found after the next failure belongs to it. */
void soft_clear_detail(void);

/*
 * Returns why the last server refused the client since its start, which DOCA does not say when a client returns to
 * IDLE. INVALID_VALUE: the sides chose different maximum message sizes. FULL: the server has its maximum of clients.
 * SHUTDOWN: it stops. SUCCESS: no server answered. Called on the client's thread.
 */
doca_error_t soft_comch_client_refusal(const struct doca_comch_client *client);

/* Every function of the list exists as soft_<name>. */
#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret soft_##name params;
#define DOCA_PROC(lib, need, name, params, args, former) void soft_##name params;
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret soft_##name(void);
#include "doca_functions.def"

#endif
