/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: memory of another process that cannot be mapped, as code of a DPA loads and stores it. As on a card, a
 * window is a cache: what the other process writes is seen after a fetch (__dpa_thread_window_read_inv), and what the
 * DPA stores arrives there with a write-back (__dpa_thread_window_writeback). Called with the lock of the DPAs held.
 */
#ifndef DMA_COPY_SOFT_DPA_WINDOW_H
#define DMA_COPY_SOFT_DPA_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_import;
struct soft_window;

/* Returns a window of the exporter's [remote, remote + len), fetched. NULL: no access, too large, or no memory. */
struct soft_window *soft_window_open(struct soft_import *import, uint8_t *remote, size_t len);

/* window may be NULL. */
void soft_window_close(struct soft_window *window);

uint8_t *soft_window_bytes(struct soft_window *window);

/* Fetches what has changed there, but keeps what was stored here. False: no access. *changed is set if anything had. */
bool soft_window_fetch(struct soft_window *window, bool *changed);

/* Writes the 8-byte words back in which anything was stored. False: no access. */
bool soft_window_write_back(struct soft_window *window);

#endif
