/* SPDX-License-Identifier: Apache-2.0 */
/* Memory maps and buffers, within one process. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../device/memory.h"
#include "setup.h"

#define PCI_READ DOCA_ACCESS_FLAG_PCI_READ_ONLY
#define PCI_WRITE DOCA_ACCESS_FLAG_PCI_READ_WRITE

/* ---- Memory maps ---- */

static char memory[1 << 16];

static void test_permissions(void)
{
	struct doca_mmap *mmap;
	CHECK_OK(soft_doca_mmap_create(&mmap));
	for (uint32_t mask = 0; mask < 1 << 9; mask++) {
		bool both = (mask & PCI_READ) && (mask & PCI_WRITE);
		bool relaxed = (mask & DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING) && (mask & (PCI_READ | PCI_WRITE));
		bool valid = mask < 1 << 7 && !both && !relaxed;
		CHECK_RESULT(valid ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE,
			     soft_doca_mmap_set_permissions(mmap, mask));
	}
	CHECK_OK(soft_doca_mmap_destroy(mmap));
}

static void *freed_addr;

static void note_freed(void *addr, size_t len, void *cookie)
{
	CHECK(len == sizeof(memory) && cookie == &freed_addr);
	freed_addr = addr;
}

static void test_mmap_states(void)
{
	struct doca_dev *dev = setup_open_dev(HOST_PCI);
	struct doca_mmap *mmap;
	void *addr;
	size_t len;
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_mmap_get_memrange(mmap, &addr, &len));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_start(mmap));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_set_memrange(mmap, NULL, 1));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_set_memrange(mmap, memory, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_set_memrange(mmap, memory, SIZE_MAX));
	CHECK_OK(soft_doca_mmap_set_memrange(mmap, memory, sizeof(memory)));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_set_memrange(mmap, memory, sizeof(memory)));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_start(mmap)); /* no device */
	CHECK_RESULT(DOCA_ERROR_NOT_FOUND, soft_doca_mmap_rm_dev(mmap, dev));
	CHECK_OK(soft_doca_mmap_set_max_num_devices(mmap, 1));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, dev));
	CHECK_RESULT(DOCA_ERROR_ALREADY_EXIST, soft_doca_mmap_add_dev(mmap, dev));
	CHECK_OK(soft_doca_mmap_set_free_cb(mmap, note_freed, &freed_addr));
	CHECK_OK(soft_doca_mmap_start(mmap));

	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_mmap_start(mmap));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_mmap_set_permissions(mmap, 0));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_mmap_set_memrange(mmap, memory, 1));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_mmap_set_free_cb(mmap, note_freed, NULL));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_mmap_set_user_data(mmap, (union doca_data){.u64 = 1}));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_set_max_num_devices(mmap, 2));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_add_dev(mmap, dev));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_rm_dev(mmap, dev));
	CHECK_OK(soft_doca_mmap_get_memrange(mmap, &addr, &len));
	CHECK(addr == memory && len == sizeof(memory));
	CHECK_OK(soft_doca_mmap_stop(mmap));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK(freed_addr == memory);
	CHECK_OK(soft_doca_dev_close(dev));
}

static void test_free_cb_of_unstarted(void)
{
	struct doca_mmap *mmap;
	freed_addr = NULL;
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_OK(soft_doca_mmap_set_memrange(mmap, memory, sizeof(memory)));
	CHECK_OK(soft_doca_mmap_set_free_cb(mmap, note_freed, &freed_addr));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK(freed_addr == NULL);
}

static void test_export_rules(void)
{
	struct doca_dev *host = setup_open_dev(HOST_PCI), *dpu = setup_open_dev(DPU_PCI),
			*second = setup_open_dev("b1:00.1");
	const void *desc, *again;
	size_t len, len_again;
	struct doca_mmap *mmap = setup_mmap(host, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_export_pci(mmap, host, &desc, &len));
	CHECK_OK(soft_doca_mmap_stop(mmap));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_add_dev(mmap, dpu)); /* of the other side */
	CHECK_OK(soft_doca_mmap_add_dev(mmap, second));
	CHECK_OK(soft_doca_mmap_set_permissions(mmap, PCI_READ));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_export_pci(mmap, host, &desc, &len));
	CHECK_OK(soft_doca_mmap_start(mmap));
	CHECK_RESULT(DOCA_ERROR_NOT_FOUND, soft_doca_mmap_export_pci(mmap, dpu, &desc, &len));
	CHECK_OK(soft_doca_mmap_export_pci(mmap, second, &desc, &len));
	CHECK_OK(soft_doca_mmap_export_pci(mmap, host, &again, &len_again));
	CHECK(desc == again && len == len_again && len == 256);
	uint8_t exported;
	CHECK_OK(soft_doca_mmap_get_exported(mmap, &exported));
	CHECK(exported == 1 && setup_count_files("mem.") == 1);
	CHECK_OK(soft_doca_mmap_stop(mmap));
	CHECK_OK(soft_doca_mmap_get_exported(mmap, &exported));
	CHECK(exported == 0 && setup_count_files("mem.") == 0);
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_dev_close(second));
	CHECK_OK(soft_doca_dev_close(dpu));
	CHECK_OK(soft_doca_dev_close(host));
}

static void test_pinning(void)
{
	setup_configure("pin_files=0");
	FILE *file = tmpfile();
	CHECK(file != NULL && ftruncate(fileno(file), 4096) == 0);
	void *mapped = memory_map_file(fileno(file), 4096, true);
	CHECK(mapped != NULL);
	struct doca_dev *dev = setup_open_dev(HOST_PCI);
	struct doca_mmap *mmap;
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_OK(soft_doca_mmap_set_memrange(mmap, mapped, 4096));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, dev));
	CHECK_RESULT(DOCA_ERROR_DRIVER, soft_doca_mmap_start(mmap));
	CHECK(strstr(soft_last_detail(), "pin_files") != NULL);
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_dev_close(dev));
	memory_free(mapped, 4096);
	fclose(file);
	setup_configure(NULL);
}

/* ---- Private memory ---- */

/* Reports whether huge pages were requested for the mapping that begins there. */
static bool asks_for_huge_pages(const void *addr)
{
	char line[512], start[32];
	bool within = false, asks = false;
	FILE *smaps = fopen("/proc/self/smaps", "r");
	CHECK(smaps != NULL);
	snprintf(start, sizeof(start), "%lx-", (unsigned long)(uintptr_t)addr);
	while (fgets(line, sizeof(line), smaps) != NULL) {
		if (strncmp(line, start, strlen(start)) == 0)
			within = true;
		else if (within && strncmp(line, "VmFlags:", 8) == 0)
			break;
	}
	asks = within && strstr(line, " hg") != NULL;
	fclose(smaps);
	return asks;
}

/* Not every system has huge pages, and an emulated one may not report them. */
static bool shows_huge_pages(size_t len)
{
	void *asking = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(asking != MAP_FAILED);
	bool shows = madvise(asking, len, MADV_HUGEPAGE) == 0 && asks_for_huge_pages(asking);
	munmap(asking, len);
	return shows;
}

static void test_private_memory(void)
{
	size_t len = (size_t)4 << 20;
	bool huge = shows_huge_pages(len);
	uint8_t *private = memory_alloc_private(len);
	CHECK(private != NULL && (uintptr_t) private % 4096 == 0 && private[0] == 0 && private[len - 1] == 0);
	struct memory_backing backing;
	CHECK(memory_find(private + 1, len - 1, &backing));
	CHECK(backing.kind == MEMORY_PRIVATE && backing.fd == -1 && backing.offset == 1);
	CHECK(!memory_find(private + 1, len, &backing));
	CHECK(asks_for_huge_pages(private) == huge);
	memory_free(private, len);
	CHECK(!memory_find(private, len, &backing));
}

/* ---- Buffers ---- */

struct bufs {
	struct doca_dev *dev;
	struct doca_mmap *mmap;
	struct doca_buf_inventory *inventory;
};

static struct bufs bufs_open(size_t num_elements)
{
	struct bufs b = {.dev = setup_open_dev(HOST_PCI)};
	b.mmap = setup_mmap(b.dev, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	CHECK_OK(soft_doca_buf_inventory_create(num_elements, &b.inventory));
	CHECK_OK(soft_doca_buf_inventory_start(b.inventory));
	return b;
}

static void bufs_close(struct bufs *b)
{
	uint32_t total, free_elements, held;
	CHECK_OK(soft_doca_buf_inventory_get_num_elements(b->inventory, &total));
	CHECK_OK(soft_doca_buf_inventory_get_num_free_elements(b->inventory, &free_elements));
	CHECK_OK(soft_doca_mmap_get_num_bufs(b->mmap, &held));
	CHECK(total == free_elements && held == 0);
	CHECK_OK(soft_doca_buf_inventory_destroy(b->inventory));
	CHECK_OK(soft_doca_mmap_destroy(b->mmap));
	CHECK_OK(soft_doca_dev_close(b->dev));
}

static doca_error_t get(struct bufs *b, void *addr, size_t len, void *data, size_t data_len, struct doca_buf **buf)
{
	return soft_doca_buf_inventory_buf_get_by_args(b->inventory, b->mmap, addr, len, data, data_len, buf);
}

static void test_buf_ranges(void)
{
	struct bufs b = bufs_open(1);
	struct doca_buf *buf, *none;
	char *end = memory + sizeof(memory);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, get(&b, memory - 1, 2, memory - 1, 0, &buf));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, get(&b, end - 1, 2, end - 1, 0, &buf));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, get(&b, memory, SIZE_MAX, memory, 0, &buf));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, get(&b, memory, 0, memory, 0, &buf));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, get(&b, memory + 8, 8, memory + 7, 0, &buf));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, get(&b, memory + 8, 8, memory + 9, 8, &buf));
	CHECK_OK(get(&b, end - 8, 8, end - 4, 4, &buf));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, get(&b, memory, 1, memory, 0, &none));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_buf_inventory_destroy(b.inventory));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_destroy(b.mmap));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_stop(b.mmap));
	CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	CHECK_OK(soft_doca_buf_inventory_stop(b.inventory));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, get(&b, memory, 1, memory, 0, &none));
	CHECK_OK(soft_doca_mmap_stop(b.mmap));
	CHECK_OK(soft_doca_buf_inventory_start(b.inventory));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, get(&b, memory, 1, memory, 0, &none));
	bufs_close(&b);
}

static void test_refcounts(void)
{
	struct bufs b = bufs_open(2);
	struct doca_buf *buf = setup_buf(b.inventory, b.mmap, memory, 8, 0);
	uint16_t before = 0;
	for (unsigned count = 1; count < UINT16_MAX; count++) {
		CHECK_OK(soft_doca_buf_inc_refcount(buf, &before));
		CHECK(before == count);
	}
	CHECK_RESULT(DOCA_ERROR_TOO_BIG, soft_doca_buf_inc_refcount(buf, &before));
	for (unsigned count = UINT16_MAX; count > 0; count--) {
		CHECK_OK(soft_doca_buf_dec_refcount(buf, &before));
		CHECK(before == count);
	}
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_buf_dec_refcount(buf, &before));
	bufs_close(&b);
}

static void check_list(struct doca_buf *head, const struct doca_buf *last, uint32_t len)
{
	struct doca_buf *found;
	uint32_t found_len;
	uint8_t first;
	CHECK_OK(soft_doca_buf_get_list_len(head, &found_len));
	CHECK_OK(soft_doca_buf_get_last_in_list(head, &found));
	CHECK_OK(soft_doca_buf_is_first_in_list(head, &first));
	CHECK(found_len == len && found == last && first == 1);
	for (struct doca_buf *buf = head; buf != NULL; len--) {
		uint8_t is_last, in_list;
		CHECK_OK(soft_doca_buf_is_last_in_list(buf, &is_last));
		CHECK_OK(soft_doca_buf_is_in_list(buf, &in_list));
		CHECK(is_last == (buf == last) && in_list == (found_len > 1));
		CHECK_OK(soft_doca_buf_get_next_in_list(buf, &buf));
	}
	CHECK(len == 0);
}

static void test_lists(void)
{
	struct bufs b = bufs_open(8);
	struct doca_buf *buf[4], *copy;
	for (int i = 0; i < 4; i++)
		buf[i] = setup_buf(b.inventory, b.mmap, memory + 8 * i, 8, 4);
	CHECK_OK(soft_doca_buf_chain_list(buf[0], buf[1]));
	CHECK_OK(soft_doca_buf_chain_list(buf[2], buf[3]));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_buf_chain_list(buf[0], buf[0]));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_buf_chain_list(buf[0], buf[3]));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_buf_chain_list(buf[1], buf[2]));
	CHECK_OK(soft_doca_buf_inc_refcount(buf[2], NULL));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_buf_chain_list(buf[0], buf[2]));
	CHECK_OK(soft_doca_buf_dec_refcount(buf[2], NULL));
	CHECK_OK(soft_doca_buf_chain_list(buf[0], buf[2]));
	check_list(buf[0], buf[3], 4);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_buf_inc_refcount(buf[1], NULL));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_buf_dec_refcount(buf[3], NULL));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_buf_inventory_buf_dup(b.inventory, buf[1], &copy));
	CHECK_OK(soft_doca_buf_inventory_buf_dup(b.inventory, buf[0], &copy));
	CHECK_RESULT(DOCA_ERROR_NO_MEMORY, soft_doca_buf_inventory_buf_dup(b.inventory, buf[0], &copy));
	CHECK_OK(soft_doca_buf_dec_refcount(copy, NULL));

	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_unchain_list(buf[0], buf[0]));
	CHECK_OK(soft_doca_buf_unchain_list(buf[0], buf[1]));
	check_list(buf[0], buf[0], 1);
	check_list(buf[1], buf[3], 3);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_unchain_list(buf[0], buf[2]));
	CHECK_OK(soft_doca_buf_dec_refcount(buf[0], NULL));
	CHECK_OK(soft_doca_buf_dec_refcount(buf[1], NULL)); /* and the two behind it */
	bufs_close(&b);
}

int main(void)
{
	setup_configure(NULL);
	RUN(test_permissions);
	RUN(test_mmap_states);
	RUN(test_free_cb_of_unstarted);
	RUN(test_export_rules);
	RUN(test_pinning);
	RUN(test_private_memory);
	RUN(test_buf_ranges);
	RUN(test_refcounts);
	RUN(test_lists);
	return 0;
}
