/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends "ping" over a control channel in both directions: each end answers with a "pong", and is done when both are
 * answered. The device determines whether it is the server or the client.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <doca_error.h>

#include "channel.h"
#include "example.h"

#define SERVICE "examples ping"

struct config {
	char pci_addr[FLAG_SIZE];
	char rep_pci[FLAG_SIZE];
};

STORE_STRING(set_pci_addr, struct config, pci_addr)
STORE_STRING(set_rep_pci, struct config, rep_pci)

struct ping {
	const char *own_name;
	struct channel channel;
	bool answered, was_answered;
	doca_error_t result; /* of our answer */
};

static doca_error_t say(struct ping *ping, const char *verb, const char *name)
{
	char text[64];
	snprintf(text, sizeof(text), "%s %s", verb, name);
	return channel_send(&ping->channel, text);
}

static void on_message(void *user, const uint8_t *message, uint32_t len)
{
	char text[64];
	struct ping *ping = user;
	snprintf(text, sizeof(text), "%.*s", (int)len, (const char *)message);
	printf("%s got \"%s\"\n", ping->own_name, text);
	if (strncmp(text, "ping ", 5) == 0) {
		ping->result = say(ping, "pong", text + 5);
		ping->answered = true;
	} else if (strncmp(text, "pong ", 5) == 0) {
		ping->was_answered = true;
	}
}

/* The client hangs up when all is said, and its own answer has left; the server waits for that. */
static bool finished(const struct ping *ping)
{
	if (!ping->answered || !ping->was_answered)
		return false;
	return ping->channel.client != NULL ? channel_has_sent(&ping->channel) : !channel_is_connected(&ping->channel);
}

static doca_error_t talk(struct ping *ping)
{
	doca_error_t result = say(ping, "ping", ping->own_name);
	while (result == DOCA_SUCCESS && !finished(ping)) {
		if (!channel_is_connected(&ping->channel))
			return DOCA_ERROR_NOT_CONNECTED;
		engines_progress(ping->channel.engines);
		result = ping->result != DOCA_SUCCESS ? ping->result : ping->channel.result;
	}
	return result;
}

static doca_error_t open_channel(struct ping *ping, struct doca_dev *dev, const struct config *config)
{
	if (doca_comch_cap_server_is_supported(doca_dev_as_devinfo(dev)) == DOCA_SUCCESS) {
		ping->own_name = "DPU";
		return channel_serve(&ping->channel, dev, config->rep_pci, SERVICE);
	}
	ping->own_name = "host";
	return channel_call(&ping->channel, dev, SERVICE);
}

static doca_error_t run(struct doca_dev *dev, void *config)
{
	struct engines engines = {.data = NULL};
	struct ping ping = {.channel = {.engines = &engines, .listener = {.user = &ping, .message = on_message}}};
	doca_error_t result = doca_pe_create(&engines.control);
	if (result != DOCA_SUCCESS)
		return result;
	result = open_channel(&ping, dev, config);
	if (result == DOCA_SUCCESS) {
		result = talk(&ping);
		channel_close(&ping.channel);
	}
	doca_pe_destroy(engines.control);
	return result;
}

static const struct example example = {
	"comch_ping",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device to talk over", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"r", "rep-pci", "<PCI-ADDR>", "Function of the host, for the DPU", DOCA_ARGP_TYPE_STRING, set_rep_pci},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "b1:00.0", .rep_pci = "b1:00.0"};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
