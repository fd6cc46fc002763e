/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole session through the provider-neutral part: both ends of a channel, a copy engine, a consumer and a producer.
 * It is repeated with another call refused each time, until no call is left; each time everything can be closed and,
 * under AddressSanitizer, nothing leaks.
 */
#include "../channel.h"
#include "../engine.h"
#include "../port.h"
#include "dev.h"
#include "fixture.h"

#define MAX_ROUNDS 200

static struct fixture fixture;
static char dir[] = "/tmp/dma-copy-sweep-XXXXXX";

struct session {
	struct channel *server, *client;
	struct doca_comch_connection *on_server, *on_client;
	struct doca_mmap *map;
	struct engine *engine;
	struct port *consumer, *producer;
	uint32_t peer_consumer;
	uint8_t memory[4096];
};

static struct session s;
static const char *faults_now;

/* ---- progress ---- */

static void on_event(struct channel *channel, struct doca_comch_connection **connection)
{
	uint32_t n = channel_poll(channel, 16);
	for (uint32_t i = 0; i < n; i++) {
		const struct channel_event *event = &channel->events[i];
		if (event->kind == CHANNEL_CONNECTED)
			*connection = event->connection;
		if (event->kind == CHANNEL_DISCONNECTED && *connection == event->connection)
			*connection = NULL;
		if (event->kind == CHANNEL_STATE && event->state != DOCA_CTX_STATE_RUNNING)
			*connection = NULL;
		if (event->kind == CHANNEL_NEW_CONSUMER)
			s.peer_consumer = (uint32_t)event->tag;
	}
}

static void progress_all(void)
{
	if (s.server != NULL)
		on_event(s.server, &s.on_server);
	if (s.client != NULL)
		on_event(s.client, &s.on_client);
	if (s.consumer != NULL)
		port_poll(s.consumer, 1);
	if (s.producer != NULL)
		port_poll(s.producer, 1);
	if (s.engine != NULL)
		engine_poll(s.engine, 1);
}

static bool progress_until(bool (*done)(void))
{
	for (unsigned i = 0; i < MAX_ROUNDS && !done(); i++)
		progress_all();
	return done();
}

/* ---- steps, each of which may be refused ---- */

static bool ok(struct outcome o)
{
	return o.status == DOCA_SUCCESS || o.status == DOCA_ERROR_IN_PROGRESS;
}

static bool connected(void)
{
	return s.on_server != NULL && s.on_client != NULL;
}

static bool open_channels(const struct doca_ops *ops)
{
	struct channel_config at_dpu = {fixture.dpu, fixture.rep, "sweep", 4080, 16, 4};
	struct channel_config at_host = {fixture.host, NULL, "sweep", 4080, 16, 4};
	return ok(channel_open(ops, &at_dpu, &s.server)) && ok(channel_start(s.server)) &&
	       ok(channel_open(ops, &at_host, &s.client)) && ok(channel_start(s.client)) && progress_until(connected);
}

static bool send_message(void)
{
	bool sent = ok(channel_send(s.client, s.on_client, "hello", 5, 1));
	progress_all();
	return sent;
}

static bool copied(void)
{
	return s.engine->inflight == 0;
}

static bool copy(const struct doca_ops *ops)
{
	struct engine_copy tasks[2];
	const uintptr_t start = (uintptr_t)s.memory;
	const struct engine_range more[2] = {{start + 700, 7}, {start + 600, 7}};
	tasks[0] = tasks[1] = (struct engine_copy){
		.source_map = s.map, .target_map = s.map, .source = start, .target = start + 1024, .len = 512};
	tasks[1].more = 2;
	return ok(engine_open(ops, fixture.host, 4, 6, &s.engine)) &&
	       ok(engine_submit(s.engine, tasks, 2, more).outcome) && progress_until(copied);
}

static bool consumer_is_known(void)
{
	return s.peer_consumer != 0 && progress_state(&s.consumer->progress) == DOCA_CTX_STATE_RUNNING;
}

static bool delivered(void)
{
	return s.consumer->inflight == 0 && s.producer->inflight == 0;
}

static bool send_fast(const struct doca_ops *ops)
{
	struct port_task receive = {.map = s.map, .address = (uintptr_t)s.memory + 2048, .len = 64};
	struct port_task message = {.to = s.peer_consumer, .imm_len = 4};
	if (!ok(port_open(ops, s.on_client, s.map, 4, 8, &s.consumer)) || !progress_until(consumer_is_known) ||
	    !ok(port_open(ops, s.on_server, NULL, 4, 0, &s.producer)) ||
	    !ok(port_submit(s.consumer, &receive, 1, NULL)))
		return false;
	message.to = s.peer_consumer;
	port_poll(s.consumer, 1);
	return ok(port_submit(s.producer, &message, 1, (const uint8_t *)"data")) && progress_until(delivered);
}

/* ---- the end, which is tried again where it is refused ---- */

static bool ports_idle(void)
{
	return (s.consumer == NULL || progress_state(&s.consumer->progress) == DOCA_CTX_STATE_IDLE) &&
	       (s.producer == NULL || progress_state(&s.producer->progress) == DOCA_CTX_STATE_IDLE);
}

static bool channels_idle(void)
{
	return (s.server == NULL || progress_state(&s.server->progress) == DOCA_CTX_STATE_IDLE) &&
	       (s.client == NULL || progress_state(&s.client->progress) == DOCA_CTX_STATE_IDLE);
}

static bool engine_is_idle(void)
{
	return s.engine == NULL || progress_state(&s.engine->progress) == DOCA_CTX_STATE_IDLE;
}

/* Closing can be repeated; a failure that stays fails the test. */
static bool stuck(struct outcome o)
{
	if (ok(o))
		return false;
	fprintf(stderr, "%s is %s with faults \"%s\"\n", o.op, soft_doca_error_get_name(o.status), faults_now);
	return true;
}

#define TWICE(call) (ok(call) || !stuck(call))

/* Closing again begins with the stop, as the first time. */
static bool close_port(struct port *port)
{
	return ok(port_close(port)) || (progress_state(&port->progress) == DOCA_CTX_STATE_IDLE &&
					TWICE(progress_stop(&port->progress)) && !stuck(port_close(port)));
}

static void close_ports(void)
{
	struct port **ports[] = {&s.consumer, &s.producer};
	for (unsigned i = 0; i < 2; i++)
		CHECK(*ports[i] == NULL || TWICE(progress_stop(&(*ports[i])->progress)));
	CHECK(progress_until(ports_idle));
	for (unsigned i = 0; i < 2; i++) {
		CHECK(*ports[i] == NULL || close_port(*ports[i]));
		*ports[i] = NULL;
	}
}

static void close_channels(void)
{
	CHECK(s.client == NULL || TWICE(channel_stop(s.client)));
	CHECK(s.server == NULL || TWICE(channel_stop(s.server)));
	CHECK(progress_until(channels_idle));
	CHECK(s.client == NULL || TWICE(channel_close(s.client)));
	CHECK(s.server == NULL || TWICE(channel_close(s.server)));
	s.client = s.server = NULL;
}

static void close_engine(void)
{
	CHECK(s.engine == NULL || TWICE(progress_stop(&s.engine->progress)));
	CHECK(progress_until(engine_is_idle));
	CHECK(s.engine == NULL || TWICE(engine_close(s.engine)));
	s.engine = NULL;
}

static void register_memory(void)
{
	CHECK_OK(soft_doca_mmap_create(&s.map));
	CHECK_OK(soft_doca_mmap_set_memrange(s.map, s.memory, sizeof(s.memory)));
	CHECK_OK(soft_doca_mmap_add_dev(s.map, fixture.host));
	CHECK_OK(soft_doca_mmap_set_permissions(s.map,
						DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_LOCAL_READ_WRITE));
	CHECK_OK(soft_doca_mmap_start(s.map));
}

/* True if nothing was refused. */
static bool run(const char *faults)
{
	char error[256];
	struct soft_settings settings = {.dir = dir, .limits = "", .quirks = "", .faults = faults};
	CHECK_OK(soft_configure_all(&settings, error, sizeof(error)));
	fixture = (struct fixture){.host = fixture_open_dev(SOFT_HOST), .dpu = fixture_open_dev(SOFT_DPU)};
	fixture_open_reps(&fixture);
	memset(&s, 0, sizeof(s));
	faults_now = faults;
	register_memory();
	const struct doca_ops *ops = soft_ops();
	bool whole = open_channels(ops) && send_message() && copy(ops) && send_fast(ops);
	close_ports();
	close_engine();
	close_channels();
	CHECK_OK(soft_doca_mmap_destroy(s.map));
	CHECK_OK(soft_doca_dev_rep_close(fixture.rep));
	CHECK_OK(soft_doca_dev_rep_close(fixture.other_rep));
	CHECK_OK(soft_doca_dev_close(fixture.dpu));
	CHECK_OK(soft_doca_dev_close(fixture.host));
	return whole;
}

static const char *const session_calls[] = {
#define DOCA_FUNC(lib, need, ret, name, params, args, former) #name,
#define DOCA_PROC(lib, need, name, params, args, former)
#define DOCA_FUNC_NOARG(lib, need, ret, name, former)
#include "doca_functions.def"
};

/* The first, second and third call of every function of the list. */
static void every_call_refused(void)
{
	char faults[128];
	unsigned failed = 0;
	for (size_t i = 0; i < sizeof(session_calls) / sizeof(session_calls[0]); i++) {
		/* It fails only when it is misused, and then a program cannot recover. */
		if (strcmp(session_calls[i], "doca_buf_dec_refcount") == 0)
			continue;
		for (unsigned n = 1; n <= 3; n++) {
			snprintf(faults, sizeof(faults), "refuse=%s:%u:DRIVER", session_calls[i], n);
			failed += !run(faults);
		}
	}
	CHECK(run("") && failed > 40);
}

static void every_completion_failed(void)
{
	char faults[128];
	for (unsigned n = 1; n <= 4; n++) {
		snprintf(faults, sizeof(faults), "fail=%u:IO_FAILED", n);
		run(faults);
	}
	run("cut=1");
	run("mute=1");
	CHECK(run("delay=1:1,reorder=2,flip=1"));
}

/* No run may leave a socket behind. */
static void remove_dir(void)
{
	char lock[64];
	snprintf(lock, sizeof(lock), "%s/lock", dir);
	unlink(lock);
	CHECK(rmdir(dir) == 0);
}

int main(void)
{
	CHECK(mkdtemp(dir) != NULL);
	RUN(every_call_refused);
	RUN(every_completion_failed);
	remove_dir();
	return 0;
}
