/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"

#include <stdlib.h>

#include "soft_dpa.h"

/* ---- creation and destruction ---- */

doca_error_t soft_doca_dpa_completion_create(struct doca_dpa *dpa, unsigned int queue_size,
					     struct doca_dpa_completion **dpa_comp)
{
	if (dpa == NULL || dpa_comp == NULL || soft_dpa_queue_size(queue_size) == 0)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_dpa_completion *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	created->dpa = dpa;
	created->queue_size = soft_dpa_queue_size(queue_size);
	soft_dpa_use(dpa);
	soft_dpa_lock();
	soft_object_add(&created->object, SOFT_OBJECT_COMPLETION, created);
	soft_dpa_unlock();
	*dpa_comp = created;
	return DOCA_SUCCESS;
}

/* Stops it too. */
doca_error_t soft_doca_dpa_completion_destroy(struct doca_dpa_completion *dpa_comp)
{
	if (dpa_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (soft_doca_dpa_completion_stop(dpa_comp) == DOCA_ERROR_IN_USE)
		return DOCA_ERROR_IN_USE;
	soft_dpa_lock();
	soft_object_remove(&dpa_comp->object);
	soft_dpa_unlock();
	if (dpa_comp->thread != NULL)
		soft_thread_unuse(dpa_comp->thread);
	soft_dpa_unuse(dpa_comp->dpa);
	free(dpa_comp);
	return DOCA_SUCCESS;
}

/* ---- configuration ---- */

static bool is_started(const struct doca_dpa_completion *completion)
{
	soft_dpa_lock();
	bool started = completion->started;
	soft_dpa_unlock();
	return started;
}

doca_error_t soft_doca_dpa_completion_set_thread(struct doca_dpa_completion *dpa_comp,
						 struct doca_dpa_thread *dpa_thread)
{
	if (dpa_comp == NULL || dpa_thread == NULL || dpa_thread->dpa != dpa_comp->dpa)
		return DOCA_ERROR_INVALID_VALUE;
	if (is_started(dpa_comp))
		return DOCA_ERROR_BAD_STATE;
	soft_thread_use(dpa_thread);
	if (dpa_comp->thread != NULL)
		soft_thread_unuse(dpa_comp->thread);
	dpa_comp->thread = dpa_thread;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_completion_get_thread(struct doca_dpa_completion *dpa_comp,
						 struct doca_dpa_thread **dpa_thread)
{
	if (dpa_comp == NULL || dpa_thread == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*dpa_thread = dpa_comp->thread;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_dpa_completion_get_queue_size(struct doca_dpa_completion *dpa_comp, unsigned int *queue_size)
{
	if (dpa_comp == NULL || queue_size == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*queue_size = dpa_comp->queue_size;
	return DOCA_SUCCESS;
}

/* ---- start and stop ---- */

doca_error_t soft_doca_dpa_completion_start(struct doca_dpa_completion *dpa_comp)
{
	if (dpa_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	bool thread_started = dpa_comp->thread == NULL || soft_thread_is_started(dpa_comp->thread);
	if (!soft_dpa_is_started(dpa_comp->dpa) || !thread_started || is_started(dpa_comp))
		return DOCA_ERROR_BAD_STATE;
	struct soft_completion_element *elements = calloc(dpa_comp->queue_size, sizeof(*elements));
	if (elements == NULL)
		return DOCA_ERROR_NO_MEMORY;
	soft_dpa_lock();
	soft_ring_start(&dpa_comp->ring, dpa_comp->queue_size, dpa_comp->thread);
	dpa_comp->elements = elements;
	dpa_comp->started = true;
	soft_dpa_unlock();
	return DOCA_SUCCESS;
}

/* Elements that were not polled are lost. */
doca_error_t soft_doca_dpa_completion_stop(struct doca_dpa_completion *dpa_comp)
{
	if (dpa_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = DOCA_SUCCESS;
	soft_dpa_lock();
	if (!dpa_comp->started) {
		result = DOCA_ERROR_BAD_STATE;
	} else if (dpa_comp->users > 0) {
		result = DOCA_ERROR_IN_USE;
	} else {
		dpa_comp->started = false;
		free(dpa_comp->elements);
		dpa_comp->elements = NULL;
	}
	soft_dpa_unlock();
	return result;
}

doca_error_t soft_doca_dpa_completion_get_dpa_handle(struct doca_dpa_completion *dpa_comp,
						     doca_dpa_dev_completion_t *handle)
{
	if (dpa_comp == NULL || handle == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!is_started(dpa_comp))
		return DOCA_ERROR_BAD_STATE;
	*handle = dpa_comp->object.handle;
	return DOCA_SUCCESS;
}

void soft_completion_push(struct doca_dpa_completion *completion, struct soft_kernel *kernel,
			  doca_dpa_dev_completion_type_t type, uint32_t user_data)
{
	if (soft_ring_is_full(&completion->ring)) {
		soft_kernel_error(
			kernel, "a completion queue of %u elements is full: poll and ack completions, or request fewer",
			(unsigned)completion->queue_size);
		return;
	}
	completion->elements[soft_ring_arrive(&completion->ring)] =
		(struct soft_completion_element){.type = type, .user_data = user_data};
}

/* ---- device functions ---- */

/* Returns NULL, and notes the error, for a handle of no running context of the kernel's DPA. */
static struct doca_dpa_completion *find_completion(struct soft_kernel *kernel, uint64_t handle, const char *function)
{
	struct doca_dpa_completion *completion = soft_object_find(SOFT_OBJECT_COMPLETION, handle);
	if (completion != NULL && completion->started && completion->dpa == kernel->dpa)
		return completion;
	soft_kernel_error(kernel, "%s with the handle of no started completion context of this DPA", function);
	return NULL;
}

int soft_doca_dpa_dev_get_completion(doca_dpa_dev_completion_t dpa_comp_handle,
				     doca_dpa_dev_completion_element_t *comp_element)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_get_completion");
	if (kernel == NULL)
		return 0;
	struct doca_dpa_completion *completion =
		find_completion(kernel, dpa_comp_handle, "doca_dpa_dev_get_completion");
	uint64_t element = completion == NULL ? 0 : soft_ring_poll(&completion->ring, completion->object.handle);
	if (element != 0)
		*comp_element = element;
	soft_kernel_leave_poll(kernel, element != 0);
	return element != 0;
}

/* Returns zeros, and notes the error, for an element that was acked. */
static struct soft_completion_element read_element(uint64_t element, const char *function)
{
	struct soft_completion_element read = {.type = DOCA_DPA_DEV_COMP_SEND};
	struct soft_kernel *kernel = soft_kernel_enter(function);
	if (kernel == NULL)
		return read;
	const struct doca_dpa_completion *completion = find_completion(kernel, soft_ring_context(element), function);
	uint32_t place;
	if (completion != NULL && soft_ring_place(&completion->ring, element, &place))
		read = completion->elements[place];
	else if (completion != NULL)
		soft_kernel_error(kernel, "%s of an element that was acked", function);
	soft_kernel_leave(kernel);
	return read;
}

doca_dpa_dev_completion_type_t soft_doca_dpa_dev_get_completion_type(doca_dpa_dev_completion_element_t comp_element)
{
	return read_element(comp_element, "doca_dpa_dev_get_completion_type").type;
}

uint32_t soft_doca_dpa_dev_get_completion_user_data(doca_dpa_dev_completion_element_t comp_element)
{
	return read_element(comp_element, "doca_dpa_dev_get_completion_user_data").user_data;
}

void soft_doca_dpa_dev_completion_ack(doca_dpa_dev_completion_t dpa_comp_handle, uint64_t num_comp)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_completion_ack");
	if (kernel == NULL)
		return;
	struct doca_dpa_completion *completion =
		find_completion(kernel, dpa_comp_handle, "doca_dpa_dev_completion_ack");
	if (completion != NULL && num_comp > soft_ring_unacked(&completion->ring)) {
		soft_kernel_error(kernel, "doca_dpa_dev_completion_ack of more elements than were polled");
	} else if (completion != NULL) {
		for (; num_comp > 0; num_comp--)
			soft_ring_ack(&completion->ring);
	}
	soft_kernel_leave(kernel);
}

void soft_doca_dpa_dev_completion_request_notification(doca_dpa_dev_completion_t dpa_comp_handle)
{
	struct soft_kernel *kernel = soft_kernel_enter("doca_dpa_dev_completion_request_notification");
	if (kernel == NULL)
		return;
	struct doca_dpa_completion *completion =
		find_completion(kernel, dpa_comp_handle, "doca_dpa_dev_completion_request_notification");
	if (completion != NULL)
		soft_ring_arm(&completion->ring);
	soft_kernel_leave(kernel);
}
