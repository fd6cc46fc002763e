/* SPDX-License-Identifier: Apache-2.0 */
/* Sync events between a host process and a DPU process: export, import, and how either ends. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../device/memory.h"
#include "../sync/soft_sync.h"
#include "../sync/sync_event.h"
#include "remote_end.h"

#define ALL UINT64_MAX
#define INVALID(call) CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, call)

/* ---- the two ends ---- */

struct end {
	struct doca_dev *dev;
	struct doca_sync_event *event;
	const uint8_t *data; /* the exporter's descriptor */
	size_t size;
};

static void open_exporter(struct end *host)
{
	*host = (struct end){.dev = setup_open_dev(HOST_PCI)};
	CHECK_OK(soft_doca_sync_event_create(&host->event));
	CHECK_OK(soft_doca_sync_event_add_publisher_location_remote_pci(host->event));
	CHECK_OK(soft_doca_sync_event_add_subscriber_location_cpu(host->event, host->dev));
}

static void export_event(struct end *host)
{
	open_exporter(host);
	CHECK_OK(soft_doca_sync_event_start(host->event));
	CHECK_OK(soft_doca_sync_event_export_to_remote_pci(host->event, host->dev, &host->data, &host->size));
}

static void import_event(struct end *dpu, const struct end *host)
{
	*dpu = (struct end){.dev = setup_open_dev(DPU_PCI)};
	CHECK_OK(soft_doca_sync_event_create_from_export(dpu->dev, host->data, host->size, &dpu->event));
	CHECK_OK(soft_doca_sync_event_start(dpu->event));
}

static void close_end(struct end *end)
{
	CHECK_OK(soft_doca_sync_event_destroy(end->event));
	CHECK_OK(soft_doca_dev_close(end->dev));
}

/* Runs the DPU's end in a process of its own, with the host's descriptor as the parent has it. */
static pid_t start_dpu(const struct end *host, void (*run)(struct end *dpu))
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid > 0)
		return pid;
	struct end dpu;
	import_event(&dpu, host);
	run(&dpu);
	close_end(&dpu);
	_exit(0);
}

static void wait_for_exit(pid_t pid)
{
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static uint64_t value_of(struct doca_sync_event *event)
{
	uint64_t value;
	CHECK_OK(soft_doca_sync_event_get(event, &value));
	return value;
}

/* ---- both may update and wait ---- */

static void take_turns_with_host(struct end *dpu)
{
	for (uint64_t turn = 0; turn < 1000; turn += 2) {
		CHECK_OK(soft_doca_sync_event_wait_eq(dpu->event, turn + 1, ALL));
		CHECK_OK(soft_doca_sync_event_update_set(dpu->event, turn + 2));
	}
}

static void the_sides_take_turns(void)
{
	struct end host;
	export_event(&host);
	pid_t pid = start_dpu(&host, take_turns_with_host);
	for (uint64_t turn = 0; turn < 1000; turn += 2) {
		CHECK_OK(soft_doca_sync_event_update_set(host.event, turn + 1));
		CHECK_OK(soft_doca_sync_event_wait_gt_yield(host.event, turn + 1, ALL));
	}
	wait_for_exit(pid);
	CHECK(value_of(host.event) == 1000);
	close_end(&host);
	CHECK(setup_count_files("mem.") == 0);
}

static void add_ten_thousand(struct end *end)
{
	uint64_t before;
	for (int i = 0; i < 10000; i++)
		CHECK_OK(soft_doca_sync_event_update_add(end->event, 1, &before));
}

static void additions_of_two_processes_are_atomic(void)
{
	struct end host;
	export_event(&host);
	pid_t pid = start_dpu(&host, add_ten_thousand);
	add_ten_thousand(&host);
	wait_for_exit(pid);
	CHECK(value_of(host.event) == 20000);
	close_end(&host);
}

/* The limit is about copies; the counter of an event is always mapped. */
static void mapping_cannot_be_switched_off(void)
{
	struct end host, dpu;
	setup_configure("remote_mapping=0");
	export_event(&host);
	import_event(&dpu, &host);
	CHECK_OK(soft_doca_sync_event_update_set(dpu.event, 8));
	CHECK(value_of(host.event) == 8);
	close_end(&dpu);
	close_end(&host);
	setup_configure(NULL);
}

/* ---- who may do what ---- */

static void export_is_checked(void)
{
	struct end host;
	const uint8_t *data, *again;
	size_t size;
	struct doca_dev *dpu = setup_open_dev(DPU_PCI);
	open_exporter(&host);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE,
		     soft_doca_sync_event_export_to_remote_pci(host.event, host.dev, &data, &size));
	CHECK_OK(soft_doca_sync_event_start(host.event));
	INVALID(soft_doca_sync_event_export_to_remote_pci(NULL, host.dev, &data, &size));
	INVALID(soft_doca_sync_event_export_to_remote_pci(host.event, NULL, &data, &size));
	INVALID(soft_doca_sync_event_export_to_remote_pci(host.event, host.dev, NULL, &size));
	INVALID(soft_doca_sync_event_export_to_remote_pci(host.event, host.dev, &data, NULL));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED,
		     soft_doca_sync_event_export_to_remote_pci(host.event, dpu, &data, &size));
	CHECK_OK(soft_doca_sync_event_export_to_remote_pci(host.event, host.dev, &data, &size));
	CHECK_OK(soft_doca_sync_event_export_to_remote_pci(host.event, host.dev, &again, &size));
	CHECK(data == again && size < 1024);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(host.dev));
	close_end(&host);
	CHECK_OK(soft_doca_dev_close(dpu));
}

static void import_is_checked(void)
{
	struct end host, dpu;
	struct doca_sync_event *event;
	const uint8_t *data;
	uint64_t word = 0;
	size_t size;
	export_event(&host);
	import_event(&dpu, &host);
	INVALID(soft_doca_sync_event_create_from_export(NULL, host.data, host.size, &event));
	INVALID(soft_doca_sync_event_create_from_export(dpu.dev, NULL, host.size, &event));
	INVALID(soft_doca_sync_event_create_from_export(dpu.dev, host.data, host.size, NULL));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED,
		     soft_doca_sync_event_create_from_export(host.dev, host.data, host.size, &event));
	CHECK_OK(soft_doca_sync_event_stop(dpu.event));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_sync_event_add_publisher_location_remote_pci(dpu.event));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_sync_event_set_addr(dpu.event, &word));
	CHECK_OK(soft_doca_sync_event_start(dpu.event));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED,
		     soft_doca_sync_event_export_to_remote_pci(dpu.event, host.dev, &data, &size));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(dpu.dev));
	close_end(&dpu);
	close_end(&host);
}

/* A memory map and an event have descriptors of their own. */
static void descriptors_are_not_interchangeable(void)
{
	struct end host;
	uint8_t bytes[64];
	const void *memory;
	size_t memory_size;
	struct doca_mmap *imported;
	struct doca_sync_event *event;
	struct doca_dev *dpu = setup_open_dev(DPU_PCI);
	export_event(&host);
	struct doca_mmap *mmap = setup_mmap(host.dev, bytes, sizeof(bytes), PCI_WRITE);
	CHECK_OK(soft_doca_mmap_export_pci(mmap, host.dev, &memory, &memory_size));
	INVALID(soft_doca_sync_event_create_from_export(dpu, memory, memory_size, &event));
	INVALID(soft_doca_mmap_create_from_export(NULL, host.data, host.size, dpu, &imported));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	close_end(&host);
	CHECK_OK(soft_doca_dev_close(dpu));
}

static void damaged_descriptors_are_refused(void)
{
	struct end host;
	uint8_t data[sizeof(struct soft_sync_descriptor) + 1] = {0};
	struct doca_sync_event *event;
	struct doca_dev *dpu = setup_open_dev(DPU_PCI);
	export_event(&host);
	memcpy(data, host.data, host.size);
	for (size_t bit = 0; bit < host.size * 8; bit++) {
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		doca_error_t result = soft_doca_sync_event_create_from_export(dpu, data, host.size, &event);
		CHECK(result == DOCA_ERROR_INVALID_VALUE || result == DOCA_ERROR_DRIVER);
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t size = 0; size < host.size; size++)
		INVALID(soft_doca_sync_event_create_from_export(dpu, data, size, &event));
	INVALID(soft_doca_sync_event_create_from_export(dpu, data, host.size + 1, &event));
	close_end(&host);
	CHECK_OK(soft_doca_dev_close(dpu));
}

/* An exporter that says that it is an event, over memory that cannot be a counter. */
static void refuse_counter(void *addr, size_t len, uint32_t permissions)
{
	const void *memory;
	size_t size;
	struct soft_export *export;
	struct soft_range range = {addr, len, permissions, false};
	struct end host, dpu = {.dev = setup_open_dev(DPU_PCI)};
	struct soft_sync_descriptor forged;
	export_event(&host);
	memcpy(&forged, host.data, sizeof(forged));
	CHECK_OK(soft_export_open(&range, &export));
	soft_export_descriptor(export, &memory, &size);
	memcpy(&forged.memory, memory, sizeof(forged.memory));
	CHECK_RESULT(DOCA_ERROR_DRIVER, soft_doca_sync_event_create_from_export(dpu.dev, (const uint8_t *)&forged,
										sizeof(forged), &dpu.event));
	CHECK_OK(soft_export_close(export));
	close_end(&host);
	CHECK_OK(soft_doca_dev_close(dpu.dev));
}

static void counters_that_are_none_are_refused(void)
{
	uint64_t *words = memory_alloc(16), private = 0;
	refuse_counter((char *)words + 4, 8, PCI_WRITE);
	refuse_counter(words, 16, PCI_WRITE);
	refuse_counter(words, 8, PCI_READ);
	refuse_counter(&private, 8, PCI_WRITE);
	memory_free(words, 16);
}

/* ---- memory ---- */

static void refuse_export(struct end *host)
{
	const uint8_t *data;
	size_t size;
	CHECK_OK(soft_doca_sync_event_start(host->event));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED,
		     soft_doca_sync_event_export_to_remote_pci(host->event, host->dev, &data, &size));
}

static void private_memory_cannot_be_exported(void)
{
	uint64_t word = 0;
	struct end host;
	open_exporter(&host);
	CHECK_OK(soft_doca_sync_event_set_addr(host.event, &word));
	refuse_export(&host);
	CHECK(strstr(soft_last_detail(), "doca_sync_event_set_addr") != NULL);
	close_end(&host);
}

static void export_without_files(void)
{
	struct end host;
	struct rlimit none = {0, 0};
	CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
	open_exporter(&host);
	refuse_export(&host);
	CHECK(strstr(soft_last_detail(), "ulimit -f") != NULL);
	close_end(&host);
}

static void a_file_limit_forbids_export(void)
{
	in_child(export_without_files);
}

/* A buffer in memory that other processes can map is exported, if its memory map allows that. */
static void a_buffer_can_be_exported(void)
{
	const uint32_t event_permissions = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ |
					   DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC;
	uint64_t *words = memory_alloc(4096);
	struct end host, dpu;
	struct doca_buf_inventory *inventory;
	const uint8_t *data;
	size_t size;
	open_exporter(&host);
	struct doca_mmap *local = setup_mmap(host.dev, words, 4096, event_permissions);
	struct doca_mmap *exported = setup_mmap(host.dev, words, 4096, event_permissions | PCI_WRITE);
	CHECK_OK(soft_doca_buf_inventory_create(2, &inventory));
	CHECK_OK(soft_doca_buf_inventory_start(inventory));
	struct doca_buf *bufs[] = {setup_buf(inventory, local, words + 1, 8, 8),
				   setup_buf(inventory, exported, words + 2, 8, 8)};
	CHECK_OK(soft_doca_sync_event_set_doca_buf(host.event, bufs[0]));
	CHECK_OK(soft_doca_sync_event_start(host.event));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED,
		     soft_doca_sync_event_export_to_remote_pci(host.event, host.dev, &data, &size));
	CHECK_OK(soft_doca_sync_event_stop(host.event));
	CHECK_OK(soft_doca_sync_event_set_doca_buf(host.event, bufs[1]));
	CHECK_OK(soft_doca_sync_event_start(host.event));
	CHECK_OK(soft_doca_sync_event_export_to_remote_pci(host.event, host.dev, &host.data, &host.size));
	import_event(&dpu, &host);
	CHECK_OK(soft_doca_sync_event_update_set(dpu.event, 5));
	CHECK(words[0] == 0 && words[1] == 0 && words[2] == 5);
	close_end(&dpu);
	CHECK_OK(soft_doca_sync_event_destroy(host.event));
	for (int i = 0; i < 2; i++)
		CHECK_OK(soft_doca_buf_dec_refcount(bufs[i], NULL));
	CHECK_OK(soft_doca_buf_inventory_destroy(inventory));
	CHECK_OK(soft_doca_mmap_destroy(local));
	CHECK_OK(soft_doca_mmap_destroy(exported));
	CHECK_OK(soft_doca_dev_close(host.dev));
	memory_free(words, 4096);
}

/* ---- ends ---- */

/* A stop ends the export, and with it a wait of the other side; a restarted event is exported anew. */
static void wait_in_vain(struct end *dpu)
{
	CHECK_OK(soft_doca_sync_event_update_set(dpu->event, 1));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, soft_doca_sync_event_wait_eq(dpu->event, 99, ALL));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, soft_doca_sync_event_update_set(dpu->event, 2));
}

static void a_stop_ends_the_export(void)
{
	struct end host, dpu;
	struct doca_sync_event *event;
	struct soft_sync_descriptor former;
	export_event(&host);
	memcpy(&former, host.data, sizeof(former));
	pid_t pid = start_dpu(&host, wait_in_vain);
	CHECK_OK(soft_doca_sync_event_wait_eq(host.event, 1, ALL));
	CHECK_OK(soft_doca_sync_event_stop(host.event));
	wait_for_exit(pid);
	CHECK_OK(soft_doca_sync_event_start(host.event));
	CHECK(value_of(host.event) == 1);
	CHECK_OK(soft_doca_sync_event_export_to_remote_pci(host.event, host.dev, &host.data, &host.size));
	import_event(&dpu, &host);
	CHECK(value_of(dpu.event) == 1);
	CHECK_RESULT(DOCA_ERROR_DRIVER, soft_doca_sync_event_create_from_export(dpu.dev, (const uint8_t *)&former,
										sizeof(former), &event));
	close_end(&dpu);
	close_end(&host);
}

/* Exports in a process of its own, which sends the descriptor, and then stays until it is killed. */
static pid_t start_host(struct soft_sync_descriptor *descriptor)
{
	int fds[2];
	CHECK(pipe(fds) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct end host;
		export_event(&host);
		CHECK(write(fds[1], host.data, host.size) == (ssize_t)host.size);
		for (;;)
			pause();
	}
	CHECK(read(fds[0], descriptor, sizeof(*descriptor)) == sizeof(*descriptor));
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static void the_death_of_the_exporter_ends_a_wait(void)
{
	struct soft_sync_descriptor descriptor;
	int status;
	pid_t pid = start_host(&descriptor);
	struct end host = {.data = (const uint8_t *)&descriptor, .size = sizeof(descriptor)}, dpu;
	import_event(&dpu, &host);
	CHECK_OK(soft_doca_sync_event_update_set(dpu.event, 3));
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, soft_doca_sync_event_wait_neq(dpu.event, 3, ALL));
	CHECK(strstr(soft_last_detail(), "is gone") != NULL);
	close_end(&dpu);
}

/* An importer that dies while it uses the counter does not hold up its exporter. */
static void add_until_killed(struct end *dpu)
{
	for (;;)
		add_ten_thousand(dpu);
}

static void the_death_of_an_importer_is_survived(void)
{
	struct end host;
	int status;
	export_event(&host);
	pid_t pid = start_dpu(&host, add_until_killed);
	CHECK_OK(soft_doca_sync_event_wait_gt_yield(host.event, 100, ALL));
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	CHECK(value_of(host.event) > 100);
	close_end(&host);
}

/* One that is stopped in the middle does: the event can neither be stopped nor destroyed until it is continued. */
static void an_importer_in_the_counter_is_waited_for(void)
{
	struct end host, dpu;
	export_event(&host);
	import_event(&dpu, &host);
	CHECK_OK(soft_import_begin(dpu.event->import));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_sync_event_stop(host.event));
	CHECK_OK(soft_doca_sync_event_update_set(host.event, 4));
	soft_import_end(dpu.event->import);
	CHECK_OK(soft_doca_sync_event_stop(host.event));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, soft_doca_sync_event_update_set(dpu.event, 5));
	close_end(&dpu);
	close_end(&host);
}

/* ---- as contexts ---- */

static unsigned completed, failed;

static void on_wait(struct doca_sync_event_task_wait_eq *task, union doca_data task_data, union doca_data ctx_data)
{
	struct doca_task *base = soft_doca_sync_event_task_wait_eq_as_doca_task(task);
	(void)task_data;
	(void)ctx_data;
	if (soft_doca_task_get_status(base) == DOCA_SUCCESS)
		completed++;
	else
		failed++;
	soft_doca_task_free(base);
}

static struct doca_pe *start_as_context(struct doca_sync_event *event)
{
	struct doca_pe *pe;
	struct doca_ctx *ctx = soft_doca_sync_event_as_ctx(event);
	CHECK_OK(soft_doca_pe_create(&pe));
	CHECK_OK(soft_doca_pe_connect_ctx(pe, ctx));
	CHECK_OK(soft_doca_sync_event_task_wait_eq_set_conf(event, on_wait, on_wait, 1));
	CHECK_OK(soft_doca_ctx_start(ctx));
	return pe;
}

static void submit_wait(struct doca_sync_event *event, uint64_t value)
{
	struct doca_sync_event_task_wait_eq *task;
	union doca_data none = {.u64 = 0};
	CHECK_OK(soft_doca_sync_event_task_wait_eq_alloc_init(event, value, ALL, none, &task));
	CHECK_OK(soft_doca_task_submit(soft_doca_sync_event_task_wait_eq_as_doca_task(task)));
}

/* A task of the importer sees the exporter's update, and fails when the exporter has stopped. */
static void contexts_share_an_event(void)
{
	struct end host, dpu = {.dev = setup_open_dev(DPU_PCI)};
	export_event(&host);
	CHECK_OK(soft_doca_sync_event_create_from_export(dpu.dev, host.data, host.size, &dpu.event));
	struct doca_pe *pe = start_as_context(dpu.event);
	completed = failed = 0;
	submit_wait(dpu.event, 1);
	CHECK(soft_doca_pe_progress(pe) == 0);
	CHECK_OK(soft_doca_sync_event_update_set(host.event, 1));
	CHECK(soft_doca_pe_progress(pe) == 1 && completed == 1);
	submit_wait(dpu.event, 2);
	CHECK(soft_doca_pe_progress(pe) == 0);
	CHECK_OK(soft_doca_sync_event_stop(host.event));
	CHECK(soft_doca_pe_progress(pe) == 1 && failed == 1);
	CHECK(soft_doca_pe_progress(pe) == 0);
	close_end(&dpu);
	CHECK_OK(soft_doca_pe_destroy(pe));
	close_end(&host);
}

static void a_context_can_be_exported(void)
{
	struct end host, dpu;
	uint64_t value;
	open_exporter(&host);
	struct doca_pe *pe = start_as_context(host.event);
	CHECK_OK(soft_doca_sync_event_export_to_remote_pci(host.event, host.dev, &host.data, &host.size));
	import_event(&dpu, &host);
	completed = failed = 0;
	submit_wait(host.event, 6);
	CHECK_OK(soft_doca_sync_event_update_set(dpu.event, 6));
	CHECK(soft_doca_pe_progress(pe) == 1 && completed == 1);
	CHECK_OK(soft_doca_ctx_stop(soft_doca_sync_event_as_ctx(host.event)));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, soft_doca_sync_event_get(dpu.event, &value));
	close_end(&dpu);
	close_end(&host);
	CHECK_OK(soft_doca_pe_destroy(pe));
}

int main(void)
{
	setup_configure(NULL);
	RUN(the_sides_take_turns);
	RUN(additions_of_two_processes_are_atomic);
	RUN(mapping_cannot_be_switched_off);
	RUN(export_is_checked);
	RUN(import_is_checked);
	RUN(descriptors_are_not_interchangeable);
	RUN(damaged_descriptors_are_refused);
	RUN(counters_that_are_none_are_refused);
	RUN(private_memory_cannot_be_exported);
	RUN(a_file_limit_forbids_export);
	RUN(a_buffer_can_be_exported);
	RUN(a_stop_ends_the_export);
	RUN(the_death_of_the_exporter_ends_a_wait);
	RUN(the_death_of_an_importer_is_survived);
	RUN(an_importer_in_the_counter_is_waited_for);
	RUN(contexts_share_an_event);
	RUN(a_context_can_be_exported);
	return 0;
}
