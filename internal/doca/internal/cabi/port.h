/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer or a producer of Comch's fast path, on a progress engine of its own, crossed from Go in batches like the
 * copy engine: tasks go down in one call, completions come up in one call, and C never calls Go.
 *
 * Threads: one at a time. Opening, stopping and closing touch the connection, and so belong to its channel's thread.
 */
#ifndef DMA_COPY_PORT_H
#define DMA_COPY_PORT_H

#include "progress.h"

/* What a consumer offers: room for one message. len 0: for immediate data only. */
struct port_receive {
	uint64_t address;
	uint64_t len;
	uint64_t tag;
};

/* What a producer sends to one consumer of the peer. len 0: immediate data only. */
struct port_message {
	struct doca_mmap *map;
	uint64_t address;
	uint64_t len;
	uint64_t tag;
	uint32_t to;
	uint32_t imm_offset; /* in the bytes that come with the batch */
	uint32_t imm_len;
	uint32_t reserved;
};

struct port_completion {
	uint64_t tag;
	uint64_t len;      /* consumer: bytes received */
	int32_t status;    /* a doca_error_t */
	uint32_t producer; /* consumer: who sent it */
	uint32_t imm_len;  /* consumer: bytes at port_imm() */
	uint32_t reserved;
};

struct port {
	struct progress progress;
	struct doca_ctx *ctx;                 /* NULL when it has been destroyed */
	struct doca_comch_consumer *consumer; /* one of the two */
	struct doca_comch_producer *producer;
	struct doca_mmap *map; /* the consumer's */
	struct doca_buf_inventory *inventory;
	uint32_t depth;
	uint32_t taken;                       /* of the last batch */
	uint32_t inflight;                    /* submitted and not yet completed */
	uint32_t completed;                   /* entries of completions that the present poll has filled */
	uint32_t imm_size;                    /* bytes of immediate data in one completion */
	uint8_t *imm;                         /* depth times imm_size */
	struct port_completion completions[]; /* depth of them */
};

/* Both are started: poll a consumer until port_state is RUNNING, while the channel is polled too. */
struct outcome consumer_open(const struct doca_ops *ops, struct doca_comch_connection *connection,
			     struct doca_mmap *map, uint32_t depth, uint32_t imm_size, struct port **port);
struct outcome producer_open(const struct doca_ops *ops, struct doca_comch_connection *connection, uint32_t depth,
			     struct port **port);

/* Submit in order until one is refused; port->taken says how many were accepted. AGAIN: the queue is full, or nothing is
 * posted by the consumer that the next message is for. */
struct outcome consumer_post(struct port *port, const struct port_receive *receives, uint32_t count);
struct outcome producer_send(struct port *port, const struct port_message *messages, uint32_t count,
			     const uint8_t *imm);

/* Progresses until max completions have arrived or nothing moves; the result is in completions[0..returned). */
uint32_t port_poll(struct port *port, uint32_t max);

struct outcome port_id(const struct port *port, uint32_t *id);
uint32_t port_state(const struct port *port);

/* Asks the context to stop. SUCCESS: idle. IN_PROGRESS: poll until port_state says so. */
struct outcome port_stop(struct port *port);

/* Frees an idle port. On failure it frees nothing and can be called again. */
struct outcome port_close(struct port *port);

/* ---- for port_consumer.c and port_producer.c ---- */

/* A port with room for depth tasks and no context yet. */
struct outcome port_make(const struct doca_ops *ops, uint32_t depth, uint32_t imm_size, struct port **port);

/* Connects the configured context, and starts it. */
struct outcome port_start(struct port *port);

/* The next completion to be filled; the task's buffer, if it has one, is given back and the task freed. */
struct port_completion *port_complete(struct port *port, struct doca_task *task, const struct doca_buf *buf);

/* Hands a task over, or frees it and the buffer. */
struct outcome port_submit(struct port *port, struct doca_task *task, struct doca_buf *buf, uint64_t tag);

void port_drop_buffer(const struct port *port, const struct doca_buf *buf);

#endif
