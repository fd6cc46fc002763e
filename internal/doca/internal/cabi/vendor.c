/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "vendor.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where DOCA's packages install: Ubuntu on x86-64, BlueField, RHEL. "" is the loader's own path. */
static const char *const install_directories[] = {
	"",
	"/opt/mellanox/doca/lib/x86_64-linux-gnu",
	"/opt/mellanox/doca/lib/aarch64-linux-gnu",
	"/opt/mellanox/doca/lib64",
};

/* The major version has been 2 in every release so far, 3.x included. */
static const char *const suffixes[] = {".so.2", ".so.3", ".so"};

static const char *const library_names[VENDOR_LIBRARIES] = {"libdoca_common", "libdoca_dma", "libdoca_comch"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The two texts that a failed load leaves behind. */
struct report {
	char *error;
	size_t error_size;
	char *detail;
	size_t detail_size;
};

static void append(char *text, size_t size, const char *format, va_list args)
{
	size_t used = strnlen(text, size);
	if (used < size)
		vsnprintf(text + used, size - used, format, args);
}

__attribute__((format(printf, 2, 3))) static void note(struct report *report, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	append(report->detail, report->detail_size, format, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void fail(struct report *report, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	append(report->error, report->error_size, format, args);
	va_end(args);
}

/* ---- libraries ---- */

static void *open_library(const char *directory, const char *name, struct report *report)
{
	for (size_t i = 0; i < COUNT(suffixes); i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s%s%s%s", directory, *directory ? "/" : "", name, suffixes[i]);
		void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (handle != NULL)
			return handle;
		note(report, "%s\n", dlerror());
	}
	return NULL;
}

/* Writes the directory that the library behind handle was loaded from. */
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

static void close_libraries(struct vendor *vendor)
{
	for (size_t i = VENDOR_LIBRARIES; i-- > 0;) {
		if (vendor->handles[i] != NULL)
			dlclose(vendor->handles[i]);
		vendor->handles[i] = NULL;
	}
}

/* The three call each other through private symbols, so they must come from one installation: wherever the first was
 * found, the others are taken from the same directory. */
static bool open_libraries(struct vendor *vendor, const char *directory, struct report *report)
{
	vendor->handles[VENDOR_COMMON] = open_library(directory, library_names[VENDOR_COMMON], report);
	if (vendor->handles[VENDOR_COMMON] == NULL)
		return false;
	if (!directory_of(vendor->handles[VENDOR_COMMON], vendor->directory, sizeof(vendor->directory)))
		snprintf(vendor->directory, sizeof(vendor->directory), "%s", directory);
	for (size_t i = VENDOR_COMMON + 1; i < VENDOR_LIBRARIES; i++) {
		vendor->handles[i] = open_library(vendor->directory, library_names[i], report);
		if (vendor->handles[i] == NULL) {
			fail(report, "%s has libdoca_common but %s cannot be loaded from there", vendor->directory,
			     library_names[i]);
			return false;
		}
	}
	return true;
}

/* ---- releases ---- */

/* The file behind libdoca_dma.so.2 is called libdoca_dma.so.2.10.0087. Fewer than two dots make no release. */
static void release_of_file(const char *path, char release[VENDOR_RELEASE])
{
	char real[PATH_MAX];
	release[0] = '\0';
	if (realpath(path, real) == NULL)
		return;
	const char *suffix = strstr(strrchr(real, '/'), ".so.");
	if (suffix == NULL || strchr(suffix + 4, '.') == NULL || strlen(suffix + 4) >= VENDOR_RELEASE)
		return;
	snprintf(release, VENDOR_RELEASE, "%s", suffix + 4);
}

static void find_release(void *handle, char release[VENDOR_RELEASE])
{
	struct link_map *map;
	release[0] = '\0';
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && strchr(map->l_name, '/') != NULL)
		release_of_file(map->l_name, release);
}

/* They call each other by names that change from release to release, so a mixture would load and then misbehave. */
static bool one_release(struct vendor *vendor, struct report *report)
{
	const char *common = vendor->releases[VENDOR_COMMON];
	for (size_t i = 0; i < VENDOR_LIBRARIES; i++)
		find_release(vendor->handles[i], vendor->releases[i]);
	for (size_t i = VENDOR_COMMON + 1; i < VENDOR_LIBRARIES; i++) {
		const char *other = vendor->releases[i];
		if (*common == '\0' || *other == '\0' || strcmp(common, other) == 0)
			continue;
		fail(report,
		     "%s mixes releases of DOCA: %s is %s and %s is %s; install one release, or name its directory",
		     vendor->directory, library_names[VENDOR_COMMON], common, library_names[i], other);
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
	size_t offset; /* of its pointer in struct doca_ops */
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
		fail(report, "%s in %s (DOCA %s) has no %s", library_names[missing->library], vendor->directory,
		     release_of(vendor), missing->name);
	return missing == NULL;
}

/* ---- opening ---- */

static bool load(struct vendor *vendor, const char *directory, struct report *report)
{
	if (open_libraries(vendor, directory, report) && one_release(vendor, report) && resolve_symbols(vendor, report))
		return true;
	close_libraries(vendor);
	return false;
}

static void report_not_found(struct report *report, const char *directory)
{
	fail(report, "DOCA's libraries were not found: looked for libdoca_common.so.2, .so.3 and .so ");
	if (directory != NULL) {
		fail(report, "in %s", directory);
		return;
	}
	fail(report, "on the loader's path and in ");
	for (size_t i = 1; i < COUNT(install_directories); i++)
		fail(report, "%s%s", i > 1 ? ", " : "", install_directories[i]);
}

/* Stops at the first directory that has libdoca_common: what is wrong there is what the user must hear. */
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

/* NULL unless the user has named one. */
static const char *chosen_directory(void)
{
	const char *directory = getenv("DMA_COPY_DOCA_LIBDIR");
	return directory != NULL && *directory != '\0' ? directory : NULL;
}

struct vendor *vendor_open(const char *directory, char *error, size_t error_size, char *detail, size_t detail_size)
{
	struct report report = {error, error_size, detail, detail_size};
	error[0] = '\0';
	detail[0] = '\0';
	if (directory == NULL)
		directory = chosen_directory();
	struct vendor *vendor = calloc(1, sizeof(*vendor));
	if (vendor == NULL) {
		fail(&report, "out of memory");
		return NULL;
	}
	if (load_from_somewhere(vendor, directory, &report))
		return vendor;
	free(vendor);
	return NULL;
}

void vendor_close(struct vendor *vendor)
{
	close_libraries(vendor);
	free(vendor);
}
