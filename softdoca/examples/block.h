/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a stream: blocks of one size, numbered from 0, and then a text, whose number is how many blocks there
 * were. Each has a label as its immediate data.
 */
#ifndef EXAMPLES_BLOCK_H
#define EXAMPLES_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_SIZE 65536

/* Blocks on their way at a time, in one direction. */
#define BLOCKS_AT_ONCE 16

struct label {
	uint32_t number;
	bool is_text;
};

#define LABEL_SIZE 5 /* bytes of immediate data */

/* The content follows from the number. */
void block_fill(uint8_t *block, uint32_t number);
bool block_is_whole(const uint8_t *block, size_t len, uint32_t number);

/* The label as immediate data, big-endian: the two ends need not be alike. */
void label_encode(uint8_t imm[LABEL_SIZE], const struct label *label);

/* False, if that is no label. imm may be NULL. */
bool label_decode(const uint8_t *imm, uint32_t imm_len, struct label *label);

#endif
