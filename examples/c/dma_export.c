/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On the host: exports a text to the DPU. Writes the export descriptor, behind the text's address and length, to a file, and
 * keeps the memory until its standard input ends. Whoever has the file can read the memory until then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <doca_log.h>

#include "descriptor.h"
#include "device.h"
#include "flags.h"
#include "memory.h"

DOCA_LOG_REGISTER(DMA_EXPORT);

struct config {
	char pci_addr[FLAG_SIZE];
	char path[FLAG_SIZE];
	char text[FLAG_SIZE];
};

STRING_FLAG_CALLBACK(set_pci_addr, struct config, pci_addr)
STRING_FLAG_CALLBACK(set_path, struct config, path)
STRING_FLAG_CALLBACK(set_text, struct config, text)

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

static doca_error_t run(struct config *config)
{
	struct doca_dev *dev;
	struct doca_mmap *mmap;
	doca_error_t result = device_open(config->pci_addr, &dev);
	if (result != DOCA_SUCCESS)
		return result;
	result = map_memory(dev, config->text, sizeof(config->text), DOCA_ACCESS_FLAG_PCI_READ_ONLY, &mmap);
	if (result == DOCA_SUCCESS) {
		result = export_text(dev, mmap, config);
		doca_mmap_destroy(mmap);
	}
	doca_dev_close(dev);
	return result;
}

static doca_error_t read_flags(int argc, char **argv, struct config *config)
{
	doca_error_t result = doca_argp_init("dma_export", config);
	if (result == DOCA_SUCCESS)
		result = flag_register("p", "pci-addr", "<PCI-ADDR>", "Device of the host", set_pci_addr);
	if (result == DOCA_SUCCESS)
		result = flag_register("d", "descriptor", "<PATH>", "File for the export descriptor", set_path);
	if (result == DOCA_SUCCESS)
		result = flag_register("t", "text", "<TEXT>", "Text to export", set_text);
	if (result == DOCA_SUCCESS)
		result = doca_argp_start(argc, argv);
	return result;
}

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "b1:00.0", .path = "descriptor", .text = "Hello"};
	doca_error_t result = logs_open();
	if (result == DOCA_SUCCESS)
		result = read_flags(argc, argv, &config);
	if (result == DOCA_SUCCESS)
		result = run(&config);
	if (DOCA_IS_ERROR(result))
		DOCA_LOG_ERR("no export: %s", doca_error_get_descr(result));
	doca_argp_destroy();
	return DOCA_IS_ERROR(result) ? EXIT_FAILURE : EXIT_SUCCESS;
}
