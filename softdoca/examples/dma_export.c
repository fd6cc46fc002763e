/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On the host: exports a text to the DPU. Writes the export descriptor, after the text's address and length, to a file,
 * and keeps the memory until its standard input ends. Until then every process with the file can read the memory.
 */
#include <stdio.h>
#include <string.h>

#include <doca_error.h>
#include <doca_log.h>

#include "descriptor.h"
#include "example.h"
#include "memory.h"

DOCA_LOG_REGISTER(DMA_EXPORT);

struct config {
	char pci_addr[FLAG_SIZE];
	char path[FLAG_SIZE];
	char text[FLAG_SIZE];
};

STORE_STRING(set_pci_addr, struct config, pci_addr)
STORE_STRING(set_path, struct config, path)
STORE_STRING(set_text, struct config, text)

static void wait_for_end_of_input(void)
{
	while (getchar() != EOF)
		;
}

static doca_error_t export_text(struct doca_dev *dev, struct doca_mmap *mmap, const struct config *config)
{
	struct descriptor descriptor = {.addr = (uint64_t)(uintptr_t)config->text, .len = strlen(config->text) + 1};
	doca_error_t result = doca_mmap_export_pci(mmap, dev, &descriptor.blob, &descriptor.blob_len);
	if (result == DOCA_SUCCESS)
		result = descriptor_save(&descriptor, config->path);
	if (result != DOCA_SUCCESS)
		return result;
	DOCA_LOG_INFO("exported %zu bytes", (size_t)descriptor.len);
	wait_for_end_of_input();
	return DOCA_SUCCESS;
}

static doca_error_t run(struct doca_dev *dev, void *argument)
{
	struct config *config = argument;
	struct doca_mmap *mmap;
	doca_error_t result =
		map_memory(dev, config->text, sizeof(config->text), DOCA_ACCESS_FLAG_PCI_READ_ONLY, &mmap);
	if (result != DOCA_SUCCESS)
		return result;
	result = export_text(dev, mmap, config);
	doca_mmap_destroy(mmap);
	return result;
}

static const struct example example = {
	"dma_export",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device of the host", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"d", "descriptor", "<PATH>", "File for the export descriptor", DOCA_ARGP_TYPE_STRING, set_path},
		{"t", "text", "<TEXT>", "Text to export", DOCA_ARGP_TYPE_STRING, set_text},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "b1:00.0", .path = "descriptor", .text = "Hello"};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
