/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter's thread. Whoever connects is a visitor: a stranger until it shows the key of an export, which it has
 * one second for, and an importer of that export from then on until it hangs up or the export is closed.
 *
 * The thread reads without waiting and asks every visitor each time it wakes, so nothing depends on which descriptor
 * poll named, and soft_service_remove may take visitors away between two rounds.
 */
#define _GNU_SOURCE
#include "remote_export.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_VISITORS 1024
#define MAX_STRANGERS 16
#define BACKLOG 64
#define DOOR_CLOSED_NS 100000000ull

struct visitor {
	struct visitor *next; /* the newest first */
	int fd;
	pid_t pid;
	uint64_t speak_by;          /* a stranger's deadline */
	struct soft_export *export; /* NULL: a stranger */
	struct remote_gate *gate;
};

/* Held while the service starts or stops, so that exports which come and go at once agree on who does it. */
static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned num_exports;

static struct {
	pthread_mutex_t lock; /* guards the next six */
	struct soft_export *exports;
	struct visitor *visitors;
	unsigned num_visitors;
	uint64_t door_opens_at; /* 0: it is open */
	uint64_t last_id;
	bool stopping;

	/* Set before the thread starts, constant while it runs. */
	char socket[REMOTE_NAME_SIZE];
	int listener;
	int wake; /* eventfd */
	pthread_t thread;
} service = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Visitors ---- */

static void dismiss(struct visitor *visitor)
{
	if (visitor->gate != NULL) {
		atomic_store(&visitor->gate->revoked, 1);
		remote_gate_close(visitor->gate);
	}
	close(visitor->fd);
	free(visitor);
}

/* Takes time that does not depend on where the keys differ. */
static bool same_key(const uint8_t a[REMOTE_KEY_SIZE], const uint8_t b[REMOTE_KEY_SIZE])
{
	unsigned difference = 0;
	for (size_t i = 0; i < REMOTE_KEY_SIZE; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

static struct soft_export *find_requested(const struct remote_request *request)
{
	if (request->magic != REMOTE_MAGIC || request->version != REMOTE_VERSION || request->reserved != 0)
		return NULL;
	struct soft_export *export = service.exports;
	while (export != NULL && export->id != request->export_id)
		export = export->next;
	return export != NULL && same_key(export->key, request->key) ? export : NULL;
}

static bool send_grant(const struct visitor *visitor, const struct soft_export *export, int gate_fd, uint32_t gate_shm)
{
	struct remote_answer answer = {
		.magic = REMOTE_MAGIC,
		.version = REMOTE_VERSION,
		.granted = 1,
		.permissions = export->range.permissions,
		.backing = export->backing,
		.addr = (uintptr_t) export->range.addr,
		.len = export->range.len,
		.offset = export->backing_offset,
		.gate_shm = gate_shm,
	};
	int fds[REMOTE_MAX_FDS];
	size_t num_fds = 0;
	if (gate_fd >= 0)
		fds[num_fds++] = gate_fd;
	if (export->backing_fd >= 0)
		fds[num_fds++] = export->backing_fd;
	return remote_send(visitor->fd, &answer, sizeof(answer), fds, num_fds);
}

static bool grant(struct visitor *visitor, struct soft_export *export)
{
	int gate_fd;
	uint32_t gate_shm;
	struct remote_gate *gate = remote_gate_create(&gate_fd, &gate_shm);
	if (gate == NULL)
		return false;
	/* Where Yama restricts process_vm_readv, this admits the importer; elsewhere it fails and is not needed. */
	if (visitor->pid > 0)
		prctl(PR_SET_PTRACER, (unsigned long)visitor->pid, 0, 0, 0);
	bool sent = send_grant(visitor, export, gate_fd, gate_shm);
	if (gate_fd >= 0)
		close(gate_fd);
	if (!sent) {
		remote_gate_close(gate);
		return false;
	}
	visitor->gate = gate;
	visitor->export = export;
	return true;
}

static bool answer(struct visitor *visitor, const struct remote_request *request)
{
	struct soft_export *export = find_requested(request);
	if (export != NULL)
		return grant(visitor, export);
	struct remote_answer refusal = {.magic = REMOTE_MAGIC, .version = REMOTE_VERSION};
	remote_send(visitor->fd, &refusal, sizeof(refusal), NULL, 0);
	return false;
}

/* False if it has to go. An importer has nothing more to say, and is not thrown out for talking: it may be copying. */
static bool hear(struct visitor *visitor, uint64_t now)
{
	struct remote_request request;
	ssize_t n = recv(visitor->fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
	if (visitor->export != NULL)
		return !soft_socket_hung_up(visitor->fd);
	if (n < 0)
		return (errno == EAGAIN || errno == EINTR) && now < visitor->speak_by;
	return n == sizeof(request) && answer(visitor, &request);
}

static void hear_visitors(uint64_t now)
{
	struct visitor **link = &service.visitors;
	while (*link != NULL) {
		struct visitor *visitor = *link;
		if (hear(visitor, now)) {
			link = &visitor->next;
			continue;
		}
		*link = visitor->next;
		service.num_visitors--;
		dismiss(visitor);
	}
}

/* Silent strangers cannot keep importers out: the one that has been silent longest goes for a newcomer. */
static void limit_strangers(void)
{
	unsigned strangers = 0;
	struct visitor **oldest = NULL;
	for (struct visitor **link = &service.visitors; *link != NULL; link = &(*link)->next) {
		if ((*link)->export != NULL)
			continue;
		strangers++;
		oldest = link;
	}
	if (strangers <= MAX_STRANGERS)
		return;
	struct visitor *visitor = *oldest;
	*oldest = visitor->next;
	service.num_visitors--;
	dismiss(visitor);
}

static struct visitor *new_visitor(int fd, uint64_t now)
{
	pid_t pid;
	if (service.num_visitors >= MAX_VISITORS || !soft_socket_peer(fd, &pid))
		return NULL;
	struct visitor *visitor = calloc(1, sizeof(*visitor));
	if (visitor != NULL)
		*visitor = (struct visitor){.fd = fd, .pid = pid, .speak_by = now + REMOTE_TIMEOUT_NS};
	return visitor;
}

/* A newcomer is heard at once, before a later one can push it out. */
static void welcome(int fd, uint64_t now)
{
	struct visitor *visitor = new_visitor(fd, now);
	if (visitor == NULL) {
		close(fd);
	} else if (!hear(visitor, now)) {
		dismiss(visitor);
	} else {
		visitor->next = service.visitors;
		service.visitors = visitor;
		service.num_visitors++;
		limit_strangers();
	}
}

/* At most a backlog of them, then it is the others' turn. Without descriptors left the door closes for a while. */
static void admit_visitors(uint64_t now)
{
	service.door_opens_at = 0;
	for (int i = 0; i < BACKLOG; i++) {
		int fd = accept4(service.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			welcome(fd, now);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			service.door_opens_at = now + DOOR_CLOSED_NS;
		return;
	}
}

/* ---- The thread ---- */

static int milliseconds_until(uint64_t when, uint64_t now)
{
	if (when == UINT64_MAX)
		return -1;
	return when <= now ? 0 : (int)((when - now) / 1000000 + 1);
}

/* Fills the set to poll. The wait ends at a stranger's deadline, or when the door opens again. */
static nfds_t collect(struct pollfd *set, int *timeout_ms)
{
	nfds_t count = 0;
	bool open = service.door_opens_at == 0;
	uint64_t until = open ? UINT64_MAX : service.door_opens_at;
	set[count++] = (struct pollfd){.fd = service.wake, .events = POLLIN};
	set[count++] = (struct pollfd){.fd = open ? service.listener : -1, .events = POLLIN};
	for (const struct visitor *v = service.visitors; v != NULL; v = v->next) {
		set[count++] = (struct pollfd){.fd = v->fd, .events = POLLIN | POLLRDHUP};
		if (v->export == NULL && v->speak_by < until)
			until = v->speak_by;
	}
	*timeout_ms = milliseconds_until(until, soft_now_ns());
	return count;
}

static bool wait_for_visitors(void)
{
	static struct pollfd set[2 + MAX_VISITORS];
	int timeout_ms;
	pthread_mutex_lock(&service.lock);
	bool stopping = service.stopping;
	nfds_t count = stopping ? 0 : collect(set, &timeout_ms);
	pthread_mutex_unlock(&service.lock);
	if (stopping)
		return false;
	poll(set, count, timeout_ms);
	eventfd_t ignored;
	eventfd_read(service.wake, &ignored);
	return true;
}

static void *serve(void *unused)
{
	(void)unused;
	while (wait_for_visitors()) {
		pthread_mutex_lock(&service.lock);
		uint64_t now = soft_now_ns();
		hear_visitors(now);
		admit_visitors(now);
		pthread_mutex_unlock(&service.lock);
	}
	return NULL;
}

static void wake_service(void)
{
	eventfd_write(service.wake, 1);
}

/* Signals are the program's, none is for this thread. */
static int create_thread(void)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int err = pthread_create(&service.thread, NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static doca_error_t start_failure(int err)
{
	soft_detail("memory cannot be exported through %s: %s", shown_string(soft_runtime_dir()).text, strerror(err));
	return DOCA_ERROR_DRIVER;
}

/* A name that was never used before: an old descriptor must not find a new service behind it. */
static doca_error_t start_service(void)
{
	uint64_t nonce;
	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return start_failure(errno);
	memset(service.socket, 0, sizeof(service.socket));
	snprintf(service.socket, sizeof(service.socket), "mem.%d.%016llx", (int)getpid(), (unsigned long long)nonce);
	service.stopping = false;
	service.listener = soft_socket_listen(service.socket, BACKLOG);
	if (service.listener < 0)
		return start_failure(-service.listener);
	service.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int err = service.wake < 0 ? errno : 0;
	if (err != 0)
		goto close_listener;
	err = create_thread();
	if (err != 0)
		goto close_wake;
	return DOCA_SUCCESS;

close_wake:
	close(service.wake);
close_listener:
	soft_socket_unlink(service.socket);
	close(service.listener);
	return start_failure(err);
}

/* Without exports, only strangers are left. */
static void stop_service(void)
{
	pthread_mutex_lock(&service.lock);
	service.stopping = true;
	pthread_mutex_unlock(&service.lock);
	wake_service();
	pthread_join(service.thread, NULL);
	hear_visitors(UINT64_MAX);
	soft_socket_unlink(service.socket);
	close(service.listener);
	close(service.wake);
}

/* ---- Exports ---- */

doca_error_t soft_service_add(struct soft_export *export, char socket[REMOTE_NAME_SIZE])
{
	pthread_mutex_lock(&life_lock);
	doca_error_t result = num_exports > 0 ? DOCA_SUCCESS : start_service();
	if (result == DOCA_SUCCESS) {
		num_exports++;
		memcpy(socket, service.socket, REMOTE_NAME_SIZE);
		pthread_mutex_lock(&service.lock);
		export->id = ++service.last_id;
		export->next = service.exports;
		service.exports = export;
		pthread_mutex_unlock(&service.lock);
	}
	pthread_mutex_unlock(&life_lock);
	return result;
}

static void unlink_export(const struct soft_export *export)
{
	struct soft_export **link = &service.exports;
	while (*link != export)
		link = &(*link)->next;
	*link = export->next;
}

/* Takes the export's importers out of the thread's hands, each with its gate shut. */
static struct visitor *shut_out(const struct soft_export *export)
{
	struct visitor *revoked = NULL, **link = &service.visitors;
	while (*link != NULL) {
		struct visitor *visitor = *link;
		if (visitor->export != export) {
			link = &visitor->next;
			continue;
		}
		atomic_store(&visitor->gate->revoked, 1);
		*link = visitor->next;
		service.num_visitors--;
		visitor->next = revoked;
		revoked = visitor;
	}
	return revoked;
}

/* An importer that died in the middle of a copy stays busy for ever, but its socket is closed. One that was stopped, or
 * lies, keeps both, and the memory: false at the deadline. */
static bool wait_until_idle(const struct visitor *visitor, uint64_t deadline)
{
	while (atomic_load(&visitor->gate->busy) != 0 && !soft_socket_hung_up(visitor->fd)) {
		if (soft_now_ns() > deadline)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
	}
	return true;
}

/* No importer can begin a copy afterwards. */
static void withdraw(struct soft_export *export)
{
	pthread_mutex_lock(&service.lock);
	unlink_export(export);
	export->revoked = shut_out(export);
	export->withdrawn = true;
	pthread_mutex_unlock(&service.lock);
	wake_service();
}

bool soft_service_remove(struct soft_export *export)
{
	if (!export->withdrawn)
		withdraw(export);
	uint64_t deadline = soft_now_ns() + REMOTE_REVOKE_NS;
	while (export->revoked != NULL) {
		struct visitor *visitor = export->revoked;
		if (!wait_until_idle(visitor, deadline))
			return false;
		export->revoked = visitor->next;
		dismiss(visitor);
	}
	pthread_mutex_lock(&life_lock);
	if (--num_exports == 0)
		stop_service();
	pthread_mutex_unlock(&life_lock);
	return true;
}
