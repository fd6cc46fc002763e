/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of consumers, producers and their connections, orderly and not. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../device/comch_connection.h"
#include "../device/comch_send.h"
#include "../device/consumer.h"
#include "../device/fast.h"
#include "../device/lane.h"
#include "../device/remote_import.h"
#include "../device/socket.h"
#include "fast_pair.h"

static void disconnecting_waits_for_the_fast_path(void)
{
	pair_open();
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_ctx_stop(pair.client.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_ctx_stop(pair.server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_server_disconnect(pair.server.server, pair.server.connection));
	settle_pair();
	CHECK(state_of(&pair.client) == DOCA_CTX_STATE_RUNNING);
	CHECK_OK(soft_doca_ctx_stop(pair.producer.ctx));
	CHECK_OK(soft_doca_comch_server_disconnect(pair.server.server, pair.server.connection));
	settle_pair();
	CHECK(state_of(&pair.client) == DOCA_CTX_STATE_IDLE && pair.server.disconnects == 0);
	CHECK(fast_state(&pair.consumer) == DOCA_CTX_STATE_IDLE && pair.server.expired_consumers == 1);
	CHECK_RESULT(DOCA_ERROR_NOT_CONNECTED, soft_doca_ctx_start(pair.producer.ctx));
	CHECK_RESULT(DOCA_ERROR_NOT_CONNECTED, soft_doca_ctx_start(pair.consumer.ctx));
	pair_close();
}

static void a_consumer_stops_with_buffers_posted(void)
{
	pair_open();
	uint32_t id = consumer_id(&pair.consumer);
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(post(&pair.consumer, 10 * i, 10));
	settle_pair();
	for (unsigned i = 0; i < 3; i++)
		CHECK_OK(produce(&pair.producer, id, 10 * i, 10, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(pair.consumer.ctx));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(&pair.producer, id, 0, 10, NULL, 0));
	settle_pair();
	CHECK(pair.producer.completed == 3 && fast_state(&pair.producer) == DOCA_CTX_STATE_RUNNING);
	CHECK(pair.consumer.completed == 3 && pair.consumer.failed == 1 &&
	      pair.consumer.last_failure == DOCA_ERROR_SHUTDOWN);
	CHECK(fast_state(&pair.consumer) == DOCA_CTX_STATE_IDLE && pair.server.expired_consumers == 1);
	CHECK(pair.consumer.memory[30] == 0);
	pair_close();
}

/* Messages that have not fitted into the lane find the consumer gone. */
static void a_consumer_stops_while_messages_wait(void)
{
	pair_open();
	uint32_t id = consumer_id(&pair.consumer);
	for (unsigned i = 0; i < FAST_TASKS; i++)
		CHECK_OK(post(&pair.consumer, i, 1));
	for (unsigned i = 0; i < FAST_TASKS; i++) {
		while (produce(&pair.producer, id, i, 1, NULL, 0) == DOCA_ERROR_AGAIN)
			;
	}
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(pair.consumer.ctx));
	while (pair.producer.completed + pair.producer.failed < FAST_TASKS)
		settle_pair();
	CHECK(pair.producer.failed > 0 && pair.producer.last_failure == DOCA_ERROR_CONNECTION_RESET);
	CHECK(pair.consumer.completed == pair.producer.completed);
	CHECK(fast_state(&pair.producer) == DOCA_CTX_STATE_RUNNING);
	pair_close();
}

/* As programs clean up: free what was posted, then stop the context. A submitted send is freed, too. */
static void tasks_are_freed_before_the_stop(void)
{
	struct doca_comch_consumer_task_post_recv *posted[4];
	struct doca_comch_task_send *sent;
	pair_open();
	pair.consumer.frees_early = true;
	for (unsigned i = 0; i < 4; i++) {
		CHECK_OK(soft_doca_comch_consumer_task_post_recv_alloc_init(pair.consumer.consumer, NULL, &posted[i]));
		CHECK_OK(soft_doca_task_submit(soft_doca_comch_consumer_task_post_recv_as_task(posted[i])));
	}
	settle_pair();
	for (unsigned i = 0; i < 4; i++)
		soft_doca_task_free(soft_doca_comch_consumer_task_post_recv_as_task(posted[i]));
	CHECK_OK(produce(&pair.producer, consumer_id(&pair.consumer), 0, 0, "x", 1));
	settle_pair();
	CHECK(pair.consumer.completed == 1 && pair.producer.completed == 1);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(pair.consumer.ctx));
	settle_pair();
	CHECK(fast_state(&pair.consumer) == DOCA_CTX_STATE_IDLE && pair.consumer.failed == 3);

	uint32_t number = 0;
	CHECK_OK(soft_doca_comch_client_task_send_alloc_init(pair.client.client, pair.client.connection, &number,
							     sizeof(number), &sent));
	soft_doca_task_set_user_data(soft_doca_comch_task_send_as_task(sent), (union doca_data){.u64 = 7});
	CHECK_OK(soft_doca_task_submit(soft_doca_comch_task_send_as_task(sent)));
	soft_doca_task_free(soft_doca_comch_task_send_as_task(sent));
	settle_pair();
	CHECK(pair.client.sent == 1 && pair.server.received == 1);
	pair_close();
}

/*
 * The peer is stopped in the middle of a copy, which the test simulates. The program does not get its buffers back
 * until the peer continues or dies.
 */
static void buffers_wait_for_a_copy_under_way(void)
{
	pair_open();
	struct soft_lane *lane = soft_lane_find(pair.server.connection->fast, consumer_id(&pair.consumer));
	CHECK(lane != NULL);
	for (unsigned i = 0; i < 2; i++)
		CHECK_OK(post(&pair.consumer, 10 * i, 10));
	settle_pair();
	CHECK_OK(produce(&pair.producer, lane->consumer_id, 0, 10, NULL, 0));
	settle_pair();
	CHECK(pair.consumer.completed == 1);
	atomic_store(&lane->import->gate->busy, 1);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(pair.consumer.ctx));
	CHECK(!soft_doca_pe_progress(pair.consumer.pe) && pair.consumer.failed == 0);
	CHECK_OK(soft_doca_pe_request_notification(pair.consumer.pe));
	CHECK(fixture_readable(pair.consumer.pe, 0) && fast_state(&pair.consumer) == DOCA_CTX_STATE_STOPPING);
	atomic_store(&lane->import->gate->busy, 0);
	settle_pair();
	CHECK(pair.consumer.failed == 1 && fast_state(&pair.consumer) == DOCA_CTX_STATE_IDLE);
	soft_lane_unref(lane);
	pair_close();
}

static void a_producer_stops_with_tasks(void)
{
	pair_open();
	uint32_t id = consumer_id(&pair.consumer);
	CHECK_OK(post(&pair.consumer, 0, 10));
	settle_pair();
	CHECK_OK(produce(&pair.producer, id, 0, 10, NULL, 0));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(pair.producer.ctx));
	settle_pair();
	CHECK(pair.producer.completed == 1 && pair.consumer.completed == 1); /* it was delivered when submitted */
	CHECK_OK(soft_doca_ctx_start(pair.producer.ctx));
	CHECK_OK(post(&pair.consumer, 0, 10));
	CHECK_OK(produce(&pair.producer, id, 0, 10, NULL, 0));
	settle_pair();
	CHECK(pair.consumer.completed == 2);
	pair_close();
}

/* Messages that have not fitted into the lane are flushed, and their slots can be used again. */
static void a_producer_stops_while_messages_wait(void)
{
	pair_open();
	uint32_t id = consumer_id(&pair.consumer);
	for (unsigned i = 0; i < FAST_TASKS; i++)
		CHECK_OK(post(&pair.consumer, i, 1));
	for (unsigned i = 0; i < FAST_TASKS; i++) {
		while (produce(&pair.producer, id, i, 1, NULL, 0) == DOCA_ERROR_AGAIN)
			;
	}
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(pair.producer.ctx));
	settle_pair();
	unsigned flushed = pair.producer.failed;
	CHECK(flushed > 0 && pair.producer.last_failure == DOCA_ERROR_SHUTDOWN);
	CHECK(pair.producer.completed == FAST_TASKS - flushed && pair.consumer.completed == FAST_TASKS - flushed);
	CHECK_OK(soft_doca_ctx_start(pair.producer.ctx));
	for (unsigned i = 0; i < flushed; i++) {
		CHECK_OK(produce(&pair.producer, id, i, 1, NULL, 0));
		settle_pair();
	}
	CHECK(pair.consumer.completed == FAST_TASKS);
	pair_close();
}

/* The peer leaves without reading all slots, which the kernel reports before the deliveries. */
static void what_was_delivered_outlives_the_peer(void)
{
	pair_open();
	CHECK_OK(post(&pair.consumer, 0, 10));
	settle_pair();
	CHECK_OK(produce(&pair.producer, consumer_id(&pair.consumer), 0, 10, NULL, 0));
	CHECK_OK(post(&pair.consumer, 10, 10));
	CHECK(soft_doca_pe_progress(pair.producer.pe));
	CHECK(pair.producer.completed == 1 && pair.consumer.completed == 0);
	CHECK_OK(soft_doca_ctx_stop(pair.producer.ctx));
	CHECK_OK(soft_doca_comch_server_disconnect(pair.server.server, pair.server.connection));
	settle_one(&pair.server);
	CHECK(pair.server.disconnects == 0);
	settle_pair();
	CHECK(pair.consumer.completed == 1 && pair.consumer.failed == 1);
	CHECK(memcmp(pair.consumer.memory, pair.producer.memory, 10) == 0);
	pair_close();
}

/* Immediate data needs no memory, but a failed message holds back the messages behind it. */
static void nothing_is_sent_behind_a_failure(void)
{
	pair_open();
	struct soft_lane *lane = soft_lane_find(pair.server.connection->fast, consumer_id(&pair.consumer));
	for (unsigned i = 0; i < 3; i++)
		CHECK_OK(post(&pair.consumer, 10 * i, 10));
	CHECK_OK(produce(&pair.producer, lane->consumer_id, 0, 10, NULL, 0));
	atomic_store(&lane->import->gate->revoked, 1); /* not by a consumer that stops */
	CHECK_OK(produce(&pair.producer, lane->consumer_id, 0, 10, NULL, 0));
	CHECK_OK(produce(&pair.producer, lane->consumer_id, 0, 0, "x", 1));
	settle_pair();
	CHECK(pair.producer.completed == 1 && pair.producer.failed == 2 && pair.consumer.completed == 1);
	CHECK(fast_state(&pair.producer) == DOCA_CTX_STATE_IDLE);
	soft_lane_unref(lane);
	pair_close();
}

static bool has_consumer(const void *arg)
{
	return ((const struct end *)arg)->new_consumers == 1;
}

static bool lost_client(const void *arg)
{
	return ((const struct end *)arg)->disconnects == 1;
}

static void be_a_consumer(void)
{
	struct end client;
	struct fast_end consumer;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	client_open(&client);
	soft_doca_ctx_start(client.ctx);
	while (state_of(&client) != DOCA_CTX_STATE_RUNNING)
		soft_doca_pe_progress(client.pe);
	consumer_open(&consumer, &client);
	soft_doca_ctx_start(consumer.ctx);
	while (fast_state(&consumer) != DOCA_CTX_STATE_RUNNING)
		settle_fast(&client, NULL, &consumer, NULL);
	CHECK_OK(post(&consumer, 0, 10));
	CHECK_OK(post(&consumer, 10, 10));
	for (;;)
		settle_fast(&client, NULL, &consumer, NULL);
}

/* Opens a server and a producer, and waits until the consumer of another process, which is returned, has posted. */
static pid_t open_for_child(void)
{
	struct end *server = &pair.server;
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	pid_t child = fork();
	if (child == 0)
		be_a_consumer();
	fixture_wait(server->pe, has_consumer, server);
	producer_open(&pair.producer, server);
	CHECK_OK(soft_doca_ctx_start(pair.producer.ctx));
	struct soft_lane *lane = soft_lane_find(server->connection->fast, server->consumer_id);
	while (soft_lane_reserve(lane, 10, 0) == DOCA_ERROR_AGAIN)
		sched_yield();
	soft_lane_cancel(lane);
	soft_lane_unref(lane);
	return child;
}

/* The consumer expires before the connection ends; the tasks of the producer fail, and it stops. */
static void kill_child(pid_t child)
{
	int status;
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	fixture_wait(pair.server.pe, lost_client, &pair.server);
	CHECK(pair.server.expired_consumers == 1);
	settle_fast(NULL, &pair.server, &pair.producer, NULL);
	CHECK(fast_state(&pair.producer) == DOCA_CTX_STATE_IDLE);
	fast_close(&pair.producer);
	end_close(&pair.server);
	soft_sweep_runtime_dir(); /* it left these behind */
}

static void a_consumer_is_killed(void)
{
	struct fast_end *producer = &pair.producer;
	pid_t child = open_for_child();
	CHECK_OK(produce(producer, pair.server.consumer_id, 0, 10, NULL, 0));
	kill_child(child);
	CHECK(producer->completed == 1 && producer->failed == 0);
}

/* Its memory has not been opened before; the message waits until the process is continued. */
static void a_consumer_is_stopped_before_the_first_message(void)
{
	struct fast_end *producer = &pair.producer;
	int status;
	pid_t child = open_for_child();
	CHECK(kill(child, SIGSTOP) == 0 && waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	CHECK_OK(produce(producer, pair.server.consumer_id, 0, 10, NULL, 0));
	CHECK(strstr(soft_last_detail(), "stopped") == NULL); /* its process was not asked, which would take long */
	for (unsigned i = 0; i < 2; i++)
		CHECK(!soft_doca_pe_progress(producer->pe) && producer->completed == 0 && producer->failed == 0);
	CHECK(kill(child, SIGCONT) == 0);
	while (producer->completed == 0)
		soft_doca_pe_progress(producer->pe);
	CHECK(producer->failed == 0);
	kill_child(child);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(disconnecting_waits_for_the_fast_path);
	RUN(a_consumer_stops_with_buffers_posted);
	RUN(a_consumer_stops_while_messages_wait);
	RUN(tasks_are_freed_before_the_stop);
	RUN(buffers_wait_for_a_copy_under_way);
	RUN(a_producer_stops_with_tasks);
	RUN(a_producer_stops_while_messages_wait);
	RUN(what_was_delivered_outlives_the_peer);
	RUN(nothing_is_sent_behind_a_failure);
	RUN(a_consumer_is_killed);
	RUN(a_consumer_is_stopped_before_the_first_message);
	fixture_close(&fixture);
	return 0;
}
