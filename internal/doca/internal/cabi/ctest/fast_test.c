/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers and producers as programs see them: life, messages, limits, orderly and disorderly ends. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../soft_comch.h"
#include "../soft_remote_import.h"
#include "fast_end.h"

/* The host consumes and the DPU produces; the other way round is the same code. */
struct pair {
	struct end client, server;
	struct fast_end consumer, producer;
};

static struct pair p;

static void settle_pair(void)
{
	settle_fast(&p.client, &p.server, &p.consumer, &p.producer);
}

static void pair_open(void)
{
	open_both(&p.client, &p.server);
	consumer_open(&p.consumer, &p.client);
	producer_open(&p.producer, &p.server);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(p.consumer.ctx));
	CHECK_OK(soft_doca_ctx_start(p.producer.ctx));
	settle_pair();
	CHECK(fast_state(&p.consumer) == DOCA_CTX_STATE_RUNNING && p.server.new_consumers == 1);
}

static void pair_close(void)
{
	fast_close(&p.consumer);
	fast_close(&p.producer);
	close_both(&p.client, &p.server);
}

/* ---- life ---- */

static void capabilities(void)
{
	uint32_t value;
	const struct doca_devinfo *host = stage.host->info, *dpu = stage.dpu->info;
	CHECK_OK(soft_doca_comch_consumer_cap_is_supported(dpu));
	CHECK_OK(soft_doca_comch_producer_cap_is_supported(host));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_cap_is_supported(NULL));
	CHECK_OK(soft_doca_comch_consumer_cap_get_max_buf_size(host, &value));
	CHECK(value == 1 << 30);
	CHECK_OK(soft_doca_comch_producer_cap_get_max_num_tasks(dpu, &value));
	CHECK(value == 1024);
	CHECK_OK(soft_doca_comch_producer_cap_get_max_buf_list_len(dpu, &value));
	CHECK(value == 1);
	CHECK_OK(soft_doca_comch_consumer_cap_get_max_imm_data_len(dpu, &value));
	CHECK(value == 128);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_cap_get_max_consumers(host, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_producer_cap_get_max_producers(NULL, &value));
}

static void nothing_is_null(void)
{
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	uint32_t id;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_consumer_create(NULL, (struct doca_mmap *)&id, &consumer));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_producer_create(NULL, &producer));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_destroy(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_producer_destroy(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_get_id(NULL, &id));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_producer_get_id(NULL, &id));
	CHECK(soft_doca_comch_consumer_as_ctx(NULL) == NULL && soft_doca_comch_producer_as_ctx(NULL) == NULL);
	CHECK(soft_doca_comch_consumer_task_post_recv_get_imm_data(NULL) == NULL);
	CHECK(soft_doca_comch_producer_task_send_get_buf(NULL) == NULL);
}

static void configuration_is_checked(void)
{
	struct doca_comch_consumer *consumer;
	uint32_t len;
	pair_open();
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_set_imm_data_len(p.consumer.consumer, 129));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_set_imm_data_len(p.consumer.consumer, 8));
	CHECK_OK(soft_doca_comch_consumer_get_imm_data_len(p.consumer.consumer, &len));
	CHECK(len == FAST_IMM);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_consumer_task_post_recv_set_conf(p.consumer.consumer, NULL, NULL, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_producer_task_send_set_conf(p.producer.producer, NULL, NULL, 1));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_consumer_destroy(p.consumer.consumer));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_producer_destroy(p.producer.producer));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_stop(p.consumer.mmap));
	/* A device that is not the connection's. */
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_consumer_create(p.client.connection, p.producer.mmap, &consumer));
	pair_close();
}

static void permission_is_needed(void)
{
	struct doca_comch_consumer *consumer;
	struct doca_mmap *mmap;
	static uint8_t memory[4096];
	open_both(&p.client, &p.server);
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_OK(soft_doca_mmap_set_memrange(mmap, memory, sizeof(memory)));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, stage.host));
	CHECK_OK(soft_doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_PCI_READ_ONLY));
	CHECK_OK(soft_doca_mmap_start(mmap));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_create(p.client.connection, mmap, &consumer));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	close_both(&p.client, &p.server);
}

/* It cannot go while there is a consumer over it, and what has become of it is looked at when the consumer starts. */
static void the_map_stays(void)
{
	struct fast_end *consumer = &p.consumer;
	open_both(&p.client, &p.server);
	consumer_open(consumer, &p.client);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_destroy(consumer->mmap));
	CHECK_OK(soft_doca_mmap_stop(consumer->mmap));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(consumer->ctx));
	CHECK_OK(soft_doca_mmap_set_permissions(consumer->mmap, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE));
	CHECK_OK(soft_doca_mmap_start(consumer->mmap));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(consumer->ctx));
	CHECK_OK(soft_doca_mmap_stop(consumer->mmap));
	CHECK_OK(soft_doca_mmap_set_permissions(consumer->mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	CHECK_OK(soft_doca_mmap_start(consumer->mmap));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(consumer->ctx));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_stop(consumer->mmap));
	fast_close(consumer);
	close_both(&p.client, &p.server);
}

/* Neither engine alone is enough, and the peer is told last. */
static void a_consumer_starts_step_by_step(void)
{
	struct end *client = &p.client, *server = &p.server;
	struct fast_end *consumer = &p.consumer;
	open_both(client, server);
	consumer_open(consumer, client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(consumer->ctx));
	CHECK(!soft_doca_pe_progress(consumer->pe) && fast_state(consumer) == DOCA_CTX_STATE_STARTING);
	settle_one(client);
	CHECK(fast_state(consumer) == DOCA_CTX_STATE_STARTING && server->new_consumers == 0);
	CHECK(soft_doca_pe_progress(consumer->pe) && fast_state(consumer) == DOCA_CTX_STATE_RUNNING);
	settle_one(server);
	CHECK(server->new_consumers == 0);
	settle_both(client, server);
	CHECK(server->new_consumers == 1 && server->consumer_id == consumer_id(consumer));
	CHECK_OK(soft_doca_ctx_stop(consumer->ctx));
	CHECK(fast_state(consumer) == DOCA_CTX_STATE_IDLE && server->expired_consumers == 0);
	settle_both(client, server);
	CHECK(server->expired_consumers == 1);

	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(consumer->ctx));
	settle_fast(client, server, consumer, NULL);
	CHECK(server->new_consumers == 2);
	fast_close(consumer);
	settle_both(client, server);
	CHECK(server->expired_consumers == 2);
	close_both(client, server);
}

static void the_handle_tells_of_the_start(void)
{
	open_both(&p.client, &p.server);
	consumer_open(&p.consumer, &p.client);
	CHECK_OK(soft_doca_pe_request_notification(p.client.pe));
	CHECK(!stage_readable(p.client.pe, 0));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(p.consumer.ctx));
	CHECK(stage_readable(p.client.pe, 0));
	CHECK_OK(soft_doca_pe_request_notification(p.consumer.pe));
	CHECK(!stage_readable(p.consumer.pe, 0));
	settle_one(&p.client);
	CHECK(stage_readable(p.consumer.pe, 0) && !stage_readable(p.client.pe, 0));
	settle_fast(&p.client, &p.server, &p.consumer, NULL);
	CHECK(!stage_readable(p.consumer.pe, 0));
	fast_close(&p.consumer);
	close_both(&p.client, &p.server);
}

/* A progress that comes between the two steps of a ring does not leave the bell ringing. */
static void heard_in_the_middle_of_a_ring(void)
{
	pair_open();
	struct soft_member *member = TAILQ_FIRST(&p.client.connection->fast->members);
	atomic_store(&member->rung, true);
	CHECK(!soft_doca_pe_progress(p.consumer.pe));
	CHECK(eventfd_write(member->bell, 1) == 0);
	CHECK(!soft_doca_pe_progress(p.consumer.pe));
	CHECK_OK(soft_doca_pe_request_notification(p.consumer.pe));
	CHECK(!stage_readable(p.consumer.pe, 0));
	pair_close();
}

static void stopped_while_starting(void)
{
	open_both(&p.client, &p.server);
	consumer_open(&p.consumer, &p.client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(p.consumer.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(p.consumer.ctx));
	settle_fast(&p.client, &p.server, &p.consumer, NULL);
	CHECK(fast_state(&p.consumer) == DOCA_CTX_STATE_IDLE && p.server.new_consumers == 0);
	fast_close(&p.consumer);
	close_both(&p.client, &p.server);
}

static void ids_are_unique(void)
{
	struct fast_end ends[4];
	struct end *sides[] = {&p.client, &p.server, &p.client, &p.server};
	open_both(&p.client, &p.server);
	for (size_t i = 0; i < 4; i++) {
		consumer_open(&ends[i], sides[i]);
		for (size_t j = 0; j < i; j++)
			CHECK(consumer_id(&ends[i]) != consumer_id(&ends[j]));
	}
	for (size_t i = 0; i < 4; i++)
		fast_close(&ends[i]);
	close_both(&p.client, &p.server);
}

static void there_is_an_end_of_consumers(void)
{
	struct doca_comch_consumer *consumers[64], *one_more;
	open_both(&p.client, &p.server);
	consumer_open(&p.consumer, &p.client);
	for (size_t i = 1; i < 64; i++)
		CHECK_OK(soft_doca_comch_consumer_create(p.client.connection, p.consumer.mmap, &consumers[i]));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY,
		     soft_doca_comch_consumer_create(p.client.connection, p.consumer.mmap, &one_more));
	for (size_t i = 1; i < 64; i++)
		CHECK_OK(soft_doca_comch_consumer_destroy(consumers[i]));
	fast_close(&p.consumer);
	close_both(&p.client, &p.server);
}

/* ---- messages ---- */

static void bytes_arrive(void)
{
	const char imm[] = "immediately";
	uint32_t id;
	pair_open();
	id = consumer_id(&p.consumer);
	CHECK_OK(post(&p.consumer, 100, 1000));
	settle_pair();
	CHECK_OK(produce(&p.producer, id, 50, 1000, imm, sizeof(imm)));
	CHECK(p.consumer.memory[100] == 0);
	CHECK(soft_doca_pe_progress(p.producer.pe) && p.producer.completed == 1 && p.consumer.completed == 0);
	CHECK(memcmp(p.consumer.memory + 100, p.producer.memory + 50, 1000) == 0);
	CHECK(p.consumer.memory[1100] == 0 && p.consumer.memory[99] == 0);
	settle_pair();
	CHECK(p.consumer.completed == 1 && p.consumer.last_imm_len == sizeof(imm));
	CHECK(memcmp(p.consumer.last_imm, imm, sizeof(imm)) == 0);
	uint32_t producer;
	CHECK_OK(soft_doca_comch_producer_get_id(p.producer.producer, &producer));
	CHECK(p.consumer.last_producer == producer);

	CHECK_OK(post(&p.consumer, 0, 0));
	settle_pair();
	CHECK_OK(produce(&p.producer, id, 0, 0, imm, 4));
	settle_pair();
	CHECK(p.consumer.completed == 2 && p.consumer.last_imm_len == 4);
	pair_close();
}

static void keep_buf(struct fast_end *end, struct doca_buf *buf)
{
	end->last_buf = buf;
}

/* A buffer that holds data already is filled from there on. */
static void data_is_appended(void)
{
	struct doca_comch_consumer_task_post_recv *task;
	struct doca_buf *buf;
	size_t len;
	pair_open();
	p.consumer.on_completed = keep_buf;
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(p.consumer.inventory, p.consumer.mmap, p.consumer.memory, 100,
							 p.consumer.memory + 10, 20, &buf));
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_alloc_init(p.consumer.consumer, buf, &task));
	CHECK_OK(soft_doca_task_try_submit(soft_doca_comch_consumer_task_post_recv_as_task(task)));
	settle_pair();
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&p.producer, consumer_id(&p.consumer), 0, 71, NULL, 0));
	CHECK_OK(produce(&p.producer, consumer_id(&p.consumer), 0, 70, NULL, 0));
	settle_pair();
	CHECK(p.consumer.last_buf == buf && p.consumer.completed == 1);
	CHECK_OK(soft_doca_buf_get_data_len(buf, &len));
	CHECK(len == 90 && memcmp(p.consumer.memory + 30, p.producer.memory, 70) == 0);
	CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	pair_close();
}

/* A producer may call again and again without progress, as programs do; but what the consumer has not posted by progress
 * is not there. */
static void again_until_posted(void)
{
	uint32_t id;
	pair_open();
	id = consumer_id(&p.consumer);
	CHECK_RESULT(DOCA_ERROR_AGAIN, produce(&p.producer, id, 0, 10, NULL, 0));
	CHECK_OK(post(&p.consumer, 0, 10));
	CHECK_RESULT(DOCA_ERROR_AGAIN, produce(&p.producer, id, 0, 10, NULL, 0));
	CHECK(soft_doca_pe_progress(p.consumer.pe));
	CHECK_OK(produce(&p.producer, id, 0, 10, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_AGAIN, produce(&p.producer, id, 0, 10, NULL, 0));
	settle_pair();
	CHECK(p.consumer.completed == 1 && p.producer.completed == 1);
	pair_close();
}

static void what_cannot_be_sent(void)
{
	static uint8_t imm[200];
	uint32_t id;
	pair_open();
	id = consumer_id(&p.consumer);
	CHECK_OK(post(&p.consumer, 0, 10));
	settle_pair();
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&p.producer, id, 0, 11, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&p.producer, id + 2, 0, 10, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&p.producer, 0, 0, 10, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&p.producer, id, 0, 10, imm, FAST_IMM + 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&p.producer, id, 0, 10, imm, sizeof(imm)));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&p.producer, id, 0, 10, NULL, 1));
	/* Nothing at all: accepted as DOCA does not look, and failed by progress. */
	CHECK_OK(produce(&p.producer, id, 0, 0, NULL, 0));
	settle_pair();
	CHECK(p.producer.failed == 1 && p.producer.last_failure == DOCA_ERROR_INVALID_VALUE);
	CHECK(fast_state(&p.producer) == DOCA_CTX_STATE_RUNNING && p.consumer.completed == 0);
	CHECK_OK(produce(&p.producer, id, 0, 10, imm, FAST_IMM));
	settle_pair();
	CHECK(p.consumer.completed == 1);
	pair_close();
}

static doca_error_t post_buf(struct doca_buf *buf, bool validated)
{
	struct doca_comch_consumer_task_post_recv *task;
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_alloc_init(p.consumer.consumer, buf, &task));
	struct doca_task *base = soft_doca_comch_consumer_task_post_recv_as_task(task);
	doca_error_t result = validated ? soft_doca_task_try_submit(base) : soft_doca_task_submit(base);
	if (result != DOCA_SUCCESS)
		soft_doca_task_free(base);
	return result;
}

/* Another map's, full, and a list: refused by try_submit, failed after submit, and the consumer goes on. */
static void what_cannot_be_posted(void)
{
	struct fast_end other;
	struct doca_buf *bufs[3], *tail;
	pair_open();
	consumer_open(&other, &p.client);
	p.consumer.on_completed = keep_buf;
	uint8_t *memory = p.consumer.memory;
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(other.inventory, other.mmap, other.memory, 10, other.memory, 0,
							 &bufs[0]));
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(p.consumer.inventory, p.consumer.mmap, memory, 10, memory, 10,
							 &bufs[1]));
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(p.consumer.inventory, p.consumer.mmap, memory, 10, memory, 0,
							 &bufs[2]));
	CHECK_OK(soft_doca_buf_inventory_buf_get_by_args(p.consumer.inventory, p.consumer.mmap, memory + 10, 10,
							 memory + 10, 0, &tail));
	CHECK_OK(soft_doca_buf_chain_list(bufs[2], tail));
	for (unsigned i = 0; i < 3; i++) {
		CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, post_buf(bufs[i], true));
		CHECK_OK(post_buf(bufs[i], false));
		settle_pair();
		CHECK(p.consumer.failed == i + 1 && p.consumer.last_failure == DOCA_ERROR_INVALID_VALUE);
		CHECK(p.consumer.last_buf == bufs[i]);
		CHECK_OK(soft_doca_buf_dec_refcount(bufs[i], NULL));
	}
	CHECK(fast_state(&p.consumer) == DOCA_CTX_STATE_RUNNING);
	CHECK_RESULT(DOCA_ERROR_AGAIN, produce(&p.producer, consumer_id(&p.consumer), 0, 1, NULL, 0));
	fast_close(&other);
	pair_close();
}

static void pools_end(void)
{
	pair_open();
	for (unsigned i = 0; i < FAST_TASKS; i++)
		CHECK_OK(post(&p.consumer, i, 1));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, post(&p.consumer, 0, 1));
	settle_pair();
	for (unsigned i = 0; i < FAST_TASKS; i++) {
		while (produce(&p.producer, consumer_id(&p.consumer), i, 1, NULL, 0) == DOCA_ERROR_AGAIN)
			CHECK(soft_doca_pe_progress(p.consumer.pe));
	}
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, produce(&p.producer, consumer_id(&p.consumer), 0, 1, NULL, 0));
	while (p.consumer.completed < FAST_TASKS)
		settle_pair();
	CHECK(memcmp(p.consumer.memory, p.producer.memory, FAST_TASKS) == 0);
	CHECK_OK(soft_doca_ctx_stop(p.consumer.ctx));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, post(&p.consumer, 0, 1));
	pair_close();
}

/* Two producers take turns; each one's messages stay in order, and each fills the next buffer. */
static void order_is_kept(void)
{
	struct fast_end second;
	pair_open();
	producer_open(&second, &p.server);
	CHECK_OK(soft_doca_ctx_start(second.ctx));
	struct fast_end *producers[] = {&p.producer, &second};
	uint32_t id = consumer_id(&p.consumer);
	for (unsigned i = 0; i < 20; i++)
		CHECK_OK(post(&p.consumer, 10 * i, 10));
	settle_pair();
	for (unsigned i = 0; i < 20; i++)
		CHECK_OK(produce(producers[i % 2], id, 100 * i, 10, NULL, 0));
	for (unsigned i = 0; i < 10; i++)
		CHECK(soft_doca_pe_progress(second.pe));
	settle_pair();
	CHECK(p.consumer.completed == 20);
	for (unsigned i = 0; i < 20; i++) {
		unsigned sent = i < 10 ? 2 * i + 1 : 2 * (i - 10);
		CHECK(memcmp(p.consumer.memory + 10 * i, p.producer.memory + 100 * sent, 10) == 0);
	}
	fast_close(&second);
	pair_close();
}

static void both_ways(void)
{
	struct fast_end consumer, producer;
	pair_open();
	consumer_open(&consumer, &p.server);
	producer_open(&producer, &p.client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(consumer.ctx));
	CHECK_OK(soft_doca_ctx_start(producer.ctx));
	settle_fast(&p.client, &p.server, &consumer, &producer);
	CHECK(p.client.new_consumers == 1 && p.client.consumer_id == consumer_id(&consumer));
	CHECK_OK(post(&consumer, 0, FAST_MEMORY));
	settle_fast(&p.client, &p.server, &consumer, &producer);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&producer, consumer_id(&p.consumer), 0, 1, NULL, 0));
	CHECK_OK(produce(&producer, consumer_id(&consumer), 0, FAST_MEMORY, NULL, 0));
	settle_fast(&p.client, &p.server, &consumer, &producer);
	CHECK(consumer.completed == 1 && memcmp(consumer.memory, producer.memory, FAST_MEMORY) == 0);
	fast_close(&consumer);
	fast_close(&producer);
	pair_close();
}

/* Neither side's news fit into the lane at once. */
static void a_full_lane(void)
{
	pair_open();
	for (unsigned i = 0; i < FAST_TASKS; i++)
		CHECK_OK(post(&p.consumer, i, 1));
	while (soft_doca_pe_progress(p.consumer.pe))
		;
	CHECK_OK(soft_doca_pe_request_notification(p.consumer.pe));
	CHECK(!stage_readable(p.consumer.pe, 0));
	for (unsigned i = 0; i < FAST_TASKS; i++) {
		while (produce(&p.producer, consumer_id(&p.consumer), i, 1, NULL, 0) == DOCA_ERROR_AGAIN)
			CHECK(stage_readable(p.consumer.pe, 0) && soft_doca_pe_progress(p.consumer.pe));
	}
	while (soft_doca_pe_progress(p.producer.pe))
		;
	CHECK(p.producer.completed > 0 && p.producer.completed < FAST_TASKS && p.consumer.completed == 0);
	CHECK_OK(soft_doca_pe_request_notification(p.producer.pe));
	while (p.consumer.completed < FAST_TASKS)
		settle_pair();
	CHECK(p.producer.completed == FAST_TASKS && memcmp(p.consumer.memory, p.producer.memory, FAST_TASKS) == 0);
	pair_close();
}

static void the_handle_tells_of_deliveries(void)
{
	pair_open();
	CHECK_OK(post(&p.consumer, 0, 10));
	CHECK_OK(soft_doca_pe_request_notification(p.consumer.pe));
	CHECK(stage_readable(p.consumer.pe, 0));
	settle_pair();
	CHECK(!stage_readable(p.consumer.pe, 0));
	CHECK_OK(soft_doca_pe_request_notification(p.producer.pe));
	CHECK(!stage_readable(p.producer.pe, 0));
	CHECK_OK(produce(&p.producer, consumer_id(&p.consumer), 0, 10, NULL, 0));
	CHECK(stage_readable(p.producer.pe, 0) && !stage_readable(p.consumer.pe, 0));
	CHECK(soft_doca_pe_progress(p.producer.pe));
	CHECK(stage_readable(p.consumer.pe, 0) && !stage_readable(p.producer.pe, 0));
	settle_pair();
	pair_close();
}

/* ---- ends ---- */

static void disconnecting_waits_for_the_fast_path(void)
{
	pair_open();
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_ctx_stop(p.client.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_ctx_stop(p.server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_server_disconnect(p.server.server, p.server.connection));
	settle_pair();
	CHECK(state_of(&p.client) == DOCA_CTX_STATE_RUNNING);
	CHECK_OK(soft_doca_ctx_stop(p.producer.ctx));
	CHECK_OK(soft_doca_comch_server_disconnect(p.server.server, p.server.connection));
	settle_pair();
	CHECK(state_of(&p.client) == DOCA_CTX_STATE_IDLE && p.server.disconnects == 1);
	CHECK(fast_state(&p.consumer) == DOCA_CTX_STATE_IDLE && p.server.expired_consumers == 1);
	CHECK_RESULT(DOCA_ERROR_NOT_CONNECTED, soft_doca_ctx_start(p.producer.ctx));
	CHECK_RESULT(DOCA_ERROR_NOT_CONNECTED, soft_doca_ctx_start(p.consumer.ctx));
	pair_close();
}

static void a_consumer_stops_with_buffers_posted(void)
{
	pair_open();
	uint32_t id = consumer_id(&p.consumer);
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(post(&p.consumer, 10 * i, 10));
	settle_pair();
	for (unsigned i = 0; i < 3; i++)
		CHECK_OK(produce(&p.producer, id, 10 * i, 10, NULL, 0));
	CHECK(soft_doca_pe_progress(p.producer.pe));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(p.consumer.ctx));
	/* The first was delivered; the other two meet a consumer that is gone; the buffers come back. */
	while (soft_doca_pe_progress(p.producer.pe))
		;
	CHECK(p.producer.completed == 1 && p.producer.failed == 2);
	CHECK(p.producer.last_failure == DOCA_ERROR_CONNECTION_RESET);
	CHECK(fast_state(&p.producer) == DOCA_CTX_STATE_RUNNING);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&p.producer, id, 0, 10, NULL, 0));
	settle_pair();
	CHECK(p.consumer.completed == 1 && p.consumer.failed == 3 && p.consumer.last_failure == DOCA_ERROR_SHUTDOWN);
	CHECK(fast_state(&p.consumer) == DOCA_CTX_STATE_IDLE && p.server.expired_consumers == 1);
	CHECK(p.consumer.memory[10] == 0);
	pair_close();
}

/* The peer is stopped in the middle of a copy, here played by hand. Until it goes on, or dies, the buffers are not the
 * program's. */
static void buffers_wait_for_a_copy_under_way(void)
{
	pair_open();
	struct soft_lane *lane = soft_lane_find(p.server.connection->fast, consumer_id(&p.consumer));
	CHECK(lane != NULL);
	for (unsigned i = 0; i < 2; i++)
		CHECK_OK(post(&p.consumer, 10 * i, 10));
	settle_pair();
	CHECK_OK(produce(&p.producer, lane->consumer_id, 0, 10, NULL, 0));
	settle_pair();
	CHECK(p.consumer.completed == 1);
	atomic_store(&lane->import->gate->busy, 1);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(p.consumer.ctx));
	CHECK(!soft_doca_pe_progress(p.consumer.pe) && p.consumer.failed == 0);
	CHECK_OK(soft_doca_pe_request_notification(p.consumer.pe));
	CHECK(stage_readable(p.consumer.pe, 0) && fast_state(&p.consumer) == DOCA_CTX_STATE_STOPPING);
	atomic_store(&lane->import->gate->busy, 0);
	settle_pair();
	CHECK(p.consumer.failed == 1 && fast_state(&p.consumer) == DOCA_CTX_STATE_IDLE);
	soft_lane_unref(lane);
	pair_close();
}

static void a_producer_stops_with_tasks(void)
{
	pair_open();
	uint32_t id = consumer_id(&p.consumer);
	CHECK_OK(post(&p.consumer, 0, 10));
	settle_pair();
	CHECK_OK(produce(&p.producer, id, 0, 10, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(p.producer.ctx));
	settle_pair();
	CHECK(p.producer.failed == 1 && p.producer.last_failure == DOCA_ERROR_SHUTDOWN && p.consumer.completed == 0);
	CHECK_OK(soft_doca_ctx_start(p.producer.ctx));
	CHECK_OK(produce(&p.producer, id, 0, 10, NULL, 0));
	settle_pair();
	CHECK(p.consumer.completed == 1);
	pair_close();
}

/* The peer leaves with news of the consumer's unread, which its kernel reports ahead of what was delivered before. */
static void what_was_delivered_outlives_the_peer(void)
{
	pair_open();
	CHECK_OK(post(&p.consumer, 0, 10));
	settle_pair();
	CHECK_OK(produce(&p.producer, consumer_id(&p.consumer), 0, 10, NULL, 0));
	CHECK_OK(post(&p.consumer, 10, 10));
	CHECK(soft_doca_pe_progress(p.consumer.pe) && soft_doca_pe_progress(p.producer.pe));
	CHECK(p.producer.completed == 1 && p.consumer.completed == 0);
	CHECK_OK(soft_doca_ctx_stop(p.producer.ctx));
	CHECK_OK(soft_doca_comch_server_disconnect(p.server.server, p.server.connection));
	settle_one(&p.server);
	CHECK(p.server.disconnects == 1);
	settle_pair();
	CHECK(p.consumer.completed == 1 && p.consumer.failed == 1);
	CHECK(memcmp(p.consumer.memory, p.producer.memory, 10) == 0);
	pair_close();
}

static bool has_consumer(const void *arg)
{
	return ((const struct end *)arg)->new_consumers == 1;
}

static bool lost_client(const void *arg)
{
	return ((const struct end *)arg)->disconnects == 1;
}

static void be_a_consumer(void)
{
	struct end client;
	struct fast_end consumer;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	client_open(&client);
	soft_doca_ctx_start(client.ctx);
	while (state_of(&client) != DOCA_CTX_STATE_RUNNING)
		soft_doca_pe_progress(client.pe);
	consumer_open(&consumer, &client);
	soft_doca_ctx_start(consumer.ctx);
	while (fast_state(&consumer) != DOCA_CTX_STATE_RUNNING)
		settle_fast(&client, NULL, &consumer, NULL);
	CHECK_OK(post(&consumer, 0, 10));
	CHECK_OK(post(&consumer, 10, 10));
	for (;;)
		settle_fast(&client, NULL, &consumer, NULL);
}

/* Its consumer expires before the connection does; the producer's tasks fail and it stops. */
static void a_consumer_is_killed(void)
{
	struct end *server = &p.server;
	struct fast_end *producer = &p.producer;
	int status;
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	pid_t child = fork();
	if (child == 0)
		be_a_consumer();
	stage_wait(server->pe, has_consumer, server);
	producer_open(producer, server);
	CHECK_OK(soft_doca_ctx_start(producer->ctx));
	while (produce(producer, server->consumer_id, 0, 10, NULL, 0) == DOCA_ERROR_AGAIN)
		;
	while (producer->completed == 0)
		soft_doca_pe_progress(producer->pe);
	while (produce(producer, server->consumer_id, 0, 10, NULL, 0) == DOCA_ERROR_AGAIN)
		;
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	stage_wait(server->pe, lost_client, server);
	CHECK(server->expired_consumers == 1);
	settle_fast(NULL, server, producer, NULL);
	CHECK(producer->failed == 1 && producer->last_failure == DOCA_ERROR_CONNECTION_RESET);
	CHECK(fast_state(producer) == DOCA_CTX_STATE_IDLE);
	fast_close(producer);
	end_close(server);
	soft_sweep_runtime_dir(); /* of what it left behind */
}

/* ---- peers that misbehave ---- */

static int call_server(struct end *server)
{
	struct soft_comch_address address;
	struct soft_frame hello = soft_frame_make(SOFT_FRAME_HELLO, 4080, 0), welcome;
	soft_comch_address_make(&address, stage.host->info->pci_addr, stage.dpu->info->pci_addr, NAME);
	int fd = soft_comch_connect(&address);
	CHECK(fd >= 0 && send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
	settle_one(server);
	CHECK(recv(fd, &welcome, sizeof(welcome), 0) == sizeof(welcome));
	return fd;
}

struct news {
	struct soft_frame frame;
	struct soft_consumer_card card;
};

static struct news good_news(uint32_t id)
{
	return (struct news){.frame = soft_frame_make(SOFT_FRAME_CONSUMER, id, 0), .card = {.num_tasks = 4}};
}

/* Each of these ends the connection. */
static void bad_news(void)
{
	struct end *server = &p.server;
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	for (unsigned kind = 0; kind < 9; kind++) {
		int fd = call_server(server), ends[2], pipes[2];
		struct news news = good_news(5);
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 && pipe(pipes) == 0);
		const int *sent = &ends[1];
		size_t num = 1, len = sizeof(news);
		switch (kind) {
		case 0: /* without a lane */
			num = 0;
			break;
		case 1: /* with something that is no lane */
			sent = &pipes[0];
			break;
		case 2: /* no tasks */
			news.card.num_tasks = 0;
			break;
		case 3: /* too many */
			news.card.num_tasks = UINT32_MAX;
			break;
		case 4:
			news.card.imm_data_len = UINT32_MAX;
			break;
		case 5:
			news.frame.value = 0;
			break;
		case 6:
			news.frame.value = 0xffff;
			break;
		case 7: /* an id of the server's own consumers */
			news.frame.value = 6;
			break;
		default: /* one that never was has expired */
			news.frame.type = SOFT_FRAME_EXPIRED;
			len = sizeof(news.frame);
			break;
		}
		CHECK(remote_send(fd, &news, len, sent, num));
		settle_one(server);
		CHECK(server->disconnects == kind + 1 && server->new_consumers == 0);
		close(fd);
		close(ends[0]);
		close(ends[1]);
		close(pipes[0]);
		close(pipes[1]);
	}
	end_close(server);
}

static void the_same_consumer_twice(void)
{
	struct end *server = &p.server;
	int ends[2];
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	int fd = call_server(server);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	struct news news = good_news(5);
	CHECK(remote_send(fd, &news, sizeof(news), &ends[1], 1));
	settle_one(server);
	CHECK(server->new_consumers == 1 && server->disconnects == 0);
	CHECK(remote_send(fd, &news, sizeof(news), &ends[1], 1));
	settle_one(server);
	CHECK(server->expired_consumers == 1 && server->disconnects == 1);
	close(fd);
	close(ends[0]);
	close(ends[1]);
	end_close(server);
}

/* A consumer that posts what it does not share, or more than it has tasks for, is gone for its producers; nobody
 * writes anywhere. */
static void bad_slots(void)
{
	struct end *server = &p.server;
	struct fast_end *producer = &p.producer;
	int ends[2];
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	int fd = call_server(server);
	producer_open(producer, server);
	CHECK_OK(soft_doca_ctx_start(producer->ctx));
	for (uint32_t id = 1; id <= 5; id += 2) {
		struct news news = good_news(id);
		struct soft_slot slot = {.addr = 0x1000, .room = 4096};
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
		CHECK(remote_send(fd, &news, sizeof(news), &ends[1], 1));
		settle_one(server);
		unsigned failed = producer->failed;
		for (unsigned i = 0; i < (id == 1 ? 5u : 1u); i++)
			CHECK(send(ends[0], &slot, id == 3 ? 7 : sizeof(slot), 0) > 0);
		if (id == 5) { /* a descriptor that leads nowhere */
			CHECK_OK(produce(producer, id, 0, 10, NULL, 0));
			settle_fast(NULL, server, producer, NULL);
			CHECK(producer->failed == failed + 1 && producer->last_failure == DOCA_ERROR_IO_FAILED);
		} else {
			CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(producer, id, 0, 10, NULL, 0));
		}
		close(ends[0]);
		close(ends[1]);
	}
	fast_close(producer);
	close(fd);
	settle_one(server);
	CHECK(server->expired_consumers == 3);
	end_close(server);
}

/* The producer's side of a consumer that this process has: what it says is checked against what was posted. */
static void bad_deliveries(void)
{
	for (unsigned kind = 0; kind < 9; kind++) {
		struct {
			struct soft_delivery delivery;
			uint8_t imm[200];
		} packet = {.delivery = {.producer_id = 1, .len = 10}};
		size_t len = sizeof(packet.delivery);
		pair_open();
		struct soft_lane *lane = soft_lane_find(p.server.connection->fast, consumer_id(&p.consumer));
		CHECK(lane != NULL);
		if (kind != 0)
			CHECK_OK(post(&p.consumer, 0, 10));
		settle_pair();
		switch (kind) {
		case 0: /* nothing is posted */
			break;
		case 1: /* longer than the buffer */
			packet.delivery.len = 11;
			break;
		case 2: /* more immediate data than asked for */
			packet.delivery.imm_len = FAST_IMM + 1;
			len += FAST_IMM + 1;
			break;
		case 3: /* less than it says */
			packet.delivery.imm_len = 8;
			break;
		case 4: /* from nobody */
			packet.delivery.producer_id = SOFT_NO_ID;
			break;
		case 5:
			packet.delivery.producer_id = SOFT_GONE_ID;
			break;
		case 6: /* nothing */
			packet.delivery.len = 0;
			break;
		case 7:
			packet.delivery.reserved = 1;
			break;
		default:
			len = 3;
			break;
		}
		CHECK(send(lane->fd, &packet, len, 0) == (ssize_t)len);
		soft_lane_unref(lane);
		settle_pair();
		CHECK(fast_state(&p.consumer) == DOCA_CTX_STATE_IDLE && p.consumer.completed == 0);
		CHECK(p.consumer.failed == (kind != 0) && state_of(&p.client) == DOCA_CTX_STATE_RUNNING);
		pair_close();
	}
}

int main(void)
{
	stage_open(&stage, NULL);
	RUN(capabilities);
	RUN(nothing_is_null);
	RUN(configuration_is_checked);
	RUN(permission_is_needed);
	RUN(the_map_stays);
	RUN(a_consumer_starts_step_by_step);
	RUN(the_handle_tells_of_the_start);
	RUN(heard_in_the_middle_of_a_ring);
	RUN(stopped_while_starting);
	RUN(ids_are_unique);
	RUN(there_is_an_end_of_consumers);
	RUN(bytes_arrive);
	RUN(data_is_appended);
	RUN(again_until_posted);
	RUN(what_cannot_be_sent);
	RUN(what_cannot_be_posted);
	RUN(pools_end);
	RUN(order_is_kept);
	RUN(both_ways);
	RUN(a_full_lane);
	RUN(the_handle_tells_of_deliveries);
	RUN(disconnecting_waits_for_the_fast_path);
	RUN(a_consumer_stops_with_buffers_posted);
	RUN(buffers_wait_for_a_copy_under_way);
	RUN(a_producer_stops_with_tasks);
	RUN(what_was_delivered_outlives_the_peer);
	RUN(a_consumer_is_killed);
	RUN(bad_news);
	RUN(the_same_consumer_twice);
	RUN(bad_slots);
	RUN(bad_deliveries);
	stage_close(&stage);
	return 0;
}
