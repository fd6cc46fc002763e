/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer and a producer with memory, buffers and an engine each, for the tests. */
#ifndef DMA_COPY_FAST_END_H
#define DMA_COPY_FAST_END_H

#include "comch_end.h"

#define FAST_TASKS 512
#define FAST_IMM 32
#define FAST_MEMORY (64 << 10)

/* The common part of consumers and producers. */
struct fast_end {
	struct doca_pe *pe;
	struct doca_ctx *ctx;
	struct doca_dev *dev;
	struct doca_comch_consumer *consumer; /* one of the two */
	struct doca_comch_producer *producer;
	struct doca_mmap *mmap;
	struct doca_buf_inventory *inventory;
	uint8_t *memory;
	bool frees_early; /* the test frees its tasks in flight */
	unsigned completed, failed;
	doca_error_t last_failure;
	uint32_t last_producer, last_imm_len;
	uint8_t last_imm[FAST_IMM];
	struct doca_buf *last_buf; /* of the last completed task; the test releases it */
	void (*on_completed)(struct fast_end *end, struct doca_buf *buf);
};

/* Configured, not started. */
void consumer_open(struct fast_end *end, struct end *control);
void producer_open(struct fast_end *end, struct end *control);
void fast_close(struct fast_end *end);

/* Progresses all ends until none moves. */
void settle_fast(struct end *client, struct end *server, struct fast_end *a, struct fast_end *b);

enum doca_ctx_states fast_state(const struct fast_end *end);
uint32_t consumer_id(const struct fast_end *consumer);

/* A task over [offset, offset + len) of the consumer's memory; len 0: no buffer. */
doca_error_t post(struct fast_end *consumer, size_t offset, size_t len);

/* Sends [offset, offset + len) of the producer's memory; len 0: no buffer. */
doca_error_t produce(struct fast_end *producer, uint32_t to, size_t offset, size_t len, const void *imm,
		     uint32_t imm_len);

#endif
