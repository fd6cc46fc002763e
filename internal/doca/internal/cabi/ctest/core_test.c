/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration, devices, memory maps and buffers, within one process. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../memory.h"
#include "../soft_core.h"
#include "rig.h"

#define PCI_READ DOCA_ACCESS_FLAG_PCI_READ_ONLY
#define PCI_WRITE DOCA_ACCESS_FLAG_PCI_READ_WRITE

/* ---- Configuration ---- */

static void refuse_limits(const char *limits, const char *named)
{
	char error[256] = "";
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_configure(rig_dir(), limits, error, sizeof(error)));
	CHECK(strstr(error, named) != NULL);
	CHECK(soft_limits()->max_msg_size == 1000);
}

static void test_limits(void)
{
	rig_configure("");
	CHECK(soft_limits()->max_buf_size == 2097152 && soft_limits()->max_msg_size == 4080);
	rig_configure("max_msg_size=1000,task_latency_us=0,pin_files=0");
	CHECK(soft_limits()->max_msg_size == 1000 && soft_limits()->pin_files == 0);
	CHECK(soft_limits()->max_buf_size == 2097152);
	refuse_limits("max_msg=1", "max_msg");
	refuse_limits("max_buf_size", "max_buf_size");
	refuse_limits("max_buf_size=", "max_buf_size");
	refuse_limits("max_buf_size=0", "max_buf_size");
	refuse_limits("max_buf_size=-1", "-1");
	refuse_limits("max_buf_size=1k", "1k");
	refuse_limits("max_buf_size=18446744073709551616", "max_buf_size");
	refuse_limits("pin_files=2", "pin_files");
	refuse_limits("max_buf_size=1,", "\"\"");
	refuse_limits("max_buf_size=1,,pin_files=1", "\"\"");
}

static void refuse_dir(const char *dir)
{
	char error[600] = "";
	CHECK_RESULT(DOCA_ERROR_OPERATING_SYSTEM, soft_configure(dir, "", error, sizeof(error)));
	CHECK(strstr(error, dir) != NULL);
	CHECK(strcmp(soft_runtime_dir(), rig_dir()) == 0);
}

static void test_runtime_dir(void)
{
	char path[300], deeper[320];
	rig_configure(NULL);
	snprintf(path, sizeof(path), "%s/sub", rig_dir());
	snprintf(deeper, sizeof(deeper), "%s/sub", path);
	refuse_dir(deeper); /* parents are not made */
	CHECK_OK(soft_configure(path, "", NULL, 0));
	CHECK(strcmp(soft_runtime_dir(), path) == 0 && soft_runtime_dirfd() >= 0);
	struct stat st;
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700);
	rig_configure(NULL);
	CHECK(chmod(path, 0770) == 0);
	refuse_dir(path);
	CHECK(chmod(path, 0702) == 0);
	refuse_dir(path);
	rig_remove(path);
	if (geteuid() == 0) {
		CHECK(mkdir(path, 0700) == 0 && chown(path, 12345, 0) == 0);
		refuse_dir(path);
		CHECK(rmdir(path) == 0);
	}
	int fd = soft_runtime_dirfd();
	rig_configure("max_msg_size=1000");
	CHECK(soft_runtime_dirfd() == fd);
}

static void test_default_dir(void)
{
	char expected[600];
	CHECK(setenv("XDG_RUNTIME_DIR", rig_dir(), 1) == 0);
	CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
	snprintf(expected, sizeof(expected), "%s/dma-copy", rig_dir());
	CHECK(strcmp(soft_runtime_dir(), expected) == 0);
	CHECK(setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1) == 0 && setenv("TMPDIR", rig_dir(), 1) == 0);
	CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
	snprintf(expected, sizeof(expected), "%s/dma-copy-%u", rig_dir(), (unsigned)geteuid());
	CHECK(strcmp(soft_runtime_dir(), expected) == 0);
	CHECK(setenv("DMA_COPY_SOFT_DIR", rig_dir(), 1) == 0);
	CHECK(setenv("DMA_COPY_SOFT_LIMITS", "max_msg_size=99", 1) == 0);
	CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
	CHECK(strcmp(soft_runtime_dir(), rig_dir()) == 0 && soft_limits()->max_msg_size == 99);
}

/* The environment of a child, so that it does not stay. */
static void in_child(void (*run)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		run();
		exit(0);
	}
	int status;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_environment(void)
{
	rig_configure(NULL);
	in_child(test_default_dir);
}

static void test_configure_while_open(void)
{
	struct doca_dev *dev = rig_open_dev(HOST_PCI);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_configure(rig_dir(), "", NULL, 0));
	CHECK_OK(soft_doca_dev_close(dev));
	rig_configure(NULL);
}

/* ---- Devices ---- */

static uint32_t count_devices(const char *side)
{
	struct doca_devinfo **list;
	uint32_t count;
	CHECK(setenv("DMA_COPY_SOFT_SIDE", side, 1) == 0);
	CHECK_OK(soft_doca_devinfo_create_list(&list, &count));
	for (uint32_t i = 0; i < count; i++) {
		char addr[DOCA_DEVINFO_PCI_ADDR_SIZE], name[DOCA_DEVINFO_IBDEV_NAME_SIZE], iface[256];
		uint8_t host, dpu;
		CHECK_OK(soft_doca_devinfo_get_pci_addr_str(list[i], addr));
		CHECK_OK(soft_doca_devinfo_get_ibdev_name(list[i], name, sizeof(name)));
		CHECK_OK(soft_doca_devinfo_get_iface_name(list[i], iface, sizeof(iface)));
		CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_get_ibdev_name(list[i], name, 63));
		CHECK_OK(soft_doca_mmap_cap_is_export_pci_supported(list[i], &host));
		CHECK_OK(soft_doca_mmap_cap_is_create_from_export_pci_supported(list[i], &dpu));
		CHECK(host + dpu == 1 && host == (strncmp(addr, "0000:b1", 7) == 0));
	}
	CHECK_OK(soft_doca_devinfo_destroy_list(list));
	return count;
}

static void test_sides(void)
{
	CHECK(count_devices("all") == 4 && count_devices("") == 4);
	CHECK(count_devices("host") == 2 && count_devices("dpu") == 2);
	struct doca_devinfo **list;
	uint32_t count;
	CHECK(setenv("DMA_COPY_SOFT_SIDE", "both", 1) == 0);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_create_list(&list, &count));
	CHECK(unsetenv("DMA_COPY_SOFT_SIDE") == 0);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_create_list(NULL, &count));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_destroy_list(NULL));
}

static void test_pci_addr(void)
{
	static const struct {
		const char *text;
		int equal; /* -1: refused */
	} cases[] = {
		{"0000:b1:00.0", 1},
		{"b1:00.0", 1},
		{"B1:00.0", 1},
		{"0000:B1:00.0", 1},
		{"b1:00.1", 0},
		{"0001:b1:00.0", 0},
		{"", -1},
		{"b1:00", -1},
		{"b1:00.8", -1},
		{"b1:20.0", -1},
		{"b1-00.0", -1},
		{"0000:b1:00.00", -1},
		{"g1:00.0", -1},
		{" b1:00.0", -1},
		{"00000b1:00.0", -1},
	};
	struct doca_dev *dev = rig_open_dev("B1:00.0");
	struct doca_devinfo *info = soft_doca_dev_as_devinfo(dev);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t equal = 2;
		doca_error_t result = soft_doca_devinfo_is_equal_pci_addr(info, cases[i].text, &equal);
		CHECK((result == DOCA_SUCCESS ? equal : -1) == cases[i].equal);
		CHECK(result == DOCA_SUCCESS || equal == 2);
	}
	CHECK_OK(soft_doca_dev_close(dev));
}

static void test_open_and_close(void)
{
	struct doca_dev *dev = rig_open_dev(HOST_PCI);
	CHECK(rig_open_dev(HOST_PCI) == dev);
	struct doca_mmap *mmap;
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, dev));
	CHECK_OK(soft_doca_dev_close(dev));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(dev));
	CHECK_OK(soft_doca_mmap_rm_dev(mmap, dev));
	CHECK_OK(soft_doca_dev_close(dev));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dev_close(dev));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dev_close(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dev_rep_close(NULL));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK(soft_doca_dev_as_devinfo(NULL) == NULL && soft_doca_dev_rep_as_devinfo(NULL) == NULL);
}

static void test_representors(void)
{
	struct doca_dev *host = rig_open_dev(HOST_PCI), *dpu = rig_open_dev(DPU_PCI);
	struct doca_devinfo_rep **list;
	uint32_t count;
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_devinfo_rep_create_list(host, 0, &list, &count));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_rep_create_list(dpu, 1, &list, &count));
	CHECK_OK(soft_doca_devinfo_rep_create_list(dpu, DOCA_DEVINFO_REP_FILTER_EMULATED, &list, &count));
	CHECK(count == 0);
	CHECK_OK(soft_doca_devinfo_rep_destroy_list(list));
	CHECK_OK(soft_doca_devinfo_rep_create_list(dpu, DOCA_DEVINFO_REP_FILTER_NET, &list, &count));
	CHECK(count == 2);
	struct doca_dev_rep *rep;
	CHECK_OK(soft_doca_dev_rep_open(list[1], &rep));
	CHECK(soft_doca_dev_rep_as_devinfo(rep) == list[1]);
	uint8_t equal;
	char vuid[DOCA_DEVINFO_REP_VUID_SIZE], addr[DOCA_DEVINFO_REP_PCI_ADDR_SIZE];
	CHECK_OK(soft_doca_devinfo_rep_is_equal_pci_addr(list[1], "b1:00.1", &equal));
	CHECK_OK(soft_doca_devinfo_rep_get_vuid(list[1], vuid, sizeof(vuid)));
	CHECK_OK(soft_doca_devinfo_rep_get_pci_addr_str(list[1], addr));
	CHECK(equal == 1 && strcmp(addr, "0000:b1:00.1") == 0 && vuid[0] != '\0');
	CHECK_OK(soft_doca_devinfo_rep_destroy_list(list));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(dpu));
	CHECK_OK(soft_doca_dev_rep_close(rep));
	CHECK_OK(soft_doca_dev_close(dpu));
	CHECK_OK(soft_doca_dev_close(host));
}

static void test_names_of_results(void)
{
	CHECK(strcmp(soft_doca_error_get_name(DOCA_SUCCESS), "DOCA_SUCCESS") == 0);
	CHECK(strcmp(soft_doca_error_get_name(DOCA_ERROR_AGAIN), "DOCA_ERROR_AGAIN") == 0);
	for (int code = -1; code <= DOCA_ERROR_SKIPPED + 1; code++) {
		CHECK(soft_doca_error_get_name((doca_error_t)code)[0] != '\0');
		CHECK(soft_doca_error_get_descr((doca_error_t)code)[0] != '\0');
	}
}

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
	struct doca_dev *dev = rig_open_dev(HOST_PCI);
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
	struct doca_dev *host = rig_open_dev(HOST_PCI), *dpu = rig_open_dev(DPU_PCI), *other = rig_open_dev("b1:00.1");
	const void *desc, *again;
	size_t len, len_again;
	struct doca_mmap *mmap = rig_mmap(host, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_export_pci(mmap, host, &desc, &len));
	CHECK_OK(soft_doca_mmap_stop(mmap));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, dpu));
	CHECK_OK(soft_doca_mmap_set_permissions(mmap, PCI_READ));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_export_pci(mmap, host, &desc, &len));
	CHECK_OK(soft_doca_mmap_start(mmap));
	CHECK_RESULT(DOCA_ERROR_NOT_FOUND, soft_doca_mmap_export_pci(mmap, other, &desc, &len));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_mmap_export_pci(mmap, dpu, &desc, &len));
	CHECK_OK(soft_doca_mmap_export_pci(mmap, host, &desc, &len));
	CHECK_OK(soft_doca_mmap_export_pci(mmap, host, &again, &len_again));
	CHECK(desc == again && len == len_again && len == 256);
	uint8_t exported;
	CHECK_OK(soft_doca_mmap_get_exported(mmap, &exported));
	CHECK(exported == 1 && rig_count_files("mem.") == 1);
	CHECK_OK(soft_doca_mmap_stop(mmap));
	CHECK_OK(soft_doca_mmap_get_exported(mmap, &exported));
	CHECK(exported == 0 && rig_count_files("mem.") == 0);
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_dev_close(other));
	CHECK_OK(soft_doca_dev_close(dpu));
	CHECK_OK(soft_doca_dev_close(host));
}

static void test_pinning(void)
{
	rig_configure("pin_files=0");
	FILE *file = tmpfile();
	CHECK(file != NULL && ftruncate(fileno(file), 4096) == 0);
	void *mapped = memory_map_file(fileno(file), 4096, true);
	CHECK(mapped != NULL);
	struct doca_dev *dev = rig_open_dev(HOST_PCI);
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
	rig_configure(NULL);
}

/* ---- Buffers ---- */

struct bufs {
	struct doca_dev *dev;
	struct doca_mmap *mmap;
	struct doca_buf_inventory *inventory;
};

static struct bufs bufs_open(size_t num_elements)
{
	struct bufs b = {.dev = rig_open_dev(HOST_PCI)};
	b.mmap = rig_mmap(b.dev, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
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
	struct doca_buf *buf = rig_buf(b.inventory, b.mmap, memory, 8, 0);
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
		buf[i] = rig_buf(b.inventory, b.mmap, memory + 8 * i, 8, 4);
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
	CHECK_OK(soft_doca_buf_dec_refcount(buf[1], NULL)); /* and with it the two behind it */
	bufs_close(&b);
}

int main(void)
{
	rig_configure(NULL);
	RUN(test_limits);
	RUN(test_runtime_dir);
	RUN(test_environment);
	RUN(test_configure_while_open);
	RUN(test_sides);
	RUN(test_pci_addr);
	RUN(test_open_and_close);
	RUN(test_representors);
	RUN(test_names_of_results);
	RUN(test_permissions);
	RUN(test_mmap_states);
	RUN(test_free_cb_of_unstarted);
	RUN(test_export_rules);
	RUN(test_pinning);
	RUN(test_buf_ranges);
	RUN(test_refcounts);
	RUN(test_lists);
	return 0;
}
