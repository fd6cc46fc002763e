/* SPDX-License-Identifier: Apache-2.0 */
/* Injected faults: each has its effect, at its time, and no other. */
#include "../device/fault.h"
#include "../device/now.h"
#include "fast_end.h"
#include "setup.h"

static char dir[300];

static void begin(const char *faults)
{
	char error[256];
	struct soft_settings settings = {.dir = dir, .limits = "", .quirks = "", .faults = faults};
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

static void texts_are_checked(void)
{
	static const char *const bad[] = {"flip",        "flip=",      "flip=0",          "flip=x",
					  "flip=1:2",    "nonsense=1", "fail=1",          "fail=1:",
					  "fail=1:OOPS", "delay=1",    "refuse=:1:AGAIN", "refuse=a:1",
					  "again=101",   "flip=1,",    "delay=1:-1",      "delay=1:86400000001"};
	char error[256];
	struct soft_settings settings = {.dir = dir, .limits = "", .quirks = ""};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		settings.faults = bad[i];
		CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_configure_all(&settings, error, sizeof(error)));
		CHECK(strstr(error, "cannot be understood") != NULL);
	}
	begin("seed=7,refuse=doca_mmap_start:2:DRIVER,fail=3:IO_FAILED,delay=1:500,reorder=4,again=20");
	finish();
}

static void calls_are_refused(void)
{
	struct doca_pe *pe[4];
	begin("refuse=doca_pe_create:2:NO_MEMORY,refuse=*:4:DRIVER");
	const struct doca_ops *ops = soft_ops();
	CHECK_OK(ops->doca_pe_create(&pe[0]));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, ops->doca_pe_create(&pe[1]));
	CHECK_OK(ops->doca_pe_create(&pe[1]));
	CHECK_RESULT(DOCA_ERROR_DRIVER, ops->doca_pe_create(&pe[2]));
	CHECK_OK(ops->doca_pe_destroy(pe[0]));
	CHECK_OK(ops->doca_pe_destroy(pe[1]));
	CHECK(ops->doca_pe_progress(NULL) == 0);
	finish();
}

/* ---- copies ---- */

#define LEN 256

struct copies {
	struct engine engine;
	struct doca_mmap *source, *target;
	uint8_t from[LEN], to[4 * LEN];
};

static struct copies c;

static void copies_open(const char *faults)
{
	begin(faults);
	engine_open(&c.engine, DPU_PCI, 8);
	for (unsigned i = 0; i < LEN; i++)
		c.from[i] = (uint8_t)(i * 31 + 1);
	memset(c.to, 0, sizeof(c.to));
	c.source = setup_mmap(c.engine.dev, c.from, sizeof(c.from), DOCA_ACCESS_FLAG_LOCAL_READ_ONLY);
	c.target = setup_mmap(c.engine.dev, c.to, sizeof(c.to), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
}

static void copies_close(void)
{
	engine_close(&c.engine);
	CHECK_OK(soft_doca_mmap_destroy(c.source));
	CHECK_OK(soft_doca_mmap_destroy(c.target));
	finish();
}

static doca_error_t copy_to(unsigned slot)
{
	return engine_copy(&c.engine, c.target, c.to + slot * LEN, c.source, c.from, LEN);
}

static unsigned wrong_bytes(unsigned slot)
{
	unsigned n = 0;
	for (unsigned i = 0; i < LEN; i++)
		n += c.to[slot * LEN + i] != c.from[i];
	return n;
}

static void one_completion_fails(void)
{
	copies_open("fail=2:TIME_OUT");
	CHECK_OK(copy_to(0));
	CHECK_RESULT(DOCA_ERROR_TIME_OUT, copy_to(1));
	CHECK(c.to[LEN] == 0);
	CHECK_OK(copy_to(2));
	copies_close();
}

/* Messages do not count, so that a copy fails regardless of earlier messages. */
static void one_memcpy_fails(void)
{
	copies_open("fail_memcpy=2:DRIVER,fail_memcpy=3:TIME_OUT");
	CHECK_OK(soft_fault_completion());
	CHECK_OK(copy_to(0));
	CHECK_OK(soft_fault_completion());
	CHECK_RESULT(DOCA_ERROR_DRIVER, copy_to(1));
	CHECK(c.to[LEN] == 0);
	CHECK_RESULT(DOCA_ERROR_TIME_OUT, copy_to(2));
	CHECK_OK(copy_to(3));
	copies_close();
}

static void one_completion_is_late(void)
{
	copies_open("delay=2:20000");
	uint64_t start = soft_now_ns();
	CHECK_OK(copy_to(0));
	CHECK_OK(copy_to(1));
	CHECK(soft_now_ns() - start >= 20000000);
	copies_close();
}

static void bytes_are_corrupted(void)
{
	copies_open("seed=5,flip=2,drop=3,duplicate=4");
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(copy_to(i));
	CHECK(wrong_bytes(0) == 0 && wrong_bytes(1) == 1 && wrong_bytes(2) > 0);
	for (unsigned i = 0; i < LEN; i++)
		CHECK(c.to[2 * LEN + i] == c.from[i] || c.to[2 * LEN + i] == 0);
	copies_close();
}

/* The same seed changes the same bytes. */
static void a_seed_replays(void)
{
	uint8_t first[LEN];
	for (unsigned run = 0; run < 2; run++) {
		copies_open("seed=9,flip=1");
		CHECK_OK(copy_to(0));
		if (run == 0)
			memcpy(first, c.to, LEN);
		CHECK(memcmp(first, c.to, LEN) == 0 && wrong_bytes(0) == 1);
		copies_close();
	}
}

static uint64_t order[8];
static unsigned ordered;

static void note_order(struct doca_dma_task_memcpy *task, union doca_data tag, union doca_data ctx_data)
{
	(void)ctx_data;
	order[ordered++] = tag.u64;
	CHECK_OK(soft_doca_task_get_status(soft_doca_dma_task_memcpy_as_task(task)));
	soft_doca_task_free(soft_doca_dma_task_memcpy_as_task(task));
}

/* All complete once, in another order. */
static void completions_are_reordered(void)
{
	struct doca_dma_task_memcpy *task;
	struct doca_buf *bufs[9];
	uint64_t seen = 0;
	bool shuffled = false;
	copies_open("seed=1,reorder=8");
	struct doca_ctx *ctx = soft_doca_dma_as_ctx(c.engine.dma);
	CHECK_OK(soft_doca_ctx_stop(ctx));
	CHECK_OK(soft_doca_dma_task_memcpy_set_conf(c.engine.dma, note_order, note_order, 8));
	CHECK_OK(soft_doca_ctx_start(ctx));
	bufs[8] = setup_buf(c.engine.inventory, c.source, c.from, 8, 8);
	for (unsigned i = 0; i < 8; i++) {
		bufs[i] = setup_buf(c.engine.inventory, c.target, c.to + 8 * i, 8, 0);
		CHECK_OK(soft_doca_dma_task_memcpy_alloc_init(c.engine.dma, bufs[8], bufs[i],
							      (union doca_data){.u64 = i}, &task));
		CHECK_OK(soft_doca_task_submit(soft_doca_dma_task_memcpy_as_task(task)));
	}
	while (soft_doca_pe_progress(c.engine.pe))
		;
	for (unsigned i = 0; i < 8; i++) {
		seen |= 1U << order[i];
		shuffled |= order[i] != i;
	}
	CHECK(ordered == 8 && seen == 0xff && shuffled);
	for (unsigned i = 0; i < 9; i++)
		CHECK_OK(soft_doca_buf_dec_refcount(bufs[i], NULL));
	copies_close();
}

static void submissions_return_again(void)
{
	copies_open("seed=3,again=50");
	struct doca_buf *from = setup_buf(c.engine.inventory, c.source, c.from, LEN, LEN);
	struct doca_buf *to = setup_buf(c.engine.inventory, c.target, c.to, LEN, 0);
	unsigned again = 0;
	for (unsigned i = 0; i < 100; i++) {
		CHECK_OK(soft_doca_buf_reset_data_len(to));
		struct doca_task *task = soft_doca_dma_task_memcpy_as_task(engine_task(&c.engine, from, to));
		doca_error_t result;
		while ((result = soft_doca_task_submit(task)) == DOCA_ERROR_AGAIN)
			again++;
		CHECK_OK(result);
		engine_wait(&c.engine, i + 1);
	}
	CHECK(again > 50 && again < 200);
	CHECK_OK(soft_doca_buf_dec_refcount(from, NULL));
	CHECK_OK(soft_doca_buf_dec_refcount(to, NULL));
	copies_close();
}

/* ---- channels ---- */

/* The third message of the connection. */
static void must_be_cut(struct end *client, struct end *server)
{
	for (unsigned i = 0; i < 3; i++) {
		CHECK_OK(send_number(client, i, 8));
		settle_both(client, server);
	}
	CHECK(server->received == 2 && server->disconnects == 1);
	CHECK(client->sent == 2 && client->failed == 1 && client->last_failure == DOCA_ERROR_CONNECTION_RESET);
	CHECK(state_of(client) == DOCA_CTX_STATE_IDLE);
}

static void the_channel_is_cut(void)
{
	struct end client, server;
	begin("cut=3");
	open_both(&client, &server);
	must_be_cut(&client, &server);
	close_both(&client, &server);
	finish();
	begin("cut_every=3");
	for (unsigned i = 0; i < 2; i++) {
		open_both(&client, &server);
		must_be_cut(&client, &server);
		close_both(&client, &server);
	}
	finish();
}

/* Failed connection and disconnection events: the connection is over in either case. */
static void connection_events_report_failure(void)
{
	struct end client, server;
	begin("connect=1,disconnect=1");
	server_open(&server);
	client_open(&client);
	server.events_fail = true;
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	for (unsigned i = 0; i < 2; i++) {
		CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
		settle_both(&client, &server);
		CHECK(server.failed_connects == 1 && server.connects == i);
		CHECK(state_of(&client) == (i == 0 ? DOCA_CTX_STATE_IDLE : DOCA_CTX_STATE_RUNNING));
	}
	end_close(&client);
	settle_one(&server);
	CHECK(server.disconnects == 1 && server.failed_disconnects == 1);
	end_close(&server);
	finish();
}

/* The message neither fails nor completes, and nothing wakes; the client can still stop. */
static void the_peer_stops_answering(void)
{
	struct end client, server;
	begin("mute=2");
	open_both(&client, &server);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_OK(send_number(&client, i, 8));
		settle_both(&client, &server);
	}
	CHECK(server.received <= 1 && client.sent == 1 && client.failed == 0 && server.disconnects == 0);
	CHECK_OK(soft_doca_pe_request_notification(client.pe));
	CHECK(!fixture_readable(client.pe, 0));
	close_both(&client, &server);
	CHECK(client.failed == 2);
	finish();
}

static void a_message_fails(void)
{
	struct end client, server;
	begin("fail=2:IO_FAILED");
	open_both(&client, &server);
	CHECK_OK(send_number(&client, 0, 8));
	CHECK_OK(send_number(&client, 9, 8));
	CHECK_OK(send_number(&client, 1, 8));
	settle_both(&client, &server);
	CHECK(client.sent == 2 && client.failed == 1 && server.received == 2);
	close_both(&client, &server);
	finish();
}

/* A task can also complete with AGAIN. */
static void a_fast_message_fails_with(const char *faults, doca_error_t code)
{
	struct end client, server;
	struct fast_end consumer, producer;
	begin(faults);
	open_both(&client, &server);
	consumer_open(&consumer, &client);
	producer_open(&producer, &server);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(consumer.ctx));
	CHECK_OK(soft_doca_ctx_start(producer.ctx));
	settle_fast(&client, &server, &consumer, &producer);
	CHECK_OK(post(&consumer, 0, 10));
	settle_fast(&client, &server, &consumer, &producer);
	CHECK_OK(produce(&producer, consumer_id(&consumer), 0, 10, NULL, 0));
	settle_fast(&client, &server, &consumer, &producer);
	CHECK(producer.failed == 1 && producer.last_failure == code && consumer.completed == 0);
	CHECK_OK(produce(&producer, consumer_id(&consumer), 0, 10, NULL, 0));
	settle_fast(&client, &server, &consumer, &producer);
	CHECK(consumer.completed == 1);
	fast_close(&consumer);
	fast_close(&producer);
	close_both(&client, &server);
	finish();
}

static void a_fast_message_fails(void)
{
	a_fast_message_fails_with("fail=1:TIME_OUT", DOCA_ERROR_TIME_OUT);
	a_fast_message_fails_with("fail=1:AGAIN", DOCA_ERROR_AGAIN);
}

int main(void)
{
	setup_configure(NULL);
	snprintf(dir, sizeof(dir), "%s", setup_dir());
	RUN(texts_are_checked);
	RUN(calls_are_refused);
	RUN(one_completion_fails);
	RUN(one_memcpy_fails);
	RUN(one_completion_is_late);
	RUN(bytes_are_corrupted);
	RUN(a_seed_replays);
	RUN(completions_are_reordered);
	RUN(submissions_return_again);
	RUN(the_channel_is_cut);
	RUN(connection_events_report_failure);
	RUN(the_peer_stops_answering);
	RUN(a_message_fails);
	RUN(a_fast_message_fails);
	return 0;
}
