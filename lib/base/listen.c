/* SPDX-License-Identifier: BSD-3-Clause */
#include "listen.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mem.h"

#define LISTEN_BACKLOG 256
#define LISTEN_UNSET   ((gid_t)-1)
#define GROUP_BYTES    65536 /* of a group's entry, with its members */

static bool
somebody_listens(const struct sockaddr_un *un, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	if (fd < 0)
		return true;
	rc = connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 ? errno : 0;
	close(fd);
	/* A socket of another type is in use, too: EPROTOTYPE. */
	return rc != ECONNREFUSED && rc != ENOENT;
}

/* Sets un->sun_path to a new name in the directory of `path`. Returns 0, or -errno with a
 * sentence. */
static int
name_new(const char *path, struct sockaddr_un *un, char *err, size_t errlen)
{
	const char *slash = strrchr(path, '/');
	int dir = slash != NULL ? (int)(slash + 1 - path) : 0;
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
		snprintf(err, errlen, "no random number for the socket %s", path);
		return -EIO;
	}
	if (strlen(path) < sizeof(un->sun_path) &&
		snprintf(un->sun_path, sizeof(un->sun_path), "%.*s.saker-%08x", dir, path, number) <
			(int)sizeof(un->sun_path))
		return 0;
	snprintf(err, errlen, "the socket path %s is too long", path);
	return -ENAMETOOLONG;
}

/* Checks that `path` is free, or a socket at which nobody listens. Returns 0 or 1 for these, or
 * -errno with a sentence. */
static int
name_check(const char *path, int type, char *err, size_t errlen)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct stat st;

	if (lstat(path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(err, errlen, "%s exists and is not a socket", path);
		return -EEXIST;
	}
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	if (somebody_listens(&un, type)) {
		snprintf(err, errlen, "another process listens at %s", path);
		return -EADDRINUSE;
	}
	return 1;
}

/* Gives the socket file `from` the name `path`, unless there is another file than a socket at which
 * nobody listens. Returns 0, or -errno with a sentence. */
static int
name_take(const char *from, const char *path, int type, char *err, size_t errlen)
{
	int rc = name_check(path, type, err, errlen);

	if (rc < 0)
		return rc;
	if (rename(from, path) == 0)
		return 0;
	rc = -errno;
	snprintf(err, errlen, "cannot create a socket at %s: %s", path, strerror(-rc));
	return rc;
}

int
sk_listen_clear(const char *path, int type, char *err, size_t errlen)
{
	int rc = name_check(path, type, err, errlen);

	if (rc <= 0 || unlink(path) == 0)
		return SK_MIN(rc, 0);
	rc = -errno;
	snprintf(err, errlen, "the old socket %s cannot be removed: %s", path, strerror(-rc));
	return rc;
}

/* Sets *gid to the number of a group, or to LISTEN_UNSET for the name "". Returns 0, or -errno with
 * a sentence. */
static int
group_find(const char *name, gid_t *gid, char *err, size_t errlen)
{
	struct group g, *found = NULL;
	unsigned long number;
	char *end, *buf;
	int rc;

	*gid = LISTEN_UNSET;
	if (name[0] == '\0')
		return 0;
	buf = malloc(GROUP_BYTES);
	if (buf == NULL)
		return -ENOMEM;
	rc = getgrnam_r(name, &g, buf, GROUP_BYTES, &found);
	free(buf);
	if (found != NULL) {
		*gid = g.gr_gid;
		return 0;
	}
	errno = 0;
	number = strtoul(name, &end, 10);
	if (isdigit((unsigned char)name[0]) && *end == '\0' && errno == 0 &&
		number < LISTEN_UNSET) {
		*gid = (gid_t)number;
		return 0;
	}
	if (rc != 0 && rc != ENOENT && rc != ESRCH)
		snprintf(err, errlen, "the socket's group '%s' cannot be looked up: %s", name,
			strerror(rc));
	else
		snprintf(err, errlen, "the socket's group '%s' does not exist", name);
	return -EINVAL;
}

/* Sets group and mode of the file at `path`, which this process has created. Another process that
 * may write to the directory could have replaced the file meanwhile: the file must be a socket of
 * this process's user. Returns 0, or -errno with a sentence. */
static int
file_permit(const char *path, gid_t gid, uint32_t mode, char *err, size_t errlen)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	char self[64];
	struct stat st;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fd < 0 || fstat(fd, &st) < 0)
		rc = -errno;
	else if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		rc = -EEXIST;
	else if (gid != LISTEN_UNSET && fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH) < 0)
		rc = -errno;
	if (rc == -EEXIST)
		snprintf(err, errlen, "another process has replaced the socket %s", path);
	else if (rc < 0)
		snprintf(err, errlen, "the group of the socket %s cannot be set to %u: %s", path,
			gid, strerror(-rc));
	if (rc == 0 && chmod(self, mode) < 0) {
		rc = -errno;
		snprintf(err, errlen, "the mode of the socket %s cannot be set to %#o: %s", path,
			mode, strerror(-rc));
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Binds `fd` to `un`, with group and mode, and listens. */
static int
listen_open(int fd, const struct sockaddr_un *un, const char *path, gid_t gid, uint32_t mode,
	char *err, size_t errlen)
{
	int rc;

	/* The file gets the mode of the socket without the bits of the umask. The group has no
	 * access before it is the one that the configuration names. */
	if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)un, sizeof(*un)) < 0) {
		rc = -errno;
		snprintf(err, errlen, "cannot create a socket at %s: %s", path, strerror(-rc));
		return rc;
	}
	rc = file_permit(un->sun_path, gid, mode, err, errlen);
	if (rc == 0 && listen(fd, LISTEN_BACKLOG) < 0) {
		rc = -errno;
		snprintf(err, errlen, "cannot listen at %s: %s", path, strerror(-rc));
	}
	if (rc < 0 && rc != -EEXIST)
		unlink(un->sun_path);
	return rc;
}

int
sk_listen(const char *path, int type, const char *group, uint32_t mode, char *err, size_t errlen)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, rc;
	gid_t gid;

	rc = name_new(path, &un, err, errlen);
	if (rc == 0)
		rc = group_find(group, &gid, err, errlen);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		rc = -errno;
		snprintf(err, errlen, "cannot create a socket: %s", strerror(-rc));
		return rc;
	}
	/* A process that waits for the file may connect at once, and another saker that finds it
	 * asks whether a process listens: the file gets its name when the socket listens. */
	rc = listen_open(fd, &un, path, gid, mode, err, errlen);
	if (rc == 0) {
		rc = name_take(un.sun_path, path, type, err, errlen);
		if (rc < 0)
			unlink(un.sun_path);
	}
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}
