/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a text as a "ping" over a control channel in both directions: each end prints what it gets, answers with a
 * "pong", and is done when both are answered. The device determines whether it is the server or the client.
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
	char text[FLAG_SIZE];
};

STORE_STRING(set_pci_addr, struct config, pci_addr)
STORE_STRING(set_rep_pci, struct config, rep_pci)
STORE_STRING(set_text, struct config, text)

struct ping {
	struct channel channel;
	bool answered, was_answered;
	doca_error_t result; /* of our answer */
};

static doca_error_t say(struct ping *ping, const char *verb, const char *text)
{
	char message[FLAG_SIZE + 8];
	int len = snprintf(message, sizeof(message), "%s %s", verb, text);
	return channel_send(&ping->channel, message, (size_t)len);
}

static void on_message(void *user, const uint8_t *message, uint32_t len)
{
	char text[FLAG_SIZE + 8];
	struct ping *ping = user;
	snprintf(text, sizeof(text), "%.*s", (int)len, (const char *)message);
	printf("%s got \"%s\"\n", channel_side(&ping->channel), text);
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

static doca_error_t talk(struct ping *ping, const char *text)
{
	doca_error_t result = say(ping, "ping", text);
	while (result == DOCA_SUCCESS && !finished(ping)) {
		if (!channel_is_connected(&ping->channel))
			return DOCA_ERROR_NOT_CONNECTED;
		engines_progress(ping->channel.engines);
		result = ping->result != DOCA_SUCCESS ? ping->result : ping->channel.result;
	}
	return result;
}

static doca_error_t run(struct doca_dev *dev, void *argument)
{
	const struct config *config = argument;
	struct engines engines = {.data = NULL};
	struct ping ping = {.channel = {.engines = &engines, .listener = {.user = &ping, .message = on_message}}};
	doca_error_t result = doca_pe_create(&engines.control);
	if (result != DOCA_SUCCESS)
		return result;
	result = channel_open(&ping.channel, dev, config->rep_pci, SERVICE);
	if (result == DOCA_SUCCESS) {
		result = talk(&ping, config->text);
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
		{"t", "text", "<TEXT>", "Text for the other side", DOCA_ARGP_TYPE_STRING, set_text},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "b1:00.0", .rep_pci = "b1:00.0", .text = "Hello"};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
