/* SPDX-License-Identifier: Apache-2.0 */
#include "comch.h"

/* ---- control channel ---- */

static doca_error_t supported_on(const struct doca_devinfo *devinfo, enum soft_side side)
{
	if (devinfo == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	return devinfo->side == side ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t soft_doca_comch_cap_server_is_supported(const struct doca_devinfo *devinfo)
{
	return supported_on(devinfo, SOFT_DPU);
}

doca_error_t soft_doca_comch_cap_client_is_supported(const struct doca_devinfo *devinfo)
{
	return supported_on(devinfo, SOFT_HOST);
}

static doca_error_t report_limit(const struct doca_devinfo *devinfo, uint64_t limit, uint32_t *out)
{
	if (devinfo == NULL || out == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*out = (uint32_t)limit;
	return DOCA_SUCCESS;
}

/* Counts the terminating zero. */
doca_error_t soft_doca_comch_cap_get_max_name_len(const struct doca_devinfo *devinfo, uint32_t *max_name_len)
{
	return report_limit(devinfo, soft_limits()->max_name_len, max_name_len);
}

doca_error_t soft_doca_comch_cap_get_max_msg_size(const struct doca_devinfo *devinfo, uint32_t *size)
{
	return report_limit(devinfo, soft_limits()->max_msg_size, size);
}

doca_error_t soft_doca_comch_cap_get_max_recv_queue_size(const struct doca_devinfo *devinfo, uint32_t *size)
{
	return report_limit(devinfo, soft_limits()->max_recv_queue_size, size);
}

doca_error_t soft_doca_comch_cap_get_max_clients(const struct doca_devinfo *devinfo, uint32_t *num_clients)
{
	return report_limit(devinfo, soft_limits()->max_clients, num_clients);
}

doca_error_t soft_doca_comch_cap_get_max_send_tasks(const struct doca_devinfo *devinfo, uint32_t *max_send_tasks)
{
	return report_limit(devinfo, soft_limits()->max_send_tasks, max_send_tasks);
}

/* ---- fast path ---- */

/* Both ends of the PCIe bus can have both (guide). */
doca_error_t soft_doca_comch_consumer_cap_is_supported(const struct doca_devinfo *devinfo)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_consumer_cap_get_max_num_tasks(const struct doca_devinfo *devinfo, uint32_t *max_num_tasks)
{
	return report_limit(devinfo, soft_limits()->max_fast_tasks, max_num_tasks);
}

doca_error_t soft_doca_comch_consumer_cap_get_max_buf_size(const struct doca_devinfo *devinfo, uint32_t *max_buf_size)
{
	return report_limit(devinfo, soft_limits()->max_fast_buf_size, max_buf_size);
}

/* No lists. */
doca_error_t soft_doca_comch_consumer_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
							       uint32_t *max_buf_list_len)
{
	return report_limit(devinfo, 1, max_buf_list_len);
}

doca_error_t soft_doca_comch_consumer_cap_get_max_consumers(const struct doca_devinfo *devinfo, uint32_t *max_consumers)
{
	return report_limit(devinfo, soft_limits()->max_consumers, max_consumers);
}

doca_error_t soft_doca_comch_consumer_cap_get_max_imm_data_len(const struct doca_devinfo *devinfo,
							       uint32_t *max_imm_data_len)
{
	return report_limit(devinfo, soft_limits()->max_imm_data_len, max_imm_data_len);
}

doca_error_t soft_doca_comch_producer_cap_is_supported(const struct doca_devinfo *devinfo)
{
	return devinfo == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_producer_cap_get_max_num_tasks(const struct doca_devinfo *devinfo, uint32_t *max_num_tasks)
{
	return report_limit(devinfo, soft_limits()->max_fast_tasks, max_num_tasks);
}

doca_error_t soft_doca_comch_producer_cap_get_max_buf_size(const struct doca_devinfo *devinfo, uint32_t *max_buf_size)
{
	return report_limit(devinfo, soft_limits()->max_fast_buf_size, max_buf_size);
}

doca_error_t soft_doca_comch_producer_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
							       uint32_t *max_buf_list_len)
{
	return report_limit(devinfo, 1, max_buf_list_len);
}

doca_error_t soft_doca_comch_producer_cap_get_max_producers(const struct doca_devinfo *devinfo, uint32_t *max_producers)
{
	return report_limit(devinfo, soft_limits()->max_producers, max_producers);
}
