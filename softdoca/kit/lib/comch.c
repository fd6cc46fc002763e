/* SPDX-License-Identifier: Apache-2.0 */
/* The exports of libdoca_comch: all of them are in the list. */
#include "doca_comch.h"
#include "doca_comch_consumer.h"
#include "doca_comch_msgq.h"
#include "doca_comch_producer.h"

#define EXPORT_COMMON(...)
#define EXPORT_DMA(...)
#define EXPORT_COMCH(...) __VA_ARGS__
#include "exports.h"

#define EXPORT_DPA(...)
#include "dpa_exports.h"
