/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a text from one buffer of this process to another by DMA, and prints what arrived. */
#include <stdio.h>
#include <string.h>

#include <doca_error.h>

#include "copy.h"
#include "example.h"
#include "memory.h"

struct config {
	char pci_addr[FLAG_SIZE];
	char text[FLAG_SIZE];
};

STORE_STRING(set_pci_addr, struct config, pci_addr)
STORE_STRING(set_text, struct config, text)

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

static doca_error_t run(struct doca_dev *dev, void *argument)
{
	struct config *config = argument;
	char arrived[FLAG_SIZE] = "";
	doca_error_t result = copy_text(dev, config->text, arrived, strlen(config->text) + 1);
	if (result == DOCA_SUCCESS)
		printf("%s\n", arrived);
	return result;
}

static const struct example example = {
	"dma_local_copy",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device that copies", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"t", "text", "<TEXT>", "Text to copy", DOCA_ARGP_TYPE_STRING, set_text},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "03:00.0", .text = "Hello"};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
