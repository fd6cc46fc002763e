/* SPDX-License-Identifier: Apache-2.0 */
/* On the DPU: fetches the text that dma_export exported on the host, by DMA, and prints it. */
#include <stdio.h>

#include <doca_error.h>

#include "copy.h"
#include "descriptor.h"
#include "example.h"
#include "memory.h"

struct config {
	char pci_addr[FLAG_SIZE];
	char path[FLAG_SIZE];
};

STORE_STRING(set_pci_addr, struct config, pci_addr)
STORE_STRING(set_path, struct config, path)

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

static doca_error_t run(struct doca_dev *dev, void *argument)
{
	const struct config *config = argument;
	char buffer[4096];
	struct descriptor descriptor;
	doca_error_t result = descriptor_load(&descriptor, config->path, buffer, sizeof(buffer));
	return result == DOCA_SUCCESS ? import_text(dev, &descriptor) : result;
}

static const struct example example = {
	"dma_import",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device of the DPU", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"d", "descriptor", "<PATH>", "File with the export descriptor", DOCA_ARGP_TYPE_STRING, set_path},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "03:00.0", .path = "descriptor"};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
