/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other holder of the eventfd may read it, fill it, or change its flags. Each connection
 * therefore has its own eventfds. Saker reads its own with RWF_NOWAIT, which does not depend on the
 * flags. To those of the guest's vectors only a thread of the connection writes, which may be
 * blocked and is then cancelled; it copies wake-ups from descriptors that QEMU does not have.
 *
 * To drop a descriptor that QEMU has sent may take long (base/descriptors.h), for saker and for the
 * keeper. A client of this protocol sends nothing: Saker shuts its direction down at once, and ends
 * a connection on which something was sent before that.
 */
#include "doorbell.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "../../lib/base/descriptors.h"
#include "../../lib/base/listen.h"
#include "../../lib/base/mem.h"
#include "../../lib/base/sock.h"
#include "../../lib/shm/shm_bar.h"

#define MODE     0660
#define PROTOCOL 0    /* version of the ivshmem protocol */
#define MEMORY   (-1) /* the message that carries the memory's descriptor */
#define NAME_LEN 64   /* of a descriptor at the keeper */

struct gw_doorbell {
	struct gw_doorbell_config cfg;
	int listen_fd, memory;
	int fd, ring;               /* the connection and its eventfd, or -1 */
	int wakes[SHM_BAR_SLOTS];   /* eventfds: the engine writes to wake the program of a slot */
	int vectors[SHM_BAR_SLOTS]; /* the connection's, which QEMU makes interrupts, or -1 */
	pthread_t thread;           /* copies from `wakes` to `vectors` */
	bool copies;                /* it exists */
	/* Atomic: gw_doorbell_view() reads these from any thread. */
	bool connected;
	uint64_t rings, guests, interrupts;
};

static void
doorbell_count(uint64_t *n, uint64_t more)
{
	__atomic_store_n(n, *n + more, __ATOMIC_RELAXED);
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

/* Creates `n` eventfds. Returns 0 or -errno. */
static int
doorbell_eventfds(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (fds[i] < 0)
			return -errno;
	}
	return 0;
}

static void
doorbell_close(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Closes a socket, whose unread messages may have descriptors. */
static void
doorbell_close_unread(int fd)
{
	struct sk_hurry hurry;

	sk_hurry_init(&hurry);
	sk_hurry_close(&hurry, fd);
	sk_hurry_fini(&hurry);
}

/* ---- What the keeper has of a connection ---- */

#define OWN_PARTS 3 /* besides the vectors */

/* Writes the name of part `i` of a connection, which the keeper has under that name, and returns
 * its descriptor. The vectors' names contain their number: another number of slots finds none. */
static int *
doorbell_part(struct gw_doorbell *d, unsigned i, char name[NAME_LEN])
{
	static const char *const names[OWN_PARTS] = {"link", "memory", "ring"};
	int *const fds[OWN_PARTS] = {&d->fd, &d->memory, &d->ring};

	if (i < OWN_PARTS) {
		snprintf(name, NAME_LEN, "doorbell.%s.%s", names[i], d->cfg.name);
		return fds[i];
	}
	i -= OWN_PARTS;
	snprintf(name, NAME_LEN, "doorbell.%u-of-%u.%s", i, d->cfg.nvectors, d->cfg.name);
	return &d->vectors[i];
}

static unsigned
doorbell_parts(const struct gw_doorbell *d)
{
	return d->cfg.keeper.keep == NULL ? 0 : OWN_PARTS + d->cfg.nvectors;
}

static void
doorbell_keep(struct gw_doorbell *d)
{
	char name[NAME_LEN];

	for (unsigned i = 0; i < doorbell_parts(d); i++) {
		int fd = *doorbell_part(d, i, name);

		d->cfg.keeper.keep(name, fd);
	}
}

static void
doorbell_forget(struct gw_doorbell *d)
{
	char name[NAME_LEN];

	for (unsigned i = 0; i < doorbell_parts(d); i++) {
		doorbell_part(d, i, name);
		d->cfg.keeper.forget(name);
	}
}

/* Closes this process's descriptors of the connection. */
static void
doorbell_close_connection(struct gw_doorbell *d)
{
	if (d->copies) {
		pthread_cancel(d->thread);
		pthread_join(d->thread, NULL);
		d->copies = false;
	}
	doorbell_close(d->vectors, d->cfg.nvectors);
	if (d->ring >= 0) {
		d->cfg.wake(d->cfg.arg, d->ring, false);
		close(d->ring);
	}
	if (d->fd >= 0)
		doorbell_close_unread(d->fd);
	d->fd = d->ring = -1;
	__atomic_store_n(&d->connected, false, __ATOMIC_RELAXED);
}

/* Ends the connection. Returns whether a QEMU was connected. */
static bool
doorbell_hang_up(struct gw_doorbell *d)
{
	bool connected = d->connected;

	if (connected)
		doorbell_forget(d);
	doorbell_close_connection(d);
	return connected;
}

void
gw_doorbell_end(struct gw_doorbell *d)
{
	if (d != NULL)
		doorbell_hang_up(d);
}

void
gw_doorbell_destroy(struct gw_doorbell *d)
{
	if (d == NULL)
		return;
	doorbell_close_connection(d);
	if (d->listen_fd >= 0) {
		unlink(d->cfg.path);
		doorbell_close_unread(d->listen_fd);
	}
	if (d->memory >= 0)
		close(d->memory);
	doorbell_close(d->wakes, d->cfg.nvectors);
	free(d);
}

/* Sends one message: a number, and the descriptor `fd` unless it is -1. The socket buffer of a new
 * connection has room for all messages of the greeting. */
static bool
doorbell_send(const struct gw_doorbell *d, int64_t number, int fd)
{
	uint64_t word = htole64((uint64_t)number);

	return sk_sock_send(d->fd, &word, sizeof(word), &fd, fd >= 0, MSG_DONTWAIT) == 0;
}

/* Copies wake-ups until it is cancelled, in poll() or in a write that QEMU blocks. */
static void *
doorbell_copy(void *arg)
{
	static const uint64_t one = 1;
	struct gw_doorbell *d = arg;
	struct pollfd p[SHM_BAR_SLOTS];
	uint64_t n;

	for (unsigned i = 0; i < d->cfg.nvectors; i++)
		p[i] = (struct pollfd){.fd = d->wakes[i], .events = POLLIN};
	while (poll(p, d->cfg.nvectors, -1) >= 0 || errno == EINTR)
		for (unsigned i = 0; i < d->cfg.nvectors; i++)
			/* EAGAIN: the vector's eventfd is full, and thus not yet read. */
			if (read(d->wakes[i], &n, sizeof(n)) == (ssize_t)sizeof(n) &&
				write(d->vectors[i], &one, sizeof(one)) > 0)
				doorbell_count(&d->interrupts, 1);
	return NULL;
}

/* Sends a new connection the eventfds of its own vectors, in their order. */
static bool
doorbell_vectors(struct gw_doorbell *d)
{
	if (doorbell_eventfds(d->vectors, d->cfg.nvectors) < 0)
		return false;
	for (unsigned i = 0; i < d->cfg.nvectors; i++)
		if (!doorbell_send(d, SHM_BAR_PEER_GUEST, d->vectors[i]))
			return false;
	return true;
}

/* Ends QEMU's direction of the connection. Returns whether nothing was sent before. */
static bool
doorbell_silence(const struct gw_doorbell *d)
{
	int unread;

	return shutdown(d->fd, SHUT_RD) == 0 && ioctl(d->fd, FIONREAD, &unread) == 0 && unread == 0;
}

/* Begins to copy wake-ups to the connection's vectors, and lets its eventfd wake the poller. */
static bool
doorbell_connected(struct gw_doorbell *d)
{
	d->copies =
		rte_ctrl_thread_create(&d->thread, "saker-vectors", NULL, doorbell_copy, d) == 0;
	if (!d->copies)
		return false;
	__atomic_store_n(&d->connected, true, __ATOMIC_RELAXED);
	doorbell_count(&d->guests, 1);
	d->cfg.wake(d->cfg.arg, d->ring, true);
	return true;
}

/* Sends a new connection the protocol's version, its peer number, the memory and the eventfds. */
static void
doorbell_greet(struct gw_doorbell *d, int fd)
{
	d->fd = fd;
	d->ring = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (d->ring < 0 || !doorbell_silence(d) || !doorbell_send(d, PROTOCOL, -1) ||
		!doorbell_send(d, SHM_BAR_PEER_GUEST, -1) || !doorbell_send(d, MEMORY, d->memory) ||
		!doorbell_send(d, SHM_BAR_PEER_SAKER, d->ring) || !doorbell_vectors(d) ||
		!doorbell_connected(d))
		doorbell_close_connection(d);
	else
		doorbell_keep(d);
}

/* Returns whether two descriptors are of one file. */
static bool
doorbell_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Continues the connection that an earlier saker had, if the keeper has all of it, and QEMU has the
 * memory that the machine still has. */
static void
doorbell_resume(struct gw_doorbell *d)
{
	int memory = d->memory;
	bool whole = doorbell_parts(d) > 0;
	char name[NAME_LEN];

	d->memory = -1;
	for (unsigned i = 0; i < doorbell_parts(d); i++) {
		int *fd = doorbell_part(d, i, name);

		*fd = d->cfg.keeper.kept(name);
		whole &= *fd >= 0;
	}
	whole = whole && doorbell_same_file(d->memory, memory);
	if (d->memory >= 0)
		close(d->memory);
	d->memory = memory;
	if (whole && doorbell_silence(d) && doorbell_connected(d))
		return;
	doorbell_forget(d);
	doorbell_close_connection(d);
}

/* Opens what a machine without a QEMU has. Returns 0, or -errno with a sentence. */
static int
doorbell_open(struct gw_doorbell *d, char *err, size_t errlen)
{
	int rc = doorbell_eventfds(d->wakes, d->cfg.nvectors);

	d->memory = doorbell_reopen(d->cfg.memory);
	rc = SK_MIN(rc, d->memory);
	if (rc < 0) {
		snprintf(err, errlen, "no descriptors for the doorbell socket %s: %s", d->cfg.path,
			strerror(-rc));
		return rc;
	}
	d->listen_fd = sk_listen(d->cfg.path, SOCK_STREAM, "", MODE, err, errlen);
	return SK_MIN(d->listen_fd, 0);
}

struct gw_doorbell *
gw_doorbell_create(const struct gw_doorbell_config *cfg, char *err, size_t errlen)
{
	struct gw_doorbell *d = calloc(1, sizeof(*d));

	if (d == NULL) {
		snprintf(err, errlen, "no memory for the doorbell socket %s", cfg->path);
		return NULL;
	}
	*d = (struct gw_doorbell){.cfg = *cfg, .listen_fd = -1, .memory = -1, .fd = -1, .ring = -1};
	memset(d->wakes, -1, sizeof(d->wakes));
	memset(d->vectors, -1, sizeof(d->vectors));
	if (doorbell_open(d, err, errlen) < 0) {
		gw_doorbell_destroy(d);
		return NULL;
	}
	doorbell_resume(d);
	return d;
}

/* Reads the eventfd. Returns how often it was written to since the last call. */
static uint64_t
doorbell_rung(const struct gw_doorbell *d)
{
	uint64_t n = 0;
	struct iovec iov = {&n, sizeof(n)};

	return preadv2(d->ring, &iov, 1, -1, RWF_NOWAIT) == (ssize_t)sizeof(n) ? n : 0;
}

/* Returns whether QEMU has closed its end of the connection. */
static bool
doorbell_has_ended(const struct gw_doorbell *d)
{
	struct pollfd p = {.fd = d->fd};

	return poll(&p, 1, 0) == 1;
}

bool
gw_doorbell_tend(struct gw_doorbell *d)
{
	int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	bool gone = false;
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
		d->cfg.wake(d->cfg.arg, d->ring, true);
	}
	if (doorbell_has_ended(d))
		gone |= doorbell_hang_up(d);
	return gone;
}

const int *
gw_doorbell_wakes(const struct gw_doorbell *d)
{
	return d->wakes;
}

void
gw_doorbell_view(const struct gw_doorbell *d, struct gw_doorbell_view *out)
{
	*out = (struct gw_doorbell_view){
		.connected = __atomic_load_n(&d->connected, __ATOMIC_RELAXED),
		.rings = __atomic_load_n(&d->rings, __ATOMIC_RELAXED),
		.guests = __atomic_load_n(&d->guests, __ATOMIC_RELAXED),
		.interrupts = __atomic_load_n(&d->interrupts, __ATOMIC_RELAXED),
	};
}
