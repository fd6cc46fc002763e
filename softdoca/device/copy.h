/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that fail where memcpy would raise SIGBUS, because a file mapping shrank. Any thread may call. */
#ifndef DMA_COPY_SOFT_COPY_H
#define DMA_COPY_SOFT_COPY_H

#include "doca_abi.h"

/* Copies within this process. Memory of MEMORY_FILE kind is read and written by pread and pwrite. IO_FAILED. */
doca_error_t soft_copy_local(void *to, const void *from, size_t len);

/* The same where one end is a mapping that cannot shrink. */
doca_error_t soft_copy_from_mapping(void *to, const void *mapped, size_t len);
doca_error_t soft_copy_to_mapping(void *mapped, const void *from, size_t len);

/* Copies len bytes between local memory and [offset, offset + len) of fd, which is never extended. IO_FAILED. */
doca_error_t soft_copy_from_fd(int fd, uint64_t offset, void *to, size_t len);
doca_error_t soft_copy_to_fd(int fd, uint64_t offset, const void *from, size_t len);

#endif
