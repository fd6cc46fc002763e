/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"

#include <endian.h>
#include <string.h>

/* i >> 8 makes each run of 256 bytes differ from the next. */
static uint8_t byte_at(uint32_t number, size_t i)
{
	return (uint8_t)(number * 7 + i + (i >> 8));
}

void block_fill(uint8_t *block, uint32_t number)
{
	for (size_t i = 0; i < BLOCK_SIZE; i++)
		block[i] = byte_at(number, i);
}

bool block_is_whole(const uint8_t *block, size_t len, uint32_t number)
{
	if (len != BLOCK_SIZE)
		return false;
	for (size_t i = 0; i < len; i++)
		if (block[i] != byte_at(number, i))
			return false;
	return true;
}

void block_number_encode(uint8_t *imm, uint32_t number)
{
	uint32_t encoded = htobe32(number);
	memcpy(imm, &encoded, BLOCK_NUMBER);
}

bool block_number_decode(const uint8_t *imm, uint32_t imm_len, uint32_t *number)
{
	uint32_t encoded;
	if (imm == NULL || imm_len != BLOCK_NUMBER)
		return false;
	memcpy(&encoded, imm, BLOCK_NUMBER);
	*number = be32toh(encoded);
	return true;
}
