/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other holder of the eventfd may read it, fill it, or change its flags. Each connection
 * therefore has its own eventfd, Saker never writes to it, and Saker reads it with RWF_NOWAIT,
 * which does not depend on its flags.
 */
#include "doorbell.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../lib/shm/shm_bar.h"

#define MODE     0660
#define BACKLOG  4
#define PROTOCOL 0    /* version of the ivshmem protocol */
#define MEMORY   (-1) /* the message that carries the memory's descriptor */

struct gw_doorbell {
	int listen_fd, memory;
	int fd, ring; /* the connection and its eventfd, or -1 */
	struct sockaddr_un at;
	void (*wake)(void *arg, int fd, bool on);
	void *arg;
	/* Atomic: gw_doorbell_view() reads these from any thread. */
	bool connected;
	uint64_t rings, guests;
};

static void
doorbell_count(uint64_t *n, uint64_t more)
{
	__atomic_store_n(n, *n + more, __ATOMIC_RELAXED);
}

static int
doorbell_listen_at(struct gw_doorbell *d)
{
	const struct sockaddr *sa = (const struct sockaddr *)&d->at;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	d->listen_fd = fd;
	/* An earlier saker process that died may have left its socket. */
	if (connect(fd, sa, sizeof(d->at)) < 0 && errno == ECONNREFUSED)
		unlink(d->at.sun_path);
	if (bind(fd, sa, sizeof(d->at)) < 0)
		return -errno;
	return chmod(d->at.sun_path, MODE) < 0 || listen(fd, BACKLOG) < 0 ? -errno : 0;
}

/* Opens the file of `fd` once more. flock() locks belong to an open file description: if QEMU
 * received Saker's, the file would stay locked for as long as QEMU runs. */
static int
doorbell_reopen(int fd)
{
	char at[32];

	snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
	fd = open(at, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct gw_doorbell *
gw_doorbell_create(const char *path, int memory, void (*wake)(void *arg, int fd, bool on),
	void *arg, char *err, size_t errlen)
{
	struct gw_doorbell *d = calloc(1, sizeof(*d));
	int rc = d == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		*d = (struct gw_doorbell){.listen_fd = -1,
			.memory = doorbell_reopen(memory),
			.fd = -1,
			.ring = -1,
			.at.sun_family = AF_UNIX,
			.wake = wake,
			.arg = arg};
		if (d->memory < 0) {
			rc = d->memory;
		} else if (strlen(path) < sizeof(d->at.sun_path)) {
			strcpy(d->at.sun_path, path);
			rc = doorbell_listen_at(d);
		} else {
			rc = -ENAMETOOLONG;
		}
	}
	if (rc == 0)
		return d;
	snprintf(err, errlen, "the doorbell socket %s cannot be created: %s", path, strerror(-rc));
	if (d != NULL) {
		/* A file that exists at the path is not this gw_doorbell's to remove. */
		d->at.sun_path[0] = '\0';
		gw_doorbell_destroy(d);
	}
	return NULL;
}

/* Closes the connection. Returns whether a QEMU was connected. */
static bool
doorbell_hang_up(struct gw_doorbell *d)
{
	bool connected = d->connected;

	if (d->ring >= 0) {
		d->wake(d->arg, d->ring, false);
		close(d->ring);
	}
	if (d->fd >= 0)
		close(d->fd);
	d->fd = d->ring = -1;
	__atomic_store_n(&d->connected, false, __ATOMIC_RELAXED);
	return connected;
}

void
gw_doorbell_destroy(struct gw_doorbell *d)
{
	if (d == NULL)
		return;
	doorbell_hang_up(d);
	if (d->listen_fd >= 0)
		close(d->listen_fd);
	if (d->memory >= 0)
		close(d->memory);
	if (d->at.sun_path[0] != '\0')
		unlink(d->at.sun_path);
	free(d);
}

/* Sends one message: a number, and the descriptor `fd` unless it is -1. The socket buffer of a new
 * connection has room for all messages of the greeting. */
static bool
doorbell_send(const struct gw_doorbell *d, int64_t number, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(fd))];
	} control = {0};
	uint64_t word = htole64((uint64_t)number);
	struct iovec iov = {&word, sizeof(word)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *c;

		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(d->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(word);
}

/* Sends a new connection the protocol's version, its peer number, the memory and the eventfd. */
static void
doorbell_greet(struct gw_doorbell *d, int fd)
{
	d->fd = fd;
	d->ring = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (d->ring < 0 || !doorbell_send(d, PROTOCOL, -1) ||
		!doorbell_send(d, SHM_BAR_PEER_GUEST, -1) || !doorbell_send(d, MEMORY, d->memory) ||
		!doorbell_send(d, SHM_BAR_PEER_SAKER, d->ring)) {
		doorbell_hang_up(d);
		return;
	}
	__atomic_store_n(&d->connected, true, __ATOMIC_RELAXED);
	doorbell_count(&d->guests, 1);
	d->wake(d->arg, d->ring, true);
}

/* Reads the eventfd. Returns how often it was written to since the last call. */
static uint64_t
doorbell_rung(const struct gw_doorbell *d)
{
	uint64_t n = 0;
	struct iovec iov = {&n, sizeof(n)};

	return preadv2(d->ring, &iov, 1, -1, RWF_NOWAIT) == (ssize_t)sizeof(n) ? n : 0;
}

bool
gw_doorbell_tend(struct gw_doorbell *d)
{
	int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	bool gone = false;
	char scrap[64];
	uint64_t n;

	if (fd >= 0) {
		gone = doorbell_hang_up(d);
		doorbell_greet(d, fd);
	}
	if (d->fd < 0)
		return gone;
	n = doorbell_rung(d);
	if (n > 0) {
		doorbell_count(&d->rings, n);
		d->wake(d->arg, d->ring, true);
	}
	/* A client of this protocol sends nothing, so any byte ends the connection. */
	if (recv(d->fd, scrap, sizeof(scrap), MSG_DONTWAIT) >= 0 ||
		(errno != EAGAIN && errno != EINTR))
		gone |= doorbell_hang_up(d);
	return gone;
}

void
gw_doorbell_view(const struct gw_doorbell *d, struct gw_doorbell_view *out)
{
	*out = (struct gw_doorbell_view){
		.connected = __atomic_load_n(&d->connected, __ATOMIC_RELAXED),
		.rings = __atomic_load_n(&d->rings, __ATOMIC_RELAXED),
		.guests = __atomic_load_n(&d->guests, __ATOMIC_RELAXED),
	};
}
