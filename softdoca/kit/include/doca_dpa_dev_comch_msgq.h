/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions by which code of a DPA uses message queues. Immediate data has at most 32 bytes.
 *
 * flags are values of enum doca_dpa_dev_submit_flag. Every operation is flushed, with FLUSH or without. One with
 * OPTIMIZE_REPORTS has no completion until a later operation of the producer has one. An operation that fails has the
 * completion SEND_ERR, and sends no message.
 */
#ifndef DOCA_DPA_DEV_COMCH_MSGQ_H_
#define DOCA_DPA_DEV_COMCH_MSGQ_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_dpa_dev.h"
#include "doca_dpa_dev_buf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- consumers ---- */

/* Prepares to receive that many messages more, at most doca_comch_consumer_set_dev_max_num_recv together. */
DOCA_STABLE
void doca_dpa_dev_comch_consumer_ack(doca_dpa_dev_comch_consumer_t consumer, uint32_t num_msg);

/* 1 if there is a next message, otherwise 0. */
DOCA_STABLE
int doca_dpa_dev_comch_consumer_get_completion(doca_dpa_dev_comch_consumer_completion_t consumer_comp,
					       doca_dpa_dev_comch_consumer_completion_element_t *comp_element);

/* The message, which is valid until its element is acked. NULL after that. */
DOCA_STABLE
const uint8_t *
doca_dpa_dev_comch_consumer_get_completion_imm(doca_dpa_dev_comch_consumer_completion_element_t comp_element,
					       uint32_t *imm_length);

DOCA_STABLE
uint32_t
doca_dpa_dev_comch_consumer_get_completion_producer_id(doca_dpa_dev_comch_consumer_completion_element_t comp_element);

/* Frees the oldest messages, which must have been polled. */
DOCA_STABLE
void doca_dpa_dev_comch_consumer_completion_ack(doca_dpa_dev_comch_consumer_completion_t consumer_comp,
						uint64_t num_comp);

/* The next message activates the context's thread; at once if there is one. */
DOCA_STABLE
void doca_dpa_dev_comch_consumer_completion_request_notification(
	doca_dpa_dev_comch_consumer_completion_t consumer_comp);

/* ---- producers ---- */

/* 1 while the consumer has posted no receive, so that sending to it fails; otherwise 0. */
DOCA_STABLE
int doca_dpa_dev_comch_producer_is_consumer_empty(doca_dpa_dev_comch_producer_t producer, uint32_t consumer_id);

/* The message is copied by the call. */
DOCA_STABLE
void doca_dpa_dev_comch_producer_post_send_imm_only(doca_dpa_dev_comch_producer_t producer, uint32_t consumer_id,
						    const uint8_t *imm, uint32_t imm_length, uint32_t flags);

/*
 * Copies, and then sends the message. Both ranges must lie in their memory maps and not overlap; the map of the
 * destination needs LOCAL_READ_WRITE. At most one of the maps may be an import.
 */
DOCA_STABLE
void doca_dpa_dev_comch_producer_dma_copy(doca_dpa_dev_comch_producer_t producer, uint32_t consumer_id,
					  doca_dpa_dev_mmap_t dst_mmap, uint64_t dst_addr, doca_dpa_dev_mmap_t src_mmap,
					  uint64_t src_addr, size_t length, const uint8_t *imm, uint32_t imm_length,
					  uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
