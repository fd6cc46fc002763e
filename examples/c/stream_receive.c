/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On the DPU: receives the stream of one stream_send over Comch's fast path, and reports whether it was in order and
 * whole.
 */
#include "stream_receive.h"

#include <inttypes.h>
#include <stdio.h>

#include <doca_error.h>

#include "block.h"
#include "example.h"

struct config {
	char pci_addr[FLAG_SIZE];
	char rep_pci[FLAG_SIZE];
};

STORE_STRING(set_pci_addr, struct config, pci_addr)
STORE_STRING(set_rep_pci, struct config, rep_pci)

static doca_error_t judge(const struct tally *tally)
{
	printf("%" PRIu32 " blocks, %" PRIu64 " bytes", tally->blocks, tally->bytes);
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

/* The sender hangs up when it has seen the consumer go. */
static doca_error_t serve_and_receive(struct receiver *receiver, const char *rep_pci)
{
	doca_error_t result = channel_serve(&receiver->channel, receiver->dev, rep_pci, STREAM_SERVICE);
	if (result != DOCA_SUCCESS)
		return result;
	result = channel_is_connected(&receiver->channel) ? stream_consume(receiver) : DOCA_ERROR_NOT_CONNECTED;
	while (result == DOCA_SUCCESS && channel_is_connected(&receiver->channel))
		engines_progress(&receiver->engines);
	channel_close(&receiver->channel);
	return result;
}

static doca_error_t run(struct doca_dev *dev, void *config)
{
	struct receiver receiver = {.dev = dev, .channel = {.engines = &receiver.engines}};
	doca_error_t result = engines_create(&receiver.engines);
	if (result != DOCA_SUCCESS)
		return result;
	result = serve_and_receive(&receiver, ((struct config *)config)->rep_pci);
	engines_destroy(&receiver.engines);
	doca_error_t verdict = judge(&receiver.tally);
	return result != DOCA_SUCCESS ? result : verdict;
}

static const struct example example = {
	"stream_receive",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device of the DPU", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"r", "rep-pci", "<PCI-ADDR>", "Function of the host", DOCA_ARGP_TYPE_STRING, set_rep_pci},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "03:00.0", .rep_pci = "b1:00.0"};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
