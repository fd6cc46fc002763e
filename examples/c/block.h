/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream is made of: blocks of one size, whose immediate data is their number, from 0. The last message has no
 * bytes, and its number is how many blocks there were.
 */
#ifndef EXAMPLES_BLOCK_H
#define EXAMPLES_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_SERVICE "examples stream"

#define BLOCK_SIZE 65536
#define BLOCK_NUMBER 4 /* bytes of immediate data */

/* Blocks on their way at a time, at either end. */
#define BLOCKS_AT_ONCE 16

/* The content follows from the number. */
void block_fill(uint8_t *block, uint32_t number);
bool block_is_whole(const uint8_t *block, size_t len, uint32_t number);

/* The number as immediate data, big-endian: the two ends need not be alike. */
void block_number_encode(uint8_t *imm, uint32_t number);

/* False, if that is no number. imm may be NULL. */
bool block_number_decode(const uint8_t *imm, uint32_t imm_len, uint32_t *number);

#endif
