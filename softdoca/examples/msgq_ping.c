/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends numbered texts to the DPA of a device over a message queue, and prints the answers that come back over another
 * one. The DPA's code is in msgq_ping_dev.c.
 */
#include <stdio.h>
#include <string.h>

#include <doca_error.h>

#include "dpa.h"
#include "example.h"
#include "msgq.h"
#include "msgq_ping.h"

struct config {
	char pci_addr[FLAG_SIZE];
	struct ping ping; /* without its number */
	uint32_t count;
};

STORE_STRING(set_pci_addr, struct config, pci_addr)

static doca_error_t set_text(void *value, void *config)
{
	struct ping *ping = &((struct config *)config)->ping;
	size_t len = strlen(value);
	if (len >= sizeof(ping->text))
		return DOCA_ERROR_TOO_BIG;
	memcpy(ping->text, value, len + 1);
	return DOCA_SUCCESS;
}

static doca_error_t set_count(void *value, void *config)
{
	int count = *(int *)value;
	if (count < 0)
		return DOCA_ERROR_INVALID_VALUE;
	((struct config *)config)->count = (uint32_t)count;
	return DOCA_SUCCESS;
}

/* Defined by the compiler for the DPA. */
extern struct doca_dpa_app *msgq_ping_app;
extern doca_dpa_func_t begin_receiving;
extern doca_dpa_func_t answer_pings;

struct talk {
	const struct config *config;
	struct doca_pe *pe;
	struct msgq_to_dpa to;
	struct msgq_from_dpa from;
	uint32_t sent, answered;
	doca_error_t result; /* of the answers */
};

static void on_answer(void *user, const uint8_t *message, uint32_t len)
{
	struct talk *talk = user;
	struct ping answer;
	if (len != sizeof(answer)) {
		talk->result = DOCA_ERROR_UNEXPECTED;
		return;
	}
	memcpy(&answer, message, sizeof(answer));
	printf("the DPA answered %u: \"%.*s\"\n", (unsigned)answer.number, (int)sizeof(answer.text), answer.text);
	if (answer.number != ++talk->answered)
		talk->result = DOCA_ERROR_UNEXPECTED;
}

/* No more pings than there are receives for the answers. */
static doca_error_t send_next(struct talk *talk)
{
	struct ping ping = talk->config->ping;
	if (talk->sent == talk->config->count || talk->sent - talk->answered == MSGQ_SIZE)
		return DOCA_SUCCESS;
	ping.number = talk->sent + 1;
	doca_error_t result = msgq_to_dpa_send(&talk->to, &ping, sizeof(ping));
	if (result == DOCA_SUCCESS)
		talk->sent++;
	return result == DOCA_ERROR_AGAIN ? DOCA_SUCCESS : result;
}

static doca_error_t exchange(struct talk *talk)
{
	doca_error_t result = DOCA_SUCCESS;
	while (result == DOCA_SUCCESS && talk->answered < talk->config->count) {
		result = send_next(talk);
		doca_pe_progress(talk->pe);
		DOCA_ERROR_PROPAGATE(result, talk->to.result);
		DOCA_ERROR_PROPAGATE(result, talk->from.result);
		DOCA_ERROR_PROPAGATE(result, talk->result);
		DOCA_ERROR_PROPAGATE(result, doca_dpa_peek_at_last_error(talk->to.dpa));
	}
	return result;
}

/* The handles are in the DPA's memory before the thread is run. */
static doca_error_t run_thread(struct talk *talk, doca_dpa_dev_uintptr_t stored, struct msgq_handles *handles)
{
	uint64_t unused;
	doca_error_t result = doca_dpa_h2d_memcpy(talk->to.dpa, stored, handles, sizeof(*handles));
	if (result == DOCA_SUCCESS)
		result = doca_dpa_rpc(talk->to.dpa, begin_receiving, &unused, handles->consumer);
	return result == DOCA_SUCCESS ? doca_dpa_thread_run(talk->to.thread) : result;
}

static doca_error_t talk_over_queues(struct talk *talk, doca_dpa_dev_uintptr_t stored)
{
	struct msgq_handles handles = {0};
	doca_error_t result = msgq_from_dpa_open(&talk->from, &handles);
	if (result != DOCA_SUCCESS)
		return result;
	result = msgq_to_dpa_open(&talk->to, &handles);
	if (result == DOCA_SUCCESS) {
		result = run_thread(talk, stored, &handles);
		if (result == DOCA_SUCCESS)
			result = exchange(talk);
		doca_dpa_thread_stop(talk->to.thread); /* before its kernel's handles become invalid */
		msgq_to_dpa_close(&talk->to);
	}
	msgq_from_dpa_close(&talk->from);
	return result;
}

static doca_error_t talk_to_thread(struct doca_dev *dev, struct doca_dpa *dpa, struct talk *talk)
{
	struct msgq_handles none = {0};
	doca_dpa_dev_uintptr_t stored;
	struct doca_dpa_thread *thread;
	doca_error_t result = dpa_store(dpa, &none, sizeof(none), &stored);
	if (result == DOCA_SUCCESS)
		result = dpa_thread_open(dpa, answer_pings, stored, &thread);
	if (result != DOCA_SUCCESS)
		return result;
	talk->to = (struct msgq_to_dpa){.dev = dev, .dpa = dpa, .thread = thread, .pe = talk->pe};
	talk->from =
		(struct msgq_from_dpa){.dev = dev, .dpa = dpa, .pe = talk->pe, .received = on_answer, .user = talk};
	result = talk_over_queues(talk, stored);
	doca_dpa_thread_destroy(thread);
	return result;
}

static doca_error_t run(struct doca_dev *dev, void *config)
{
	struct talk talk = {.config = config};
	struct doca_dpa *dpa;
	doca_error_t result = dpa_open(dev, msgq_ping_app, &dpa);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_pe_create(&talk.pe);
	if (result == DOCA_SUCCESS) {
		result = talk_to_thread(dev, dpa, &talk);
		doca_pe_destroy(talk.pe);
	}
	DOCA_ERROR_PROPAGATE(result, dpa_close(dpa));
	return result;
}

static const struct example example = {
	"msgq_ping",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device with the DPA", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"t", "text", "<TEXT>", "Text to send, up to 27 bytes", DOCA_ARGP_TYPE_STRING, set_text},
		{"n", "count", "<COUNT>", "How often", DOCA_ARGP_TYPE_INT, set_count},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "03:00.0", .ping.text = "ping", .count = 3};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
