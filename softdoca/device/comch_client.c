/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "comch_connection.h"
#include "comch_endpoint.h"
#include "comch_send.h"
#include "comch_wire.h"
#include "ctx.h"
#include "dev.h"
#include "error.h"
#include "quirk.h"
#include "soft.h"

struct doca_comch_client {
	struct soft_endpoint endpoint; /* first */
	struct doca_comch_connection *connection;
	TAILQ_HEAD(, doca_comch_connection) past; /* released, but the program may still use them */
	char dev_pci[DOCA_DEVINFO_PCI_ADDR_SIZE]; /* the DPU device tried last; "": none yet */
	doca_error_t refusal;                     /* of the last server that answered, since start */
};

static void drop_connection(struct doca_comch_client *client)
{
	soft_connection_release(client->connection);
	client->connection = NULL;
}

/* A connection in its handshake needs no BYE. */
static void client_stopping(struct doca_ctx *ctx)
{
	struct doca_comch_client *client = (struct doca_comch_client *)ctx;
	if (client->connection != NULL && client->connection->state == SOFT_CONNECTION_GREETING)
		drop_connection(client);
	soft_endpoint_stopping(ctx);
}

static void client_idle(struct doca_ctx *ctx)
{
	struct doca_comch_client *client = (struct doca_comch_client *)ctx;
	client->connection = NULL;
	soft_endpoint_close(&client->endpoint);
}

/* False if no server answers at that address. */
static bool connect_server(struct doca_comch_client *client)
{
	struct soft_endpoint *endpoint = &client->endpoint;
	struct soft_comch_address address;
	struct soft_frame hello = soft_connection_greeting(endpoint, SOFT_FRAME_HELLO);
	soft_comch_address_make(&address, endpoint->ctx.dev->info->comch_key, client->dev_pci, endpoint->name);
	int fd = soft_comch_connect(&address);
	if (fd < 0)
		return false;
	client->connection = soft_connection_open(endpoint, fd);
	if (client->connection == NULL)
		return false;
	if (soft_frame_send(fd, &hello))
		return true;
	drop_connection(client);
	return false;
}

/* A host function may be served from several DPU devices; the first server that accepts the client is used. */
static bool connect_next_server(struct doca_comch_client *client)
{
	const struct soft_endpoint *endpoint = &client->endpoint;
	while (soft_comch_next_server(endpoint->ctx.dev->info->comch_key, endpoint->name, client->dev_pci)) {
		if (connect_server(client))
			return true;
	}
	if (client->dev_pci[0] == '\0')
		soft_detail("no server named \"%s\" serves this device", endpoint->name);
	return false;
}

static doca_error_t client_start(struct doca_ctx *ctx)
{
	struct doca_comch_client *client = (struct doca_comch_client *)ctx;
	doca_error_t result = soft_endpoint_open(&client->endpoint);
	if (result != DOCA_SUCCESS)
		return result;
	client->connection = NULL;
	client->dev_pci[0] = '\0';
	client->refusal = DOCA_SUCCESS;
	if (soft_has_quirk(SOFT_START_ABORTS) && !connect_next_server(client)) {
		soft_endpoint_close(&client->endpoint);
		return DOCA_ERROR_CONNECTION_ABORTED;
	}
	return DOCA_ERROR_IN_PROGRESS;
}

static bool needs_server(const struct doca_comch_client *client)
{
	return client->endpoint.ctx.state == DOCA_CTX_STATE_STARTING && client->connection == NULL;
}

static bool client_progress(struct doca_ctx *ctx)
{
	struct doca_comch_client *client = (struct doca_comch_client *)ctx;
	if (!needs_server(client))
		return soft_endpoint_progress(ctx);
	if (!connect_next_server(client))
		soft_ctx_fail(ctx);
	return true;
}

static uint64_t client_ready_at(const struct doca_ctx *ctx)
{
	return needs_server((const struct doca_comch_client *)ctx) ? 0 : soft_endpoint_ready_at(ctx);
}

static const struct soft_ctx_class client_class = {
	.name = "comch client",
	.is_comch = true,
	.start = client_start,
	.stopping = client_stopping,
	.stoppable = soft_endpoint_stoppable,
	.quiet = soft_endpoint_quiet,
	.idle = client_idle,
	.progress = client_progress,
	.ready_at = client_ready_at,
	.validate = soft_send_validate,
	.submit = soft_send_submit,
	.ended = soft_send_ended,
	.release = soft_send_release,
};

/* ---- the connection's events ---- */

/* Returns the client to the state before it connected; progress tries the next server. */
static void client_not_greeted(struct doca_comch_connection *connection)
{
	drop_connection((struct doca_comch_client *)connection->endpoint);
}

/* Returns SUCCESS if the server accepts the client and the client its limits, otherwise why not. */
static doca_error_t refusal_in(const struct soft_endpoint *endpoint, const struct soft_frame *frame)
{
	if (frame->type == SOFT_FRAME_REFUSE && frame->value != DOCA_SUCCESS)
		return (doca_error_t)frame->value;
	if (frame->type != SOFT_FRAME_WELCOME)
		return DOCA_ERROR_UNEXPECTED;
	return soft_connection_sizes_agree(endpoint, frame) ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

static void client_greeted(struct doca_comch_connection *connection, const struct soft_frame *frame)
{
	struct soft_endpoint *endpoint = connection->endpoint;
	doca_error_t refusal = refusal_in(endpoint, frame);
	if (refusal != DOCA_SUCCESS) {
		((struct doca_comch_client *)endpoint)->refusal = refusal;
		soft_detail("the server refused: %s", soft_doca_error_get_descr(refusal));
		client_not_greeted(connection);
		return;
	}
	soft_connection_established(connection, frame);
	soft_ctx_running(&endpoint->ctx);
}

static void client_lost(struct doca_comch_connection *connection)
{
	soft_ctx_fail(&connection->endpoint->ctx);
}

/* The program sees the end in the state of the context. */
static void client_gone(struct doca_comch_connection *connection)
{
	((struct doca_comch_client *)connection->endpoint)->connection = NULL;
}

/* Programs may use the connection until they destroy the client. */
static void client_released(struct doca_comch_connection *connection)
{
	TAILQ_INSERT_TAIL(&((struct doca_comch_client *)connection->endpoint)->past, connection, link);
}

static bool client_called(struct soft_endpoint *endpoint)
{
	(void)endpoint;
	return false;
}

static const struct soft_endpoint_role client_role = {
	.called = client_called,
	.greeted = client_greeted,
	.not_greeted = client_not_greeted,
	.lost = client_lost,
	.gone = client_gone,
	.released = client_released,
};

/* ---- functions of DOCA ---- */

doca_error_t soft_doca_comch_client_create(struct doca_dev *dev, const char *name,
					   struct doca_comch_client **comch_client)
{
	if (dev == NULL || name == NULL || comch_client == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (dev->info->side != SOFT_HOST)
		return DOCA_ERROR_INITIALIZATION;
	struct doca_comch_client *client = calloc(1, sizeof(*client));
	if (client == NULL)
		return DOCA_ERROR_NO_MEMORY;
	doca_error_t result = soft_endpoint_init(&client->endpoint, &client_class, &client_role, dev, name);
	if (result != DOCA_SUCCESS)
		goto free_client;
	TAILQ_INIT(&client->past);
	*comch_client = client;
	return DOCA_SUCCESS;

free_client:
	free(client);
	return result;
}

doca_error_t soft_doca_comch_client_destroy(struct doca_comch_client *comch_client)
{
	if (comch_client == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	doca_error_t result = soft_endpoint_fini(&comch_client->endpoint);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_comch_connection *connection;
	while ((connection = TAILQ_FIRST(&comch_client->past)) != NULL) {
		TAILQ_REMOVE(&comch_client->past, connection, link);
		soft_connection_free(connection);
	}
	free(comch_client);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_comch_client_get_connection(const struct doca_comch_client *comch_client,
						   struct doca_comch_connection **connection)
{
	if (comch_client == NULL || connection == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (comch_client->endpoint.ctx.state != DOCA_CTX_STATE_RUNNING)
		return DOCA_ERROR_BAD_STATE;
	*connection = comch_client->connection;
	return DOCA_SUCCESS;
}

doca_error_t soft_comch_client_refusal(const struct doca_comch_client *client)
{
	return client->refusal;
}

struct doca_comch_client *soft_doca_comch_client_get_client_ctx(const struct doca_comch_connection *connection)
{
	if (connection == NULL || connection->endpoint->role != &client_role)
		return NULL;
	return (struct doca_comch_client *)connection->endpoint;
}
