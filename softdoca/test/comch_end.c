/* SPDX-License-Identifier: Apache-2.0 */
#include "comch_end.h"

struct fixture fixture;

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

void on_sent(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	struct end *end = ctx_data.ptr;
	CHECK(task_data.u64 == 7);
	CHECK_OK(soft_doca_task_get_status(soft_doca_comch_task_send_as_task(task)));
	soft_doca_task_free(soft_doca_comch_task_send_as_task(task));
	end->sent++;
	if (end->on_sent != NULL)
		end->on_sent(end);
}

void on_not_sent(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	struct end *end = ctx_data.ptr;
	CHECK(task_data.u64 == 7);
	end->last_failure = soft_doca_task_get_status(soft_doca_comch_task_send_as_task(task));
	end->failed_after_end |= end->disconnects > 0;
	soft_doca_task_free(soft_doca_comch_task_send_as_task(task));
	end->failed++;
	if (end->on_not_sent != NULL)
		end->on_not_sent(end);
}

void on_received(struct doca_comch_event_msg_recv *event, uint8_t *bytes, uint32_t len,
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

void on_connect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *connection,
		uint8_t successful)
{
	struct end *end = end_of(connection);
	CHECK(event != NULL && (successful == 1 || end->events_fail));
	if (!successful) {
		end->failed_connects++;
		CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_disconnect(end->server, connection));
		return;
	}
	end->connects++;
	end->connection = connection;
	end->next_number = 0;
	if (end->on_connected != NULL)
		end->on_connected(end, connection);
}

void on_disconnect(struct doca_comch_event_connection_status_changed *event, struct doca_comch_connection *connection,
		   uint8_t successful)
{
	struct end *end = end_of(connection);
	CHECK(event != NULL && (successful == 1 || end->events_fail));
	end->failed_disconnects += !successful;
	end->disconnects++;
	if (end->connection == connection)
		end->connection = NULL;
	if (end->on_disconnected != NULL)
		end->on_disconnected(end, connection);
}

static void on_new_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *connection,
			    uint32_t id)
{
	struct end *end = end_of(connection);
	CHECK(event != NULL && id != 0 && id != 0xffff && end->disconnects == 0);
	end->new_consumers++;
	end->consumer_id = id;
}

static void on_expired_consumer(struct doca_comch_event_consumer *event, struct doca_comch_connection *connection,
				uint32_t id)
{
	struct end *end = end_of(connection);
	CHECK(event != NULL && id != 0 && end->disconnects == 0);
	end->expired_consumers++;
	end->consumer_id = id;
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

void end_connect(struct end *end)
{
	CHECK_OK(soft_doca_pe_create(&end->pe));
	CHECK_OK(soft_doca_ctx_set_user_data(end->ctx, (union doca_data){.ptr = end}));
	CHECK_OK(soft_doca_ctx_set_state_changed_cb(end->ctx, on_state));
	CHECK_OK(soft_doca_pe_connect_ctx(end->pe, end->ctx));
}

void server_open_as(struct end *end, struct doca_dev_rep *rep, const char *name)
{
	*end = (struct end){0};
	CHECK_OK(soft_doca_comch_server_create(fixture.dpu, rep, name, &end->server));
	end->ctx = soft_doca_comch_server_as_ctx(end->server);
	CHECK_OK(soft_doca_comch_server_task_send_set_conf(end->server, on_sent, on_not_sent, NUM_SENDS));
	CHECK_OK(soft_doca_comch_server_event_msg_recv_register(end->server, on_received));
	CHECK_OK(soft_doca_comch_server_event_connection_status_changed_register(end->server, on_connect,
										 on_disconnect));
	CHECK_OK(soft_doca_comch_server_event_consumer_register(end->server, on_new_consumer, on_expired_consumer));
	end_connect(end);
}

void server_open(struct end *end)
{
	server_open_as(end, fixture.rep, NAME);
}

void client_open_as(struct end *end, const char *name)
{
	*end = (struct end){0};
	CHECK_OK(soft_doca_comch_client_create(fixture.host, name, &end->client));
	end->ctx = soft_doca_comch_client_as_ctx(end->client);
	CHECK_OK(soft_doca_comch_client_task_send_set_conf(end->client, on_sent, on_not_sent, NUM_SENDS));
	CHECK_OK(soft_doca_comch_client_event_msg_recv_register(end->client, on_received));
	CHECK_OK(soft_doca_comch_client_event_consumer_register(end->client, on_new_consumer, on_expired_consumer));
	end_connect(end);
}

void client_open(struct end *end)
{
	client_open_as(end, NAME);
}

enum doca_ctx_states state_of(const struct end *end)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(end->ctx, &state));
	return state;
}

void settle(struct end *ends[], size_t n)
{
	bool moved = true;
	while (moved) {
		moved = false;
		for (size_t i = 0; i < n; i++)
			moved |= soft_doca_pe_progress(ends[i]->pe);
	}
}

void settle_one(struct end *end)
{
	settle(&end, 1);
}

void settle_both(struct end *a, struct end *b)
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

void end_close(struct end *end)
{
	if (state_of(end) != DOCA_CTX_STATE_IDLE)
		soft_doca_ctx_stop(end->ctx);
	settle_one(end);
	CHECK(state_of(end) == DOCA_CTX_STATE_IDLE);
	end_destroy(end);
}

void close_both(struct end *client, struct end *server)
{
	end_close(client);
	end_close(server);
}

void open_both(struct end *client, struct end *server)
{
	server_open(server);
	client_open(client);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client->ctx));
	settle_both(client, server);
	CHECK(state_of(client) == DOCA_CTX_STATE_RUNNING && server->connects == 1);
	CHECK(client->connection != NULL && server->connection != NULL);
}

doca_error_t alloc_send(struct end *end, const void *msg, uint32_t len, struct doca_task **task)
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

doca_error_t send_number(struct end *end, uint32_t number, uint32_t len)
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

unsigned fill(struct end *end, uint32_t len)
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

void answer(struct end *end, struct doca_comch_connection *connection)
{
	end->connection = connection;
	CHECK_OK(send_number(end, end->next_number - 1, 16));
}
