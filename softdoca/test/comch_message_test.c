/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the control channel and their notification; each side on its own thread. */
#include <pthread.h>

#include "comch_end.h"

/* ---- messages ---- */

static void sends_are_checked(void)
{
	struct end client, server;
	struct doca_task *task;
	uint8_t msg[4081] = {0};
	struct doca_comch_connection *connection;
	client_open(&client);
	client.connection = (struct doca_comch_connection *)msg;
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, alloc_send(&client, msg, 1, &task));
	CHECK_OK(soft_doca_comch_client_destroy(client.client));
	CHECK_OK(soft_doca_pe_destroy(client.pe));

	open_both(&client, &server);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, alloc_send(&client, NULL, 1, &task));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, alloc_send(&client, msg, 0, &task));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, alloc_send(&client, msg, 4081, &task));
	connection = client.connection;
	client.connection = server.connection;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, alloc_send(&client, msg, 1, &task));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_disconnect(server.server, connection));
	client.connection = connection;
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_client_destroy(client.client));
	close_both(&client, &server);
}

/* Neither side receives until the other can send no more. */
static void back_pressure_both_ways(void)
{
	struct end client, server;
	uint64_t count;
	open_both(&client, &server);
	unsigned from_client = fill(&client, 1000);
	unsigned from_server = fill(&server, 4080);
	CHECK(from_client > NUM_SENDS && client.sent == from_client - NUM_SENDS && client.received == 0);
	for (unsigned more = 0; more < 3000; more++) {
		while (send_number(&client, from_client, 1000) == DOCA_ERROR_NO_MEMORY)
			settle_both(&client, &server);
		from_client++;
	}
	settle_both(&client, &server);
	CHECK(server.received == from_client && client.sent == from_client && client.failed == 0);
	CHECK(client.received == from_server && server.sent == from_server && server.failed == 0);
	CHECK_OK(soft_doca_comch_connection_get_counter(server.connection, DOCA_COMCH_COUNTER_RECV_BYTES, &count));
	CHECK(count == 0);
	CHECK_OK(soft_doca_comch_connection_update_info(server.connection));
	CHECK_OK(soft_doca_comch_connection_get_counter(server.connection, DOCA_COMCH_COUNTER_RECV_BYTES, &count));
	CHECK(count == from_client * 1000ULL);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_connection_get_counter(server.connection, (enum doca_comch_counter)5, &count));
	close_both(&client, &server);
}

/* Both running, with receive queues of that many messages. */
static void open_queues(struct end *client, struct end *server, uint32_t size)
{
	server_open(server);
	client_open(client);
	CHECK_OK(soft_doca_comch_server_set_recv_queue_size(server->server, size));
	CHECK_OK(soft_doca_comch_client_set_recv_queue_size(client->client, size));
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client->ctx));
	settle_both(client, server);
}

/* Messages that do not fit stay in flight without a wakeup, and are sent when the receiver has taken messages out. */
static void a_receive_queue_is_bounded(void)
{
	struct end client, server;
	open_queues(&client, &server, 4);
	for (uint32_t i = 0; i < NUM_SENDS; i++)
		CHECK_OK(send_number(&client, i, 16));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, send_number(&client, 0, 16));
	settle_one(&client);
	CHECK(client.sent == 4);
	CHECK_OK(soft_doca_pe_request_notification(client.pe));
	CHECK(!fixture_readable(client.pe, 0));
	while (server.received < NUM_SENDS) {
		unsigned before = server.received;
		CHECK(soft_doca_pe_progress(server.pe) && server.received - before <= 4);
		settle_one(&client);
		CHECK(client.sent - server.received <= 4);
	}
	settle_both(&client, &server);
	CHECK(client.sent == NUM_SENDS && client.failed == 0);
	close_both(&client, &server);
}

/* A stop does not wait for a full queue; messages not sent fail. */
static void a_full_queue_cannot_delay_a_stop(void)
{
	struct end client, server;
	open_queues(&client, &server, 4);
	for (uint32_t i = 0; i < 10; i++)
		CHECK_OK(send_number(&client, i, 16));
	soft_doca_ctx_stop(client.ctx);
	settle_one(&client);
	CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && client.sent == 4 && client.failed == 6);
	settle_one(&server);
	CHECK(server.received == 4 && server.disconnects == 1);
	close_both(&client, &server);
}

static void greet(struct end *end, struct doca_comch_connection *connection)
{
	end->connection = connection;
	CHECK_OK(send_number(end, 0, 16));
}

/* The first message is there already, but a program sees first that its context runs. */
static void a_start_comes_before_the_first_message(void)
{
	struct end client, server;
	server_open(&server);
	client_open(&client);
	server.on_connected = greet;
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	while (state_of(&client) != DOCA_CTX_STATE_RUNNING) {
		settle_one(&server);
		soft_doca_pe_progress(client.pe);
	}
	CHECK(server.connects == 1 && client.received == 0);
	settle_both(&client, &server);
	CHECK(client.received == 1);
	close_both(&client, &server);
}

static void small_queues_both_ways(void)
{
	for (uint32_t size = 1; size <= 5; size++) {
		struct end client, server;
		open_queues(&client, &server, size);
		for (uint32_t i = 0; i < NUM_SENDS; i++) {
			CHECK_OK(send_number(&client, i, 4080));
			CHECK_OK(send_number(&server, i, 4080));
		}
		settle_one(&client);
		settle_one(&server);
		settle_both(&client, &server);
		CHECK(client.sent == NUM_SENDS && server.sent == NUM_SENDS);
		CHECK(client.received == NUM_SENDS && server.received == NUM_SENDS);
		close_both(&client, &server);
	}
}

static void starting_wakes_an_armed_engine(void)
{
	struct end client;
	client_open(&client);
	CHECK_OK(soft_doca_pe_request_notification(client.pe));
	CHECK(!fixture_readable(client.pe, 0));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	CHECK(fixture_readable(client.pe, 0));
	settle_one(&client);
	CHECK(client.saw_failed_start && !fixture_readable(client.pe, 0));
	end_close(&client);
}

static void armed_only(void)
{
	struct end client, server;
	open_both(&client, &server);
	CHECK_OK(soft_doca_pe_request_notification(server.pe));
	CHECK(!fixture_readable(server.pe, 0));
	CHECK_OK(soft_doca_pe_clear_notification(server.pe, 0));
	CHECK_OK(soft_doca_pe_request_notification(client.pe));
	CHECK_OK(send_number(&client, 0, 8));
	CHECK(fixture_readable(client.pe, 0));
	settle_one(&client);
	CHECK(!fixture_readable(client.pe, 0));
	CHECK(!fixture_readable(server.pe, 0));
	CHECK_OK(soft_doca_pe_request_notification(server.pe));
	CHECK(fixture_readable(server.pe, 0));
	settle_one(&server);
	CHECK(server.received == 1 && !fixture_readable(server.pe, 0));
	unsigned n = fill(&server, 4080);
	CHECK(!fixture_readable(server.pe, 0));
	while (client.received < n && soft_doca_pe_progress(client.pe))
		;
	CHECK(fixture_readable(server.pe, 0));
	settle_both(&client, &server);
	CHECK(client.received == n && !fixture_readable(server.pe, 0));
	close_both(&client, &server);
}

/* ---- threads ---- */

#define ROUNDS 300

static bool is_running(const void *arg)
{
	return state_of(arg) == DOCA_CTX_STATE_RUNNING;
}

static bool is_idle(const void *arg)
{
	return state_of(arg) == DOCA_CTX_STATE_IDLE;
}

static bool lost_client(const void *arg)
{
	return ((const struct end *)arg)->disconnects == 1;
}

static void answer_until_done(struct end *end, struct doca_comch_connection *connection)
{
	if (end->received < ROUNDS)
		answer(end, connection);
}

static void *run_server(void *arg)
{
	struct end *server = arg;
	fixture_wait(server->pe, lost_client, server);
	CHECK(server->received == ROUNDS);
	return NULL;
}

static void *run_client(void *arg)
{
	struct end *client = arg;
	fixture_wait(client->pe, is_running, client);
	CHECK_OK(send_number(client, 0, 16));
	while (client->received < ROUNDS - 1)
		soft_doca_pe_progress(client->pe);
	soft_doca_ctx_stop(client->ctx);
	fixture_wait(client->pe, is_idle, client);
	return NULL;
}

static void answer_back(struct end *end, struct doca_comch_connection *connection)
{
	end->connection = connection;
	CHECK_OK(send_number(end, end->next_number, 16));
}

static void a_thread_per_engine(void)
{
	struct end clients[3], servers[3];
	pthread_t threads[6];
	for (int i = 0; i < 3; i++) {
		char name[] = "server 0";
		name[7] = (char)('0' + i);
		server_open_as(&servers[i], fixture.rep, name);
		client_open_as(&clients[i], name);
		servers[i].on_received = answer_until_done;
		clients[i].on_received = answer_back;
		CHECK_OK(soft_doca_comch_client_set_recv_queue_size(clients[i].client, (uint32_t)i + 1));
		CHECK_OK(soft_doca_ctx_start(servers[i].ctx));
		CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(clients[i].ctx));
		CHECK(pthread_create(&threads[2 * i], NULL, run_server, &servers[i]) == 0);
		CHECK(pthread_create(&threads[2 * i + 1], NULL, run_client, &clients[i]) == 0);
	}
	for (int i = 0; i < 6; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < 3; i++)
		close_both(&clients[i], &servers[i]);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(sends_are_checked);
	RUN(back_pressure_both_ways);
	RUN(a_receive_queue_is_bounded);
	RUN(a_full_queue_cannot_delay_a_stop);
	RUN(a_start_comes_before_the_first_message);
	RUN(small_queues_both_ways);
	RUN(starting_wakes_an_armed_engine);
	RUN(armed_only);
	RUN(a_thread_per_engine);
	fixture_close(&fixture);
	return 0;
}
