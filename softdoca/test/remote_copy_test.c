/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to and from memory that another process exports, by every method. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../device/mmap.h"
#include "remote_end.h"

/* ---- methods ---- */

/* Parts at odd offsets, so that a wrong offset shows. */
static void fetch_parts(struct importer *i, const struct exporter *e)
{
	memset(i->bytes, 0, LEN);
	for (size_t at = 0, len = 1; at < LEN; at += len, len = len * 3 + 1) {
		if (len > LEN - at)
			len = LEN - at;
		CHECK_OK(engine_copy(&i->engine, i->local, i->bytes + at, i->import, (uint8_t *)e->offer.addr + at,
				     len));
	}
	CHECK(filled_with(i->bytes, 1));
}

static void round_trip(enum memory memory, enum remote_method method, const char *limits)
{
	setup_configure(limits);
	struct exporter e = start_exporter(memory, PCI_WRITE);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	CHECK(filled_with(i.bytes, 1) && atomic_load(&i.import->import->method) == method);
	fetch_parts(&i, &e);
	fill_with(i.bytes, 2);
	CHECK_OK(store(&i, &e));
	CHECK(atomic_load(&i.import->import->method) == method);
	send_command(&e, CHECK_WRITTEN);
	close_importer(&i);
	quit_exporter(&e);
	CHECK(setup_count_files("mem.") == 0);
}

static void test_any_memory(void)
{
	round_trip(MALLOC, REMOTE_BY_PROCESS, NULL);
	round_trip(PRIVATE, REMOTE_BY_PROCESS, NULL);
}

static void test_own_memory_is_mapped(void)
{
	round_trip(ALLOC, REMOTE_BY_MAPPING, NULL);
}

static void test_mapping_switched_off(void)
{
	round_trip(ALLOC, REMOTE_BY_PROCESS, "remote_mapping=0");
}

static void test_file_memory(void)
{
	round_trip(MAPPED_FILE, REMOTE_BY_PROCESS, NULL);
}

/* ---- the other direction ---- */

/* The host's engine copies, and the DPU's memory is exported. */
static void test_host_copies(void)
{
	setup_configure(NULL);
	struct exporter e = start_exporter_on(DPU_PCI, ALLOC, PCI_WRITE);
	struct importer i, dpu;
	open_importer_on(HOST_PCI, &i, &e);
	CHECK_OK(fetch(&i, &e));
	CHECK(filled_with(i.bytes, 1));
	fill_with(i.bytes, 2);
	CHECK_OK(store(&i, &e));
	send_command(&e, CHECK_WRITTEN);
	engine_open(&dpu.engine, DPU_PCI, 1); /* an import of the host is not one of the DPU */
	dpu.local = setup_mmap(dpu.engine.dev, i.bytes, LEN, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, engine_copy(&dpu.engine, dpu.local, i.bytes, i.import, e.offer.addr, LEN));
	CHECK_OK(soft_doca_mmap_destroy(dpu.local));
	engine_close(&dpu.engine);
	close_importer(&i);
	quit_exporter(&e);
}

/* ---- where the kernel refuses ---- */

static void refused_round_trips(void)
{
	forbid_process_vm();
	round_trip(MAPPED_FILE, REMOTE_BY_DESCRIPTOR, NULL);
	round_trip(ALLOC, REMOTE_BY_DESCRIPTOR, "remote_mapping=0");
	round_trip(ALLOC, REMOTE_BY_MAPPING, NULL);
	setup_configure(NULL);
	struct exporter e = start_exporter(MALLOC, PCI_WRITE);
	struct importer i;
	open_importer(&i, &e);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	CHECK(strstr(soft_last_detail(), "process_vm_readv") != NULL);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_import_read(i.import->import, i.bytes, e.offer.addr, 1));
	close_importer(&i);
	quit_exporter(&e);
}

static void test_refused_process_access(void)
{
	in_child(refused_round_trips);
}

static void limited_exporter(void)
{
	struct rlimit before, limit;
	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	limit = (struct rlimit){.rlim_cur = LEN / 2, .rlim_max = before.rlim_max};
	setup_configure(NULL);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	struct exporter e = start_exporter(ALLOC, PCI_WRITE);
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	forbid_process_vm();
	struct importer i;
	open_importer(&i, &e);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	CHECK(strstr(soft_last_detail(), "ulimit -f") != NULL && strstr(soft_last_detail(), "seccomp") == NULL);
	close_importer(&i);
	quit_exporter(&e);
}

/* The limit on file sizes of the exporter is named as the cause, because without it the memory could be mapped. */
static void test_limited_exporter(void)
{
	in_child(limited_exporter);
}

int main(void)
{
	setup_configure(NULL);
	RUN(test_any_memory);
	RUN(test_own_memory_is_mapped);
	RUN(test_mapping_switched_off);
	RUN(test_file_memory);
	RUN(test_host_copies);
	RUN(test_refused_process_access);
	RUN(test_limited_exporter);
	return 0;
}
