/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that violate the protocol of the fast path: in CONSUMER frames, on a lane, and in deliveries. */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../device/comch_connection.h"
#include "../device/comch_wire.h"
#include "../device/fast.h"
#include "../device/lane.h"
#include "../device/remote_wire.h"
#include "fast_pair.h"

static int connect_server(struct end *server)
{
	struct soft_comch_address address;
	struct soft_frame hello = soft_frame_make(SOFT_FRAME_HELLO, 4080, 0), welcome;
	hello.credits = 10;
	soft_comch_address_make(&address, fixture.host->info->pci_addr, fixture.dpu->info->pci_addr, NAME);
	int fd = soft_comch_connect(&address);
	CHECK(fd >= 0 && send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
	settle_one(server);
	CHECK(recv(fd, &welcome, sizeof(welcome), 0) == sizeof(welcome));
	return fd;
}

struct consumer_frame {
	struct soft_frame frame;
	struct soft_consumer_info info;
};

static struct consumer_frame valid_frame(uint32_t id)
{
	return (struct consumer_frame){.frame = soft_frame_make(SOFT_FRAME_CONSUMER, id, 0), .info = {.num_tasks = 4}};
}

enum descriptor_kind { ALONE, WITH_LANE, WITH_PIPE };

/* Each of these ends the connection. */
static const struct {
	enum soft_frame_type type;
	enum descriptor_kind descriptor_kind;
	uint32_t id, num_tasks, imm_data_len;
} invalid[] = {
	{SOFT_FRAME_CONSUMER, ALONE, 5, 4, 0},
	{SOFT_FRAME_CONSUMER, WITH_PIPE, 5, 4, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, 5, 0, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, 5, UINT32_MAX, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, 5, 4, UINT32_MAX},
	{SOFT_FRAME_CONSUMER, WITH_LANE, SOFT_NO_ID, 4, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, SOFT_GONE_ID, 4, 0},
	{SOFT_FRAME_CONSUMER, WITH_LANE, 6, 4, 0}, /* the server's own */
	{SOFT_FRAME_EXPIRED, ALONE, 5, 0, 0},      /* and never existed */
};

static void send_consumer_frame(int fd, const struct consumer_frame *packet, enum descriptor_kind descriptor_kind)
{
	int ends[2], pipes[2];
	size_t len = packet->frame.type == SOFT_FRAME_EXPIRED ? sizeof(packet->frame) : sizeof(*packet);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 && pipe(pipes) == 0);
	CHECK(remote_send(fd, packet, len, descriptor_kind == WITH_LANE ? &ends[1] : &pipes[0],
			  descriptor_kind == ALONE ? 0 : 1));
	for (unsigned i = 0; i < 2; i++) {
		close(ends[i]);
		close(pipes[i]);
	}
}

static void bad_consumer_frames(void)
{
	struct end *server = &pair.server;
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	for (unsigned i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		int fd = connect_server(server);
		struct consumer_frame packet = {
			.frame = soft_frame_make(invalid[i].type, invalid[i].id, 0),
			.info = {.num_tasks = invalid[i].num_tasks, .imm_data_len = invalid[i].imm_data_len},
		};
		send_consumer_frame(fd, &packet, invalid[i].descriptor_kind);
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
	struct consumer_frame packet = valid_frame(5);
	CHECK(remote_send(fd, &packet, sizeof(packet), &ends[1], 1));
	settle_one(server);
	CHECK(server->new_consumers == 1 && server->disconnects == 0);
	CHECK(remote_send(fd, &packet, sizeof(packet), &ends[1], 1));
	settle_one(server);
	CHECK(server->expired_consumers == 1 && server->disconnects == 1);
	close(fd);
	close(ends[0]);
	close(ends[1]);
	end_close(server);
}

/*
 * A consumer that posts memory outside its export, or more slots than it has tasks, expires for its producers, which
 * write nothing.
 */
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
		struct consumer_frame packet = valid_frame(id);
		struct soft_slot slot = {.addr = 0x1000, .capacity = 4096};
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
		CHECK(remote_send(fd, &packet, sizeof(packet), &ends[1], 1));
		settle_one(server);
		unsigned failed = producer->failed;
		for (unsigned i = 0; i < (id == 1 ? 5u : 1u); i++)
			CHECK(send(ends[0], &slot, id == 3 ? 7 : sizeof(slot), 0) > 0);
		if (id == 5) { /* an invalid descriptor */
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

/* For a slot of 10 bytes, if one is posted. */
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

/* The test plays the producer of a consumer in this process: its deliveries are checked against the posted slots. */
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
	fixture_open(&fixture, NULL);
	RUN(bad_consumer_frames);
	RUN(the_same_consumer_twice);
	RUN(bad_slots);
	RUN(bad_deliveries);
	fixture_close(&fixture);
	return 0;
}
