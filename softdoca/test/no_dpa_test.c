/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for the DPA are refused, write nothing, and leave the CPU's functions usable. */
#include "fast_end.h"

#define UNTOUCHED 77

static struct end client, server;
static struct fast_end consumer, producer;

/* Never read. */
static char foreign;
#define FOREIGN(type) ((struct type *)&foreign)

#define REFUSED(call) CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, call)
#define INVALID(call) CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, call)

static void there_are_no_completion_contexts(void)
{
	struct doca_comch_consumer_completion *context = FOREIGN(doca_comch_consumer_completion);
	REFUSED(soft_doca_comch_consumer_completion_create(&context));
	CHECK(context == FOREIGN(doca_comch_consumer_completion));
	REFUSED(soft_doca_comch_consumer_completion_set_dpa_thread(context, FOREIGN(doca_dpa_thread)));
	REFUSED(soft_doca_comch_consumer_completion_start(context));
	REFUSED(soft_doca_comch_consumer_completion_stop(context));
	REFUSED(soft_doca_comch_consumer_completion_destroy(context));
	INVALID(soft_doca_comch_consumer_completion_create(NULL));
	INVALID(soft_doca_comch_consumer_completion_set_dpa_thread(NULL, FOREIGN(doca_dpa_thread)));
	INVALID(soft_doca_comch_consumer_completion_set_dpa_thread(context, NULL));
	INVALID(soft_doca_comch_consumer_completion_start(NULL));
	INVALID(soft_doca_comch_consumer_completion_stop(NULL));
	INVALID(soft_doca_comch_consumer_completion_destroy(NULL));
}

static void completion_contexts_have_no_settings(void)
{
	struct doca_comch_consumer_completion *context = FOREIGN(doca_comch_consumer_completion);
	uint32_t n = UNTOUCHED;
	REFUSED(soft_doca_comch_consumer_completion_set_max_num_consumers(context, 1));
	REFUSED(soft_doca_comch_consumer_completion_get_max_num_consumers(context, &n));
	REFUSED(soft_doca_comch_consumer_completion_set_max_num_recv(context, 1));
	REFUSED(soft_doca_comch_consumer_completion_get_max_num_recv(context, &n));
	REFUSED(soft_doca_comch_consumer_completion_set_imm_data_len(context, 1));
	REFUSED(soft_doca_comch_consumer_completion_get_imm_data_len(context, &n));
	CHECK(n == UNTOUCHED);
	INVALID(soft_doca_comch_consumer_completion_set_max_num_consumers(NULL, 1));
	INVALID(soft_doca_comch_consumer_completion_get_max_num_consumers(NULL, &n));
	INVALID(soft_doca_comch_consumer_completion_get_max_num_consumers(context, NULL));
	INVALID(soft_doca_comch_consumer_completion_set_max_num_recv(NULL, 1));
	INVALID(soft_doca_comch_consumer_completion_get_max_num_recv(NULL, &n));
	INVALID(soft_doca_comch_consumer_completion_get_max_num_recv(context, NULL));
	INVALID(soft_doca_comch_consumer_completion_set_imm_data_len(NULL, 1));
	INVALID(soft_doca_comch_consumer_completion_get_imm_data_len(NULL, &n));
	INVALID(soft_doca_comch_consumer_completion_get_imm_data_len(context, NULL));
}

static void there_are_no_handles(void)
{
	doca_dpa_dev_comch_consumer_completion_t context = UNTOUCHED;
	doca_dpa_dev_comch_consumer_t of_consumer = UNTOUCHED;
	doca_dpa_dev_comch_producer_t of_producer = UNTOUCHED;
	struct doca_comch_consumer_completion *no_context = FOREIGN(doca_comch_consumer_completion);
	REFUSED(soft_doca_comch_consumer_completion_get_dpa_handle(no_context, &context));
	REFUSED(soft_doca_comch_consumer_get_dpa_handle(consumer.consumer, &of_consumer));
	REFUSED(soft_doca_comch_producer_get_dpa_handle(producer.producer, &of_producer));
	CHECK(context == UNTOUCHED && of_consumer == UNTOUCHED && of_producer == UNTOUCHED);
	INVALID(soft_doca_comch_consumer_completion_get_dpa_handle(NULL, &context));
	INVALID(soft_doca_comch_consumer_completion_get_dpa_handle(no_context, NULL));
	INVALID(soft_doca_comch_consumer_get_dpa_handle(NULL, &of_consumer));
	INVALID(soft_doca_comch_consumer_get_dpa_handle(consumer.consumer, NULL));
	INVALID(soft_doca_comch_producer_get_dpa_handle(NULL, &of_producer));
	INVALID(soft_doca_comch_producer_get_dpa_handle(producer.producer, NULL));
}

static void consumers_and_producers_stay_with_the_cpu(void)
{
	struct doca_comch_consumer_completion *context = FOREIGN(doca_comch_consumer_completion);
	REFUSED(soft_doca_comch_consumer_set_dev_max_num_recv(consumer.consumer, 16));
	REFUSED(soft_doca_comch_consumer_set_completion(consumer.consumer, context, 0));
	REFUSED(soft_doca_comch_producer_set_dev_max_num_send(producer.producer, 16));
	REFUSED(soft_doca_comch_producer_dpa_completion_attach(producer.producer, FOREIGN(doca_dpa_completion)));
	INVALID(soft_doca_comch_consumer_set_dev_max_num_recv(NULL, 16));
	INVALID(soft_doca_comch_consumer_set_completion(NULL, context, 0));
	INVALID(soft_doca_comch_consumer_set_completion(consumer.consumer, NULL, 0));
	INVALID(soft_doca_comch_producer_set_dev_max_num_send(NULL, 16));
	INVALID(soft_doca_comch_producer_dpa_completion_attach(NULL, FOREIGN(doca_dpa_completion)));
	INVALID(soft_doca_comch_producer_dpa_completion_attach(producer.producer, NULL));
}

/* A program that asks for the DPA, is refused and continues without it. */
static void the_cpu_still_copies(void)
{
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(consumer.ctx));
	CHECK_OK(soft_doca_ctx_start(producer.ctx));
	settle_fast(&client, &server, &consumer, &producer);
	CHECK_OK(post(&consumer, 0, 64));
	settle_fast(&client, &server, &consumer, &producer);
	CHECK_OK(produce(&producer, consumer_id(&consumer), 0, 64, NULL, 0));
	settle_fast(&client, &server, &consumer, &producer);
	CHECK(consumer.completed == 1 && producer.completed == 1);
	CHECK(memcmp(consumer.memory, producer.memory, 64) == 0);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	open_both(&client, &server);
	consumer_open(&consumer, &client);
	producer_open(&producer, &server);
	RUN(there_are_no_completion_contexts);
	RUN(completion_contexts_have_no_settings);
	RUN(there_are_no_handles);
	RUN(consumers_and_producers_stay_with_the_cpu);
	RUN(the_cpu_still_copies);
	fast_close(&consumer);
	fast_close(&producer);
	close_both(&client, &server);
	fixture_close(&fixture);
	return 0;
}
