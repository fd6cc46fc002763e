/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid descriptors, and importers and exporters that violate the protocol or are silent. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../device/memory.h"
#include "../device/sizes.h"
#include "../device/socket.h"
#include "remote_end.h"

static void test_flipped_descriptors(void)
{
	struct exporter e = start_exporter(ALLOC, PCI_WRITE);
	struct soft_import *import;
	struct soft_range range;
	for (size_t bit = 0; bit < e.offer.desc_len * 8; bit++) {
		e.offer.desc[bit / 8] ^= (uint8_t)(1 << bit % 8);
		doca_error_t result = soft_import_open(e.offer.desc, e.offer.desc_len, &import, &range);
		CHECK(result == DOCA_ERROR_INVALID_VALUE || result == DOCA_ERROR_DRIVER);
		e.offer.desc[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t len = 0; len < sizeof(struct remote_descriptor); len++)
		CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_import_open(e.offer.desc, len, &import, &range));
	CHECK_OK(soft_import_open(e.offer.desc, e.offer.desc_len, &import, &range));
	CHECK(range.addr == e.offer.addr && range.len == LEN && range.permissions == PCI_WRITE);
	soft_import_close(import);
	quit_exporter(&e);
}

static void test_wrong_names(void)
{
	static const char *const names[] = {"mem./../x", "../mem.1", "comch.1", "", "lock", "mem.nobody"};
	struct exporter e = start_exporter(ALLOC, PCI_WRITE);
	struct remote_descriptor d;
	struct soft_import *import;
	struct soft_range range;
	memcpy(&d, e.offer.desc, sizeof(d));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		memset(d.socket, 0, sizeof(d.socket));
		strcpy(d.socket, names[i]);
		CHECK(soft_import_open(&d, sizeof(d), &import, &range) != DOCA_SUCCESS);
	}
	memset(d.socket, 'm', sizeof(d.socket));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_import_open(&d, sizeof(d), &import, &range));
	quit_exporter(&e);
}

/* More silent connections than the exporter keeps must not keep an importer out. */
static void test_silent_peers(void)
{
	enum { UNAUTHENTICATED = 40 };
	int fds[UNAUTHENTICATED];
	struct exporter e = start_exporter(ALLOC, PCI_WRITE);
	struct remote_descriptor d;
	memcpy(&d, e.offer.desc, sizeof(d));
	for (int i = 0; i < UNAUTHENTICATED; i++) {
		fds[i] = soft_socket_connect(d.socket, SOFT_PEER_TIMEOUT_NS);
		CHECK(fds[i] >= 0);
		if (i % 2 == 0)
			send(fds[i], "nonsense", 8, MSG_NOSIGNAL);
	}
	struct importer importer;
	open_importer(&importer, &e);
	CHECK_OK(fetch(&importer, &e));
	for (int i = 0; i < UNAUTHENTICATED; i++) /* all of them are closed in the end, and this importer is not */
		while (!soft_socket_hung_up(fds[i]))
			usleep(1000);
	CHECK_OK(fetch(&importer, &e));
	for (int i = 0; i < UNAUTHENTICATED; i++)
		close(fds[i]);
	close_importer(&importer);
	quit_exporter(&e);
}

/* A few peers that send their request late are served. */
static void test_slow_peers(void)
{
	enum { UNAUTHENTICATED = 10 };
	int fds[UNAUTHENTICATED], granted[REMOTE_MAX_FDS];
	size_t num_granted;
	struct exporter e = start_exporter(ALLOC, PCI_WRITE);
	struct remote_descriptor d;
	struct remote_answer answer;
	memcpy(&d, e.offer.desc, sizeof(d));
	for (int i = 0; i < UNAUTHENTICATED; i++) {
		fds[i] = soft_socket_connect(d.socket, SOFT_PEER_TIMEOUT_NS);
		CHECK(fds[i] >= 0);
	}
	struct importer importer;
	open_importer(&importer, &e); /* so all before it were accepted */
	struct remote_request request = {.magic = REMOTE_MAGIC, .version = REMOTE_VERSION, .export_id = d.export_id};
	memcpy(request.key, d.key, sizeof(request.key));
	CHECK(remote_send(fds[0], &request, sizeof(request), NULL, 0));
	CHECK(remote_receive(fds[0], &answer, sizeof(answer), granted, &num_granted));
	CHECK(answer.granted == 1 && num_granted == 2);
	for (size_t i = 0; i < num_granted; i++)
		close(granted[i]);
	for (int i = 0; i < UNAUTHENTICATED; i++)
		close(fds[i]);
	close_importer(&importer);
	quit_exporter(&e);
}

/* An exporter of the test, which answers a request as bad() says. */
struct liar {
	int listener;
	struct remote_answer answer;
	int fds[REMOTE_MAX_FDS];
	size_t num_fds;
	size_t len; /* fields of the answer */
};

static void *lie(void *arg)
{
	struct liar *liar = arg;
	struct remote_request request;
	int fds[REMOTE_MAX_FDS], fd;
	size_t num_fds;
	while ((fd = accept4(liar->listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
		usleep(100);
	CHECK(remote_receive(fd, &request, sizeof(request), fds, &num_fds) && num_fds == 0);
	remote_send(fd, &liar->answer, liar->len, liar->fds, liar->num_fds);
	close(fd);
	return NULL;
}

static doca_error_t import_from(struct liar *liar)
{
	struct remote_descriptor d = {.magic = REMOTE_MAGIC,
				      .version = REMOTE_VERSION,
				      .permissions = PCI_READ,
				      .addr = 4096,
				      .len = 4096,
				      .socket = "mem.liar"};
	struct soft_import *import;
	struct soft_range range;
	pthread_t thread;
	liar->listener = soft_socket_listen(d.socket, 1);
	CHECK(liar->listener >= 0 && pthread_create(&thread, NULL, lie, liar) == 0);
	doca_error_t result = soft_import_open(&d, sizeof(d), &import, &range);
	CHECK(pthread_join(thread, NULL) == 0);
	soft_socket_unlink(d.socket);
	close(liar->listener);
	if (result != DOCA_SUCCESS)
		return result;
	enum remote_method method = atomic_load(&import->method);
	uint8_t byte;
	CHECK_RESULT(DOCA_ERROR_IO_FAILED,
		     soft_import_read(import, &byte, range.addr, 1)); /* the exporter has exited */
	soft_import_close(import);
	CHECK(method == REMOTE_BY_PROCESS);
	return DOCA_SUCCESS;
}

static struct liar honest(int gate, int backing)
{
	return (struct liar){.answer = {.magic = REMOTE_MAGIC,
					.version = REMOTE_VERSION,
					.granted = 1,
					.permissions = PCI_READ,
					.backing = REMOTE_BACKING_ANONYMOUS,
					.addr = 4096,
					.len = 4096},
			     .fds = {gate, backing},
			     .num_fds = 2,
			     .len = sizeof(struct remote_answer)};
}

static void test_invalid_answers(void)
{
	int gate, unsealed = memfd_create("unsealed", MFD_CLOEXEC);
	uint32_t shm;
	struct remote_gate *mapped = remote_gate_create(&gate, &shm);
	CHECK(mapped != NULL && unsealed >= 0 && ftruncate(unsealed, 8192) == 0);

	/* Memory that could shrink under a mapping is not mapped. */
	struct liar liar = honest(gate, unsealed);
	CHECK_OK(import_from(&liar));
	liar = honest(gate, gate); /* sealed, but too small */
	CHECK_OK(import_from(&liar));

	struct liar lies[13];
	for (int i = 0; i < 13; i++)
		lies[i] = honest(gate, unsealed);
	lies[0].fds[0] = unsealed; /* a gate that could shrink */
	lies[1].num_fds = 1;
	lies[2].num_fds = 0;
	lies[3].answer.addr = 8192;
	lies[4].answer.len = 8192;
	lies[5].answer.permissions = PCI_WRITE;
	lies[6].answer.offset = UINT64_MAX;
	lies[7].answer.backing = 3;
	lies[8].len--;
	lies[9].answer.granted = 0;
	lies[10].answer.offset = INT64_MAX;
	lies[11].answer.gate_shm = INT32_MAX; /* no such segment */
	lies[11].num_fds = 1;
	lies[12].answer.gate_shm = UINT32_MAX; /* no segment at all */
	lies[12].num_fds = 1;
	for (int i = 0; i < 13; i++)
		CHECK_RESULT(DOCA_ERROR_DRIVER, import_from(&lies[i]));
	remote_gate_close(mapped);
	close(gate);
	close(unsealed);
}

/* Without files the gate is a System V segment. */
static struct liar without_files(uint32_t shm, int backing)
{
	struct liar liar = honest(backing, -1);
	liar.answer.gate_shm = shm;
	liar.num_fds = 1;
	return liar;
}

/* A segment that another process has made: its number plus one, as in answers. */
static uint32_t segment_of_another(void)
{
	int status, fds[2], id = -1;
	CHECK(pipe(fds) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		id = shmget(IPC_PRIVATE, sizeof(struct remote_gate), 0600);
		_exit(write(fds[1], &id, sizeof(id)) != sizeof(id));
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(read(fds[0], &id, sizeof(id)) == sizeof(id) && id >= 0);
	close(fds[0]);
	close(fds[1]);
	return (uint32_t)id + 1;
}

static void test_gate_without_files(void)
{
	int gate, backing = memfd_create("backing", MFD_CLOEXEC);
	uint32_t shm;
	struct rlimit before, none;
	CHECK(backing >= 0 && getrlimit(RLIMIT_FSIZE, &before) == 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
	struct remote_gate *made = remote_gate_create(&gate, &shm);
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	CHECK(made != NULL && gate == -1 && shm != 0);
	struct liar liar = without_files(shm, backing);
	CHECK_OK(import_from(&liar));
	remote_gate_close(made);
	CHECK_RESULT(DOCA_ERROR_DRIVER, import_from(&liar)); /* removed with its last user */

	uint32_t other = segment_of_another();
	liar = without_files(other, backing);
	CHECK_RESULT(DOCA_ERROR_DRIVER, import_from(&liar));
	CHECK(shmctl((int)other - 1, IPC_RMID, NULL) == 0);
	close(backing);
}

int main(void)
{
	setup_configure(NULL);
	RUN(test_flipped_descriptors);
	RUN(test_wrong_names);
	RUN(test_silent_peers);
	RUN(test_slow_peers);
	RUN(test_invalid_answers);
	RUN(test_gate_without_files);
	return 0;
}
