/* SPDX-License-Identifier: Apache-2.0 */
/* The common parts of the examples: flags by doca_argp, logs by doca_log, and the device that a flag names. */
#ifndef EXAMPLES_EXAMPLE_H
#define EXAMPLES_EXAMPLE_H

#include <doca_argp.h>
#include <doca_dev.h>

#define FLAG_SIZE 256
#define MAX_FLAGS 4

struct flag {
	const char *short_name, *long_name, *arguments, *description;
	enum doca_argp_type type;
	doca_argp_param_cb_t store; /* gets the value and the example's configuration */
};

struct example {
	const char *name;
	doca_error_t (*run)(struct doca_dev *dev, void *config);
	struct flag flags[MAX_FLAGS + 1]; /* up to the first without a name */
};

/* Makes a callback that stores a string in a member of the configuration, which has FLAG_SIZE bytes. */
#define STORE_STRING(function, type, member)                                      \
	static doca_error_t function(void *value, void *config)                   \
	{                                                                         \
		return flag_store(((type *)config)->member, (const char *)value); \
	}

doca_error_t flag_store(char text[FLAG_SIZE], const char *value);

/*
 * All that main does: reads the flags into config, opens the device whose address pci_addr then has, runs the example,
 * and logs what went wrong. The result is main's.
 */
int example_main(const struct example *example, void *config, const char *pci_addr, int argc, char **argv);

#endif
