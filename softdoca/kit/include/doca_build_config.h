/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which machine a program is built for. DOCA installs a different file on the host and on the DPU; here one file serves
 * both, and -DDOCA_ARCH_DPU or -DDOCA_ARCH_HOST chooses. The host is the default.
 */
#ifndef DOCA_BUILD_CONFIG_H_
#define DOCA_BUILD_CONFIG_H_

#if defined(DOCA_ARCH_DPU) && defined(DOCA_ARCH_HOST)
#error "a program is built for the host or for the DPU, not for both"
#endif

#if !defined(DOCA_ARCH_DPU) && !defined(DOCA_ARCH_HOST)
#define DOCA_ARCH_HOST
#endif

#if defined(__aarch64__) && !defined(DOCA_ARCH_ARM)
#define DOCA_ARCH_ARM
#elif defined(__x86_64__) && !defined(DOCA_ARCH_X86)
#define DOCA_ARCH_X86
#endif

#endif
