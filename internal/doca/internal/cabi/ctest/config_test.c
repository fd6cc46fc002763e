/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, the runtime directory, and when they can be set. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../soft_core.h"
#include "rig.h"

static void refuse_limits(const char *limits, const char *named)
{
	char error[256] = "";
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_configure(rig_dir(), limits, error, sizeof(error)));
	CHECK(strstr(error, named) != NULL);
	CHECK(soft_limits()->max_msg_size == 1000);
}

static void test_limits(void)
{
	rig_configure("");
	CHECK(soft_limits()->max_buf_size == 2097152 && soft_limits()->max_msg_size == 4080);
	rig_configure("max_msg_size=1000,task_latency_us=0,pin_files=0");
	CHECK(soft_limits()->max_msg_size == 1000 && soft_limits()->pin_files == 0);
	CHECK(soft_limits()->max_buf_size == 2097152);
	refuse_limits("max_msg=1", "max_msg");
	refuse_limits("max_buf_size", "max_buf_size");
	refuse_limits("max_buf_size=", "max_buf_size");
	refuse_limits("max_buf_size=0", "max_buf_size");
	refuse_limits("max_buf_size=-1", "-1");
	refuse_limits("max_buf_size=1k", "1k");
	refuse_limits("max_buf_size=18446744073709551616", "max_buf_size");
	refuse_limits("pin_files=2", "pin_files");
	refuse_limits("max_buf_size=1,", "\"\"");
	refuse_limits("max_buf_size=1,,pin_files=1", "\"\"");
}

static void refuse_dir(const char *dir)
{
	char error[600] = "";
	CHECK_RESULT(DOCA_ERROR_OPERATING_SYSTEM, soft_configure(dir, "", error, sizeof(error)));
	CHECK(strstr(error, dir) != NULL);
	CHECK(strcmp(soft_runtime_dir(), rig_dir()) == 0);
}

static void test_runtime_dir(void)
{
	char path[300], deeper[320];
	rig_configure(NULL);
	snprintf(path, sizeof(path), "%s/sub", rig_dir());
	snprintf(deeper, sizeof(deeper), "%s/sub", path);
	refuse_dir(deeper); /* parents are not made */
	CHECK_OK(soft_configure(path, "", NULL, 0));
	CHECK(strcmp(soft_runtime_dir(), path) == 0 && soft_runtime_dirfd() >= 0);
	struct stat st;
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700);
	rig_configure(NULL);
	CHECK(chmod(path, 0770) == 0);
	refuse_dir(path);
	CHECK(chmod(path, 0702) == 0);
	refuse_dir(path);
	rig_remove(path);
	if (geteuid() == 0) {
		CHECK(mkdir(path, 0700) == 0 && chown(path, 12345, 0) == 0);
		refuse_dir(path);
		CHECK(rmdir(path) == 0);
	}
	int fd = soft_runtime_dirfd();
	rig_configure("max_msg_size=1000");
	CHECK(soft_runtime_dirfd() == fd);
}

static void test_default_dir(void)
{
	char expected[600];
	CHECK(setenv("XDG_RUNTIME_DIR", rig_dir(), 1) == 0);
	CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
	snprintf(expected, sizeof(expected), "%s/dma-copy", rig_dir());
	CHECK(strcmp(soft_runtime_dir(), expected) == 0);
	CHECK(setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1) == 0 && setenv("TMPDIR", rig_dir(), 1) == 0);
	CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
	snprintf(expected, sizeof(expected), "%s/dma-copy-%u", rig_dir(), (unsigned)geteuid());
	CHECK(strcmp(soft_runtime_dir(), expected) == 0);
	CHECK(setenv("DMA_COPY_SOFT_DIR", rig_dir(), 1) == 0);
	CHECK(setenv("DMA_COPY_SOFT_LIMITS", "max_msg_size=99", 1) == 0);
	CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
	CHECK(strcmp(soft_runtime_dir(), rig_dir()) == 0 && soft_limits()->max_msg_size == 99);
}

/* The environment of a child, so that it does not stay. */
static void in_child(void (*run)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		run();
		exit(0);
	}
	int status;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_environment(void)
{
	rig_configure(NULL);
	in_child(test_default_dir);
}

static void test_configure_while_open(void)
{
	struct doca_dev *dev = rig_open_dev(HOST_PCI);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_configure(rig_dir(), "", NULL, 0));
	CHECK_OK(soft_doca_dev_close(dev));
	rig_configure(NULL);
}

int main(void)
{
	rig_configure(NULL);
	RUN(test_limits);
	RUN(test_runtime_dir);
	RUN(test_environment);
	RUN(test_configure_while_open);
	return 0;
}
