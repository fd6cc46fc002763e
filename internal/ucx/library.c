//go:build ucx

/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "library.h"
#include "quiet.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct variable {
	const char *name;
	const char *value;
	int replace; /* also a value that the user has set */
};

/*
 * UCX reads them when it is loaded. Its signal handlers would take SIGSEGV and others from Go, which then could not
 * recover from a nil dereference; its memory hooks patch functions of libc. Its messages go to stdout by default, where
 * the output of this program is.
 */
static const struct variable environment[] = {
	{"UCX_ERROR_SIGNALS", "", 1},  {"UCX_HANDLE_ERRORS", "none", 1},     {"UCX_DEBUG_SIGNO", "0", 1},
	{"UCX_MEM_EVENTS", "n", 1},    {"UCX_VFS_ENABLE", "n", 0},           {"UCX_LOG_FILE", "stderr", 0},
	{"UCX_LOG_LEVEL", "fatal", 0}, {"UCX_WARN_UNUSED_ENV_VARS", "n", 0}, {"UCX_POSIX_USE_PROC_LINK", "n", 0},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void set_environment(void)
{
	for (size_t i = 0; i < COUNT(environment); i++)
		setenv(environment[i].name, environment[i].value, environment[i].replace);
}

struct symbol {
	const char *name;
	size_t offset; /* of the function pointer in struct ucp_library */
};

static const struct symbol symbols[] = {
#define UCP_FUNC(name) {#name, offsetof(struct ucp_library, name)},
#include "ucp_functions.def"
};

/* False: the library has no function of this name. */
static int resolve(struct ucp_library *library, void *handle, const struct symbol *symbol)
{
	_Static_assert(sizeof(void *) == sizeof(void (*)(void)), "a symbol fits a function pointer");
	void *address = dlsym(handle, symbol->name);
	memcpy((char *)library + symbol->offset, &address, sizeof(address));
	return address != NULL;
}

/* The structures of the headers may be longer than an older library's. */
static int is_new_enough(const char *file, void *handle, char *error, size_t error_size)
{
	__typeof__(&ucp_get_version) get_version;
	void *address = dlsym(handle, "ucp_get_version");
	memcpy(&get_version, &address, sizeof(address));
	if (address == NULL) {
		snprintf(error, error_size, "%s has no ucp_get_version: it is not UCX's library", file);
		return 0;
	}
	unsigned major, minor, release;
	get_version(&major, &minor, &release);
	if (major == UCP_API_MAJOR && minor >= UCP_API_MINOR)
		return 1;
	snprintf(error, error_size, "%s is UCX %u.%u.%u, and this dma-copy needs %d.%d or a later %d.x", file, major,
		 minor, release, UCP_API_MAJOR, UCP_API_MINOR, UCP_API_MAJOR);
	return 0;
}

/*
 * Libraries are never closed. The list lets leak checkers, which do not look into Go's memory, see that they are in
 * use.
 */
struct opened_library {
	struct ucp_library library;
	struct opened_library *next;
};

static struct opened_library *opened_libraries;

static const struct ucp_library *load(const char *file, void *handle, char *error, size_t error_size)
{
	if (!is_new_enough(file, handle, error, error_size))
		return NULL;
	struct opened_library *opened = calloc(1, sizeof(*opened));
	if (opened == NULL) {
		snprintf(error, error_size, "out of memory");
		return NULL;
	}
	for (size_t i = 0; i < COUNT(symbols); i++) {
		if (resolve(&opened->library, handle, &symbols[i]))
			continue;
		snprintf(error, error_size, "%s has no %s", file, symbols[i].name);
		free(opened);
		return NULL;
	}
	opened->next = opened_libraries;
	opened_libraries = opened;
	return &opened->library;
}

const struct ucp_library *library_open(const char *file, char *error, size_t error_size)
{
	set_environment();
	sigset_t before = signals_block();
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	signals_restore(&before);
	if (handle == NULL) {
		snprintf(error, error_size, "%s", dlerror());
		return NULL;
	}
	const struct ucp_library *library = load(file, handle, error, error_size);
	if (library == NULL)
		dlclose(handle);
	return library;
}
