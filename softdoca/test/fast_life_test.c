/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers and producers from creation to a start: capabilities, configuration, memory maps, ids. */
#include <sys/eventfd.h>

#include "../device/comch_connection.h"
#include "../device/consumer.h"
#include "../device/dev.h"
#include "../device/fast.h"
#include "../device/mmap.h"
#include "fast_pair.h"

static void capabilities(void)
{
	uint32_t value;
	const struct doca_devinfo *host = fixture.host->info, *dpu = fixture.dpu->info;
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
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_consumer_set_imm_data_len(pair.consumer.consumer, 129));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_set_imm_data_len(pair.consumer.consumer, 8));
	CHECK_OK(soft_doca_comch_consumer_get_imm_data_len(pair.consumer.consumer, &len));
	CHECK(len == FAST_IMM);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_consumer_task_post_recv_set_conf(pair.consumer.consumer, NULL, NULL, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_producer_task_send_set_conf(pair.producer.producer, NULL, NULL, 1));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_consumer_destroy(pair.consumer.consumer));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_producer_destroy(pair.producer.producer));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_stop(pair.consumer.mmap));
	/* Another device than the connection's. */
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_consumer_create(pair.client.connection, pair.producer.mmap, &consumer));
	pair_close();
}

/* The guide lists them as mandatory for both. Programs on hardware leave them out for the client. */
static void consumer_events_come_first(void)
{
	struct end *client = &pair.client, *server = &pair.server;
	*server = (struct end){0};
	CHECK_OK(soft_doca_comch_server_create(fixture.dpu, fixture.rep, NAME, &server->server));
	server->ctx = soft_doca_comch_server_as_ctx(server->server);
	CHECK_OK(soft_doca_comch_server_task_send_set_conf(server->server, on_sent, on_not_sent, NUM_SENDS));
	CHECK_OK(soft_doca_comch_server_event_msg_recv_register(server->server, on_received));
	CHECK_OK(soft_doca_comch_server_event_connection_status_changed_register(server->server, on_connect,
										 on_disconnect));
	end_connect(server);
	*client = (struct end){0};
	CHECK_OK(soft_doca_comch_client_create(fixture.host, NAME, &client->client));
	client->ctx = soft_doca_comch_client_as_ctx(client->client);
	CHECK_OK(soft_doca_comch_client_task_send_set_conf(client->client, on_sent, on_not_sent, NUM_SENDS));
	CHECK_OK(soft_doca_comch_client_event_msg_recv_register(client->client, on_received));
	end_connect(client);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client->ctx));
	settle_both(client, server);
	consumer_open(&pair.consumer, server);
	producer_open(&pair.producer, server);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(pair.consumer.ctx));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(pair.producer.ctx));
	CHECK(strstr(soft_last_detail(), "server_event_consumer_register") != NULL);
	fast_close(&pair.consumer);
	fast_close(&pair.producer);
	consumer_open(&pair.consumer, client);
	producer_open(&pair.producer, client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(pair.consumer.ctx));
	CHECK_OK(soft_doca_ctx_start(pair.producer.ctx));
	settle_fast(client, server, &pair.consumer, &pair.producer);
	CHECK(fast_state(&pair.consumer) == DOCA_CTX_STATE_RUNNING);
	fast_close(&pair.consumer);
	fast_close(&pair.producer);
	close_both(client, server);
}

static void permission_is_needed(void)
{
	struct doca_comch_consumer *consumer;
	struct doca_mmap *mmap;
	static uint8_t memory[4096];
	open_both(&pair.client, &pair.server);
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_OK(soft_doca_mmap_set_memrange(mmap, memory, sizeof(memory)));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, fixture.host));
	CHECK_OK(soft_doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_PCI_READ_ONLY));
	CHECK_OK(soft_doca_mmap_start(mmap));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_consumer_create(pair.client.connection, mmap, &consumer));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	close_both(&pair.client, &pair.server);
}

/* It cannot be destroyed while a consumer uses it, and its state is checked when the consumer starts. */
static void the_map_stays(void)
{
	struct fast_end *consumer = &pair.consumer;
	open_both(&pair.client, &pair.server);
	consumer_open(consumer, &pair.client);
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
	close_both(&pair.client, &pair.server);
}

/* Both engines must progress, and the peer is notified last. */
static void a_consumer_starts_step_by_step(void)
{
	struct end *client = &pair.client, *server = &pair.server;
	struct fast_end *consumer = &pair.consumer;
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
	open_both(&pair.client, &pair.server);
	consumer_open(&pair.consumer, &pair.client);
	CHECK_OK(soft_doca_pe_request_notification(pair.client.pe));
	CHECK(!fixture_readable(pair.client.pe, 0));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(pair.consumer.ctx));
	CHECK(fixture_readable(pair.client.pe, 0));
	CHECK_OK(soft_doca_pe_request_notification(pair.consumer.pe));
	CHECK(!fixture_readable(pair.consumer.pe, 0));
	settle_one(&pair.client);
	CHECK(fixture_readable(pair.consumer.pe, 0) && !fixture_readable(pair.client.pe, 0));
	settle_fast(&pair.client, &pair.server, &pair.consumer, NULL);
	CHECK(!fixture_readable(pair.consumer.pe, 0));
	fast_close(&pair.consumer);
	close_both(&pair.client, &pair.server);
}

/* A progress between the flag and the write of a wakeup does not leave the eventfd readable. */
static void a_wakeup_cleared_between_its_two_steps(void)
{
	pair_open();
	struct soft_member *member = TAILQ_FIRST(&pair.client.connection->fast->members);
	atomic_store(&member->woken, true);
	CHECK(!soft_doca_pe_progress(pair.consumer.pe));
	CHECK(eventfd_write(member->wakeup, 1) == 0);
	CHECK(!soft_doca_pe_progress(pair.consumer.pe));
	CHECK_OK(soft_doca_pe_request_notification(pair.consumer.pe));
	CHECK(!fixture_readable(pair.consumer.pe, 0));
	pair_close();
}

static void stopped_while_starting(void)
{
	open_both(&pair.client, &pair.server);
	consumer_open(&pair.consumer, &pair.client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(pair.consumer.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(pair.consumer.ctx));
	settle_fast(&pair.client, &pair.server, &pair.consumer, NULL);
	CHECK(fast_state(&pair.consumer) == DOCA_CTX_STATE_IDLE && pair.server.new_consumers == 0);
	fast_close(&pair.consumer);
	close_both(&pair.client, &pair.server);
}

static void ids_are_unique(void)
{
	struct fast_end ends[4];
	struct end *sides[] = {&pair.client, &pair.server, &pair.client, &pair.server};
	open_both(&pair.client, &pair.server);
	for (size_t i = 0; i < 4; i++) {
		consumer_open(&ends[i], sides[i]);
		for (size_t j = 0; j < i; j++)
			CHECK(consumer_id(&ends[i]) != consumer_id(&ends[j]));
	}
	for (size_t i = 0; i < 4; i++)
		fast_close(&ends[i]);
	close_both(&pair.client, &pair.server);
}

static void there_is_an_end_of_consumers(void)
{
	struct doca_comch_consumer *consumers[64], *one_more;
	open_both(&pair.client, &pair.server);
	consumer_open(&pair.consumer, &pair.client);
	for (size_t i = 1; i < 64; i++)
		CHECK_OK(soft_doca_comch_consumer_create(pair.client.connection, pair.consumer.mmap, &consumers[i]));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY,
		     soft_doca_comch_consumer_create(pair.client.connection, pair.consumer.mmap, &one_more));
	for (size_t i = 1; i < 64; i++)
		CHECK_OK(soft_doca_comch_consumer_destroy(consumers[i]));
	fast_close(&pair.consumer);
	close_both(&pair.client, &pair.server);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(capabilities);
	RUN(nothing_is_null);
	RUN(configuration_is_checked);
	RUN(consumer_events_come_first);
	RUN(permission_is_needed);
	RUN(the_map_stays);
	RUN(a_consumer_starts_step_by_step);
	RUN(the_handle_tells_of_the_start);
	RUN(a_wakeup_cleared_between_its_two_steps);
	RUN(stopped_while_starting);
	RUN(ids_are_unique);
	RUN(there_is_an_end_of_consumers);
	fixture_close(&fixture);
	return 0;
}
