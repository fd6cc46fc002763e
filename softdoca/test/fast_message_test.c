/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the fast path: bytes, immediate data, order, back-pressure, and what is refused. */
#include <errno.h>
#include <sched.h>

#include "../device/comch_connection.h"
#include "../device/comch_send.h"
#include "fast_pair.h"

static void bytes_arrive(void)
{
	const char imm[] = "immediately";
	uint32_t id;
	pair_open();
	id = consumer_id(&pair.consumer);
	CHECK_OK(post(&pair.consumer, 100, 1000));
	settle_pair();
	CHECK_OK(produce(&pair.producer, id, 50, 1000, imm, sizeof(imm)));
	CHECK(memcmp(pair.consumer.memory + 100, pair.producer.memory + 50, 1000) == 0);
	CHECK(pair.producer.completed == 0 && pair.consumer.completed == 0);
	CHECK(soft_doca_pe_progress(pair.producer.pe) && pair.producer.completed == 1 && pair.consumer.completed == 0);
	CHECK(pair.consumer.memory[1100] == 0 && pair.consumer.memory[99] == 0);
	settle_pair();
	CHECK(pair.consumer.completed == 1 && pair.consumer.last_imm_len == sizeof(imm));
	CHECK(memcmp(pair.consumer.last_imm, imm, sizeof(imm)) == 0);
	uint32_t producer;
	CHECK_OK(soft_doca_comch_producer_get_id(pair.producer.producer, &producer));
	CHECK(pair.consumer.last_producer == producer);

	CHECK_OK(post(&pair.consumer, 0, 0));
	settle_pair();
	CHECK_OK(produce(&pair.producer, id, 0, 0, imm, 4));
	settle_pair();
	CHECK(pair.consumer.completed == 2 && pair.consumer.last_imm_len == 4);
	pair_close();
}

static void keep_buf(struct fast_end *end, struct doca_buf *buf)
{
	end->last_buf = buf;
}

/* A buffer that already has data is filled behind it. */
static void data_is_appended(void)
{
	struct doca_comch_consumer_task_post_recv *task;
	struct doca_buf *buf;
	size_t len;
	pair_open();
	pair.consumer.on_completed = keep_buf;
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(pair.consumer.inventory, pair.consumer.mmap,
							 pair.consumer.memory, 100, pair.consumer.memory + 10, 20,
							 &buf));
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_alloc_init(pair.consumer.consumer, buf, &task));
	CHECK_OK(soft_doca_task_try_submit(soft_doca_comch_consumer_task_post_recv_as_task(task)));
	settle_pair();
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&pair.producer, consumer_id(&pair.consumer), 0, 71, NULL, 0));
	CHECK_OK(produce(&pair.producer, consumer_id(&pair.consumer), 0, 70, NULL, 0));
	settle_pair();
	CHECK(pair.consumer.last_buf == buf && pair.consumer.completed == 1);
	CHECK_OK(soft_doca_buf_get_data_len(buf, &len));
	CHECK(len == 90 && memcmp(pair.consumer.memory + 30, pair.producer.memory, 70) == 0);
	CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	pair_close();
}

/* A producer may retry without progress, as programs do; a buffer can be filled once it is posted, also without. */
static void again_until_posted(void)
{
	uint32_t id;
	pair_open();
	id = consumer_id(&pair.consumer);
	CHECK_RESULT(DOCA_ERROR_AGAIN, produce(&pair.producer, id, 0, 10, NULL, 0));
	CHECK_OK(post(&pair.consumer, 0, 10));
	CHECK_OK(produce(&pair.producer, id, 0, 10, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_AGAIN, produce(&pair.producer, id, 0, 10, NULL, 0));
	settle_pair();
	CHECK(pair.consumer.completed == 1 && pair.producer.completed == 1);
	pair_close();
}

static void what_cannot_be_sent(void)
{
	static uint8_t imm[200];
	uint32_t id;
	pair_open();
	id = consumer_id(&pair.consumer);
	CHECK_OK(post(&pair.consumer, 0, 10));
	settle_pair();
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&pair.producer, id, 0, 11, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&pair.producer, id + 2, 0, 10, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&pair.producer, 0, 0, 10, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&pair.producer, id, 0, 10, imm, FAST_IMM + 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&pair.producer, id, 0, 10, imm, sizeof(imm)));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&pair.producer, id, 0, 10, NULL, 1));
	/* Neither bytes nor immediate data: accepted, as in DOCA, and failed by progress. */
	CHECK_OK(produce(&pair.producer, id, 0, 0, NULL, 0));
	settle_pair();
	CHECK(pair.producer.failed == 1 && pair.producer.last_failure == DOCA_ERROR_INVALID_VALUE);
	CHECK(fast_state(&pair.producer) == DOCA_CTX_STATE_RUNNING && pair.consumer.completed == 0);
	CHECK_OK(produce(&pair.producer, id, 0, 10, imm, FAST_IMM));
	settle_pair();
	CHECK(pair.consumer.completed == 1);
	pair_close();
}

static doca_error_t post_buf(struct doca_buf *buf, bool validated)
{
	struct doca_comch_consumer_task_post_recv *task;
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_alloc_init(pair.consumer.consumer, buf, &task));
	struct doca_task *base = soft_doca_comch_consumer_task_post_recv_as_task(task);
	doca_error_t result = validated ? soft_doca_task_try_submit(base) : soft_doca_task_submit(base);
	if (result != DOCA_SUCCESS)
		soft_doca_task_free(base);
	return result;
}

/*
 * A buffer of another map, a full one, and a list: refused by try_submit, failed after submit; the consumer continues.
 */
static void what_cannot_be_posted(void)
{
	struct fast_end other;
	struct doca_buf *bufs[3], *tail;
	pair_open();
	consumer_open(&other, &pair.client);
	pair.consumer.on_completed = keep_buf;
	uint8_t *memory = pair.consumer.memory;
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(other.inventory, other.mmap, other.memory, 10, other.memory, 0,
							 &bufs[0]));
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(pair.consumer.inventory, pair.consumer.mmap, memory, 10,
							 memory, 10, &bufs[1]));
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(pair.consumer.inventory, pair.consumer.mmap, memory, 10,
							 memory, 0, &bufs[2]));
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(pair.consumer.inventory, pair.consumer.mmap, memory + 10, 10,
							 memory + 10, 0, &tail));
	CHECK_OK(soft_doca_buf_chain_list(bufs[2], tail));
	for (unsigned i = 0; i < 3; i++) {
		CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, post_buf(bufs[i], true));
		CHECK_OK(post_buf(bufs[i], false));
		settle_pair();
		CHECK(pair.consumer.failed == i + 1 && pair.consumer.last_failure == DOCA_ERROR_INVALID_VALUE);
		CHECK(pair.consumer.last_buf == bufs[i]);
		CHECK_OK(soft_doca_buf_dec_refcount(bufs[i], NULL));
	}
	CHECK(fast_state(&pair.consumer) == DOCA_CTX_STATE_RUNNING);
	CHECK_RESULT(DOCA_ERROR_AGAIN, produce(&pair.producer, consumer_id(&pair.consumer), 0, 1, NULL, 0));
	fast_close(&other);
	pair_close();
}

static void pools_end(void)
{
	pair_open();
	for (unsigned i = 0; i < FAST_TASKS; i++)
		CHECK_OK(post(&pair.consumer, i, 1));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, post(&pair.consumer, 0, 1));
	settle_pair();
	for (unsigned i = 0; i < FAST_TASKS; i++) {
		while (produce(&pair.producer, consumer_id(&pair.consumer), i, 1, NULL, 0) == DOCA_ERROR_AGAIN)
			CHECK(soft_doca_pe_progress(pair.consumer.pe));
	}
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, produce(&pair.producer, consumer_id(&pair.consumer), 0, 1, NULL, 0));
	while (pair.consumer.completed < FAST_TASKS)
		settle_pair();
	CHECK(memcmp(pair.consumer.memory, pair.producer.memory, FAST_TASKS) == 0);
	CHECK_OK(soft_doca_ctx_stop(pair.consumer.ctx));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, post(&pair.consumer, 0, 1));
	pair_close();
}

/* With two producers each message fills the next buffer, in the order of submission. */
static void order_is_kept(void)
{
	struct fast_end second;
	pair_open();
	producer_open(&second, &pair.server);
	CHECK_OK(soft_doca_ctx_start(second.ctx));
	struct fast_end *producers[] = {&pair.producer, &second};
	uint32_t id = consumer_id(&pair.consumer);
	for (unsigned i = 0; i < 20; i++)
		CHECK_OK(post(&pair.consumer, 10 * i, 10));
	settle_pair();
	for (unsigned i = 0; i < 20; i++)
		CHECK_OK(produce(producers[i % 2], id, 100 * i, 10, NULL, 0));
	CHECK(soft_doca_pe_progress(second.pe));
	settle_pair();
	CHECK(pair.consumer.completed == 20);
	for (unsigned i = 0; i < 20; i++)
		CHECK(memcmp(pair.consumer.memory + 10 * i, pair.producer.memory + 100 * i, 10) == 0);
	fast_close(&second);
	pair_close();
}

static void both_ways(void)
{
	struct fast_end consumer, producer;
	pair_open();
	consumer_open(&consumer, &pair.server);
	producer_open(&producer, &pair.client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(consumer.ctx));
	CHECK_OK(soft_doca_ctx_start(producer.ctx));
	settle_fast(&pair.client, &pair.server, &consumer, &producer);
	CHECK(pair.client.new_consumers == 1 && pair.client.consumer_id == consumer_id(&consumer));
	CHECK_OK(post(&consumer, 0, FAST_MEMORY));
	settle_fast(&pair.client, &pair.server, &consumer, &producer);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&producer, consumer_id(&pair.consumer), 0, 1, NULL, 0));
	CHECK_OK(produce(&producer, consumer_id(&consumer), 0, FAST_MEMORY, NULL, 0));
	settle_fast(&pair.client, &pair.server, &consumer, &producer);
	CHECK(consumer.completed == 1 && memcmp(consumer.memory, producer.memory, FAST_MEMORY) == 0);
	fast_close(&consumer);
	fast_close(&producer);
	pair_close();
}

/* The lane cannot hold the slots and deliveries of both sides at once. */
static void a_full_lane(void)
{
	pair_open();
	for (unsigned i = 0; i < FAST_TASKS; i++)
		CHECK_OK(post(&pair.consumer, i, 1));
	CHECK(!soft_doca_pe_progress(pair.consumer.pe));
	CHECK_OK(soft_doca_pe_request_notification(pair.consumer.pe));
	CHECK(!fixture_readable(pair.consumer.pe, 0));
	for (unsigned i = 0; i < FAST_TASKS; i++) {
		while (produce(&pair.producer, consumer_id(&pair.consumer), i, 1, NULL, 0) == DOCA_ERROR_AGAIN)
			sched_yield();
	}
	while (soft_doca_pe_progress(pair.producer.pe))
		;
	CHECK(pair.producer.completed > 0 && pair.producer.completed < FAST_TASKS && pair.consumer.completed == 0);
	CHECK_OK(soft_doca_pe_request_notification(pair.producer.pe));
	while (pair.consumer.completed < FAST_TASKS)
		settle_pair();
	CHECK(pair.producer.completed == FAST_TASKS &&
	      memcmp(pair.consumer.memory, pair.producer.memory, FAST_TASKS) == 0);
	pair_close();
}

/* A CONSUMER frame carries a descriptor. A user can have too many descriptors in flight; the frame is sent later. */
static void too_many_descriptors_in_flight(void)
{
	struct doca_comch_connection *connection;
	pair_open();
	connection = pair.client.connection;
	errno = ETOOMANYREFS;
	soft_send_refused(connection);
	CHECK(connection->full && !connection->send_failed);
	errno = EPIPE;
	soft_send_refused(connection);
	CHECK(!connection->full && connection->send_failed);
	connection->send_failed = false;
	pair_close();
}

static void the_handle_tells_of_deliveries(void)
{
	pair_open();
	CHECK_OK(post(&pair.consumer, 0, 10));
	CHECK_OK(soft_doca_pe_request_notification(pair.consumer.pe));
	CHECK(!fixture_readable(pair.consumer.pe, 0));
	CHECK_OK(soft_doca_pe_request_notification(pair.producer.pe));
	CHECK(!fixture_readable(pair.producer.pe, 0));
	CHECK_OK(produce(&pair.producer, consumer_id(&pair.consumer), 0, 10, NULL, 0));
	CHECK(fixture_readable(pair.producer.pe, 0) && fixture_readable(pair.consumer.pe, 0));
	CHECK(soft_doca_pe_progress(pair.producer.pe));
	CHECK(fixture_readable(pair.consumer.pe, 0) && !fixture_readable(pair.producer.pe, 0));
	settle_pair();
	pair_close();
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(bytes_arrive);
	RUN(data_is_appended);
	RUN(again_until_posted);
	RUN(what_cannot_be_sent);
	RUN(what_cannot_be_posted);
	RUN(pools_end);
	RUN(order_is_kept);
	RUN(both_ways);
	RUN(a_full_lane);
	RUN(too_many_descriptors_in_flight);
	RUN(the_handle_tells_of_deliveries);
	fixture_close(&fixture);
	return 0;
}
