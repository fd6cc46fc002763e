/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples have in common at start: logs, and string flags that fill an array. */
#ifndef EXAMPLES_FLAGS_H
#define EXAMPLES_FLAGS_H

#include <stddef.h>

#include <doca_argp.h>

#define FLAG_SIZE 256

/* The callback stores the value; STRING_FLAG_CALLBACK makes one that stores it in a member of the configuration. */
#define STRING_FLAG_CALLBACK(function, type, member)                                         \
	static doca_error_t function(void *value, void *config)                              \
	{                                                                                    \
		return flag_store(((type *)config)->member, FLAG_SIZE, (const char *)value); \
	}

doca_error_t flag_store(char *text, size_t size, const char *value);

doca_error_t flag_register(const char *short_name, const char *long_name, const char *arguments,
			   const char *description, doca_argp_param_cb_t callback);

/* The same for a flag whose callback gets an int. */
doca_error_t flag_register_int(const char *short_name, const char *long_name, const char *arguments,
			       const char *description, doca_argp_param_cb_t callback);

/* The program's own lines on stdout and stderr, the SDK's warnings on stderr. */
doca_error_t logs_open(void);

#endif
