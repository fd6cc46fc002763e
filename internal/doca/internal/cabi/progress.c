/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

/*
 * In the default mode an armed engine delivers nothing until it is cleared, so the progress that must follow arming
 * finds nothing. The other mode delivers; releases without it have only the default.
 */
static struct outcome configure(struct progress *p)
{
	if (p->ops->doca_pe_set_event_mode != NULL)
		TRY(p->ops, doca_pe_set_event_mode, p->pe, DOCA_PE_EVENT_MODE_PROGRESS_ALL);
	TRY(p->ops, doca_pe_get_notification_handle, p->pe, &p->fd);
	return OUTCOME_SUCCESS;
}

struct outcome progress_open(struct progress *p, const struct doca_ops *ops)
{
	*p = (struct progress){.ops = ops, .fd = -1};
	TRY(ops, doca_pe_create, &p->pe);
	struct outcome o = configure(p);
	if (o.status != DOCA_SUCCESS) {
		ops->doca_pe_destroy(p->pe);
		p->pe = NULL;
	}
	return o;
}

struct outcome progress_arm(const struct progress *p)
{
	TRY(p->ops, doca_pe_request_notification, p->pe);
	return OUTCOME_SUCCESS;
}

struct outcome progress_clear(const struct progress *p)
{
	TRY(p->ops, doca_pe_clear_notification, p->pe, 0);
	return OUTCOME_SUCCESS;
}

_Static_assert(PROGRESS_STATE_UNKNOWN > DOCA_CTX_STATE_STOPPING, "must be none of DOCA's");

uint32_t progress_state(const struct progress *p)
{
	enum doca_ctx_states state;
	if (p->ctx == NULL)
		return DOCA_CTX_STATE_IDLE;
	if (p->ops->doca_ctx_get_state(p->ctx, &state) != DOCA_SUCCESS)
		return PROGRESS_STATE_UNKNOWN;
	return state;
}

struct outcome progress_connect(const struct progress *p, void *user_data)
{
	TRY(p->ops, doca_ctx_set_user_data, p->ctx, (union doca_data){.ptr = user_data});
	TRY(p->ops, doca_pe_connect_ctx, p->pe, p->ctx);
	return OUTCOME_SUCCESS;
}

struct outcome progress_stop(const struct progress *p)
{
	if (progress_state(p) == DOCA_CTX_STATE_IDLE)
		return OUTCOME_SUCCESS;
	TRY(p->ops, doca_ctx_stop, p->ctx);
	return OUTCOME_SUCCESS;
}

struct outcome progress_close(struct progress *p)
{
	if (p->pe == NULL)
		return OUTCOME_SUCCESS;
	TRY(p->ops, doca_pe_destroy, p->pe);
	p->pe = NULL;
	return OUTCOME_SUCCESS;
}
