/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the CPU's code and the DPA's. It is compiled for both. */
#ifndef EXAMPLES_MSGQ_DEV_H
#define EXAMPLES_MSGQ_DEV_H

#include <stdint.h>

#include <doca_types.h>

/* Messages that one message queue can receive, before the first of them is handled. A power of two. */
#define MSGQ_SIZE 16

/* The objects of message queues, as the DPA's code knows them. 0: not used. */
struct msgq_handles {
	uint64_t arrivals; /* the completion context of the consumer on the DPA */
	uint64_t consumer;
	uint64_t completions; /* the completion context of the producer on the DPA */
	uint64_t producer;
	uint32_t cpu_consumer; /* id of the consumer on the CPU */
};

#endif
