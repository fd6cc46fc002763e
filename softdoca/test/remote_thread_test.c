/* SPDX-License-Identifier: Apache-2.0 */
/* Exports and imports within one process, on several threads. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../device/memory.h"
#include "remote_end.h"

static unsigned count_fds(void)
{
	unsigned count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void own_export(enum memory memory)
{
	int fd;
	uint8_t *bytes = make_memory(memory, &fd);
	fill_with(bytes, 1);
	struct doca_dev *host = setup_open_dev(HOST_PCI);
	struct doca_mmap *mmap = setup_mmap(host, bytes, LEN, PCI_WRITE);
	struct exporter e = {.offer = {.addr = bytes}};
	const void *desc;
	CHECK_OK(soft_doca_mmap_export_pci(mmap, host, &desc, &e.offer.desc_len));
	memcpy(e.offer.desc, desc, e.offer.desc_len);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	CHECK(filled_with(i.bytes, 1));
	fill_with(i.bytes, 2);
	CHECK_OK(store(&i, &e));
	CHECK(filled_with(bytes, 2));
	CHECK_OK(soft_doca_mmap_stop(mmap));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	close_importer(&i);
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_dev_close(host));
	drop_memory(memory, bytes, fd);
}

static void test_own_exports(void)
{
	setup_configure(NULL);
	unsigned fds = count_fds();
	own_export(MALLOC);
	own_export(ALLOC);
	own_export(MAPPED_FILE);
	CHECK(count_fds() == fds);
}

static void test_import_rules(void)
{
	struct exporter e = start_exporter(ALLOC, PCI_READ);
	struct doca_dev *host = setup_open_dev(HOST_PCI), *dpu = setup_open_dev(DPU_PCI);
	struct doca_mmap *m;
	union doca_data data = {.u64 = 42};
	const void *desc;
	size_t len;
	void *addr;
	uint8_t from_export;
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED,
		     soft_doca_mmap_create_from_export(NULL, e.offer.desc, e.offer.desc_len, host, &m));
	CHECK_OK(soft_doca_mmap_create_from_export(&data, e.offer.desc, e.offer.desc_len, dpu, &m));
	data.u64 = 0;
	CHECK_OK(soft_doca_mmap_get_user_data(m, &data));
	CHECK_OK(soft_doca_mmap_get_memrange(m, &addr, &len));
	CHECK_OK(soft_doca_mmap_get_from_export(m, &from_export));
	CHECK(data.u64 == 42 && addr == e.offer.addr && len == LEN && from_export == 1);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_start(m));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_stop(m));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_add_dev(m, host));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_rm_dev(m, dpu));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_set_permissions(m, 0));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_set_memrange(m, addr, len));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_export_pci(m, dpu, &desc, &len));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(dpu));
	CHECK_OK(soft_doca_mmap_destroy(m));
	CHECK_OK(soft_doca_dev_close(host));
	CHECK_OK(soft_doca_dev_close(dpu));
	quit_exporter(&e);
}

static atomic_bool copying;

/* Copies until it is refused. Bytes that the owner wrote after the end of the export must never arrive. */
static void *copy_until_refused(void *arg)
{
	struct soft_import *import = arg;
	uint8_t *bytes = malloc(LEN);
	CHECK(bytes != NULL);
	while (soft_import_read(import, bytes, import->range.addr, LEN) == DOCA_SUCCESS) {
		atomic_store(&copying, true);
		CHECK(memchr(bytes, 0xee, LEN) == NULL);
	}
	free(bytes);
	return NULL;
}

/* Ends an export. An importer that the machine does not run in the middle of a copy delays that, for any time. */
static void close_patiently(struct soft_export *export)
{
	doca_error_t result;
	while ((result = soft_export_close(export)) == DOCA_ERROR_IN_USE)
		;
	CHECK_OK(result);
}

/* Memory is released at once after the end of the export, while others still try to copy from it. */
static void test_revoked_while_copying(void)
{
	struct doca_dev *host = setup_open_dev(HOST_PCI);
	for (int round = 0; round < 20; round++) {
		uint8_t *bytes = memory_alloc(LEN);
		struct soft_range range = {bytes, LEN, PCI_READ, false};
		struct soft_export *export;
		struct soft_import *imports[2];
		pthread_t threads[2];
		const void *desc;
		size_t len;
		CHECK_OK(soft_export_open(&range, &export));
		soft_export_descriptor(export, &desc, &len);
		atomic_store(&copying, false);
		for (int i = 0; i < 2; i++) {
			CHECK_OK(soft_import_open(desc, len, &imports[i], &range));
			CHECK(pthread_create(&threads[i], NULL, copy_until_refused, imports[i]) == 0);
		}
		while (!atomic_load(&copying))
			usleep(10);
		close_patiently(export);
		memset(bytes, 0xee, LEN);
		memory_free(bytes, LEN);
		for (int i = 0; i < 2; i++) {
			CHECK(pthread_join(threads[i], NULL) == 0);
			CHECK(atomic_load(&imports[i]->gate->busy) == 0);
			soft_import_close(imports[i]);
		}
	}
	CHECK_OK(soft_doca_dev_close(host));
}

static atomic_bool closed;

static void *close_export(void *export)
{
	close_patiently(export);
	atomic_store(&closed, true);
	return NULL;
}

/* The end of an export waits for a copy, which the test simulates, until it is done or its process is dead. */
static void end_while_busy(bool importer_dies)
{
	static uint8_t bytes[64];
	struct soft_range range = {bytes, sizeof(bytes), PCI_READ, false};
	struct soft_export *export;
	struct soft_import *import;
	pthread_t thread;
	const void *desc;
	size_t len;
	CHECK_OK(soft_export_open(&range, &export));
	soft_export_descriptor(export, &desc, &len);
	CHECK_OK(soft_import_open(desc, len, &import, &range));
	atomic_store(&import->gate->busy, 1);
	atomic_store(&closed, false);
	CHECK(pthread_create(&thread, NULL, close_export, export) == 0);
	while (atomic_load(&import->gate->revoked) == 0)
		usleep(10);
	usleep(5000);
	CHECK(!atomic_load(&closed));
	if (!importer_dies)
		atomic_store(&import->gate->busy, 0);
	else
		soft_import_close(import);
	CHECK(pthread_join(thread, NULL) == 0);
	if (!importer_dies)
		soft_import_close(import);
}

/* An importer that does not finish keeps the memory, but does not block the exporter. */
static void test_end_wait_is_bounded(void)
{
	static uint8_t bytes[64], copy[64];
	struct soft_range range = {bytes, sizeof(bytes), PCI_READ, false};
	struct soft_export *export;
	struct soft_import *import;
	const void *desc;
	size_t len;
	setup_configure(NULL);
	CHECK_OK(soft_export_open(&range, &export));
	soft_export_descriptor(export, &desc, &len);
	CHECK_OK(soft_import_open(desc, len, &import, &range));
	atomic_store(&import->gate->busy, 1);
	CHECK(soft_export_close(export) == DOCA_ERROR_IN_USE);
	CHECK(soft_import_read(import, copy, bytes, sizeof(copy)) == DOCA_ERROR_IO_FAILED);
	atomic_store(&import->gate->busy, 0);
	CHECK_OK(soft_export_close(export));
	soft_import_close(import);
}

static void test_end_waits_for_copies(void)
{
	setup_configure(NULL);
	end_while_busy(false);
	end_while_busy(true);
}

static void *come_and_go(void *unused)
{
	(void)unused;
	for (int i = 0; i < 50; i++) {
		uint8_t bytes[64] = {0}, copy[64];
		struct soft_range range = {bytes, sizeof(bytes), PCI_READ, false}, seen;
		struct soft_export *export;
		struct soft_import *import;
		const void *desc;
		size_t len;
		CHECK_OK(soft_export_open(&range, &export));
		soft_export_descriptor(export, &desc, &len);
		CHECK_OK(soft_import_open(desc, len, &import, &seen));
		CHECK_OK(soft_import_read(import, copy, bytes, sizeof(copy)));
		soft_import_close(import);
		soft_export_close(export);
	}
	return NULL;
}

/* The service starts with the first export and ends with the last, on any thread. */
static void test_exports_come_and_go(void)
{
	pthread_t threads[4];
	unsigned fds = count_fds();
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, come_and_go, NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(count_fds() == fds && setup_count_files("mem.") == 0);
}

int main(void)
{
	setup_configure(NULL);
	RUN(test_own_exports);
	RUN(test_import_rules);
	RUN(test_revoked_while_copying);
	RUN(test_end_waits_for_copies);
	RUN(test_end_wait_is_bounded);
	RUN(test_exports_come_and_go);
	return 0;
}
