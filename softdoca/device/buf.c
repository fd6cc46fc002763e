/* SPDX-License-Identifier: Apache-2.0 */
#include "buf.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "dev.h"
#include "mmap.h"
#include "soft.h"

struct block {
	struct block *next;
	struct doca_buf elements[];
};

/*
 * A free element has refcount 0 and is on the free list. Blocks never move, because buffers are identified by address.
 */
struct doca_buf_inventory {
	bool started, was_started;
	union doca_data user_data;
	uint32_t num_elements, num_free;
	struct doca_buf *free;
	struct block *blocks;
};

static bool is_head(const struct doca_buf *buf)
{
	return buf->first == buf;
}

/* ---- Inventory ---- */

static bool add_block(struct doca_buf_inventory *inventory, size_t num_elements)
{
	struct block *block = calloc(1, sizeof(*block) + num_elements * sizeof(struct doca_buf));
	if (block == NULL)
		return false;
	block->next = inventory->blocks;
	inventory->blocks = block;
	for (size_t i = num_elements; i-- > 0;) {
		block->elements[i].inventory = inventory;
		block->elements[i].next = inventory->free;
		inventory->free = &block->elements[i];
	}
	inventory->num_elements += (uint32_t)num_elements;
	inventory->num_free += (uint32_t)num_elements;
	return true;
}

doca_error_t soft_doca_buf_inventory_create(size_t num_elements, struct doca_buf_inventory **inventory)
{
	if (num_elements == 0 || num_elements > UINT32_MAX || inventory == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_buf_inventory *created = calloc(1, sizeof(*created));
	if (created == NULL)
		return DOCA_ERROR_NO_MEMORY;
	if (!add_block(created, num_elements)) {
		free(created);
		return DOCA_ERROR_NO_MEMORY;
	}
	*inventory = created;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_inventory_expand(struct doca_buf_inventory *inventory, uint32_t num_elements)
{
	if (inventory == NULL || num_elements == 0 || num_elements > UINT32_MAX - inventory->num_elements)
		return DOCA_ERROR_INVALID_VALUE;
	if (!inventory->started)
		return DOCA_ERROR_BAD_STATE;
	return add_block(inventory, num_elements) ? DOCA_SUCCESS : DOCA_ERROR_NO_MEMORY;
}

doca_error_t soft_doca_buf_inventory_destroy(struct doca_buf_inventory *inventory)
{
	if (inventory == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (inventory->num_free < inventory->num_elements)
		return DOCA_ERROR_IN_USE;
	for (struct block *block = inventory->blocks, *next; block != NULL; block = next) {
		next = block->next;
		free(block);
	}
	free(inventory);
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_inventory_start(struct doca_buf_inventory *inventory)
{
	if (inventory == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	inventory->started = inventory->was_started = true;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_inventory_stop(struct doca_buf_inventory *inventory)
{
	if (inventory == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	inventory->started = false;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_inventory_set_user_data(struct doca_buf_inventory *inventory, union doca_data user_data)
{
	if (inventory == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (inventory->was_started)
		return DOCA_ERROR_BAD_STATE;
	inventory->user_data = user_data;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_inventory_get_user_data(const struct doca_buf_inventory *inventory,
						   union doca_data *user_data)
{
	if (inventory == NULL || user_data == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = inventory->user_data;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_inventory_get_num_elements(const struct doca_buf_inventory *inventory,
						      uint32_t *num_of_elements)
{
	if (inventory == NULL || num_of_elements == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*num_of_elements = inventory->num_elements;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_inventory_get_num_free_elements(const struct doca_buf_inventory *inventory,
							   uint32_t *num_of_free_elements)
{
	if (inventory == NULL || num_of_free_elements == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*num_of_free_elements = inventory->num_free;
	return DOCA_SUCCESS;
}

/* ---- Taking elements and giving them back ---- */

static struct doca_buf *take_element(struct doca_buf_inventory *inventory)
{
	struct doca_buf *buf = inventory->free;
	if (buf == NULL)
		return NULL;
	inventory->free = buf->next;
	inventory->num_free--;
	buf->refcount = 1;
	buf->next = NULL;
	buf->first = buf->last = buf;
	return buf;
}

/* An uncounted buffer may outlive its memory map, so it records that it is not counted. */
static void count(struct doca_buf *buf, struct doca_mmap *mmap)
{
	buf->counted = !mmap->thread_safe;
	if (buf->counted)
		atomic_fetch_add(&mmap->bufs, 1);
}

static void return_element(struct doca_buf *buf)
{
	struct doca_buf_inventory *inventory = buf->inventory;
	if (buf->counted)
		atomic_fetch_sub(&buf->mmap->bufs, 1);
	buf->refcount = 0;
	buf->first = buf->last = NULL;
	buf->next = inventory->free;
	inventory->free = buf;
	inventory->num_free++;
}

static void return_chain(struct doca_buf *head)
{
	while (head != NULL) {
		struct doca_buf *next = head->next;
		return_element(head);
		head = next;
	}
}

static bool lies_within(uintptr_t addr, size_t len, uintptr_t outer, size_t outer_len)
{
	return addr >= outer && addr - outer <= outer_len && len <= outer_len - (addr - outer);
}

static doca_error_t check_range(const struct doca_mmap *mmap, void *addr, size_t len, void *data, size_t data_len)
{
	if (len == 0 || !mmap->has_range || !lies_within((uintptr_t)addr, len, (uintptr_t)mmap->addr, mmap->len) ||
	    !lies_within((uintptr_t)data, data_len, (uintptr_t)addr, len))
		return DOCA_ERROR_INVALID_VALUE;
	return mmap->started || mmap->import != NULL ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t soft_doca_buf_inventory_buf_get_by_args(struct doca_buf_inventory *inventory, struct doca_mmap *mmap,
						     void *addr, size_t len, void *data, size_t data_len,
						     struct doca_buf **buf)
{
	if (inventory == NULL || mmap == NULL || addr == NULL || data == NULL || buf == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!inventory->started)
		return DOCA_ERROR_BAD_STATE;
	doca_error_t result = check_range(mmap, addr, len, data, data_len);
	if (result != DOCA_SUCCESS)
		return result;
	struct doca_buf *taken = take_element(inventory);
	if (taken == NULL)
		return DOCA_ERROR_NO_MEMORY;
	count(taken, mmap);
	taken->mmap = mmap;
	taken->head = addr;
	taken->len = len;
	taken->data = data;
	taken->data_len = data_len;
	*buf = taken;
	return DOCA_SUCCESS;
}

static void copy_element(struct doca_buf *to, const struct doca_buf *from)
{
	count(to, from->mmap);
	to->mmap = from->mmap;
	to->head = from->head;
	to->len = from->len;
	to->data = from->data;
	to->data_len = from->data_len;
}

static void append(struct doca_buf *list, struct doca_buf *tail_list)
{
	list->last->next = tail_list;
	list->last = tail_list->last;
	for (struct doca_buf *buf = tail_list; buf != NULL; buf = buf->next)
		buf->first = list;
}

static uint32_t chain_len(const struct doca_buf *buf)
{
	uint32_t len = 0;
	for (; buf != NULL; buf = buf->next)
		len++;
	return len;
}

/* Duplicates a whole list. */
doca_error_t soft_doca_buf_inventory_buf_dup(struct doca_buf_inventory *inventory, const struct doca_buf *src_buf,
					     struct doca_buf **dst_buf)
{
	if (inventory == NULL || src_buf == NULL || dst_buf == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!inventory->started || src_buf->refcount == 0)
		return DOCA_ERROR_BAD_STATE;
	if (!is_head(src_buf))
		return DOCA_ERROR_NOT_PERMITTED;
	if (chain_len(src_buf) > inventory->num_free)
		return DOCA_ERROR_NO_MEMORY;
	struct doca_buf *head = NULL;
	for (; src_buf != NULL; src_buf = src_buf->next) {
		struct doca_buf *copy = take_element(inventory);
		copy_element(copy, src_buf);
		if (head == NULL)
			head = copy;
		else
			append(head, copy);
	}
	*dst_buf = head;
	return DOCA_SUCCESS;
}

/* ---- Reference counts ---- */

static doca_error_t counted(const struct doca_buf *buf)
{
	if (buf == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (buf->refcount == 0)
		return DOCA_ERROR_BAD_STATE;
	return is_head(buf) ? DOCA_SUCCESS : DOCA_ERROR_NOT_PERMITTED;
}

/* Both return the count before the change. */
doca_error_t soft_doca_buf_inc_refcount(struct doca_buf *buf, uint16_t *refcount)
{
	doca_error_t result = counted(buf);
	if (result != DOCA_SUCCESS)
		return result;
	if (buf->refcount == UINT16_MAX)
		return DOCA_ERROR_TOO_BIG;
	if (refcount != NULL)
		*refcount = buf->refcount;
	buf->refcount++;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_dec_refcount(struct doca_buf *buf, uint16_t *refcount)
{
	doca_error_t result = counted(buf);
	if (result != DOCA_SUCCESS)
		return result;
	if (refcount != NULL)
		*refcount = buf->refcount;
	if (--buf->refcount == 0)
		return_chain(buf);
	return DOCA_SUCCESS;
}

/* ---- Getters and setters: DOCA leaves NULL undefined here, we refuse it ---- */

#define DEFINE_GETTER(function, type, parameter, value)                           \
	doca_error_t soft_##function(const struct doca_buf *buf, type *parameter) \
	{                                                                         \
		if (buf == NULL || parameter == NULL)                             \
			return DOCA_ERROR_INVALID_VALUE;                          \
		*parameter = (value);                                             \
		return DOCA_SUCCESS;                                              \
	}

DEFINE_GETTER(doca_buf_get_refcount, uint16_t, refcount, buf->refcount)
DEFINE_GETTER(doca_buf_get_len, size_t, len, buf->len)
DEFINE_GETTER(doca_buf_get_head, void *, head, buf->head)
DEFINE_GETTER(doca_buf_get_data_len, size_t, data_len, buf->data_len)
DEFINE_GETTER(doca_buf_get_data, void *, data, buf->data)
DEFINE_GETTER(doca_buf_is_last_in_list, uint8_t, is_last, buf->next == NULL)
DEFINE_GETTER(doca_buf_is_first_in_list, uint8_t, is_first, is_head(buf))
DEFINE_GETTER(doca_buf_is_in_list, uint8_t, is_in_list, !is_head(buf) || buf->next != NULL)

/* Not checked, as in DOCA: an invalid segment fails when the task runs. */
doca_error_t soft_doca_buf_set_data(struct doca_buf *buf, void *data, size_t data_len)
{
	if (buf == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	buf->data = data;
	buf->data_len = data_len;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_set_data_len(struct doca_buf *buf, size_t data_len)
{
	if (buf == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	buf->data_len = data_len;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_reset_data_len(struct doca_buf *buf)
{
	return soft_doca_buf_set_data_len(buf, 0);
}

/* ---- Lists ---- */

doca_error_t soft_doca_buf_get_next_in_list(struct doca_buf *buf, struct doca_buf **next_buf)
{
	if (buf == NULL || next_buf == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	*next_buf = buf->next;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_get_last_in_list(struct doca_buf *buf, struct doca_buf **last_buf)
{
	if (buf == NULL || last_buf == NULL || buf->refcount == 0)
		return DOCA_ERROR_INVALID_VALUE;
	*last_buf = buf->first->last;
	return DOCA_SUCCESS;
}

doca_error_t soft_doca_buf_get_list_len(const struct doca_buf *buf, uint32_t *num_elements)
{
	if (buf == NULL || num_elements == NULL || buf->refcount == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (!is_head(buf))
		return DOCA_ERROR_NOT_PERMITTED;
	*num_elements = chain_len(buf);
	return DOCA_SUCCESS;
}

/* list2 passes its own reference to list1, so it may have no other. */
doca_error_t soft_doca_buf_chain_list(struct doca_buf *list1, struct doca_buf *list2)
{
	if (list1 == NULL || list2 == NULL || list1->refcount == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (!is_head(list1) || !is_head(list2) || list1 == list2 || list2->refcount != 1)
		return DOCA_ERROR_NOT_PERMITTED;
	append(list1, list2);
	return DOCA_SUCCESS;
}

/* DOCA trusts the caller's tail to save the walk; a wrong one would corrupt the list, so it is checked. */
doca_error_t soft_doca_buf_chain_list_tail(struct doca_buf *list1_head, struct doca_buf *list1_tail,
					   struct doca_buf *list2)
{
	if (list1_head == NULL || list1_tail == NULL || list2 == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	if (!is_head(list1_head) || list1_head->last != list1_tail)
		return DOCA_ERROR_NOT_PERMITTED;
	return soft_doca_buf_chain_list(list1_head, list2);
}

static struct doca_buf *find_predecessor(struct doca_buf *list, const struct doca_buf *member)
{
	while (list != NULL && list->next != member)
		list = list->next;
	return list;
}

doca_error_t soft_doca_buf_unchain_list(struct doca_buf *list1, struct doca_buf *list2)
{
	if (list1 == NULL || list2 == NULL || list1->refcount == 0 || !is_head(list1) || list2->first != list1)
		return DOCA_ERROR_INVALID_VALUE;
	struct doca_buf *before = find_predecessor(list1, list2);
	if (before == NULL)
		return DOCA_ERROR_INVALID_VALUE;
	list2->last = list1->last;
	list1->last = before;
	before->next = NULL;
	for (struct doca_buf *buf = list2; buf != NULL; buf = buf->next)
		buf->first = list2;
	list2->refcount = 1;
	return DOCA_SUCCESS;
}

/* ---- for tasks ---- */

static size_t offset_of_data(const struct doca_buf *buf)
{
	return (uintptr_t)buf->data - (uintptr_t)buf->head;
}

/* doca_buf_set_data checks nothing, so the data segment may be anywhere. */
static bool data_in_buf(const struct doca_buf *buf)
{
	size_t offset = offset_of_data(buf);
	return offset <= buf->len && buf->data_len <= buf->len - offset;
}

/* An import belongs to one function of its side, but all functions reach the same engine. */
static bool reachable(const struct doca_mmap *mmap, const struct doca_dev *dev)
{
	if (mmap->import != NULL)
		return dev->info->side == mmap->devs[0]->info->side;
	return mmap->started && soft_mmap_has_dev(mmap, dev);
}

const char *soft_buf_usage_error(const struct doca_buf *buf, const struct doca_dev *dev)
{
	if (buf->refcount == 0)
		return "a buffer was given back to its inventory";
	if (!data_in_buf(buf))
		return "a data segment lies outside its buffer";
	if (!reachable(buf->mmap, dev))
		return "a buffer's memory map is not started, or not registered with this device";
	return NULL;
}

size_t soft_buf_tailroom(const struct doca_buf *buf)
{
	return buf->len - offset_of_data(buf) - buf->data_len;
}
