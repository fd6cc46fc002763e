/* SPDX-License-Identifier: Apache-2.0 */
#include "consumer_completion.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "error.h"
#include "kernel.h"
#include "soft_dpa.h"

/* The byte that overwrites an acknowledged message, so that a kernel that still reads it does not find it. */
#define ACKED 0xdd

/* The address sanitizer's, in programs that have it; then a read of an acked message ends the program. */
void __asan_poison_memory_region(const volatile void *addr, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *addr, size_t size) __attribute__((weak));

static void hide(uint8_t *bytes, size_t len)
{
	memset(bytes, ACKED, len);
	if (__asan_poison_memory_region != NULL)
		__asan_poison_memory_region(bytes, len);
}

static void show(uint8_t *bytes, size_t len)
{
	if (__asan_unpoison_memory_region != NULL)
		__asan_unpoison_memory_region(bytes, len);
}

/* ---- creation and destruction ---- */

/*
 * No default is documented: one consumer, as many receives as one can have, and the longest immediate data, so that
 * programs that leave the settings out work.
 */
doca_error_t soft_doca_comch_consumer_completion_create(struct doca_comch_consumer_completion **consumer_comp)
{
	if (consumer_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_comch_consumer_completion *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	created->max_num_consumers = 1;
	created->max_num_recv = soft_dpa_queue_size((uint32_t)soft_limits()->max_fast_tasks);
	created->imm_data_len = SOFT_MSGQ_IMM;
	soft_dpa_lock();
	soft_object_add(&created->object, SOFT_OBJECT_CONSUMER_COMPLETION, created);
	soft_dpa_unlock();
	*consumer_comp = created;
	return DOCA_SUCCESS;
}

static bool is_started(const struct doca_comch_consumer_completion *completion)
{
	soft_dpa_lock();
	bool started = completion->started;
	soft_dpa_unlock();
	return started;
}

doca_error_t soft_doca_comch_consumer_completion_destroy(struct doca_comch_consumer_completion *consumer_comp)
{
	if (consumer_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (is_started(consumer_comp))
		return DOCA_ERROR_IN_USE;
	soft_dpa_lock();
	soft_object_remove(&consumer_comp->object);
	soft_dpa_unlock();
	if (consumer_comp->thread != NULL)
		soft_thread_unuse(consumer_comp->thread);
	free(consumer_comp);
	return DOCA_SUCCESS;
}

/* ---- configuration ---- */

doca_error_t soft_doca_comch_consumer_completion_set_dpa_thread(struct doca_comch_consumer_completion *consumer_comp,
								struct doca_dpa_thread *dpa_thread)
{
	if (consumer_comp == NULL || dpa_thread == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (is_started(consumer_comp))
		return DOCA_ERROR_BAD_STATE;
	soft_thread_use(dpa_thread);
	if (consumer_comp->thread != NULL)
		soft_thread_unuse(consumer_comp->thread);
	consumer_comp->thread = dpa_thread;
	return DOCA_SUCCESS;
}

static doca_error_t set(struct doca_comch_consumer_completion *completion, uint32_t *setting, uint32_t value)
{
	if (value == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (is_started(completion))
		return DOCA_ERROR_BAD_STATE;
	*setting = value;
	return DOCA_SUCCESS;
}

doca_error_t
soft_doca_comch_consumer_completion_set_max_num_consumers(struct doca_comch_consumer_completion *consumer_comp,
							  uint32_t max_num_consumers)
{
	if (consumer_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return set(consumer_comp, &consumer_comp->max_num_consumers, soft_dpa_queue_size(max_num_consumers));
}

doca_error_t soft_doca_comch_consumer_completion_set_max_num_recv(struct doca_comch_consumer_completion *consumer_comp,
								  uint32_t max_num_recv)
{
	if (consumer_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return set(consumer_comp, &consumer_comp->max_num_recv, soft_dpa_queue_size(max_num_recv));
}

doca_error_t soft_doca_comch_consumer_completion_set_imm_data_len(struct doca_comch_consumer_completion *consumer_comp,
								  uint32_t imm_data_len)
{
	if (consumer_comp == NULL || imm_data_len > SOFT_MSGQ_IMM)
		return DOCA_ERROR_INVALID_VALUE;
	return set(consumer_comp, &consumer_comp->imm_data_len, imm_data_len);
}

doca_error_t
soft_doca_comch_consumer_completion_get_max_num_consumers(const struct doca_comch_consumer_completion *consumer_comp,
							  uint32_t *max_num_consumers)
{
	if (consumer_comp == NULL || max_num_consumers == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_consumers = consumer_comp->max_num_consumers;
	return DOCA_SUCCESS;
}

doca_error_t
soft_doca_comch_consumer_completion_get_max_num_recv(const struct doca_comch_consumer_completion *consumer_comp,
						     uint32_t *max_num_recv)
{
	if (consumer_comp == NULL || max_num_recv == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_recv = consumer_comp->max_num_recv;
	return DOCA_SUCCESS;
}

doca_error_t
soft_doca_comch_consumer_completion_get_imm_data_len(const struct doca_comch_consumer_completion *consumer_comp,
						     uint32_t *imm_data_len)
{
	if (consumer_comp == NULL || imm_data_len == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*imm_data_len = consumer_comp->imm_data_len;
	return DOCA_SUCCESS;
}

/* ---- start and stop ---- */

static bool thread_is_started(const struct doca_dpa_thread *thread)
{
	return thread == NULL || (soft_dpa_is_started(thread->dpa) && soft_thread_is_started(thread));
}

doca_error_t soft_doca_comch_consumer_completion_start(struct doca_comch_consumer_completion *consumer_comp)
{
	if (consumer_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (is_started(consumer_comp) || !thread_is_started(consumer_comp->thread))
		return DOCA_ERROR_BAD_STATE;
	uint32_t size = consumer_comp->max_num_recv;
	struct soft_arrival *arrivals = calloc(size, sizeof(*arrivals));
	uint8_t *imm = calloc(size, SOFT_MSGQ_IMM);
	if (arrivals == NULL || imm == NULL) {
		free(arrivals);
		free(imm);
		return DOCA_ERROR_NO_MEMORY;
	}
	hide(imm, (size_t)size * SOFT_MSGQ_IMM);
	soft_dpa_lock();
	soft_ring_start(&consumer_comp->ring, size, consumer_comp->thread);
	consumer_comp->dpa = consumer_comp->thread == NULL ? NULL : consumer_comp->thread->dpa;
	consumer_comp->arrivals = arrivals;
	consumer_comp->imm = imm;
	consumer_comp->started = true;
	soft_dpa_unlock();
	return DOCA_SUCCESS;
}

static void free_elements(struct doca_comch_consumer_completion *completion)
{
	show(completion->imm, (size_t)completion->max_num_recv * SOFT_MSGQ_IMM);
	free(completion->arrivals);
	free(completion->imm);
	completion->arrivals = NULL;
	completion->imm = NULL;
}

/* Messages that were not polled are lost. */
doca_error_t soft_doca_comch_consumer_completion_stop(struct doca_comch_consumer_completion *consumer_comp)
{
	if (consumer_comp == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = DOCA_SUCCESS;
	soft_dpa_lock();
	if (!consumer_comp->started) {
		result = DOCA_ERROR_BAD_STATE;
	} else if (consumer_comp->num_consumers > 0) {
		result = DOCA_ERROR_IN_USE;
	} else {
		consumer_comp->started = false;
		free_elements(consumer_comp);
	}
	soft_dpa_unlock();
	return result;
}

doca_error_t
soft_doca_comch_consumer_completion_get_dpa_handle(struct doca_comch_consumer_completion *consumer_comp,
						   doca_dpa_dev_comch_consumer_completion_t *consumer_comp_handle)
{
	if (consumer_comp == NULL || consumer_comp_handle == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!is_started(consumer_comp))
		return DOCA_ERROR_BAD_STATE;
	*consumer_comp_handle = consumer_comp->object.handle;
	return DOCA_SUCCESS;
}

/* ---- for consumers ---- */

static const char *join_error(const struct doca_comch_consumer_completion *completion, const struct doca_dpa *dpa,
			      uint32_t num_recv, uint32_t imm_data_len)
{
	if (completion == NULL || !completion->started)
		return "its completion context is not started";
	if (completion->dpa != NULL && completion->dpa != dpa)
		return "its completion context is on another DPA";
	if (completion->num_consumers == completion->max_num_consumers)
		return "its completion context has max_num_consumers already";
	if (num_recv > completion->max_num_recv - completion->num_recv)
		return "the receives of all consumers are more than its completion context's max_num_recv";
	return imm_data_len > completion->imm_data_len
		       ? "its immediate data may be longer than its completion context's"
		       : NULL;
}

doca_error_t soft_consumer_completion_join(uint64_t handle, const struct doca_dpa *dpa, uint32_t num_recv,
					   uint32_t imm_data_len, struct doca_comch_consumer_completion **joined)
{
	struct doca_comch_consumer_completion *completion = soft_object_find(SOFT_OBJECT_CONSUMER_COMPLETION, handle);
	const char *reason = join_error(completion, dpa, num_recv, imm_data_len);
	if (reason != NULL) {
		soft_detail("a consumer on the DPA cannot start: %s", reason);
		return DOCA_ERROR_INVALID_VALUE;
	}
	completion->dpa = dpa;
	completion->num_consumers++;
	completion->num_recv += num_recv;
	*joined = completion;
	return DOCA_SUCCESS;
}

void soft_consumer_completion_leave(struct doca_comch_consumer_completion *completion, uint32_t num_recv)
{
	completion->num_consumers--;
	completion->num_recv -= num_recv;
	if (completion->num_consumers == 0 && completion->thread == NULL)
		completion->dpa = NULL;
}

static uint8_t *imm_at(const struct doca_comch_consumer_completion *completion, uint32_t place)
{
	return completion->imm + (size_t)place * SOFT_MSGQ_IMM;
}

bool soft_consumer_completion_arrive(struct doca_comch_consumer_completion *completion, uint32_t producer_id,
				     const uint8_t *imm, uint32_t len)
{
	if (soft_ring_is_full(&completion->ring))
		return false;
	uint32_t place = soft_ring_arrive(&completion->ring);
	completion->arrivals[place] = (struct soft_arrival){.producer_id = producer_id, .len = len};
	show(imm_at(completion, place), SOFT_MSGQ_IMM);
	memcpy(imm_at(completion, place), imm, len);
	return true;
}

/* ---- device functions ---- */

/* Returns NULL, and notes the error, for a handle of no running context of the kernel's DPA. */
static struct doca_comch_consumer_completion *find_completion(struct soft_kernel *kernel, uint64_t handle,
							      const char *function)
{
	struct doca_comch_consumer_completion *completion = soft_object_find(SOFT_OBJECT_CONSUMER_COMPLETION, handle);
	if (completion != NULL && completion->started && (completion->dpa == NULL || completion->dpa == kernel->dpa))
		return completion;
	soft_kernel_error(kernel, "%s with the handle of no started consumer completion context of this DPA", function);
	return NULL;
}

int soft_doca_dpa_dev_comch_consumer_get_completion(doca_dpa_dev_comch_consumer_completion_t consumer_comp,
						    doca_dpa_dev_comch_consumer_completion_element_t *comp_element)
{
	static const char function[] = "doca_dpa_dev_comch_consumer_get_completion";
	struct soft_kernel *kernel = soft_kernel_enter(function);
	if (kernel == NULL)
		return 0;
	struct doca_comch_consumer_completion *completion = find_completion(kernel, consumer_comp, function);
	uint64_t element = completion == NULL ? 0 : soft_ring_poll(&completion->ring, completion->object.handle);
	if (element != 0)
		*comp_element = element;
	soft_kernel_leave_poll(kernel, element != 0);
	return element != 0;
}

/* Returns the message of an element, in *imm the address of its bytes; no producer for an element that was acked. */
static struct soft_arrival read_element(uint64_t element, const char *function, const uint8_t **imm)
{
	struct soft_arrival read = {0};
	*imm = NULL;
	struct soft_kernel *kernel = soft_kernel_enter(function);
	if (kernel == NULL)
		return read;
	const struct doca_comch_consumer_completion *completion =
		find_completion(kernel, soft_ring_context(element), function);
	uint32_t place;
	if (completion != NULL && soft_ring_place(&completion->ring, element, &place)) {
		read = completion->arrivals[place];
		*imm = imm_at(completion, place);
	} else if (completion != NULL) {
		soft_kernel_error(kernel, "%s of an element that was acked", function);
	}
	soft_kernel_leave(kernel);
	return read;
}

const uint8_t *
soft_doca_dpa_dev_comch_consumer_get_completion_imm(doca_dpa_dev_comch_consumer_completion_element_t comp_element,
						    uint32_t *imm_length)
{
	const uint8_t *imm;
	*imm_length = read_element(comp_element, "doca_dpa_dev_comch_consumer_get_completion_imm", &imm).len;
	return imm;
}

uint32_t soft_doca_dpa_dev_comch_consumer_get_completion_producer_id(
	doca_dpa_dev_comch_consumer_completion_element_t comp_element)
{
	const uint8_t *imm;
	return read_element(comp_element, "doca_dpa_dev_comch_consumer_get_completion_producer_id", &imm).producer_id;
}

void soft_doca_dpa_dev_comch_consumer_completion_ack(doca_dpa_dev_comch_consumer_completion_t consumer_comp,
						     uint64_t num_comp)
{
	static const char function[] = "doca_dpa_dev_comch_consumer_completion_ack";
	struct soft_kernel *kernel = soft_kernel_enter(function);
	if (kernel == NULL)
		return;
	struct doca_comch_consumer_completion *completion = find_completion(kernel, consumer_comp, function);
	if (completion != NULL && num_comp > soft_ring_unacked(&completion->ring)) {
		soft_kernel_error(kernel, "%s of more elements than were polled", function);
	} else if (completion != NULL) {
		for (; num_comp > 0; num_comp--)
			hide(imm_at(completion, soft_ring_ack(&completion->ring)), SOFT_MSGQ_IMM);
	}
	soft_kernel_leave(kernel);
}

void soft_doca_dpa_dev_comch_consumer_completion_request_notification(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp)
{
	static const char function[] = "doca_dpa_dev_comch_consumer_completion_request_notification";
	struct soft_kernel *kernel = soft_kernel_enter(function);
	if (kernel == NULL)
		return;
	struct doca_comch_consumer_completion *completion = find_completion(kernel, consumer_comp, function);
	if (completion != NULL)
		soft_ring_arm(&completion->ring);
	soft_kernel_leave(kernel);
}
