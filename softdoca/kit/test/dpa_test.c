/* SPDX-License-Identifier: Apache-2.0 */
/* A DPA through the libraries: calls with any argument, logs by level, a kernel. The rest is tested in the device. */
#include "dpa_test.h"

#include <string.h>

#include <doca_dev.h>
#include <doca_dpa.h>

#include "capture.h"
#include "check.h"

extern struct doca_dpa_app *dpa_test_app;
extern doca_dpa_func_t log_all, add_parts, nothing, kernel;

/* The first device has one. */
static struct doca_dev *open_dev(void)
{
	struct doca_devinfo **list;
	struct doca_dev *dev;
	uint32_t count;
	EXPECT(DOCA_SUCCESS, doca_devinfo_create_list(&list, &count));
	EXPECT(DOCA_SUCCESS, doca_dpa_cap_is_supported(list[0]));
	EXPECT(DOCA_SUCCESS, doca_dev_open(list[0], &dev));
	EXPECT(DOCA_SUCCESS, doca_devinfo_destroy_list(list));
	return dev;
}

static struct doca_dpa *open_dpa(struct doca_dev *dev, doca_dpa_dev_log_level_t level)
{
	struct doca_dpa *dpa;
	EXPECT(DOCA_SUCCESS, doca_dpa_create(dev, &dpa));
	EXPECT(DOCA_SUCCESS, doca_dpa_set_app(dpa, dpa_test_app));
	EXPECT(DOCA_SUCCESS, doca_dpa_set_log_level(dpa, level));
	EXPECT(DOCA_SUCCESS, doca_dpa_start(dpa));
	return dpa;
}

static void close_dpa(struct doca_dpa *dpa, struct doca_dev *dev)
{
	EXPECT(DOCA_SUCCESS, doca_dpa_peek_at_last_error(dpa));
	EXPECT(DOCA_SUCCESS, doca_dpa_destroy(dpa));
	EXPECT(DOCA_SUCCESS, doca_dev_close(dev));
}

static int calls(const void *argument)
{
	struct parts parts = {100, 20, 3};
	uint64_t result = 0;
	struct doca_dev *dev = open_dev();
	struct doca_dpa *dpa = open_dpa(dev, DOCA_DPA_DEV_LOG_LEVEL_INFO);
	(void)argument;
	EXPECT(DOCA_SUCCESS, doca_dpa_rpc(dpa, add_parts, &result, parts, 200));
	CHECK(result == 323);
	EXPECT(DOCA_SUCCESS, doca_dpa_rpc(dpa, nothing, &result));
	CHECK(result == 1);
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_dpa_rpc(dpa, kernel, &result));
	close_dpa(dpa, dev);
	return 0;
}

/* A thread needs a completion to be activated; here it is only stopped. */
static int threads(const void *argument)
{
	struct doca_dpa_thread *thread;
	struct doca_dev *dev = open_dev();
	struct doca_dpa *dpa = open_dpa(dev, DOCA_DPA_DEV_LOG_LEVEL_INFO);
	(void)argument;
	EXPECT(DOCA_SUCCESS, doca_dpa_thread_create(dpa, &thread));
	EXPECT(DOCA_SUCCESS, doca_dpa_thread_set_func_arg(thread, nothing, 0));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_dpa_thread_start(thread));
	EXPECT(DOCA_SUCCESS, doca_dpa_thread_set_func_arg(thread, kernel, 0));
	EXPECT(DOCA_SUCCESS, doca_dpa_thread_start(thread));
	EXPECT(DOCA_SUCCESS, doca_dpa_thread_run(thread));
	EXPECT(DOCA_SUCCESS, doca_dpa_thread_stop(thread));
	EXPECT(DOCA_SUCCESS, doca_dpa_thread_destroy(thread));
	close_dpa(dpa, dev);
	return 0;
}

static int logs(const void *level)
{
	uint64_t result;
	struct doca_dev *dev = open_dev();
	struct doca_dpa *dpa = open_dpa(dev, *(const doca_dpa_dev_log_level_t *)level);
	EXPECT(DOCA_SUCCESS, doca_dpa_rpc(dpa, log_all, &result, (uint64_t)7));
	close_dpa(dpa, dev);
	return 0;
}

static size_t check_log(doca_dpa_dev_log_level_t level, const char *expected)
{
	struct capture capture;
	capture_run(logs, &level, &capture);
	if (capture.exit_code == 0 && strcmp(capture.out, expected) == 0)
		return 0;
	fprintf(stderr, "level %d logs \"%s\": %s\n", (int)level, capture.out, capture.err);
	return 1;
}

int main(void)
{
	static const struct capture_case cases[] = {{"calls", calls}, {"threads", threads}};
	size_t failed = check_cases(cases, COUNT(cases));
	failed += check_log(DOCA_DPA_DEV_LOG_LEVEL_DISABLE, "");
	failed += check_log(DOCA_DPA_DEV_LOG_LEVEL_ERROR, "error 7\n");
	failed += check_log(DOCA_DPA_DEV_LOG_LEVEL_INFO, "error 7\nwarning 7\ninformation\n");
	failed += check_log(DOCA_DPA_DEV_LOG_LEVEL_DEBUG, "error 7\nwarning 7\ninformation\ndetail\n");
	return report("dpa", COUNT(cases) + 4, failed);
}
