/* SPDX-License-Identifier: Apache-2.0 */
#include "engines.h"

#include <doca_error.h>

doca_error_t engines_create(struct engines *engines)
{
	doca_error_t result = doca_pe_create(&engines->control);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_pe_create(&engines->data);
	if (result != DOCA_SUCCESS)
		doca_pe_destroy(engines->control);
	return result;
}

void engines_destroy(struct engines *engines)
{
	doca_pe_destroy(engines->data);
	doca_pe_destroy(engines->control);
}

void engines_progress(const struct engines *engines)
{
	(void)doca_pe_progress(engines->control);
	if (engines->data != NULL)
		(void)doca_pe_progress(engines->data);
}

enum doca_ctx_states engines_state_of(const struct doca_ctx *ctx)
{
	enum doca_ctx_states state = DOCA_CTX_STATE_IDLE;
	(void)doca_ctx_get_state(ctx, &state);
	return state;
}

doca_error_t engines_start(const struct engines *engines, struct doca_ctx *ctx)
{
	doca_error_t result = doca_ctx_start(ctx);
	if (result != DOCA_ERROR_IN_PROGRESS)
		return result;
	while (engines_state_of(ctx) == DOCA_CTX_STATE_STARTING)
		engines_progress(engines);
	return engines_state_of(ctx) == DOCA_CTX_STATE_RUNNING ? DOCA_SUCCESS : DOCA_ERROR_NOT_CONNECTED;
}

/* A stop that was refused for the moment (AGAIN, IN_USE) is asked for again. */
void engines_stop(const struct engines *engines, struct doca_ctx *ctx)
{
	enum doca_ctx_states state;
	while ((state = engines_state_of(ctx)) != DOCA_CTX_STATE_IDLE) {
		if (state != DOCA_CTX_STATE_STOPPING)
			(void)doca_ctx_stop(ctx);
		engines_progress(engines);
	}
}
