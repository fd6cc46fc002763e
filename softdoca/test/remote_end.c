/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../device/memory.h"
#include "remote_end.h"

#define READ_WRITE DOCA_ACCESS_FLAG_LOCAL_READ_WRITE

static uint8_t byte_at(size_t i, uint8_t seed)
{
	return (uint8_t)(i * 13 + i / 257 + seed);
}

void fill_with(uint8_t *bytes, uint8_t seed)
{
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = byte_at(i, seed);
}

bool filled_with(const uint8_t *bytes, uint8_t seed)
{
	for (size_t i = 0; i < LEN; i++) {
		if (bytes[i] != byte_at(i, seed))
			return false;
	}
	return true;
}

/* ---- the child ---- */
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

uint8_t *make_memory(enum memory memory, int *fd)
{
	uint8_t *bytes = NULL;
	*fd = -1;
	if (memory == MALLOC)
		bytes = malloc(LEN);
	else if (memory == PRIVATE)
		bytes = memory_alloc_private(LEN);
	else if (memory == ALLOC)
		bytes = memory_alloc(LEN);
	else
		bytes = map_temporary_file(fd);
	CHECK(bytes != NULL);
	return bytes;
}

void drop_memory(enum memory memory, uint8_t *bytes, int fd)
{
	if (memory == MALLOC)
		free(bytes);
	else
		memory_free(bytes, LEN);
	if (fd >= 0)
		close(fd);
}

static void run_command(enum command command, struct doca_mmap **mmap, const uint8_t *bytes, int fd)
{
	if (command == CHECK_WRITTEN)
		CHECK(filled_with(bytes, 2));
	if (command == TRUNCATE)
		CHECK(ftruncate(fd, 4096) == 0);
	if (command != DESTROY || *mmap == NULL)
		return;
	CHECK_OK(soft_doca_mmap_destroy(*mmap));
	*mmap = NULL;
}

static void export_until_quit(const char *pci, enum memory memory, uint32_t permissions, int commands, int replies)
{
	int fd;
	uint8_t *bytes = make_memory(memory, &fd);
	fill_with(bytes, 1);
	struct doca_dev *dev = setup_open_dev(pci);
	struct doca_mmap *mmap = setup_mmap(dev, bytes, LEN, permissions);
	struct offer offer = {.addr = bytes};
	const void *desc;
	CHECK_OK(soft_doca_mmap_export_pci(mmap, dev, &desc, &offer.desc_len));
	CHECK(offer.desc_len <= sizeof(offer.desc));
	memcpy(offer.desc, desc, offer.desc_len);
	write_all(replies, &offer, sizeof(offer));
	char command = 0;
	while (command != QUIT && read(commands, &command, 1) == 1) {
		run_command(command, &mmap, bytes, fd);
		write_all(replies, &command, 1);
	}
	run_command(DESTROY, &mmap, bytes, fd);
	CHECK_OK(soft_doca_dev_close(dev));
	drop_memory(memory, bytes, fd);
}

/* ---- what its parent does with it ---- */

struct exporter start_exporter(enum memory memory, uint32_t permissions)
{
	return start_exporter_on(HOST_PCI, memory, permissions);
}

struct exporter start_exporter_on(const char *pci, enum memory memory, uint32_t permissions)
{
	struct exporter e;
	int commands[2], replies[2];
	CHECK(pipe(commands) == 0 && pipe(replies) == 0);
	e.pid = fork();
	CHECK(e.pid >= 0);
	if (e.pid == 0) {
		close(commands[1]);
		close(replies[0]);
		export_until_quit(pci, memory, permissions, commands[0], replies[1]);
		exit(0);
	}
	close(commands[0]);
	close(replies[1]);
	e.commands = commands[1];
	e.replies = replies[0];
	CHECK(read(e.replies, &e.offer, sizeof(e.offer)) == sizeof(e.offer));
	return e;
}

void send_command(struct exporter *e, enum command command)
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

void quit_exporter(struct exporter *e)
{
	int status;
	send_command(e, QUIT);
	CHECK(waitpid(e->pid, &status, 0) == e->pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close_pipes(e);
}

void kill_exporter(struct exporter *e)
{
	int status;
	CHECK(kill(e->pid, SIGKILL) == 0 && waitpid(e->pid, &status, 0) == e->pid && WIFSIGNALED(status));
	close_pipes(e);
}

/* ---- the importer ---- */
void open_importer(struct importer *i, const struct exporter *e)
{
	open_importer_on(DPU_PCI, i, e);
}

void open_importer_on(const char *pci, struct importer *i, const struct exporter *e)
{
	engine_open(&i->engine, pci, 4);
	CHECK_OK(soft_doca_mmap_create_from_export(NULL, e->offer.desc, e->offer.desc_len, i->engine.dev, &i->import));
	i->bytes = calloc(1, LEN);
	i->local = setup_mmap(i->engine.dev, i->bytes, LEN, READ_WRITE);
}

void close_importer(struct importer *i)
{
	CHECK_OK(soft_doca_mmap_destroy(i->import));
	CHECK_OK(soft_doca_mmap_destroy(i->local));
	engine_close(&i->engine);
	free(i->bytes);
}

doca_error_t fetch(struct importer *i, const struct exporter *e)
{
	return engine_copy(&i->engine, i->local, i->bytes, i->import, e->offer.addr, LEN);
}

doca_error_t store(struct importer *i, const struct exporter *e)
{
	return engine_copy(&i->engine, i->import, e->offer.addr, i->local, i->bytes, LEN);
}

/* ---- where the kernel refuses ---- */

void forbid_process_vm(void)
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

void in_child(void (*run)(void))
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		run();
		exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
