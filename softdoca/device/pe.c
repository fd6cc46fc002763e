/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "pe.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "ctx.h"
#include "now.h"
#include "quirk.h"
#include "sizes.h"
#include "soft.h"

/*
 * The notification handle is an epoll descriptor with one possible member, the inner epoll, which collects everything
 * that can give progress something to do:
 *
 *   handle ── (while armed) ── inner ─┬─ descriptors of contexts: sockets
 *                                     ├─ event: some context has work now
 *                                     └─ timer: some context will have work at a known time
 *
 * Taking inner out of handle therefore silences all of it at once. A context may watch an epoll of its own, and a
 * program may put handle into one: Linux nests five.
 */
struct doca_pe {
	int handle;
	int inner;
	int event;
	int timer;
	bool signalled;    /* event is readable */
	uint64_t timer_at; /* the time timer is set to, in CLOCK_MONOTONIC nanoseconds; 0: not set */
	bool armed;
	enum doca_pe_event_mode mode;
	bool progressing;
	uint64_t rounds;     /* calls of doca_pe_progress */
	bool started;        /* see soft_pe_started, in the last of them */
	unsigned idle_polls; /* calls in a row that found nothing, up to SOFT_IDLE_POLLS */
	struct doca_ctx *contexts;
	struct doca_ctx *next_ctx; /* served next; NULL: the first of the list */
};

doca_error_t soft_pe_watch(struct doca_pe *pe, int fd, uint32_t epoll_events)
{
	struct epoll_event event = {.events = epoll_events, .data.fd = fd};
	if (epoll_ctl(pe->inner, EPOLL_CTL_ADD, fd, &event) == 0)
		return DOCA_SUCCESS;
	if (errno == EEXIST && epoll_ctl(pe->inner, EPOLL_CTL_MOD, fd, &event) == 0)
		return DOCA_SUCCESS;
	return DOCA_ERROR_OPERATING_SYSTEM;
}

void soft_pe_unwatch(struct doca_pe *pe, int fd)
{
	epoll_ctl(pe->inner, EPOLL_CTL_DEL, fd, NULL);
}

static void close_descriptors(struct doca_pe *pe)
{
	const int descriptors[] = {pe->handle, pe->inner, pe->event, pe->timer};
	for (size_t i = 0; i < sizeof(descriptors) / sizeof(descriptors[0]); i++) {
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	}
}

static doca_error_t open_descriptors(struct doca_pe *pe)
{
	pe->handle = epoll_create1(EPOLL_CLOEXEC);
	pe->inner = epoll_create1(EPOLL_CLOEXEC);
	pe->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pe->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (pe->handle >= 0 && pe->inner >= 0 && pe->event >= 0 && pe->timer >= 0 &&
	    soft_pe_watch(pe, pe->event, EPOLLIN) == DOCA_SUCCESS &&
	    soft_pe_watch(pe, pe->timer, EPOLLIN) == DOCA_SUCCESS)
		return DOCA_SUCCESS;
	close_descriptors(pe);
	return DOCA_ERROR_NO_MEMORY;
}

doca_error_t soft_doca_pe_create(struct doca_pe **pe)
{
	if (pe == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_pe *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	doca_error_t result = open_descriptors(created);
	if (result != DOCA_SUCCESS)
		goto free_pe;
	*pe = created;
	return DOCA_SUCCESS;

free_pe:
	free(created);
	return result;
}

doca_error_t soft_doca_pe_destroy(struct doca_pe *pe)
{
	if (pe == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (pe->contexts != NULL || pe->progressing)
		return DOCA_ERROR_IN_USE;
	close_descriptors(pe);
	free(pe);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx)
{
	if (pe == NULL || ctx == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (ctx->state != DOCA_CTX_STATE_IDLE)
		return DOCA_ERROR_BAD_STATE;
	if (ctx->pe != NULL)
		return DOCA_ERROR_NOT_PERMITTED;
	ctx->pe = pe;
	ctx->next = pe->contexts;
	pe->contexts = ctx;
	return DOCA_SUCCESS;
}

void soft_pe_disconnect(struct doca_ctx *ctx)
{
	struct doca_pe *pe = ctx->pe;
	if (pe == NULL)
		return;
	struct doca_ctx **link = &pe->contexts;
	while (*link != ctx)
		link = &(*link)->next;
	*link = ctx->next;
	if (pe->next_ctx == ctx)
		pe->next_ctx = ctx->next;
	ctx->pe = NULL;
}

void soft_pe_started(struct doca_pe *pe)
{
	pe->started = true;
}

uint64_t soft_pe_rounds(const struct doca_pe *pe)
{
	return pe->rounds;
}

bool soft_pe_progressing(const struct doca_pe *pe)
{
	return pe->progressing;
}

static size_t count_contexts(const struct doca_pe *pe)
{
	size_t n = 0;
	for (const struct doca_ctx *ctx = pe->contexts; ctx != NULL; ctx = ctx->next)
		n++;
	return n;
}

static size_t count_inflight(const struct doca_pe *pe)
{
	size_t n = 0;
	for (const struct doca_ctx *ctx = pe->contexts; ctx != NULL; ctx = ctx->next)
		n += ctx->inflight_tasks;
	return n;
}

/* Round robin, so that a busy context cannot starve the others. */
static struct doca_ctx *next_context(struct doca_pe *pe)
{
	struct doca_ctx *ctx = pe->next_ctx != NULL ? pe->next_ctx : pe->contexts;
	pe->next_ctx = ctx->next;
	return ctx;
}

doca_error_t soft_doca_pe_get_notification_handle(const struct doca_pe *pe, doca_notification_handle_t *handle)
{
	if (pe == NULL || handle == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*handle = pe->handle;
	return DOCA_SUCCESS;
}

/* at is as in timer_at. Each progress of an armed engine calls this, so a value already set costs no system call. */
static doca_error_t set_timer(struct doca_pe *pe, uint64_t at)
{
	if (at == pe->timer_at)
		return DOCA_SUCCESS;
	struct itimerspec when = {
		.it_value = {.tv_sec = (time_t)(at / 1000000000U), .tv_nsec = (long)(at % 1000000000U)}};
	if (timerfd_settime(pe->timer, TFD_TIMER_ABSTIME, &when, NULL) != 0)
		return DOCA_ERROR_OPERATING_SYSTEM;
	pe->timer_at = at;
	return DOCA_SUCCESS;
}

static void signal_work(struct doca_pe *pe)
{
	if (!pe->signalled)
		pe->signalled = eventfd_write(pe->event, 1) == 0;
}

static void unsignal_work(struct doca_pe *pe)
{
	eventfd_t ignored;
	if (pe->signalled)
		eventfd_read(pe->event, &ignored);
	pe->signalled = false;
}

static uint64_t earliest_work(const struct doca_pe *pe)
{
	uint64_t at = UINT64_MAX;
	for (const struct doca_ctx *ctx = pe->contexts; ctx != NULL; ctx = ctx->next) {
		uint64_t ready_at = soft_ctx_ready_at(ctx);
		at = ready_at < at ? ready_at : at;
	}
	return at;
}

/* Arranges the wakeup for work that no watched descriptor announces. */
static doca_error_t schedule(struct doca_pe *pe)
{
	uint64_t at = earliest_work(pe);
	if (at <= soft_now_ns()) {
		signal_work(pe);
		return pe->signalled ? DOCA_SUCCESS : DOCA_ERROR_OPERATING_SYSTEM;
	}
	unsignal_work(pe);
	return set_timer(pe, at == UINT64_MAX ? 0 : at);
}

/* Progress itself schedules when it is done, so that an armed handle is no longer readable once there is no work. */
void soft_pe_notify(struct doca_pe *pe)
{
	if (pe->armed && !pe->progressing && schedule(pe) != DOCA_SUCCESS)
		signal_work(pe);
}

static bool drops_events(const struct doca_pe *pe)
{
	return pe->armed && pe->mode == DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE && soft_has_quirk(SOFT_SELECTIVE_SWALLOW);
}

static bool has_comch(const struct doca_pe *pe)
{
	const struct doca_ctx *ctx = pe->contexts;
	while (ctx != NULL && !ctx->class->is_comch)
		ctx = ctx->next;
	return ctx != NULL;
}

/*
 * A Comch context waits for other threads or processes. With more pollers than CPUs, a poller that keeps its CPU delays
 * them by a time slice of the scheduler for each message.
 */
void soft_pe_polled(struct doca_pe *pe, bool moved)
{
	pe->idle_polls = moved ? 0 : pe->idle_polls + (pe->idle_polls < SOFT_IDLE_POLLS);
	if (pe->idle_polls == SOFT_IDLE_POLLS && has_comch(pe))
		sched_yield();
}

/*
 * Does all that is ready, until every context in turn finds nothing. The bound is for callbacks that submit tasks which
 * complete at once, and for peers that send faster than the program receives.
 */
static bool serve_contexts(struct doca_pe *pe)
{
	size_t budget = count_inflight(pe) + SOFT_PROGRESS_EVENTS;
	bool moved = false;
	pe->started = false;
	for (size_t idle = 0; idle < count_contexts(pe) && budget > 0 && !pe->started;) {
		if (!soft_ctx_progress(next_context(pe))) {
			idle++;
			continue;
		}
		moved = true;
		idle = 0;
		budget--;
	}
	return moved;
}

/* DOCA forbids progress inside a callback; here it does nothing. */
uint8_t soft_doca_pe_progress(struct doca_pe *pe)
{
	if (pe == NULL || pe->progressing || drops_events(pe))
		return 0;
	pe->progressing = true;
	pe->rounds++;
	bool moved = serve_contexts(pe);
	pe->progressing = false;
	soft_pe_notify(pe);
	soft_pe_polled(pe, moved);
	return moved;
}

static void disarm(struct doca_pe *pe)
{
	if (!pe->armed)
		return;
	epoll_ctl(pe->handle, EPOLL_CTL_DEL, pe->inner, NULL);
	pe->armed = false;
}

/* The handle argument is ignored, as on Linux. */
doca_error_t soft_doca_pe_clear_notification(struct doca_pe *pe, doca_notification_handle_t handle)
{
	(void)handle;
	if (pe == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	disarm(pe);
	return DOCA_SUCCESS;
}

/* Guides from 2.8 on say that Comch does not support event-triggered completion; users report the same of hardware. */
static bool cannot_notify(const struct doca_pe *pe)
{
	return has_comch(pe) && soft_has_quirk(SOFT_COMCH_NO_NOTIFICATION);
}

/* A second request clears the first, as in DOCA. */
doca_error_t soft_doca_pe_request_notification(struct doca_pe *pe)
{
	if (pe == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (cannot_notify(pe))
		return DOCA_ERROR_NOT_SUPPORTED;
	disarm(pe);
	doca_error_t result = schedule(pe);
	if (result != DOCA_SUCCESS)
		return result;
	struct epoll_event event = {.events = EPOLLIN};
	if (epoll_ctl(pe->handle, EPOLL_CTL_ADD, pe->inner, &event) != 0)
		return DOCA_ERROR_OPERATING_SYSTEM;
	pe->armed = true;
	return DOCA_SUCCESS;
}

/* Both modes deliver events, unless the quirk is configured. */
doca_error_t soft_doca_pe_set_event_mode(struct doca_pe *pe, enum doca_pe_event_mode event_mode)
{
	if (pe == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (event_mode != DOCA_PE_EVENT_MODE_PROGRESS_SELECTIVE && event_mode != DOCA_PE_EVENT_MODE_PROGRESS_ALL)
		return DOCA_ERROR_INVALID_VALUE;
	pe->mode = event_mode;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_pe_get_num_inflight_tasks(const struct doca_pe *pe, size_t *num_inflight_tasks)
{
	if (pe == NULL || num_inflight_tasks == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*num_inflight_tasks = count_inflight(pe);
	return DOCA_SUCCESS;
}
