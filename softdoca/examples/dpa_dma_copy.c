/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a text from one buffer of this process to another by the DPA of a device, which announces the end of the copy
 * in a message, and prints what arrived. The DPA's code is in dpa_dma_copy_dev.c.
 */
#include "dpa_dma_copy.h"

#include <stdio.h>
#include <string.h>

#include <doca_error.h>

#include "dpa.h"
#include "example.h"
#include "memory.h"
#include "msgq.h"

struct config {
	char pci_addr[FLAG_SIZE];
	char text[FLAG_SIZE];
};

STORE_STRING(set_pci_addr, struct config, pci_addr)
STORE_STRING(set_text, struct config, text)

/* Defined by the compiler for the DPA. */
extern struct doca_dpa_app *dpa_dma_copy_app;
extern doca_dpa_func_t copy_range;

/* A buffer and its map. */
struct buffer {
	char *text;
	struct doca_mmap *mmap;
};

struct job {
	struct buffer from, to;
	uint64_t len, copied; /* bytes: of the text, and that the DPA has announced */
};

static void on_copied(void *user, const uint8_t *message, uint32_t len)
{
	struct job *job = user;
	if (len == sizeof(job->copied))
		memcpy(&job->copied, message, sizeof(job->copied));
}

static doca_error_t locate(struct doca_dev *dev, const struct buffer *buffer, struct range *range)
{
	range->addr = (uintptr_t)buffer->text;
	return doca_mmap_dev_get_dpa_handle(buffer->mmap, dev, &range->mmap);
}

static doca_error_t copy_over(struct msgq_from_dpa *queue, const struct msgq_handles *handles, struct job *job)
{
	struct range from = {0}, to = {0};
	uint64_t refused = 0;
	doca_error_t result = locate(queue->dev, &job->from, &from);
	if (result == DOCA_SUCCESS)
		result = locate(queue->dev, &job->to, &to);
	if (result == DOCA_SUCCESS)
		result = doca_dpa_rpc(queue->dpa, copy_range, &refused, *handles, from, to, job->len);
	if (result == DOCA_SUCCESS && refused != 0)
		result = DOCA_ERROR_AGAIN;
	while (result == DOCA_SUCCESS && job->copied != job->len) {
		doca_pe_progress(queue->pe);
		result = queue->result;
		DOCA_ERROR_PROPAGATE(result, doca_dpa_peek_at_last_error(queue->dpa));
	}
	return result;
}

static doca_error_t copy_with_queue(struct doca_dev *dev, struct doca_dpa *dpa, struct job *job)
{
	struct msgq_from_dpa queue = {.dev = dev, .dpa = dpa, .received = on_copied, .user = job};
	struct msgq_handles handles = {0};
	doca_error_t result = doca_pe_create(&queue.pe);
	if (result != DOCA_SUCCESS)
		return result;
	result = msgq_from_dpa_open(&queue, &handles);
	if (result == DOCA_SUCCESS) {
		result = copy_over(&queue, &handles, job);
		msgq_from_dpa_close(&queue);
	}
	doca_pe_destroy(queue.pe);
	return result;
}

static doca_error_t copy_by_dpa(struct doca_dev *dev, struct job *job)
{
	struct doca_dpa *dpa;
	doca_error_t result = dpa_open(dev, dpa_dma_copy_app, &dpa);
	if (result != DOCA_SUCCESS)
		return result;
	result = copy_with_queue(dev, dpa, job);
	DOCA_ERROR_PROPAGATE(result, dpa_close(dpa));
	return result;
}

static doca_error_t run(struct doca_dev *dev, void *argument)
{
	struct config *config = argument;
	char arrived[FLAG_SIZE] = "";
	struct job job = {.from.text = config->text, .to.text = arrived, .len = strlen(config->text) + 1};
	doca_error_t result = map_memory(dev, job.from.text, job.len, DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, &job.from.mmap);
	if (result != DOCA_SUCCESS)
		return result;
	result = map_memory(dev, job.to.text, job.len, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &job.to.mmap);
	if (result == DOCA_SUCCESS) {
		result = copy_by_dpa(dev, &job);
		doca_mmap_destroy(job.to.mmap);
	}
	doca_mmap_destroy(job.from.mmap);
	if (result == DOCA_SUCCESS)
		printf("%s\n", arrived);
	return result;
}

static const struct example example = {
	"dpa_dma_copy",
	run,
	{
		{"p", "pci-addr", "<PCI-ADDR>", "Device with the DPA", DOCA_ARGP_TYPE_STRING, set_pci_addr},
		{"t", "text", "<TEXT>", "Text to copy", DOCA_ARGP_TYPE_STRING, set_text},
	},
};

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "03:00.0", .text = "Hello"};
	return example_main(&example, &config, config.pci_addr, argc, argv);
}
