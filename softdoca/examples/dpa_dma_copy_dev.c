/* SPDX-License-Identifier: Apache-2.0 */
/* The code of dpa_dma_copy for the DPA: copies memory of the CPU, and says so in a message. */
#include <doca_dpa_dev.h>
#include <doca_dpa_dev_comch_msgq.h>

#include "dpa_dma_copy.h"
#include "msgq_dev.h"

__dpa_rpc__ uint64_t copy_range(struct msgq_handles handles, struct range from, struct range to, uint64_t len);

#ifndef __DPA__
#include <dpa_kit.h>
DPA_KIT_APP(dpa_dma_copy_app)
DPA_KIT_RPC(copy_range, struct msgq_handles, struct range, struct range, uint64_t)
#endif

/* Returns 1 if the CPU has posted no receive for the message. The copy itself does not wait for its end. */
__dpa_rpc__ uint64_t copy_range(struct msgq_handles handles, struct range from, struct range to, uint64_t len)
{
	if (doca_dpa_dev_comch_producer_is_consumer_empty(handles.producer, handles.cpu_consumer))
		return 1;
	doca_dpa_dev_comch_producer_dma_copy(handles.producer, handles.cpu_consumer, to.mmap, to.addr, from.mmap,
					     from.addr, len, (const uint8_t *)&len, sizeof(len),
					     DOCA_DPA_DEV_SUBMIT_FLAG_FLUSH);
	return 0;
}
