/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of the control channel, and connecting. */
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
	const struct doca_devinfo *host = fixture.host->info, *dpu = fixture.dpu->info;
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
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_create(fixture.dpu, NULL, NAME, &server));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_create(fixture.host, fixture.rep, NAME, &server));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_create(fixture.dpu, fixture.rep, name, &server));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_create(fixture.dpu, fixture.rep, "", &server));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_client_create(NULL, NAME, &client));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_client_create(fixture.host, name, &client));
	CHECK_RESULT(DOCA_ERROR_INITIALIZATION, soft_doca_comch_client_create(fixture.dpu, NAME, &client));
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
	CHECK(rep == fixture.rep);
	CHECK_OK(soft_doca_ctx_start(end.ctx));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_server_set_max_msg_size(end.server, 100));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_server_event_msg_recv_register(end.server, on_received));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE,
		     soft_doca_comch_server_event_consumer_register(end.server, on_consumer, on_consumer));
	CHECK_OK(soft_doca_comch_server_get_max_msg_size(end.server, &size));
	CHECK(size == 4080);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_server_destroy(end.server));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_rep_close(fixture.rep));
	CHECK_OK(soft_doca_ctx_stop(end.ctx));
	CHECK_OK(soft_doca_ctx_start(end.ctx));
	end_close(&end);
}

static void start_without_mandatory_configuration(void)
{
	struct end end = {0};
	CHECK_OK(soft_doca_comch_server_create(fixture.dpu, fixture.rep, NAME, &end.server));
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
	server_open_as(&other_rep, fixture.other_rep, NAME);
	server_open_as(&other_name, fixture.rep, "../%2F.~ an other name, of 63 bytes, most of them to be escaped");
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
	server_open_as(&server, fixture.rep, name);
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

/* All but the server may be in other processes; one of them is stopped, with messages on their way to it. */
static void a_client_that_is_stopped_delays_no_other(void)
{
	enum { CLIENTS = 16, STOPPED = 0, TO_STOPPED = NUM_SENDS / 2 };
	struct end clients[CLIENTS], server;
	struct doca_comch_connection *connections[CLIENTS];
	server_open(&server);
	CHECK_OK(soft_doca_comch_server_set_recv_queue_size(server.server, 8));
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	for (int i = 0; i < CLIENTS; i++) {
		client_open(&clients[i]);
		CHECK_OK(soft_doca_comch_client_set_recv_queue_size(clients[i].client, 2));
		CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(clients[i].ctx));
		settle_both(&clients[i], &server);
		connections[i] = server.connection;
	}
	server.connection = connections[STOPPED];
	for (uint32_t i = 0; i < TO_STOPPED; i++)
		CHECK_OK(send_number(&server, i, 16));
	for (int i = STOPPED + 1; i < CLIENTS; i++) {
		server.connection = connections[i];
		for (uint32_t j = 0; j < 3; j++) {
			CHECK_OK(send_number(&server, j, 16));
			settle_both(&clients[i], &server);
		}
		CHECK(clients[i].received == 3);
	}
	unsigned ended = server.disconnects;
	for (int i = STOPPED + 1; i < CLIENTS; i += 2) { /* they leave and come again */
		soft_doca_ctx_stop(clients[i].ctx);
		settle_both(&clients[i], &server);
		CHECK(server.disconnects == ++ended);
		CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(clients[i].ctx));
		settle_both(&clients[i], &server);
		CHECK(state_of(&clients[i]) == DOCA_CTX_STATE_RUNNING);
	}
	CHECK(clients[STOPPED].received == 0);
	settle_both(&clients[STOPPED], &server);
	CHECK(clients[STOPPED].received == TO_STOPPED);
	for (int i = 0; i < CLIENTS; i++)
		end_close(&clients[i]);
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

int main(void)
{
	fixture_open(&fixture, NULL);
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
	RUN(a_client_that_is_stopped_delays_no_other);
	fixture_close(&fixture);
	fixture_open(&fixture, "max_clients=2");
	RUN(too_many_clients);
	fixture_close(&fixture);
	return 0;
}
