/* SPDX-License-Identifier: Apache-2.0 */
/* Orderly ends of a connection, by either side and from any callback. */
#include "comch_end.h"

static void a_stopping_client_flushes(void)
{
	struct end client, server;
	open_both(&client, &server);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_OK(send_number(&client, i, 8));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(client.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(client.ctx));
	settle_one(&client);
	CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && client.sent == 3);
	settle_one(&server);
	CHECK(server.received == 3 && server.disconnects == 1 && state_of(&server) == DOCA_CTX_STATE_RUNNING);
	close_both(&client, &server);
}

static void a_peer_that_does_not_receive_cannot_delay_a_stop(void)
{
	struct end client, server;
	open_both(&client, &server);
	unsigned n = fill(&client, 4080);
	soft_doca_ctx_stop(client.ctx);
	settle_one(&client);
	CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE);
	CHECK(client.failed == NUM_SENDS && client.last_failure == DOCA_ERROR_CONNECTION_ABORTED);
	settle_one(&server);
	CHECK(server.received == n - NUM_SENDS && server.disconnects == 1);
	close_both(&client, &server);
}

/* Messages that arrived before the end are delivered before it, even if the peer left without reading ours. */
static void a_peer_that_leaves_with_unread_messages(void)
{
	struct end client, server;
	open_both(&client, &server);
	CHECK_OK(send_number(&server, 0, 8));
	settle_one(&server);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_OK(send_number(&client, i, 8));
	soft_doca_ctx_stop(client.ctx);
	while (state_of(&client) != DOCA_CTX_STATE_IDLE)
		CHECK(soft_doca_pe_progress(client.pe) == 1);
	CHECK_OK(send_number(&server, 1, 8));
	settle_one(&server);
	CHECK(server.received == 3 && server.disconnects == 1 && server.failed == 1 && !server.failed_after_end);
	CHECK(server.last_failure == DOCA_ERROR_CONNECTION_ABORTED);
	close_both(&client, &server);
}

static void a_stopping_server_refuses(void)
{
	struct end client, server, successor;
	struct doca_task *kept;
	open_both(&client, &server);
	CHECK_OK(alloc_send(&server, "x", 1, &kept));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(server.ctx));
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && state_of(&server) == DOCA_CTX_STATE_STOPPING);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_both(&client, &server);
	CHECK(client.saw_failed_start && server.connects == 1);
	server_open(&successor);
	CHECK_RESULT(DOCA_ERROR_ALREADY_EXIST, soft_doca_ctx_start(successor.ctx));
	soft_doca_task_free(kept);
	settle_one(&server);
	CHECK(state_of(&server) == DOCA_CTX_STATE_IDLE);
	CHECK_OK(soft_doca_ctx_start(successor.ctx));
	end_close(&successor);
	close_both(&client, &server);
}

static void server_disconnects_one(void)
{
	struct end client, server;
	struct doca_comch_task_send *kept;
	open_both(&client, &server);
	struct doca_comch_connection *connection = server.connection;
	CHECK_OK(soft_doca_comch_server_task_send_alloc_init(server.server, connection, "x", 1, &kept));
	CHECK_OK(send_number(&server, 0, 8));
	CHECK_OK(soft_doca_comch_server_disconnect(server.server, connection));
	CHECK_OK(soft_doca_comch_server_disconnect(server.server, connection));
	CHECK_RESULT(DOCA_ERROR_CONNECTION_ABORTED, soft_doca_comch_connection_update_info(connection));
	settle_one(&server);
	CHECK(server.sent == 1 && server.disconnects == 0);
	CHECK_RESULT(DOCA_ERROR_CONNECTION_ABORTED, soft_doca_task_submit(soft_doca_comch_task_send_as_task(kept)));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_try_submit(soft_doca_comch_task_send_as_task(kept)));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_disconnect(server.server, connection));
	soft_doca_task_free(soft_doca_comch_task_send_as_task(kept));
	settle_one(&client);
	CHECK(client.received == 1 && state_of(&client) == DOCA_CTX_STATE_IDLE && !client.saw_failed_start);
	CHECK(state_of(&server) == DOCA_CTX_STATE_RUNNING);
	close_both(&client, &server);
}

/* The last task is freed inside the disconnect callback, and the connection still exists after it. */
static void free_kept_task(struct end *end, struct doca_comch_connection *connection)
{
	soft_doca_task_free(end->kept);
	CHECK(soft_doca_comch_connection_get_user_data(connection).u64 == 42);
}

static void tasks_freed_inside_the_disconnect_callback(void)
{
	struct end client, server;
	open_both(&client, &server);
	CHECK_OK(soft_doca_comch_connection_set_user_data(server.connection, (union doca_data){.u64 = 42}));
	CHECK_OK(alloc_send(&server, "x", 1, &server.kept));
	server.on_disconnected = free_kept_task;
	end_close(&client);
	settle_one(&server);
	CHECK(server.disconnects == 1);
	end_close(&server);
}

static void stop_on_receive(struct end *end, struct doca_comch_connection *connection)
{
	(void)connection;
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(end->ctx));
}

static void stop_on_sent(struct end *end)
{
	soft_doca_ctx_stop(end->ctx);
}

static void reject(struct end *end, struct doca_comch_connection *connection)
{
	CHECK_OK(soft_doca_comch_server_disconnect(end->server, connection));
}

static void calls_inside_callbacks(void)
{
	struct end client, server;
	open_both(&client, &server);
	server.on_received = answer;
	client.on_received = stop_on_receive;
	CHECK_OK(send_number(&client, 0, 16));
	settle_both(&client, &server);
	CHECK(client.received == 1 && state_of(&client) == DOCA_CTX_STATE_IDLE && server.disconnects == 1);

	client.on_sent = stop_on_sent;
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_both(&client, &server);
	CHECK_OK(send_number(&client, 0, 16));
	CHECK_OK(send_number(&client, 1, 16));
	settle_both(&client, &server);
	CHECK(client.sent == 3 && state_of(&client) == DOCA_CTX_STATE_IDLE && server.disconnects == 2);

	server.on_connected = reject;
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && server.disconnects == 2 && server.connects == 3);
	close_both(&client, &server);
}

/*
 * Like programs for one client at a time: a second client is rejected in the connect event, and the disconnect event
 * clears the only pointer.
 */
static struct doca_comch_connection *only;

static void keep_the_first(struct end *end, struct doca_comch_connection *connection)
{
	if (only == NULL)
		only = connection;
	else
		CHECK_OK(soft_doca_comch_server_disconnect(end->server, connection));
}

static void drop_connection(struct end *end, struct doca_comch_connection *connection)
{
	(void)end;
	(void)connection;
	only = NULL;
}

static void a_second_client_is_rejected(void)
{
	struct end first, second, server;
	server_open(&server);
	client_open(&first);
	client_open(&second);
	server.on_connected = keep_the_first;
	server.on_disconnected = drop_connection;
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(first.ctx));
	settle_both(&first, &server);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(second.ctx));
	settle_both(&second, &server);
	CHECK(state_of(&second) == DOCA_CTX_STATE_IDLE && server.connects == 2);
	CHECK(only != NULL);
	server.connection = only;
	CHECK_OK(send_number(&server, 0, 16));
	settle_both(&first, &server);
	CHECK(first.received == 1);
	end_close(&first);
	settle_one(&server);
	CHECK(only == NULL && server.disconnects == 1);
	end_close(&second);
	end_close(&server);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(a_stopping_client_flushes);
	RUN(a_peer_that_does_not_receive_cannot_delay_a_stop);
	RUN(a_peer_that_leaves_with_unread_messages);
	RUN(a_stopping_server_refuses);
	RUN(server_disconnects_one);
	RUN(tasks_freed_inside_the_disconnect_callback);
	RUN(calls_inside_callbacks);
	RUN(a_second_client_is_rejected);
	fixture_close(&fixture);
	return 0;
}
