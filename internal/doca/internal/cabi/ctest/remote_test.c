/* SPDX-License-Identifier: Apache-2.0 */
/* Exported memory: the parent imports what a forked child exports, and what this process exports itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../memory.h"
#include "../soft_remote_import.h"
#include "rig.h"

#define LEN 300001
#define PCI_READ DOCA_ACCESS_FLAG_PCI_READ_ONLY
#define PCI_WRITE DOCA_ACCESS_FLAG_PCI_READ_WRITE
#define READ_WRITE DOCA_ACCESS_FLAG_LOCAL_READ_WRITE

enum memory { MALLOC, ALLOC, MAPPED_FILE };

static uint8_t byte_at(size_t i, uint8_t seed)
{
	return (uint8_t)(i * 13 + i / 257 + seed);
}

static void fill(uint8_t *bytes, uint8_t seed)
{
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = byte_at(i, seed);
}

static bool filled(const uint8_t *bytes, uint8_t seed)
{
	for (size_t i = 0; i < LEN; i++) {
		if (bytes[i] != byte_at(i, seed))
			return false;
	}
	return true;
}

/* ---- The child ---- */

enum command { CHECK_WRITTEN = 'w', DESTROY = 'd', TRUNCATE = 't', QUIT = 'q' };

struct offer {
	void *addr;
	size_t desc_len;
	uint8_t desc[512];
};

struct exporter {
	pid_t pid;
	int commands, replies;
	struct offer offer;
};

static void write_all(int fd, const void *bytes, size_t len)
{
	CHECK(write(fd, bytes, len) == (ssize_t)len);
}

static uint8_t *map_temporary_file(int *fd)
{
	FILE *file = tmpfile();
	CHECK(file != NULL);
	*fd = dup(fileno(file));
	fclose(file);
	CHECK(*fd >= 0 && ftruncate(*fd, LEN) == 0);
	return memory_map_file(*fd, LEN, true);
}

static uint8_t *make_memory(enum memory memory, int *fd)
{
	uint8_t *bytes = NULL;
	*fd = -1;
	if (memory == MALLOC)
		bytes = malloc(LEN);
	else if (memory == ALLOC)
		bytes = memory_alloc(LEN);
	else
		bytes = map_temporary_file(fd);
	CHECK(bytes != NULL);
	return bytes;
}

static void drop_memory(enum memory memory, uint8_t *bytes, int fd)
{
	if (memory == MALLOC)
		free(bytes);
	else
		memory_free(bytes, LEN);
	if (fd >= 0)
		close(fd);
}

static void obey(enum command command, struct doca_mmap **mmap, const uint8_t *bytes, int fd)
{
	if (command == CHECK_WRITTEN)
		CHECK(filled(bytes, 2));
	if (command == TRUNCATE)
		CHECK(ftruncate(fd, 4096) == 0);
	if (command != DESTROY || *mmap == NULL)
		return;
	CHECK_OK(soft_doca_mmap_destroy(*mmap));
	*mmap = NULL;
}

static void export_until_quit(enum memory memory, uint32_t permissions, int commands, int replies)
{
	int fd;
	uint8_t *bytes = make_memory(memory, &fd);
	fill(bytes, 1);
	struct doca_dev *dev = rig_open_dev(HOST_PCI);
	struct doca_mmap *mmap = rig_mmap(dev, bytes, LEN, permissions);
	struct offer offer = {.addr = bytes};
	const void *desc;
	CHECK_OK(soft_doca_mmap_export_pci(mmap, dev, &desc, &offer.desc_len));
	CHECK(offer.desc_len <= sizeof(offer.desc));
	memcpy(offer.desc, desc, offer.desc_len);
	write_all(replies, &offer, sizeof(offer));
	char command = 0;
	while (command != QUIT && read(commands, &command, 1) == 1) {
		obey(command, &mmap, bytes, fd);
		write_all(replies, &command, 1);
	}
	obey(DESTROY, &mmap, bytes, fd);
	CHECK_OK(soft_doca_dev_close(dev));
	drop_memory(memory, bytes, fd);
}

/* ---- The parent's view of the child ---- */

static struct exporter start_exporter(enum memory memory, uint32_t permissions)
{
	struct exporter e;
	int commands[2], replies[2];
	CHECK(pipe(commands) == 0 && pipe(replies) == 0);
	e.pid = fork();
	CHECK(e.pid >= 0);
	if (e.pid == 0) {
		close(commands[1]);
		close(replies[0]);
		export_until_quit(memory, permissions, commands[0], replies[1]);
		exit(0);
	}
	close(commands[0]);
	close(replies[1]);
	e.commands = commands[1];
	e.replies = replies[0];
	CHECK(read(e.replies, &e.offer, sizeof(e.offer)) == sizeof(e.offer));
	return e;
}

static void tell(struct exporter *e, enum command command)
{
	char byte = (char)command, reply;
	write_all(e->commands, &byte, 1);
	CHECK(read(e->replies, &reply, 1) == 1 && reply == byte);
}

static void close_pipes(struct exporter *e)
{
	close(e->commands);
	close(e->replies);
}

static void quit_exporter(struct exporter *e)
{
	int status;
	tell(e, QUIT);
	CHECK(waitpid(e->pid, &status, 0) == e->pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close_pipes(e);
}

static void kill_exporter(struct exporter *e)
{
	int status;
	CHECK(kill(e->pid, SIGKILL) == 0 && waitpid(e->pid, &status, 0) == e->pid && WIFSIGNALED(status));
	close_pipes(e);
}

/* ---- The importer ---- */

struct importer {
	struct engine engine;
	struct doca_mmap *import, *local;
	uint8_t *bytes;
};

static void open_importer(struct importer *i, const struct exporter *e)
{
	engine_open(&i->engine, DPU_PCI, 4);
	CHECK_OK(soft_doca_mmap_create_from_export(NULL, e->offer.desc, e->offer.desc_len, i->engine.dev, &i->import));
	i->bytes = calloc(1, LEN);
	i->local = rig_mmap(i->engine.dev, i->bytes, LEN, READ_WRITE);
}

static void close_importer(struct importer *i)
{
	CHECK_OK(soft_doca_mmap_destroy(i->import));
	CHECK_OK(soft_doca_mmap_destroy(i->local));
	engine_close(&i->engine);
	free(i->bytes);
}

static doca_error_t fetch(struct importer *i, const struct exporter *e)
{
	return engine_copy(&i->engine, i->local, i->bytes, i->import, e->offer.addr, LEN);
}

static doca_error_t store(struct importer *i, const struct exporter *e)
{
	return engine_copy(&i->engine, i->import, e->offer.addr, i->local, i->bytes, LEN);
}

/* Pieces at odd places, so that a wrong offset shows. */
static void fetch_pieces(struct importer *i, const struct exporter *e)
{
	memset(i->bytes, 0, LEN);
	for (size_t at = 0, len = 1; at < LEN; at += len, len = len * 3 + 1) {
		if (len > LEN - at)
			len = LEN - at;
		CHECK_OK(engine_copy(&i->engine, i->local, i->bytes + at, i->import, (uint8_t *)e->offer.addr + at,
				     len));
	}
	CHECK(filled(i->bytes, 1));
}

static void round_trip(enum memory memory, enum remote_method method, const char *limits)
{
	rig_configure(limits);
	struct exporter e = start_exporter(memory, PCI_WRITE);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	CHECK(filled(i.bytes, 1) && atomic_load(&i.import->import->method) == method);
	fetch_pieces(&i, &e);
	fill(i.bytes, 2);
	CHECK_OK(store(&i, &e));
	CHECK(atomic_load(&i.import->import->method) == method);
	tell(&e, CHECK_WRITTEN);
	close_importer(&i);
	quit_exporter(&e);
	CHECK(rig_count_files("mem.") == 0);
}

static void test_any_memory(void)
{
	round_trip(MALLOC, REMOTE_BY_PROCESS, NULL);
}

static void test_own_memory_is_mapped(void)
{
	round_trip(ALLOC, REMOTE_BY_MAPPING, NULL);
}

static void test_mapping_switched_off(void)
{
	round_trip(ALLOC, REMOTE_BY_PROCESS, "remote_mapping=0");
}

static void test_file_memory(void)
{
	round_trip(MAPPED_FILE, REMOTE_BY_PROCESS, NULL);
}

/* ---- Where the kernel refuses ---- */

/* As the seccomp profile of many a container does. It stays for the rest of the process, so call it in a child. */
static void forbid_process_vm(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void refused_round_trips(void)
{
	forbid_process_vm();
	round_trip(MAPPED_FILE, REMOTE_BY_DESCRIPTOR, NULL);
	round_trip(ALLOC, REMOTE_BY_DESCRIPTOR, "remote_mapping=0");
	round_trip(ALLOC, REMOTE_BY_MAPPING, NULL);
	rig_configure(NULL);
	struct exporter e = start_exporter(MALLOC, PCI_WRITE);
	struct importer i;
	open_importer(&i, &e);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	CHECK(strstr(soft_last_detail(), "process_vm_readv") != NULL);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_import_read(i.import->import, i.bytes, e.offer.addr, 1));
	close_importer(&i);
	quit_exporter(&e);
}

static void in_child(void (*run)(void))
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		run();
		exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_refused_process_access(void)
{
	in_child(refused_round_trips);
}

/* ---- Access ends ---- */

static void read_only(enum memory memory)
{
	struct exporter e = start_exporter(memory, PCI_READ);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, store(&i, &e));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_import_write(i.import->import, e.offer.addr, i.bytes, 1));
	if (i.import->import->backing_fd >= 0)
		CHECK((fcntl(i.import->import->backing_fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	CHECK_OK(fetch(&i, &e));
	close_importer(&i);
	quit_exporter(&e);
}

static void test_read_only(void)
{
	rig_configure(NULL);
	read_only(MALLOC);
	read_only(ALLOC);
	read_only(MAPPED_FILE);
}

static void revoked(enum memory memory)
{
	struct exporter e = start_exporter(memory, PCI_WRITE);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	tell(&e, DESTROY);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	CHECK(strstr(soft_last_detail(), "ended") != NULL);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, store(&i, &e));
	struct doca_mmap *late;
	CHECK_RESULT(DOCA_ERROR_DRIVER,
		     soft_doca_mmap_create_from_export(NULL, e.offer.desc, e.offer.desc_len, i.engine.dev, &late));
	close_importer(&i);
	quit_exporter(&e);
}

static void test_exporter_destroys(void)
{
	revoked(MALLOC);
	revoked(ALLOC);
	revoked(MAPPED_FILE);
}

static void killed(enum memory memory)
{
	struct exporter e = start_exporter(memory, PCI_WRITE);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	CHECK(rig_count_files("mem.") == 1);
	kill_exporter(&e);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	CHECK(strstr(soft_last_detail(), "gone") != NULL && rig_count_files("mem.") == 0);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, store(&i, &e));
	close_importer(&i);
}

static void test_exporter_killed(void)
{
	killed(MALLOC);
	killed(ALLOC);
	killed(MAPPED_FILE);
}

static void test_killed_before_import(void)
{
	struct exporter e = start_exporter(MALLOC, PCI_READ);
	kill_exporter(&e);
	CHECK(rig_count_files("mem.") == 1);
	struct soft_import *import;
	struct soft_range range;
	CHECK_RESULT(DOCA_ERROR_DRIVER, soft_import_open(e.offer.desc, e.offer.desc_len, &import, &range));
	CHECK(rig_count_files("mem.") == 0);
}

/* A socket that lives, one that is dead, and what is none of ours. */
static void test_sweep(void)
{
	struct exporter dead = start_exporter(MALLOC, PCI_READ), living = start_exporter(MALLOC, PCI_READ);
	char path[400];
	snprintf(path, sizeof(path), "%s/mem.file", rig_dir());
	FILE *file = fopen(path, "w");
	CHECK(file != NULL && fclose(file) == 0);
	kill_exporter(&dead);
	CHECK(rig_count_files("mem.") == 3);
	rig_configure(NULL);
	CHECK(rig_count_files("mem.") == 2);
	struct importer i;
	open_importer(&i, &living);
	CHECK_OK(fetch(&i, &living));
	close_importer(&i);
	quit_exporter(&living);
	CHECK(unlink(path) == 0);
}

static void shrunken(void)
{
	struct exporter e = start_exporter(MAPPED_FILE, PCI_WRITE);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	tell(&e, TRUNCATE);
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, store(&i, &e));
	CHECK_OK(engine_copy(&i.engine, i.local, i.bytes, i.import, e.offer.addr, 4096));
	close_importer(&i);
	quit_exporter(&e);
}

static void shrunken_without_process_vm(void)
{
	forbid_process_vm();
	shrunken();
}

static void test_exporter_truncates(void)
{
	shrunken();
	in_child(shrunken_without_process_vm);
}

/* ---- Hostile peers ---- */

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
static void test_silent_strangers(void)
{
	enum { STRANGERS = 40 };
	int fds[STRANGERS];
	struct exporter e = start_exporter(ALLOC, PCI_WRITE);
	struct remote_descriptor d;
	memcpy(&d, e.offer.desc, sizeof(d));
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = soft_socket_connect(d.socket, REMOTE_TIMEOUT_NS);
		CHECK(fds[i] >= 0);
		if (i % 2 == 0)
			send(fds[i], "nonsense", 8, MSG_NOSIGNAL);
	}
	struct importer importer;
	open_importer(&importer, &e);
	CHECK_OK(fetch(&importer, &e));
	for (int i = 0; i < STRANGERS; i++) /* all are thrown out in the end, and this importer is not */
		while (!soft_socket_hung_up(fds[i]))
			usleep(1000);
	CHECK_OK(fetch(&importer, &e));
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
	close_importer(&importer);
	quit_exporter(&e);
}

/* A few who connect and think first are served when they speak. */
static void test_slow_strangers(void)
{
	enum { STRANGERS = 10 };
	int fds[STRANGERS], granted[REMOTE_MAX_FDS];
	size_t num_granted;
	struct exporter e = start_exporter(ALLOC, PCI_WRITE);
	struct remote_descriptor d;
	struct remote_answer answer;
	memcpy(&d, e.offer.desc, sizeof(d));
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = soft_socket_connect(d.socket, REMOTE_TIMEOUT_NS);
		CHECK(fds[i] >= 0);
	}
	struct importer importer;
	open_importer(&importer, &e); /* so all before it have been let in */
	struct remote_request request = {.magic = REMOTE_MAGIC, .version = REMOTE_VERSION, .export_id = d.export_id};
	memcpy(request.key, d.key, sizeof(request.key));
	CHECK(remote_send(fds[0], &request, sizeof(request), NULL, 0));
	CHECK(remote_receive(fds[0], &answer, sizeof(answer), granted, &num_granted));
	CHECK(answer.granted == 1 && num_granted == 2);
	for (size_t i = 0; i < num_granted; i++)
		close(granted[i]);
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
	close_importer(&importer);
	quit_exporter(&e);
}

/* An exporter of the test's own, that answers a request as bad() says. */
struct liar {
	int listener;
	struct remote_answer answer;
	int fds[REMOTE_MAX_FDS];
	size_t num_fds;
	size_t len; /* of the answer, as sent */
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
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, soft_import_read(import, &byte, range.addr, 1)); /* the liar is gone */
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

static void test_lying_exporters(void)
{
	int gate, unsealed = memfd_create("unsealed", MFD_CLOEXEC);
	struct remote_gate *mapped = remote_gate_create(&gate);
	CHECK(mapped != NULL && unsealed >= 0 && ftruncate(unsealed, 8192) == 0);

	/* Memory that could vanish under a mapping is not mapped. */
	struct liar liar = honest(gate, unsealed);
	CHECK_OK(import_from(&liar));
	liar = honest(gate, gate); /* sealed, but too small */
	CHECK_OK(import_from(&liar));

	struct liar lies[11];
	for (int i = 0; i < 11; i++)
		lies[i] = honest(gate, unsealed);
	lies[0].fds[0] = unsealed; /* a gate that could vanish */
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
	for (int i = 0; i < 11; i++)
		CHECK_RESULT(DOCA_ERROR_DRIVER, import_from(&lies[i]));
	remote_gate_close(mapped);
	close(gate);
	close(unsealed);
}

/* ---- One process, several threads ---- */

static unsigned count_fds(void)
{
	unsigned count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void own_export(enum memory memory)
{
	int fd;
	uint8_t *bytes = make_memory(memory, &fd);
	fill(bytes, 1);
	struct doca_dev *host = rig_open_dev(HOST_PCI);
	struct doca_mmap *mmap = rig_mmap(host, bytes, LEN, PCI_WRITE);
	struct exporter e = {.offer = {.addr = bytes}};
	const void *desc;
	CHECK_OK(soft_doca_mmap_export_pci(mmap, host, &desc, &e.offer.desc_len));
	memcpy(e.offer.desc, desc, e.offer.desc_len);
	struct importer i;
	open_importer(&i, &e);
	CHECK_OK(fetch(&i, &e));
	CHECK(filled(i.bytes, 1));
	fill(i.bytes, 2);
	CHECK_OK(store(&i, &e));
	CHECK(filled(bytes, 2));
	CHECK_OK(soft_doca_mmap_stop(mmap));
	CHECK_RESULT(DOCA_ERROR_IO_FAILED, fetch(&i, &e));
	close_importer(&i);
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_dev_close(host));
	drop_memory(memory, bytes, fd);
}

static void test_own_exports(void)
{
	rig_configure(NULL);
	unsigned fds = count_fds();
	own_export(MALLOC);
	own_export(ALLOC);
	own_export(MAPPED_FILE);
	CHECK(count_fds() == fds);
}

static void test_import_rules(void)
{
	struct exporter e = start_exporter(ALLOC, PCI_READ);
	struct doca_dev *host = rig_open_dev(HOST_PCI), *dpu = rig_open_dev(DPU_PCI);
	struct doca_mmap *m;
	union doca_data data = {.u64 = 42};
	const void *desc;
	size_t len;
	void *addr;
	uint8_t from_export;
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED,
		     soft_doca_mmap_create_from_export(NULL, e.offer.desc, e.offer.desc_len, host, &m));
	CHECK_OK(soft_doca_mmap_create_from_export(&data, e.offer.desc, e.offer.desc_len, dpu, &m));
	data.u64 = 0;
	CHECK_OK(soft_doca_mmap_get_user_data(m, &data));
	CHECK_OK(soft_doca_mmap_get_memrange(m, &addr, &len));
	CHECK_OK(soft_doca_mmap_get_from_export(m, &from_export));
	CHECK(data.u64 == 42 && addr == e.offer.addr && len == LEN && from_export == 1);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_start(m));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_stop(m));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_add_dev(m, host));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_rm_dev(m, dpu));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_set_permissions(m, 0));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_set_memrange(m, addr, len));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_export_pci(m, dpu, &desc, &len));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(dpu));
	CHECK_OK(soft_doca_mmap_destroy(m));
	CHECK_OK(soft_doca_dev_close(host));
	CHECK_OK(soft_doca_dev_close(dpu));
	quit_exporter(&e);
}

static atomic_bool copying;

/* Copies until it is refused. What the owner wrote after the export's end must never arrive. */
static void *copy_for_ever(void *arg)
{
	struct soft_import *import = arg;
	uint8_t *bytes = malloc(LEN);
	CHECK(bytes != NULL);
	while (soft_import_read(import, bytes, import->range.addr, LEN) == DOCA_SUCCESS) {
		atomic_store(&copying, true);
		CHECK(memchr(bytes, 0xee, LEN) == NULL);
	}
	free(bytes);
	return NULL;
}

/* Memory is given back at once after the export ends, while others still try to copy from it. */
static void test_revoked_while_copying(void)
{
	struct doca_dev *host = rig_open_dev(HOST_PCI);
	for (int round = 0; round < 20; round++) {
		uint8_t *bytes = memory_alloc(LEN);
		struct soft_range range = {bytes, LEN, PCI_READ};
		struct soft_export *export;
		struct soft_import *imports[2];
		pthread_t threads[2];
		const void *desc;
		size_t len;
		CHECK_OK(soft_export_open(&range, &export));
		soft_export_descriptor(export, &desc, &len);
		atomic_store(&copying, false);
		for (int i = 0; i < 2; i++) {
			CHECK_OK(soft_import_open(desc, len, &imports[i], &range));
			CHECK(pthread_create(&threads[i], NULL, copy_for_ever, imports[i]) == 0);
		}
		while (!atomic_load(&copying))
			usleep(10);
		soft_export_close(export);
		memset(bytes, 0xee, LEN);
		memory_free(bytes, LEN);
		for (int i = 0; i < 2; i++) {
			CHECK(pthread_join(threads[i], NULL) == 0);
			CHECK(atomic_load(&imports[i]->gate->busy) == 0);
			soft_import_close(imports[i]);
		}
	}
	CHECK_OK(soft_doca_dev_close(host));
}

static atomic_bool closed;

static void *close_export(void *export)
{
	soft_export_close(export);
	atomic_store(&closed, true);
	return NULL;
}

/* The end of an export waits for who is copying, here played by hand, until it is done or dead. */
static void end_while_busy(bool importer_dies)
{
	static uint8_t bytes[64];
	struct soft_range range = {bytes, sizeof(bytes), PCI_READ};
	struct soft_export *export;
	struct soft_import *import;
	pthread_t thread;
	const void *desc;
	size_t len;
	CHECK_OK(soft_export_open(&range, &export));
	soft_export_descriptor(export, &desc, &len);
	CHECK_OK(soft_import_open(desc, len, &import, &range));
	atomic_store(&import->gate->busy, 1);
	atomic_store(&closed, false);
	CHECK(pthread_create(&thread, NULL, close_export, export) == 0);
	while (atomic_load(&import->gate->revoked) == 0)
		usleep(10);
	usleep(5000);
	CHECK(!atomic_load(&closed));
	if (!importer_dies)
		atomic_store(&import->gate->busy, 0);
	else
		soft_import_close(import);
	CHECK(pthread_join(thread, NULL) == 0);
	if (!importer_dies)
		soft_import_close(import);
}

/* An importer that does not come out keeps the memory, but not the one who asks for it back. */
static void test_end_does_not_wait_for_ever(void)
{
	static uint8_t bytes[64], copy[64];
	struct soft_range range = {bytes, sizeof(bytes), PCI_READ};
	struct soft_export *export;
	struct soft_import *import;
	const void *desc;
	size_t len;
	rig_configure(NULL);
	CHECK_OK(soft_export_open(&range, &export));
	soft_export_descriptor(export, &desc, &len);
	CHECK_OK(soft_import_open(desc, len, &import, &range));
	atomic_store(&import->gate->busy, 1);
	CHECK(soft_export_close(export) == DOCA_ERROR_IN_USE);
	CHECK(soft_import_read(import, copy, bytes, sizeof(copy)) == DOCA_ERROR_IO_FAILED);
	atomic_store(&import->gate->busy, 0);
	CHECK_OK(soft_export_close(export));
	soft_import_close(import);
}

static void test_end_waits_for_copies(void)
{
	rig_configure(NULL);
	end_while_busy(false);
	end_while_busy(true);
}

static void *come_and_go(void *unused)
{
	(void)unused;
	for (int i = 0; i < 50; i++) {
		uint8_t bytes[64] = {0}, copy[64];
		struct soft_range range = {bytes, sizeof(bytes), PCI_READ}, seen;
		struct soft_export *export;
		struct soft_import *import;
		const void *desc;
		size_t len;
		CHECK_OK(soft_export_open(&range, &export));
		soft_export_descriptor(export, &desc, &len);
		CHECK_OK(soft_import_open(desc, len, &import, &seen));
		CHECK_OK(soft_import_read(import, copy, bytes, sizeof(copy)));
		soft_import_close(import);
		soft_export_close(export);
	}
	return NULL;
}

/* The service starts with the first export and ends with the last, whoever makes them. */
static void test_exports_come_and_go(void)
{
	pthread_t threads[4];
	unsigned fds = count_fds();
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, come_and_go, NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(count_fds() == fds && rig_count_files("mem.") == 0);
}

int main(void)
{
	rig_configure(NULL);
	RUN(test_any_memory);
	RUN(test_own_memory_is_mapped);
	RUN(test_mapping_switched_off);
	RUN(test_file_memory);
	RUN(test_refused_process_access);
	RUN(test_read_only);
	RUN(test_exporter_destroys);
	RUN(test_exporter_killed);
	RUN(test_killed_before_import);
	RUN(test_sweep);
	RUN(test_exporter_truncates);
	RUN(test_flipped_descriptors);
	RUN(test_wrong_names);
	RUN(test_silent_strangers);
	RUN(test_slow_strangers);
	RUN(test_lying_exporters);
	RUN(test_own_exports);
	RUN(test_import_rules);
	RUN(test_revoked_while_copying);
	RUN(test_end_waits_for_copies);
	RUN(test_end_does_not_wait_for_ever);
	RUN(test_exports_come_and_go);
	return 0;
}
