/* SPDX-License-Identifier: Apache-2.0 */
/* Operations in flight, and how endpoints and workers end. */
#include "binding.h"
#include "fake_ucp.h"

#include <pthread.h>
#include <string.h>

enum { DEPTH = 8 };

static uint8_t bytes[4096];

struct pair {
	struct ucx_context *context;
	struct ucx_worker *worker;
	struct ucx_endpoint *endpoint;
	struct ucx_memory *memory;
};

static struct pair open_pair(bool no_peer_errors)
{
	struct pair p = {.context = fake_context()};
	fake.no_peer_errors = no_peer_errors;
	p.worker = fake_worker(p.context, DEPTH);
	p.endpoint = fake_opened(ucx_endpoint_open(p.worker, "address", 5));
	p.memory = fake_opened(ucx_memory_map(p.context, bytes, sizeof(bytes), UCX_LOCAL_WRITE));
	return p;
}

static void close_pair(struct pair p)
{
	CHECK(ucx_worker_close(p.worker) == UCS_OK);
	CHECK(ucx_memory_unmap(p.context, p.memory) == UCS_OK);
	ucx_context_close(p.context);
}

static int32_t get(struct pair p, uint64_t tag)
{
	const struct ucx_transfer transfer = {.memory = p.memory, .address = bytes, .length = 10, .tag = tag};
	return ucx_endpoint_get(p.endpoint, transfer, 0, NULL);
}

static int32_t send_to(struct pair p, uint64_t tag)
{
	const struct ucx_transfer transfer = {.memory = p.memory, .address = bytes, .length = 10, .tag = tag};
	return ucx_endpoint_send(p.endpoint, transfer, 1, 2);
}

static void close_endpoint(struct pair p)
{
	CHECK(ucx_endpoint_close(p.endpoint, 0) == UCS_OK);
	CHECK(ucx_endpoint_advance(p.endpoint));
}

static void what_ends_at_once_is_an_event_too(void)
{
	struct pair p = open_pair(false);
	struct ucx_event event;
	for (uint64_t tag = 0; tag < 1000; tag++) {
		CHECK((tag % 2 ? get(p, tag) : send_to(p, tag)) == UCS_OK && p.worker->inflight == 1);
		CHECK(ucx_worker_poll(p.worker, &event, 1) == 1);
		CHECK(event.kind == UCX_EVENT_COMPLETED && event.tag == tag && event.status == UCS_OK);
		CHECK(p.worker->inflight == 0);
	}
	close_endpoint(p);
	close_pair(p);
}

static bool has_ended(struct pair p, ucs_status_t status)
{
	struct ucx_event event;
	if (ucx_worker_poll(p.worker, &event, 1) == 0)
		return false;
	CHECK(event.kind == UCX_EVENT_COMPLETED && event.status == (int32_t)status);
	return true;
}

/* UCX may have copied a message that has not been sent. */
static void a_message_ends_when_it_was_sent(void)
{
	struct pair p = open_pair(false);
	fake.flush_answer = ANSWER_LATER;
	for (int later = 0; later < 2; later++) {
		fake.answer = later ? ANSWER_LATER : ANSWER_NOW;
		CHECK(send_to(p, 1) == UCS_OK);
		if (later)
			fake_complete(fake_pending(), UCS_OK);
		CHECK(!has_ended(p, UCS_OK) && ucx_memory_unmap(p.context, p.memory) == UCS_ERR_BUSY);
		fake_complete(fake_pending(), UCS_OK);
		CHECK(has_ended(p, UCS_OK) && fake_pending() == NULL);
	}
	CHECK(send_to(p, 1) == UCS_OK);
	fake_complete(fake_pending(), UCS_ERR_CONNECTION_RESET);
	CHECK(has_ended(p, UCS_ERR_CONNECTION_RESET) && fake_pending() == NULL);
	fake.answer = ANSWER_NOW;
	CHECK(get(p, 1) == UCS_OK && has_ended(p, UCS_OK));
	fake.flush_answer = ANSWER_ERROR;
	CHECK(send_to(p, 1) == UCS_OK && has_ended(p, UCS_ERR_CONNECTION_RESET));
	fake.flush_answer = ANSWER_NOW;
	close_endpoint(p);
	close_pair(p);
}

/* Also those whose completion is waiting to be taken: the ring of events has no place for more. */
static void at_most_depth_are_in_flight(void)
{
	struct pair p = open_pair(false);
	struct ucx_event events[2 * DEPTH];
	for (uint64_t tag = 0; tag < DEPTH; tag++) {
		fake.answer = tag % 2 ? ANSWER_LATER : ANSWER_NOW;
		CHECK(get(p, tag) == UCS_OK);
	}
	CHECK(get(p, 99) == UCX_QUEUE_FULL && send_to(p, 99) == UCX_QUEUE_FULL);
	CHECK(ucx_worker_poll(p.worker, events, 2 * DEPTH) == DEPTH / 2);
	CHECK(p.worker->inflight == DEPTH / 2 && ucx_memory_unmap(p.context, p.memory) == UCS_ERR_BUSY);
	for (int i = 0; i < DEPTH / 2; i++)
		fake_complete(fake_pending(), UCS_ERR_CANCELED);
	CHECK(ucx_worker_poll(p.worker, events, 2 * DEPTH) == DEPTH / 2 && events[0].status == UCS_ERR_CANCELED);
	CHECK(fake.freed_requests == DEPTH / 2);
	close_endpoint(p);
	close_pair(p);
}

static void what_is_refused_is_no_event(void)
{
	struct pair p = open_pair(false);
	struct ucx_event event;
	fake.answer = ANSWER_ERROR;
	for (int i = 0; i < 2 * DEPTH; i++) {
		CHECK(get(p, 1) == UCS_ERR_CONNECTION_RESET && send_to(p, 1) == UCS_ERR_CONNECTION_RESET);
		CHECK(p.worker->inflight == 0 && ucx_worker_poll(p.worker, &event, 1) == 0);
	}
	close_endpoint(p);
	close_pair(p);
}

/* In any order, with as many polls as there are events, so that the ring is used from every position. */
static void operations_end_in_any_order(void)
{
	struct pair p = open_pair(false);
	struct ucx_event event;
	uint64_t posted = 0, ended = 0;
	srand(1);
	fake.answer = ANSWER_LATER;
	while (ended < 10000) {
		while (get(p, posted) == UCS_OK)
			posted++;
		struct request *request = &fake.requests[rand() % DEPTH];
		if (request->pending)
			fake_complete(request, UCS_OK);
		while (rand() % 3 > 0 && ucx_worker_poll(p.worker, &event, 1) == 1)
			ended++;
		CHECK(p.worker->inflight == posted - ended);
	}
	while (fake_pending() != NULL)
		fake_complete(fake_pending(), UCS_OK);
	close_endpoint(p);
	close_pair(p);
}

static void a_failure_is_one_event(void)
{
	struct pair p = open_pair(false);
	struct ucx_event events[3];
	for (int i = 0; i < 3; i++)
		fake.on_failure.cb(fake.on_failure.arg, NULL, UCS_ERR_ENDPOINT_TIMEOUT);
	CHECK(ucx_worker_poll(p.worker, events, 3) == 1);
	CHECK(events[0].kind == UCX_EVENT_FAILED && events[0].tag == 5 && events[0].status == UCS_ERR_ENDPOINT_TIMEOUT);
	close_endpoint(p);
	CHECK(fake.forced_endpoints == 1);
	close_pair(p);
}

static void an_endpoint_is_flushed_before_it_is_closed(void)
{
	struct pair p = open_pair(false);
	fake.flush_answer = fake.close_answer = ANSWER_LATER;
	CHECK(ucx_endpoint_close(p.endpoint, 0) == UCS_OK && !ucx_endpoint_advance(p.endpoint));
	CHECK(ucx_endpoint_close(p.endpoint, 0) == UCS_OK && fake.closed_endpoints == 0);
	fake_complete(fake_pending(), UCS_OK);
	CHECK(!ucx_endpoint_advance(p.endpoint) && fake.closed_endpoints == 1 && fake.forced_endpoints == 0);
	CHECK(ucx_worker_close(p.worker) == UCS_ERR_BUSY && fake.destroyed_workers == 0);
	fake_complete(fake_pending(), UCS_OK);
	CHECK(ucx_endpoint_advance(p.endpoint) && fake.closed_endpoints == 1);
	close_pair(p);
}

static void a_flush_is_forced_to_end(void)
{
	struct pair p = open_pair(false);
	fake.answer = fake.flush_answer = ANSWER_LATER;
	CHECK(get(p, 1) == UCS_OK);
	CHECK(ucx_endpoint_close(p.endpoint, 0) == UCS_OK && !ucx_endpoint_advance(p.endpoint));
	CHECK(ucx_endpoint_close(p.endpoint, 1) == UCS_OK && fake.forced_endpoints == 1);
	while (fake_pending() != NULL)
		fake_complete(fake_pending(), UCS_ERR_CANCELED);
	CHECK(ucx_endpoint_advance(p.endpoint) && fake.closed_endpoints == 1);
	close_pair(p);
}

/* Then only the end of the worker ends its operations. */
static void shared_memory_cannot_be_forced(void)
{
	struct pair p = open_pair(true);
	fake.answer = fake.flush_answer = ANSWER_LATER;
	CHECK(get(p, 1) == UCS_OK);
	CHECK(ucx_endpoint_close(p.endpoint, 0) == UCS_OK && !ucx_endpoint_advance(p.endpoint));
	CHECK(ucx_endpoint_close(p.endpoint, 1) == UCS_ERR_UNSUPPORTED && fake.closed_endpoints == 0);
	CHECK(ucx_memory_unmap(p.context, p.memory) == UCS_ERR_BUSY);
	close_pair(p);
	CHECK(fake.destroyed_workers == 1);
}

static void a_setting_may_be_refused(void)
{
	struct ucx_opened o = ucx_context_open(&fake_ucp, "TLS\0tcp\0REFUSED\0x\0", 0);
	CHECK(o.status == UCS_ERR_NO_ELEM && o.object == NULL);
}

/* Two workers of two threads use one memory; a third thread signals them. */

static struct pair shared[2];

static void *use_memory(void *arg)
{
	struct pair *p = arg;
	fake = (struct fake){0};
	p->worker = fake_worker(p->context, DEPTH);
	p->endpoint = fake_opened(ucx_endpoint_open(p->worker, "address", 5));
	struct ucx_event event;
	for (uint64_t tag = 0; tag < 10000; tag++)
		CHECK(get(*p, tag) == UCS_OK && ucx_worker_poll(p->worker, &event, 1) == 1);
	close_endpoint(*p);
	CHECK(ucx_worker_close(p->worker) == UCS_OK);
	return NULL;
}

static void workers_of_two_threads_share_memory(void)
{
	struct pair p = open_pair(false);
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) {
		shared[i] = (struct pair){.context = p.context, .memory = p.memory};
		CHECK(pthread_create(&threads[i], NULL, use_memory, &shared[i]) == 0);
	}
	for (int i = 0; i < 10000; i++)
		CHECK(signal_worker(p.worker) == UCS_OK);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	close_endpoint(p);
	close_pair(p);
}

static void memory_of_ucx_has_its_address(void)
{
	struct ucx_context *context = fake_context();
	fake.no_memory_attributes = true;
	struct ucx_opened o = ucx_memory_map(context, NULL, sizeof(fake_memory), UCX_REMOTE_READ);
	CHECK(o.status == UCS_ERR_UNSUPPORTED && o.object == NULL && fake.mapped_memory == 0);
	fake.no_memory_attributes = false;
	struct ucx_memory *memory = fake_opened(ucx_memory_map(context, NULL, sizeof(fake_memory), UCX_REMOTE_READ));
	CHECK(memory->address == fake_memory);
	ucx_memory_use(memory);
	CHECK(ucx_memory_unmap(context, memory) == UCS_ERR_BUSY && fake.mapped_memory == 1);
	ucx_memory_release(memory);
	CHECK(ucx_memory_unmap(context, memory) == UCS_OK && fake.mapped_memory == 0);
	ucx_context_close(context);
}

int main(void)
{
	RUN(what_ends_at_once_is_an_event_too);
	RUN(a_message_ends_when_it_was_sent);
	RUN(at_most_depth_are_in_flight);
	RUN(what_is_refused_is_no_event);
	RUN(operations_end_in_any_order);
	RUN(a_failure_is_one_event);
	RUN(an_endpoint_is_flushed_before_it_is_closed);
	RUN(a_flush_is_forced_to_end);
	RUN(shared_memory_cannot_be_forced);
	RUN(a_setting_may_be_refused);
	RUN(memory_of_ucx_has_its_address);
	RUN(workers_of_two_threads_share_memory);
	return 0;
}
