/* SPDX-License-Identifier: Apache-2.0 */
/* Quirks: each has its effect, and only if configured. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../device/quirk.h"
#include "../device/socket.h"
#include "comch_end.h"
#include "setup.h"

static char dir[300];

/* A fixture with these quirks; "": none. */
static void begin(const char *quirks)
{
	char error[256];
	struct soft_settings settings = {.dir = dir, .limits = "max_clients=1", .quirks = quirks, .faults = ""};
	CHECK_OK(soft_configure_all(&settings, error, sizeof(error)));
	fixture = (struct fixture){.host = fixture_open_dev(SOFT_HOST), .dpu = fixture_open_dev(SOFT_DPU)};
	fixture_open_reps(&fixture);
}

static void finish(void)
{
	CHECK_OK(soft_doca_dev_rep_close(fixture.rep));
	CHECK_OK(soft_doca_dev_rep_close(fixture.other_rep));
	CHECK_OK(soft_doca_dev_close(fixture.dpu));
	CHECK_OK(soft_doca_dev_close(fixture.host));
}

static void names_are_checked(void)
{
	char error[256];
	struct soft_settings settings = {.dir = dir, .quirks = "late_copy,nonsense"};
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_configure_all(&settings, error, sizeof(error)));
	CHECK(strstr(error, "nonsense") != NULL);
	settings.quirks = "late_copy,";
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_configure_all(&settings, error, sizeof(error)));
	begin("all");
	for (int quirk = 0; quirk < SOFT_QUIRKS; quirk++)
		CHECK(soft_has_quirk((enum soft_quirk)quirk) == (quirk < SOFT_NO_HOST_EXPORT));
	finish();
	begin("");
	for (int quirk = 0; quirk < SOFT_QUIRKS; quirk++)
		CHECK(!soft_has_quirk((enum soft_quirk)quirk));
	finish();
}

static void disconnect_event(void)
{
	struct end client, server;
	for (unsigned quirky = 0; quirky < 2; quirky++) {
		begin(quirky ? "disconnect_event" : "");
		open_both(&client, &server);
		CHECK_OK(soft_doca_comch_server_disconnect(server.server, server.connection));
		settle_both(&client, &server);
		CHECK(server.disconnects == quirky && state_of(&client) == DOCA_CTX_STATE_IDLE);
		close_both(&client, &server);
		finish();
	}
}

static void disconnect_again(void)
{
	struct end client, server;
	begin("disconnect_again");
	open_both(&client, &server);
	CHECK_RESULT(DOCA_ERROR_AGAIN, soft_doca_comch_server_disconnect(server.server, server.connection));
	CHECK_OK(soft_doca_comch_server_disconnect(server.server, server.connection));
	close_both(&client, &server);
	finish();
}

/* Until it is cleared, or the engine is in the other mode. */
static void selective_swallow(void)
{
	struct end client, server;
	begin("selective_swallow");
	open_both(&client, &server);
	CHECK_OK(send_number(&client, 0, 8));
	settle_one(&client);
	CHECK_OK(soft_doca_pe_request_notification(server.pe));
	CHECK(fixture_readable(server.pe, 0) && !soft_doca_pe_progress(server.pe) && server.received == 0);
	CHECK_OK(soft_doca_pe_clear_notification(server.pe, 0));
	CHECK(soft_doca_pe_progress(server.pe) && server.received == 1);
	CHECK_OK(soft_doca_pe_set_event_mode(server.pe, DOCA_PE_EVENT_MODE_PROGRESS_ALL));
	CHECK_OK(soft_doca_pe_request_notification(server.pe));
	CHECK_OK(send_number(&client, 1, 8));
	settle_one(&client);
	CHECK(soft_doca_pe_progress(server.pe) && server.received == 2);
	close_both(&client, &server);
	finish();
}

static bool has_client(const void *arg)
{
	return ((const struct end *)arg)->connects == 1;
}

static bool is_running(const void *arg)
{
	return state_of(arg) == DOCA_CTX_STATE_RUNNING;
}

static void kill_and_reap(pid_t child)
{
	int status;
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
}

static void be_a_server(void)
{
	struct end server;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	for (;;)
		soft_doca_pe_progress(server.pe);
}

/* Messages stay in flight until the client stops. */
static void dead_peer_unnoticed(void)
{
	struct end client;
	begin("dead_peer_unnoticed");
	pid_t child = fork();
	if (child == 0)
		be_a_server();
	client_open(&client);
	while (state_of(&client) != DOCA_CTX_STATE_RUNNING) {
		if (state_of(&client) == DOCA_CTX_STATE_IDLE)
			CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
		soft_doca_pe_progress(client.pe);
	}
	kill_and_reap(child);
	settle_one(&client);
	CHECK_OK(send_number(&client, 0, 8));
	settle_one(&client);
	CHECK(state_of(&client) == DOCA_CTX_STATE_RUNNING && client.sent == 0 && client.failed == 0);
	CHECK_OK(soft_doca_pe_request_notification(client.pe));
	CHECK(!fixture_readable(client.pe, 0));
	end_close(&client);
	CHECK(client.failed == 1);
	soft_sweep_runtime_dir();
	finish();
}

static void be_a_client(void)
{
	struct end client;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	client_open(&client);
	soft_doca_ctx_start(client.ctx);
	fixture_wait(client.pe, is_running, &client);
	for (;;)
		soft_doca_pe_progress(client.pe);
}

static void dead_clients_count(void)
{
	struct end server, client;
	begin("dead_clients_count");
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	pid_t child = fork();
	if (child == 0)
		be_a_client();
	fixture_wait(server.pe, has_client, &server);
	kill_and_reap(child);
	settle_one(&server);
	CHECK(server.disconnects == 1);
	client_open(&client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_both(&client, &server);
	CHECK(client.saw_failed_start);
	close_both(&client, &server);
	finish();
}

static void large_messages(void)
{
	static uint8_t message[5000];
	struct end client, server;
	struct doca_task *task;
	begin("large_messages");
	open_both(&client, &server);
	CHECK_OK(alloc_send(&client, message, sizeof(message), &task));
	CHECK_OK(soft_doca_task_submit(task));
	settle_both(&client, &server);
	CHECK(client.failed == 1 && client.last_failure == DOCA_ERROR_IO_FAILED && server.received == 0);
	close_both(&client, &server);
	finish();
}

static void late_copy(void)
{
	struct end client, server;
	struct doca_task *task;
	uint32_t message = 99;
	begin("late_copy");
	open_both(&client, &server);
	CHECK_OK(alloc_send(&client, &message, sizeof(message), &task));
	CHECK_OK(soft_doca_task_submit(task));
	message = 0; /* as the server expects */
	settle_both(&client, &server);
	CHECK(server.received == 1);
	close_both(&client, &server);
	finish();
}

static void optimized_reports_stall(void)
{
	static uint8_t from[8], to[8];
	struct engine engine;
	begin("optimized_reports_stall");
	engine_open(&engine, DPU_PCI, 4);
	struct doca_mmap *source = setup_mmap(engine.dev, from, 8, DOCA_ACCESS_FLAG_LOCAL_READ_ONLY);
	struct doca_mmap *target = setup_mmap(engine.dev, to, 8, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_buf *bufs[] = {setup_buf(engine.inventory, source, from, 4, 4),
				   setup_buf(engine.inventory, target, to, 4, 0),
				   setup_buf(engine.inventory, target, to + 4, 4, 0)};
	struct doca_task *task = soft_doca_dma_task_memcpy_as_task(engine_task(&engine, bufs[0], bufs[1]));
	CHECK_OK(soft_doca_task_submit_ex(task, DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS));
	CHECK(!soft_doca_pe_progress(engine.pe) && engine.completed == 0);
	engine_submit(&engine, bufs[0], bufs[2]);
	engine_wait(&engine, 2);
	for (unsigned i = 0; i < 3; i++)
		CHECK_OK(soft_doca_buf_dec_refcount(bufs[i], NULL));
	engine_close(&engine);
	CHECK_OK(soft_doca_mmap_destroy(source));
	CHECK_OK(soft_doca_mmap_destroy(target));
	finish();
}

static void comch_no_notification(void)
{
	struct end server;
	struct doca_pe *pe;
	begin("comch_no_notification");
	server_open(&server);
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_pe_request_notification(server.pe));
	CHECK_OK(soft_doca_pe_create(&pe));
	CHECK_OK(soft_doca_pe_request_notification(pe));
	CHECK_OK(soft_doca_pe_destroy(pe));
	end_close(&server);
	finish();
}

static void start_aborts(void)
{
	struct end client, server;
	begin("start_aborts");
	server_open(&server);
	client_open(&client);
	for (unsigned i = 0; i < 2; i++)
		CHECK_RESULT(DOCA_ERROR_CONNECTION_ABORTED, soft_doca_ctx_start(client.ctx));
	CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && !soft_doca_pe_progress(client.pe));
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_RUNNING && server.connects == 1);
	close_both(&client, &server);
	finish();
}

static void disconnect_from(struct end *end, struct doca_comch_connection *connection)
{
	CHECK_OK(soft_doca_comch_server_disconnect(end->server, connection));
}

/* Also after a client that says goodbye. */
static void untold_clients(void)
{
	struct end client, server;
	for (unsigned told = 0; told < 2; told++) {
		begin("untold_clients,late_disconnect_crash");
		open_both(&client, &server);
		server.on_disconnected = told ? disconnect_from : NULL;
		soft_doca_ctx_stop(client.ctx);
		settle_both(&client, &server);
		CHECK(server.disconnects == 1 && state_of(&client) == DOCA_CTX_STATE_IDLE);
		CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
		settle_both(&client, &server);
		CHECK(client.saw_failed_start == !told && server.connects == 1 + told);
		close_both(&client, &server);
		finish();
	}
}

/* Each takes one direction away; the other stays. */
static void no_exports(void)
{
	static const char *const quirks[] = {"no_host_export", "no_dpu_export"};
	static uint8_t bytes[64];
	for (unsigned i = 0; i < 2; i++) {
		begin(quirks[i]);
		struct doca_dev *refused = setup_open_dev(i == 0 ? HOST_PCI : DPU_PCI);
		struct doca_dev *exporter = setup_open_dev(i == 0 ? DPU_PCI : HOST_PCI);
		struct doca_mmap *mmap, *own, *import;
		const void *desc;
		size_t len;
		uint8_t exports, imports;
		CHECK_OK(soft_doca_mmap_cap_is_export_pci_supported(soft_doca_dev_as_devinfo(refused), &exports));
		CHECK_OK(soft_doca_mmap_cap_is_create_from_export_pci_supported(soft_doca_dev_as_devinfo(refused),
										&imports));
		CHECK(exports == 0 && imports == 1);
		CHECK_OK(soft_doca_mmap_cap_is_export_pci_supported(soft_doca_dev_as_devinfo(exporter), &exports));
		CHECK_OK(soft_doca_mmap_cap_is_create_from_export_pci_supported(soft_doca_dev_as_devinfo(exporter),
										&imports));
		CHECK(exports == 1 && imports == 0);
		own = setup_mmap(refused, bytes, sizeof(bytes), DOCA_ACCESS_FLAG_PCI_READ_WRITE);
		CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_mmap_export_pci(own, refused, &desc, &len));
		mmap = setup_mmap(exporter, bytes, sizeof(bytes), DOCA_ACCESS_FLAG_PCI_READ_WRITE);
		CHECK_OK(soft_doca_mmap_export_pci(mmap, exporter, &desc, &len));
		CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED,
			     soft_doca_mmap_create_from_export(NULL, desc, len, exporter, &import));
		CHECK_OK(soft_doca_mmap_create_from_export(NULL, desc, len, refused, &import));
		CHECK_OK(soft_doca_mmap_destroy(import));
		CHECK_OK(soft_doca_mmap_destroy(mmap));
		CHECK_OK(soft_doca_mmap_destroy(own));
		CHECK_OK(soft_doca_dev_close(exporter));
		CHECK_OK(soft_doca_dev_close(refused));
		finish();
	}
}

/* ---- crashes, each in a process of its own ---- */

static void alloc_when_idle(void)
{
	struct end client, server;
	struct doca_task *task;
	open_both(&client, &server);
	struct doca_comch_connection *connection = client.connection;
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(client.ctx));
	client.connection = connection;
	alloc_send(&client, "x", 1, &task);
}

static void stop_from(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	soft_doca_ctx_stop(((struct end *)ctx_data.ptr)->ctx);
}

static void stop_when_send_fails(void)
{
	struct end client, server;
	server_open(&server);
	client_open(&client);
	CHECK_OK(soft_doca_comch_server_task_send_set_conf(server.server, on_sent, stop_from, 4));
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	soft_doca_ctx_start(client.ctx);
	settle_both(&client, &server);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(client.ctx));
	settle_one(&client);
	CHECK_OK(send_number(&server, 0, 8));
	for (unsigned i = 0; i < 10; i++)
		soft_doca_pe_progress(server.pe);
}

static void disconnect_late(void)
{
	struct end client, server;
	open_both(&client, &server);
	struct doca_comch_connection *connection = server.connection;
	soft_doca_ctx_stop(client.ctx);
	settle_both(&client, &server);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_comch_server_disconnect(server.server, connection));
}

static bool crashes(const char *quirks, void (*act)(void))
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		CHECK(freopen("/dev/null", "w", stderr) != NULL);
		begin(quirks);
		act();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	soft_sweep_runtime_dir();
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void crashes_by_quirk(void)
{
	CHECK(!crashes("", alloc_when_idle) && crashes("idle_alloc_crash", alloc_when_idle));
	CHECK(!crashes("", disconnect_late) && crashes("late_disconnect_crash", disconnect_late));
	CHECK(!crashes("", stop_when_send_fails) && crashes("stop_in_send_error_crash", stop_when_send_fails));
}

int main(void)
{
	setup_configure(NULL);
	snprintf(dir, sizeof(dir), "%s", setup_dir());
	RUN(names_are_checked);
	RUN(disconnect_event);
	RUN(disconnect_again);
	RUN(selective_swallow);
	RUN(dead_peer_unnoticed);
	RUN(dead_clients_count);
	RUN(large_messages);
	RUN(late_copy);
	RUN(optimized_reports_stall);
	RUN(comch_no_notification);
	RUN(no_exports);
	RUN(start_aborts);
	RUN(untold_clients);
	RUN(crashes_by_quirk);
	return 0;
}
