/* SPDX-License-Identifier: Apache-2.0 */
/* The code of msgq_ping for the DPA: answers each ping with its text in capital letters. */
#include <doca_dpa_dev.h>
#include <doca_dpa_dev_comch_msgq.h>

#include "msgq_dev.h"
#include "msgq_ping.h"

/* NVIDIA's compiler finds the functions by their marks; with an ordinary one the development kit's macros do. */
__dpa_rpc__ uint64_t begin_receiving(uint64_t consumer);
__dpa_global__ void answer_pings(uint64_t arg);

#ifndef __DPA__
#include <dpa_kit.h>
DPA_KIT_APP(msgq_ping_app)
DPA_KIT_RPC(begin_receiving, uint64_t)
DPA_KIT_KERNEL(answer_pings)
#endif

__dpa_rpc__ uint64_t begin_receiving(uint64_t consumer)
{
	doca_dpa_dev_comch_consumer_ack(consumer, MSGQ_SIZE);
	return 0;
}

static char capital(char c)
{
	return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
}

static void answer(const struct msgq_handles *handles, doca_dpa_dev_comch_consumer_completion_element_t element)
{
	uint32_t len;
	const struct ping *question = (const void *)doca_dpa_dev_comch_consumer_get_completion_imm(element, &len);
	struct ping reply = {.number = question->number};
	for (uint32_t i = 0; i < sizeof(reply.text); i++)
		reply.text[i] = capital(question->text[i]);
	doca_dpa_dev_comch_producer_post_send_imm_only(
		handles->producer, handles->cpu_consumer, (const uint8_t *)&reply, sizeof(reply),
		DOCA_DPA_DEV_SUBMIT_FLAG_FLUSH | DOCA_DPA_DEV_SUBMIT_FLAG_OPTIMIZE_REPORTS);
}

/* Runs whenever messages have arrived. One that comes after the last poll activates the thread again. */
__dpa_global__ void answer_pings(uint64_t arg)
{
	const struct msgq_handles *handles = (const struct msgq_handles *)arg;
	doca_dpa_dev_comch_consumer_completion_element_t element;
	uint32_t count = 0;
	while (doca_dpa_dev_comch_consumer_get_completion(handles->arrivals, &element)) {
		answer(handles, element);
		count++;
	}
	doca_dpa_dev_comch_consumer_completion_ack(handles->arrivals, count);
	doca_dpa_dev_comch_consumer_ack(handles->consumer, count);
	doca_dpa_dev_comch_consumer_completion_request_notification(handles->arrivals);
	doca_dpa_dev_thread_reschedule();
}
