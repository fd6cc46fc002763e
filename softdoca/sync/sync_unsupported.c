/* SPDX-License-Identifier: Apache-2.0 */
/* Sync events at places that the device does not have: a DPA, a GPU, another machine. Arguments are checked first. */
#include "dev.h"
#include "soft_sync.h"

static doca_error_t unsupported(bool valid)
{
	return valid ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

/* ---- DPA ---- */

doca_error_t soft_doca_sync_event_add_publisher_location_dpa(struct doca_sync_event *event, struct doca_dpa *dpa)
{
	return unsupported(event != NULL && dpa != NULL);
}

doca_error_t soft_doca_sync_event_add_subscriber_location_dpa(struct doca_sync_event *event, struct doca_dpa *dpa)
{
	return unsupported(event != NULL && dpa != NULL);
}

doca_error_t soft_doca_sync_event_get_dpa_handle(struct doca_sync_event *event, struct doca_dpa *dpa,
						 doca_dpa_dev_sync_event_t *handle)
{
	return unsupported(event != NULL && dpa != NULL && handle != NULL);
}

doca_error_t soft_doca_sync_event_cap_is_export_to_dpa_supported(const struct doca_devinfo *devinfo)
{
	return unsupported(devinfo != NULL);
}

/* ---- GPU ---- */

doca_error_t soft_doca_sync_event_add_publisher_location_gpu(struct doca_sync_event *event, struct doca_gpu *gpu)
{
	return unsupported(event != NULL && gpu != NULL);
}

doca_error_t soft_doca_sync_event_add_subscriber_location_gpu(struct doca_sync_event *event, struct doca_gpu *gpu)
{
	return unsupported(event != NULL && gpu != NULL);
}

doca_error_t soft_doca_sync_event_get_gpu_handle(struct doca_sync_event *event, struct doca_gpu *gpu,
						 doca_gpu_dev_sync_event_t **handle)
{
	return unsupported(event != NULL && gpu != NULL && handle != NULL);
}

doca_error_t soft_doca_sync_event_cap_is_export_to_gpu_supported(const struct doca_devinfo *devinfo)
{
	return unsupported(devinfo != NULL);
}

/* ---- another machine: no such event can be made, so none is ever looked into ---- */

doca_error_t soft_doca_sync_event_add_publisher_location_remote_net(struct doca_sync_event *event)
{
	return unsupported(event != NULL);
}

doca_error_t soft_doca_sync_event_export_to_remote_net(struct doca_sync_event *event, const uint8_t **data, size_t *sz)
{
	return unsupported(event != NULL && data != NULL && sz != NULL);
}

doca_error_t soft_doca_sync_event_remote_net_create_from_export(struct doca_dev *dev, const uint8_t *data, size_t sz,
								struct doca_sync_event_remote_net **event)
{
	return unsupported(dev != NULL && data != NULL && sz > 0 && event != NULL);
}

doca_error_t soft_doca_sync_event_remote_net_destroy(struct doca_sync_event_remote_net *event)
{
	return unsupported(event != NULL);
}

doca_error_t soft_doca_sync_event_remote_net_get_dpa_handle(struct doca_sync_event_remote_net *event,
							    struct doca_dpa *dpa,
							    doca_dpa_dev_sync_event_remote_net_t *handle)
{
	return unsupported(event != NULL && dpa != NULL && handle != NULL);
}

doca_error_t soft_doca_sync_event_remote_net_get_gpu_handle(struct doca_sync_event_remote_net *event,
							    struct doca_gpu *gpu,
							    doca_gpu_dev_sync_event_remote_net_t *handle)
{
	return unsupported(event != NULL && gpu != NULL && handle != NULL);
}

doca_error_t soft_doca_sync_event_cap_is_export_to_remote_net_supported(const struct doca_devinfo *devinfo)
{
	return unsupported(devinfo != NULL);
}

doca_error_t soft_doca_sync_event_cap_remote_net_is_create_from_export_supported(const struct doca_devinfo *devinfo)
{
	return unsupported(devinfo != NULL);
}

doca_error_t soft_doca_sync_event_cap_remote_net_is_export_to_dpa_supported(const struct doca_devinfo *devinfo)
{
	return unsupported(devinfo != NULL);
}

doca_error_t soft_doca_sync_event_cap_remote_net_is_export_to_gpu_supported(const struct doca_devinfo *devinfo)
{
	return unsupported(devinfo != NULL);
}
