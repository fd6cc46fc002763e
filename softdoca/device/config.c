/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static _Atomic(struct soft_config *) current;
static atomic_uint holders;

/* BlueField's published numbers, or modest values where none is published. */
const struct soft_limits soft_default_limits = {
	.max_buf_size = 2 << 20,
	.max_buf_list_len = 64,
	.max_dma_tasks = 1024,
	.max_msg_size = 4080,
	.max_name_len = 64,
	.max_recv_queue_size = 8192,
	.max_send_tasks = 8192,
	.max_clients = 512,
	.max_fast_tasks = 1024,
	.max_fast_buf_size = 1 << 30,
	.max_imm_data_len = 128,
	.max_consumers = 64,
	.max_producers = 64,
	.max_export_size = 256,
	.task_latency_us = 0,
	.pin_files = 1,
	.remote_mapping = 1,
	.dpa_kernel_ms = 12000,
	.sync_wait_ms = 0,
	.move_bytes = 1,
};

const struct soft_config *soft_config(void)
{
	return atomic_load(&current);
}

void soft_config_set(struct soft_config *config)
{
	config->previous = atomic_load(&current);
	atomic_store(&current, config);
}

struct soft_config *soft_config_take(void)
{
	return atomic_exchange(&current, NULL);
}

void soft_config_hold(void)
{
	atomic_fetch_add(&holders, 1);
}

void soft_config_drop(void)
{
	atomic_fetch_sub(&holders, 1);
}

bool soft_config_is_held(void)
{
	return atomic_load(&holders) > 0;
}

const struct soft_limits *soft_limits(void)
{
	const struct soft_config *now = atomic_load(&current);
	return now == NULL ? &soft_default_limits : &now->limits;
}

struct soft_faults *soft_faults(void)
{
	const struct soft_config *now = atomic_load(&current);
	return now == NULL ? NULL : now->faults;
}

bool soft_has_other_users(void)
{
	const struct soft_config *now = atomic_load(&current);
	return now != NULL && now->num_users > 0;
}

bool soft_config_trusts(const struct soft_config *config, uid_t uid)
{
	if (uid == geteuid())
		return true;
	for (unsigned i = 0; config != NULL && i < config->num_users; i++) {
		if (config->users[i] == uid)
			return true;
	}
	return false;
}

const char *soft_runtime_dir(void)
{
	const struct soft_config *now = atomic_load(&current);
	return now == NULL ? "" : now->dir;
}

int soft_runtime_dirfd(void)
{
	const struct soft_config *now = atomic_load(&current);
	return now == NULL ? -1 : now->dirfd;
}
