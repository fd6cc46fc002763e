/* SPDX-License-Identifier: Apache-2.0 */
/* A child process that exports memory, and an importer of it in this process, for the tests. */
#ifndef DMA_COPY_REMOTE_END_H
#define DMA_COPY_REMOTE_END_H

#include "../device/remote_import.h"
#include "setup.h"

#define LEN 300001
#define PCI_READ DOCA_ACCESS_FLAG_PCI_READ_ONLY
#define PCI_WRITE DOCA_ACCESS_FLAG_PCI_READ_WRITE

/* Writes LEN bytes that depend on seed, or reports whether they are there. */
void fill_with(uint8_t *bytes, uint8_t seed);
bool filled_with(const uint8_t *bytes, uint8_t seed);

enum memory { MALLOC, PRIVATE, ALLOC, MAPPED_FILE };

/* LEN bytes of that kind. *fd is their file's, or -1. */
uint8_t *make_memory(enum memory memory, int *fd);
void drop_memory(enum memory memory, uint8_t *bytes, int fd);

enum command { CHECK_WRITTEN = 'w', DESTROY = 'd', TRUNCATE = 't', QUIT = 'q' };

struct offer {
	void *addr;
	size_t desc_len;
	uint8_t desc[512];
};

struct exporter {
	pid_t pid;
	int commands, replies;
	struct offer offer;
};

/* Exports LEN bytes of the host, or of the function pci, filled with seed 1. CHECK_WRITTEN expects seed 2. */
struct exporter start_exporter(enum memory memory, uint32_t permissions);
struct exporter start_exporter_on(const char *pci, enum memory memory, uint32_t permissions);
void send_command(struct exporter *e, enum command command);
void quit_exporter(struct exporter *e);
void kill_exporter(struct exporter *e);

struct importer {
	struct engine engine;
	struct doca_mmap *import, *local;
	uint8_t *bytes;
};

/* On the DPU, or the function pci. */
void open_importer(struct importer *i, const struct exporter *e);
void open_importer_on(const char *pci, struct importer *i, const struct exporter *e);
void close_importer(struct importer *i);

/* Copies all of the memory between the exporter and bytes. */
doca_error_t fetch(struct importer *i, const struct exporter *e);
doca_error_t store(struct importer *i, const struct exporter *e);

/* Blocks what the seccomp profile of many containers blocks, for the rest of the process, so call it in a child. */
void forbid_process_vm(void);
void in_child(void (*run)(void));

#endif
