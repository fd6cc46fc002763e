/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as DOCA 2.7's guides show: a Comch server and its client, in one process, that exchange a message each. It
 * uses the names of 2.7, and includes nothing but DOCA's headers.
 */
#include <doca_argp.h>
#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_log.h>
#include <doca_mmap.h>
#include <doca_pe.h>

DOCA_LOG_REGISTER(GUIDE_2_7);

#define SERVER_NAME "guide_2_7"
#define NUM_SEND_TASKS 4

struct config {
	char pci_addr[DOCA_DEVINFO_PCI_ADDR_SIZE];
	char rep_pci[DOCA_DEVINFO_REP_PCI_ADDR_SIZE];
};

struct talk {
	struct doca_dev *dpu, *host;
	struct doca_dev_rep *rep;
	struct doca_pe *pe;
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	struct doca_comch_connection *peer; /* the server's */
	uint64_t received_bytes;
	doca_error_t result; /* the first failure */
};

/* ---- Flags ---- */

static doca_error_t store_pci_addr(void *value, void *config)
{
	strncpy(((struct config *)config)->pci_addr, (const char *)value, DOCA_DEVINFO_PCI_ADDR_SIZE - 1);
	return DOCA_SUCCESS;
}

static doca_error_t store_rep_pci(void *value, void *config)
{
	strncpy(((struct config *)config)->rep_pci, (const char *)value, DOCA_DEVINFO_REP_PCI_ADDR_SIZE - 1);
	return DOCA_SUCCESS;
}

static doca_error_t register_flag(const char *short_name, const char *long_name, doca_argp_param_cb_t store)
{
	struct doca_argp_param *param;
	doca_error_t result = doca_argp_param_create(&param);
	if (result != DOCA_SUCCESS)
		return result;
	doca_argp_param_set_short_name(param, short_name);
	doca_argp_param_set_long_name(param, long_name);
	doca_argp_param_set_description(param, "PCI address of a device");
	doca_argp_param_set_callback(param, store);
	doca_argp_param_set_type(param, DOCA_ARGP_TYPE_STRING);
	doca_argp_param_set_mandatory(param);
	return doca_argp_register_param(param);
}

static doca_error_t read_flags(struct config *config, int argc, char **argv)
{
	doca_error_t result = doca_argp_init(NULL, config);
	if (result == DOCA_SUCCESS)
		result = register_flag("p", "pci-addr", store_pci_addr);
	if (result == DOCA_SUCCESS)
		result = register_flag("r", "rep-pci", store_rep_pci);
	return result == DOCA_SUCCESS ? doca_argp_start(argc, argv) : result;
}

/* ---- Devices ---- */

static doca_error_t open_device(const char *pci_addr, struct doca_dev **dev)
{
	struct doca_devinfo **list;
	uint32_t count;
	uint8_t equal = 0;
	doca_error_t result = doca_devinfo_create_list(&list, &count);
	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < count && result == DOCA_ERROR_NOT_FOUND; i++) {
		if (doca_devinfo_is_equal_pci_addr(list[i], pci_addr, &equal) == DOCA_SUCCESS && equal)
			result = doca_dev_open(list[i], dev);
	}
	doca_devinfo_destroy_list(list);
	return result;
}

static doca_error_t open_representor(struct doca_dev *dev, const char *pci_addr, struct doca_dev_rep **rep)
{
	struct doca_devinfo_rep **list;
	uint32_t count;
	char addr[DOCA_DEVINFO_REP_PCI_ADDR_SIZE];
	doca_error_t result = doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &count);
	if (result != DOCA_SUCCESS)
		return result;
	result = DOCA_ERROR_NOT_FOUND;
	for (uint32_t i = 0; i < count && result == DOCA_ERROR_NOT_FOUND; i++) {
		if (doca_devinfo_rep_get_pci_addr_str(list[i], addr) == DOCA_SUCCESS && strcmp(addr, pci_addr) == 0)
			result = doca_dev_rep_open(list[i], rep);
	}
	doca_devinfo_rep_destroy_list(list);
	return result;
}

static void close_devices(struct talk *talk)
{
	if (talk->rep != NULL)
		doca_dev_rep_close(talk->rep);
	doca_dev_close(talk->dpu);
	doca_dev_close(talk->host);
}

/* ---- Messages ---- */

static void note(struct talk *talk, doca_error_t result)
{
	DOCA_ERROR_PROPAGATE(talk->result, result);
}

static void sent(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	struct talk *talk = (struct talk *)ctx_data.ptr;
	note(talk, doca_task_get_status(doca_comch_task_send_as_task(task)));
	free(task_data.ptr);
	doca_task_free(doca_comch_task_send_as_task(task));
}

/* The message stays until its callback. */
static doca_error_t submit(struct doca_comch_task_send *task, char *message)
{
	struct doca_task *base = doca_comch_task_send_as_task(task);
	union doca_data data;
	data.ptr = message;
	doca_task_set_user_data(base, data);
	return doca_task_submit(base);
}

static doca_error_t send_message(struct talk *talk, struct doca_comch_connection *to, bool from_server)
{
	const uint32_t size = 64;
	struct doca_comch_task_send *task;
	char *message = (char *)malloc(size);
	if (message == NULL)
		return DOCA_ERROR_NO_MEMORY;
	memset(message, from_server ? 's' : 'c', size);
	doca_error_t result = from_server
				      ? doca_comch_server_task_send_alloc_init(talk->server, to, message, size, &task)
				      : doca_comch_client_task_send_alloc_init(talk->client, to, message, size, &task);
	return result == DOCA_SUCCESS ? submit(task, message) : result;
}

static struct talk *talk_of(struct doca_comch_connection *connection)
{
	union doca_data data;
	data.ptr = NULL;
	struct doca_comch_server *server = doca_comch_server_get_server_ctx(connection);
	struct doca_comch_client *client = doca_comch_client_get_client_ctx(connection);
	doca_ctx_get_user_data(server != NULL ? doca_comch_server_as_ctx(server) : doca_comch_client_as_ctx(client),
			       &data);
	return (struct talk *)data.ptr;
}

static void server_received(struct doca_comch_event_msg_recv *event, uint8_t *bytes, uint32_t len,
			    struct doca_comch_connection *connection)
{
	struct talk *talk = talk_of(connection);
	(void)event;
	(void)bytes;
	talk->received_bytes += len;
	note(talk, send_message(talk, connection, true));
}

static void client_received(struct doca_comch_event_msg_recv *event, uint8_t *bytes, uint32_t len,
			    struct doca_comch_connection *connection)
{
	struct talk *talk = talk_of(connection);
	(void)event;
	(void)bytes;
	talk->received_bytes += len;
}

static void server_connected(struct doca_comch_event_connection_status_changed *event,
			     struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	if (success)
		talk_of(connection)->peer = connection;
}

static void server_disconnected(struct doca_comch_event_connection_status_changed *event,
				struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	(void)success;
	talk_of(connection)->peer = NULL;
}

/* ---- Both ends ---- */

static doca_error_t start(struct talk *talk, struct doca_ctx *ctx)
{
	union doca_data data;
	data.ptr = talk;
	doca_error_t result = doca_ctx_set_user_data(ctx, data);
	if (result == DOCA_SUCCESS)
		result = doca_pe_connect_ctx(talk->pe, ctx);
	return result == DOCA_SUCCESS ? doca_ctx_start(ctx) : result;
}

/* doca_comch_server_get_device_repr and doca_comch_server_event_connection_register are names of 2.7. */
static doca_error_t start_server(struct talk *talk)
{
	struct doca_dev_rep *rep = NULL;
	doca_error_t result = doca_comch_server_create(talk->dpu, talk->rep, SERVER_NAME, &talk->server);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_get_device_repr(talk->server, &rep);
	if (result == DOCA_SUCCESS && rep != talk->rep)
		result = DOCA_ERROR_UNEXPECTED;
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_task_send_set_conf(talk->server, sent, sent, NUM_SEND_TASKS);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_msg_recv_register(talk->server, server_received);
	if (result == DOCA_SUCCESS)
		result = doca_comch_server_event_connection_register(talk->server, server_connected,
								     server_disconnected);
	return result == DOCA_SUCCESS ? start(talk, doca_comch_server_as_ctx(talk->server)) : result;
}

static doca_error_t start_client(struct talk *talk)
{
	doca_error_t result = doca_comch_client_create(talk->host, SERVER_NAME, &talk->client);
	if (result == DOCA_SUCCESS)
		result = doca_comch_client_task_send_set_conf(talk->client, sent, sent, NUM_SEND_TASKS);
	if (result == DOCA_SUCCESS)
		result = doca_comch_client_event_msg_recv_register(talk->client, client_received);
	return result == DOCA_SUCCESS ? start(talk, doca_comch_client_as_ctx(talk->client)) : result;
}

static enum doca_ctx_states state_of(struct doca_ctx *ctx)
{
	enum doca_ctx_states state = DOCA_CTX_STATE_IDLE;
	doca_ctx_get_state(ctx, &state);
	return state;
}

static void stop(struct talk *talk, struct doca_ctx *ctx)
{
	doca_ctx_stop(ctx);
	while (state_of(ctx) != DOCA_CTX_STATE_IDLE)
		doca_pe_progress(talk->pe);
}

/* ---- The fast path's objects, which are made and not started ---- */

/* Functions for a DPA have names of 2.7, too, and no device here. */
static doca_error_t ask_for_dpa(struct doca_comch_connection *connection, struct doca_mmap *mmap)
{
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	doca_error_t result = doca_comch_consumer_create(connection, mmap, &consumer);
	if (result != DOCA_SUCCESS)
		return result;
	if (doca_comch_consumer_set_dev_num_recv(consumer, 1) != DOCA_ERROR_NOT_SUPPORTED)
		result = DOCA_ERROR_UNEXPECTED;
	DOCA_ERROR_PROPAGATE(result, doca_comch_consumer_destroy(consumer));
	if (result != DOCA_SUCCESS || (result = doca_comch_producer_create(connection, &producer)) != DOCA_SUCCESS)
		return result;
	if (doca_comch_producer_set_dev_num_send(producer, 1) != DOCA_ERROR_NOT_SUPPORTED)
		result = DOCA_ERROR_UNEXPECTED;
	DOCA_ERROR_PROPAGATE(result, doca_comch_producer_destroy(producer));
	return result;
}

static doca_error_t try_fast_path(struct talk *talk, struct doca_comch_connection *connection)
{
	static uint8_t memory[4096];
	struct doca_mmap *mmap;
	doca_error_t result = doca_mmap_create(&mmap);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_set_memrange(mmap, memory, sizeof(memory));
	if (result == DOCA_SUCCESS)
		result = doca_mmap_add_dev(mmap, talk->host);
	if (result == DOCA_SUCCESS)
		result = doca_mmap_start(mmap);
	if (result == DOCA_SUCCESS)
		result = ask_for_dpa(connection, mmap);
	DOCA_ERROR_PROPAGATE(result, doca_mmap_destroy(mmap));
	return result;
}

/* ---- The whole ---- */

static doca_error_t exchange(struct talk *talk)
{
	struct doca_comch_connection *connection;
	struct doca_ctx *client = doca_comch_client_as_ctx(talk->client);
	while (state_of(client) == DOCA_CTX_STATE_STARTING)
		doca_pe_progress(talk->pe);
	doca_error_t result = doca_comch_client_get_connection(talk->client, &connection);
	if (result == DOCA_SUCCESS)
		result = try_fast_path(talk, connection);
	if (result == DOCA_SUCCESS)
		result = send_message(talk, connection, false);
	while (result == DOCA_SUCCESS && talk->result == DOCA_SUCCESS && talk->received_bytes < 128)
		doca_pe_progress(talk->pe);
	stop(talk, client);
	while (talk->peer != NULL)
		doca_pe_progress(talk->pe);
	DOCA_ERROR_PROPAGATE(result, talk->result);
	return result;
}

static doca_error_t open_all(struct talk *talk, const struct config *config)
{
	doca_error_t result = open_device(config->pci_addr, &talk->dpu);
	if (result == DOCA_SUCCESS)
		result = open_device(config->rep_pci, &talk->host);
	if (result == DOCA_SUCCESS)
		result = open_representor(talk->dpu, config->rep_pci, &talk->rep);
	return result == DOCA_SUCCESS ? doca_pe_create(&talk->pe) : result;
}

static doca_error_t run(struct talk *talk)
{
	doca_error_t result = start_server(talk);
	if (result == DOCA_SUCCESS) {
		result = start_client(talk);
		result = result == DOCA_ERROR_IN_PROGRESS ? exchange(talk) : DOCA_ERROR_UNEXPECTED;
		stop(talk, doca_comch_server_as_ctx(talk->server));
	}
	DOCA_ERROR_PROPAGATE(result, doca_comch_client_destroy(talk->client));
	DOCA_ERROR_PROPAGATE(result, doca_comch_server_destroy(talk->server));
	DOCA_ERROR_PROPAGATE(result, doca_pe_destroy(talk->pe));
	return result;
}

int main(int argc, char **argv)
{
	struct config config;
	struct talk talk;
	memset(&config, 0, sizeof(config));
	memset(&talk, 0, sizeof(talk));
	doca_error_t result = doca_log_backend_create_standard();
	if (result == DOCA_SUCCESS)
		result = read_flags(&config, argc, argv);
	if (result == DOCA_SUCCESS)
		result = open_all(&talk, &config);
	if (result == DOCA_SUCCESS)
		result = run(&talk);
	close_devices(&talk);
	doca_argp_destroy();
	if (result != DOCA_SUCCESS) {
		DOCA_LOG_ERR("failed: %s", doca_error_get_descr(result));
		return EXIT_FAILURE;
	}
	DOCA_LOG_INFO("received %" PRIu64 " bytes", talk.received_bytes);
	return EXIT_SUCCESS;
}
