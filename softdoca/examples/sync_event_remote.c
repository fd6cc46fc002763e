/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DPU copies a text into the host's memory by DMA, and signals the end of the copy with a sync event. The host
 * prints the text then, and not before: a copy is not atomic, so that the memory itself does not show that it is
 * complete. The device determines which side this is.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <doca_error.h>

#include "channel.h"
#include "copy.h"
#include "event.h"
#include "example.h"
#include "memory.h"
#include "offer.h"

#define SERVICE "examples sync event"
#define COPIED 1 /* value of the event */

struct config {
	char pci_addr[FLAG_SIZE];
	char rep_pci[FLAG_SIZE];
	char text[FLAG_SIZE];
};

STORE_STRING(set_pci_addr, struct config, pci_addr)
STORE_STRING(set_rep_pci, struct config, rep_pci)
STORE_STRING(set_text, struct config, text)

struct side {
	struct engines engines;
	struct doca_dev *dev;
	struct channel channel;
	uint8_t message[OFFER_SIZE]; /* the host's, as it arrived on the DPU */
	size_t message_len;
};

/* ---- The host ---- */

static doca_error_t send_offer(struct side *side, struct doca_mmap *mmap, const struct event *event, const char *text)
{
	uint8_t message[OFFER_SIZE];
	size_t len;
	struct offer offer = {
		.addr = (uint64_t)(uintptr_t)text,
		.len = FLAG_SIZE,
		.event = event->descriptor,
		.event_len = event->descriptor_len,
	};
	doca_error_t result = doca_mmap_export_pci(mmap, side->dev, &offer.memory, &offer.memory_len);
	if (result == DOCA_SUCCESS)
		result = offer_encode(&offer, message, &len);
	return result == DOCA_SUCCESS ? channel_send(&side->channel, message, len) : result;
}

/* Without the control channel nothing would say that the DPU is gone. */
static doca_error_t await_copy(struct side *side, const struct event *event)
{
	while (!event->signalled && event->result == DOCA_SUCCESS) {
		if (!channel_is_connected(&side->channel))
			return DOCA_ERROR_NOT_CONNECTED;
		engines_progress(&side->engines);
	}
	return event->result;
}

static doca_error_t offer_and_await(struct side *side, struct doca_mmap *mmap, const char *text)
{
	struct event event;
	doca_error_t result = event_create(&event, side->dev, &side->engines);
	if (result != DOCA_SUCCESS)
		return result;
	result = event_expect(&event, COPIED);
	if (result == DOCA_SUCCESS)
		result = send_offer(side, mmap, &event, text);
	if (result == DOCA_SUCCESS)
		result = await_copy(side, &event);
	event_destroy(&event);
	return result;
}

static doca_error_t receive_text(struct side *side)
{
	char text[FLAG_SIZE] = "";
	struct doca_mmap *mmap;
	doca_error_t result = map_memory(side->dev, text, sizeof(text), DOCA_ACCESS_FLAG_PCI_READ_WRITE, &mmap);
	if (result != DOCA_SUCCESS)
		return result;
	result = offer_and_await(side, mmap, text);
	doca_mmap_destroy(mmap); /* from here on the DPU cannot write */
	if (result == DOCA_SUCCESS)
		printf("%.*s\n", FLAG_SIZE, text);
	return result;
}

/* ---- The DPU ---- */

static void on_message(void *user, const uint8_t *message, uint32_t len)
{
	struct side *side = user;
	side->message_len = len < sizeof(side->message) ? len : sizeof(side->message);
	memcpy(side->message, message, side->message_len);
}

static doca_error_t await_offer(struct side *side, struct offer *offer)
{
	while (side->message_len == 0) {
		if (!channel_is_connected(&side->channel))
			return DOCA_ERROR_NOT_CONNECTED;
		engines_progress(&side->engines);
	}
	return offer_decode(offer, side->message, side->message_len);
}

static doca_error_t copy_to(struct side *side, struct doca_mmap *remote, const struct offer *offer, char *text)
{
	struct copy copy = {
		.from = text,
		.to_mmap = remote,
		.to = (void *)(uintptr_t)offer->addr,
		.len = strlen(text) + 1,
	};
	if (copy.len > offer->len)
		return DOCA_ERROR_TOO_BIG;
	doca_error_t result = map_memory(side->dev, text, copy.len, DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, &copy.from_mmap);
	if (result != DOCA_SUCCESS)
		return result;
	result = copy_run(side->dev, &copy);
	doca_mmap_destroy(copy.from_mmap);
	return result;
}

static doca_error_t send_text(struct side *side, char *text)
{
	struct offer offer;
	struct doca_mmap *remote;
	doca_error_t result = await_offer(side, &offer);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_mmap_create_from_export(NULL, offer.memory, offer.memory_len, side->dev, &remote);
	if (result != DOCA_SUCCESS)
		return result;
	result = copy_to(side, remote, &offer, text);
	doca_mmap_destroy(remote);
	if (result == DOCA_SUCCESS)
		result = event_signal(side->dev, offer.event, offer.event_len, COPIED);
	while (result == DOCA_SUCCESS && channel_is_connected(&side->channel)) /* the host hangs up */
		engines_progress(&side->engines);
	return result;
}

/* ---- Both ---- */

static doca_error_t connect_and_run(struct side *side, struct config *config)
{
	doca_error_t result = channel_open(&side->channel, side->dev, config->rep_pci, SERVICE);
	if (result != DOCA_SUCCESS)
		return result;
	result = side->channel.client != NULL ? receive_text(side) : send_text(side, config->text);
	channel_close(&side->channel);
	return result;
}

static doca_error_t run(struct doca_dev *dev, void *config)
{
	struct side side = {
		.dev = dev,
		.channel = {.engines = &side.engines, .listener = {.user = &side, .message = on_message}},
	};
	doca_error_t result = engines_create(&side.engines);
	if (result != DOCA_SUCCESS)
		return result;
	result = connect_and_run(&side, config);
	engines_destroy(&side.engines);
	return result;
}

static const struct example example = {
	"sync_event_remote",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device of this side", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"r", "rep-pci", "<PCI-ADDR>", "Function of the host, for the DPU", DOCA_ARGP_TYPE_STRING, set_rep_pci},
		{"t", "text", "<TEXT>", "Text that the DPU copies to the host", DOCA_ARGP_TYPE_STRING, set_text},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "b1:00.0", .rep_pci = "b1:00.0", .text = "Hello"};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
