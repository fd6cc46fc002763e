/* SPDX-License-Identifier: Apache-2.0 */
/* Message queues from creation to destruction: settings, order of calls, what is missing, what is too much. */
#include "msgq_end.h"

DPA_KIT_APP(test_app)
DPA_KIT_RPC(run_body, uint64_t, uint64_t)

struct fixture fixture;

static void no_recv(struct doca_comch_consumer_task_post_recv *task, union doca_data a, union doca_data b)
{
	(void)task;
	(void)a;
	(void)b;
}

static void no_send(struct doca_comch_producer_task_send *task, union doca_data a, union doca_data b)
{
	(void)task;
	(void)a;
	(void)b;
}

static void null_is_invalid(void)
{
	struct doca_comch_msgq *msgq;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_create(NULL, &msgq));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_create(fixture.dpu, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_destroy(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_start(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_stop(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_consumer_create(NULL, &consumer));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_producer_create(NULL, &producer));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_completion_create(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_completion_start(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_completion_stop(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_completion_destroy(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_completion_get_max_num_recv(NULL, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_set_datapath_on_dpa(NULL, NULL));
}

static void a_queue_has_one_direction(void)
{
	struct doca_dpa *dpa = dpa_open(), *foreign;
	struct doca_comch_msgq *msgq;
	CHECK_OK(soft_doca_dpa_create(fixture.host, &foreign));
	CHECK_OK(soft_doca_comch_msgq_create(fixture.dpu, &msgq));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_set_dpa_consumer(msgq, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_set_dpa_consumer(msgq, foreign));
	CHECK_OK(soft_doca_comch_msgq_set_dpa_consumer(msgq, dpa));
	CHECK_OK(soft_doca_comch_msgq_set_dpa_consumer(msgq, dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_msgq_set_dpa_producer(msgq, dpa));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dpa_stop(dpa));
	CHECK_OK(soft_doca_comch_msgq_destroy(msgq));
	CHECK_OK(soft_doca_dpa_destroy(foreign));
	dpa_close(dpa);
}

static void settings_are_frozen_by_the_start(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct doca_comch_msgq *msgq;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	CHECK_OK(soft_doca_comch_msgq_create(fixture.dpu, &msgq));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_set_max_num_consumers(msgq, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_msgq_set_max_num_producers(msgq, 65));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_msgq_consumer_create(msgq, &consumer));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_msgq_producer_create(msgq, &producer));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_msgq_stop(msgq));
	CHECK_OK(soft_doca_comch_msgq_set_dpa_consumer(msgq, dpa));
	CHECK_OK(soft_doca_comch_msgq_start(msgq));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_msgq_start(msgq));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_msgq_set_dpa_consumer(msgq, dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_msgq_set_max_num_consumers(msgq, 1));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_msgq_set_max_num_producers(msgq, 1));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_msgq_destroy(msgq));
	/* One of each unless more were asked for. */
	CHECK_OK(soft_doca_comch_msgq_consumer_create(msgq, &consumer));
	CHECK_OK(soft_doca_comch_msgq_producer_create(msgq, &producer));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, soft_doca_comch_msgq_consumer_create(msgq, &consumer));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, soft_doca_comch_msgq_producer_create(msgq, &producer));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_msgq_stop(msgq));
	CHECK_OK(soft_doca_comch_consumer_destroy(consumer));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_msgq_stop(msgq));
	CHECK_OK(soft_doca_comch_producer_destroy(producer));
	CHECK_OK(soft_doca_comch_msgq_stop(msgq));
	CHECK_OK(soft_doca_comch_msgq_set_max_num_consumers(msgq, 2));
	CHECK_OK(soft_doca_comch_msgq_destroy(msgq));
	dpa_close(dpa);
}

static void the_dpa_starts_first(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct doca_comch_msgq *msgq;
	CHECK_OK(soft_doca_dpa_stop(dpa));
	CHECK_OK(soft_doca_comch_msgq_create(fixture.dpu, &msgq));
	CHECK_OK(soft_doca_comch_msgq_set_dpa_producer(msgq, dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_msgq_start(msgq));
	CHECK_OK(soft_doca_dpa_start(dpa));
	CHECK_OK(soft_doca_comch_msgq_start(msgq));
	msgq_close(msgq);
	dpa_close(dpa);
}

static void ids_begin_with_one(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct doca_comch_msgq *msgq = msgq_open(dpa, MSGQ_FROM_DPA);
	struct doca_comch_consumer *consumers[2];
	struct doca_comch_producer *producers[2];
	uint32_t id;
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_OK(soft_doca_comch_msgq_consumer_create(msgq, &consumers[i]));
		CHECK_OK(soft_doca_comch_msgq_producer_create(msgq, &producers[i]));
		CHECK_OK(soft_doca_comch_consumer_get_id(consumers[i], &id));
		CHECK(id == i + 1);
		CHECK_OK(soft_doca_comch_producer_get_id(producers[i], &id));
		CHECK(id == i + 1);
	}
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_OK(soft_doca_comch_consumer_destroy(consumers[i]));
		CHECK_OK(soft_doca_comch_producer_destroy(producers[i]));
	}
	msgq_close(msgq);
	dpa_close(dpa);
}

/* Only the DPA's side of a queue can be on the DPA, and only on that of the queue. */
static void the_other_side_stays_on_the_cpu(void)
{
	struct doca_dpa *dpa = dpa_open(), *other = dpa_open();
	struct doca_comch_msgq *msgq = msgq_open(dpa, MSGQ_TO_DPA);
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	struct doca_dpa_completion *completion;
	doca_dpa_dev_comch_producer_t handle;
	doca_dpa_dev_comch_consumer_t consumer_handle;
	CHECK_OK(soft_doca_comch_msgq_consumer_create(msgq, &consumer));
	CHECK_OK(soft_doca_comch_msgq_producer_create(msgq, &producer));
	struct doca_ctx *on_dpa = soft_doca_comch_consumer_as_ctx(consumer);
	struct doca_ctx *on_cpu = soft_doca_comch_producer_as_ctx(producer);
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_ctx_set_datapath_on_dpa(on_cpu, dpa));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_comch_producer_set_dev_max_num_send(producer, 4));
	CHECK_OK(soft_doca_dpa_completion_create(dpa, 4, &completion));
	CHECK_OK(soft_doca_dpa_completion_start(completion));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_comch_producer_dpa_completion_attach(producer, completion));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_producer_get_dpa_handle(producer, &handle));
	CHECK_RESULT(DOCA_ERROR_NOT_CONNECTED, soft_doca_ctx_start(on_cpu));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_set_datapath_on_dpa(on_dpa, other));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_get_dpa_handle(consumer, &consumer_handle));
	CHECK_OK(soft_doca_dpa_completion_destroy(completion));
	CHECK_OK(soft_doca_comch_consumer_destroy(consumer));
	CHECK_OK(soft_doca_comch_producer_destroy(producer));
	msgq_close(msgq);
	dpa_close(dpa);
	dpa_close(other);
}

/* The settings can come in any order, but all must come. */
static void a_consumer_on_the_dpa_needs_its_settings(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct doca_comch_msgq *msgq = msgq_open(dpa, MSGQ_TO_DPA);
	struct doca_comch_consumer_completion *completion;
	struct doca_comch_consumer *consumer;
	uint32_t len;
	CHECK_OK(soft_doca_comch_consumer_completion_create(&completion));
	CHECK_OK(soft_doca_comch_msgq_consumer_create(msgq, &consumer));
	struct doca_ctx *ctx = soft_doca_comch_consumer_as_ctx(consumer);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_set_completion(consumer, completion, 1));
	CHECK_OK(soft_doca_comch_consumer_completion_set_imm_data_len(completion, 24));
	CHECK_OK(soft_doca_comch_consumer_completion_start(completion));
	CHECK_OK(soft_doca_comch_consumer_set_completion(consumer, completion, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_ctx_set_datapath_on_dpa(ctx, dpa));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(ctx));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_set_dev_max_num_recv(consumer, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_set_dev_max_num_recv(consumer, UINT32_MAX));
	CHECK_OK(soft_doca_comch_consumer_set_dev_max_num_recv(consumer, 1024));
	CHECK_OK(soft_doca_ctx_start(ctx));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_set_dev_max_num_recv(consumer, 4));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_ctx_set_datapath_on_dpa(ctx, dpa));
	/* Its immediate data is the completion context's unless it was set. */
	CHECK_OK(soft_doca_comch_consumer_get_imm_data_len(consumer, &len));
	CHECK(len == 24);
	CHECK_OK(soft_doca_ctx_stop(ctx));
	CHECK_OK(soft_doca_comch_consumer_set_imm_data_len(consumer, 25));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_comch_consumer_set_imm_data_len(consumer, 24));
	CHECK_OK(soft_doca_comch_consumer_set_dev_max_num_recv(consumer, 1025));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(ctx));
	/* A context that is gone is not used. */
	CHECK_OK(soft_doca_comch_consumer_completion_stop(completion));
	CHECK_OK(soft_doca_comch_consumer_completion_destroy(completion));
	CHECK_OK(soft_doca_comch_consumer_set_dev_max_num_recv(consumer, 4));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_comch_consumer_destroy(consumer));
	msgq_close(msgq);
	dpa_close(dpa);
}

static void a_producer_on_the_dpa_needs_its_settings(void)
{
	struct doca_dpa *dpa = dpa_open(), *other = dpa_open();
	struct doca_comch_msgq *msgq = msgq_open(dpa, MSGQ_FROM_DPA);
	struct doca_comch_producer *producer;
	struct doca_dpa_completion *completion, *foreign;
	CHECK_OK(soft_doca_comch_msgq_producer_create(msgq, &producer));
	struct doca_ctx *ctx = soft_doca_comch_producer_as_ctx(producer);
	CHECK_OK(soft_doca_dpa_completion_create(dpa, 4, &completion));
	CHECK_OK(soft_doca_dpa_completion_create(other, 4, &foreign));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_producer_dpa_completion_attach(producer, completion));
	CHECK_OK(soft_doca_dpa_completion_start(completion));
	CHECK_OK(soft_doca_dpa_completion_start(foreign));
	CHECK_OK(soft_doca_comch_producer_dpa_completion_attach(producer, foreign));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_producer_set_dev_max_num_send(producer, 0));
	CHECK_OK(soft_doca_comch_producer_set_dev_max_num_send(producer, 4));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_ctx_set_datapath_on_dpa(ctx, dpa));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_comch_producer_dpa_completion_attach(producer, completion));
	CHECK_OK(soft_doca_ctx_start(ctx));
	CHECK(msgq_state(ctx) == DOCA_CTX_STATE_RUNNING);
	CHECK_OK(soft_doca_ctx_stop(ctx));
	CHECK_OK(soft_doca_comch_producer_destroy(producer));
	CHECK_OK(soft_doca_dpa_completion_destroy(completion));
	CHECK_OK(soft_doca_dpa_completion_destroy(foreign));
	msgq_close(msgq);
	dpa_close(dpa);
	dpa_close(other);
}

static void completion_contexts_round_up(void)
{
	struct doca_comch_consumer_completion *completion;
	doca_dpa_dev_comch_consumer_completion_t handle;
	uint32_t value;
	CHECK_OK(soft_doca_comch_consumer_completion_create(&completion));
	CHECK_OK(soft_doca_comch_consumer_completion_set_max_num_recv(completion, 1000));
	CHECK_OK(soft_doca_comch_consumer_completion_get_max_num_recv(completion, &value));
	CHECK(value == 1024);
	CHECK_OK(soft_doca_comch_consumer_completion_set_max_num_consumers(completion, 3));
	CHECK_OK(soft_doca_comch_consumer_completion_get_max_num_consumers(completion, &value));
	CHECK(value == 4);
	CHECK_OK(soft_doca_comch_consumer_completion_get_imm_data_len(completion, &value));
	CHECK(value == 32);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_completion_set_imm_data_len(completion, 33));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_completion_set_max_num_recv(completion, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_consumer_completion_set_max_num_recv(completion, UINT32_MAX));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_completion_stop(completion));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_completion_get_dpa_handle(completion, &handle));
	CHECK_OK(soft_doca_comch_consumer_completion_start(completion));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_completion_start(completion));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_completion_set_imm_data_len(completion, 8));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_consumer_completion_destroy(completion));
	CHECK_OK(soft_doca_comch_consumer_completion_stop(completion));
	CHECK_OK(soft_doca_comch_consumer_completion_destroy(completion));
}

static struct doca_comch_consumer *consumer_on_dpa(struct doca_comch_msgq *msgq, struct doca_dpa *dpa,
						   struct doca_comch_consumer_completion *completion)
{
	struct doca_comch_consumer *consumer;
	CHECK_OK(soft_doca_comch_msgq_consumer_create(msgq, &consumer));
	CHECK_OK(soft_doca_ctx_set_datapath_on_dpa(soft_doca_comch_consumer_as_ctx(consumer), dpa));
	CHECK_OK(soft_doca_comch_consumer_set_completion(consumer, completion, 0));
	CHECK_OK(soft_doca_comch_consumer_set_dev_max_num_recv(consumer, 4));
	return consumer;
}

/* Consumers that share a completion context need room in it, and it outlives them. */
static void a_completion_context_has_a_size(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct doca_comch_msgq *msgq = msgq_open(dpa, MSGQ_TO_DPA);
	struct doca_comch_consumer_completion *completion;
	CHECK_OK(soft_doca_comch_consumer_completion_create(&completion));
	CHECK_OK(soft_doca_comch_consumer_completion_set_max_num_recv(completion, 4));
	CHECK_OK(soft_doca_comch_consumer_completion_start(completion));
	struct doca_comch_consumer *a = consumer_on_dpa(msgq, dpa, completion);
	struct doca_comch_consumer *b = consumer_on_dpa(msgq, dpa, completion);
	CHECK_OK(soft_doca_ctx_start(soft_doca_comch_consumer_as_ctx(a)));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_consumer_completion_stop(completion));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(soft_doca_comch_consumer_as_ctx(b)));
	CHECK(strstr(soft_last_detail(), "max_num_consumers") != NULL);
	CHECK_OK(soft_doca_ctx_stop(soft_doca_comch_consumer_as_ctx(a)));
	CHECK_OK(soft_doca_comch_consumer_completion_stop(completion));
	CHECK_OK(soft_doca_comch_consumer_completion_set_max_num_consumers(completion, 2));
	CHECK_OK(soft_doca_comch_consumer_completion_start(completion));
	CHECK_OK(soft_doca_ctx_start(soft_doca_comch_consumer_as_ctx(b)));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(soft_doca_comch_consumer_as_ctx(a)));
	CHECK(strstr(soft_last_detail(), "max_num_recv") != NULL);
	CHECK_OK(soft_doca_ctx_stop(soft_doca_comch_consumer_as_ctx(b)));
	CHECK_OK(soft_doca_comch_consumer_destroy(a));
	CHECK_OK(soft_doca_comch_consumer_destroy(b));
	CHECK_OK(soft_doca_comch_consumer_completion_stop(completion));
	CHECK_OK(soft_doca_comch_consumer_completion_destroy(completion));
	msgq_close(msgq);
	dpa_close(dpa);
}

/* A started thread is needed, and kept. */
static void a_completion_context_needs_its_thread(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct doca_dpa_thread *thread;
	struct doca_comch_consumer_completion *completion;
	CHECK_OK(soft_doca_dpa_thread_create(dpa, &thread));
	CHECK_OK(soft_doca_comch_consumer_completion_create(&completion));
	CHECK_OK(soft_doca_comch_consumer_completion_set_dpa_thread(completion, thread));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_completion_start(completion));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dpa_thread_destroy(thread));
	CHECK_OK(soft_doca_comch_consumer_completion_destroy(completion));
	CHECK_OK(soft_doca_dpa_thread_destroy(thread));
	dpa_close(dpa);
}

/* Contexts on the CPU need their callbacks; what they cannot have is refused. */
static void contexts_on_the_cpu_need_tasks(void)
{
	struct doca_comch_msgq *msgq = msgq_open(NULL, MSGQ_TO_DPA);
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	struct doca_pe *pe;
	uint32_t len;
	CHECK_OK(soft_doca_pe_create(&pe));
	CHECK_OK(soft_doca_comch_msgq_consumer_create(msgq, &consumer));
	CHECK_OK(soft_doca_comch_msgq_producer_create(msgq, &producer));
	struct doca_ctx *receiver = soft_doca_comch_consumer_as_ctx(consumer);
	struct doca_ctx *sender = soft_doca_comch_producer_as_ctx(producer);
	CHECK_OK(soft_doca_pe_connect_ctx(pe, receiver));
	CHECK_OK(soft_doca_pe_connect_ctx(pe, sender));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(receiver));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(sender));
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_set_conf(consumer, no_recv, no_recv, 4));
	CHECK_OK(soft_doca_comch_producer_task_send_set_conf(producer, no_send, no_send, 4));
	CHECK_OK(soft_doca_ctx_start(receiver));
	CHECK_OK(soft_doca_ctx_start(sender));
	CHECK_OK(soft_doca_comch_consumer_get_imm_data_len(consumer, &len));
	CHECK(len == 32);
	CHECK_OK(soft_doca_ctx_stop(receiver));
	CHECK_OK(soft_doca_ctx_stop(sender));
	CHECK_OK(soft_doca_comch_consumer_destroy(consumer));
	CHECK_OK(soft_doca_comch_producer_destroy(producer));
	CHECK_OK(soft_doca_pe_destroy(pe));
	msgq_close(msgq);
}

/* A context on the DPA has neither an engine nor tasks. */
static void contexts_on_the_dpa_have_no_tasks(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct to_dpa to;
	struct from_dpa from;
	struct doca_comch_consumer_task_post_recv *receive;
	struct doca_comch_producer_task_send *send;
	to_dpa_open(&to, dpa, NULL, 4);
	from_dpa_open(&from, dpa, 4);
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY,
		     soft_doca_comch_consumer_task_post_recv_alloc_init(to.consumer, NULL, &receive));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_producer_task_send_alloc_init(from.producer, NULL, (uint8_t *)"x", 1, 1, &send));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_consumer_destroy(to.consumer));
	to_dpa_close(&to);
	from_dpa_close(&from);
	dpa_close(dpa);
}

/* The deliveries of a queue within the CPU, by the callbacks' user data. */
struct delivery {
	unsigned received, sent;
	uint8_t byte;
};

static void count_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
			   union doca_data ctx_data)
{
	struct delivery *delivery = ctx_data.ptr;
	(void)task_data;
	delivery->received++;
	delivery->byte = *soft_doca_comch_consumer_task_post_recv_get_imm_data(task);
	soft_doca_task_free(soft_doca_comch_consumer_task_post_recv_as_task(task));
}

static void count_sent(struct doca_comch_producer_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	struct delivery *delivery = ctx_data.ptr;
	(void)task_data;
	delivery->sent++;
	soft_doca_task_free(soft_doca_comch_producer_task_send_as_task(task));
}

/* Without a DPA both sides are on the CPU. */
static void both_sides_can_be_on_the_cpu(void)
{
	struct doca_comch_msgq *msgq = msgq_open(NULL, MSGQ_TO_DPA);
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	struct doca_comch_consumer_task_post_recv *receive;
	struct doca_comch_producer_task_send *send;
	struct delivery delivery = {0};
	struct doca_pe *pe;
	CHECK_OK(soft_doca_pe_create(&pe));
	CHECK_OK(soft_doca_comch_msgq_consumer_create(msgq, &consumer));
	CHECK_OK(soft_doca_comch_msgq_producer_create(msgq, &producer));
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_set_conf(consumer, count_received, no_recv, 4));
	CHECK_OK(soft_doca_comch_producer_task_send_set_conf(producer, count_sent, no_send, 4));
	struct doca_ctx *contexts[] = {soft_doca_comch_consumer_as_ctx(consumer),
				       soft_doca_comch_producer_as_ctx(producer)};
	for (int i = 0; i < 2; i++) {
		CHECK_OK(soft_doca_pe_connect_ctx(pe, contexts[i]));
		CHECK_OK(soft_doca_ctx_set_user_data(contexts[i], (union doca_data){.ptr = &delivery}));
		CHECK_OK(soft_doca_ctx_start(contexts[i]));
	}
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_alloc_init(consumer, NULL, &receive));
	CHECK_OK(soft_doca_task_submit(soft_doca_comch_consumer_task_post_recv_as_task(receive)));
	CHECK_OK(soft_doca_comch_producer_task_send_alloc_init(producer, NULL, (uint8_t *)"!", 1, 1, &send));
	CHECK_OK(soft_doca_task_submit(soft_doca_comch_producer_task_send_as_task(send)));
	msgq_settle(pe);
	CHECK(delivery.received == 1 && delivery.sent == 1 && delivery.byte == '!');
	for (int i = 0; i < 2; i++)
		CHECK_OK(soft_doca_ctx_stop(contexts[i]));
	CHECK_OK(soft_doca_comch_consumer_destroy(consumer));
	CHECK_OK(soft_doca_comch_producer_destroy(producer));
	CHECK_OK(soft_doca_pe_destroy(pe));
	msgq_close(msgq);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(null_is_invalid);
	RUN(a_queue_has_one_direction);
	RUN(settings_are_frozen_by_the_start);
	RUN(the_dpa_starts_first);
	RUN(ids_begin_with_one);
	RUN(the_other_side_stays_on_the_cpu);
	RUN(a_consumer_on_the_dpa_needs_its_settings);
	RUN(a_producer_on_the_dpa_needs_its_settings);
	RUN(completion_contexts_round_up);
	RUN(a_completion_context_has_a_size);
	RUN(a_completion_context_needs_its_thread);
	RUN(contexts_on_the_cpu_need_tasks);
	RUN(contexts_on_the_dpa_have_no_tasks);
	RUN(both_sides_can_be_on_the_cpu);
	fixture_close(&fixture);
	return 0;
}
