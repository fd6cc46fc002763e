/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, representors, and the names of results. */
#define _GNU_SOURCE
#include <string.h>

#include "setup.h"

static uint32_t count_devices(const char *side)
{
	struct doca_devinfo **list;
	uint32_t count;
	CHECK(setenv("DMA_COPY_SOFT_SIDE", side, 1) == 0);
	CHECK_OK(soft_doca_devinfo_create_list(&list, &count));
	for (uint32_t i = 0; i < count; i++) {
		char addr[DOCA_DEVINFO_PCI_ADDR_SIZE], name[DOCA_DEVINFO_IBDEV_NAME_SIZE], iface[256];
		uint8_t exports, imports;
		CHECK_OK(soft_doca_devinfo_get_pci_addr_str(list[i], addr));
		CHECK_OK(soft_doca_devinfo_get_ibdev_name(list[i], name, sizeof(name)));
		CHECK_OK(soft_doca_devinfo_get_iface_name(list[i], iface, sizeof(iface)));
		CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_get_ibdev_name(list[i], name, 63));
		CHECK_OK(soft_doca_mmap_cap_is_export_pci_supported(list[i], &exports));
		CHECK_OK(soft_doca_mmap_cap_is_create_from_export_pci_supported(list[i], &imports));
		CHECK(exports == 1 && imports == 1); /* either side may copy */
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
	struct doca_dev *dev = setup_open_dev("B1:00.0");
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
	struct doca_dev *dev = setup_open_dev(HOST_PCI);
	CHECK(setup_open_dev(HOST_PCI) == dev);
	struct doca_mmap *mmap;
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_OK(soft_doca_mmap_add_dev(mmap, dev));
	CHECK_OK(soft_doca_dev_close(dev));
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_dev_close(dev));
	CHECK_OK(soft_doca_mmap_rm_dev(mmap, dev));
	CHECK_OK(soft_doca_dev_close(dev));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dev_close(dev));
	CHECK_OK(soft_doca_dev_close(NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_dev_rep_close(NULL));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK(soft_doca_dev_as_devinfo(NULL) == NULL && soft_doca_dev_rep_as_devinfo(NULL) == NULL);
}

static void test_representors(void)
{
	struct doca_dev *host = setup_open_dev(HOST_PCI), *dpu = setup_open_dev(DPU_PCI);
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

int main(void)
{
	setup_configure(NULL);
	RUN(test_sides);
	RUN(test_pci_addr);
	RUN(test_open_and_close);
	RUN(test_representors);
	RUN(test_names_of_results);
	return 0;
}
