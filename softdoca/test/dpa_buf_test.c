/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of buffers: their configuration, and what code of a DPA finds in them, also in the memory of the host. */
#include "../device/mmap.h"
#include "dpa_end.h"
#include "remote_end.h"
#include "setup.h"

#define SIZE 64
#define COUNT 10
#define OFFSET 16

/* ---- code of the DPA ---- */

DPA_KIT_APP(test_app)
DPA_KIT_RPC(run_body, uint64_t, uint64_t)

/* The values that it finds for one buffer. */
struct found {
	doca_dpa_dev_buf_arr_t array;
	uint64_t index;
	uintptr_t addr;
	uint64_t len;
	doca_dpa_dev_mmap_t mmap;
	uint8_t *pointer;
};

static uint64_t find(void *arg)
{
	struct found *found = arg;
	doca_dpa_dev_buf_t buf = soft_doca_dpa_dev_buf_array_get_buf(found->array, found->index);
	found->addr = soft_doca_dpa_dev_buf_get_addr(buf);
	found->len = soft_doca_dpa_dev_buf_get_len(buf);
	found->mmap = soft_doca_dpa_dev_buf_get_mmap(buf);
	found->pointer = (uint8_t *)(uintptr_t)soft_doca_dpa_dev_buf_get_external_ptr(buf);
	return buf;
}

/* ---- tests ---- */

struct fixture fixture;

static struct doca_dpa *dpa;

static struct doca_buf_arr *open_array(struct doca_mmap *mmap, size_t count)
{
	struct doca_buf_arr *array;
	CHECK_OK(soft_doca_buf_arr_create(count, &array));
	CHECK_OK(soft_doca_buf_arr_set_target_dpa(array, dpa));
	CHECK_OK(soft_doca_buf_arr_set_params(array, mmap, SIZE, OFFSET));
	return array;
}

static struct found look(const struct doca_buf_arr *array, uint64_t index)
{
	struct found found = {.index = index};
	CHECK_OK(soft_doca_buf_arr_get_dpa_handle(array, &found.array));
	CHECK((on_dpa(dpa, find, &found) == 0) == (found.len == 0));
	return found;
}

static void configuration_is_checked(void)
{
	static uint8_t memory[OFFSET + COUNT * SIZE];
	struct doca_mmap *mmap = setup_mmap(fixture.dpu, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_mmap *foreign = setup_mmap(fixture.host, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_buf_arr *array;
	doca_dpa_dev_buf_arr_t handle;
	dpa = dpa_open();
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_arr_create(0, &array));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_arr_create(1, NULL));
	CHECK_OK(soft_doca_buf_arr_create(COUNT, &array));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_arr_start(array));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_arr_set_params(array, mmap, 0, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_arr_set_params(array, NULL, SIZE, 0));
	CHECK_OK(soft_doca_buf_arr_set_params(array, foreign, SIZE, OFFSET));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_buf_arr_set_target_gpu(array, NULL));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_buf_arr_get_gpu_handle(array, NULL));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_buf_arr_start(array));
	CHECK_OK(soft_doca_buf_arr_set_target_dpa(array, dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_buf_arr_start(array));
	CHECK_OK(soft_doca_buf_arr_set_params(array, mmap, SIZE, OFFSET + 1));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, soft_doca_buf_arr_start(array));
	CHECK_OK(soft_doca_buf_arr_set_params(array, mmap, SIZE_MAX / 2, OFFSET));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, soft_doca_buf_arr_start(array));
	CHECK_OK(soft_doca_buf_arr_set_params(array, mmap, SIZE, OFFSET));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_buf_arr_get_dpa_handle(array, &handle));
	CHECK_OK(soft_doca_buf_arr_start(array));
	CHECK_OK(soft_doca_buf_arr_get_dpa_handle(array, &handle));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_buf_arr_start(array));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_buf_arr_set_params(array, mmap, SIZE, OFFSET));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_buf_arr_set_target_dpa(array, dpa));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dpa_stop(dpa));
	CHECK_OK(soft_doca_buf_arr_stop(array));
	CHECK_OK(soft_doca_buf_arr_stop(array));
	CHECK_OK(soft_doca_buf_arr_start(array));
	CHECK_OK(soft_doca_buf_arr_destroy(array));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_arr_destroy(NULL));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_mmap_destroy(foreign));
	dpa_close(dpa);
}

static void buffers_are_pieces_of_their_map(void)
{
	static uint8_t memory[OFFSET + COUNT * SIZE];
	doca_dpa_dev_mmap_t handle;
	dpa = dpa_open();
	struct doca_mmap *mmap = setup_mmap(fixture.dpu, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_buf_arr *array = open_array(mmap, COUNT);
	CHECK_OK(soft_doca_buf_arr_start(array));
	CHECK_OK(soft_doca_mmap_dev_get_dpa_handle(mmap, fixture.dpu, &handle));
	for (uint64_t i = 0; i < COUNT; i++) {
		struct found found = look(array, i);
		CHECK(found.pointer == memory + OFFSET + i * SIZE && found.addr == (uintptr_t)found.pointer);
		CHECK(found.len == SIZE && found.mmap == handle);
	}
	CHECK_DPA_OK(dpa);
	CHECK(look(array, COUNT).pointer == NULL && look(array, UINT64_MAX).len == 0);
	CHECK_DPA_FAILED(dpa);
	/* They end with the map. */
	CHECK_OK(soft_doca_mmap_stop(mmap));
	CHECK(look(array, 0).pointer == NULL);
	CHECK_OK(soft_doca_buf_arr_destroy(array));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	dpa_close(dpa);
}

/* As up to DOCA 2.5. */
static void the_number_may_come_later(void)
{
	static uint8_t memory[OFFSET + COUNT * SIZE];
	struct doca_buf_arr *array;
	dpa = dpa_open();
	struct doca_mmap *mmap = setup_mmap(fixture.dpu, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_arr_create_2_5(NULL, &array));
	CHECK_OK(soft_doca_buf_arr_create_2_5(mmap, &array));
	CHECK_OK(soft_doca_buf_arr_set_target_dpa(array, dpa));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_arr_start(array));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_arr_set_params_2_5(array, SIZE, 0, 0));
	CHECK_OK(soft_doca_buf_arr_set_params_2_5(array, SIZE, COUNT, OFFSET));
	CHECK_OK(soft_doca_buf_arr_start(array));
	CHECK(look(array, COUNT - 1).pointer == memory + OFFSET + (COUNT - 1) * SIZE);
	CHECK_DPA_OK(dpa);
	CHECK_OK(soft_doca_buf_arr_destroy(array));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	dpa_close(dpa);
}

static struct doca_mmap *import_of(const struct exporter *exporter)
{
	struct doca_mmap *import;
	CHECK_OK(soft_doca_mmap_create_from_export(NULL, exporter->offer.desc, exporter->offer.desc_len, fixture.dpu,
						   &import));
	return import;
}

/* An array over the memory of the host: what the DPA stores arrives there. */
static void the_dpa_reads_and_writes_the_host(void)
{
	struct exporter exporter = start_exporter(ALLOC, PCI_WRITE);
	uint8_t *expected = malloc(LEN);
	fill_with(expected, 1);
	dpa = dpa_open();
	struct doca_mmap *import = import_of(&exporter);
	struct doca_buf_arr *array = open_array(import, COUNT);
	CHECK_OK(soft_doca_buf_arr_start(array));
	struct found found = look(array, 3);
	CHECK(found.addr == (uintptr_t)exporter.offer.addr + OFFSET + 3 * SIZE && found.pointer != NULL);
	CHECK(memcmp(found.pointer, expected + OFFSET + 3 * SIZE, SIZE) == 0);
	fill_with(found.pointer - OFFSET - 3 * SIZE, 2);
	send_command(&exporter, CHECK_WRITTEN);
	CHECK_DPA_OK(dpa);
	CHECK_OK(soft_doca_mmap_destroy(import));
	CHECK(look(array, 3).pointer == NULL);
	CHECK_OK(soft_doca_buf_arr_destroy(array));
	dpa_close(dpa);
	quit_exporter(&exporter);
	free(expected);
}

static uint64_t read_inv(void *arg)
{
	(void)arg;
	soft_doca_dpa_dev_kit_window_read_inv();
	return 0;
}

static uint64_t write_back(void *arg)
{
	(void)arg;
	soft_doca_dpa_dev_kit_window_writeback();
	return 0;
}

/* Memory of malloc cannot be mapped. Bytes that the DPA stores arrive with a write-back, and stay here until then. */
static void other_memory_of_the_host_has_a_window(void)
{
	struct exporter exporter = start_exporter(MALLOC, PCI_WRITE);
	dpa = dpa_open();
	struct doca_mmap *import = import_of(&exporter);
	struct doca_buf_arr *array = open_array(import, COUNT);
	CHECK_OK(soft_doca_buf_arr_start(array));
	struct found found = look(array, 3);
	CHECK(found.addr == (uintptr_t)exporter.offer.addr + OFFSET + 3 * SIZE && found.len == SIZE);
	uint8_t *memory = found.pointer - OFFSET - 3 * SIZE, *expected = malloc(LEN);
	fill_with(expected, 1);
	CHECK(memcmp(memory, expected, LEN) == 0);
	fill_with(memory, 2);
	on_dpa(dpa, read_inv, NULL);
	CHECK(filled_with(memory, 2));
	on_dpa(dpa, write_back, NULL);
	send_command(&exporter, CHECK_WRITTEN);
	on_dpa(dpa, read_inv, NULL);
	CHECK(filled_with(memory, 2));
	CHECK_DPA_OK(dpa);
	kill_exporter(&exporter);
	on_dpa(dpa, read_inv, NULL);
	CHECK_DPA_FAILED(dpa);
	CHECK_OK(soft_doca_buf_arr_destroy(array));
	CHECK_OK(soft_doca_mmap_destroy(import));
	dpa_close(dpa);
	free(expected);
}

/* A fetch shows bytes that the host has written, except where the DPA has stored others. */
static void a_fetch_brings_what_the_host_has_written(void)
{
	struct exporter exporter = start_exporter(MALLOC, PCI_WRITE);
	dpa = dpa_open();
	struct doca_mmap *import = import_of(&exporter);
	struct doca_buf_arr *array = open_array(import, COUNT);
	CHECK_OK(soft_doca_buf_arr_start(array));
	uint8_t *memory = look(array, 0).pointer, *host = (uint8_t *)exporter.offer.addr + OFFSET;
	uint8_t before[SIZE], written[SIZE];
	memcpy(before, memory, SIZE);
	for (size_t i = 0; i < SIZE; i++)
		written[i] = (uint8_t)~before[i];
	struct soft_import *other = import->import; /* stands for the host */
	CHECK_OK(soft_import_write(other, host, written, SIZE));
	CHECK(memcmp(memory, before, SIZE) == 0);
	memory[9] = (uint8_t)(before[9] + 1);
	on_dpa(dpa, read_inv, NULL);
	CHECK(memory[9] == (uint8_t)(before[9] + 1) && memory[8] == written[8] && memory[10] == written[10]);
	CHECK(memcmp(memory + 16, written + 16, SIZE - 16) == 0);
	on_dpa(dpa, write_back, NULL);
	CHECK_OK(soft_import_read(other, before, host, SIZE));
	CHECK(memcmp(before, memory, SIZE) == 0);
	CHECK_DPA_OK(dpa);
	CHECK_OK(soft_doca_buf_arr_destroy(array));
	CHECK_OK(soft_doca_mmap_destroy(import));
	dpa_close(dpa);
	quit_exporter(&exporter);
}

static void a_window_keeps_the_permissions(void)
{
	struct exporter exporter = start_exporter(MALLOC, PCI_READ);
	dpa = dpa_open();
	struct doca_mmap *import = import_of(&exporter);
	struct doca_buf_arr *array = open_array(import, COUNT);
	CHECK_OK(soft_doca_buf_arr_start(array));
	look(array, 0).pointer[0]++;
	CHECK_DPA_OK(dpa);
	on_dpa(dpa, write_back, NULL);
	CHECK_DPA_FAILED(dpa);
	CHECK_OK(soft_doca_buf_arr_destroy(array));
	CHECK_OK(soft_doca_mmap_destroy(import));
	dpa_close(dpa);
	quit_exporter(&exporter);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(configuration_is_checked);
	RUN(buffers_are_pieces_of_their_map);
	RUN(the_number_may_come_later);
	RUN(the_dpa_reads_and_writes_the_host);
	RUN(other_memory_of_the_host_has_a_window);
	RUN(a_fetch_brings_what_the_host_has_written);
	RUN(a_window_keeps_the_permissions);
	fixture_close(&fixture);
	return 0;
}
