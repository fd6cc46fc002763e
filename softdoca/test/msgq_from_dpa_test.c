/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from a DPA to the CPU: receives, errors, completions, and both directions at once. */
#include "msgq_end.h"

#define FIRST_CONSUMER 1
#define FLUSH DOCA_DPA_DEV_SUBMIT_FLAG_FLUSH
#define UNREPORTED DOCA_DPA_DEV_SUBMIT_FLAG_OPTIMIZE_REPORTS

/* ---- code of the DPA ---- */

/* The message queues of the kernel that answers. */
struct echo {
	struct msgq_handles in, out;
};

void echoing(uint64_t arg);
void pouring(uint64_t arg);

static void answer(const struct echo *echo, doca_dpa_dev_comch_consumer_completion_element_t element)
{
	uint32_t len;
	const uint8_t *imm = soft_doca_dpa_dev_comch_consumer_get_completion_imm(element, &len);
	soft_doca_dpa_dev_comch_producer_post_send_imm_only(echo->out.producer, FIRST_CONSUMER, imm, len,
							    FLUSH | UNREPORTED);
}

/* Sends back what arrives. */
void echoing(uint64_t arg)
{
	const struct echo *echo = (const struct echo *)(uintptr_t)arg;
	doca_dpa_dev_comch_consumer_completion_element_t element;
	uint32_t count = 0;
	while (soft_doca_dpa_dev_comch_consumer_get_completion(echo->in.arrivals, &element)) {
		answer(echo, element);
		count++;
	}
	soft_doca_dpa_dev_comch_consumer_completion_ack(echo->in.arrivals, count);
	soft_doca_dpa_dev_comch_consumer_completion_request_notification(echo->in.arrivals);
	soft_doca_dpa_dev_comch_consumer_ack(echo->in.consumer, count);
	soft_doca_dpa_dev_thread_reschedule();
}

/* Sends whenever it can, and never ends. */
void pouring(uint64_t arg)
{
	const struct msgq_handles *handles = (const struct msgq_handles *)(uintptr_t)arg;
	static const uint8_t imm[] = {1};
	for (;;) {
		if (!soft_doca_dpa_dev_comch_producer_is_consumer_empty(handles->producer, FIRST_CONSUMER))
			soft_doca_dpa_dev_comch_producer_post_send_imm_only(handles->producer, FIRST_CONSUMER, imm,
									    sizeof(imm), FLUSH | UNREPORTED);
	}
}

DPA_KIT_APP(test_app)
DPA_KIT_RPC(run_body, uint64_t, uint64_t)
DPA_KIT_KERNEL(echoing)
DPA_KIT_KERNEL(pouring)

struct send {
	const struct msgq_handles *handles;
	uint32_t consumer_id;
	const void *imm;
	uint32_t len, flags;
};

static uint64_t send_message(void *arg)
{
	const struct send *send = arg;
	soft_doca_dpa_dev_comch_producer_post_send_imm_only(send->handles->producer, send->consumer_id, send->imm,
							    send->len, send->flags);
	return 0;
}

/* The data is copied by the call. */
static uint64_t send_from_stack(void *arg)
{
	uint8_t imm[4] = {1, 2, 3, 4};
	soft_doca_dpa_dev_comch_producer_post_send_imm_only(((const struct msgq_handles *)arg)->producer,
							    FIRST_CONSUMER, imm, sizeof(imm), FLUSH);
	memset(imm, 0, sizeof(imm));
	return 0;
}

static uint64_t ack_receives(void *arg)
{
	soft_doca_dpa_dev_comch_consumer_ack(((const struct msgq_handles *)arg)->consumer, 8);
	return 0;
}

static uint64_t notify(void *arg)
{
	soft_doca_dpa_dev_thread_notify(*(const doca_dpa_dev_notification_completion_t *)arg);
	return 0;
}

static uint64_t is_empty(void *arg)
{
	const struct send *send = arg;
	return (uint64_t)soft_doca_dpa_dev_comch_producer_is_consumer_empty(send->handles->producer, send->consumer_id);
}

/* A completion as code of the DPA has got it. */
struct completed {
	const struct msgq_handles *handles;
	doca_dpa_dev_completion_element_t element;
	doca_dpa_dev_completion_type_t type;
	uint32_t user_data;
};

static uint64_t get_completion(void *arg)
{
	struct completed *completed = arg;
	if (!soft_doca_dpa_dev_get_completion(completed->handles->completions, &completed->element))
		return 0;
	completed->type = soft_doca_dpa_dev_get_completion_type(completed->element);
	completed->user_data = soft_doca_dpa_dev_get_completion_user_data(completed->element);
	soft_doca_dpa_dev_completion_ack(completed->handles->completions, 1);
	return 1;
}

static uint64_t read_completion(void *arg)
{
	struct completed *completed = arg;
	completed->type = soft_doca_dpa_dev_get_completion_type(completed->element);
	return 0;
}

static uint64_t ack_two(void *arg)
{
	soft_doca_dpa_dev_completion_ack(((const struct msgq_handles *)arg)->completions, 2);
	return 0;
}

/* ---- tests ---- */

struct fixture fixture;

static struct doca_dpa *dpa;
static struct from_dpa end;

static void open_with(uint32_t num_send)
{
	dpa = dpa_open();
	from_dpa_open(&end, dpa, num_send);
}

static void close_all(void)
{
	from_dpa_close(&end);
	dpa_close(dpa);
}

static void send_text(const char *text, uint32_t flags)
{
	on_dpa(dpa, send_message, &(struct send){&end.handles, FIRST_CONSUMER, text, (uint32_t)strlen(text), flags});
}

/* Counts completions, which must all be of that type. */
static unsigned count_completions(doca_dpa_dev_completion_type_t type)
{
	struct completed completed = {.handles = &end.handles};
	unsigned count = 0;
	while (on_dpa(dpa, get_completion, &completed)) {
		CHECK(completed.type == type && completed.user_data == 0x345678);
		count++;
	}
	return count;
}

static bool got_text(const char *text)
{
	return end.last_len == strlen(text) && memcmp(end.last_imm, text, end.last_len) == 0;
}

static void messages_complete_receives(void)
{
	open_with(4);
	from_dpa_post(&end, 2);
	send_text("one", FLUSH);
	CHECK(end.received == 0);
	msgq_settle(end.pe);
	CHECK(end.received == 1 && got_text("one") && end.last_producer == 1);
	on_dpa(dpa, send_from_stack, &end.handles);
	msgq_settle(end.pe);
	CHECK(end.received == 2 && end.last_len == 4 && memcmp(end.last_imm, "\1\2\3\4", 4) == 0);
	CHECK_DPA_OK(dpa);
	close_all();
}

/* The notification handle announces what a thread of the DPA sends. */
static void a_message_wakes_the_engine(void)
{
	open_with(4);
	from_dpa_post(&end, 1);
	CHECK_OK(soft_doca_pe_request_notification(end.pe));
	CHECK(!fixture_readable(end.pe, 0));
	send_text("wake", FLUSH);
	CHECK(fixture_readable(end.pe, 0));
	CHECK_OK(soft_doca_pe_clear_notification(end.pe, 0));
	msgq_settle(end.pe);
	CHECK(end.received == 1);
	CHECK_OK(soft_doca_pe_request_notification(end.pe));
	CHECK(!fixture_readable(end.pe, 0));
	close_all();
}

static void empty_is_what_no_message_can_reach(void)
{
	struct send send = {.handles = &end.handles, .consumer_id = FIRST_CONSUMER};
	open_with(4);
	CHECK(on_dpa(dpa, is_empty, &send) == 1);
	from_dpa_post(&end, 1);
	CHECK(on_dpa(dpa, is_empty, &send) == 0);
	send_text("x", FLUSH);
	CHECK(on_dpa(dpa, is_empty, &send) == 1);
	CHECK_DPA_OK(dpa);
	send.consumer_id = 2;
	CHECK(on_dpa(dpa, is_empty, &send) == 1);
	CHECK_DPA_FAILED(dpa);
	close_all();
}

/* Every failed operation has a completion, and the DPA has failed; nothing arrives. */
static void check_refused(struct send send, unsigned receives)
{
	open_with(4);
	from_dpa_post(&end, receives);
	send.handles = &end.handles;
	on_dpa(dpa, send_message, &send);
	CHECK_DPA_FAILED(dpa);
	CHECK(count_completions(DOCA_DPA_DEV_COMP_SEND_ERR) == 1);
	msgq_settle(end.pe);
	CHECK(end.received == 0);
	close_all();
}

static void what_cannot_be_sent_fails(void)
{
	static const uint8_t imm[33];
	check_refused((struct send){.consumer_id = FIRST_CONSUMER, .imm = imm, .len = 1}, 0);
	check_refused((struct send){.consumer_id = FIRST_CONSUMER, .imm = imm, .len = 33}, 1);
	check_refused((struct send){.consumer_id = FIRST_CONSUMER, .imm = imm, .len = 0}, 1);
	check_refused((struct send){.consumer_id = FIRST_CONSUMER, .imm = NULL, .len = 1}, 1);
	check_refused((struct send){.consumer_id = FIRST_CONSUMER, .imm = imm, .len = 1, .flags = 4}, 1);
	check_refused((struct send){.consumer_id = 2, .imm = imm, .len = 1}, 1);
	check_refused((struct send){.consumer_id = FIRST_CONSUMER, .imm = imm, .len = 1, .flags = UNREPORTED}, 0);
}

/* Operations without a report are reported with the next that has one, as many as the send queue remembers. */
static void reports_can_be_left_out(void)
{
	open_with(4);
	end.reposts = true;
	from_dpa_post(&end, 2);
	send_text("a", FLUSH | UNREPORTED);
	CHECK(count_completions(DOCA_DPA_DEV_COMP_SEND) == 0);
	send_text("b", FLUSH);
	CHECK(count_completions(DOCA_DPA_DEV_COMP_SEND) == 2);
	for (int i = 0; i < 1000; i++) {
		msgq_settle(end.pe);
		send_text("c", FLUSH | UNREPORTED);
	}
	msgq_settle(end.pe);
	send_text("d", FLUSH);
	CHECK(count_completions(DOCA_DPA_DEV_COMP_SEND) == 4);
	msgq_settle(end.pe);
	CHECK(end.received == 1003);
	CHECK_DPA_OK(dpa);
	close_all();
}

static void a_full_completion_queue_is_an_error(void)
{
	open_with(3);
	from_dpa_post(&end, 6);
	for (int i = 0; i < 4; i++)
		send_text("x", FLUSH);
	CHECK_DPA_OK(dpa);
	send_text("x", FLUSH);
	CHECK_DPA_FAILED(dpa);
	CHECK(count_completions(DOCA_DPA_DEV_COMP_SEND) == 4);
	close_all();
}

static void an_acked_completion_is_gone(void)
{
	struct completed completed = {.handles = &end.handles};
	open_with(4);
	from_dpa_post(&end, 2);
	send_text("x", FLUSH);
	send_text("x", FLUSH);
	CHECK(on_dpa(dpa, get_completion, &completed) == 1);
	CHECK_DPA_OK(dpa);
	on_dpa(dpa, read_completion, &completed);
	CHECK_DPA_FAILED(dpa);
	close_all();
	open_with(4);
	from_dpa_post(&end, 2);
	send_text("x", FLUSH);
	on_dpa(dpa, ack_two, &end.handles);
	CHECK_DPA_FAILED(dpa);
	close_all();
}

static void a_receive_has_no_buffer(void)
{
	struct doca_comch_consumer_task_post_recv *task;
	open_with(4);
	CHECK_OK(soft_doca_comch_consumer_task_post_recv_alloc_init(end.consumer, (struct doca_buf *)&task, &task));
	struct doca_task *base = soft_doca_comch_consumer_task_post_recv_as_task(task);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_try_submit(base));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_task_submit(base));
	soft_doca_comch_consumer_task_post_recv_set_buf(task, NULL);
	CHECK_OK(soft_doca_task_submit(base));
	send_text("x", FLUSH);
	msgq_settle(end.pe);
	CHECK(end.received == 1);
	close_all();
}

/* Messages that have arrived complete their tasks, also after the stop; the others come back. */
static void a_stop_keeps_what_has_arrived(void)
{
	struct doca_ctx *ctx;
	open_with(4);
	ctx = soft_doca_comch_consumer_as_ctx(end.consumer);
	from_dpa_post(&end, 3);
	send_text("kept", FLUSH);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_stop(ctx));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_consumer_destroy(end.consumer));
	send_text("too late", FLUSH);
	CHECK_DPA_FAILED(dpa);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_comch_msgq_stop(end.msgq));
	msgq_settle(end.pe);
	CHECK(end.received == 1 && got_text("kept"));
	CHECK(end.failed == 2 && end.last_failure == DOCA_ERROR_SHUTDOWN);
	CHECK(msgq_state(ctx) == DOCA_CTX_STATE_IDLE);
	CHECK_OK(soft_doca_ctx_start(ctx));
	close_all();
}

/* Stopping a producer takes its handle, and lets its completion context go. */
static void a_stopped_producer_sends_nothing(void)
{
	open_with(4);
	from_dpa_post(&end, 1);
	struct doca_ctx *ctx = soft_doca_comch_producer_as_ctx(end.producer);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dpa_completion_stop(end.completions));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dpa_completion_destroy(end.completions));
	CHECK_OK(soft_doca_ctx_stop(ctx));
	send_text("x", FLUSH);
	CHECK_DPA_FAILED(dpa);
	msgq_settle(end.pe);
	CHECK(end.received == 0);
	CHECK_OK(soft_doca_ctx_start(ctx));
	close_all();
}

/* ---- both directions ---- */

static void one_more_answer(struct from_dpa *answers)
{
	unsigned value;
	memcpy(&value, answers->last_imm, sizeof(value));
	CHECK(answers->last_len == sizeof(value) && value == answers->received);
}

/* The DPA's thread answers while the CPU sends, on two engines of one thread. */
static void two_queues_make_a_dialogue(void)
{
	struct to_dpa questions;
	struct echo echo;
	dpa = dpa_open();
	struct doca_dpa_thread *thread = thread_open(dpa, echoing, (uint64_t)(uintptr_t)&echo);
	to_dpa_open(&questions, dpa, thread, 8);
	from_dpa_open(&end, dpa, 8);
	end.reposts = true;
	end.on_received = one_more_answer;
	from_dpa_post(&end, MSGQ_TASKS);
	echo = (struct echo){.in = questions.handles, .out = end.handles};
	on_dpa(dpa, ack_receives, &questions.handles);
	CHECK_OK(soft_doca_dpa_thread_run(thread));
	unsigned asked = 0;
	while (end.received < 5000) {
		/* Never more questions than there are receives for the answers. */
		unsigned next = asked + 1;
		if (asked < 5000 && asked - end.received < MSGQ_TASKS)
			asked += to_dpa_send(&questions, FIRST_CONSUMER, &next, sizeof(next)) == DOCA_SUCCESS;
		msgq_settle(end.pe);
	}
	CHECK_DPA_OK(dpa);
	to_dpa_close(&questions);
	from_dpa_close(&end);
	CHECK_OK(soft_doca_dpa_thread_destroy(thread));
	dpa_close(dpa);
}

/* The order of public programs: the message queues end before the thread, whose kernel still uses them. */
static void queues_can_end_before_the_kernel(void)
{
	struct doca_dpa_notification_completion *notification;
	doca_dpa_dev_notification_completion_t handle;
	open_with(8);
	end.reposts = true;
	from_dpa_post(&end, MSGQ_TASKS);
	struct msgq_handles handles = end.handles;
	struct doca_dpa_thread *thread = thread_open(dpa, pouring, (uint64_t)(uintptr_t)&handles);
	CHECK_OK(soft_doca_dpa_notification_completion_create(dpa, thread, &notification));
	CHECK_OK(soft_doca_dpa_notification_completion_start(notification));
	CHECK_OK(soft_doca_dpa_notification_completion_get_dpa_handle(notification, &handle));
	CHECK_OK(soft_doca_dpa_thread_run(thread));
	on_dpa(dpa, notify, &handle);
	while (end.received < 1000)
		soft_doca_pe_progress(end.pe);
	from_dpa_close(&end);
	CHECK_OK(soft_doca_dpa_notification_completion_destroy(notification));
	CHECK_OK(soft_doca_dpa_thread_destroy(thread));
	dpa_close(dpa);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(messages_complete_receives);
	RUN(a_message_wakes_the_engine);
	RUN(empty_is_what_no_message_can_reach);
	RUN(what_cannot_be_sent_fails);
	RUN(reports_can_be_left_out);
	RUN(a_full_completion_queue_is_an_error);
	RUN(an_acked_completion_is_gone);
	RUN(a_receive_has_no_buffer);
	RUN(a_stop_keeps_what_has_arrived);
	RUN(a_stopped_producer_sends_nothing);
	RUN(two_queues_make_a_dialogue);
	RUN(queues_can_end_before_the_kernel);
	fixture_close(&fixture);
	return 0;
}
