/* SPDX-License-Identifier: Apache-2.0 */
/* A DPA from creation to destruction: settings, order of calls, memory, remote procedure calls. */
#include "dpa_end.h"

#include "../dpa/dpa.h"

/* ---- code of the DPA ---- */

struct pair {
	uint64_t a;
	double b;
	uint8_t tail[24];
};

static struct pair seen_pair;
static double seen_double;
static unsigned seen_small;

uint64_t add_all(uint8_t small, struct pair pair, float number, int64_t negative);
uint64_t nothing(void);
uint64_t many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l, int m, int n);
void a_kernel(uint64_t arg);

uint64_t add_all(uint8_t small, struct pair pair, float number, int64_t negative)
{
	seen_small = small;
	seen_pair = pair;
	seen_double = number;
	return (uint64_t)(small + (int64_t)pair.a + negative);
}

uint64_t nothing(void)
{
	return 7;
}

uint64_t many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l, int m, int n)
{
	return (uint64_t)(a + 10 * b + c + d + e + f + g + h + i + j + k + l + m + 1000 * n);
}

void a_kernel(uint64_t arg)
{
	(void)arg;
}

DPA_KIT_APP(test_app)
DPA_KIT_RPC(run_body, uint64_t, uint64_t)
DPA_KIT_RPC(add_all, uint8_t, struct pair, float, int64_t)
DPA_KIT_RPC(nothing)
DPA_KIT_RPC(many, int, int, int, int, int, int, int, int, int, int, int, int, int, int)
DPA_KIT_KERNEL(a_kernel)

/* ---- tests ---- */

struct fixture fixture;

static void null_is_invalid(void)
{
	struct doca_dpa *dpa;
	uint64_t value;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_cap_is_supported(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_create(NULL, &dpa));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_create(fixture.dpu, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_destroy(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_start(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_stop(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_peek_at_last_error(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_mem_alloc(NULL, 1, &value));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_mem_free(NULL, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_memset(NULL, 1, 0, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, dpa_call(NULL, FUNC(nothing), &value));
}

/* A DPA belongs to a physical function, of the host or of the DPU. */
static void only_physical_functions_have_one(void)
{
	struct doca_devinfo virtual = *fixture.host->info;
	virtual.kind = DOCA_PCI_FUNC_TYPE_VF;
	CHECK_OK(soft_doca_dpa_cap_is_supported(fixture.host->info));
	CHECK_OK(soft_doca_dpa_cap_is_supported(fixture.dpu->info));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_dpa_cap_is_supported(&virtual));
}

static void an_app_comes_first(void)
{
	struct doca_dpa *dpa;
	struct doca_dpa_app *app;
	char name[9];
	uint32_t len = 8;
	CHECK_OK(soft_doca_dpa_create(fixture.dpu, &dpa));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(fixture.dpu));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_start(dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_stop(dpa));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_get_app(dpa, &app));
	CHECK_OK(soft_doca_dpa_set_app(dpa, test_app));
	CHECK_OK(soft_doca_dpa_get_app(dpa, &app));
	CHECK(app == test_app);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_app_get_name(app, name, &len));
	len = sizeof(name);
	CHECK_OK(soft_doca_dpa_app_get_name(app, name, &len));
	CHECK(strcmp(name, "test_app") == 0 && len == 9);
	CHECK_OK(soft_doca_dpa_start(dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_start(dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_set_app(dpa, test_app));
	CHECK_OK(soft_doca_dpa_destroy(dpa));
}

static void log_level(void)
{
	struct doca_dpa *dpa;
	doca_dpa_dev_log_level_t level;
	CHECK_OK(soft_doca_dpa_create(fixture.dpu, &dpa));
	CHECK_OK(soft_doca_dpa_get_log_level(dpa, &level));
	CHECK(level == DOCA_DPA_DEV_LOG_LEVEL_INFO);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_set_log_level(dpa, 20));
	CHECK_OK(soft_doca_dpa_set_log_level(dpa, DOCA_DPA_DEV_LOG_LEVEL_DEBUG));
	CHECK_OK(soft_doca_dpa_set_app(dpa, test_app));
	CHECK_OK(soft_doca_dpa_start(dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_set_log_level(dpa, DOCA_DPA_DEV_LOG_LEVEL_ERROR));
	dpa_close(dpa);
}

static void what_it_has(void)
{
	struct doca_dpa *dpa = dpa_open();
	unsigned int cores, eus, total;
	doca_dpa_dev_t handle;
	CHECK_OK(soft_doca_dpa_get_core_num(dpa, &cores));
	CHECK_OK(soft_doca_dpa_get_num_eus_per_core(dpa, &eus));
	CHECK_OK(soft_doca_dpa_get_total_num_eus_available(dpa, &total));
	CHECK(cores == 16 && eus == 16 && total == 254);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_get_core_num(dpa, NULL));
	CHECK_OK(soft_doca_dpa_get_dpa_handle(dpa, &handle));
	CHECK(handle != 0);
	CHECK_OK(soft_doca_dpa_stop(dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_get_dpa_handle(dpa, &handle));
	CHECK_OK(soft_doca_dpa_destroy(dpa));
}

static unsigned long long max_run_time(const char *limits)
{
	unsigned long long seconds;
	fixture_close(&fixture);
	fixture_open(&fixture, limits);
	struct doca_dpa *dpa = dpa_open();
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_get_kernel_max_run_time(dpa, NULL));
	CHECK_OK(soft_doca_dpa_get_kernel_max_run_time(dpa, &seconds));
	dpa_close(dpa);
	return seconds;
}

static void the_run_time_is_limited(void)
{
	CHECK(max_run_time("dpa_kernel_ms=2999") == 2);
	CHECK(max_run_time("dpa_kernel_ms=0") > UINT32_MAX);
	CHECK(max_run_time(NULL) == 12);
}

static void memory_is_checked(void)
{
	struct doca_dpa *dpa = dpa_open();
	doca_dpa_dev_uintptr_t memory, other = 1;
	char text[16] = "over and back", back[16];
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_mem_alloc(dpa, 0, &other));
	CHECK(other == 0);
	CHECK_OK(soft_doca_dpa_mem_alloc(dpa, sizeof(text), &memory));
	CHECK(memory % 64 == 0 && *(unsigned char *)(uintptr_t)memory != 0);
	CHECK_OK(soft_doca_dpa_h2d_memcpy(dpa, memory, text, sizeof(text)));
	CHECK_OK(soft_doca_dpa_d2h_memcpy(dpa, back, memory, sizeof(back)));
	CHECK(strcmp(back, "over and back") == 0);
	CHECK_OK(soft_doca_dpa_memset(dpa, memory + 4, 0, 1));
	CHECK_OK(soft_doca_dpa_d2h_memcpy(dpa, back, memory, sizeof(back)));
	CHECK(strcmp(back, "over") == 0);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_h2d_memcpy(dpa, memory + 1, text, sizeof(text)));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_h2d_memcpy(dpa, memory, text, SIZE_MAX));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_d2h_memcpy(dpa, back, memory - 1, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_memset(dpa, memory + sizeof(text), 0, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_mem_free(dpa, memory + 1));
	CHECK_OK(soft_doca_dpa_mem_free(dpa, memory));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dpa_mem_free(dpa, memory));
	/* Memory that is not freed ends with the DPA. */
	CHECK_OK(soft_doca_dpa_mem_alloc(dpa, 100, &other));
	CHECK_OK(soft_doca_dpa_stop(dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_mem_free(dpa, other));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_mem_alloc(dpa, 1, &memory));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_memset(dpa, other, 0, 1));
	CHECK_OK(soft_doca_dpa_destroy(dpa));
}

static void calls_take_any_argument(void)
{
	struct doca_dpa *dpa = dpa_open();
	struct pair pair = {.a = 100, .b = 2.5, .tail = "twenty-three characters"};
	uint64_t result = 0;
	CHECK_OK(dpa_call(dpa, FUNC(add_all), &result, 200, pair, 1.25f, (int64_t)-1));
	CHECK(result == 299 && seen_small == 200 && seen_double == 1.25);
	CHECK(memcmp(&seen_pair, &pair, sizeof(pair)) == 0);
	CHECK_OK(dpa_call(dpa, FUNC(nothing), &result));
	CHECK(result == 7);
	CHECK_OK(dpa_call(dpa, FUNC(many), &result, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
	CHECK(result == 1 + 20 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12 + 13 + 14000);
	dpa_close(dpa);
}

static void only_registered_calls_can_be_called(void)
{
	struct doca_dpa *dpa = dpa_open();
	uint64_t result = 77;
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, dpa_call(dpa, FUNC(a_kernel), &result));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, dpa_call(dpa, FUNC(what_it_has), &result));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, dpa_call(dpa, NULL, &result));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, dpa_call(dpa, FUNC(nothing), NULL));
	CHECK_OK(soft_doca_dpa_stop(dpa));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, dpa_call(dpa, FUNC(nothing), &result));
	CHECK(result == 77);
	CHECK_OK(soft_doca_dpa_destroy(dpa));
}

static uint64_t finish(void *arg)
{
	(void)arg;
	soft_doca_dpa_dev_thread_finish();
	return 1;
}

static uint64_t use_storage(void *arg)
{
	(void)arg;
	return soft_doca_dpa_dev_thread_get_local_storage();
}

/* Functions of threads are errors in a call, and the first ends it. */
static void a_call_is_no_thread(void)
{
	struct doca_dpa *dpa = dpa_open();
	uint64_t result = 77;
	CHECK_RESULT(DOCA_ERROR_DRIVER, dpa_call(dpa, FUNC(run_body), &result, (uint64_t)(uintptr_t)finish, 0ul));
	CHECK(result == 77);
	CHECK_DPA_FAILED(dpa);
	dpa_close(dpa);
	dpa = dpa_open();
	CHECK(on_dpa(dpa, use_storage, NULL) == 0);
	CHECK_DPA_FAILED(dpa);
	dpa_close(dpa);
}

static uint64_t select_device(void *arg)
{
	soft_doca_dpa_dev_device_set(*(const doca_dpa_dev_t *)arg);
	return 0;
}

static void there_is_one_device(void)
{
	struct doca_dpa *dpa = dpa_open();
	doca_dpa_dev_t handle = 0;
	on_dpa(dpa, select_device, &handle);
	CHECK_OK(soft_doca_dpa_get_dpa_handle(dpa, &handle));
	on_dpa(dpa, select_device, &handle);
	CHECK_DPA_OK(dpa);
	handle += 8;
	on_dpa(dpa, select_device, &handle);
	CHECK_DPA_FAILED(dpa);
	dpa_close(dpa);
}

/* The CPU is told in the log; nothing happens. */
static void device_functions_are_for_the_dpa(void)
{
	doca_dpa_dev_completion_element_t element = 5;
	CHECK(soft_doca_dpa_dev_get_completion(1, &element) == 0 && element == 5);
	CHECK(soft_doca_dpa_dev_thread_get_local_storage() == 0);
	soft_doca_dpa_dev_thread_finish();
	soft_doca_dpa_dev_comch_consumer_ack(1, 1);
}

int main(void)
{
	fixture_open(&fixture, NULL);
	RUN(null_is_invalid);
	RUN(only_physical_functions_have_one);
	RUN(an_app_comes_first);
	RUN(log_level);
	RUN(what_it_has);
	RUN(the_run_time_is_limited);
	RUN(memory_is_checked);
	RUN(calls_take_any_argument);
	RUN(only_registered_calls_can_be_called);
	RUN(a_call_is_no_thread);
	RUN(there_is_one_device);
	RUN(device_functions_are_for_the_dpa);
	fixture_close(&fixture);
	return 0;
}
