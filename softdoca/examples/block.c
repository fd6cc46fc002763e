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

void label_encode(uint8_t imm[LABEL_SIZE], const struct label *label)
{
	uint32_t number = htobe32(label->number);
	memcpy(imm, &number, sizeof(number));
	imm[sizeof(number)] = label->is_text;
}

bool label_decode(const uint8_t *imm, uint32_t imm_len, struct label *label)
{
	uint32_t number;
	if (imm == NULL || imm_len != LABEL_SIZE || imm[sizeof(number)] > 1)
		return false;
	memcpy(&number, imm, sizeof(number));
	*label = (struct label){.number = be32toh(number), .is_text = imm[sizeof(number)] == 1};
	return true;
}
