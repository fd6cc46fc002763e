/* SPDX-License-Identifier: Apache-2.0 */
#include "offer.h"

#include <endian.h>
#include <string.h>

/* Big-endian, before the two descriptors. */
struct head {
	uint64_t addr, len, memory_len, event_len;
};

doca_error_t offer_encode(const struct offer *offer, uint8_t message[OFFER_SIZE], size_t *len)
{
	struct head head = {htobe64(offer->addr), htobe64(offer->len), htobe64(offer->memory_len),
			    htobe64(offer->event_len)};
	size_t space = OFFER_SIZE - sizeof(head);
	if (offer->memory_len > space || offer->event_len > space - offer->memory_len)
		return DOCA_ERROR_TOO_BIG;
	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), offer->memory, offer->memory_len);
	memcpy(message + sizeof(head) + offer->memory_len, offer->event, offer->event_len);
	*len = sizeof(head) + offer->memory_len + offer->event_len;
	return DOCA_SUCCESS;
}

doca_error_t offer_decode(struct offer *offer, const uint8_t *message, size_t len)
{
	struct head head;
	if (len < sizeof(head))
		return DOCA_ERROR_INVALID_VALUE;
	memcpy(&head, message, sizeof(head));
	size_t rest = len - sizeof(head);
	uint64_t memory_len = be64toh(head.memory_len);
	if (memory_len > rest || be64toh(head.event_len) != rest - memory_len)
		return DOCA_ERROR_INVALID_VALUE;
	*offer = (struct offer){
		.addr = be64toh(head.addr),
		.len = be64toh(head.len),
		.memory = message + sizeof(head),
		.memory_len = memory_len,
		.event = message + sizeof(head) + memory_len,
		.event_len = rest - memory_len,
	};
	return DOCA_SUCCESS;
}
