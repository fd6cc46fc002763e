/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and end of access to exported memory, ended by either side. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../device/mmap.h"
#include "remote_end.h"

static void read_only(enum memory memory, const char *exporter, const char *importer)
{
	struct exporter e = start_exporter_on(exporter, memory, PCI_READ);
	struct importer i;
	open_importer_on(importer, &i, &e);
	CHECK_OK(fetch(&i, &e));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, store(&i, &e));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_import_write(i.import->import, e.offer.addr, i.bytes, 1));
	if (i.import->import->backing_fd >= 0)
		CHECK((fcntl(i.import->import->backing_fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	CHECK_OK(fetch(&i, &e));
	close_importer(&i);
	quit_exporter(&e);
}

static void test_read_only(void)
{
	setup_configure(NULL);
	read_only(MALLOC, HOST_PCI, DPU_PCI);
	read_only(PRIVATE, HOST_PCI, DPU_PCI);
	read_only(ALLOC, HOST_PCI, DPU_PCI);
	read_only(MAPPED_FILE, HOST_PCI, DPU_PCI);
	read_only(ALLOC, DPU_PCI, HOST_PCI);
}

static void revoked(enum memory memory, const char *exporter, const char *importer)
{
	struct exporter e = start_exporter_on(exporter, memory, PCI_WRITE);
	struct importer i;
	open_importer_on(importer, &i, &e);
	CHECK_OK(fetch(&i, &e));
	send_command(&e, DESTROY);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	CHECK(strstr(soft_last_detail(), "ended") != NULL);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, store(&i, &e));
	struct doca_mmap *late;
	CHECK_RESULT(DOCA_ERROR_DRIVER,
		     soft_doca_mmap_create_from_export(NULL, e.offer.desc, e.offer.desc_len, i.engine.dev, &late));
	close_importer(&i);
	quit_exporter(&e);
}

static void test_exporter_destroys(void)
{
	revoked(MALLOC, HOST_PCI, DPU_PCI);
	revoked(PRIVATE, HOST_PCI, DPU_PCI);
	revoked(ALLOC, HOST_PCI, DPU_PCI);
	revoked(MAPPED_FILE, HOST_PCI, DPU_PCI);
	revoked(ALLOC, DPU_PCI, HOST_PCI);
}

static void killed(enum memory memory)
{
	struct exporter e = start_exporter(memory, PCI_WRITE);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	CHECK(setup_count_files("mem.") == 1);
	kill_exporter(&e);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	CHECK(strstr(soft_last_detail(), "gone") != NULL && setup_count_files("mem.") == 0);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, store(&i, &e));
	close_importer(&i);
}

static void test_exporter_killed(void)
{
	killed(MALLOC);
	killed(ALLOC);
	killed(MAPPED_FILE);
}

static void test_killed_before_import(void)
{
	struct exporter e = start_exporter(MALLOC, PCI_READ);
	kill_exporter(&e);
	CHECK(setup_count_files("mem.") == 1);
	struct soft_import *import;
	struct soft_range range;
	CHECK_RESULT(DOCA_ERROR_DRIVER, soft_import_open(e.offer.desc, e.offer.desc_len, &import, &range));
	CHECK(setup_count_files("mem.") == 0);
}

static void test_stopped_before_import(void)
{
	struct exporter e = start_exporter(MALLOC, PCI_READ);
	struct soft_import *import;
	struct soft_range range;
	int status;
	CHECK(kill(e.pid, SIGSTOP) == 0 && waitpid(e.pid, &status, WUNTRACED) == e.pid && WIFSTOPPED(status));
	CHECK_RESULT(DOCA_ERROR_TIME_OUT, soft_import_open(e.offer.desc, e.offer.desc_len, &import, &range));
	CHECK(strstr(soft_last_detail(), "stopped") != NULL);
	CHECK(kill(e.pid, SIGCONT) == 0);
	quit_exporter(&e);
}

/* A live socket, a dead one, and another program's. */
static void test_sweep(void)
{
	struct exporter dead = start_exporter(MALLOC, PCI_READ), living = start_exporter(MALLOC, PCI_READ);
	char path[400];
	snprintf(path, sizeof(path), "%s/mem.file", setup_dir());
	FILE *file = fopen(path, "w");
	CHECK(file != NULL && fclose(file) == 0);
	kill_exporter(&dead);
	CHECK(setup_count_files("mem.") == 3);
	setup_configure(NULL);
	CHECK(setup_count_files("mem.") == 2);
	struct importer i;
	open_importer(&i, &living);
	CHECK_OK(fetch(&i, &living));
	close_importer(&i);
	quit_exporter(&living);
	CHECK(unlink(path) == 0);
}

static void shrunken(void)
{
	struct exporter e = start_exporter(MAPPED_FILE, PCI_WRITE);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	send_command(&e, TRUNCATE);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, store(&i, &e));
	CHECK_OK(engine_copy(&i.engine, i.local, i.bytes, i.import, e.offer.addr, 4096));
	close_importer(&i);
	quit_exporter(&e);
}

static void shrunken_without_process_vm(void)
{
	forbid_process_vm();
	shrunken();
}

static void test_exporter_truncates(void)
{
	shrunken();
	in_child(shrunken_without_process_vm);
}

int main(void)
{
	setup_configure(NULL);
	RUN(test_read_only);
	RUN(test_exporter_destroys);
	RUN(test_exporter_killed);
	RUN(test_killed_before_import);
	RUN(test_stopped_before_import);
	RUN(test_sweep);
	RUN(test_exporter_truncates);
	return 0;
}
