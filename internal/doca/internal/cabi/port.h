/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer or a producer of Comch's fast path on its own progress engine, in batches as in engine.h: one call submits
 * tasks, one call returns completions, and C never calls Go.
 *
 * Threads: one at a time. Opening, stopping and closing use the connection, so they must be called on its channel's
 * thread.
 */
#ifndef DMA_COPY_PORT_H
#define DMA_COPY_PORT_H

#include "progress.h"

/*
 * A buffer that a consumer posts for one message, or a message of a producer to one consumer of the peer. len 0:
 * immediate data only.
 */
struct port_task {
	struct doca_mmap *map;
	uint64_t address;
	uint64_t len;
	uint64_t tag;
	uint32_t to;         /* producer: id of the consumer */
	uint32_t imm_offset; /* producer: in the immediate data of the batch */
	uint32_t imm_len;    /* producer */
	uint32_t reserved;
};

struct port_completion {
	uint64_t tag;
	uint64_t len;      /* consumer: bytes received */
	int32_t status;    /* a doca_error_t */
	uint32_t producer; /* consumer: id of the sending producer */
	uint32_t imm_len;  /* consumer: bytes in imm of the port */
	uint32_t reserved;
};

struct port {
	struct progress progress;
	struct doca_comch_consumer *consumer; /* one of the two */
	struct doca_comch_producer *producer;
	struct doca_buf_inventory *inventory;
	uint32_t depth;
	uint32_t taken;                       /* accepted of the last batch */
	uint32_t inflight;                    /* submitted and not yet completed */
	uint32_t completed;                   /* entries of completions that this poll has filled */
	uint32_t imm_size;                    /* bytes of immediate data in one completion */
	uint8_t *imm;                         /* depth times imm_size */
	struct port_completion completions[]; /* depth of them */
};

/*
 * Opens and starts a consumer over map, with up to imm_size bytes of immediate data in one message, or without a map a
 * producer. Poll a consumer, and its channel, until progress_state is RUNNING. On failure *port is unchanged.
 */
struct outcome port_open(const struct doca_ops *ops, struct doca_comch_connection *connection, struct doca_mmap *map,
			 uint32_t depth, uint32_t imm_size, struct port **port);

/*
 * Submits tasks in order until one is refused; port->taken is the number accepted. AGAIN: the queue is full, or the
 * consumer that the next message is for has posted no buffer. imm: of a producer.
 */
struct outcome port_submit(struct port *port, const struct port_task *tasks, uint32_t count, const uint8_t *imm);

/* Progresses until max completions have arrived or nothing moves; the result is in completions[0..returned). */
uint32_t port_poll(struct port *port, uint32_t max);

struct outcome port_id(const struct port *port, uint32_t *id);

/* Frees an idle port. On failure it frees nothing and can be called again. */
struct outcome port_close(struct port *port);

#endif
