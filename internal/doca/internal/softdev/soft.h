/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software device: DOCA's functions over shared memory and local sockets, for machines without a BlueField. It
 * keeps the rules of the hardware, and where the hardware is lenient it is strict, so that what runs here runs there.
 */
#ifndef DMA_COPY_SOFT_H
#define DMA_COPY_SOFT_H

#include <limits.h>
#include <stdbool.h>

#include "ops.h"

/* The software device as a table of DOCA functions, as configured so far. Any thread may call. */
const struct doca_ops *soft_ops(void);

/*
 * Sets the runtime directory and the limits of this process's software device. A NULL takes the environment's value
 * (DMA_COPY_SOFT_DIR, DMA_COPY_SOFT_LIMITS), and where that is unset the default. limits is "name=value,name=value"
 * with the names of struct soft_limits. On failure nothing changes and error receives one sentence.
 *
 * DOCA_ERROR_INVALID_VALUE: unknown name or bad value. DOCA_ERROR_OPERATING_SYSTEM: the directory cannot be used.
 * DOCA_ERROR_IN_USE: devices are open. Never called, it happens by itself with NULLs at the first device list.
 */
doca_error_t soft_configure(const char *dir, const char *limits, char *error, size_t error_size);

/* The runtime directory that soft_configure(dir, ...) would use; nothing is made or looked at. False: too long a name. */
bool soft_choose_dir(const char *dir, char path[PATH_MAX]);

/* Gives back what soft_configure has taken. For a library that is about to be unloaded: nothing of the device may be in use. */
void soft_unconfigure(void);

/* The same with all there is to set: quirks (quirk.h, DMA_COPY_SOFT_QUIRKS), functions (topology.h,
 * DMA_COPY_SOFT_FUNCTIONS), faults (fault.h, DMA_COPY_SOFT_FAULTS), whose counters begin anew, and the other users
 * (DMA_COPY_SOFT_USERS). */
struct soft_settings {
	const char *dir;
	const char *limits;
	const char *quirks;
	const char *faults;
	const char *functions;
	const char *users; /* "uid,uid" of those whose processes may be peers */
};
doca_error_t soft_configure_all(const struct soft_settings *settings, char *error, size_t error_size);

/* Reports whether a process of this user may be a peer, and may own the runtime directory, by the environment as it is.
 * Nothing is configured. */
bool soft_would_trust_user(uint32_t uid);

/*
 * The time model in force, in one line; empty without one. False: no bytes are moved (move_bytes=0), so whatever a task
 * should have copied is not there. Configures if nobody has.
 */
bool soft_describe_model(char *text, size_t size);

/*
 * Why the last failure of this process failed, in one sentence that names what to change where something can be changed;
 * empty if the result code says it all. The first form returns a copy that is valid until the thread asks again.
 */
const char *soft_last_detail(void);
void soft_copy_last_detail(char *text, size_t size);

/* Empties it, so that what is there after the next failure belongs to that. */
void soft_clear_detail(void);

/*
 * Beside DOCA, which lets a client go back to idle and does not say why: what the last server answered that did not take
 * the client in since its start. INVALID_VALUE: their messages have different maximum sizes. FULL: it has as many clients
 * as it can. SHUTDOWN: it stops. SUCCESS: none answered. Called where the client is.
 */
doca_error_t soft_comch_client_refusal(const struct doca_comch_client *client);

/* Every function of the list exists as soft_<name>. */
#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret soft_##name params;
#define DOCA_PROC(lib, need, name, params, args, former) void soft_##name params;
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret soft_##name(void);
#include "doca_functions.def"

#endif
