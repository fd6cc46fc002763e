/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers and producers on their own threads, while the control channels stay on theirs. Each message carries its
 * sender and a number; each consumer receives every producer's messages whole and in order.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "fast_end.h"

#define PAIRS 3 /* in each direction */
#define MESSAGES 400
#define SLOT 256
#define SLOTS 16
#define ROUNDS 3

struct message {
	uint32_t producer;
	uint32_t number;
	uint8_t filler[SLOT - 8];
};

struct control {
	struct end *end;
	pthread_t thread;
};

static struct end client, server;
static atomic_bool controls_stop;
static _Atomic uint32_t consumer_ids[2 * PAIRS]; /* direction d has those from d * PAIRS on */

static void *run_control(void *arg)
{
	struct end *end = arg;
	while (!atomic_load(&controls_stop)) {
		if (!soft_doca_pe_progress(end->pe))
			sched_yield();
	}
	return NULL;
}

/* ---- consumers ---- */

struct receiver {
	struct fast_end end;
	struct end *control;
	unsigned index;
	uint32_t next[PAIRS];
	pthread_t thread;
};

static void on_message(struct fast_end *end, struct doca_buf *buf)
{
	struct receiver *receiver = (struct receiver *)end;
	void *data;
	size_t len;
	struct message message;
	CHECK_OK(soft_doca_buf_get_data(buf, &data));
	CHECK_OK(soft_doca_buf_get_data_len(buf, &len));
	if (len != 0) { /* not flushed */
		CHECK(len == sizeof(message));
		memcpy(&message, data, sizeof(message));
		CHECK(message.producer < PAIRS && message.number == receiver->next[message.producer]++);
		for (size_t i = 0; i < sizeof(message.filler); i++)
			CHECK(message.filler[i] == (uint8_t)(message.number + message.producer + i));
	}
	CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	if (fast_state(end) == DOCA_CTX_STATE_RUNNING)
		CHECK_OK(post(end, (size_t)((uint8_t *)data - end->memory), SLOT));
}

static void start_consumer(struct fast_end *end)
{
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(end->ctx));
	while (fast_state(end) != DOCA_CTX_STATE_RUNNING) {
		if (!soft_doca_pe_progress(end->pe))
			sched_yield();
	}
}

static void *run_receiver(void *arg)
{
	struct receiver *receiver = arg;
	struct fast_end *end = &receiver->end;
	consumer_open(end, receiver->control);
	end->on_completed = on_message;
	start_consumer(end);
	for (unsigned i = 0; i < SLOTS; i++)
		CHECK_OK(post(end, i * SLOT, SLOT));
	atomic_store(&consumer_ids[receiver->index], consumer_id(end));
	while (end->completed < PAIRS * MESSAGES) {
		if (!soft_doca_pe_progress(end->pe))
			sched_yield();
	}
	fast_close(end);
	for (unsigned i = 0; i < PAIRS; i++)
		CHECK(receiver->next[i] == MESSAGES);
	return NULL;
}

/* ---- producers ---- */

struct sender {
	struct fast_end end;
	struct end *control;
	unsigned index, direction;
	pthread_t thread;
};

static void write_message(struct fast_end *end, unsigned slot, uint32_t producer, uint32_t number)
{
	struct message message = {.producer = producer, .number = number};
	for (size_t i = 0; i < sizeof(message.filler); i++)
		message.filler[i] = (uint8_t)(number + producer + i);
	memcpy(end->memory + slot * SLOT, &message, sizeof(message));
}

/* INVALID_VALUE until the control channel has received the CONSUMER frame. */
static void send_with_retries(struct fast_end *end, uint32_t to, size_t offset)
{
	for (;;) {
		doca_error_t result = produce(end, to, offset, SLOT, NULL, 0);
		if (result == DOCA_SUCCESS)
			return;
		CHECK(result == DOCA_ERROR_AGAIN || result == DOCA_ERROR_INVALID_VALUE);
		if (!soft_doca_pe_progress(end->pe))
			sched_yield();
	}
}

static void *run_sender(void *arg)
{
	struct sender *sender = arg;
	struct fast_end *end = &sender->end;
	producer_open(end, sender->control);
	CHECK_OK(soft_doca_ctx_start(end->ctx));
	for (uint32_t number = 0; number < MESSAGES; number++) {
		for (unsigned to = 0; to < PAIRS; to++) {
			uint32_t id;
			while ((id = atomic_load(&consumer_ids[sender->direction * PAIRS + to])) == 0)
				sched_yield();
			write_message(end, to, sender->index, number);
			send_with_retries(end, id, to * SLOT);
		}
		while (end->completed < (number + 1) * PAIRS) {
			if (!soft_doca_pe_progress(end->pe))
				sched_yield();
		}
	}
	CHECK(end->failed == 0);
	fast_close(end);
	return NULL;
}

/* ---- the whole ---- */

static void open_pairs(struct receiver *receivers, struct sender *senders)
{
	for (unsigned i = 0; i < 2 * PAIRS; i++) {
		unsigned direction = i / PAIRS;
		receivers[i] = (struct receiver){.control = direction == 0 ? &client : &server, .index = i};
		senders[i] = (struct sender){
			.control = direction == 0 ? &server : &client, .index = i % PAIRS, .direction = direction};
		atomic_store(&consumer_ids[i], 0);
	}
	for (unsigned i = 0; i < 2 * PAIRS; i++) {
		CHECK(pthread_create(&receivers[i].thread, NULL, run_receiver, &receivers[i]) == 0);
		CHECK(pthread_create(&senders[i].thread, NULL, run_sender, &senders[i]) == 0);
	}
}

static void start_controls(struct control *controls)
{
	atomic_store(&controls_stop, false);
	for (unsigned i = 0; i < 2; i++) {
		controls[i].end = i == 0 ? &client : &server;
		CHECK(pthread_create(&controls[i].thread, NULL, run_control, controls[i].end) == 0);
	}
}

static void stop_controls(struct control *controls)
{
	atomic_store(&controls_stop, true);
	for (unsigned i = 0; i < 2; i++)
		CHECK(pthread_join(controls[i].thread, NULL) == 0);
}

static void many_threads(void)
{
	struct control controls[2];
	static struct receiver receivers[2 * PAIRS];
	static struct sender senders[2 * PAIRS];
	for (unsigned round = 0; round < ROUNDS; round++) {
		open_both(&client, &server);
		start_controls(controls);
		open_pairs(receivers, senders);
		for (unsigned i = 0; i < 2 * PAIRS; i++) {
			CHECK(pthread_join(senders[i].thread, NULL) == 0);
			CHECK(pthread_join(receivers[i].thread, NULL) == 0);
		}
		stop_controls(controls);
		settle_both(&client, &server);
		CHECK(server.new_consumers == PAIRS && client.new_consumers == PAIRS);
		CHECK(server.expired_consumers == PAIRS && client.expired_consumers == PAIRS);
		close_both(&client, &server);
	}
}

/* ---- ends in the middle ---- */

static void *produce_until_stopped(void *arg)
{
	struct sender *sender = arg;
	struct fast_end *end = &sender->end;
	producer_open(end, sender->control);
	doca_error_t result = soft_doca_ctx_start(end->ctx);
	while (result == DOCA_SUCCESS && fast_state(end) == DOCA_CTX_STATE_RUNNING) {
		uint32_t id = atomic_load(&consumer_ids[0]);
		if (id != 0)
			produce(end, id, 0, SLOT, NULL, 0);
		if (!soft_doca_pe_progress(end->pe))
			sched_yield();
	}
	fast_close(end);
	return NULL;
}

/* Gives its buffer back and posts no other. */
static void *consume_a_little(void *arg)
{
	struct receiver *receiver = arg;
	struct fast_end *end = &receiver->end;
	consumer_open(end, receiver->control);
	for (unsigned round = 0; round < 20; round++) {
		start_consumer(end);
		for (unsigned i = 0; i < SLOTS; i++)
			CHECK_OK(post(end, i * SLOT, SLOT));
		atomic_store(&consumer_ids[0], consumer_id(end));
		for (unsigned i = 0; i < 50; i++)
			soft_doca_pe_progress(end->pe);
		soft_doca_ctx_stop(end->ctx);
		while (soft_doca_pe_progress(end->pe) || fast_state(end) != DOCA_CTX_STATE_IDLE)
			;
		memset(end->memory, 0, FAST_MEMORY); /* no producer may write any more, as TSan and ASan check */
	}
	fast_close(end);
	return NULL;
}

/* A consumer comes and goes while producers write; in the end the peer leaves without a word. */
static void consumers_come_and_go(void)
{
	struct control controls[2];
	struct receiver receiver = {.control = &client};
	struct sender senders[2] = {{.control = &server}, {.control = &server}};
	open_both(&client, &server);
	atomic_store(&consumer_ids[0], 0);
	start_controls(controls);
	for (unsigned i = 0; i < 2; i++)
		CHECK(pthread_create(&senders[i].thread, NULL, produce_until_stopped, &senders[i]) == 0);
	CHECK(pthread_create(&receiver.thread, NULL, consume_a_little, &receiver) == 0);
	CHECK(pthread_join(receiver.thread, NULL) == 0);
	stop_controls(controls);
	settle_both(&client, &server);
	CHECK(server.expired_consumers == 20);
	end_close(&client);
	settle_one(&server);
	CHECK(server.disconnects == 1);
	for (unsigned i = 0; i < 2; i++)
		CHECK(pthread_join(senders[i].thread, NULL) == 0);
	end_close(&server);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(many_threads);
	RUN(consumers_come_and_go);
	fixture_close(&fixture);
	return 0;
}
