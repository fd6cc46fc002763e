/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "consumer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* A producer of the peer's sends something, data or immediate data. */
static bool makes_sense(const struct soft_delivery *delivery)
{
	return delivery->producer_id != SOFT_NO_ID && delivery->producer_id < SOFT_GONE_ID && delivery->reserved == 0 &&
	       (delivery->len > 0 || delivery->imm_len > 0);
}

/* What a delivery says is a peer's word. */
static bool credible(const struct doca_comch_consumer *consumer, const struct soft_delivery *delivery, size_t len)
{
	const struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(&consumer->posted);
	return makes_sense(delivery) && len >= sizeof(*delivery) && task != NULL &&
	       delivery->imm_len <= consumer->imm_data_len && len - sizeof(*delivery) == delivery->imm_len &&
	       delivery->len <= task->room;
}

/* Data is appended at the tail of the buffer. */
static void take_delivery(struct doca_comch_consumer *consumer, const struct soft_delivery *delivery)
{
	struct doca_comch_consumer_task_post_recv *task = STAILQ_FIRST(&consumer->posted);
	STAILQ_REMOVE_HEAD(&consumer->posted, queued);
	if (task->buf != NULL)
		task->buf->data_len += delivery->len;
	task->producer_id = delivery->producer_id;
	task->imm_len = delivery->imm_len;
	memcpy(task->imm, consumer->packet + sizeof(*delivery), delivery->imm_len);
	soft_task_complete(&task->task, DOCA_SUCCESS);
}

/* The end of the lane, or a peer that lies, is the end of the consumer; its descriptor has nothing more to announce. */
static bool lane_ended(struct doca_comch_consumer *consumer)
{
	consumer->lane_over = true;
	soft_pe_unwatch(consumer->ctx.pe, consumer->lane);
	if (consumer->ctx.state != DOCA_CTX_STATE_RUNNING)
		return false;
	soft_ctx_fail(&consumer->ctx);
	return true;
}

/* The kernel tells once, and ahead of the deliveries, that the peer left with slots unread; its producers count on what
 * they have delivered, so look again. */
static ssize_t receive_packet(const struct doca_comch_consumer *consumer, size_t size)
{
	ssize_t n = recv(consumer->lane, consumer->packet, size, MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && errno == ECONNRESET)
		n = recv(consumer->lane, consumer->packet, size, MSG_DONTWAIT | MSG_TRUNC);
	return n;
}

bool soft_consumer_receive(struct doca_comch_consumer *consumer)
{
	if (consumer->lane_over)
		return false;
	size_t size = sizeof(struct soft_delivery) + consumer->imm_data_len;
	ssize_t n = receive_packet(consumer, size);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	struct soft_delivery delivery;
	memcpy(&delivery, consumer->packet, n < (ssize_t)sizeof(delivery) ? 0 : sizeof(delivery));
	if (n < (ssize_t)sizeof(delivery) || (size_t)n > size || !credible(consumer, &delivery, (size_t)n))
		return lane_ended(consumer);
	take_delivery(consumer, &delivery);
	return true;
}
