/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel as programs see it: configuration, connections, messages, orderly ends. */
#include <pthread.h>

#include "comch_end.h"

/* ---- configuration ---- */

static void on_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *connection, uint32_t id)
{
	(void)event;
	(void)connection;
	(void)id;
	CHECK(false);
}

static void capabilities(void)
{
	uint32_t value;
	const struct doca_devinfo *host = stage.host->info, *dpu = stage.dpu->info;
	CHECK_OK(soft_doca_comch_cap_server_is_supported(dpu));
	CHECK_OK(soft_doca_comch_cap_client_is_supported(host));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_comch_cap_server_is_supported(host));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_comch_cap_client_is_supported(dpu));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_cap_client_is_supported(NULL));
	CHECK_OK(soft_doca_comch_cap_get_max_msg_size(host, &value));
	CHECK(value == 4080);
	CHECK_OK(soft_doca_comch_cap_get_max_name_len(dpu, &value));
	CHECK(value == 64);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_cap_get_max_clients(dpu, NULL));
}

static void creation_is_checked(void)
{
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	char name[65];
	memset(name, ' ', sizeof(name));
	name[64] = '\0';
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_create(stage.dpu, NULL, NAME, &server));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_create(stage.host, stage.rep, NAME, &server));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_create(stage.dpu, stage.rep, name, &server));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_create(stage.dpu, stage.rep, "", &server));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_client_create(NULL, NAME, &client));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_client_create(stage.host, name, &client));
	CHECK_RESULT(DOCA_ERROR_INITIALIZATION, soft_doca_comch_client_create(stage.dpu, NAME, &client));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_destroy(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_client_destroy(NULL));
	CHECK(soft_doca_comch_server_as_ctx(NULL) == NULL);
}

static void configuration_is_checked(void)
{
	struct end end;
	uint32_t size;
	struct doca_dev_rep *rep;
	server_open(&end);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_set_max_msg_size(end.server, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_set_max_msg_size(end.server, 4081));
	CHECK_OK(soft_doca_comch_server_set_max_msg_size(end.server, 4080));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_set_recv_queue_size(end.server, 8193));
	CHECK_OK(soft_doca_comch_server_set_recv_queue_size(end.server, 10));
	CHECK_OK(soft_doca_comch_server_get_recv_queue_size(end.server, &size));
	CHECK(size == 10);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_task_send_set_conf(end.server, on_sent, NULL, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_server_task_send_set_conf(end.server, on_sent, on_not_sent, 8193));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_event_msg_recv_register(end.server, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_server_event_connection_status_changed_register(end.server, on_connect, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE,
		     soft_doca_comch_server_event_consumer_register(end.server, on_consumer, NULL));
	CHECK_OK(soft_doca_comch_server_event_consumer_register(end.server, on_consumer, on_consumer));
	CHECK_OK(soft_doca_comch_server_get_device_rep(end.server, &rep));
	CHECK(rep == stage.rep);
	CHECK_OK(soft_doca_ctx_start(end.ctx));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_server_set_max_msg_size(end.server, 100));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_server_event_msg_recv_register(end.server, on_received));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE,
		     soft_doca_comch_server_event_consumer_register(end.server, on_consumer, on_consumer));
	CHECK_OK(soft_doca_comch_server_get_max_msg_size(end.server, &size));
	CHECK(size == 4080);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_server_destroy(end.server));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_rep_close(stage.rep));
	CHECK_OK(soft_doca_ctx_stop(end.ctx));
	CHECK_OK(soft_doca_ctx_start(end.ctx));
	end_close(&end);
}

static void start_without_mandatory_configuration(void)
{
	struct end end = {0};
	CHECK_OK(soft_doca_comch_server_create(stage.dpu, stage.rep, NAME, &end.server));
	end.ctx = soft_doca_comch_server_as_ctx(end.server);
	end_connect(&end);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(end.ctx));
	CHECK_OK(soft_doca_comch_server_event_msg_recv_register(end.server, on_received));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(end.ctx));
	CHECK_OK(soft_doca_comch_server_task_send_set_conf(end.server, on_sent, on_not_sent, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_start(end.ctx));
	CHECK_OK(
		soft_doca_comch_server_event_connection_status_changed_register(end.server, on_connect, on_disconnect));
	CHECK_OK(soft_doca_ctx_start(end.ctx));
	end_close(&end);
}

/* ---- connecting ---- */

static void client_before_server(void)
{
	struct end client, server;
	struct doca_comch_connection *connection;
	server_open(&server);
	client_open(&client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	CHECK(state_of(&client) == DOCA_CTX_STATE_STARTING);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_client_get_connection(client.client, &connection));
	settle_one(&client);
	CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && client.saw_failed_start);

	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_one(&client);
	CHECK(state_of(&client) == DOCA_CTX_STATE_STARTING);
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_RUNNING && server.connects == 1);
	close_both(&client, &server);
}

static void client_stopped_while_starting(void)
{
	struct end client, server;
	server_open(&server);
	client_open(&client);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_one(&client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(client.ctx));
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && !client.saw_failed_start);
	CHECK(server.connects == server.disconnects);
	close_both(&client, &server);
}

static void names_are_unique(void)
{
	struct end first, second, other_rep, other_name;
	server_open(&first);
	server_open(&second);
	server_open_as(&other_rep, stage.other_rep, NAME);
	server_open_as(&other_name, stage.rep, "../%2F.~ an other name, of 63 bytes, most of them to be escaped");
	CHECK_OK(soft_doca_ctx_start(first.ctx));
	CHECK_OK(soft_doca_ctx_start(other_rep.ctx));
	CHECK_OK(soft_doca_ctx_start(other_name.ctx));
	CHECK_RESULT(DOCA_ERROR_ALREADY_EXIST, soft_doca_ctx_start(second.ctx));
	settle_one(&first);
	CHECK(first.connects == 0);
	CHECK_OK(soft_doca_ctx_stop(first.ctx));
	CHECK_OK(soft_doca_ctx_start(second.ctx));
	end_close(&first);
	end_close(&second);
	end_close(&other_rep);
	end_close(&other_name);
}

static void long_names_connect(void)
{
	static const char name[] = "//////////////////////////////////////////////////////////////";
	struct end client, server;
	server_open_as(&server, stage.rep, name);
	client_open_as(&client, name);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_RUNNING);
	close_both(&client, &server);
}

static void message_sizes_must_agree(void)
{
	static const struct {
		uint32_t server, client; /* 0: not set */
		bool works;
		uint32_t limit;
	} cases[] = {{100, 100, true, 100}, {100, 200, false, 0}, {0, 200, true, 200}, {100, 0, true, 100}};
	uint8_t msg[256] = {0};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct end client, server;
		struct doca_task *task;
		server_open(&server);
		client_open(&client);
		if (cases[i].server != 0)
			CHECK_OK(soft_doca_comch_server_set_max_msg_size(server.server, cases[i].server));
		if (cases[i].client != 0)
			CHECK_OK(soft_doca_comch_client_set_max_msg_size(client.client, cases[i].client));
		CHECK_OK(soft_doca_ctx_start(server.ctx));
		CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
		settle_both(&client, &server);
		CHECK((state_of(&client) == DOCA_CTX_STATE_RUNNING) == cases[i].works);
		CHECK(server.connects == cases[i].works && client.saw_failed_start == !cases[i].works);
		CHECK_RESULT(cases[i].works ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE,
			     soft_comch_client_refusal(client.client));
		if (cases[i].works) {
			uint32_t limit = cases[i].limit;
			CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, alloc_send(&client, msg, limit + 1, &task));
			CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, alloc_send(&server, msg, limit + 1, &task));
			CHECK_OK(send_number(&client, 0, limit));
			CHECK_OK(send_number(&server, 0, limit));
			settle_both(&client, &server);
			CHECK(server.last_len == limit && client.last_len == limit);
		}
		close_both(&client, &server);
	}
}

static void several_clients(void)
{
	struct end clients[3], server;
	struct end *all[] = {&clients[0], &clients[1], &clients[2], &server};
	struct doca_comch_connection *connections[3];
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	for (int i = 0; i < 3; i++) {
		client_open(&clients[i]);
		CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(clients[i].ctx));
		settle(all + i, 1);
		settle_both(&clients[i], &server);
		CHECK(state_of(&clients[i]) == DOCA_CTX_STATE_RUNNING);
		connections[i] = server.connection;
	}
	for (int i = 0; i < 3; i++) {
		server.connection = connections[i];
		for (int j = 0; j <= i; j++)
			CHECK_OK(send_number(&server, (uint32_t)j, 16));
	}
	settle(all, 4);
	for (unsigned i = 0; i < 3; i++)
		CHECK(clients[i].received == i + 1);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(server.ctx));
	settle(all, 4);
	CHECK(state_of(&server) == DOCA_CTX_STATE_IDLE && server.disconnects == 3);
	for (int i = 0; i < 3; i++) {
		CHECK(state_of(&clients[i]) == DOCA_CTX_STATE_IDLE);
		end_close(&clients[i]);
	}
	end_close(&server);
}

static void too_many_clients(void)
{
	struct end clients[3], server;
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	for (int i = 0; i < 3; i++) {
		client_open(&clients[i]);
		CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(clients[i].ctx));
		settle_both(&clients[i], &server);
		CHECK((state_of(&clients[i]) == DOCA_CTX_STATE_RUNNING) == (i < 2));
	}
	CHECK(server.connects == 2 && clients[2].saw_failed_start);
	end_close(&clients[0]);
	settle_one(&server);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(clients[2].ctx));
	settle_both(&clients[2], &server);
	CHECK(state_of(&clients[2]) == DOCA_CTX_STATE_RUNNING);
	end_close(&clients[1]);
	close_both(&clients[2], &server);
}

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

static void starting_wakes_an_armed_engine(void)
{
	struct end client;
	client_open(&client);
	CHECK_OK(soft_doca_pe_request_notification(client.pe));
	CHECK(!stage_readable(client.pe, 0));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	CHECK(stage_readable(client.pe, 0));
	settle_one(&client);
	CHECK(client.saw_failed_start && !stage_readable(client.pe, 0));
	end_close(&client);
}

static void armed_only(void)
{
	struct end client, server;
	open_both(&client, &server);
	CHECK_OK(soft_doca_pe_request_notification(server.pe));
	CHECK(!stage_readable(server.pe, 0));
	CHECK_OK(soft_doca_pe_clear_notification(server.pe, 0));
	CHECK_OK(soft_doca_pe_request_notification(client.pe));
	CHECK_OK(send_number(&client, 0, 8));
	CHECK(stage_readable(client.pe, 0));
	settle_one(&client);
	CHECK(!stage_readable(client.pe, 0));
	CHECK(!stage_readable(server.pe, 0));
	CHECK_OK(soft_doca_pe_request_notification(server.pe));
	CHECK(stage_readable(server.pe, 0));
	settle_one(&server);
	CHECK(server.received == 1 && !stage_readable(server.pe, 0));
	unsigned n = fill(&server, 4080);
	CHECK(!stage_readable(server.pe, 0));
	while (client.received < n && soft_doca_pe_progress(client.pe))
		;
	CHECK(stage_readable(server.pe, 0));
	settle_both(&client, &server);
	CHECK(client.received == n && !stage_readable(server.pe, 0));
	close_both(&client, &server);
}

/* ---- the end of a connection ---- */

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
	while (server.received < 3)
		CHECK(soft_doca_pe_progress(server.pe) == 1 && server.disconnects == 0);
	settle_one(&server);
	CHECK(server.disconnects == 1 && state_of(&server) == DOCA_CTX_STATE_RUNNING);
	close_both(&client, &server);
}

static void a_deaf_peer_cannot_hold_up_a_stop(void)
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

/* What arrived before the end is delivered before it, although the leaver never read what was sent to it. */
static void a_leaver_with_unread_messages(void)
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
	CHECK(server.sent == 1 && server.disconnects == 1);
	CHECK_RESULT(DOCA_ERROR_CONNECTION_ABORTED, soft_doca_task_submit(soft_doca_comch_task_send_as_task(kept)));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_try_submit(soft_doca_comch_task_send_as_task(kept)));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_disconnect(server.server, connection));
	soft_doca_task_free(soft_doca_comch_task_send_as_task(kept));
	settle_one(&client);
	CHECK(client.received == 1 && state_of(&client) == DOCA_CTX_STATE_IDLE && !client.saw_failed_start);
	CHECK(state_of(&server) == DOCA_CTX_STATE_RUNNING);
	close_both(&client, &server);
}

/* The last task goes inside the disconnect callback, and the connection is still there after it. */
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

static void answer(struct end *end, struct doca_comch_connection *connection)
{
	end->connection = connection;
	CHECK_OK(send_number(end, end->next_number - 1, 16));
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
	CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && server.disconnects == 3 && server.connects == 3);
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

static void *play_server(void *arg)
{
	struct end *server = arg;
	stage_wait(server->pe, lost_client, server);
	CHECK(server->received == ROUNDS);
	return NULL;
}

static void *play_client(void *arg)
{
	struct end *client = arg;
	stage_wait(client->pe, is_running, client);
	CHECK_OK(send_number(client, 0, 16));
	while (client->received < ROUNDS - 1)
		soft_doca_pe_progress(client->pe);
	soft_doca_ctx_stop(client->ctx);
	stage_wait(client->pe, is_idle, client);
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
		server_open_as(&servers[i], stage.rep, name);
		client_open_as(&clients[i], name);
		servers[i].on_received = answer_until_done;
		clients[i].on_received = answer_back;
		CHECK_OK(soft_doca_ctx_start(servers[i].ctx));
		CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(clients[i].ctx));
		CHECK(pthread_create(&threads[2 * i], NULL, play_server, &servers[i]) == 0);
		CHECK(pthread_create(&threads[2 * i + 1], NULL, play_client, &clients[i]) == 0);
	}
	for (int i = 0; i < 6; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < 3; i++)
		close_both(&clients[i], &servers[i]);
}

int main(void)
{
	stage_open(&stage, NULL);
	RUN(capabilities);
	RUN(creation_is_checked);
	RUN(configuration_is_checked);
	RUN(start_without_mandatory_configuration);
	RUN(client_before_server);
	RUN(client_stopped_while_starting);
	RUN(names_are_unique);
	RUN(long_names_connect);
	RUN(message_sizes_must_agree);
	RUN(several_clients);
	RUN(sends_are_checked);
	RUN(back_pressure_both_ways);
	RUN(starting_wakes_an_armed_engine);
	RUN(armed_only);
	RUN(a_stopping_client_flushes);
	RUN(a_deaf_peer_cannot_hold_up_a_stop);
	RUN(a_leaver_with_unread_messages);
	RUN(a_stopping_server_refuses);
	RUN(server_disconnects_one);
	RUN(tasks_freed_inside_the_disconnect_callback);
	RUN(calls_inside_callbacks);
	RUN(a_thread_per_engine);
	stage_close(&stage);
	stage_open(&stage, "max_clients=2");
	RUN(too_many_clients);
	stage_close(&stage);
	return 0;
}
