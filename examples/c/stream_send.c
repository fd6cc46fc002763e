/* SPDX-License-Identifier: Apache-2.0 */
/* On the host: sends a stream of numbered blocks to the DPU's stream_receive over Comch's fast path. */
#include "stream_send.h"

#include <stdlib.h>

#include <doca_log.h>

#include "device.h"
#include "flags.h"

DOCA_LOG_REGISTER(STREAM_SEND);

struct config {
	char pci_addr[FLAG_SIZE];
	uint32_t count;
};

STRING_FLAG_CALLBACK(set_pci_addr, struct config, pci_addr)

static doca_error_t set_count(void *value, void *config)
{
	int count = *(int *)value;
	if (count < 0)
		return DOCA_ERROR_INVALID_VALUE;
	((struct config *)config)->count = (uint32_t)count;
	return DOCA_SUCCESS;
}

static doca_error_t run(const struct config *config)
{
	struct sender sender = {.has_consumer = false};
	doca_error_t result = device_open(config->pci_addr, &sender.dev);
	if (result != DOCA_SUCCESS)
		return result;
	result = engines_create(&sender.engines);
	if (result == DOCA_SUCCESS) {
		result = stream_call(&sender, config->count);
		engines_destroy(&sender.engines);
	}
	doca_dev_close(sender.dev);
	return result;
}

static doca_error_t read_flags(int argc, char **argv, struct config *config)
{
	doca_error_t result = doca_argp_init("stream_send", config);
	if (result == DOCA_SUCCESS)
		result = flag_register("p", "pci-addr", "<PCI-ADDR>", "Device of the host", set_pci_addr);
	if (result == DOCA_SUCCESS)
		result = flag_register_int("n", "count", "<COUNT>", "Blocks to send", set_count);
	if (result == DOCA_SUCCESS)
		result = doca_argp_start(argc, argv);
	return result;
}

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "b1:00.0", .count = 100};
	doca_error_t result = logs_open();
	if (result == DOCA_SUCCESS)
		result = read_flags(argc, argv, &config);
	if (result == DOCA_SUCCESS)
		result = run(&config);
	if (DOCA_IS_ERROR(result))
		DOCA_LOG_ERR("no stream: %s", doca_error_get_descr(result));
	doca_argp_destroy();
	return DOCA_IS_ERROR(result) ? EXIT_FAILURE : EXIT_SUCCESS;
}
