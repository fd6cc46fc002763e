/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from the CPU to a DPA: receives, lengths, lifetime, notification. */
#include "msgq_end.h"

#include <sched.h>
#include <stdatomic.h>

#define FIRST_CONSUMER 1

/* ---- code of the DPA ---- */

static atomic_uint activations, drained;

static atomic_bool go_on;

void draining(uint64_t handles);
void dawdling(uint64_t handles);

/* Handles what has arrived, rearms, and waits for more. */
void draining(uint64_t handles)
{
	const struct msgq_handles *handle = (const struct msgq_handles *)(uintptr_t)handles;
	doca_dpa_dev_comch_consumer_completion_element_t element;
	uint32_t count = 0;
	atomic_fetch_add(&activations, 1);
	while (soft_doca_dpa_dev_comch_consumer_get_completion(handle->arrivals, &element))
		count++;
	soft_doca_dpa_dev_comch_consumer_completion_ack(handle->arrivals, count);
	soft_doca_dpa_dev_comch_consumer_completion_request_notification(handle->arrivals);
	soft_doca_dpa_dev_comch_consumer_ack(handle->consumer, count);
	atomic_fetch_add(&drained, count);
	soft_doca_dpa_dev_thread_reschedule();
}

/* Polls only from its second run on, which nothing but its own request can bring about. */
void dawdling(uint64_t handles)
{
	if (atomic_load(&activations) > 0)
		draining(handles);
	atomic_fetch_add(&activations, 1);
	while (!atomic_load(&go_on))
		sched_yield();
	soft_doca_dpa_dev_comch_consumer_completion_request_notification(
		((const struct msgq_handles *)(uintptr_t)handles)->arrivals);
	soft_doca_dpa_dev_thread_reschedule();
}

DPA_KIT_APP(test_app)
DPA_KIT_RPC(run_body, uint64_t, uint64_t)
DPA_KIT_KERNEL(draining)
DPA_KIT_KERNEL(dawdling)

struct ack {
	const struct msgq_handles *handles;
	uint64_t count;
};

static uint64_t ack_receives(void *arg)
{
	const struct ack *ack = arg;
	soft_doca_dpa_dev_comch_consumer_ack(ack->handles->consumer, (uint32_t)ack->count);
	return 0;
}

static uint64_t ack_elements(void *arg)
{
	const struct ack *ack = arg;
	soft_doca_dpa_dev_comch_consumer_completion_ack(ack->handles->arrivals, ack->count);
	return 0;
}

/* A message as code of the DPA has got it. */
struct got {
	const struct msgq_handles *handles;
	doca_dpa_dev_comch_consumer_completion_element_t element;
	const uint8_t *imm;
	uint32_t len, producer_id;
};

static uint64_t read_got(void *arg)
{
	struct got *got = arg;
	got->imm = soft_doca_dpa_dev_comch_consumer_get_completion_imm(got->element, &got->len);
	got->producer_id = soft_doca_dpa_dev_comch_consumer_get_completion_producer_id(got->element);
	return 0;
}

static uint64_t get(void *arg)
{
	struct got *got = arg;
	if (!soft_doca_dpa_dev_comch_consumer_get_completion(got->handles->arrivals, &got->element))
		return 0;
	read_got(got);
	return 1;
}

/* ---- tests ---- */

struct fixture fixture;

static struct doca_dpa *dpa;
static struct to_dpa end;

static void open_with(uint32_t num_recv)
{
	dpa = dpa_open();
	to_dpa_open(&end, dpa, NULL, num_recv);
}

static void close_all(void)
{
	to_dpa_close(&end);
	dpa_close(dpa);
}

static void receive(uint64_t count)
{
	on_dpa(dpa, ack_receives, &(struct ack){&end.handles, count});
}

static void free_elements(uint64_t count)
{
	on_dpa(dpa, ack_elements, &(struct ack){&end.handles, count});
}

static bool get_message(struct got *got)
{
	*got = (struct got){.handles = &end.handles};
	return on_dpa(dpa, get, got) == 1;
}

static bool is_message(const struct got *got, const char *text)
{
	return got->len == strlen(text) && memcmp(got->imm, text, got->len) == 0 && got->producer_id == 1;
}

static void messages_arrive_in_order(void)
{
	struct got got;
	open_with(4);
	CHECK(!get_message(&got));
	receive(4);
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "one", 3));
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "two", 3));
	CHECK(end.sent == 2);
	CHECK(get_message(&got) && is_message(&got, "one"));
	CHECK(get_message(&got) && is_message(&got, "two"));
	CHECK(!get_message(&got));
	free_elements(2);
	CHECK_DPA_OK(dpa);
	close_all();
}

/* AGAIN while the DPA has not acked receives, so that nothing is lost. */
static void a_message_needs_a_receive(void)
{
	struct got got;
	open_with(2);
	CHECK_RESULT(DOCA_ERROR_AGAIN, to_dpa_send(&end, FIRST_CONSUMER, "a", 1));
	receive(2);
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "a", 1));
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "b", 1));
	CHECK_RESULT(DOCA_ERROR_AGAIN, to_dpa_send(&end, FIRST_CONSUMER, "c", 1));
	/* New receives alone do not help: the two elements are not acked. */
	receive(2);
	CHECK_RESULT(DOCA_ERROR_AGAIN, to_dpa_send(&end, FIRST_CONSUMER, "c", 1));
	CHECK(get_message(&got));
	free_elements(1);
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "c", 1));
	CHECK_RESULT(DOCA_ERROR_AGAIN, to_dpa_send(&end, FIRST_CONSUMER, "d", 1));
	CHECK(get_message(&got) && is_message(&got, "b"));
	CHECK(get_message(&got) && is_message(&got, "c"));
	CHECK_DPA_OK(dpa);
	close_all();
}

/* 5 receives are 8, and there are no more than that at once. */
static void receives_are_bounded(void)
{
	open_with(5);
	receive(8);
	CHECK_DPA_OK(dpa);
	receive(1);
	CHECK_DPA_FAILED(dpa);
	for (int i = 0; i < 8; i++)
		CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "x", 1));
	CHECK_RESULT(DOCA_ERROR_AGAIN, to_dpa_send(&end, FIRST_CONSUMER, "x", 1));
	close_all();
}

static void immediate_data_is_bounded(void)
{
	uint8_t longest[33] = {[31] = 1};
	struct got got;
	open_with(4);
	receive(4);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, to_dpa_send(&end, FIRST_CONSUMER, longest, 33));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, to_dpa_send(&end, FIRST_CONSUMER, longest, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, to_dpa_send(&end, 2, longest, 1));
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, longest, 32));
	CHECK(get_message(&got) && got.len == 32 && got.imm[31] == 1);
	CHECK(end.failed == 0);
	close_all();
}

/* The consumer's own limit counts, too. */
static void a_consumer_can_take_less(void)
{
	uint8_t imm[9] = {0};
	open_with(4);
	struct doca_ctx *ctx = soft_doca_comch_consumer_as_ctx(end.consumer);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_consumer_set_imm_data_len(end.consumer, 8));
	CHECK_OK(soft_doca_ctx_stop(ctx));
	CHECK_OK(soft_doca_comch_consumer_set_imm_data_len(end.consumer, 8));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, to_dpa_send(&end, FIRST_CONSUMER, imm, 8));
	CHECK_OK(soft_doca_ctx_start(ctx));
	CHECK_OK(soft_doca_comch_consumer_get_dpa_handle(end.consumer, &end.handles.consumer));
	receive(4);
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, imm, 8));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, to_dpa_send(&end, FIRST_CONSUMER, imm, 9));
	close_all();
}

/* A task's data is copied when it is allocated, and a buffer is refused. */
static void a_task_has_no_buffer(void)
{
	struct doca_comch_producer_task_send *task;
	uint8_t imm[] = "copied";
	struct got got;
	open_with(4);
	receive(4);
	CHECK_OK(soft_doca_comch_producer_task_send_alloc_init(end.producer, (struct doca_buf *)imm, imm, 6,
							       FIRST_CONSUMER, &task));
	struct doca_task *base = soft_doca_comch_producer_task_send_as_task(task);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_try_submit(base));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_submit(base));
	soft_doca_comch_producer_task_send_set_buf(task, NULL);
	memset(imm, 0, sizeof(imm));
	CHECK_OK(soft_doca_task_submit(base));
	CHECK(get_message(&got) && is_message(&got, "copied"));
	CHECK(end.sent == 0);
	msgq_settle(end.pe);
	CHECK(end.sent == 1);
	close_all();
}

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define READABLE(address) (!__asan_address_is_poisoned(address))
#define CHECK_GONE(imm) CHECK(!READABLE(imm))
#else
#define CHECK_GONE(imm) CHECK((imm)[0] == 0xdd && (imm)[31] == 0xdd)
#endif

/* The bytes live until the element is acked; elements are acked from the oldest on. */
static void a_message_ends_with_its_ack(void)
{
	struct got first, second;
	open_with(2);
	receive(2);
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "first", 5));
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "second", 6));
	CHECK(get_message(&first) && get_message(&second));
	CHECK(is_message(&first, "first") && is_message(&second, "second"));
	free_elements(1);
	CHECK_GONE(first.imm);
	CHECK(is_message(&second, "second"));
	on_dpa(dpa, read_got, &second);
	CHECK(is_message(&second, "second"));
	CHECK_DPA_OK(dpa);
	struct got stale = first;
	on_dpa(dpa, read_got, &stale);
	CHECK(stale.imm == NULL && stale.len == 0 && stale.producer_id == 0);
	CHECK_DPA_FAILED(dpa);
	/* Its place is used again. */
	receive(1);
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "third", 5));
	CHECK(get_message(&stale) && stale.imm == first.imm && is_message(&stale, "third"));
	close_all();
}

static void only_what_was_polled_can_be_acked(void)
{
	struct got got;
	open_with(2);
	receive(2);
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "first", 5));
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "second", 6));
	CHECK(get_message(&got));
	free_elements(2);
	CHECK_DPA_FAILED(dpa);
	CHECK(get_message(&got) && is_message(&got, "second"));
	free_elements(2);
	close_all();
}

static uint64_t use_foreign_handles(void *arg)
{
	const struct msgq_handles *handles = arg;
	doca_dpa_dev_comch_consumer_completion_element_t element = 3;
	CHECK(soft_doca_dpa_dev_comch_consumer_get_completion(handles->consumer, &element) == 0 && element == 3);
	soft_doca_dpa_dev_comch_consumer_ack(handles->arrivals, 1);
	soft_doca_dpa_dev_comch_consumer_completion_request_notification(handles->consumer);
	return 0;
}

static void handles_are_checked(void)
{
	open_with(2);
	on_dpa(dpa, use_foreign_handles, &end.handles);
	CHECK_DPA_FAILED(dpa);
	/* Another DPA's code has no right to them. */
	struct doca_dpa *other = dpa_open();
	struct got got = {.handles = &end.handles};
	CHECK(on_dpa(other, get, &got) == 0);
	CHECK_DPA_FAILED(other);
	dpa_close(other);
	close_all();
	/* A handle ends with its object. */
	open_with(2);
	struct msgq_handles old = end.handles;
	close_all();
	open_with(2);
	on_dpa(dpa, ack_receives, &(struct ack){&old, 1});
	CHECK_DPA_FAILED(dpa);
	close_all();
}

static void await_drained(unsigned count)
{
	while (atomic_load(&drained) < count)
		sched_yield();
}

/* Messages that arrive while the kernel runs are not forgotten. */
static void a_request_sees_what_has_arrived(void)
{
	atomic_store(&activations, 0);
	atomic_store(&drained, 0);
	dpa = dpa_open();
	struct doca_dpa_thread *thread = thread_open(dpa, dawdling, (uint64_t)(uintptr_t)&end.handles);
	to_dpa_open(&end, dpa, thread, 4);
	receive(4);
	CHECK_OK(soft_doca_dpa_thread_run(thread));
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "one", 3));
	while (atomic_load(&activations) == 0)
		sched_yield();
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "two", 3));
	atomic_store(&go_on, true);
	await_drained(2);
	CHECK_DPA_OK(dpa);
	to_dpa_close(&end);
	CHECK_OK(soft_doca_dpa_thread_destroy(thread));
	dpa_close(dpa);
}

/* Each message activates the thread, whether it arrives before or after the request for notification. */
static void arrivals_activate_the_thread(void)
{
	atomic_store(&activations, 0);
	atomic_store(&drained, 0);
	dpa = dpa_open();
	struct doca_dpa_thread *thread = thread_open(dpa, draining, (uint64_t)(uintptr_t)&end.handles);
	to_dpa_open(&end, dpa, thread, 4);
	receive(4);
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "early", 5));
	CHECK(atomic_load(&activations) == 0);
	CHECK_OK(soft_doca_dpa_thread_run(thread));
	await_drained(1);
	for (unsigned i = 2; i <= 2000; i++) {
		while (to_dpa_send(&end, FIRST_CONSUMER, &i, sizeof(i)) == DOCA_ERROR_AGAIN)
			sched_yield();
		if (i % 3 == 0)
			await_drained(i);
	}
	await_drained(2000);
	CHECK(atomic_load(&activations) >= 667);
	CHECK_DPA_OK(dpa);
	to_dpa_close(&end);
	CHECK_OK(soft_doca_dpa_thread_destroy(thread));
	dpa_close(dpa);
}

/* An injected fault ends the task with its code, and the message does not arrive. */
static void a_send_can_be_made_to_fail(void)
{
	struct got got;
	fixture_close(&fixture);
	setenv("DMA_COPY_SOFT_FAULTS", "fail=2:CONNECTION_RESET", 1);
	fixture_open(&fixture, NULL);
	open_with(4);
	receive(4);
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "one", 3));
	CHECK_OK(to_dpa_send(&end, FIRST_CONSUMER, "two", 3));
	CHECK(end.sent == 1 && end.failed == 1 && end.last_failure == DOCA_ERROR_CONNECTION_RESET);
	CHECK(get_message(&got) && is_message(&got, "one"));
	CHECK(!get_message(&got));
	close_all();
	unsetenv("DMA_COPY_SOFT_FAULTS");
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(messages_arrive_in_order);
	RUN(a_message_needs_a_receive);
	RUN(receives_are_bounded);
	RUN(immediate_data_is_bounded);
	RUN(a_consumer_can_take_less);
	RUN(a_task_has_no_buffer);
	RUN(a_message_ends_with_its_ack);
	RUN(only_what_was_polled_can_be_acked);
	RUN(handles_are_checked);
	RUN(a_request_sees_what_has_arrived);
	RUN(arrivals_activate_the_thread);
	RUN(a_send_can_be_made_to_fail);
	fixture_close(&fixture);
	return 0;
}
