/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between msgq_ping's code for the CPU and for the DPA. */
#ifndef EXAMPLES_MSGQ_PING_H
#define EXAMPLES_MSGQ_PING_H

#include <stdint.h>

/* As long as immediate data can be. */
struct ping {
	uint32_t number;
	char text[28]; /* with a zero at its end */
};

#endif
