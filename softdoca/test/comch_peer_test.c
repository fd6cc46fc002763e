/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel with peers that die and peers that violate the protocol. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../device/comch_wire.h"
#include "comch_end.h"

/* ---- peers that die ---- */

static bool is_running(const void *arg)
{
	return state_of(arg) == DOCA_CTX_STATE_RUNNING;
}

static bool is_idle(const void *arg)
{
	return state_of(arg) == DOCA_CTX_STATE_IDLE;
}

static bool has_client(const void *arg)
{
	return ((const struct end *)arg)->connects == 1;
}

static bool lost_client(const void *arg)
{
	return ((const struct end *)arg)->disconnects == 1;
}

static bool never(const void *arg)
{
	(void)arg;
	return false;
}

static void kill_and_reap(pid_t child)
{
	int status;
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* Sends two messages and receives nothing. */
static void be_a_client(void)
{
	struct end client;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	client_open(&client);
	soft_doca_ctx_start(client.ctx);
	fixture_wait(client.pe, is_running, &client);
	CHECK_OK(send_number(&client, 0, 8));
	CHECK_OK(send_number(&client, 1, 8));
	while (client.sent < 2)
		soft_doca_pe_progress(client.pe);
	for (;;)
		pause();
}

static bool has_two(const void *arg)
{
	return ((const struct end *)arg)->received == 2;
}

static void client_killed(void)
{
	struct end server;
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	pid_t child = fork();
	if (child == 0)
		be_a_client();
	CHECK(child > 0);
	fixture_wait(server.pe, has_client, &server);
	fixture_wait(server.pe, has_two, &server);
	fill(&server, 4080);
	kill_and_reap(child);
	fixture_wait(server.pe, lost_client, &server);
	CHECK(server.failed == NUM_SENDS && server.last_failure == DOCA_ERROR_CONNECTION_RESET);
	CHECK(!server.failed_after_end && state_of(&server) == DOCA_CTX_STATE_RUNNING);
	end_close(&server);
}

static void be_a_server(int ready)
{
	struct end server;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK(write(ready, "r", 1) == 1);
	fixture_wait(server.pe, has_client, &server);
	CHECK_OK(send_number(&server, 0, 8));
	while (server.sent == 0)
		soft_doca_pe_progress(server.pe);
	CHECK(write(ready, "c", 1) == 1);
	fixture_wait(server.pe, never, NULL);
}

static pid_t fork_server(int *ready)
{
	char byte;
	int ends[2];
	CHECK(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0)
		be_a_server(ends[1]);
	CHECK(child > 0);
	close(ends[1]);
	CHECK(read(ends[0], &byte, 1) == 1);
	*ready = ends[0];
	return child;
}

/* A connection that has ended, while the client still exists. */
static void can_be_looked_at(struct end *client, struct doca_comch_connection *connection)
{
	struct doca_comch_producer *producer;
	uint64_t count;
	CHECK(soft_doca_comch_connection_get_user_data(connection).u64 == 42);
	CHECK(soft_doca_comch_client_get_client_ctx(connection) == client->client);
	CHECK(soft_doca_comch_server_get_server_ctx(connection) == NULL);
	CHECK_OK(soft_doca_comch_connection_get_counter(connection, DOCA_COMCH_COUNTER_SENT_MESSAGES, &count));
	CHECK_RESULT(DOCA_ERROR_CONNECTION_ABORTED, soft_doca_comch_connection_update_info(connection));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_comch_producer_create(connection, &producer));
}

/* Messages that the server sent before it died arrive; then another server can use its name. */
static void server_killed(void)
{
	struct end client, server;
	int ready, status;
	char byte;
	pid_t child = fork_server(&ready);
	client_open(&client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	fixture_wait(client.pe, is_running, &client);
	struct doca_comch_connection *first = client.connection;
	CHECK_OK(soft_doca_comch_connection_set_user_data(first, (union doca_data){.u64 = 42}));
	CHECK(read(ready, &byte, 1) == 1);
	CHECK(kill(child, SIGSTOP) == 0 && waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	while (send_number(&client, 0, 4080) == DOCA_SUCCESS || soft_doca_pe_progress(client.pe))
		;
	kill_and_reap(child);
	fixture_wait(client.pe, is_idle, &client);
	CHECK(client.received == 1 && client.failed == NUM_SENDS);
	CHECK(client.last_failure == DOCA_ERROR_CONNECTION_RESET);
	close(ready);
	can_be_looked_at(&client, first);

	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_one(&client);
	CHECK(client.saw_failed_start);
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	client.next_number = 0;
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_RUNNING && client.connection != first);
	struct doca_task *task;
	struct doca_comch_connection *second = client.connection;
	CHECK_OK(soft_doca_comch_connection_set_user_data(second, (union doca_data){.u64 = 43}));
	can_be_looked_at(&client, first);
	client.connection = first;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, alloc_send(&client, "x", 1, &task));
	client.connection = second;
	close_both(&client, &server);
}

/* ---- peers that violate the protocol ---- */

static int connect_server(void)
{
	struct soft_comch_address address;
	soft_comch_address_make(&address, fixture.host->info->pci_addr, fixture.dpu->info->pci_addr, NAME);
	int fd = soft_comch_connect(&address);
	CHECK(fd >= 0);
	return fd;
}

static void write_packet(int fd, const void *bytes, size_t len)
{
	CHECK(send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static bool hung_up(int fd)
{
	char byte;
	ssize_t n;
	do
		n = recv(fd, &byte, 1, MSG_DONTWAIT);
	while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

/* A HELLO or WELCOME that grants that many messages. */
static struct soft_frame greeting(enum soft_frame_type type, uint32_t credits)
{
	struct soft_frame frame = soft_frame_make(type, 4080, 0);
	frame.credits = credits;
	return frame;
}

struct packet {
	struct soft_frame frame;
	uint8_t bytes[5000];
};

/* Frames that are invalid at the points where the tests send them. */
static size_t bad_packet(unsigned kind, struct packet *packet)
{
	const size_t head = sizeof(packet->frame);
	memset(packet, 0x55, sizeof(*packet));
	packet->frame = soft_frame_make(SOFT_FRAME_MESSAGE, 4, 0);
	switch (kind) {
	case 0: /* too short to be a frame */
		return head - 1;
	case 1: /* shorter than its length */
		return head + 3;
	case 2: /* longer than its length */
		return head + 5;
	case 3: /* longer than any message */
		packet->frame.value = 4081;
		return head + 4081;
	case 4: /* its length is 4 GiB */
		packet->frame.value = UINT32_MAX;
		return head + 4;
	case 5: /* empty */
		packet->frame.value = 0;
		return head;
	case 6:
		packet->frame.magic++;
		return head + 4;
	case 7:
		packet->frame.version++;
		return head + 4;
	case 8: /* an unknown type */
		packet->frame = soft_frame_make((enum soft_frame_type)99, 0, 0);
		return head;
	case 9: /* from the wrong side */
		packet->frame = soft_frame_make(SOFT_FRAME_WELCOME, 4080, 0);
		return head;
	case 10: /* a second one, when the connection is open; without credits, before */
		packet->frame = soft_frame_make(SOFT_FRAME_HELLO, 0, 0);
		return head;
	case 11: /* grants more credits than the queue holds */
		packet->frame = soft_frame_make(SOFT_FRAME_CREDIT, 0, 0);
		packet->frame.credits = 1;
		return head;
	case 12: /* longer than the receiver's whole buffer */
		packet->frame.value = sizeof(packet->bytes);
		return sizeof(*packet);
	default:
		return 0;
	}
}

static void bad_frames(bool after_hello)
{
	struct end server;
	struct packet packet;
	struct soft_frame hello = greeting(SOFT_FRAME_HELLO, 10);
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	unsigned kind = 0;
	for (size_t len = bad_packet(kind, &packet); len > 0; len = bad_packet(++kind, &packet)) {
		int fd = connect_server();
		if (after_hello)
			write_packet(fd, &hello, sizeof(hello));
		settle_one(&server);
		write_packet(fd, &packet, len);
		settle_one(&server);
		CHECK(hung_up(fd));
		CHECK(server.received == 0 && server.connects == (after_hello ? kind + 1 : 0));
		CHECK(server.disconnects == server.connects);
		close(fd);
	}
	CHECK(kind == 13);
	end_close(&server);
}

static void bad_frames_instead_of_hello(void)
{
	bad_frames(false);
}

static void bad_frames_after_hello(void)
{
	bad_frames(true);
}

static void handshakes_are_bounded(void)
{
	struct end client, server;
	int fds[40], open = 0;
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	for (int i = 0; i < 40; i++) {
		fds[i] = connect_server();
		settle_one(&server);
	}
	for (int i = 0; i < 40; i++) {
		bool gone = hung_up(fds[i]);
		CHECK(gone == (i < 24));
		open += !gone;
	}
	CHECK(open == 16);
	client_open(&client);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
	settle_both(&client, &server);
	CHECK(state_of(&client) == DOCA_CTX_STATE_RUNNING && server.connects == 1);
	close_both(&client, &server);
	for (int i = 0; i < 40; i++)
		close(fds[i]);
}

/* Its tasks wait as with any slow peer, and the engine sleeps. */
static void a_peer_that_does_not_receive(void)
{
	struct end server;
	struct soft_frame hello = greeting(SOFT_FRAME_HELLO, 10);
	server_open(&server);
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	int fd = connect_server();
	write_packet(fd, &hello, sizeof(hello));
	settle_one(&server);
	CHECK(shutdown(fd, SHUT_RD) == 0);
	CHECK_OK(send_number(&server, 0, 8));
	settle_one(&server);
	CHECK_OK(soft_doca_pe_request_notification(server.pe));
	CHECK(server.sent == 0 && server.failed == 0 && !fixture_readable(server.pe, 0));
	close(fd);
	CHECK(fixture_readable(server.pe, 0));
	settle_one(&server);
	CHECK(server.failed == 1 && server.disconnects == 1);
	end_close(&server);
}

/* It does not read credits either. Its messages wait in the socket until the program takes them. */
static void a_peer_that_sends_too_much(void)
{
	struct end server;
	struct soft_frame hello = greeting(SOFT_FRAME_HELLO, 8192);
	struct {
		struct soft_frame frame;
		uint32_t number;
	} message = {.frame = soft_frame_make(SOFT_FRAME_MESSAGE, sizeof(uint32_t), 0)};
	server_open(&server);
	CHECK_OK(soft_doca_comch_server_set_recv_queue_size(server.server, 3));
	CHECK_OK(soft_doca_ctx_start(server.ctx));
	int fd = connect_server();
	write_packet(fd, &hello, sizeof(hello));
	settle_one(&server);
	fill(&server, 4080);
	for (; message.number < 4; message.number++)
		write_packet(fd, &message, sizeof(message));
	settle_one(&server);
	CHECK(server.received == 4 && server.disconnects == 0);
	for (; message.number < 8; message.number++)
		write_packet(fd, &message, sizeof(message));
	close(fd);
	settle_one(&server);
	CHECK(server.received == 4 && server.disconnects == 1); /* there was no space before it left */
	end_close(&server);
}

/* Answers the HELLO of a client, instead of a server. */
static void client_meets_bad_server(void)
{
	struct soft_comch_address address;
	struct packet packet;
	struct soft_frame welcome = greeting(SOFT_FRAME_WELCOME, 10);
	int listener;
	soft_comch_address_make(&address, fixture.host->info->pci_addr, fixture.dpu->info->pci_addr, NAME);
	CHECK_OK(soft_comch_listen(&address, &listener));
	unsigned kind = 0;
	for (size_t len = bad_packet(kind, &packet); len > 0; len = bad_packet(++kind, &packet)) {
		for (int welcomed = 0; welcomed < 2; welcomed++) {
			struct end client;
			if (kind == 9 && !welcomed)
				continue;
			client_open(&client);
			CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(client.ctx));
			settle_one(&client);
			int fd = soft_comch_accept(listener);
			CHECK(fd >= 0);
			if (welcomed)
				write_packet(fd, &welcome, sizeof(welcome));
			write_packet(fd, &packet, len);
			settle_one(&client);
			CHECK(state_of(&client) == DOCA_CTX_STATE_IDLE && client.received == 0);
			CHECK(client.saw_failed_start == !welcomed);
			close(fd);
			end_close(&client);
		}
	}
	soft_comch_unlisten(&address, listener);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(client_killed);
	RUN(server_killed);
	RUN(bad_frames_instead_of_hello);
	RUN(bad_frames_after_hello);
	RUN(handshakes_are_bounded);
	RUN(a_peer_that_does_not_receive);
	RUN(a_peer_that_sends_too_much);
	RUN(client_meets_bad_server);
	fixture_close(&fixture);
	return 0;
}
