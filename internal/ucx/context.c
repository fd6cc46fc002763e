//go:build ucx

/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "context.h"
#include "quiet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- contexts ---- */

static ucs_status_t configure(const struct ucp_library *ucp, const char *settings, ucp_config_t *config)
{
	for (const char *name = settings; *name != '\0';) {
		const char *value = name + strlen(name) + 1;
		ucs_status_t status = ucp->ucp_config_modify(config, name, value);
		if (status != UCS_OK)
			return status;
		name = value + strlen(value) + 1;
	}
	return UCS_OK;
}

/* Workers of one context belong to several threads, so UCX has to lock what they share. */
static ucs_status_t init(struct ucx_context *context, const ucp_config_t *config)
{
	const ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
		.features = context->features,
		.mt_workers_shared = 1,
	};
	sigset_t before = signals_block();
	ucs_status_t status =
		context->ucp->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context->handle);
	signals_restore(&before);
	return status;
}

struct ucx_opened ucx_context_open(const struct ucp_library *ucp, const char *settings, uint64_t features)
{
	struct ucx_context *context = calloc(1, sizeof(*context));
	if (context == NULL)
		return (struct ucx_opened){UCS_ERR_NO_MEMORY, NULL};
	*context = (struct ucx_context){.ucp = ucp, .features = features};
	ucp_config_t *config;
	ucs_status_t status = ucp->ucp_config_read(NULL, NULL, &config);
	if (status == UCS_OK) {
		status = configure(ucp, settings, config);
		if (status == UCS_OK)
			status = init(context, config);
		ucp->ucp_config_release(config);
	}
	if (status == UCS_OK)
		return (struct ucx_opened){UCS_OK, context};
	free(context);
	return (struct ucx_opened){status, NULL};
}

void ucx_context_close(struct ucx_context *context)
{
	context->ucp->ucp_cleanup(context->handle);
	free(context);
}

char *ucx_context_describe(const struct ucx_context *context)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	if (stream == NULL)
		return NULL;
	context->ucp->ucp_context_print_info(context->handle, stream);
	fclose(stream);
	return text;
}

/* ---- memory ---- */

static unsigned protection(uint32_t access)
{
	return (access & UCX_LOCAL_READ ? UCP_MEM_MAP_PROT_LOCAL_READ : 0) |
	       (access & UCX_LOCAL_WRITE ? UCP_MEM_MAP_PROT_LOCAL_WRITE : 0) |
	       (access & UCX_REMOTE_READ ? UCP_MEM_MAP_PROT_REMOTE_READ : 0);
}

/* Sets the address of memory that UCX has allocated. */
static ucs_status_t locate(const struct ucp_library *ucp, struct ucx_memory *memory)
{
	ucp_mem_attr_t attributes = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	ucs_status_t status = ucp->ucp_mem_query(memory->handle, &attributes);
	memory->address = attributes.address;
	return status;
}

struct ucx_opened ucx_memory_map(const struct ucx_context *context, void *address, uint64_t length, uint32_t access)
{
	struct ucx_memory *memory = calloc(1, sizeof(*memory));
	if (memory == NULL)
		return (struct ucx_opened){UCS_ERR_NO_MEMORY, NULL};
	memory->address = address;
	const ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			      UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_PROT |
			      UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
		.address = address,
		.length = length,
		.flags = address == NULL ? UCP_MEM_MAP_ALLOCATE : 0,
		.prot = protection(access),
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};
	ucs_status_t status = context->ucp->ucp_mem_map(context->handle, &params, &memory->handle);
	if (status == UCS_OK && address == NULL) {
		status = locate(context->ucp, memory);
		if (status != UCS_OK)
			context->ucp->ucp_mem_unmap(context->handle, memory->handle);
	}
	if (status == UCS_OK)
		return (struct ucx_opened){UCS_OK, memory};
	free(memory);
	return (struct ucx_opened){status, NULL};
}

ucs_status_t ucx_memory_unmap(const struct ucx_context *context, struct ucx_memory *memory)
{
	if (__atomic_load_n(&memory->users, __ATOMIC_ACQUIRE) > 0)
		return UCS_ERR_BUSY;
	ucs_status_t status = context->ucp->ucp_mem_unmap(context->handle, memory->handle);
	if (status == UCS_OK)
		free(memory);
	return status;
}

void ucx_memory_use(struct ucx_memory *memory)
{
	__atomic_add_fetch(&memory->users, 1, __ATOMIC_RELAXED);
}

void ucx_memory_release(struct ucx_memory *memory)
{
	__atomic_sub_fetch(&memory->users, 1, __ATOMIC_RELEASE);
}

void ucx_memory_abandon(struct ucx_memory *memory)
{
	__atomic_store_n(&memory->abandoned, 1, __ATOMIC_RELEASE);
}
