/* SPDX-License-Identifier: Apache-2.0 */
/* Active messages as a hostile sender, or a failing one, would have them. */
#include "fake_ucp.h"

#include <pthread.h>
#include <string.h>

enum { SIZE = 100, COUNT = 3, FIRST = 2, STEP = 4, TOKEN = 77 };

static struct ucx_context *context;
static struct ucx_worker *worker;
static struct ucx_memory *memory;
static uint8_t *slots; /* exactly as long as the slots, so that a byte beyond them is noticed */
static uint8_t data[2 * SIZE];

static void open_receiver(void)
{
	context = fake_context();
	worker = fake_worker(context, 1);
	slots = calloc(COUNT, SIZE);
	memory = fake_opened(ucx_memory_map(context, slots, COUNT * SIZE, UCX_LOCAL_WRITE));
	const struct ucx_slots description = {
		.memory = memory,
		.address = slots,
		.size = SIZE,
		.token = TOKEN,
		.first = FIRST,
		.step = STEP,
		.count = COUNT,
	};
	CHECK(ucx_worker_receive(worker, description) == UCS_OK);
	memset(data, 'x', sizeof(data));
}

static void close_receiver(void)
{
	CHECK(ucx_memory_unmap(context, memory) == UCS_ERR_BUSY);
	CHECK(ucx_worker_close(worker) == UCS_OK);
	CHECK(ucx_memory_unmap(context, memory) == UCS_OK);
	ucx_context_close(context);
	free(slots);
}

static ucs_status_t message(uint64_t token, uint32_t slot, size_t length, bool rendezvous)
{
	const struct ucx_header header = {.token = token, .slot = slot};
	return fake_message(&header, sizeof(header), data, length, rendezvous);
}

static struct ucx_event next(void)
{
	struct ucx_event event;
	CHECK(ucx_worker_poll(worker, &event, 1) == 1);
	return event;
}

static bool is_empty(void)
{
	struct ucx_event event;
	return ucx_worker_poll(worker, &event, 1) == 0;
}

static bool is_untouched(void)
{
	for (int i = 0; i < COUNT * SIZE; i++)
		if (slots[i] != 0)
			return false;
	return true;
}

/* The message before was refused; one that is right is dropped now. */
static void check_refused(enum ucx_refusal why, uint64_t value)
{
	struct ucx_event event = next();
	CHECK(event.kind == UCX_EVENT_REFUSED && event.status == (int32_t)why && event.tag == value);
	CHECK(message(TOKEN, FIRST + STEP, 1, false) == UCS_OK);
	CHECK(message(TOKEN, FIRST + STEP, 1, true) == UCS_OK);
	CHECK(is_empty() && fake_pending() == NULL);
}

static void headers_of_any_other_length_are_refused(void)
{
	const struct ucx_header headers[2] = {{.token = TOKEN, .slot = FIRST}};
	for (size_t length = 0; length < sizeof(headers); length++) {
		if (length == sizeof(headers[0]))
			continue;
		open_receiver();
		CHECK(fake_message(headers, length, data, 1, length % 2) == UCS_OK);
		check_refused(UCX_REFUSED_HEADER, length);
		CHECK(is_untouched());
		close_receiver();
	}
}

static void tokens_must_be_right(void)
{
	const uint64_t tokens[] = {0, TOKEN + 1, TOKEN | 1ull << 63, ~0ull};
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		open_receiver();
		CHECK(message(tokens[i], FIRST, 1, i % 2) == UCS_OK);
		check_refused(UCX_REFUSED_TOKEN, 0);
		CHECK(is_untouched());
		close_receiver();
	}
}

static void slots_must_exist(void)
{
	const uint32_t numbers[] = {0, 1, 3, 5, 7, 9, FIRST + COUNT * STEP, UINT32_MAX, UINT32_MAX - 1, 1u << 31};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		open_receiver();
		CHECK(message(TOKEN, numbers[i], 1, i % 2) == UCS_OK);
		check_refused(UCX_REFUSED_SLOT, numbers[i]);
		CHECK(ucx_worker_post(worker, numbers[i]) == UCS_ERR_INVALID_PARAM);
		CHECK(is_untouched());
		close_receiver();
	}
}

static void lengths_must_fit(void)
{
	const size_t lengths[] = {0, SIZE + 1, SIZE_MAX};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		open_receiver();
		CHECK(message(TOKEN, FIRST, lengths[i], i == 2) == UCS_OK);
		check_refused(UCX_REFUSED_LENGTH, lengths[i]);
		CHECK(is_untouched());
		close_receiver();
	}
}

static void every_slot_is_filled_to_its_last_byte(void)
{
	open_receiver();
	for (uint32_t i = 0; i < COUNT; i++) {
		CHECK(message(TOKEN, FIRST + i * STEP, SIZE, i % 2) == (i % 2 ? UCS_INPROGRESS : UCS_OK));
		struct ucx_event event = next();
		CHECK(event.kind == UCX_EVENT_ARRIVED && event.status == UCS_OK);
		CHECK(event.tag == FIRST + i * STEP && event.length == SIZE);
		CHECK(memcmp(slots + i * SIZE, data, SIZE) == 0);
	}
	close_receiver();
}

static void a_slot_is_occupied_until_it_is_posted(void)
{
	open_receiver();
	for (int round = 0; round < 1000; round++) {
		CHECK(ucx_worker_post(worker, FIRST) == UCS_ERR_INVALID_PARAM);
		CHECK(message(TOKEN, FIRST, 1 + round % SIZE, false) == UCS_OK);
		CHECK(next().length == (uint64_t)(1 + round % SIZE));
		CHECK(ucx_worker_post(worker, FIRST) == UCS_OK);
	}
	CHECK(message(TOKEN, FIRST, 1, false) == UCS_OK && next().kind == UCX_EVENT_ARRIVED);
	CHECK(message(TOKEN, FIRST, 1, false) == UCS_OK);
	check_refused(UCX_REFUSED_OCCUPIED, FIRST);
	close_receiver();
}

/* While UCX writes a slot, nobody else gets it. */
static void a_rendezvous_occupies_its_slot(void)
{
	open_receiver();
	fake.answer = ANSWER_LATER;
	CHECK(message(TOKEN, FIRST, SIZE, true) == UCS_INPROGRESS && is_empty());
	CHECK(ucx_worker_post(worker, FIRST) == UCS_ERR_INVALID_PARAM);
	struct request *request = fake_pending();
	CHECK(request->buffer == slots && request->length == SIZE);
	CHECK(message(TOKEN, FIRST, 1, false) == UCS_OK);
	CHECK(next().status == UCX_REFUSED_OCCUPIED);
	request->param.cb.recv_am(request, UCS_OK, SIZE, request->param.user_data);
	struct ucx_event event = next();
	CHECK(event.kind == UCX_EVENT_ARRIVED && event.length == SIZE && fake.freed_requests == 1);
	close_receiver();
}

static void a_failed_rendezvous_has_no_bytes(void)
{
	for (int later = 0; later < 2; later++) {
		open_receiver();
		fake.answer = later ? ANSWER_LATER : ANSWER_ERROR;
		CHECK(message(TOKEN, FIRST, SIZE, true) == UCS_INPROGRESS);
		if (later) {
			struct request *request = fake_pending();
			request->param.cb.recv_am(request, UCS_ERR_CONNECTION_RESET, SIZE, request->param.user_data);
		}
		struct ucx_event event = next();
		CHECK(event.kind == UCX_EVENT_ARRIVED && event.status == UCS_ERR_CONNECTION_RESET && event.length == 0);
		CHECK(ucx_worker_post(worker, FIRST) == UCS_OK);
		close_receiver();
	}
}

static void begin_rendezvous(uint32_t index, int sender)
{
	fake.answer = ANSWER_LATER;
	fake.sender = sender;
	CHECK(message(TOKEN, FIRST + index * STEP, SIZE, true) == UCS_INPROGRESS);
}

/* UCX must not be asked to destroy a worker that fetches something, nor to close an endpoint twice. */
static void a_worker_ends_with_rendezvous(void)
{
	open_receiver();
	begin_rendezvous(0, 0);
	begin_rendezvous(1, 1);
	begin_rendezvous(2, 0);
	CHECK(memory->abandoned == 0);
	close_receiver();
	CHECK(fake.destroyed_workers == 1 && fake.forced_endpoints == 2 && fake_pending() == NULL);
}

static void a_rendezvous_may_end_late(void)
{
	open_receiver();
	begin_rendezvous(0, 0);
	fake.close_answer = ANSWER_LATER;
	for (int i = 0; i < 3; i++)
		CHECK(ucx_worker_close(worker) == UCS_ERR_BUSY && fake.destroyed_workers == 0);
	CHECK(memory->abandoned == 1 && fake.forced_endpoints == 1);
	struct request *request = fake_pending();
	request->param.cb.recv_am(request, UCS_ERR_CANCELED, 0, request->param.user_data);
	close_receiver();
	CHECK(fake.destroyed_workers == 1 && fake.forced_endpoints == 1);
}

/* A failed sender cannot be closed by force, and need not. The other sender is closed nevertheless. */
static void a_worker_ends_with_a_failed_sender(void)
{
	for (int failed = 0; failed < FAKE_SENDERS; failed++) {
		open_receiver();
		begin_rendezvous(0, 0);
		begin_rendezvous(1, 1);
		fake.failed_senders[failed] = true;
		close_receiver();
		CHECK(fake.destroyed_workers == 1 && fake.closed_senders[1 - failed]);
		CHECK(fake_pending() != NULL && fake_pending()->sender == failed);
	}
}

static void a_rendezvous_needs_its_sender(void)
{
	open_receiver();
	fake.no_reply = true;
	CHECK(message(TOKEN, FIRST, SIZE, false) == UCS_OK && next().kind == UCX_EVENT_ARRIVED);
	CHECK(message(TOKEN, FIRST + STEP, SIZE, true) == UCS_OK);
	check_refused(UCX_REFUSED_REPLY, 0);
	close_receiver();
}

static void events_have_more_numbers_than_32_bits(void)
{
	open_receiver();
	worker->head = worker->tail = UINT32_MAX;
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK(message(TOKEN, FIRST + i * STEP, 1, false) == UCS_OK);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK(next().tag == FIRST + i * STEP);
	CHECK(is_empty());
	close_receiver();
}

enum { POSTS = 10000 };

static void *post_slots(void *arg)
{
	(void)arg;
	for (int posted = 0; posted < POSTS;)
		posted += ucx_worker_post(worker, FIRST) == UCS_OK;
	return NULL;
}

static void another_thread_posts(void)
{
	open_receiver();
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, post_slots, NULL) == 0);
	for (int i = 0; i < POSTS; i++) {
		while (__atomic_load_n(&worker->slot[0].occupied, __ATOMIC_ACQUIRE))
			;
		CHECK(message(TOKEN, FIRST, SIZE, false) == UCS_OK && next().kind == UCX_EVENT_ARRIVED);
	}
	CHECK(pthread_join(thread, NULL) == 0);
	close_receiver();
}

int main(void)
{
	RUN(headers_of_any_other_length_are_refused);
	RUN(tokens_must_be_right);
	RUN(slots_must_exist);
	RUN(lengths_must_fit);
	RUN(every_slot_is_filled_to_its_last_byte);
	RUN(a_slot_is_occupied_until_it_is_posted);
	RUN(a_rendezvous_occupies_its_slot);
	RUN(a_failed_rendezvous_has_no_bytes);
	RUN(events_have_more_numbers_than_32_bits);
	RUN(a_worker_ends_with_rendezvous);
	RUN(a_rendezvous_may_end_late);
	RUN(a_worker_ends_with_a_failed_sender);
	RUN(a_rendezvous_needs_its_sender);
	RUN(another_thread_posts);
	return 0;
}
