/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of a user's in a message: a setting, a path. What is too long for a line is shown without its middle.
 */
#ifndef DMA_COPY_SHOWN_H
#define DMA_COPY_SHOWN_H

#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 80 /* bytes of the text, the dots included */

struct shown {
	char text[SHOWN_MAX + 1];
};

/* The first len bytes of text, which need no terminator. The result lives as long as the expression that it is in. */
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

/* The same of a whole string. */
static inline struct shown shown_string(const char *text)
{
	return shown(text, strlen(text));
}

#endif
