/* SPDX-License-Identifier: Apache-2.0 */
/* Sync events within one process: life cycle, configuration, memory, direct calls. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../device/dev.h"
#include "../sync/soft_sync.h"
#include "../sync/sync_event.h"
#include "setup.h"

#define ALL UINT64_MAX
#define INVALID(call) CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, call)
#define REFUSED(call) CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, call)
#define BAD_STATE(call) CHECK_RESULT(DOCA_ERROR_BAD_STATE, call)

#define EVENT_PERMISSIONS                                                                               \
	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE | \
	 DOCA_ACCESS_FLAG_RDMA_ATOMIC)

static struct doca_dev *dev;

static struct doca_sync_event *create(void)
{
	struct doca_sync_event *event;
	CHECK_OK(soft_doca_sync_event_create(&event));
	return event;
}

static struct doca_sync_event *create_local(void)
{
	struct doca_sync_event *event = create();
	CHECK_OK(soft_doca_sync_event_add_publisher_location_cpu(event, dev));
	CHECK_OK(soft_doca_sync_event_add_subscriber_location_cpu(event, dev));
	return event;
}

static struct doca_sync_event *start_local(void)
{
	struct doca_sync_event *event = create_local();
	CHECK_OK(soft_doca_sync_event_start(event));
	return event;
}

static uint64_t value_of(struct doca_sync_event *event)
{
	uint64_t value;
	CHECK_OK(soft_doca_sync_event_get(event, &value));
	return value;
}

/* ---- life ---- */

static void an_event_counts_from_zero(void)
{
	uint64_t before;
	struct doca_sync_event *event = start_local();
	CHECK(value_of(event) == 0);
	CHECK_OK(soft_doca_sync_event_update_set(event, 7));
	CHECK_OK(soft_doca_sync_event_update_add(event, UINT64_MAX, &before));
	CHECK(before == 7 && value_of(event) == 6);
	CHECK_OK(soft_doca_sync_event_stop(event));
	CHECK_OK(soft_doca_sync_event_start(event));
	CHECK(value_of(event) == 6);
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

static void calls_need_a_started_event(void)
{
	uint64_t value = 5;
	struct doca_sync_event *event = create_local();
	BAD_STATE(soft_doca_sync_event_get(event, &value));
	BAD_STATE(soft_doca_sync_event_update_set(event, 1));
	BAD_STATE(soft_doca_sync_event_update_add(event, 1, &value));
	BAD_STATE(soft_doca_sync_event_wait_gt(event, 0, ALL));
	BAD_STATE(soft_doca_sync_event_wait_eq_yield(event, 0, ALL));
	BAD_STATE(soft_doca_sync_event_stop(event));
	CHECK(value == 5);
	CHECK_OK(soft_doca_sync_event_start(event));
	BAD_STATE(soft_doca_sync_event_start(event));
	CHECK_OK(soft_doca_sync_event_stop(event));
	BAD_STATE(soft_doca_sync_event_get(event, &value));
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

static void arguments_are_checked(void)
{
	uint64_t value;
	struct doca_sync_event *event = start_local();
	INVALID(soft_doca_sync_event_create(NULL));
	INVALID(soft_doca_sync_event_destroy(NULL));
	INVALID(soft_doca_sync_event_start(NULL));
	INVALID(soft_doca_sync_event_stop(NULL));
	INVALID(soft_doca_sync_event_get(NULL, &value));
	INVALID(soft_doca_sync_event_get(event, NULL));
	INVALID(soft_doca_sync_event_update_set(NULL, 1));
	INVALID(soft_doca_sync_event_update_add(NULL, 1, &value));
	INVALID(soft_doca_sync_event_update_add(event, 1, NULL));
	INVALID(soft_doca_sync_event_wait_gt(NULL, 0, ALL));
	INVALID(soft_doca_sync_event_wait_eq(NULL, 0, ALL));
	INVALID(soft_doca_sync_event_wait_neq_yield(NULL, 0, ALL));
	INVALID(soft_doca_sync_event_add_publisher_location_cpu(NULL, dev));
	INVALID(soft_doca_sync_event_add_publisher_location_cpu(event, NULL));
	INVALID(soft_doca_sync_event_add_subscriber_location_cpu(NULL, dev));
	INVALID(soft_doca_sync_event_add_subscriber_location_cpu(event, NULL));
	INVALID(soft_doca_sync_event_add_publisher_location_remote_pci(NULL));
	INVALID(soft_doca_sync_event_add_subscriber_location_remote_pci(NULL));
	CHECK(soft_doca_sync_event_as_ctx(NULL) == NULL);
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

/* ---- locations ---- */

static void both_locations_are_needed(void)
{
	struct doca_sync_event *event = create();
	INVALID(soft_doca_sync_event_start(event));
	CHECK_OK(soft_doca_sync_event_add_publisher_location_remote_pci(event));
	INVALID(soft_doca_sync_event_start(event));
	CHECK(strstr(soft_last_detail(), "subscriber location") != NULL);
	CHECK_OK(soft_doca_sync_event_add_subscriber_location_remote_pci(event));
	CHECK_OK(soft_doca_sync_event_start(event));
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

static void a_location_is_set_once_and_before_the_start(void)
{
	struct doca_sync_event *event = create_local();
	CHECK_RESULT(DOCA_ERROR_ALREADY_EXIST, soft_doca_sync_event_add_publisher_location_cpu(event, dev));
	CHECK_RESULT(DOCA_ERROR_ALREADY_EXIST, soft_doca_sync_event_add_subscriber_location_remote_pci(event));
	CHECK_OK(soft_doca_sync_event_start(event));
	BAD_STATE(soft_doca_sync_event_add_publisher_location_cpu(event, dev));
	BAD_STATE(soft_doca_sync_event_add_subscriber_location_remote_pci(event));
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

static void a_location_holds_its_device(void)
{
	struct doca_dev *other = setup_open_dev("0000:b1:00.1");
	struct doca_sync_event *event = create();
	CHECK_OK(soft_doca_sync_event_add_subscriber_location_cpu(event, other));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(other));
	CHECK_OK(soft_doca_sync_event_destroy(event));
	CHECK_OK(soft_doca_dev_close(other));
}

/* ---- memory ---- */

static void the_program_can_supply_the_counter(void)
{
	uint64_t words[2] = {40, 0};
	struct doca_sync_event *event = create_local();
	INVALID(soft_doca_sync_event_set_addr(NULL, words));
	INVALID(soft_doca_sync_event_set_addr(event, NULL));
	INVALID(soft_doca_sync_event_set_addr(event, (uint64_t *)(void *)((char *)words + 4)));
	CHECK_OK(soft_doca_sync_event_set_addr(event, &words[0]));
	CHECK_OK(soft_doca_sync_event_start(event));
	CHECK(value_of(event) == 40);
	CHECK_OK(soft_doca_sync_event_update_set(event, 41));
	CHECK(words[0] == 41 && words[1] == 0);
	BAD_STATE(soft_doca_sync_event_set_addr(event, &words[1]));
	CHECK_OK(soft_doca_sync_event_stop(event));
	CHECK_OK(soft_doca_sync_event_set_addr(event, &words[1]));
	CHECK_OK(soft_doca_sync_event_start(event));
	CHECK(value_of(event) == 0);
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

static struct doca_buf_inventory *start_inventory(void)
{
	struct doca_buf_inventory *inventory;
	CHECK_OK(soft_doca_buf_inventory_create(8, &inventory));
	CHECK_OK(soft_doca_buf_inventory_start(inventory));
	return inventory;
}

/* The event keeps the buffer, and so its memory map, until it is destroyed. */
static void a_buffer_can_be_the_counter(void)
{
	uint64_t words[4] = {3};
	struct doca_buf_inventory *inventory = start_inventory();
	struct doca_mmap *mmap = setup_mmap(dev, words, sizeof(words), EVENT_PERMISSIONS);
	struct doca_buf *buf = setup_buf(inventory, mmap, words, 8, 8);
	struct doca_sync_event *event = create_local(), *same = create_local();
	INVALID(soft_doca_sync_event_set_doca_buf(NULL, buf));
	INVALID(soft_doca_sync_event_set_doca_buf(event, NULL));
	CHECK_OK(soft_doca_sync_event_set_doca_buf(event, buf));
	CHECK_OK(soft_doca_sync_event_set_doca_buf(same, buf));
	CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	CHECK_OK(soft_doca_sync_event_start(event));
	CHECK_OK(soft_doca_sync_event_start(same));
	BAD_STATE(soft_doca_sync_event_set_doca_buf(event, buf));
	CHECK_OK(soft_doca_sync_event_update_set(event, 4));
	CHECK(words[0] == 4 && value_of(same) == 4);
	CHECK_OK(soft_doca_sync_event_destroy(event));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_sync_event_destroy(same));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_buf_inventory_destroy(inventory));
}

static void unsuitable_buffers_are_refused(void)
{
	uint64_t words[4] = {0};
	struct doca_buf_inventory *inventory = start_inventory();
	struct doca_mmap *mmap = setup_mmap(dev, words, sizeof(words), EVENT_PERMISSIONS);
	struct doca_mmap *not_atomic =
		setup_mmap(dev, words, sizeof(words), EVENT_PERMISSIONS & ~DOCA_ACCESS_FLAG_RDMA_ATOMIC);
	struct doca_sync_event *event = create_local();
	struct doca_buf *bufs[] = {
		setup_buf(inventory, mmap, words, 16, 16),           setup_buf(inventory, not_atomic, words, 8, 8),
		setup_buf(inventory, mmap, (char *)words + 4, 8, 8), setup_buf(inventory, mmap, words, 8, 8),
		setup_buf(inventory, mmap, words + 1, 8, 8),
	};
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_sync_event_set_doca_buf(event, bufs[0]));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_sync_event_set_doca_buf(event, bufs[1]));
	INVALID(soft_doca_sync_event_set_doca_buf(event, bufs[2]));
	CHECK_OK(soft_doca_buf_chain_list(bufs[3], bufs[4]));
	INVALID(soft_doca_sync_event_set_doca_buf(event, bufs[3]));
	CHECK_OK(soft_doca_sync_event_destroy(event));
	for (int i = 0; i < 4; i++)
		CHECK_OK(soft_doca_buf_dec_refcount(bufs[i], NULL));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_mmap_destroy(not_atomic));
	CHECK_OK(soft_doca_buf_inventory_destroy(inventory));
}

/* ---- waits ---- */

static void a_wait_that_holds_returns_at_once(void)
{
	struct doca_sync_event *event = start_local();
	CHECK_OK(soft_doca_sync_event_update_set(event, 0x1234));
	CHECK_OK(soft_doca_sync_event_wait_gt(event, 0x1233, ALL));
	CHECK_OK(soft_doca_sync_event_wait_gt_yield(event, 0x33, 0xff));
	CHECK_OK(soft_doca_sync_event_wait_eq(event, 0x1234, ALL));
	CHECK_OK(soft_doca_sync_event_wait_eq_yield(event, 0x1200, 0xff00));
	CHECK_OK(soft_doca_sync_event_wait_neq(event, 0x1235, ALL));
	CHECK_OK(soft_doca_sync_event_wait_neq_yield(event, 0x1234, 0xff));
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

static void a_wait_can_be_limited(void)
{
	struct doca_sync_event *event;
	CHECK_OK(soft_doca_dev_close(dev));
	setup_configure("sync_wait_ms=1");
	dev = setup_open_dev(HOST_PCI);
	event = start_local();
	CHECK_RESULT(DOCA_ERROR_TIME_OUT, soft_doca_sync_event_wait_gt(event, 0, ALL));
	CHECK_RESULT(DOCA_ERROR_TIME_OUT, soft_doca_sync_event_wait_eq(event, 0x100, 0xff00));
	CHECK_RESULT(DOCA_ERROR_TIME_OUT, soft_doca_sync_event_wait_neq_yield(event, 0, 0));
	CHECK(strstr(soft_last_detail(), "sync_wait_ms") != NULL);
	CHECK_OK(soft_doca_sync_event_destroy(event));
	CHECK_OK(soft_doca_dev_close(dev));
	setup_configure(NULL);
	dev = setup_open_dev(HOST_PCI);
}

static void *answer(void *arg)
{
	CHECK_OK(soft_doca_sync_event_wait_eq(arg, 1, ALL));
	CHECK_OK(soft_doca_sync_event_update_set(arg, 2));
	CHECK_OK(soft_doca_sync_event_wait_gt_yield(arg, 2, ALL));
	return NULL;
}

static void await_waiters(struct doca_sync_event *event, unsigned count)
{
	while (atomic_load(&event->waiters) != count)
		usleep(100);
}

/* While the thread waits, the event can be neither stopped nor destroyed. */
static void another_thread_can_wait(void)
{
	pthread_t thread;
	struct doca_sync_event *event = start_local();
	CHECK(pthread_create(&thread, NULL, answer, event) == 0);
	await_waiters(event, 1);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_sync_event_stop(event));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_sync_event_destroy(event));
	CHECK_OK(soft_doca_sync_event_update_set(event, 1));
	CHECK_OK(soft_doca_sync_event_wait_eq_yield(event, 2, ALL));
	CHECK_OK(soft_doca_sync_event_update_set(event, 3));
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_OK(soft_doca_sync_event_stop(event));
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

static void *add_thousand(void *arg)
{
	uint64_t before;
	for (int i = 0; i < 1000; i++)
		CHECK_OK(soft_doca_sync_event_update_add(arg, 1, &before));
	return NULL;
}

static void additions_are_atomic(void)
{
	pthread_t threads[4];
	struct doca_sync_event *event = start_local();
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, add_thousand, event) == 0);
	CHECK_OK(soft_doca_sync_event_wait_eq_yield(event, 4000, ALL));
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

/* ---- what the device supports ---- */

static void capabilities_follow_the_side(void)
{
	struct doca_dev *dpu = setup_open_dev(DPU_PCI);
	CHECK_OK(soft_doca_sync_event_cap_is_export_to_remote_pci_supported(dev->info));
	REFUSED(soft_doca_sync_event_cap_is_export_to_remote_pci_supported(dpu->info));
	REFUSED(soft_doca_sync_event_cap_is_create_from_export_supported(dev->info));
	CHECK_OK(soft_doca_sync_event_cap_is_create_from_export_supported(dpu->info));
	CHECK_OK(soft_doca_sync_event_cap_task_get_is_supported(dev->info));
	CHECK_OK(soft_doca_sync_event_cap_task_notify_set_is_supported(dev->info));
	CHECK_OK(soft_doca_sync_event_cap_task_notify_add_is_supported(dev->info));
	CHECK_OK(soft_doca_sync_event_cap_task_wait_eq_is_supported(dpu->info));
	CHECK_OK(soft_doca_sync_event_cap_task_wait_neq_is_supported(dpu->info));
	INVALID(soft_doca_sync_event_cap_is_export_to_remote_pci_supported(NULL));
	INVALID(soft_doca_sync_event_cap_is_create_from_export_supported(NULL));
	INVALID(soft_doca_sync_event_cap_task_get_is_supported(NULL));
	INVALID(soft_doca_sync_event_cap_task_wait_eq_is_supported(NULL));
	CHECK_OK(soft_doca_dev_close(dpu));
}

/* Never read. */
static char foreign;
#define FOREIGN(type) ((struct type *)&foreign)

static void other_places_are_refused(void)
{
	struct doca_sync_event *event = start_local();
	struct doca_sync_event_remote_net *remote = FOREIGN(doca_sync_event_remote_net);
	doca_dpa_dev_sync_event_t dpa_handle = 77;
	doca_gpu_dev_sync_event_t *gpu_handle = NULL;
	uint64_t remote_handle = 77;
	const uint8_t *data = NULL;
	size_t size = 77;
	REFUSED(soft_doca_sync_event_add_publisher_location_dpa(event, FOREIGN(doca_dpa)));
	REFUSED(soft_doca_sync_event_add_publisher_location_gpu(event, FOREIGN(doca_gpu)));
	REFUSED(soft_doca_sync_event_add_publisher_location_remote_net(event));
	REFUSED(soft_doca_sync_event_add_subscriber_location_dpa(event, FOREIGN(doca_dpa)));
	REFUSED(soft_doca_sync_event_add_subscriber_location_gpu(event, FOREIGN(doca_gpu)));
	REFUSED(soft_doca_sync_event_get_dpa_handle(event, FOREIGN(doca_dpa), &dpa_handle));
	REFUSED(soft_doca_sync_event_get_gpu_handle(event, FOREIGN(doca_gpu), &gpu_handle));
	REFUSED(soft_doca_sync_event_export_to_remote_net(event, &data, &size));
	REFUSED(soft_doca_sync_event_remote_net_create_from_export(dev, (const uint8_t *)"x", 1, &remote));
	REFUSED(soft_doca_sync_event_remote_net_get_dpa_handle(remote, FOREIGN(doca_dpa), &remote_handle));
	REFUSED(soft_doca_sync_event_remote_net_get_gpu_handle(remote, FOREIGN(doca_gpu), &remote_handle));
	REFUSED(soft_doca_sync_event_remote_net_destroy(remote));
	REFUSED(soft_doca_sync_event_cap_is_export_to_dpa_supported(dev->info));
	REFUSED(soft_doca_sync_event_cap_is_export_to_gpu_supported(dev->info));
	REFUSED(soft_doca_sync_event_cap_is_export_to_remote_net_supported(dev->info));
	REFUSED(soft_doca_sync_event_cap_remote_net_is_create_from_export_supported(dev->info));
	REFUSED(soft_doca_sync_event_cap_remote_net_is_export_to_dpa_supported(dev->info));
	REFUSED(soft_doca_sync_event_cap_remote_net_is_export_to_gpu_supported(dev->info));
	CHECK(dpa_handle == 77 && gpu_handle == NULL && remote_handle == 77 && data == NULL && size == 77);
	INVALID(soft_doca_sync_event_add_publisher_location_dpa(event, NULL));
	INVALID(soft_doca_sync_event_get_dpa_handle(event, FOREIGN(doca_dpa), NULL));
	INVALID(soft_doca_sync_event_export_to_remote_net(event, NULL, &size));
	INVALID(soft_doca_sync_event_remote_net_destroy(NULL));
	INVALID(soft_doca_sync_event_cap_is_export_to_gpu_supported(NULL));
	CHECK_OK(soft_doca_sync_event_destroy(event));
}

int main(void)
{
	setup_configure(NULL);
	dev = setup_open_dev(HOST_PCI);
	RUN(an_event_counts_from_zero);
	RUN(calls_need_a_started_event);
	RUN(arguments_are_checked);
	RUN(both_locations_are_needed);
	RUN(a_location_is_set_once_and_before_the_start);
	RUN(a_location_holds_its_device);
	RUN(the_program_can_supply_the_counter);
	RUN(a_buffer_can_be_the_counter);
	RUN(unsuitable_buffers_are_refused);
	RUN(a_wait_that_holds_returns_at_once);
	RUN(a_wait_can_be_limited);
	RUN(another_thread_can_wait);
	RUN(additions_are_atomic);
	RUN(capabilities_follow_the_side);
	RUN(other_places_are_refused);
	CHECK_OK(soft_doca_dev_close(dev));
	return 0;
}
