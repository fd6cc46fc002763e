/* SPDX-License-Identifier: Apache-2.0 */
/* Shortens text of a user (a setting, a path) for a message: the middle of a long text is replaced by dots. */
#ifndef DMA_COPY_SHOWN_H
#define DMA_COPY_SHOWN_H

#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 80 /* bytes, including the dots */

struct shown {
	char text[SHOWN_MAX + 1];
};

/*
 * Returns the first len bytes of text, which needs no terminator. The result lives as long as the expression that uses
 * it.
 */
static inline struct shown shown(const char *text, size_t len)
{
	const size_t tail = (SHOWN_MAX - 3) / 2;
	const size_t head = SHOWN_MAX - 3 - tail;
	struct shown result;
	if (len <= SHOWN_MAX)
		snprintf(result.text, sizeof(result.text), "%.*s", (int)len, text);
	else
		snprintf(result.text, sizeof(result.text), "%.*s...%.*s", (int)head, text, (int)tail,
			 text + len - tail);
	return result;
}

/* The same for a string. */
static inline struct shown shown_string(const char *text)
{
	return shown(text, strlen(text));
}

#endif
