/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "vendor.h"
#include "shown.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Directories of DOCA's packages: Ubuntu on x86-64, BlueField, RHEL. "" is the loader's search path. */
static const char *const install_directories[] = {
	"",
	"/opt/mellanox/doca/lib/x86_64-linux-gnu",
	"/opt/mellanox/doca/lib/aarch64-linux-gnu",
	"/opt/mellanox/doca/lib64",
};

/*
 * The majors of libdoca_common.so.MAJOR that are looked for, from the newest on; all releases that were seen have 2.
 * After them a link without one.
 */
#define NEWEST_MAJOR 9
#define OLDEST_MAJOR 2

static const char *const library_names[VENDOR_LIBRARIES] = {"libdoca_common", "libdoca_dma", "libdoca_comch"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Why a load failed. */
struct report {
	char *error;
	size_t error_size;
	char unloadable[1024]; /* message of the loader for the first libdoca_common that exists and cannot be loaded */
};

/* Adds to the sentence. */
__attribute__((format(printf, 2, 3))) static void fail(struct report *report, const char *format, ...)
{
	size_t used = strnlen(report->error, report->error_size);
	va_list args;
	va_start(args, format);
	if (used < report->error_size)
		vsnprintf(report->error + used, report->error_size - used, format, args);
	va_end(args);
}

/* ---- releases ---- */

/*
 * Returns what follows ".so." in the name of a library's own file, "2.10.0087"; NULL for a link, which has the major
 * version only.
 */
static const char *release_in_name(const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *ending = strstr(slash == NULL ? file : slash, ".so.");
	return ending != NULL && strchr(ending + strlen(".so."), '.') != NULL ? ending + strlen(".so.") : NULL;
}

/* Only libdoca_common has a function for its release; the release of the others is in their file names. */
static bool is_same_release(const struct vendor *vendor, enum vendor_library_id id, struct report *report)
{
	const char *common = release_in_name(vendor->files[VENDOR_COMMON]);
	const char *other = release_in_name(vendor->files[id]);
	if (common == NULL || other == NULL || strcmp(common, other) == 0)
		return true;
	fail(report, "%s mixes releases of DOCA: libdoca_common is %s and %s is %s; install one release of both",
	     shown_string(vendor->directory).text, common, library_names[id], other);
	return false;
}

/* ---- libraries ---- */

/* False: the path is too long to exist. */
static bool path_of(char path[PATH_MAX], const char *directory, const char *name, const char *suffix)
{
	return snprintf(path, PATH_MAX, "%s%s%s%s", directory, *directory ? "/" : "", name, suffix) < PATH_MAX;
}

/* The loader reports a missing file and a missing dependency alike, but with the name of the missing one. */
static bool says_missing(const char *reason, const char *path)
{
	size_t len = strlen(path);
	return strncmp(reason, path, len) == 0 && strstr(reason + len, strerror(ENOENT)) != NULL;
}

/* Skips the path at the beginning of the loader's message, which may be long. */
static void say_why(char *why, size_t size, const char *reason, const char *path)
{
	size_t len = strlen(path);
	bool named = strncmp(reason, path, len) == 0;
	snprintf(why, size, "%s%s", named ? shown_string(path).text : "", named ? reason + len : reason);
}

/* NULL: why receives the loader's message unless it has one, or the file does not exist. */
static void *open_library(const char *directory, const char *name, const char *suffix, char *why, size_t why_size)
{
	char path[PATH_MAX];
	if (!path_of(path, directory, name, suffix))
		return NULL;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle != NULL)
		return handle;
	const char *reason = dlerror();
	if (*why == '\0' && !says_missing(reason, path))
		say_why(why, why_size, reason, path);
	return NULL;
}

/* Writes the directory from which the library was loaded. */
static bool directory_of(void *handle, char *directory, size_t size)
{
	struct link_map *map;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
		return false;
	const char *slash = strrchr(map->l_name, '/');
	if (slash == NULL)
		return false;
	snprintf(directory, size, "%.*s", (int)(slash - map->l_name), map->l_name);
	return true;
}

static void find_file(const char *path, char file[PATH_MAX])
{
	if (realpath(path, file) == NULL)
		*file = '\0';
}

static void close_libraries(struct vendor *vendor)
{
	for (size_t i = VENDOR_LIBRARIES; i-- > 0;) {
		if (vendor->handles[i] != NULL)
			dlclose(vendor->handles[i]);
		vendor->handles[i] = NULL;
	}
}

/* Opens the newest of several versions. */
static void *open_newest(const char *directory, char suffix[VENDOR_SUFFIX], struct report *report)
{
	const char *name = library_names[VENDOR_COMMON];
	for (unsigned char major = NEWEST_MAJOR; major >= OLDEST_MAJOR; major--) {
		snprintf(suffix, VENDOR_SUFFIX, ".so.%hhu", major);
		void *handle = open_library(directory, name, suffix, report->unloadable, sizeof(report->unloadable));
		if (handle != NULL)
			return handle;
	}
	snprintf(suffix, VENDOR_SUFFIX, ".so");
	return open_library(directory, name, suffix, report->unloadable, sizeof(report->unloadable));
}

static bool open_common(struct vendor *vendor, const char *directory, struct report *report)
{
	void *handle = open_newest(directory, vendor->suffix, report);
	if (handle == NULL)
		return false;
	vendor->handles[VENDOR_COMMON] = handle;
	if (!directory_of(handle, vendor->directory, sizeof(vendor->directory)))
		snprintf(vendor->directory, sizeof(vendor->directory), "%s", directory);
	struct link_map *map;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
		find_file(map->l_name, vendor->files[VENDOR_COMMON]);
	return true;
}

/* The loader would also refuse libraries of another release, but would only name a private symbol. */
static bool open_companion(struct vendor *vendor, enum vendor_library_id id, struct report *report)
{
	char path[PATH_MAX], why[1024] = "";
	if (path_of(path, vendor->directory, library_names[id], vendor->suffix))
		find_file(path, vendor->files[id]);
	if (!is_same_release(vendor, id, report))
		return false;
	vendor->handles[id] = open_library(vendor->directory, library_names[id], vendor->suffix, why, sizeof(why));
	if (vendor->handles[id] != NULL)
		return true;
	fail(report, "%s has libdoca_common%s but %s%s cannot be loaded from there: %s%s",
	     shown_string(vendor->directory).text, vendor->suffix, library_names[id], vendor->suffix,
	     *why != '\0' ? why : "there is no such file",
	     strstr(why, "priv_doca_") != NULL ? "; the two are not of one release" : "");
	return false;
}

/*
 * The three libraries call each other through private symbols, so all are loaded from the directory where the first is
 * found, with its major version.
 */
static bool open_libraries(struct vendor *vendor, const char *directory, struct report *report)
{
	if (!open_common(vendor, directory, report))
		return false;
	for (enum vendor_library_id id = VENDOR_COMMON + 1; id < VENDOR_LIBRARIES; id++) {
		if (!open_companion(vendor, id, report))
			return false;
	}
	return true;
}

/* ---- symbols ---- */

enum need { NEED_REQUIRED, NEED_OPTIONAL };

struct symbol {
	enum vendor_library_id library;
	enum need need;
	const char *name;
	const char *former_name;
	size_t offset; /* of the function pointer in struct doca_ops */
};

static const struct symbol symbols[] = {
#define SYMBOL(lib, need, name, former) {VENDOR_##lib, NEED_##need, #name, former, offsetof(struct doca_ops, name)},
#define DOCA_FUNC(lib, need, ret, name, params, args, former) SYMBOL(lib, need, name, former)
#define DOCA_PROC(lib, need, name, params, args, former) SYMBOL(lib, need, name, former)
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) SYMBOL(lib, need, name, former)
#include "doca_functions.def"
#undef SYMBOL
};

static void *find_symbol(const struct vendor *vendor, const struct symbol *symbol)
{
	void *handle = vendor->handles[symbol->library];
	void *address = dlsym(handle, symbol->name);
	if (address == NULL && symbol->former_name != NULL)
		address = dlsym(handle, symbol->former_name);
	return address;
}

static const char *release_of(const struct vendor *vendor)
{
	const char *(*version)(void) = vendor->ops.doca_version_runtime;
	return version != NULL ? version() : "of unknown version";
}

static bool resolve_symbols(struct vendor *vendor, struct report *report)
{
	_Static_assert(sizeof(void *) == sizeof(void (*)(void)), "a symbol fits a function pointer");
	const struct symbol *missing = NULL;
	for (size_t i = 0; i < COUNT(symbols); i++) {
		void *address = find_symbol(vendor, &symbols[i]);
		memcpy((char *)&vendor->ops + symbols[i].offset, &address, sizeof(address));
		if (address == NULL && symbols[i].need == NEED_REQUIRED && missing == NULL)
			missing = &symbols[i];
	}
	if (missing != NULL)
		fail(report, "%s in %s (DOCA %s) has no %s", library_names[missing->library],
		     shown_string(vendor->directory).text, release_of(vendor), missing->name);
	return missing == NULL;
}

/* ---- opening ---- */

static bool load(struct vendor *vendor, const char *directory, struct report *report)
{
	if (open_libraries(vendor, directory, report) && resolve_symbols(vendor, report))
		return true;
	close_libraries(vendor);
	memset(vendor, 0, sizeof(*vendor));
	return false;
}

static void report_not_found(struct report *report, const char *directory)
{
	if (report->unloadable[0] != '\0') {
		fail(report, "DOCA's libraries are there but cannot be loaded: %s", report->unloadable);
		return;
	}
	fail(report, "DOCA's libraries were not found: looked for libdoca_common.so.%d to .so.%d, and .so, ",
	     NEWEST_MAJOR, OLDEST_MAJOR);
	if (directory != NULL) {
		fail(report, "in %s", shown_string(directory).text);
		return;
	}
	fail(report, "on the loader's path and in ");
	for (size_t i = 1; i < COUNT(install_directories); i++)
		fail(report, "%s%s", i > 1 ? ", " : "", install_directories[i]);
}

/* Stops at the first directory that has libdoca_common: its failure is the one to report. */
static bool load_from_somewhere(struct vendor *vendor, const char *directory, struct report *report)
{
	if (directory != NULL && load(vendor, directory, report))
		return true;
	for (size_t i = 0; directory == NULL && report->error[0] == '\0' && i < COUNT(install_directories); i++)
		if (load(vendor, install_directories[i], report))
			return true;
	if (report->error[0] == '\0')
		report_not_found(report, directory);
	return false;
}

/* Only the development kit's libraries export this function. */
static bool is_stand_in(const struct vendor *vendor)
{
	return dlsym(vendor->handles[VENDOR_COMMON], "priv_doca_ops") != NULL;
}

struct vendor *vendor_open(const char *directory, char *error, size_t error_size)
{
	struct report report = {error, error_size, ""};
	error[0] = '\0';
	struct vendor *vendor = calloc(1, sizeof(*vendor));
	if (vendor == NULL) {
		fail(&report, "out of memory");
		return NULL;
	}
	if (load_from_somewhere(vendor, directory, &report)) {
		vendor->stand_in = is_stand_in(vendor);
		return vendor;
	}
	free(vendor);
	return NULL;
}

bool vendor_describe_model(const struct vendor *vendor, char *text, size_t size)
{
	bool (*describe)(char *, size_t) = dlsym(vendor->handles[VENDOR_COMMON], "priv_doca_describe_model");
	text[0] = '\0';
	return describe == NULL || describe(text, size);
}

void vendor_close(struct vendor *vendor)
{
	close_libraries(vendor);
	free(vendor);
}
