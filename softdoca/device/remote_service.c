/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service thread of an exporter. A process that connects is a peer: it must send the key of an export within
 * SOFT_PEER_TIMEOUT_NS, and is an importer of that export until it hangs up or the export is closed.
 *
 * The thread reads without waiting and checks every peer each time it wakes, so nothing depends on which descriptor
 * poll reported, and soft_service_remove may remove peers between two rounds.
 */
#define _GNU_SOURCE
#include "remote_export.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "error.h"
#include "now.h"
#include "remote_wire.h"
#include "shown.h"
#include "sizes.h"
#include "socket.h"

struct remote_peer {
	struct remote_peer *next; /* newest first */
	int fd;
	pid_t pid;
	uint64_t request_deadline;  /* deadline of the request */
	struct soft_export *export; /* NULL: not yet authenticated */
	struct remote_gate *gate;
};

/* Held while the service starts or stops, so that concurrent exports start and stop it once. */
static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned num_exports;

static struct {
	pthread_mutex_t lock; /* guards the next six */
	struct soft_export *exports;
	struct remote_peer *peers;
	unsigned num_peers;
	uint64_t accept_after; /* 0: at any time */
	uint64_t last_id;
	bool stopping;

	/* Set before the thread starts, constant while it runs. */
	char socket[REMOTE_NAME_SIZE];
	int listener;
	int wake; /* eventfd */
	pthread_t thread;
} service = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- importers ---- */

static void close_peer(struct remote_peer *peer)
{
	if (peer->gate != NULL) {
		atomic_store(&peer->gate->revoked, 1);
		remote_gate_close(peer->gate);
	}
	close(peer->fd);
	free(peer);
}

/* Its time does not depend on where the keys differ. */
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

static bool send_grant(const struct remote_peer *peer, const struct soft_export *export, int gate_fd, uint32_t gate_shm)
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
	return remote_send(peer->fd, &answer, sizeof(answer), fds, num_fds);
}

static bool grant(struct remote_peer *peer, struct soft_export *export)
{
	int gate_fd;
	uint32_t gate_shm;
	struct remote_gate *gate = remote_gate_create(&gate_fd, &gate_shm);
	if (gate == NULL)
		return false;
	/* Where Yama restricts process_vm_readv, this admits the importer; elsewhere it fails and is not needed. */
	if (peer->pid > 0)
		prctl(PR_SET_PTRACER, (unsigned long)peer->pid, 0, 0, 0);
	bool sent = send_grant(peer, export, gate_fd, gate_shm);
	if (gate_fd >= 0)
		close(gate_fd);
	if (!sent) {
		remote_gate_close(gate);
		return false;
	}
	peer->gate = gate;
	peer->export = export;
	return true;
}

static bool answer(struct remote_peer *peer, const struct remote_request *request)
{
	struct soft_export *export = find_requested(request);
	if (export != NULL)
		return grant(peer, export);
	struct remote_answer refusal = {.magic = REMOTE_MAGIC, .version = REMOTE_VERSION};
	remote_send(peer->fd, &refusal, sizeof(refusal), NULL, 0);
	return false;
}

/* False if the peer must be closed. An importer is not closed for sending: it may be copying. */
static bool serve_peer(struct remote_peer *peer, uint64_t now)
{
	struct remote_request request;
	ssize_t n = recv(peer->fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
	if (peer->export != NULL)
		return !soft_socket_hung_up(peer->fd);
	if (n < 0)
		return (errno == EAGAIN || errno == EINTR) && now < peer->request_deadline;
	return n == sizeof(request) && answer(peer, &request);
}

static void serve_peers(uint64_t now)
{
	struct remote_peer **link = &service.peers;
	while (*link != NULL) {
		struct remote_peer *peer = *link;
		if (serve_peer(peer, now)) {
			link = &peer->next;
			continue;
		}
		*link = peer->next;
		service.num_peers--;
		close_peer(peer);
	}
}

/* Peers that send nothing must not keep importers out: the oldest of them is closed for a new one. */
static void limit_unauthenticated(void)
{
	unsigned unauthenticated = 0;
	struct remote_peer **oldest = NULL;
	for (struct remote_peer **link = &service.peers; *link != NULL; link = &(*link)->next) {
		if ((*link)->export != NULL)
			continue;
		unauthenticated++;
		oldest = link;
	}
	if (unauthenticated <= SOFT_MAX_HANDSHAKES)
		return;
	struct remote_peer *peer = *oldest;
	*oldest = peer->next;
	service.num_peers--;
	close_peer(peer);
}

static struct remote_peer *new_peer(int fd, uint64_t now)
{
	pid_t pid;
	if (service.num_peers >= SOFT_MAX_IMPORTERS || !soft_socket_peer(fd, &pid))
		return NULL;
	struct remote_peer *peer = calloc(1, sizeof(*peer));
	if (peer != NULL)
		*peer = (struct remote_peer){.fd = fd, .pid = pid, .request_deadline = now + SOFT_PEER_TIMEOUT_NS};
	return peer;
}

/* A new peer is served at once, before the next one can displace it. */
static void add_peer(int fd, uint64_t now)
{
	struct remote_peer *peer = new_peer(fd, now);
	if (peer == NULL) {
		close(fd);
	} else if (!serve_peer(peer, now)) {
		close_peer(peer);
	} else {
		peer->next = service.peers;
		service.peers = peer;
		service.num_peers++;
		limit_unauthenticated();
	}
}

/* Accepts at most a backlog. Without free descriptors it pauses. */
static void accept_peers(uint64_t now)
{
	service.accept_after = 0;
	for (int i = 0; i < SOFT_EXPORT_BACKLOG; i++) {
		int fd = accept4(service.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			add_peer(fd, now);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			service.accept_after = now + SOFT_ACCEPT_PAUSE_NS;
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

/* Fills the set to poll, which waits until the first deadline of a request, or the end of a pause. */
static nfds_t collect(struct pollfd *set, int *timeout_ms)
{
	nfds_t count = 0;
	bool open = service.accept_after == 0;
	uint64_t until = open ? UINT64_MAX : service.accept_after;
	set[count++] = (struct pollfd){.fd = service.wake, .events = POLLIN};
	set[count++] = (struct pollfd){.fd = open ? service.listener : -1, .events = POLLIN};
	for (const struct remote_peer *v = service.peers; v != NULL; v = v->next) {
		set[count++] = (struct pollfd){.fd = v->fd, .events = POLLIN | POLLRDHUP};
		if (v->export == NULL && v->request_deadline < until)
			until = v->request_deadline;
	}
	*timeout_ms = milliseconds_until(until, soft_now_ns());
	return count;
}

static bool wait_for_peers(void)
{
	static struct pollfd set[2 + SOFT_MAX_IMPORTERS];
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
	while (wait_for_peers()) {
		pthread_mutex_lock(&service.lock);
		uint64_t now = soft_now_ns();
		serve_peers(now);
		accept_peers(now);
		pthread_mutex_unlock(&service.lock);
	}
	return NULL;
}

static void wake_service(void)
{
	eventfd_write(service.wake, 1);
}

/* Blocks all signals in the thread: the program handles them. */
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

/* The name is new, so that an old descriptor cannot find a new service. */
static doca_error_t start_service(void)
{
	uint64_t nonce;
	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return start_failure(errno);
	memset(service.socket, 0, sizeof(service.socket));
	snprintf(service.socket, sizeof(service.socket), "mem.%d.%016llx", (int)getpid(), (unsigned long long)nonce);
	service.stopping = false;
	service.listener = soft_socket_listen(service.socket, SOFT_EXPORT_BACKLOG);
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

/* Without exports there are only peers that have not authenticated. */
static void stop_service(void)
{
	pthread_mutex_lock(&service.lock);
	service.stopping = true;
	pthread_mutex_unlock(&service.lock);
	wake_service();
	pthread_join(service.thread, NULL);
	serve_peers(UINT64_MAX);
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
		export->id = ++service.last_id << 1 | export->range.of_dpu;
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

/* Removes the export's importers from the thread's list and revokes their gates. */
static struct remote_peer *revoke_peers(const struct soft_export *export)
{
	struct remote_peer *revoked = NULL, **link = &service.peers;
	while (*link != NULL) {
		struct remote_peer *peer = *link;
		if (peer->export != export) {
			link = &peer->next;
			continue;
		}
		atomic_store(&peer->gate->revoked, 1);
		*link = peer->next;
		service.num_peers--;
		peer->next = revoked;
		revoked = peer;
	}
	return revoked;
}

/*
 * The gate of an importer that died in a copy stays busy, but its socket is closed. A stopped or hostile importer keeps
 * both: false at the deadline.
 */
static bool wait_until_idle(const struct remote_peer *peer, uint64_t deadline)
{
	while (atomic_load(&peer->gate->busy) != 0 && !soft_socket_hung_up(peer->fd)) {
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
	export->revoked = revoke_peers(export);
	export->withdrawn = true;
	pthread_mutex_unlock(&service.lock);
	wake_service();
}

bool soft_service_remove(struct soft_export *export)
{
	if (!export->withdrawn)
		withdraw(export);
	uint64_t deadline = soft_now_ns() + SOFT_REVOKE_NS;
	while (export->revoked != NULL) {
		struct remote_peer *peer = export->revoked;
		if (!wait_until_idle(peer, deadline))
			return false;
		export->revoked = peer->next;
		close_peer(peer);
	}
	pthread_mutex_lock(&life_lock);
	if (--num_exports == 0)
		stop_service();
	pthread_mutex_unlock(&life_lock);
	return true;
}
