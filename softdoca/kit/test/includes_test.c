/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that includes one header of DOCA's and nothing else has what C's basic headers declare, because programs
 * rely on it. HEADER is that header. Compiled as C and as C++, never run.
 */
#include HEADER

bool fill(char *text, size_t size);

bool fill(char *text, size_t size)
{
	static const char format[] = "%" PRIu64 " and %" PRIx32;
	char *copy = (char *)malloc(size);
	if (copy == NULL)
		return false;
	memset(copy, 0, size);
	if (size > sizeof(format))
		strcpy(copy, format);
	bool fits = strlen(copy) > 0 && UINT64_MAX > SIZE_MAX / 2;
	memcpy(text, copy, size);
	free(copy);
	assert(size > 0);
	ssize_t unused = -1;
	return fits && unused < (ssize_t)size;
}
