/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel as programs see it, and as hostile or dying peers meet it. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../soft_comch.h"
#include "stage.h"

#define NAME "dma copy server"
#define NUM_SENDS 64

/* One server or client with an engine of its own, and what its callbacks have seen. */
struct end {
	struct doca_pe *pe;
	struct doca_ctx *ctx;
	struct doca_comch_server *server; /* one of the two */
	struct doca_comch_client *client;
	struct doca_comch_connection *connection; /* the last one; NULL after its end */
	unsigned sent, failed, received, connects, disconnects;
	doca_error_t last_failure;
	uint32_t last_len;
	uint32_t next_number; /* what the next received message must begin with */
	bool saw_failed_start, failed_after_end;
	void (*on_received)(struct end *end, struct doca_comch_connection *connection);
	void (*on_sent)(struct end *end);
	void (*on_connected)(struct end *end, struct doca_comch_connection *connection);
};

static struct stage stage;

/* ---- callbacks ---- */

static struct end *end_of(const struct doca_comch_connection *connection)
{
	struct doca_comch_server *server = soft_doca_comch_server_get_server_ctx(connection);
	struct doca_comch_client *client = soft_doca_comch_client_get_client_ctx(connection);
	union doca_data data;
	CHECK((server == NULL) != (client == NULL));
	CHECK_OK(soft_doca_ctx_get_user_data(
		server != NULL ? soft_doca_comch_server_as_ctx(server) : soft_doca_comch_client_as_ctx(client), &data));
	return data.ptr;
}

static void on_sent(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	struct end *end = ctx_data.ptr;
	CHECK(task_data.u64 == 7);
	CHECK_OK(soft_doca_task_get_status(soft_doca_comch_task_send_as_task(task)));
	soft_doca_task_free(soft_doca_comch_task_send_as_task(task));
	end->sent++;
	if (end->on_sent != NULL)
		end->on_sent(end);
}

static void on_not_sent(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	struct end *end = ctx_data.ptr;
	CHECK(task_data.u64 == 7);
	end->last_failure = soft_doca_task_get_status(soft_doca_comch_task_send_as_task(task));
	end->failed_after_end |= end->disconnects > 0;
	soft_doca_task_free(soft_doca_comch_task_send_as_task(task));
	end->failed++;
}

static void on_received(struct doca_comch_event_msg_recv *event, uint8_t *bytes, uint32_t len,
			struct doca_comch_connection *connection)
{
	struct end *end = end_of(connection);
	uint32_t number;
	CHECK(event != NULL && len >= sizeof(number));
	memcpy(&number, bytes, sizeof(number));
	CHECK(number == end->next_number);
	for (uint32_t i = sizeof(number); i < len; i++)
		CHECK(bytes[i] == (uint8_t)(number + i));
	end->next_number++;
	end->received++;
	end->last_len = len;
	if (end->on_received != NULL)
		end->on_received(end, connection);
}

static void on_connect(struct doca_comch_event_connection_status_changed *event,
		       struct doca_comch_connection *connection, uint8_t successful)
{
	struct end *end = end_of(connection);
	CHECK(event != NULL && successful == 1);
	end->connects++;
	end->connection = connection;
	end->next_number = 0;
	if (end->on_connected != NULL)
		end->on_connected(end, connection);
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *connection, uint8_t successful)
{
	struct end *end = end_of(connection);
	CHECK(event != NULL && successful == 1);
	end->disconnects++;
	if (end->connection == connection)
		end->connection = NULL;
}

static void on_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *connection, uint32_t id)
{
	(void)event;
	(void)connection;
	(void)id;
	CHECK(false);
}

static void on_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states prev,
		     enum doca_ctx_states next)
{
	struct end *end = data.ptr;
	CHECK(ctx == end->ctx);
	end->saw_failed_start |= prev == DOCA_CTX_STATE_STARTING && next == DOCA_CTX_STATE_IDLE;
	if (end->client != NULL && next == DOCA_CTX_STATE_RUNNING)
		CHECK_OK(soft_doca_comch_client_get_connection(end->client, &end->connection));
	if (end->client != NULL && next == DOCA_CTX_STATE_IDLE)
		end->connection = NULL;
}

/* ---- ends ---- */

static void end_connect(struct end *end)
{
	CHECK_OK(soft_doca_pe_create(&end->pe));
	CHECK_OK(soft_doca_ctx_set_user_data(end->ctx, (union doca_data){.ptr = end}));
	CHECK_OK(soft_doca_ctx_set_state_changed_cb(end->ctx, on_state));
	CHECK_OK(soft_doca_pe_connect_ctx(end->pe, end->ctx));
}

static void server_open_as(struct end *end, struct doca_dev_rep *rep, const char *name)
{
	*end = (struct end){0};
	CHECK_OK(soft_doca_comch_server_create(stage.dpu, rep, name, &end->server));
	end->ctx = soft_doca_comch_server_as_ctx(end->server);
	CHECK_OK(soft_doca_comch_server_task_send_set_conf(end->server, on_sent, on_not_sent, NUM_SENDS));
	CHECK_OK(soft_doca_comch_server_event_msg_recv_register(end->server, on_received));
	CHECK_OK(soft_doca_comch_server_event_connection_status_changed_register(end->server, on_connect,
										 on_disconnect));
	end_connect(end);
}

static void server_open(struct end *end)
{
	server_open_as(end, stage.rep, NAME);
}

static void client_open_as(struct end *end, const char *name)
{
	*end = (struct end){0};
	CHECK_OK(soft_doca_comch_client_create(stage.host, name, &end->client));
	end->ctx = soft_doca_comch_client_as_ctx(end->client);
	CHECK_OK(soft_doca_comch_client_task_send_set_conf(end->client, on_sent, on_not_sent, NUM_SENDS));
	CHECK_OK(soft_doca_comch_client_event_msg_recv_register(end->client, on_received));
	end_connect(end);
}

static void client_open(struct end *end)
{
	client_open_as(end, NAME);
}

static enum doca_ctx_states state_of(const struct end *end)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(end->ctx, &state));
	return state;
}

/* All ends of this process are driven by this thread, so nothing is left to wait for when all have nothing to do. */
static void settle(struct end *ends[], size_t n)
{
	bool moved = true;
	while (moved) {
		moved = false;
		for (size_t i = 0; i < n; i++)
			moved |= soft_doca_pe_progress(ends[i]->pe);
	}
}

static void settle_one(struct end *end)
{
	settle(&end, 1);
}

static void settle_both(struct end *a, struct end *b)
{
	settle((struct end *[]){a, b}, 2);
}

static void end_destroy(struct end *end)
{
	if (end->server != NULL)
		CHECK_OK(soft_doca_comch_server_destroy(end->server));
	else
		CHECK_OK(soft_doca_comch_client_destroy(end->client));
	CHECK_OK(soft_doca_pe_destroy(end->pe));
}

static void end_close(struct end *end)
{
	if (state_of(end) != DOCA_CTX_STATE_IDLE)
		soft_doca_ctx_stop(end->ctx);
	settle_one(end);
	CHECK(state_of(end) == DOCA_CTX_STATE_IDLE);
	end_destroy(end);
}

static void close_both(struct end *client, struct end *server)
{
	end_close(client);
	end_close(server);
}

static void open_both(struct end *client, struct end *server)
{
	server_open(server);
	client_open(client);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client->ctx));
	settle_both(client, server);
	CHECK(state_of(client) == DOCA_CTX_STATE_RUNNING && server->connects == 1);
	CHECK(client->connection != NULL && server->connection != NULL);
}

static doca_error_t alloc_send(struct end *end, const void *msg, uint32_t len, struct doca_task **task)
{
	struct doca_comch_task_send *send;
	doca_error_t result =
		end->server != NULL
			? soft_doca_comch_server_task_send_alloc_init(end->server, end->connection, msg, len, &send)
			: soft_doca_comch_client_task_send_alloc_init(end->client, end->connection, msg, len, &send);
	if (result != DOCA_SUCCESS)
		return result;
	*task = soft_doca_comch_task_send_as_task(send);
	soft_doca_task_set_user_data(*task, (union doca_data){.u64 = 7});
	return DOCA_SUCCESS;
}

/* The message begins with its number, and the rest follows from that. Its memory dies as soon as it is submitted. */
static doca_error_t send_number(struct end *end, uint32_t number, uint32_t len)
{
	uint8_t msg[4080];
	struct doca_task *task;
	for (uint32_t i = 0; i < len; i++)
		msg[i] = (uint8_t)(number + i);
	memcpy(msg, &number, sizeof(number));
	doca_error_t result = alloc_send(end, msg, len, &task);
	if (result != DOCA_SUCCESS)
		return result;
	result = soft_doca_task_submit(task);
	if (result != DOCA_SUCCESS)
		soft_doca_task_free(task);
	memset(msg, 0xee, sizeof(msg));
	return result;
}

/* Sends until the socket takes no more and the pool is empty. Returns how many were submitted. */
static unsigned fill(struct end *end, uint32_t len)
{
	unsigned n = 0;
	for (;;) {
		doca_error_t result = send_number(end, n, len);
		if (result == DOCA_SUCCESS) {
			n++;
		} else {
			CHECK_RESULT(DOCA_ERROR_NO_MEMORY, result);
			if (!soft_doca_pe_progress(end->pe))
				return n;
		}
	}
}

/* ---- configuration ---- */

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

/* ---- peers that die ---- */

static bool is_running(const void *arg)
{
	return state_of(arg) == DOCA_CTX_STATE_RUNNING;
}

static bool is_idle(const void *arg)
{
	return state_of(arg) == DOCA_CTX_STATE_IDLE;
}

static bool has_client(const void *arg)
{
	return ((const struct end *)arg)->connects == 1;
}

static bool lost_client(const void *arg)
{
	return ((const struct end *)arg)->disconnects == 1;
}

static bool never(const void *arg)
{
	(void)arg;
	return false;
}

static void kill_and_reap(pid_t child)
{
	int status;
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* Sends two messages and receives nothing. */
static void be_a_client(void)
{
	struct end client;
	client_open(&client);
	soft_doca_ctx_start(client.ctx);
	stage_wait(client.pe, is_running, &client);
	CHECK_OK(send_number(&client, 0, 8));
	CHECK_OK(send_number(&client, 1, 8));
	while (client.sent < 2)
		soft_doca_pe_progress(client.pe);
	for (;;)
		pause();
}

static bool has_two(const void *arg)
{
	return ((const struct end *)arg)->received == 2;
}

static void client_killed(void)
{
	struct end server;
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	pid_t child = fork();
	if (child == 0)
		be_a_client();
	CHECK(child > 0);
	stage_wait(server.pe, has_client, &server);
	stage_wait(server.pe, has_two, &server);
	fill(&server, 4080);
	kill_and_reap(child);
	stage_wait(server.pe, lost_client, &server);
	CHECK(server.failed == NUM_SENDS && server.last_failure == DOCA_ERROR_CONNECTION_RESET);
	CHECK(!server.failed_after_end && state_of(&server) == DOCA_CTX_STATE_RUNNING);
	end_close(&server);
}

static void be_a_server(int ready)
{
	struct end server;
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK(write(ready, "r", 1) == 1);
	stage_wait(server.pe, has_client, &server);
	CHECK_OK(send_number(&server, 0, 8));
	while (server.sent == 0)
		soft_doca_pe_progress(server.pe);
	CHECK(write(ready, "c", 1) == 1);
	stage_wait(server.pe, never, NULL);
}

static pid_t fork_server(int *ready)
{
	char byte;
	int ends[2];
	CHECK(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0)
		be_a_server(ends[1]);
	CHECK(child > 0);
	close(ends[1]);
	CHECK(read(ends[0], &byte, 1) == 1);
	*ready = ends[0];
	return child;
}

/* What the server sent before it died arrives; its name can be taken over afterwards. */
static void server_killed(void)
{
	struct end client, server;
	int ready;
	char byte;
	pid_t child = fork_server(&ready);
	client_open(&client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	stage_wait(client.pe, is_running, &client);
	CHECK(read(ready, &byte, 1) == 1);
	kill(child, SIGSTOP);
	while (send_number(&client, 0, 4080) == DOCA_SUCCESS || soft_doca_pe_progress(client.pe))
		;
	kill_and_reap(child);
	stage_wait(client.pe, is_idle, &client);
	CHECK(client.received == 1 && client.failed == NUM_SENDS);
	CHECK(client.last_failure == DOCA_ERROR_CONNECTION_RESET);
	close(ready);

	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_one(&client);
	CHECK(client.saw_failed_start);
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	client.next_number = 0;
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_RUNNING);
	close_both(&client, &server);
}

/* ---- peers that misbehave ---- */

static int call_server(void)
{
	struct soft_comch_address address;
	soft_comch_address_make(&address, stage.host->info->pci_addr, stage.dpu->info->pci_addr, NAME);
	int fd = soft_comch_connect(&address);
	CHECK(fd >= 0);
	return fd;
}

static void write_packet(int fd, const void *bytes, size_t len)
{
	CHECK(send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static bool hung_up(int fd)
{
	char byte;
	ssize_t n;
	do
		n = recv(fd, &byte, 1, MSG_DONTWAIT);
	while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

struct packet {
	struct soft_frame frame;
	uint8_t bytes[5000];
};

/* Well-formed or not, none of these may come where the tests send them. */
static size_t bad_packet(unsigned kind, struct packet *packet)
{
	const size_t head = sizeof(packet->frame);
	memset(packet, 0x55, sizeof(*packet));
	packet->frame = soft_frame_make(SOFT_FRAME_MESSAGE, 4, 0);
	switch (kind) {
	case 0: /* too short to be a frame */
		return head - 1;
	case 1: /* shorter than it says */
		return head + 3;
	case 2: /* longer than it says */
		return head + 5;
	case 3: /* longer than any message */
		packet->frame.value = 4081;
		return head + 4081;
	case 4: /* says 4 GiB */
		packet->frame.value = UINT32_MAX;
		return head + 4;
	case 5: /* empty */
		packet->frame.value = 0;
		return head;
	case 6:
		packet->frame.magic++;
		return head + 4;
	case 7:
		packet->frame.version++;
		return head + 4;
	case 8: /* a type nobody knows */
		packet->frame = soft_frame_make((enum soft_frame_type)99, 0, 0);
		return head;
	case 9: /* from the wrong side */
		packet->frame = soft_frame_make(SOFT_FRAME_WELCOME, 4080, 0);
		return head;
	case 10: /* for the second time, when the connection is open; with no room for messages, before */
		packet->frame = soft_frame_make(SOFT_FRAME_HELLO, 0, 0);
		return head;
	case 11: /* longer than the receiver's whole buffer */
		packet->frame.value = sizeof(packet->bytes);
		return sizeof(*packet);
	default:
		return 0;
	}
}

static void bad_frames(bool after_hello)
{
	struct end server;
	struct packet packet;
	struct soft_frame hello = soft_frame_make(SOFT_FRAME_HELLO, 4080, 0);
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	unsigned kind = 0;
	for (size_t len = bad_packet(kind, &packet); len > 0; len = bad_packet(++kind, &packet)) {
		int fd = call_server();
		if (after_hello)
			write_packet(fd, &hello, sizeof(hello));
		settle_one(&server);
		write_packet(fd, &packet, len);
		settle_one(&server);
		CHECK(hung_up(fd));
		CHECK(server.received == 0 && server.connects == (after_hello ? kind + 1 : 0));
		CHECK(server.disconnects == server.connects);
		close(fd);
	}
	CHECK(kind == 12);
	end_close(&server);
}

static void bad_frames_instead_of_hello(void)
{
	bad_frames(false);
}

static void bad_frames_after_hello(void)
{
	bad_frames(true);
}

static void strangers_are_bounded(void)
{
	struct end client, server;
	int fds[40], open = 0;
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	for (int i = 0; i < 40; i++) {
		fds[i] = call_server();
		settle_one(&server);
	}
	for (int i = 0; i < 40; i++) {
		bool gone = hung_up(fds[i]);
		CHECK(gone == (i < 24));
		open += !gone;
	}
	CHECK(open == 16);
	client_open(&client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_RUNNING && server.connects == 1);
	close_both(&client, &server);
	for (int i = 0; i < 40; i++)
		close(fds[i]);
}

/* Answers the client's HELLO in the server's place. */
static void client_meets_bad_server(void)
{
	struct soft_comch_address address;
	struct packet packet;
	struct soft_frame welcome = soft_frame_make(SOFT_FRAME_WELCOME, 4080, 0);
	int listener;
	soft_comch_address_make(&address, stage.host->info->pci_addr, stage.dpu->info->pci_addr, NAME);
	CHECK_OK(soft_comch_listen(&address, &listener));
	unsigned kind = 0;
	for (size_t len = bad_packet(kind, &packet); len > 0; len = bad_packet(++kind, &packet)) {
		for (int welcomed = 0; welcomed < 2; welcomed++) {
			struct end client;
			if (kind == 9 && !welcomed)
				continue;
			client_open(&client);
			CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
			settle_one(&client);
			int fd = soft_comch_accept(listener);
			CHECK(fd >= 0);
			if (welcomed)
				write_packet(fd, &welcome, sizeof(welcome));
			write_packet(fd, &packet, len);
			settle_one(&client);
			CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && client.received == 0);
			CHECK(client.saw_failed_start == !welcomed);
			close(fd);
			end_close(&client);
		}
	}
	soft_comch_unlisten(&address, listener);
}

/* ---- threads ---- */

#define ROUNDS 300

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
	RUN(armed_only);
	RUN(a_stopping_client_flushes);
	RUN(a_deaf_peer_cannot_hold_up_a_stop);
	RUN(server_disconnects_one);
	RUN(calls_inside_callbacks);
	RUN(client_killed);
	RUN(server_killed);
	RUN(bad_frames_instead_of_hello);
	RUN(bad_frames_after_hello);
	RUN(strangers_are_bounded);
	RUN(client_meets_bad_server);
	RUN(a_thread_per_engine);
	stage_close(&stage);
	stage_open(&stage, "max_clients=2");
	RUN(too_many_clients);
	stage_close(&stage);
	return 0;
}
