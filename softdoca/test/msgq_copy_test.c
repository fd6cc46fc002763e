/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by a DPA: between which memory, with which permissions, and the message that follows. */
#include "msgq_end.h"
#include "remote_end.h"

#define FIRST_CONSUMER 1
#define SIZE 4096

/* ---- code of the DPA ---- */

DPA_KIT_APP(test_app)
DPA_KIT_RPC(run_body, uint64_t, uint64_t)

struct copy {
	const struct msgq_handles *handles;
	uint32_t consumer_id;
	doca_dpa_dev_mmap_t to;
	const void *to_addr;
	doca_dpa_dev_mmap_t from;
	const void *from_addr;
	size_t len;
	uint32_t imm_len;
};

static uint64_t copy_and_send(void *arg)
{
	static const uint8_t imm[33] = "copied";
	const struct copy *copy = arg;
	soft_doca_dpa_dev_comch_producer_dma_copy(copy->handles->producer, copy->consumer_id, copy->to,
						  (uintptr_t)copy->to_addr, copy->from, (uintptr_t)copy->from_addr,
						  copy->len, imm, copy->imm_len, DOCA_DPA_DEV_SUBMIT_FLAG_FLUSH);
	return 0;
}

static uint64_t get_completion_type(void *arg)
{
	const struct msgq_handles *handles = arg;
	doca_dpa_dev_completion_element_t element;
	if (!soft_doca_dpa_dev_get_completion(handles->completions, &element))
		return 99;
	uint64_t type = soft_doca_dpa_dev_get_completion_type(element);
	soft_doca_dpa_dev_completion_ack(handles->completions, 1);
	return type;
}

struct pointer {
	doca_dpa_dev_mmap_t mmap;
	const void *addr;
};

static uint64_t external_pointer(void *arg)
{
	const struct pointer *pointer = arg;
	return soft_doca_dpa_dev_mmap_get_external_ptr(pointer->mmap, (uintptr_t)pointer->addr);
}

/* ---- tests ---- */

struct fixture fixture;

static struct doca_dpa *dpa;
static struct from_dpa end;
static uint8_t source[SIZE], target[SIZE];

static doca_dpa_dev_mmap_t handle_of(struct doca_mmap *mmap)
{
	doca_dpa_dev_mmap_t handle = 0;
	CHECK_OK(soft_doca_mmap_dev_get_dpa_handle(mmap, fixture.dpu, &handle));
	CHECK(handle != 0);
	return handle;
}

/* Memory maps of source and target, and one receive. */
static struct doca_mmap *from_mmap, *to_mmap;
static struct copy right;

static void open_all(uint32_t from_permissions, uint32_t to_permissions)
{
	for (size_t i = 0; i < SIZE; i++)
		source[i] = (uint8_t)(i * 7);
	memset(target, 0, SIZE);
	dpa = dpa_open();
	from_dpa_open(&end, dpa, 8);
	from_dpa_post(&end, 1);
	from_mmap = setup_mmap(fixture.dpu, source, SIZE, from_permissions);
	to_mmap = setup_mmap(fixture.dpu, target, SIZE, to_permissions);
	right = (struct copy){
		.handles = &end.handles,
		.consumer_id = FIRST_CONSUMER,
		.to = handle_of(to_mmap),
		.to_addr = target,
		.from = handle_of(from_mmap),
		.from_addr = source,
		.len = SIZE,
		.imm_len = 6,
	};
}

static void close_all(void)
{
	CHECK_OK(soft_doca_mmap_destroy(from_mmap));
	CHECK_OK(soft_doca_mmap_destroy(to_mmap));
	from_dpa_close(&end);
	dpa_close(dpa);
}

static void check_copied(struct copy copy)
{
	on_dpa(dpa, copy_and_send, &copy);
	CHECK_DPA_OK(dpa);
	msgq_settle(end.pe);
	CHECK(end.received == 1 && end.last_len == copy.imm_len && memcmp(end.last_imm, "copied", copy.imm_len) == 0);
	CHECK(on_dpa(dpa, get_completion_type, &end.handles) == DOCA_DPA_DEV_COMP_SEND);
}

static void a_copy_is_followed_by_its_message(void)
{
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	check_copied(right);
	CHECK(memcmp(source, target, SIZE) == 0);
	close_all();
}

static void a_part_can_be_copied_without_bytes_of_a_message(void)
{
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct copy part = right;
	part.to_addr = target + SIZE - 3;
	part.from_addr = source + 5;
	part.len = 3;
	part.imm_len = 0;
	check_copied(part);
	CHECK(memcmp(target + SIZE - 3, source + 5, 3) == 0 && target[SIZE - 4] == 0);
	close_all();
}

/* Nothing is copied and nothing arrives; the producer's completion and the DPA say that it failed. */
static void check_refused(struct copy copy)
{
	on_dpa(dpa, copy_and_send, &copy);
	CHECK_DPA_FAILED(dpa);
	CHECK(on_dpa(dpa, get_completion_type, &end.handles) == DOCA_DPA_DEV_COMP_SEND_ERR);
	msgq_settle(end.pe);
	CHECK(end.received == 0);
	for (size_t i = 0; i < SIZE; i++)
		CHECK(target[i] == 0);
	close_all();
}

#define CHECK_REFUSED(member, value)                                                           \
	do {                                                                                   \
		open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE); \
		struct copy wrong = right;                                                     \
		wrong.member = (value);                                                        \
		check_refused(wrong);                                                          \
	} while (0)

static void what_cannot_be_copied_fails(void)
{
	CHECK_REFUSED(len, 0);
	CHECK_REFUSED(len, SIZE + 1);
	CHECK_REFUSED(len, SIZE_MAX);
	CHECK_REFUSED(to_addr, target + 1);
	CHECK_REFUSED(to_addr, target - 1);
	CHECK_REFUSED(from_addr, source + 1);
	CHECK_REFUSED(from_addr, NULL);
	CHECK_REFUSED(to, 0);
	CHECK_REFUSED(to, right.to + 8 * 1000);
	CHECK_REFUSED(from, (doca_dpa_dev_mmap_t)end.handles.producer);
	CHECK_REFUSED(imm_len, 33);
	CHECK_REFUSED(consumer_id, 2);
}

/* The seed's rule: the destination needs LOCAL_READ_WRITE, which PCI access does not replace. */
static void the_destination_must_be_writable(void)
{
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_ONLY);
	check_refused(right);
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_PCI_READ_WRITE);
	check_refused(right);
}

static void a_message_without_a_receive_copies_nothing(void)
{
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	check_copied(right);
	memset(target, 0, SIZE);
	end.received = 0;
	check_refused(right);
}

static void ends_must_not_overlap(void)
{
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct copy wrong = right;
	wrong.from = right.to;
	wrong.from_addr = target + 10;
	wrong.len = 11;
	check_refused(wrong);
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct copy beside = right;
	target[10] = 1;
	beside.from = right.to;
	beside.from_addr = target + 10;
	beside.len = 10;
	check_copied(beside);
	CHECK(target[0] == 1);
	close_all();
}

static void handles_are_of_started_maps(void)
{
	struct doca_mmap *mmap;
	doca_dpa_dev_mmap_t handle = 77;
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	CHECK(handle_of(from_mmap) == right.from && handle_of(to_mmap) == right.to && right.from != right.to);
	CHECK_RESULT(DOCA_ERROR_NOT_FOUND, soft_doca_mmap_dev_get_dpa_handle(from_mmap, fixture.host, &handle));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_dev_get_dpa_handle(from_mmap, fixture.dpu, NULL));
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, fixture.dpu));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_dev_get_dpa_handle(mmap, fixture.dpu, &handle));
	CHECK(handle == 77);
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	/* It ends with a stop, and a new start gives another one. */
	CHECK_OK(soft_doca_mmap_stop(from_mmap));
	CHECK_OK(soft_doca_mmap_start(from_mmap));
	CHECK(handle_of(from_mmap) != right.from);
	check_refused(right);
}

/* A map of another device is none of this DPA's. */
static void maps_are_of_the_dpas_device(void)
{
	struct doca_mmap *foreign;
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	foreign = setup_mmap(fixture.host, source, SIZE, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	CHECK_OK(soft_doca_mmap_dev_get_dpa_handle(foreign, fixture.host, &right.from));
	check_refused(right);
	CHECK_OK(soft_doca_mmap_destroy(foreign));
}

static struct doca_mmap *import_of(const struct exporter *exporter)
{
	struct doca_mmap *import;
	CHECK_OK(soft_doca_mmap_create_from_export(NULL, exporter->offer.desc, exporter->offer.desc_len, fixture.dpu,
						   &import));
	return import;
}

/* Imported memory can be either end, if its exporter permits. */
static void imports_can_be_copied(void)
{
	struct exporter exporter = start_exporter(ALLOC, PCI_WRITE);
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_mmap *import = import_of(&exporter);
	uint8_t *bytes = malloc(LEN);
	fill_with(bytes, 2);
	struct doca_mmap *whole = setup_mmap(fixture.dpu, bytes, LEN, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct copy store = right;
	store.to = handle_of(import);
	store.to_addr = exporter.offer.addr;
	store.from = handle_of(whole);
	store.from_addr = bytes;
	store.len = LEN;
	check_copied(store);
	send_command(&exporter, CHECK_WRITTEN);
	struct copy both = store;
	both.from = store.to;
	both.from_addr = (uint8_t *)exporter.offer.addr + LEN / 2;
	both.len = 10;
	from_dpa_post(&end, 1);
	end.received = 0;
	CHECK_OK(soft_doca_mmap_destroy(whole));
	check_refused(both);
	CHECK_OK(soft_doca_mmap_destroy(import));
	quit_exporter(&exporter);
	free(bytes);
}

static void the_exporter_decides_over_its_memory(void)
{
	struct exporter exporter = start_exporter(ALLOC, PCI_READ);
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_mmap *import = import_of(&exporter);
	struct copy fetch = right;
	fetch.from = handle_of(import);
	fetch.from_addr = exporter.offer.addr;
	check_copied(fetch);
	memset(target, 0, SIZE);
	struct copy store = right;
	store.to = fetch.from;
	store.to_addr = exporter.offer.addr;
	from_dpa_post(&end, 1);
	end.received = 0;
	check_refused(store);
	CHECK_OK(soft_doca_mmap_destroy(import));
	quit_exporter(&exporter);
}

/* A dead exporter's memory cannot be accessed, and the message is not sent. */
static void a_copy_can_fail_half_way(void)
{
	struct exporter exporter = start_exporter(ALLOC, PCI_WRITE);
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_mmap *import = import_of(&exporter);
	struct copy fetch = right;
	fetch.from = handle_of(import);
	fetch.from_addr = exporter.offer.addr;
	kill_exporter(&exporter);
	check_refused(fetch);
	CHECK_OK(soft_doca_mmap_destroy(import));
}

/* Memory of the DPA, through a map that has no device. */
static void the_dpas_memory_can_be_copied(void)
{
	struct doca_mmap *mmap;
	doca_dpa_dev_uintptr_t memory;
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	CHECK_OK(soft_doca_dpa_mem_alloc(dpa, SIZE, &memory));
	CHECK_OK(soft_doca_dpa_h2d_memcpy(dpa, memory, source, SIZE));
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_set_dpa_memrange(mmap, dpa, memory, SIZE + 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_set_dpa_memrange(mmap, dpa, memory, 0));
	CHECK_OK(soft_doca_mmap_set_dpa_memrange(mmap, dpa, memory, SIZE));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_set_dpa_memrange(mmap, dpa, memory, SIZE));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_add_dev(mmap, fixture.dpu));
	CHECK_OK(soft_doca_mmap_start(mmap));
	struct copy copy = right;
	copy.from = handle_of(mmap);
	copy.from_addr = (void *)(uintptr_t)memory;
	check_copied(copy);
	CHECK(memcmp(source, target, SIZE) == 0);
	/* The map outlives the memory, and no longer gives access. */
	memset(target, 0, SIZE);
	CHECK_OK(soft_doca_dpa_mem_free(dpa, memory));
	from_dpa_post(&end, 1);
	end.received = 0;
	check_refused(copy);
	doca_dpa_dev_mmap_t handle;
	CHECK_RESULT(DOCA_ERROR_NOT_FOUND, soft_doca_mmap_dev_get_dpa_handle(mmap, fixture.dpu, &handle));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
}

static void the_dpa_can_read_memory_of_the_cpu(void)
{
	open_all(DOCA_ACCESS_FLAG_LOCAL_READ_ONLY, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct pointer pointer = {right.from, source + SIZE - 1};
	CHECK(on_dpa(dpa, external_pointer, &pointer) == (uintptr_t)pointer.addr);
	CHECK_DPA_OK(dpa);
	pointer.addr = source + SIZE;
	CHECK(on_dpa(dpa, external_pointer, &pointer) == 0);
	CHECK_DPA_FAILED(dpa);
	close_all();
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(a_copy_is_followed_by_its_message);
	RUN(a_part_can_be_copied_without_bytes_of_a_message);
	RUN(what_cannot_be_copied_fails);
	RUN(the_destination_must_be_writable);
	RUN(a_message_without_a_receive_copies_nothing);
	RUN(ends_must_not_overlap);
	RUN(handles_are_of_started_maps);
	RUN(maps_are_of_the_dpas_device);
	RUN(imports_can_be_copied);
	RUN(the_exporter_decides_over_its_memory);
	RUN(a_copy_can_fail_half_way);
	RUN(the_dpas_memory_can_be_copied);
	RUN(the_dpa_can_read_memory_of_the_cpu);
	fixture_close(&fixture);
	return 0;
}
