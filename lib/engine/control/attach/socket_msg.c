/* SPDX-License-Identifier: BSD-3-Clause */
/* The Unix socket: creating it. Its messages and their descriptors: check, receive, send. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "socket.h"

#define SOCK_MAX_FDS 8
#define SOCK_BACKLOG 256
#define SOCK_UNSET   ((gid_t)-1)
#define GROUP_BYTES  65536 /* of a group's entry, with its members */

int
ctl_socket_parse(const void *buf, size_t len, unsigned nfds, bool attached,
	struct shm_sock_msg *out, const char **why)
{
	*why = "the message does not belong to this protocol";
	if (len != sizeof(*out))
		return -EPROTO;
	memcpy(out, buf, sizeof(*out));
	if (out->magic != SHM_MAGIC)
		return -EPROTO;
	*why = "the client speaks another version of the protocol";
	if (out->version != SHM_VERSION)
		return -EPROTONOSUPPORT;
	if (out->op == SHM_HELLO) {
		*why = attached ? "a client says HELLO once" : "a HELLO brings no descriptor";
		if (attached || nfds != 0)
			return -EINVAL;
		out->text[SHM_NAME_MAX - 1] = '\0';
		for (char *p = out->text; *p; p++)
			if (!isgraph((unsigned char)*p))
				*p = '_';
		return 0;
	}
	*why = "a client says HELLO, and then REGION";
	if (out->op != SHM_REGION || !attached)
		return -EINVAL;
	*why = "a REGION brings one descriptor and a size";
	return nfds == 1 && out->size != 0 ? 0 : -EINVAL;
}

static bool
somebody_listens(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	if (fd < 0)
		return true;
	rc = connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 ? errno : 0;
	close(fd);
	return rc != ECONNREFUSED && rc != ENOENT;
}

static int
bind_at(int fd, const struct sockaddr_un *un, char *err, size_t errlen)
{
	struct stat st;
	int rc;

	/* The file gets the mode of the socket without the bits of the umask. The group has no
	 * access before it is the one that the configuration names. */
	if (fchmod(fd, 0600) == 0 && bind(fd, (const struct sockaddr *)un, sizeof(*un)) == 0)
		return 0;
	rc = errno;
	if (rc == EADDRINUSE && (lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))) {
		snprintf(err, errlen, "%s exists and is not a socket", un->sun_path);
		return -EEXIST;
	}
	if (rc == EADDRINUSE && somebody_listens(un)) {
		snprintf(err, errlen, "another saker listens at %s", un->sun_path);
		return -EADDRINUSE;
	}
	if (rc == EADDRINUSE && unlink(un->sun_path) == 0 &&
		bind(fd, (const struct sockaddr *)un, sizeof(*un)) == 0)
		return 0;
	rc = errno;
	snprintf(err, errlen, "cannot create a socket at %s: %s", un->sun_path, strerror(rc));
	return -rc;
}

/* Sets *gid to the number of a group, or to SOCK_UNSET for the name "". Returns 0, or -errno with a
 * sentence. */
static int
group_find(const char *name, gid_t *gid, char *err, size_t errlen)
{
	struct group g, *found = NULL;
	unsigned long number;
	char *end, *buf;
	int rc;

	*gid = SOCK_UNSET;
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
	if (isdigit((unsigned char)name[0]) && *end == '\0' && errno == 0 && number < SOCK_UNSET) {
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
	else if (gid != SOCK_UNSET && fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH) < 0)
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

int
ctl_socket_listen(const char *path, const char *group, uint32_t mode, char *err, size_t errlen)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	bool bound = false;
	int fd, rc;
	gid_t gid;

	if (strlen(path) >= sizeof(un.sun_path)) {
		snprintf(err, errlen, "the socket path %s is too long", path);
		return -ENAMETOOLONG;
	}
	strcpy(un.sun_path, path);
	rc = group_find(group, &gid, err, errlen);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		snprintf(err, errlen, "cannot create a socket: %s", strerror(errno));
		return -errno;
	}
	rc = bind_at(fd, &un, err, errlen);
	if (rc == 0) {
		bound = true;
		rc = file_permit(path, gid, mode, err, errlen);
	}
	if (rc == 0 && listen(fd, SOCK_BACKLOG) < 0) {
		rc = -errno;
		snprintf(err, errlen, "cannot listen at %s: %s", path, strerror(-rc));
	}
	if (rc == 0)
		return fd;
	if (bound && rc != -EEXIST)
		unlink(path);
	close(fd);
	return rc;
}

static void
close_all(const int *fds, unsigned n)
{
	while (n)
		close(fds[--n]);
}

int
ctl_socket_recv(int fd, void *buf, size_t len, int *fds, unsigned maxfds, unsigned *nfds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SOCK_MAX_FDS * sizeof(int))];
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *cm;
	int got[SOCK_MAX_FDS];

	*nfds = 0;
	if (n <= 0)
		return n < 0 ? -errno : 0;
	for (cm = CMSG_FIRSTHDR(&h); cm != NULL; cm = CMSG_NXTHDR(&h, cm)) {
		unsigned here = (unsigned)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		here = SK_MIN(here, SOCK_MAX_FDS);
		memcpy(got, CMSG_DATA(cm), here * sizeof(int));
		if (*nfds == 0 && here <= maxfds) {
			memcpy(fds, got, here * sizeof(int));
			*nfds = here;
		} else {
			close_all(got, here);
			h.msg_flags |= MSG_CTRUNC;
		}
	}
	if (!(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return (int)n;
	close_all(fds, *nfds);
	*nfds = 0;
	return -EPROTO;
}

int
ctl_socket_send(int fd, const struct shm_sock_msg *m, const int *fds, unsigned nfds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SOCK_MAX_FDS * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cm;

	if (nfds) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&h);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
