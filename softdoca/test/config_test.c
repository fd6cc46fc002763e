/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, the runtime directory, and when they can be set. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../device/config.h"
#include "../device/socket.h"
#include "setup.h"

static void refuse_limits(const char *limits, const char *named)
{
	char error[256] = "";
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_configure(setup_dir(), limits, error, sizeof(error)));
	CHECK(strstr(error, named) != NULL);
	CHECK(soft_limits()->max_msg_size == 1000);
}

static void test_limits(void)
{
	setup_configure("");
	CHECK(soft_limits()->max_buf_size == 2097152 && soft_limits()->max_msg_size == 4080);
	setup_configure("max_msg_size=1000,task_latency_us=0,pin_files=0");
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
	CHECK(strcmp(soft_runtime_dir(), setup_dir()) == 0);
}

static void test_runtime_dir(void)
{
	char path[300], deeper[320];
	setup_configure(NULL);
	snprintf(path, sizeof(path), "%s/sub", setup_dir());
	snprintf(deeper, sizeof(deeper), "%s/sub", path);
	refuse_dir(deeper); /* parent directories are not created */
	CHECK_OK(soft_configure(path, "", NULL, 0));
	CHECK(strcmp(soft_runtime_dir(), path) == 0 && soft_runtime_dirfd() >= 0);
	struct stat st;
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700);
	setup_configure(NULL);
	CHECK(chmod(path, 0770) == 0);
	refuse_dir(path);
	CHECK(chmod(path, 0702) == 0);
	refuse_dir(path);
	setup_remove(path);
	if (geteuid() == 0) {
		CHECK(mkdir(path, 0700) == 0 && chown(path, 12345, 0) == 0);
		refuse_dir(path);
		CHECK(rmdir(path) == 0);
	}
	int fd = soft_runtime_dirfd();
	setup_configure("max_msg_size=1000");
	CHECK(soft_runtime_dirfd() == fd);
}

static void test_default_dir(void)
{
	char expected[600];
	CHECK(setenv("XDG_RUNTIME_DIR", setup_dir(), 1) == 0);
	CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
	snprintf(expected, sizeof(expected), "%s/dma-copy", setup_dir());
	CHECK(strcmp(soft_runtime_dir(), expected) == 0);
	CHECK(setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1) == 0 && setenv("TMPDIR", setup_dir(), 1) == 0);
	CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
	snprintf(expected, sizeof(expected), "%s/dma-copy-%u", setup_dir(), (unsigned)geteuid());
	CHECK(strcmp(soft_runtime_dir(), expected) == 0);
	if (geteuid() == 0) { /* only root can make a directory of another user */
		char foreign[300];
		snprintf(foreign, sizeof(foreign), "%s/foreign", setup_dir());
		CHECK(mkdir(foreign, 0700) == 0 && chown(foreign, 12345, 0) == 0);
		CHECK(setenv("XDG_RUNTIME_DIR", foreign, 1) == 0);
		CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
		CHECK(strcmp(soft_runtime_dir(), expected) == 0);
		CHECK(rmdir(foreign) == 0);
	}
	CHECK(setenv("DMA_COPY_SOFT_DIR", setup_dir(), 1) == 0);
	CHECK(setenv("DMA_COPY_SOFT_LIMITS", "max_msg_size=99", 1) == 0);
	CHECK_OK(soft_configure(NULL, NULL, NULL, 0));
	CHECK(strcmp(soft_runtime_dir(), setup_dir()) == 0 && soft_limits()->max_msg_size == 99);
}

static void check_mode(const char *name, mode_t mode)
{
	struct stat st;
	CHECK(fstatat(soft_runtime_dirfd(), name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK((st.st_mode & 07777) == mode);
}

/* The umask has no effect, whether it removes all permissions or none. */
static void test_modes(void)
{
	const mode_t umasks[] = {0777, 0};
	char path[300];
	snprintf(path, sizeof(path), "%s/modes", setup_dir());
	for (size_t i = 0; i < 2; i++) {
		mode_t before = umask(umasks[i]);
		CHECK_OK(soft_configure(path, "", NULL, 0));
		int fd = soft_socket_listen("comch.mode", 1);
		umask(before);
		CHECK(fd >= 0);
		check_mode(".", 0700);
		check_mode("lock", 0600);
		check_mode("comch.mode", 0600);
		close(fd);
		setup_configure(NULL);
		setup_remove(path);
	}
}

/* A file of another program, by which the owner of the runtime directory replaces one that was just made. */
static const char *other_file;
static bool replacing;

static void replace(int dirfd, const char *name, int flags)
{
	if (replacing)
		CHECK(unlinkat(dirfd, name, flags) == 0 && symlinkat(other_file, dirfd, name) == 0);
}

int mkdir(const char *path, mode_t mode)
{
	int result = mkdirat(AT_FDCWD, path, mode);
	replace(AT_FDCWD, path, AT_REMOVEDIR);
	return result;
}

/* The directory comes first, as /proc/self/fd/N. */
int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	int result = (int)syscall(SYS_bind, fd, address, len);
	replace(AT_FDCWD, ((const struct sockaddr_un *)address)->sun_path, 0);
	return result;
}

static void check_replaced_file(mode_t mode)
{
	struct stat st;
	CHECK(stat(other_file, &st) == 0 && (st.st_mode & 07777) == mode);
}

static void configure_users(const char *users)
{
	struct soft_settings settings = {.dir = setup_dir(), .limits = "", .users = users};
	CHECK_OK(soft_configure_all(&settings, NULL, 0));
}

static void test_modes_of_other_files(void)
{
	char file[300], dir[300], made[300], lock[300];
	snprintf(file, sizeof(file), "%s/file", setup_dir());
	snprintf(dir, sizeof(dir), "%s/dir", setup_dir());
	snprintf(made, sizeof(made), "%s/made", setup_dir());
	snprintf(lock, sizeof(lock), "%s/lock", setup_dir());
	setup_configure(NULL);
	int fd = creat(file, 0600);
	CHECK(fd >= 0 && close(fd) == 0 && mkdir(dir, 0700) == 0 && chmod(dir, 0500) == 0);
	configure_users("12345");
	replacing = true;
	other_file = file;
	CHECK(soft_socket_listen("comch.mode", 1) < 0);
	check_replaced_file(0600);
	other_file = dir;
	CHECK_RESULT(DOCA_ERROR_OPERATING_SYSTEM, soft_configure(made, "", NULL, 0));
	check_replaced_file(0500);
	replacing = false;

	other_file = file;
	CHECK(unlink(lock) == 0 && link(file, lock) == 0);
	fd = soft_socket_listen("comch.other", 1);
	CHECK(fd >= 0);
	check_replaced_file(0600);
	check_mode("comch.other", 0666);
	close(fd);
	CHECK(unlink(lock) == 0);
	setup_configure(NULL);
}

static void refuse_users(const char *users, const char *named)
{
	char error[256] = "";
	struct soft_settings settings = {.dir = setup_dir(), .users = users};
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_configure_all(&settings, error, sizeof(error)));
	CHECK(strstr(error, named) != NULL && strstr(error, "DMA_COPY_SOFT_USERS") != NULL);
}

static bool trusts(uid_t uid)
{
	return soft_config_trusts(soft_config(), uid);
}

static void test_users(void)
{
	refuse_users("root", "root");
	refuse_users("1,", "\"\"");
	refuse_users("-1", "-1");
	refuse_users("4294967295", "4294967295");
	char many[1000];
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	refuse_users(many, "xxx\"");
	configure_users("");
	CHECK(trusts(geteuid()) && !trusts(12345) && !trusts(54321));
	configure_users("12345,54321");
	CHECK(trusts(geteuid()) && trusts(12345) && trusts(54321));
	CHECK(!trusts(1234));
	setup_configure(NULL);
	CHECK(setenv("DMA_COPY_SOFT_USERS", "12345,root", 1) == 0);
	CHECK(soft_would_trust_user(geteuid()) && !soft_would_trust_user(12345));
	CHECK(setenv("DMA_COPY_SOFT_USERS", "12345", 1) == 0 && soft_would_trust_user(12345));
	CHECK(unsetenv("DMA_COPY_SOFT_USERS") == 0);
}

/* A socket reports the user that created it. */
static void meet(uid_t own, uid_t peer, bool trusted)
{
	int fds[2];
	pid_t pid;
	CHECK(seteuid(peer) == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0 && seteuid(0) == 0);
	CHECK(seteuid(own) == 0);
	soft_clear_detail();
	CHECK(soft_socket_peer(fds[0], &pid) == trusted);
	CHECK(seteuid(0) == 0);
	close(fds[0]);
	close(fds[1]);
	char named[32];
	snprintf(named, sizeof(named), "user %u", (unsigned)peer);
	CHECK(trusted ||
	      (strstr(soft_last_detail(), named) != NULL && strstr(soft_last_detail(), "DMA_COPY_SOFT_USERS") != NULL));
}

/* Root is treated as any other user. */
static void test_peers_of_other_users(void)
{
	if (geteuid() != 0)
		return;
	configure_users("");
	meet(0, 0, true);
	meet(12345, 12345, true);
	meet(0, 12345, false);
	meet(12345, 0, false);
	configure_users("0,12345");
	meet(0, 12345, true);
	meet(12345, 0, true);
	setup_configure(NULL);
}

/* The directory may belong to a trusted user, whose processes must be able to connect. */
static void test_shared_dir(void)
{
	if (geteuid() != 0)
		return;
	char path[300];
	snprintf(path, sizeof(path), "%s/shared", setup_dir());
	CHECK(mkdir(path, 0700) == 0 && chown(path, 12345, 0) == 0);
	setup_configure(NULL);
	refuse_dir(path);
	struct soft_settings settings = {.dir = path, .users = "12345"};
	CHECK_OK(soft_configure_all(&settings, NULL, 0));
	int fd = soft_socket_listen("comch.mode", 1);
	CHECK(fd >= 0);
	check_mode("comch.mode", 0666);
	check_mode("lock", 0666);
	close(fd);
	setup_configure(NULL);
	setup_remove(path);
}

/* Runs in a child, so that the environment does not stay. */
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
	setup_configure(NULL);
	in_child(test_default_dir);
}

static void test_configure_while_open(void)
{
	struct doca_dev *dev = setup_open_dev(HOST_PCI);
	CHECK_RESULT(DOCA_ERROR_IN_USE, soft_configure(setup_dir(), "", NULL, 0));
	CHECK_OK(soft_doca_dev_close(dev));
	setup_configure(NULL);
}

int main(void)
{
	setup_configure(NULL);
	RUN(test_limits);
	RUN(test_runtime_dir);
	RUN(test_modes);
	RUN(test_modes_of_other_files);
	RUN(test_users);
	RUN(test_peers_of_other_users);
	RUN(test_shared_dir);
	RUN(test_environment);
	RUN(test_configure_while_open);
	return 0;
}
