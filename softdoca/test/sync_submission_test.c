/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that submit a message or a copy, do not progress its engine again, and wait in a sync event for what it
 * brings about.
 */
#include <pthread.h>

#include "../sync/soft_sync.h"
#include "comch_end.h"
#include "setup.h"

#define ALL UINT64_MAX

struct sides {
	struct doca_sync_event *host, *dpu; /* one event */
};

static void events_open(struct sides *sides)
{
	const uint8_t *data;
	size_t size;
	CHECK_OK(soft_doca_sync_event_create(&sides->host));
	CHECK_OK(soft_doca_sync_event_add_publisher_location_remote_pci(sides->host));
	CHECK_OK(soft_doca_sync_event_add_subscriber_location_cpu(sides->host, fixture.host));
	CHECK_OK(soft_doca_sync_event_start(sides->host));
	CHECK_OK(soft_doca_sync_event_export_to_remote_pci(sides->host, fixture.host, &data, &size));
	CHECK_OK(soft_doca_sync_event_create_from_export(fixture.dpu, data, size, &sides->dpu));
	CHECK_OK(soft_doca_sync_event_start(sides->dpu));
}

static void events_close(struct sides *sides)
{
	CHECK_OK(soft_doca_sync_event_destroy(sides->dpu));
	CHECK_OK(soft_doca_sync_event_destroy(sides->host));
}

/* ---- a message ---- */

static struct sides message_sides;

static void signal_host(struct end *end, struct doca_comch_connection *connection)
{
	(void)connection;
	CHECK_OK(soft_doca_sync_event_update_set(message_sides.dpu, end->received));
}

static bool has_both(const void *arg)
{
	return ((const struct end *)arg)->received == 2;
}

static void *receive_two(void *server)
{
	fixture_wait(((struct end *)server)->pe, has_both, server);
	return NULL;
}

static void a_message_is_answered_by_an_event(void)
{
	struct end client, server;
	pthread_t thread;
	events_open(&message_sides);
	open_both(&client, &server);
	server.on_received = signal_host;
	CHECK(pthread_create(&thread, NULL, receive_two, &server) == 0);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_OK(send_number(&client, i, 16));
		CHECK_OK(soft_doca_sync_event_wait_eq_yield(message_sides.host, i + 1, ALL));
	}
	CHECK(pthread_join(thread, NULL) == 0 && client.sent == 0);
	close_both(&client, &server);
	events_close(&message_sides);
}

/* ---- a copy ---- */

/* The copy writes into the counter of an event. */
static void a_copy_ends_a_wait(void)
{
	static uint64_t one = 1;
	struct doca_sync_event *event;
	struct engine engine;
	uint64_t *counter;
	engine_open(&engine, DPU_PCI, 1);
	CHECK(posix_memalign((void **)&counter, 4096, 4096) == 0);
	*counter = 0;
	CHECK_OK(soft_doca_sync_event_create(&event));
	CHECK_OK(soft_doca_sync_event_add_publisher_location_cpu(event, engine.dev));
	CHECK_OK(soft_doca_sync_event_add_subscriber_location_cpu(event, engine.dev));
	CHECK_OK(soft_doca_sync_event_set_addr(event, counter));
	CHECK_OK(soft_doca_sync_event_start(event));
	struct doca_mmap *from = setup_mmap(engine.dev, &one, sizeof(one), DOCA_ACCESS_FLAG_LOCAL_READ_ONLY);
	struct doca_mmap *to = setup_mmap(engine.dev, counter, 4096, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_buf *src = setup_buf(engine.inventory, from, &one, sizeof(one), sizeof(one));
	struct doca_buf *dst = setup_buf(engine.inventory, to, counter, sizeof(one), 0);
	engine_submit(&engine, src, dst);
	CHECK_OK(soft_doca_sync_event_wait_eq(event, 1, ALL));
	CHECK(engine.completed == 0);
	engine_wait(&engine, 1);
	CHECK(engine.failed == 0);
	CHECK_OK(soft_doca_buf_dec_refcount(src, NULL));
	CHECK_OK(soft_doca_buf_dec_refcount(dst, NULL));
	CHECK_OK(soft_doca_mmap_destroy(from));
	CHECK_OK(soft_doca_mmap_destroy(to));
	CHECK_OK(soft_doca_sync_event_destroy(event));
	engine_close(&engine);
	free(counter);
}

int main(void)
{
	fixture_open(&fixture, "sync_wait_ms=60000"); /* instead of a hang */
	RUN(a_message_is_answered_by_an_event);
	RUN(a_copy_ends_a_wait);
	fixture_close(&fixture);
	return 0;
}
