/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of buffers: their elements, and what is refused. */
#include <doca_buf_pool.h>
#include <doca_dev.h>
#include <doca_mmap.h>

#include "capture.h"
#include "check.h"

#define LEN 1024

static _Alignas(64) uint8_t memory[LEN];

struct subject {
	struct doca_dev *dev;
	struct doca_mmap *mmap;
	struct doca_buf_pool *pool;
};

/* From offset on. The map is started, the pool is not. */
static void open_pool(struct subject *s, size_t offset, size_t num_elements, size_t element_size)
{
	struct doca_devinfo **list;
	uint32_t count;
	EXPECT(DOCA_SUCCESS, doca_devinfo_create_list(&list, &count));
	EXPECT(DOCA_SUCCESS, doca_dev_open(list[0], &s->dev));
	EXPECT(DOCA_SUCCESS, doca_devinfo_destroy_list(list));
	EXPECT(DOCA_SUCCESS, doca_mmap_create(&s->mmap));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_create(num_elements, element_size, s->mmap, &s->pool));
	EXPECT(DOCA_SUCCESS, doca_mmap_set_memrange(s->mmap, memory + offset, LEN - offset));
	EXPECT(DOCA_SUCCESS, doca_mmap_add_dev(s->mmap, s->dev));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_create(0, element_size, s->mmap, &s->pool));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_create(num_elements, 0, s->mmap, &s->pool));
	EXPECT(DOCA_SUCCESS, doca_buf_pool_create(num_elements, element_size, s->mmap, &s->pool));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_buf_pool_start(s->pool));
	EXPECT(DOCA_SUCCESS, doca_mmap_start(s->mmap));
}

static void close_pool(struct subject *s)
{
	EXPECT(DOCA_SUCCESS, doca_buf_pool_destroy(s->pool));
	EXPECT(DOCA_SUCCESS, doca_mmap_destroy(s->mmap));
	EXPECT(DOCA_SUCCESS, doca_dev_close(s->dev));
}

/* Takes all elements, which are empty, aligned and apart, gives them back in another order, and takes them again. */
static void take_all(struct doca_buf_pool *pool, size_t num_elements, size_t element_size, size_t alignment)
{
	struct doca_buf *bufs[16], *more;
	uint32_t free_elements;
	for (int round = 0; round < 2; round++) {
		uint8_t *lowest = memory + LEN;
		uint64_t seen = 0;
		for (size_t i = 0; i < num_elements; i++) {
			void *head;
			size_t len, data_len;
			EXPECT(DOCA_SUCCESS, doca_buf_pool_buf_alloc(pool, &bufs[i]));
			EXPECT(DOCA_SUCCESS, doca_buf_get_head(bufs[i], &head));
			EXPECT(DOCA_SUCCESS, doca_buf_get_len(bufs[i], &len));
			EXPECT(DOCA_SUCCESS, doca_buf_get_data_len(bufs[i], &data_len));
			CHECK(len == element_size && data_len == 0 && (uintptr_t)head % alignment == 0);
			CHECK((uint8_t *)head >= memory && (uint8_t *)head + len <= memory + LEN);
			size_t slot = ((uintptr_t)head - (uintptr_t)memory) / element_size;
			CHECK((seen & 1ULL << slot) == 0);
			seen |= 1ULL << slot;
			lowest = (uint8_t *)head < lowest ? head : lowest;
		}
		CHECK(lowest < memory + 2 * alignment);
		EXPECT(DOCA_ERROR_EMPTY, doca_buf_pool_buf_alloc(pool, &more));
		EXPECT(DOCA_ERROR_IN_USE, doca_buf_pool_stop(pool));
		EXPECT(DOCA_ERROR_IN_USE, doca_buf_pool_destroy(pool));
		for (size_t i = 0; i < num_elements; i++)
			EXPECT(DOCA_SUCCESS, doca_buf_dec_refcount(bufs[(i * 3 + 1) % num_elements], NULL));
		EXPECT(DOCA_SUCCESS, doca_buf_pool_get_num_free_elements(pool, &free_elements));
		CHECK(free_elements == num_elements);
	}
}

static int has_elements(const void *argument)
{
	struct subject s;
	struct doca_buf *buf;
	uint32_t num;
	(void)argument;
	open_pool(&s, 0, 4, 256);
	EXPECT(DOCA_ERROR_BAD_STATE, doca_buf_pool_buf_alloc(s.pool, &buf));
	EXPECT(DOCA_SUCCESS, doca_buf_pool_start(s.pool));
	EXPECT(DOCA_SUCCESS, doca_buf_pool_get_num_elements(s.pool, &num));
	CHECK(num == 4);
	take_all(s.pool, 4, 256, 1);
	EXPECT(DOCA_SUCCESS, doca_buf_pool_stop(s.pool));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_buf_pool_buf_alloc(s.pool, &buf));
	close_pool(&s);
	return 0;
}

static int aligns_them(const void *argument)
{
	struct subject s;
	size_t alignment;
	(void)argument;
	open_pool(&s, 1, 7, 100);
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_set_element_alignment(s.pool, 0));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_set_element_alignment(s.pool, 3));
	EXPECT(DOCA_SUCCESS, doca_buf_pool_set_element_alignment(s.pool, 64));
	EXPECT(DOCA_SUCCESS, doca_buf_pool_get_element_alignment(s.pool, &alignment));
	CHECK(alignment == 64);
	EXPECT(DOCA_SUCCESS, doca_buf_pool_start(s.pool));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_buf_pool_set_element_alignment(s.pool, 32));
	take_all(s.pool, 7, 100, 64);
	close_pool(&s);
	return 0;
}

static int needs_memory_for_them(const void *argument)
{
	struct subject s;
	(void)argument;
	open_pool(&s, 0, 5, 256);
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_start(s.pool));
	close_pool(&s);
	open_pool(&s, 1, 4, 250);
	EXPECT(DOCA_SUCCESS, doca_buf_pool_set_element_alignment(s.pool, 64));
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_start(s.pool));
	close_pool(&s);
	open_pool(&s, 0, 1, SIZE_MAX);
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_start(s.pool));
	close_pool(&s);
	return 0;
}

static int has_user_data(const void *argument)
{
	struct subject s;
	union doca_data data = {.u64 = 1};
	(void)argument;
	open_pool(&s, 0, 1, 1);
	EXPECT(DOCA_SUCCESS, doca_buf_pool_get_user_data(s.pool, &data));
	CHECK(data.u64 == 0);
	data.u64 = 42;
	EXPECT(DOCA_SUCCESS, doca_buf_pool_set_user_data(s.pool, data));
	EXPECT(DOCA_SUCCESS, doca_buf_pool_start(s.pool));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_buf_pool_set_user_data(s.pool, data));
	EXPECT(DOCA_SUCCESS, doca_buf_pool_get_user_data(s.pool, &data));
	CHECK(data.u64 == 42);
	close_pool(&s);
	return 0;
}

static const struct capture_case cases[] = {
	{"has elements", has_elements},
	{"aligns them", aligns_them},
	{"needs memory for them", needs_memory_for_them},
	{"has user data", has_user_data},
};

int main(void)
{
	return report("buffer pool", COUNT(cases), check_cases(cases, COUNT(cases)));
}
