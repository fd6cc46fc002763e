/* SPDX-License-Identifier: Apache-2.0 */
/* On the DPU: fetches the text that dma_export exported on the host, by DMA, and prints it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <doca_log.h>

#include "copy.h"
#include "descriptor.h"
#include "device.h"
#include "flags.h"
#include "memory.h"

DOCA_LOG_REGISTER(DMA_IMPORT);

struct config {
	char pci_addr[FLAG_SIZE];
	char path[FLAG_SIZE];
};

STRING_FLAG_CALLBACK(set_pci_addr, struct config, pci_addr)
STRING_FLAG_CALLBACK(set_path, struct config, path)

static doca_error_t fetch(struct doca_dev *dev, struct doca_mmap *remote, const struct descriptor *descriptor,
			  char *text)
{
	struct copy copy = {
		.from_mmap = remote,
		.from = (void *)(uintptr_t)descriptor->addr,
		.to = text,
		.len = descriptor->len,
	};
	doca_error_t result = map_memory(dev, text, copy.len, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &copy.to_mmap);
	if (result != DOCA_SUCCESS)
		return result;
	result = copy_run(dev, &copy);
	doca_mmap_destroy(copy.to_mmap);
	return result;
}

static doca_error_t import_text(struct doca_dev *dev, const struct descriptor *descriptor)
{
	struct doca_mmap *remote;
	char text[FLAG_SIZE] = "";
	if (descriptor->len == 0 || descriptor->len > sizeof(text))
		return DOCA_ERROR_TOO_BIG;
	doca_error_t result = doca_mmap_create_from_export(NULL, descriptor->blob, descriptor->blob_len, dev, &remote);
	if (result != DOCA_SUCCESS)
		return result;
	result = fetch(dev, remote, descriptor, text);
	if (result == DOCA_SUCCESS)
		printf("%.*s\n", (int)sizeof(text), text);
	doca_mmap_destroy(remote);
	return result;
}

static doca_error_t run(const struct config *config)
{
	char room[4096];
	struct descriptor descriptor;
	struct doca_dev *dev;
	doca_error_t result = descriptor_load(&descriptor, config->path, room, sizeof(room));
	if (result != DOCA_SUCCESS)
		return result;
	result = device_open(config->pci_addr, &dev);
	if (result != DOCA_SUCCESS)
		return result;
	result = import_text(dev, &descriptor);
	doca_dev_close(dev);
	return result;
}

static doca_error_t read_flags(int argc, char **argv, struct config *config)
{
	doca_error_t result = doca_argp_init("dma_import", config);
	if (result == DOCA_SUCCESS)
		result = flag_register("p", "pci-addr", "<PCI-ADDR>", "Device of the DPU", set_pci_addr);
	if (result == DOCA_SUCCESS)
		result = flag_register("d", "descriptor", "<PATH>", "File with the export descriptor", set_path);
	if (result == DOCA_SUCCESS)
		result = doca_argp_start(argc, argv);
	return result;
}

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "03:00.0", .path = "descriptor"};
	doca_error_t result = logs_open();
	if (result == DOCA_SUCCESS)
		result = read_flags(argc, argv, &config);
	if (result == DOCA_SUCCESS)
		result = run(&config);
	if (DOCA_IS_ERROR(result))
		DOCA_LOG_ERR("no import: %s", doca_error_get_descr(result));
	doca_argp_destroy();
	return DOCA_IS_ERROR(result) ? EXIT_FAILURE : EXIT_SUCCESS;
}
