/* SPDX-License-Identifier: Apache-2.0 */
/* A DPA whose code is the test's, for the tests of DPAs and of message queues. */
#ifndef DMA_COPY_DPA_END_H
#define DMA_COPY_DPA_END_H

#include "../dpa/soft_dpa.h"
#include "check.h"
#include "dpa_kit.h"
#include "fixture.h"

/* The test's program for the DPA: each test that includes this file has one, by DPA_KIT_APP(test_app). */
extern struct doca_dpa_app *test_app;

/* Opens both sides' devices, of which the DPU's has the DPA, once for all tests. */
extern struct fixture fixture;

/* A started DPA of the DPU. */
struct doca_dpa *dpa_open(void);
void dpa_close(struct doca_dpa *dpa);

/* As doca_dpa_rpc. */
doca_error_t dpa_call(struct doca_dpa *dpa, doca_dpa_func_t *func, uint64_t *retval, ...);

/* Runs body(arg) on the DPA, as a remote procedure call, and returns its result. */
uint64_t on_dpa(struct doca_dpa *dpa, uint64_t (*body)(void *arg), void *arg);

/* The function behind on_dpa, which each test registers by DPA_KIT_RPC(run_body, uint64_t, uint64_t). */
uint64_t run_body(uint64_t body, uint64_t arg);

#define FUNC(function) ((doca_dpa_func_t *)(function))

/* A thread that runs kernel(arg), started, not run. */
struct doca_dpa_thread *thread_open(struct doca_dpa *dpa, void (*kernel)(uint64_t arg), uint64_t arg);

/* Checks that kernels have made no error, or one. */
#define CHECK_DPA_OK(dpa) CHECK_OK(soft_doca_dpa_peek_at_last_error(dpa))
#define CHECK_DPA_FAILED(dpa) CHECK_RESULT(DOCA_ERROR_BAD_STATE, soft_doca_dpa_peek_at_last_error(dpa))

#endif
