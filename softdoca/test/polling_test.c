/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that poll without a pause, on a machine with one CPU and no preemption: another thread runs only when the
 * polling one yields. The test replaces sched_yield by that scheduler.
 */
#include <sched.h>

#include "fast_pair.h"

/* A message takes a few rounds of each thread. */
#define MOST_POLLS 100

static struct doca_pe *threads[4];
static unsigned yields;
static bool switching, posts;

/* Runs every other thread once. They end with a yield of their own. */
int sched_yield(void)
{
	if (switching)
		return 0;
	switching = true;
	yields++;
	for (size_t i = 0; i < 4; i++)
		soft_doca_pe_progress(threads[i]);
	if (posts)
		CHECK_OK(post(&pair.consumer, 0, 64));
	posts = false;
	switching = false;
	return 0;
}

static void open_threads(void)
{
	pair_open();
	threads[0] = pair.client.pe;
	threads[1] = pair.server.pe;
	threads[2] = pair.consumer.pe;
	threads[3] = pair.producer.pe;
}

static void close_threads(void)
{
	memset(threads, 0, sizeof(threads));
	pair_close();
}

/* Polls one engine until *count is `until`. */
static void poll_until(struct doca_pe *pe, const unsigned *count, unsigned until)
{
	unsigned polls = 0;
	while (*count < until) {
		CHECK(polls++ < MOST_POLLS);
		soft_doca_pe_progress(pe);
	}
}

static void a_poller_lets_the_others_run(void)
{
	open_threads();
	for (unsigned i = 1; i <= 20; i++) {
		CHECK_OK(post(&pair.consumer, 0, 64));
		poll_until(pair.server.pe, &yields, yields + 1);
		CHECK_OK(produce(&pair.producer, consumer_id(&pair.consumer), 0, 64, NULL, 0));
		poll_until(pair.consumer.pe, &pair.consumer.completed, i);
		CHECK_OK(send_number(&pair.client, i - 1, 16));
		poll_until(pair.server.pe, &pair.server.received, i);
	}
	close_threads();
}

/* A program that retries submissions does so without progress in between. */
static void so_does_one_that_submits_again(void)
{
	open_threads();
	posts = true; /* when the consumer's thread runs */
	unsigned tries = 0;
	while (produce(&pair.producer, consumer_id(&pair.consumer), 0, 64, NULL, 0) == DOCA_ERROR_AGAIN)
		CHECK(tries++ < MOST_POLLS);
	CHECK(tries > 0);
	poll_until(pair.producer.pe, &pair.producer.completed, 1);
	close_threads();
}

/* An engine that moves keeps the CPU, and so does a program that is about to sleep. */
static void without_polling_the_cpu_is_kept(void)
{
	open_threads();
	unsigned before = yields;
	for (uint32_t i = 0; i < 10; i++) {
		CHECK_OK(send_number(&pair.client, i, 16));
		while (soft_doca_pe_progress(pair.client.pe))
			;
		CHECK_OK(soft_doca_pe_request_notification(pair.client.pe));
		CHECK(!soft_doca_pe_progress(pair.client.pe));
	}
	CHECK(yields == before);
	close_threads();
}

static void on_copied(struct doca_dma_task_memcpy *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
}

/* A copy needs no other thread, so its poller keeps the CPU for as long as it takes. */
static void waiting_for_copies_keeps_the_cpu(void)
{
	struct doca_pe *pe;
	struct doca_dma *dma;
	CHECK_OK(soft_doca_pe_create(&pe));
	CHECK_OK(soft_doca_dma_create(fixture.host, &dma));
	struct doca_ctx *ctx = soft_doca_dma_as_ctx(dma);
	CHECK_OK(soft_doca_dma_task_memcpy_set_conf(dma, on_copied, on_copied, 1));
	CHECK_OK(soft_doca_pe_connect_ctx(pe, ctx));
	CHECK_OK(soft_doca_ctx_start(ctx));
	unsigned before = yields;
	for (unsigned i = 0; i < MOST_POLLS; i++)
		CHECK(!soft_doca_pe_progress(pe));
	CHECK(yields == before);
	CHECK_OK(soft_doca_ctx_stop(ctx));
	CHECK_OK(soft_doca_dma_destroy(dma));
	CHECK_OK(soft_doca_pe_destroy(pe));
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(a_poller_lets_the_others_run);
	RUN(so_does_one_that_submits_again);
	RUN(without_polling_the_cpu_is_kept);
	RUN(waiting_for_copies_keeps_the_cpu);
	fixture_close(&fixture);
	return 0;
}
