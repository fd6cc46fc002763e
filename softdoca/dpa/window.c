/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

#include <stdlib.h>
#include <string.h>

#include "remote.h"
#include "sizes.h"

#define BLOCK 4096
#define WORD sizeof(uint64_t)

struct soft_window {
	struct soft_import *import;
	uint8_t *remote;
	size_t len;
	uint8_t *seen;   /* what was there last; bytes that differ from it were stored here */
	uint8_t bytes[]; /* for code of the DPA, and len more for seen */
};

struct soft_window *soft_window_open(struct soft_import *import, uint8_t *remote, size_t len)
{
	if (len == 0 || len > SOFT_MAX_WINDOW)
		return NULL;
	struct soft_window *window = malloc(sizeof(*window) + 2 * len);
	if (window == NULL)
		return NULL;
	*window = (struct soft_window){.import = import, .remote = remote, .len = len, .seen = window->bytes + len};
	if (soft_import_read(import, window->seen, remote, len) != DOCA_SUCCESS) {
		free(window);
		return NULL;
	}
	memcpy(window->bytes, window->seen, len);
	return window;
}

void soft_window_close(struct soft_window *window)
{
	free(window);
}

uint8_t *soft_window_bytes(struct soft_window *window)
{
	return window->bytes;
}

static size_t block_at(const struct soft_window *window, size_t at)
{
	return window->len - at < BLOCK ? window->len - at : BLOCK;
}

static void take_block(struct soft_window *window, size_t at, const uint8_t *now, size_t len)
{
	for (size_t i = at; i < at + len; i++) {
		if (window->bytes[i] != window->seen[i])
			continue;
		window->bytes[i] = window->seen[i] = now[i - at];
	}
}

bool soft_window_fetch(struct soft_window *window, bool *changed)
{
	uint8_t now[BLOCK];
	for (size_t at = 0; at < window->len; at += BLOCK) {
		size_t len = block_at(window, at);
		if (soft_import_read(window->import, now, window->remote + at, len) != DOCA_SUCCESS)
			return false;
		if (memcmp(now, window->seen + at, len) == 0)
			continue;
		take_block(window, at, now, len);
		*changed = true;
	}
	return true;
}

/* A word is written as a whole, so that the other process sees no part of a number. */
static bool write_word(struct soft_window *window, size_t at, size_t len)
{
	uint8_t stored[WORD];
	memcpy(stored, window->bytes + at, len);
	if (memcmp(stored, window->seen + at, len) == 0)
		return true;
	if (soft_import_write(window->import, window->remote + at, stored, len) != DOCA_SUCCESS)
		return false;
	memcpy(window->seen + at, stored, len);
	return true;
}

static bool write_block(struct soft_window *window, size_t at, size_t end)
{
	while (at < end) {
		size_t to_border = WORD - (uintptr_t)(window->remote + at) % WORD;
		size_t len = to_border < end - at ? to_border : end - at;
		if (!write_word(window, at, len))
			return false;
		at += len;
	}
	return true;
}

bool soft_window_write_back(struct soft_window *window)
{
	for (size_t at = 0; at < window->len; at += BLOCK) {
		size_t len = block_at(window, at);
		bool stored = memcmp(window->bytes + at, window->seen + at, len) != 0;
		if (stored && !write_block(window, at, at + len))
			return false;
	}
	return true;
}
