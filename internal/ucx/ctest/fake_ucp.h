/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of UCX, as a test decides: each call is recorded, and answered at once, later, or with an error.
 */
#ifndef DMA_COPY_FAKE_UCP_H
#define DMA_COPY_FAKE_UCP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "endpoint.h"

#define CHECK(condition)                                                                          \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#define RUN(test)                         \
	do {                              \
		test();                   \
		printf("ok %s\n", #test); \
		fflush(stdout);           \
	} while (0)

/* The result of a non-blocking function. */
enum answer { ANSWER_NOW, ANSWER_LATER, ANSWER_ERROR };

enum { REQUESTS = 64, FAKE_SENDERS = 2 };

/* One operation that was answered with ANSWER_LATER. */
struct request {
	bool pending;
	int sender; /* that a rendezvous is from */
	ucp_request_param_t param;
	void *buffer;
	size_t length;
};

/* One thread's state, so that tests can have several. */
struct fake {
	enum answer answer; /* of gets, messages and rendezvous */
	enum answer flush_answer, close_answer;
	bool no_peer_errors; /* as shared memory */
	bool no_memory_attributes;
	int mapped_memory;
	bool no_reply; /* messages are without the endpoint of their sender */
	struct request requests[REQUESTS];
	int freed_requests;
	int destroyed_workers;
	int closed_endpoints, forced_endpoints;
	int sender; /* of the next message, from 0 on */
	bool failed_senders[FAKE_SENDERS], closed_senders[FAKE_SENDERS];
	ucp_am_recv_callback_t on_message;
	void *on_message_arg;
	ucp_err_handler_t on_failure;
};

extern _Thread_local struct fake fake;

/* The memory that is allocated. */
extern uint8_t fake_memory[4096];

extern const struct ucp_library fake_ucp;

/* Returns the object, which must have been opened. */
void *fake_opened(struct ucx_opened o);

/* A context, and a worker of it. */
struct ucx_context *fake_context(void);
struct ucx_worker *fake_worker(struct ucx_context *context, uint32_t depth);

/* Ends a request as UCX would. */
void fake_complete(struct request *request, ucs_status_t status);

/* Returns the first pending request, or NULL. */
struct request *fake_pending(void);

/*
 * Delivers a message whose header is a copy on the heap, so that reading beyond its length is noticed. Closing the
 * endpoint of its sender with ANSWER_NOW ends all rendezvous from it. It can be closed once, and not after a failure.
 */
ucs_status_t fake_message(const void *header, size_t header_length, void *data, size_t length, bool rendezvous);

#endif
