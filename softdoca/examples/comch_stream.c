/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of numbered blocks over Comch's fast path, from host to DPU and from DPU to host at the same time, each of
 * which ends with a text. Each side prints the text that it gets, and whether the stream was in order and whole. The
 * device determines which side this is.
 */
#include <inttypes.h>
#include <stdio.h>

#include <doca_error.h>

#include "example.h"
#include "stream.h"

#define SERVICE "examples stream"

struct config {
	char pci_addr[FLAG_SIZE];
	char rep_pci[FLAG_SIZE];
	char text[FLAG_SIZE];
	uint32_t count;
};

STORE_STRING(set_pci_addr, struct config, pci_addr)
STORE_STRING(set_rep_pci, struct config, rep_pci)
STORE_STRING(set_text, struct config, text)

static doca_error_t set_count(void *value, void *config)
{
	int count = *(int *)value;
	if (count < 0)
		return DOCA_ERROR_INVALID_VALUE;
	((struct config *)config)->count = (uint32_t)count;
	return DOCA_SUCCESS;
}

struct side {
	struct engines engines;
	struct doca_dev *dev;
	struct channel channel;
	bool has_consumer; /* the peer's, from its arrival until it expires */
	uint32_t consumer_id;
};

static void on_consumer(void *user, uint32_t id, bool there)
{
	struct side *side = user;
	if (there && !side->has_consumer) {
		side->consumer_id = id;
		side->has_consumer = true;
	} else if (!there && side->consumer_id == id) {
		side->has_consumer = false;
	}
}

/* ---- The streams ---- */

/* The peer's consumer arrives some time after the connection. */
static doca_error_t move_both(struct side *side, struct inlet *inlet, struct outlet *outlet)
{
	doca_error_t result = DOCA_SUCCESS;
	while (result == DOCA_SUCCESS && !(inlet->tally.ended && outlet_is_done(outlet))) {
		if (!channel_is_connected(&side->channel))
			return DOCA_ERROR_NOT_CONNECTED;
		engines_progress(&side->engines);
		result = inlet_receive(inlet);
		if (result == DOCA_SUCCESS && side->has_consumer)
			result = outlet_send(outlet, side->consumer_id);
	}
	return result;
}

/* The consumer is closed last, because that tells the peer that this side has finished. */
static doca_error_t stream(struct side *side, struct inlet *inlet, const struct config *config)
{
	struct outlet outlet;
	doca_error_t result = inlet_open(inlet, side->dev, &side->channel);
	if (result != DOCA_SUCCESS)
		return result;
	result = outlet_open(&outlet, side->dev, &side->channel, config->count, config->text);
	if (result == DOCA_SUCCESS) {
		result = move_both(side, inlet, &outlet);
		outlet_close(&outlet);
	}
	inlet_close(inlet);
	return result;
}

/* ---- The result ---- */

static doca_error_t judge(const char *side, const struct tally *tally)
{
	if (tally->ended)
		printf("%s got \"%s\"\n", side, tally->text);
	printf("%s got %" PRIu32 " blocks, %" PRIu64 " bytes", side, tally->blocks, tally->bytes);
	if (tally->ended && tally->blocks == tally->announced && tally->wrong == 0) {
		printf(", all in order and whole\n");
		return DOCA_SUCCESS;
	}
	printf(", %" PRIu32 " of them out of order or damaged", tally->wrong);
	if (tally->ended)
		printf(", %" PRIu32 " sent\n", tally->announced);
	else
		printf(", and no end\n");
	return DOCA_ERROR_IO_FAILED;
}

/* ---- The connection ---- */

/* The client hangs up when the peer's consumer is gone; the server waits for that. */
static void await_end(struct side *side)
{
	while (channel_is_connected(&side->channel) && (side->has_consumer || side->channel.server != NULL))
		engines_progress(&side->engines);
}

static doca_error_t connect_and_stream(struct side *side, const struct config *config)
{
	doca_error_t result = channel_open(&side->channel, side->dev, config->rep_pci, SERVICE);
	if (result != DOCA_SUCCESS)
		return result;
	struct inlet inlet = {.num_unposted = 0};
	result = channel_is_connected(&side->channel) ? stream(side, &inlet, config) : DOCA_ERROR_NOT_CONNECTED;
	if (result == DOCA_SUCCESS)
		await_end(side);
	doca_error_t verdict = judge(channel_side(&side->channel), &inlet.tally);
	channel_close(&side->channel);
	return result != DOCA_SUCCESS ? result : verdict;
}

static doca_error_t run(struct doca_dev *dev, void *config)
{
	struct side side = {
		.dev = dev,
		.channel = {.engines = &side.engines, .listener = {.user = &side, .consumer = on_consumer}},
	};
	doca_error_t result = engines_create(&side.engines);
	if (result != DOCA_SUCCESS)
		return result;
	result = connect_and_stream(&side, config);
	engines_destroy(&side.engines);
	return result;
}

static const struct example example = {
	"comch_stream",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device of this side", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"r", "rep-pci", "<PCI-ADDR>", "Function of the host, for the DPU", DOCA_ARGP_TYPE_STRING, set_rep_pci},
		{"t", "text", "<TEXT>", "Text for the other side", DOCA_ARGP_TYPE_STRING, set_text},
		{"n", "count", "<COUNT>", "Blocks for the other side", DOCA_ARGP_TYPE_INT, set_count},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "b1:00.0", .rep_pci = "b1:00.0", .text = "Hello", .count = 100};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
