/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Sockets in the runtime directory whose names other processes create and remove meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../device/socket.h"
#include "fixture.h"

#define NAME "comch.socket_test"

static bool remove_first;

/* Replaces the C library's. A listener removes its name just before another process looks at it. */
int openat(int dir, const char *name, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	int mode = (flags & O_CREAT) != 0 ? va_arg(args, int) : 0;
	va_end(args);
	if (remove_first && (flags & O_PATH) != 0 && strcmp(name, NAME) == 0)
		soft_socket_unlink(NAME);
	return (int)syscall(SYS_openat, dir, name, flags, mode);
}

/* The second listener finds the name in use, and gone when it looks whether the first still lives. */
static void name_that_vanishes_is_in_use(void)
{
	int first = soft_socket_listen(NAME, 1);
	CHECK(first >= 0);
	remove_first = true;
	CHECK(soft_socket_listen(NAME, 1) == -EADDRINUSE);
	remove_first = false;
	close(first);
	int second = soft_socket_listen(NAME, 1);
	CHECK(second >= 0);
	soft_socket_unlink(NAME);
	close(second);
}

int main(void)
{
	struct fixture fixture;
	fixture_open(&fixture, NULL);
	RUN(name_that_vanishes_is_in_use);
	fixture_close(&fixture);
	return 0;
}
