/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of DOCA's libraries, with libraries that are only shells: which it takes, and what it says of the others. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../vendor.h"
#include "rig.h"

static char error[1024], detail[4096];

static const char *const libraries[] = {"common", "dma", "comch"};

static void build(const char *dir, unsigned library, const char *release, const char *flags)
{
	static const char *const defines[] = {"STUB_COMMON", "STUB_DMA", "STUB_COMCH"};
	char command[2048], file[600], name[600];
	snprintf(file, sizeof(file), "libdoca_%s.so.%s", libraries[library], release);
	snprintf(command, sizeof(command), "cc -w -shared -fPIC -D%s %s -o %s/%s %s/stub/stub.c", defines[library],
		 flags, dir, file, CTEST_DIR);
	CHECK(system(command) == 0);
	snprintf(name, sizeof(name), "%s/libdoca_%s.so.2", dir, libraries[library]);
	if (strcmp(release, "2") != 0)
		CHECK(symlink(file, name) == 0);
}

static const char *make_dir(const char *name)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/%s", rig_dir(), name);
	CHECK(mkdir(path, 0700) == 0);
	return path;
}

static struct vendor *load(const char *dir)
{
	return vendor_open(dir, error, sizeof(error), detail, sizeof(detail));
}

static const char *build_all(const char *name, const char *release, const char *flags)
{
	const char *dir = make_dir(name);
	for (unsigned i = 0; i < 3; i++)
		build(dir, i, release, flags);
	return dir;
}

static void a_release_is_loaded(void)
{
	const char *dir = build_all("whole", "2.10.0087", "");
	struct vendor *vendor = load(dir);
	CHECK(vendor != NULL && strcmp(vendor->directory, dir) == 0);
	for (unsigned i = 0; i < VENDOR_LIBRARIES; i++)
		CHECK(strcmp(vendor->releases[i], "2.10.0087") == 0);
	CHECK(strcmp(vendor->ops.doca_version_runtime(), "2.10.0087") == 0);
	CHECK(vendor->ops.doca_comch_consumer_create != NULL && vendor->ops.doca_pe_set_event_mode != NULL);
	vendor_close(vendor);

	CHECK(setenv("DMA_COPY_DOCA_LIBDIR", dir, 1) == 0);
	vendor = load(NULL);
	CHECK(vendor != NULL && strcmp(vendor->directory, dir) == 0);
	vendor_close(vendor);
	/* An explicit directory wins. */
	CHECK(load(rig_dir()) == NULL && strstr(error, rig_dir()) != NULL);
	CHECK(setenv("DMA_COPY_DOCA_LIBDIR", rig_dir(), 1) == 0);
	CHECK(load(NULL) == NULL && strstr(error, rig_dir()) != NULL);
	CHECK(unsetenv("DMA_COPY_DOCA_LIBDIR") == 0);
}

static void files_without_a_release(void)
{
	struct vendor *vendor = load(build_all("bare", "2", ""));
	CHECK(vendor != NULL && vendor->releases[VENDOR_DMA][0] == '\0');
	vendor_close(vendor);
}

static void mixed_releases_are_refused(void)
{
	const char *dir = make_dir("mixed");
	build(dir, 0, "2.10.0087", "");
	build(dir, 1, "2.10.0087", "");
	build(dir, 2, "2.9.4005", "");
	CHECK(load(dir) == NULL);
	CHECK(strstr(error, "libdoca_common is 2.10.0087") != NULL &&
	      strstr(error, "libdoca_comch is 2.9.4005") != NULL);
}

static void what_is_missing_is_named(void)
{
	const char *dir = make_dir("half");
	build(dir, 0, "2.10.0087", "");
	CHECK(load(dir) == NULL && strstr(error, "libdoca_dma") != NULL);
	CHECK(load(build_all("lacking", "2.10.0087", "-DSTUB_LACKS_REQUIRED")) == NULL);
	CHECK(strstr(error, "libdoca_dma") != NULL && strstr(error, "has no doca_dma_destroy") != NULL);
	CHECK(strstr(error, "2.10.0087") != NULL);
}

static void what_is_optional_may_be_missing(void)
{
	struct vendor *vendor = load(build_all("older", "2.7.0085", "-DSTUB_LACKS_OPTIONAL -DSTUB_FORMER"));
	CHECK(vendor != NULL && vendor->ops.doca_pe_set_event_mode == NULL);
	CHECK(vendor->ops.doca_comch_server_get_device_rep != NULL);
	CHECK(vendor->ops.doca_comch_server_event_connection_status_changed_register != NULL);
	vendor_close(vendor);
}

int main(void)
{
	rig_configure(NULL);
	RUN(a_release_is_loaded);
	RUN(files_without_a_release);
	RUN(mixed_releases_are_refused);
	RUN(what_is_missing_is_named);
	RUN(what_is_optional_may_be_missing);
	return 0;
}
