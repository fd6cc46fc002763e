/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a device, what it does not support, and the later additions to buffers and memory maps. */
#include <string.h>

#include "../device/dev.h"
#include "setup.h"

static struct doca_dev *dev;

static void addresses(void)
{
	uint8_t address[16], flag;
	uint16_t id;
	uint64_t rate;
	const struct doca_devinfo *info = dev->info;
	CHECK_RESULT(DOCA_ERROR_NOT_FOUND, soft_doca_devinfo_get_ipv4_addr(info, address, 4));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_get_ipv4_addr(info, address, 3));
	CHECK_OK(soft_doca_devinfo_get_ipv6_addr(info, address, 16));
	CHECK(address[0] == 0xfe && address[1] == 0x80);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_get_ipv6_addr(info, address, 15));
	CHECK_OK(soft_doca_devinfo_get_mac_addr(info, address, 6));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_get_mac_addr(NULL, address, 6));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_devinfo_get_lid(info, &id));
	CHECK_OK(soft_doca_devinfo_get_active_rate(info, &rate));
	CHECK(rate == 200000000000U);
	CHECK_OK(soft_doca_devinfo_get_vhca_id(info, &id));
	CHECK(id == 2);
	CHECK_OK(soft_doca_devinfo_cap_is_hotplug_manager_supported(info, &flag));
	CHECK(flag == 0);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_rep_cap_is_filter_emulated_supported(info, NULL));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_dev_accelerate_resource_reclaim(dev));
}

static void representors(void)
{
	struct doca_devinfo_rep **list;
	uint32_t n;
	char name[256];
	uint16_t id;
	uint8_t flag;
	CHECK_OK(soft_doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &list, &n));
	CHECK(n == 2);
	CHECK_OK(soft_doca_devinfo_rep_get_iface_name(list[1], name, sizeof(name)));
	CHECK(strcmp(name, "pf1hpf") == 0);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_rep_get_iface_name(list[1], name, 255));
	CHECK_OK(soft_doca_devinfo_rep_get_vhca_id(list[1], &id));
	CHECK_OK(soft_doca_devinfo_rep_get_is_hotplug(list[1], &flag));
	CHECK(id == 1 && flag == 0);
	CHECK_OK(soft_doca_devinfo_rep_destroy_list(list));
}

static void what_is_not_supported(void)
{
	struct engine engine;
	struct doca_mmap *mmap;
	const void *desc;
	size_t len;
	uint32_t n;
	struct doca_gpu_dma *gpu;
	struct doca_gpu *no_gpu = (struct doca_gpu *)&n;
	engine_open(&engine, DPU_PCI, 1);
	CHECK_OK(soft_doca_mmap_create(&mmap));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_mmap_export_rdma(mmap, dev, &desc, &len));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_export_rdma(mmap, dev, NULL, &len));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_mmap_set_dmabuf_memrange(mmap, 0, NULL, 0, 1));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	struct doca_ctx *ctx = soft_doca_dma_as_ctx(engine.dma);
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_ctx_set_datapath_on_gpu(ctx, no_gpu));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_ctx_set_completion_vector(ctx, 0));
	CHECK_OK(soft_doca_ctx_stop(ctx));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_ctx_set_datapath_on_gpu(ctx, no_gpu));
	CHECK_OK(soft_doca_ctx_set_completion_vector(ctx, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_ctx_set_completion_vector(ctx, 1));
	CHECK_OK(soft_doca_ctx_cap_get_num_completion_vectors(dev->info, &n));
	CHECK(n == 1);
	CHECK_OK(soft_doca_ctx_start(ctx));
	soft_doca_ctx_flush_tasks(ctx);
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED,
		     soft_doca_pe_set_notification_handle(engine.pe, 0, (union doca_data){.u64 = 0}));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_dma_get_gpu_handle(engine.dma, &gpu));
	engine_close(&engine);
}

static void inventories_expand(void)
{
	static uint8_t memory[64];
	struct doca_buf_inventory *inventory;
	struct doca_buf *bufs[4];
	uint32_t n;
	struct doca_mmap *mmap = setup_mmap(dev, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	CHECK_OK(soft_doca_buf_inventory_create(1, &inventory));
	CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_buf_inventory_expand(inventory, 3));
	CHECK_OK(soft_doca_buf_inventory_start(inventory));
	bufs[0] = setup_buf(inventory, mmap, memory, 8, 0);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_inventory_expand(inventory, 0));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_inventory_expand(inventory, UINT32_MAX));
	CHECK_OK(soft_doca_buf_inventory_expand(inventory, 3));
	CHECK_OK(soft_doca_buf_inventory_get_num_free_elements(inventory, &n));
	CHECK(n == 3);
	for (unsigned i = 1; i < 4; i++)
		bufs[i] = setup_buf(inventory, mmap, memory + 8 * i, 8, 0);
	CHECK_OK(soft_doca_buf_chain_list_tail(bufs[0], bufs[0], bufs[1]));
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_buf_chain_list_tail(bufs[0], bufs[0], bufs[2]));
	CHECK_OK(soft_doca_buf_chain_list_tail(bufs[0], bufs[1], bufs[2]));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_buf_chain_list_tail(bufs[0], NULL, bufs[3]));
	CHECK_OK(soft_doca_buf_get_list_len(bufs[0], &n));
	CHECK(n == 3);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_doca_buf_inventory_destroy(inventory));
	CHECK_OK(soft_doca_buf_dec_refcount(bufs[0], NULL));
	CHECK_OK(soft_doca_buf_dec_refcount(bufs[3], NULL));
	CHECK_OK(soft_doca_buf_inventory_destroy(inventory));
	CHECK_OK(soft_doca_mmap_destroy(mmap));
}

/* Its buffers are not counted, and may outlive it. */
static void a_thread_safe_map(void)
{
	static uint8_t memory[64];
	struct doca_buf_inventory *inventory;
	struct doca_mmap *mmap = setup_mmap(dev, memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	uint32_t n;
	CHECK_RESULT(DOCA_ERROR_NOT_PERMITTED, soft_doca_mmap_enable_thread_safety(mmap));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_mmap_enable_thread_safety(NULL));
	CHECK_OK(soft_doca_mmap_stop(mmap));
	CHECK_OK(soft_doca_mmap_enable_thread_safety(mmap));
	CHECK_OK(soft_doca_mmap_start(mmap));
	CHECK_OK(soft_doca_buf_inventory_create(1, &inventory));
	CHECK_OK(soft_doca_buf_inventory_start(inventory));
	struct doca_buf *buf = setup_buf(inventory, mmap, memory, 8, 0);
	CHECK_OK(soft_doca_mmap_get_num_bufs(mmap, &n));
	CHECK(n == 0);
	CHECK_OK(soft_doca_mmap_destroy(mmap));
	CHECK_OK(soft_doca_buf_dec_refcount(buf, NULL));
	CHECK_OK(soft_doca_buf_inventory_destroy(inventory));
}

int main(void)
{
	setup_configure(NULL);
	dev = setup_open_dev(DPU_PCI);
	RUN(addresses);
	RUN(representors);
	RUN(what_is_not_supported);
	RUN(inventories_expand);
	RUN(a_thread_safe_map);
	CHECK_OK(soft_doca_dev_close(dev));
	return 0;
}
