/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that exit while tasks wait, as after an error: the library ends its thread. Each case is a program. */
#include <doca_comch.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_pe.h>
#include <doca_sync_event.h>
#include <unistd.h>

#include "capture.h"
#include "check.h"

#define NUM_SENDS 64
#define MESSAGE_SIZE 4080

/* Objects that the program leaves behind; static, so that it is not a leak. */
static struct {
	struct doca_pe *pe;
	struct doca_sync_event *event;
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	struct doca_dev *host, *dpu;
	struct doca_dev_rep *rep;
	uint64_t counter;
} left;

/* A program that hangs is killed. */
static void limit_time(void)
{
	alarm(120);
}

static struct doca_dev *open_dev(const char *pci_addr)
{
	struct doca_devinfo **list;
	uint32_t count;
	uint8_t is_equal = 0;
	struct doca_dev *dev = NULL;
	EXPECT(DOCA_SUCCESS, doca_devinfo_create_list(&list, &count));
	for (uint32_t i = 0; i < count && dev == NULL; i++) {
		EXPECT(DOCA_SUCCESS, doca_devinfo_is_equal_pci_addr(list[i], pci_addr, &is_equal));
		if (is_equal)
			EXPECT(DOCA_SUCCESS, doca_dev_open(list[i], &dev));
	}
	CHECK(dev != NULL);
	EXPECT(DOCA_SUCCESS, doca_devinfo_destroy_list(list));
	return dev;
}

static struct doca_dev_rep *open_rep(struct doca_dev *dev)
{
	struct doca_devinfo_rep **list;
	uint32_t count;
	struct doca_dev_rep *rep;
	EXPECT(DOCA_SUCCESS, doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &count));
	EXPECT(DOCA_SUCCESS, doca_dev_rep_open(list[0], &rep));
	EXPECT(DOCA_SUCCESS, doca_devinfo_rep_destroy_list(list));
	return rep;
}

/* ---- a sync event ---- */

static void on_waited(struct doca_sync_event_task_wait_eq *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static int a_wait_is_pending(const void *argument)
{
	struct doca_sync_event_task_wait_eq *task;
	union doca_data none = {.u64 = 0};
	(void)argument;
	limit_time();
	left.host = open_dev("0000:b1:00.0");
	EXPECT(DOCA_SUCCESS, doca_sync_event_create(&left.event));
	struct doca_ctx *ctx = doca_sync_event_as_ctx(left.event);
	EXPECT(DOCA_SUCCESS, doca_pe_create(&left.pe));
	EXPECT(DOCA_SUCCESS, doca_pe_connect_ctx(left.pe, ctx));
	EXPECT(DOCA_SUCCESS, doca_sync_event_task_wait_eq_set_conf(left.event, on_waited, on_waited, 1));
	EXPECT(DOCA_SUCCESS, doca_sync_event_add_publisher_location_cpu(left.event, left.host));
	EXPECT(DOCA_SUCCESS, doca_sync_event_add_subscriber_location_cpu(left.event, left.host));
	EXPECT(DOCA_SUCCESS, doca_sync_event_set_addr(left.event, &left.counter));
	EXPECT(DOCA_SUCCESS, doca_ctx_start(ctx));
	EXPECT(DOCA_SUCCESS, doca_sync_event_task_wait_eq_alloc_init(left.event, 1, UINT64_MAX, none, &task));
	EXPECT(DOCA_SUCCESS, doca_task_submit(doca_sync_event_task_wait_eq_as_doca_task(task)));
	return 0;
}

/* ---- messages ---- */

static void on_sent(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

static void on_received(struct doca_comch_event_msg_recv *event, uint8_t *message, uint32_t len,
			struct doca_comch_connection *connection)
{
	(void)event;
	(void)message;
	(void)len;
	(void)connection;
}

static void on_connection(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *connection, uint8_t successful)
{
	(void)event;
	(void)connection;
	(void)successful;
}

static void start_server(void)
{
	left.dpu = open_dev("0000:03:00.0");
	left.rep = open_rep(left.dpu);
	EXPECT(DOCA_SUCCESS, doca_comch_server_create(left.dpu, left.rep, "exit", &left.server));
	EXPECT(DOCA_SUCCESS, doca_comch_server_task_send_set_conf(left.server, on_sent, on_sent, 1));
	EXPECT(DOCA_SUCCESS, doca_comch_server_event_msg_recv_register(left.server, on_received));
	EXPECT(DOCA_SUCCESS,
	       doca_comch_server_event_connection_status_changed_register(left.server, on_connection, on_connection));
	EXPECT(DOCA_SUCCESS, doca_pe_connect_ctx(left.pe, doca_comch_server_as_ctx(left.server)));
	EXPECT(DOCA_SUCCESS, doca_ctx_start(doca_comch_server_as_ctx(left.server)));
}

static void start_client(void)
{
	enum doca_ctx_states state = DOCA_CTX_STATE_STARTING;
	left.host = open_dev("0000:b1:00.0");
	EXPECT(DOCA_SUCCESS, doca_comch_client_create(left.host, "exit", &left.client));
	EXPECT(DOCA_SUCCESS, doca_comch_client_task_send_set_conf(left.client, on_sent, on_sent, NUM_SENDS));
	EXPECT(DOCA_SUCCESS, doca_comch_client_event_msg_recv_register(left.client, on_received));
	struct doca_ctx *ctx = doca_comch_client_as_ctx(left.client);
	EXPECT(DOCA_SUCCESS, doca_pe_connect_ctx(left.pe, ctx));
	EXPECT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(ctx));
	while (state == DOCA_CTX_STATE_STARTING) {
		doca_pe_progress(left.pe);
		EXPECT(DOCA_SUCCESS, doca_ctx_get_state(ctx, &state));
	}
	CHECK(state == DOCA_CTX_STATE_RUNNING);
}

/* They are more than a socket holds, and the server does not progress. */
static int messages_are_pending(const void *argument)
{
	static uint8_t message[MESSAGE_SIZE];
	struct doca_comch_connection *connection;
	struct doca_comch_task_send *task;
	(void)argument;
	limit_time();
	EXPECT(DOCA_SUCCESS, doca_pe_create(&left.pe));
	start_server();
	start_client();
	EXPECT(DOCA_SUCCESS, doca_comch_client_get_connection(left.client, &connection));
	for (unsigned i = 0; i < NUM_SENDS; i++) {
		EXPECT(DOCA_SUCCESS, doca_comch_client_task_send_alloc_init(left.client, connection, message,
									    sizeof(message), &task));
		EXPECT(DOCA_SUCCESS, doca_task_submit(doca_comch_task_send_as_task(task)));
	}
	return 0;
}

static const struct capture_case cases[] = {
	{"a wait is pending", a_wait_is_pending},
	{"messages are pending", messages_are_pending},
};

int main(void)
{
	return report("exit", COUNT(cases), check_cases(cases, COUNT(cases)));
}
