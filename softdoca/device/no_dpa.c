/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions for a DPA inside dma-copy, which has none: they are not supported. The development kit, which has a DPA
 * of software, is linked with softdoca/dpa instead of this file. Arguments are checked first, as everywhere.
 */
#include "ctx.h"
#include "soft.h"

/* Invalid arguments are reported first. */
static doca_error_t unsupported(bool valid)
{
	return valid ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

/* ---- memory and contexts ---- */

doca_error_t soft_doca_mmap_dev_get_dpa_handle(struct doca_mmap *mmap, const struct doca_dev *dev,
					       doca_dpa_dev_mmap_t *dpa_mmap_handle)
{
	return unsupported(mmap != NULL && dev != NULL && dpa_mmap_handle != NULL);
}

doca_error_t soft_doca_mmap_set_dpa_memrange(struct doca_mmap *mmap, struct doca_dpa *dpa, uint64_t dpa_addr,
					     size_t len)
{
	(void)dpa_addr;
	return unsupported(mmap != NULL && dpa != NULL && len > 0);
}

doca_error_t soft_doca_ctx_set_datapath_on_dpa(struct doca_ctx *ctx, struct doca_dpa *dpa_dev)
{
	if (ctx == NULL || dpa_dev == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_ctx_configurable(ctx);
	return result == DOCA_SUCCESS ? DOCA_ERROR_NOT_SUPPORTED : result;
}

/* ---- completion contexts: none can be made, so none is ever looked into ---- */

doca_error_t soft_doca_comch_consumer_completion_create(struct doca_comch_consumer_completion **consumer_comp)
{
	return unsupported(consumer_comp != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_set_dpa_thread(struct doca_comch_consumer_completion *consumer_comp,
								struct doca_dpa_thread *dpa_thread)
{
	return unsupported(consumer_comp != NULL && dpa_thread != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_destroy(struct doca_comch_consumer_completion *consumer_comp)
{
	return unsupported(consumer_comp != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_start(struct doca_comch_consumer_completion *consumer_comp)
{
	return unsupported(consumer_comp != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_stop(struct doca_comch_consumer_completion *consumer_comp)
{
	return unsupported(consumer_comp != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_get_dpa_handle(struct doca_comch_consumer_completion *consumer_comp,
						   doca_dpa_dev_comch_consumer_completion_t *consumer_comp_handle)
{
	return unsupported(consumer_comp != NULL && consumer_comp_handle != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_set_max_num_consumers(struct doca_comch_consumer_completion *consumer_comp,
							  uint32_t max_num_consumers)
{
	(void)max_num_consumers;
	return unsupported(consumer_comp != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_get_max_num_consumers(const struct doca_comch_consumer_completion *consumer_comp,
							  uint32_t *max_num_consumers)
{
	return unsupported(consumer_comp != NULL && max_num_consumers != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_set_max_num_recv(struct doca_comch_consumer_completion *consumer_comp,
								  uint32_t max_num_recv)
{
	(void)max_num_recv;
	return unsupported(consumer_comp != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_get_max_num_recv(const struct doca_comch_consumer_completion *consumer_comp,
						     uint32_t *max_num_recv)
{
	return unsupported(consumer_comp != NULL && max_num_recv != NULL);
}

doca_error_t soft_doca_comch_consumer_completion_set_imm_data_len(struct doca_comch_consumer_completion *consumer_comp,
								  uint32_t imm_data_len)
{
	(void)imm_data_len;
	return unsupported(consumer_comp != NULL);
}

doca_error_t
soft_doca_comch_consumer_completion_get_imm_data_len(const struct doca_comch_consumer_completion *consumer_comp,
						     uint32_t *imm_data_len)
{
	return unsupported(consumer_comp != NULL && imm_data_len != NULL);
}

/* ---- consumers and producers ---- */

doca_error_t soft_doca_comch_consumer_set_dev_max_num_recv(struct doca_comch_consumer *consumer, uint32_t dev_num_recv)
{
	(void)dev_num_recv;
	return unsupported(consumer != NULL);
}

doca_error_t soft_doca_comch_consumer_set_completion(struct doca_comch_consumer *consumer,
						     struct doca_comch_consumer_completion *consumer_comp,
						     uint32_t user_data)
{
	(void)user_data;
	return unsupported(consumer != NULL && consumer_comp != NULL);
}

doca_error_t soft_doca_comch_consumer_get_dpa_handle(struct doca_comch_consumer *consumer,
						     doca_dpa_dev_comch_consumer_t *dpa_consumer)
{
	return unsupported(consumer != NULL && dpa_consumer != NULL);
}

doca_error_t soft_doca_comch_producer_set_dev_max_num_send(struct doca_comch_producer *producer, uint32_t dev_num_send)
{
	(void)dev_num_send;
	return unsupported(producer != NULL);
}

doca_error_t soft_doca_comch_producer_dpa_completion_attach(struct doca_comch_producer *producer,
							    struct doca_dpa_completion *dpa_comp)
{
	return unsupported(producer != NULL && dpa_comp != NULL);
}

doca_error_t soft_doca_comch_producer_get_dpa_handle(struct doca_comch_producer *producer,
						     doca_dpa_dev_comch_producer_t *dpa_producer)
{
	return unsupported(producer != NULL && dpa_producer != NULL);
}
