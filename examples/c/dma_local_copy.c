/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a text from one buffer of this process to another by DMA, and prints what arrived. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <doca_log.h>

#include "copy.h"
#include "device.h"
#include "flags.h"
#include "memory.h"

DOCA_LOG_REGISTER(DMA_LOCAL_COPY);

struct config {
	char pci_addr[FLAG_SIZE];
	char text[FLAG_SIZE];
};

STRING_FLAG_CALLBACK(set_pci_addr, struct config, pci_addr)
STRING_FLAG_CALLBACK(set_text, struct config, text)

static doca_error_t copy_text(struct doca_dev *dev, char *from, char *to, size_t len)
{
	struct copy copy = {.from = from, .to = to, .len = len};
	doca_error_t result = map_memory(dev, from, len, DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, &copy.from_mmap);
	if (result != DOCA_SUCCESS)
		return result;
	result = map_memory(dev, to, len, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &copy.to_mmap);
	if (result == DOCA_SUCCESS) {
		result = copy_run(dev, &copy);
		doca_mmap_destroy(copy.to_mmap);
	}
	doca_mmap_destroy(copy.from_mmap);
	return result;
}

static doca_error_t run(struct config *config)
{
	struct doca_dev *dev;
	char arrived[FLAG_SIZE] = "";
	doca_error_t result = device_open(config->pci_addr, &dev);
	if (result != DOCA_SUCCESS)
		return result;
	result = copy_text(dev, config->text, arrived, strlen(config->text) + 1);
	if (result == DOCA_SUCCESS)
		printf("%s\n", arrived);
	doca_dev_close(dev);
	return result;
}

static doca_error_t read_flags(int argc, char **argv, struct config *config)
{
	doca_error_t result = doca_argp_init("dma_local_copy", config);
	if (result == DOCA_SUCCESS)
		result = flag_register("p", "pci-addr", "<PCI-ADDR>", "Device that copies", set_pci_addr);
	if (result == DOCA_SUCCESS)
		result = flag_register("t", "text", "<TEXT>", "Text to copy", set_text);
	if (result == DOCA_SUCCESS)
		result = doca_argp_start(argc, argv);
	return result;
}

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "03:00.0", .text = "Hello"};
	doca_error_t result = logs_open();
	if (result == DOCA_SUCCESS)
		result = read_flags(argc, argv, &config);
	if (result == DOCA_SUCCESS)
		result = run(&config);
	if (DOCA_IS_ERROR(result))
		DOCA_LOG_ERR("no copy: %s", doca_error_get_descr(result));
	doca_argp_destroy();
	return DOCA_IS_ERROR(result) ? EXIT_FAILURE : EXIT_SUCCESS;
}
