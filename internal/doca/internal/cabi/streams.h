/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DMA_COPY_STREAMS_H
#define DMA_COPY_STREAMS_H

#include <stdbool.h>

/* Reports whether descriptor fd (0, 1 or 2) was closed when the process started. Any thread may call. */
bool streams_closed_at_start(int fd);

#endif
