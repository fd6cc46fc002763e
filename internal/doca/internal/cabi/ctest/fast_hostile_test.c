/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that misbehave on the fast path: in the news of a consumer, on its lane, and in deliveries. */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../soft_comch.h"
#include "fast_pair.h"

static int call_server(struct end *server)
{
	struct soft_comch_address address;
	struct soft_frame hello = soft_frame_make(SOFT_FRAME_HELLO, 4080, 0), welcome;
	soft_comch_address_make(&address, stage.host->info->pci_addr, stage.dpu->info->pci_addr, NAME);
	int fd = soft_comch_connect(&address);
	CHECK(fd >= 0 && send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
	settle_one(server);
	CHECK(recv(fd, &welcome, sizeof(welcome), 0) == sizeof(welcome));
	return fd;
}

struct news {
	struct soft_frame frame;
	struct soft_consumer_card card;
};

static struct news good_news(uint32_t id)
{
	return (struct news){.frame = soft_frame_make(SOFT_FRAME_CONSUMER, id, 0), .card = {.num_tasks = 4}};
}

/* Each of these ends the connection. */
static void bad_news(void)
{
	struct end *server = &pair.server;
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	for (unsigned kind = 0; kind < 9; kind++) {
		int fd = call_server(server), ends[2], pipes[2];
		struct news news = good_news(5);
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 && pipe(pipes) == 0);
		const int *sent = &ends[1];
		size_t num = 1, len = sizeof(news);
		switch (kind) {
		case 0: /* without a lane */
			num = 0;
			break;
		case 1: /* with something that is no lane */
			sent = &pipes[0];
			break;
		case 2: /* no tasks */
			news.card.num_tasks = 0;
			break;
		case 3: /* too many */
			news.card.num_tasks = UINT32_MAX;
			break;
		case 4:
			news.card.imm_data_len = UINT32_MAX;
			break;
		case 5:
			news.frame.value = 0;
			break;
		case 6:
			news.frame.value = 0xffff;
			break;
		case 7: /* an id of the server's own consumers */
			news.frame.value = 6;
			break;
		default: /* one that never was has expired */
			news.frame.type = SOFT_FRAME_EXPIRED;
			len = sizeof(news.frame);
			break;
		}
		CHECK(remote_send(fd, &news, len, sent, num));
		settle_one(server);
		CHECK(server->disconnects == kind + 1 && server->new_consumers == 0);
		close(fd);
		close(ends[0]);
		close(ends[1]);
		close(pipes[0]);
		close(pipes[1]);
	}
	end_close(server);
}

static void the_same_consumer_twice(void)
{
	struct end *server = &pair.server;
	int ends[2];
	server_open(server);
	CHECK_OK(soft_doca_ctx_start(server->ctx));
	int fd = call_server(server);
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
	int fd = call_server(server);
	producer_open(producer, server);
	CHECK_OK(soft_doca_ctx_start(producer->ctx));
	for (uint32_t id = 1; id <= 5; id += 2) {
		struct news news = good_news(id);
		struct soft_slot slot = {.addr = 0x1000, .room = 4096};
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

/* The producer's side of a consumer that this process has: what it says is checked against what was posted. */
static void bad_deliveries(void)
{
	for (unsigned kind = 0; kind < 9; kind++) {
		struct {
			struct soft_delivery delivery;
			uint8_t imm[200];
		} packet = {.delivery = {.producer_id = 1, .len = 10}};
		size_t len = sizeof(packet.delivery);
		pair_open();
		struct soft_lane *lane = soft_lane_find(pair.server.connection->fast, consumer_id(&pair.consumer));
		CHECK(lane != NULL);
		if (kind != 0)
			CHECK_OK(post(&pair.consumer, 0, 10));
		settle_pair();
		switch (kind) {
		case 0: /* nothing is posted */
			break;
		case 1: /* longer than the buffer */
			packet.delivery.len = 11;
			break;
		case 2: /* more immediate data than asked for */
			packet.delivery.imm_len = FAST_IMM + 1;
			len += FAST_IMM + 1;
			break;
		case 3: /* less than it says */
			packet.delivery.imm_len = 8;
			break;
		case 4: /* from nobody */
			packet.delivery.producer_id = SOFT_NO_ID;
			break;
		case 5:
			packet.delivery.producer_id = SOFT_GONE_ID;
			break;
		case 6: /* nothing */
			packet.delivery.len = 0;
			break;
		case 7:
			packet.delivery.reserved = 1;
			break;
		default:
			len = 3;
			break;
		}
		CHECK(send(lane->fd, &packet, len, 0) == (ssize_t)len);
		soft_lane_unref(lane);
		settle_pair();
		CHECK(fast_state(&pair.consumer) == DOCA_CTX_STATE_IDLE && pair.consumer.completed == 0);
		CHECK(pair.consumer.failed == (kind != 0) && state_of(&pair.client) == DOCA_CTX_STATE_RUNNING);
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
