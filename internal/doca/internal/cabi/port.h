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

/* A buffer that a consumer posts for one message. len 0: immediate data only. */
struct port_receive {
	uint64_t address;
	uint64_t len;
	uint64_t tag;
};

/* A message of a producer to one consumer of the peer. len 0: immediate data only. */
struct port_message {
	struct doca_mmap *map;
	uint64_t address;
	uint64_t len;
	uint64_t tag;
	uint32_t to;
	uint32_t imm_offset; /* in the immediate data of the batch */
	uint32_t imm_len;
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
	struct doca_ctx *ctx;                 /* NULL once destroyed */
	struct doca_comch_consumer *consumer; /* one of the two */
	struct doca_comch_producer *producer;
	struct doca_mmap *map; /* the consumer's */
	struct doca_buf_inventory *inventory;
	uint32_t depth;
	uint32_t taken;                       /* accepted of the last batch */
	uint32_t inflight;                    /* submitted and not yet completed */
	uint32_t completed;                   /* entries of completions that this poll has filled */
	uint32_t imm_size;                    /* bytes of immediate data in one completion */
	uint8_t *imm;                         /* depth times imm_size */
	struct port_completion completions[]; /* depth of them */
};

/* Opens and starts a port: poll a consumer, and its channel, until port_state is RUNNING. */
struct outcome consumer_open(const struct doca_ops *ops, struct doca_comch_connection *connection,
			     struct doca_mmap *map, uint32_t depth, uint32_t imm_size, struct port **port);
struct outcome producer_open(const struct doca_ops *ops, struct doca_comch_connection *connection, uint32_t depth,
			     struct port **port);

/*
 * Submit in order until one is refused; port->taken is the number accepted. AGAIN: the queue is full, or the consumer
 * that the next message is for has posted no buffer.
 */
struct outcome consumer_post(struct port *port, const struct port_receive *receives, uint32_t count);
struct outcome producer_send(struct port *port, const struct port_message *messages, uint32_t count,
			     const uint8_t *imm);

/* Progresses until max completions have arrived or nothing moves; the result is in completions[0..returned). */
uint32_t port_poll(struct port *port, uint32_t max);

struct outcome port_id(const struct port *port, uint32_t *id);
uint32_t port_state(const struct port *port);

/* Requests the context to stop. SUCCESS: idle. IN_PROGRESS: poll until port_state returns IDLE. */
struct outcome port_stop(struct port *port);

/* Frees an idle port. On failure it frees nothing and can be called again. */
struct outcome port_close(struct port *port);

/* ---- for port_consumer.c and port_producer.c ---- */

/* Allocates a port for depth tasks, without a context. */
struct outcome port_make(const struct doca_ops *ops, uint32_t depth, uint32_t imm_size, struct port **port);

/* Connects the configured context to the progress engine and starts it. */
struct outcome port_start(struct port *port);

/* Returns the next completion to be filled; releases the task's buffer, if it has one, and frees the task. */
struct port_completion *port_complete(struct port *port, struct doca_task *task, const struct doca_buf *buf);

/* Submits a task, or on failure frees it and the buffer. */
struct outcome port_submit(struct port *port, struct doca_task *task, struct doca_buf *buf, uint64_t tag);

void port_drop_buffer(const struct port *port, const struct doca_buf *buf);

#endif
