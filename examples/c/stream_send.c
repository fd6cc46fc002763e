/* SPDX-License-Identifier: Apache-2.0 */
/* On the host: sends a stream of numbered blocks to the DPU's stream_receive over Comch's fast path. */
#include "stream_send.h"

#include <doca_error.h>

#include "block.h"
#include "example.h"

struct config {
	char pci_addr[FLAG_SIZE];
	uint32_t count;
};

STORE_STRING(set_pci_addr, struct config, pci_addr)

static doca_error_t set_count(void *value, void *config)
{
	int count = *(int *)value;
	if (count < 0)
		return DOCA_ERROR_INVALID_VALUE;
	((struct config *)config)->count = (uint32_t)count;
	return DOCA_SUCCESS;
}

static void on_consumer(void *user, uint32_t id, bool there)
{
	struct sender *sender = user;
	if (there && !sender->has_consumer) {
		sender->consumer_id = id;
		sender->has_consumer = true;
	} else if (!there && sender->consumer_id == id) {
		sender->has_consumer = false;
	}
}

static void wait_for_consumer(struct sender *sender, bool there)
{
	while (sender->has_consumer != there && channel_is_connected(&sender->channel))
		engines_progress(&sender->engines);
}

/* The consumer expires when it has received everything: then disconnect. */
static doca_error_t send_to_consumer(struct sender *sender, uint32_t count)
{
	wait_for_consumer(sender, true);
	if (!sender->has_consumer)
		return DOCA_ERROR_NOT_CONNECTED;
	doca_error_t result = stream_produce(sender, count);
	if (result == DOCA_SUCCESS)
		wait_for_consumer(sender, false);
	return result;
}

static doca_error_t call_and_send(struct sender *sender, uint32_t count)
{
	doca_error_t result = channel_call(&sender->channel, sender->dev, STREAM_SERVICE);
	if (result != DOCA_SUCCESS)
		return result;
	result = send_to_consumer(sender, count);
	channel_close(&sender->channel);
	return result;
}

static doca_error_t run(struct doca_dev *dev, void *config)
{
	struct sender sender = {
		.dev = dev,
		.channel = {.engines = &sender.engines, .listener = {.user = &sender, .consumer = on_consumer}},
	};
	doca_error_t result = engines_create(&sender.engines);
	if (result != DOCA_SUCCESS)
		return result;
	result = call_and_send(&sender, ((struct config *)config)->count);
	engines_destroy(&sender.engines);
	return result;
}

static const struct example example = {
	"stream_send",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device of the host", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"n", "count", "<COUNT>", "Blocks to send", DOCA_ARGP_TYPE_INT, set_count},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "b1:00.0", .count = 100};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
