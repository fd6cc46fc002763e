/* SPDX-License-Identifier: Apache-2.0 */
#include "streams.h"

#include <errno.h>
#include <fcntl.h>

static bool closed_at_start[3];

/* Go's runtime opens /dev/null instead of a standard stream that is closed. Constructors run before it. */
__attribute__((constructor)) static void look_at_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		closed_at_start[fd] = fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

bool streams_closed_at_start(int fd)
{
	return fd >= 0 && fd < 3 && closed_at_start[fd];
}
