/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures MESSAGES round trips over the fast path: a host and a DPU in two processes, each with three threads that
 * poll without a pause, as DOCA programs do, with a progress engine each (control channel, consumer, producer).
 *
 * Usage: pingpong_bench [RUNS [MESSAGES]]. Prints the milliseconds of each run in a line.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../device/now.h"
#include "fast_end.h"

#define SLOT 64
#define SLOTS 16

/* One side: all that its threads share. */
struct side {
	struct end control;
	struct fast_end consumer, producer;
	bool serves; /* otherwise it sends requests */
	uint32_t messages;
	_Atomic uint32_t peer; /* the consumer to send to; 0: not yet known */
	_Atomic uint32_t received;
	atomic_bool connected, over;
};

static void repost(struct fast_end *end, struct doca_buf *buf)
{
	struct side *side = (struct side *)((char *)end - offsetof(struct side, consumer));
	void *data;
	size_t len;
	CHECK_OK(soft_doca_buf_get_data(buf, &data));
	CHECK_OK(soft_doca_buf_get_data_len(buf, &len));
	CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	if (fast_state(end) == DOCA_CTX_STATE_RUNNING)
		CHECK_OK(post(end, (size_t)((uint8_t *)data - end->memory), SLOT));
	atomic_fetch_add(&side->received, len == SLOT); /* not flushed */
}

static void *run_consumer(void *arg)
{
	struct side *side = arg;
	struct fast_end *end = &side->consumer;
	end->on_completed = repost;
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(end->ctx));
	while (fast_state(end) != DOCA_CTX_STATE_RUNNING)
		soft_doca_pe_progress(end->pe);
	for (unsigned i = 0; i < SLOTS; i++)
		CHECK_OK(post(end, i * SLOT, SLOT));
	while (!atomic_load(&side->over))
		soft_doca_pe_progress(end->pe);
	fast_close(end);
	return NULL;
}

static void send_one(struct side *side)
{
	struct fast_end *end = &side->producer;
	unsigned before = end->completed;
	doca_error_t result;
	while ((result = produce(end, atomic_load(&side->peer), 0, SLOT, NULL, 0)) != DOCA_SUCCESS) {
		CHECK(result == DOCA_ERROR_AGAIN);
		soft_doca_pe_progress(end->pe);
	}
	while (end->completed == before)
		soft_doca_pe_progress(end->pe);
}

static void *run_producer(void *arg)
{
	struct side *side = arg;
	struct fast_end *end = &side->producer;
	CHECK_OK(soft_doca_ctx_start(end->ctx));
	while (atomic_load(&side->peer) == 0)
		soft_doca_pe_progress(end->pe);
	for (uint32_t n = 0; n < side->messages; n++) {
		if (!side->serves)
			send_one(side);
		while (atomic_load(&side->received) <= n)
			soft_doca_pe_progress(end->pe);
		if (side->serves)
			send_one(side);
	}
	fast_close(end);
	atomic_store(&side->over, true);
	return NULL;
}

static void run_control(struct side *side)
{
	while (!atomic_load(&side->over)) {
		soft_doca_pe_progress(side->control.pe);
		if (atomic_load(&side->peer) == 0 && side->control.new_consumers > 0)
			atomic_store(&side->peer, side->control.consumer_id);
	}
}

static void connect(struct side *side)
{
	struct end *control = &side->control;
	if (side->serves)
		server_open(control);
	else
		client_open(control);
	while (control->connection == NULL) {
		if (state_of(control) == DOCA_CTX_STATE_IDLE)
			soft_doca_ctx_start(control->ctx);
		soft_doca_pe_progress(control->pe);
	}
}

/* Prints the milliseconds from the connection to the last answer, including the setup of consumers and producers. */
static void run_side(bool serves, uint32_t messages)
{
	static struct side side;
	pthread_t threads[2];
	side = (struct side){.serves = serves, .messages = messages};
	connect(&side);
	uint64_t begin = soft_now_ns();
	consumer_open(&side.consumer, &side.control);
	producer_open(&side.producer, &side.control);
	CHECK(pthread_create(&threads[0], NULL, run_consumer, &side) == 0);
	CHECK(pthread_create(&threads[1], NULL, run_producer, &side) == 0);
	run_control(&side);
	if (!serves)
		printf("%.1f\n", (double)(soft_now_ns() - begin) / 1e6);
	fflush(stdout);
	for (unsigned i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	soft_doca_ctx_stop(side.control.ctx);
	settle_one(&side.control);
}

static void fork_side(bool serves, uint32_t messages)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (child > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_side(serves, messages);
	_exit(0);
}

int main(int argc, char **argv)
{
	uint32_t runs = argc > 1 ? (uint32_t)atoi(argv[1]) : 20;
	uint32_t messages = argc > 2 ? (uint32_t)atoi(argv[2]) : 2000;
	fixture_open(&fixture, NULL);
	for (uint32_t i = 0; i < runs; i++) {
		int status;
		fork_side(true, messages);
		fork_side(false, messages);
		for (int side = 0; side < 2; side++)
			CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	fixture_close(&fixture);
	return 0;
}
