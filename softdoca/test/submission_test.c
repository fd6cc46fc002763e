/* SPDX-License-Identifier: Apache-2.0 */
/* A submitted task is executed without doca_pe_progress of its engine, also if it did not fit at once. */
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../device/background.h"
#include "../device/comch_connection.h"
#include "fast_pair.h"

static void a_message_goes(void)
{
	struct end client, server;
	open_both(&client, &server);
	CHECK_OK(send_number(&client, 0, 16));
	settle_one(&server);
	CHECK(server.received == 1 && client.sent == 0);
	settle_one(&client);
	CHECK(client.sent == 1);
	close_both(&client, &server);
}

/* A quarter of the messages fills the socket. Another program's CPU may be needed for the rest. */
static void more_messages_than_the_socket_holds_go(void)
{
	struct end client, server;
	open_both(&client, &server);
	for (uint32_t i = 0; i < NUM_SENDS; i++)
		CHECK_OK(send_number(&client, i, 4080));
	while (server.received < NUM_SENDS) {
		if (!soft_doca_pe_progress(server.pe))
			sched_yield();
	}
	CHECK(client.sent == 0);
	CHECK_OK(soft_doca_pe_request_notification(client.pe));
	CHECK(fixture_readable(client.pe, 0));
	settle_both(&client, &server);
	CHECK(client.sent == NUM_SENDS);
	close_both(&client, &server);
}

/* The receive queue bounds what completes, not what goes. */
static void messages_beyond_the_receive_queue_go(void)
{
	struct end client, server;
	server_open(&server);
	client_open(&client);
	CHECK_OK(soft_doca_comch_server_set_recv_queue_size(server.server, 2));
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_both(&client, &server);
	for (uint32_t i = 0; i < 10; i++)
		CHECK_OK(send_number(&client, i, 16));
	CHECK(soft_doca_pe_progress(client.pe) && client.sent == 2);
	settle_one(&server);
	CHECK(server.received == 10 && client.sent == 2);
	settle_one(&client);
	CHECK(client.sent == 10);
	close_both(&client, &server);
}

/* Neither the slots of the consumer nor the deliveries of the producer fit into the lane. */
static void more_buffers_than_the_lane_holds_are_posted_and_filled(void)
{
	pair_open();
	for (unsigned i = 0; i < FAST_TASKS; i++)
		CHECK_OK(post(&pair.consumer, i, 1));
	for (unsigned i = 0; i < FAST_TASKS; i++) {
		while (produce(&pair.producer, consumer_id(&pair.consumer), i, 1, NULL, 0) == DOCA_ERROR_AGAIN)
			sched_yield();
	}
	while (pair.consumer.completed < FAST_TASKS) {
		if (!soft_doca_pe_progress(pair.consumer.pe))
			sched_yield();
	}
	CHECK(memcmp(pair.consumer.memory, pair.producer.memory, FAST_TASKS) == 0 && pair.producer.completed == 0);
	CHECK(soft_doca_pe_progress(pair.producer.pe) == 1 && pair.producer.completed == FAST_TASKS);
	pair_close();
}

/* Both running; messages of the client wait for the socket. */
static void open_full(struct end *client, struct end *server)
{
	open_both(client, server);
	for (uint32_t i = 0; i < NUM_SENDS; i++)
		CHECK_OK(send_number(client, i, 4080));
	CHECK(client->connection->job.active);
}

static atomic_bool ran;

static enum soft_job_result run_once(struct soft_job *job)
{
	(void)job;
	atomic_store(&ran, true);
	return SOFT_JOB_DONE;
}

/* ThreadSanitizer allows no thread in the child of a process that had one. */
static void run_own_job(void)
{
	struct soft_job job = {.run = run_once};
#ifndef __SANITIZE_THREAD__
	soft_job_start(&job);
	while (!atomic_load(&ran))
		sched_yield();
#endif
	soft_job_stop(&job);
}

/* It would send its parent's messages again. It may have jobs of its own. */
static void a_forked_child_has_no_jobs_of_its_parent(void)
{
	struct end client, server;
	int status;
	open_full(&client, &server);
	pid_t child = fork();
	if (child == 0) {
		CHECK(!client.connection->job.active);
		run_own_job();
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	while (server.received < NUM_SENDS) {
		if (!soft_doca_pe_progress(server.pe))
			sched_yield();
	}
	settle_both(&client, &server);
	CHECK(client.sent == NUM_SENDS);
	close_both(&client, &server);
}

static void a_stopped_connection_has_no_job(void)
{
	struct end client, server;
	open_full(&client, &server);
	struct doca_comch_connection *connection = client.connection;
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(client.ctx));
	CHECK(!connection->job.active);
	close_both(&client, &server);
}

static void expect_no_job(struct end *end)
{
	CHECK(!end->connection->job.active);
}

static void a_lost_connection_has_no_job(void)
{
	struct end client, server;
	open_full(&client, &server);
	client.on_not_sent = expect_no_job;
	soft_doca_ctx_stop(server.ctx);
	settle_one(&server);
	settle_one(&client);
	CHECK(client.failed > 0 && client.sent + client.failed == NUM_SENDS);
	close_both(&client, &server);
}

/* A program may exit with tasks that wait. */
static void the_end_of_the_library_does_not_wait_for_tasks(void)
{
	pair_open();
	for (unsigned i = 0; i < FAST_TASKS; i++)
		CHECK_OK(post(&pair.consumer, i, 1));
	soft_background_end();
	pair_close();
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(a_message_goes);
	RUN(more_messages_than_the_socket_holds_go);
	RUN(messages_beyond_the_receive_queue_go);
	RUN(more_buffers_than_the_lane_holds_are_posted_and_filled);
	RUN(a_forked_child_has_no_jobs_of_its_parent);
	RUN(a_stopped_connection_has_no_job);
	RUN(a_lost_connection_has_no_job);
	RUN(the_end_of_the_library_does_not_wait_for_tasks);
	fixture_close(&fixture);
	return 0;
}
