/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that misbehave on the fast path: in the news of a consumer, on its lane, and in deliveries. */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../comch_connection.h"
#include "../comch_wire.h"
#include "../fast.h"
#include "../lane.h"
#include "../remote_wire.h"
#include "fast_pair.h"

static int connect_server(struct end *server)
{
	struct soft_comch_address address;
	struct soft_frame hello = soft_frame_make(SOFT_FRAME_HELLO, 4080, 0), welcome;
	hello.credits = 10;
	soft_comch_address_make(&address, stage.host->info->pci_addr, stage.dpu->info->pci_addr, NAME);
	int fd = soft_comch_connect(&address);
	CHECK(fd >= 0 && send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
	settle_one(server);
	CHECK(recv(fd, &welcome, sizeof(welcome), 0) == sizeof(welcome));
	return fd;
}

struct news {
	struct soft_frame frame;
	struct soft_consumer_info info;
};

static struct news good_news(uint32_t id)
{
	return (struct news){.frame = soft_frame_make(SOFT_FRAME_CONSUMER, id, 0), .info = {.num_tasks = 4}};
}

enum company { ALONE, WITH_LANE, WITH_PIPE };

/* Each of these ends the connection. */
static const struct {
	enum soft_frame_type type;
	enum company company;
	uint32_t id, num_tasks, imm_data_len;
} untrue[] = {
	{SOFT_FRAME_CONSUMER, ALONE, 5, 4, 0},
	{SOFT_FRAME_CONSUMER, WITH_PIPE, 5, 4, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, 5, 0, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, 5, UINT32_MAX, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, 5, 4, UINT32_MAX},
	{SOFT_FRAME_CONSUMER, WITH_LANE, SOFT_NO_ID, 4, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, SOFT_GONE_ID, 4, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, 6, 4, 0}, /* the server's own */
	{SOFT_FRAME_EXPIRED, ALONE, 5, 0, 0},      /* and never was */
};

static void send_news(int fd, const struct news *news, enum company company)
{
	int ends[2], pipes[2];
	size_t len = news->frame.type == SOFT_FRAME_EXPIRED ? sizeof(news->frame) : sizeof(*news);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 && pipe(pipes) == 0);
	CHECK(remote_send(fd, news, len, company == WITH_LANE ? &ends[1] : &pipes[0], company == ALONE ? 0 : 1));
	for (unsigned i = 0; i < 2; i++) {
		close(ends[i]);
		close(pipes[i]);
	}
}

static void bad_news(void)
{
	struct end *server = &pair.server;
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	for (unsigned i = 0; i < sizeof(untrue) / sizeof(untrue[0]); i++) {
		int fd = connect_server(server);
		struct news news = {
			.frame = soft_frame_make(untrue[i].type, untrue[i].id, 0),
			.info = {.num_tasks = untrue[i].num_tasks, .imm_data_len = untrue[i].imm_data_len},
		};
		send_news(fd, &news, untrue[i].company);
		settle_one(server);
		CHECK(server->disconnects == i + 1 && server->new_consumers == 0);
		close(fd);
	}
	end_close(server);
}

static void the_same_consumer_twice(void)
{
	struct end *server = &pair.server;
	int ends[2];
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	int fd = connect_server(server);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	struct news news = good_news(5);
	CHECK(remote_send(fd, &news, sizeof(news), &ends[1], 1));
	settle_one(server);
	CHECK(server->new_consumers == 1 && server->disconnects == 0);
	CHECK(remote_send(fd, &news, sizeof(news), &ends[1], 1));
	settle_one(server);
	CHECK(server->expired_consumers == 1 && server->disconnects == 1);
	close(fd);
	close(ends[0]);
	close(ends[1]);
	end_close(server);
}

/* A consumer that posts what it does not share, or more than it has tasks for, is gone for its producers; nobody
 * writes anywhere. */
static void bad_slots(void)
{
	struct end *server = &pair.server;
	struct fast_end *producer = &pair.producer;
	int ends[2];
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	int fd = connect_server(server);
	producer_open(producer, server);
	CHECK_OK(soft_doca_ctx_start(producer->ctx));
	for (uint32_t id = 1; id <= 5; id += 2) {
		struct news news = good_news(id);
		struct soft_slot slot = {.addr = 0x1000, .capacity = 4096};
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
		CHECK(remote_send(fd, &news, sizeof(news), &ends[1], 1));
		settle_one(server);
		unsigned failed = producer->failed;
		for (unsigned i = 0; i < (id == 1 ? 5u : 1u); i++)
			CHECK(send(ends[0], &slot, id == 3 ? 7 : sizeof(slot), 0) > 0);
		if (id == 5) { /* a descriptor that leads nowhere */
			CHECK_OK(produce(producer, id, 0, 10, NULL, 0));
			settle_fast(NULL, server, producer, NULL);
			CHECK(producer->failed == failed + 1 && producer->last_failure == DOCA_ERROR_IO_FAILED);
		} else {
			CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, produce(producer, id, 0, 10, NULL, 0));
		}
		close(ends[0]);
		close(ends[1]);
	}
	fast_close(producer);
	close(fd);
	settle_one(server);
	CHECK(server->expired_consumers == 3);
	end_close(server);
}

#define WHOLE sizeof(struct soft_delivery)

/* Against 10 bytes of room, if any is posted. */
static const struct {
	bool posted;
	size_t len; /* of the packet */
	struct soft_delivery delivery;
} incredible[] = {
	{false, WHOLE, {.producer_id = 1, .len = 10}},
	{true, WHOLE, {.producer_id = 1, .len = 11}},
	{true, WHOLE + FAST_IMM + 1, {.producer_id = 1, .len = 10, .imm_len = FAST_IMM + 1}},
	{true, WHOLE, {.producer_id = 1, .len = 10, .imm_len = 8}},
	{true, WHOLE, {.producer_id = SOFT_NO_ID, .len = 10}},
	{true, WHOLE, {.producer_id = SOFT_GONE_ID, .len = 10}},
	{true, WHOLE, {.producer_id = 1}},
	{true, WHOLE, {.producer_id = 1, .len = 10, .reserved = 1}},
	{true, 3, {.producer_id = 1, .len = 10}},
};

static void send_delivery(const struct soft_delivery *delivery, size_t len)
{
	uint8_t packet[WHOLE + FAST_IMM + 1] = {0};
	struct soft_lane *lane = soft_lane_find(pair.server.connection->fast, consumer_id(&pair.consumer));
	CHECK(lane != NULL);
	memcpy(packet, delivery, sizeof(*delivery));
	CHECK(send(lane->fd, packet, len, 0) == (ssize_t)len);
	soft_lane_unref(lane);
}

/* The producer's side of a consumer that this process has: what it says is checked against what was posted. */
static void bad_deliveries(void)
{
	for (unsigned i = 0; i < sizeof(incredible) / sizeof(incredible[0]); i++) {
		pair_open();
		if (incredible[i].posted)
			CHECK_OK(post(&pair.consumer, 0, 10));
		settle_pair();
		send_delivery(&incredible[i].delivery, incredible[i].len);
		settle_pair();
		CHECK(fast_state(&pair.consumer) == DOCA_CTX_STATE_IDLE && pair.consumer.completed == 0);
		CHECK(pair.consumer.failed == incredible[i].posted && state_of(&pair.client) == DOCA_CTX_STATE_RUNNING);
		pair_close();
	}
}

int main(void)
{
	stage_open(&stage, NULL);
	RUN(bad_news);
	RUN(the_same_consumer_twice);
	RUN(bad_slots);
	RUN(bad_deliveries);
	stage_close(&stage);
	return 0;
}
