/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of a client's messages: HELLO attaches it, and REGION maps memory that it passes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../base/log.h"
#include "../../../base/sock.h"
#include "region_priv.h"
#include "socket_priv.h"

/* Creates the socket pair that wakes a client. Its ends have separate file descriptions, so a
 * client cannot make the engine's end, into which loops write, blocking. The client cannot send to
 * that end, which nobody reads, nor attach a filter to its own, which each write would run. Returns
 * 0 or -errno. */
static int
make_wake(int fds[2])
{
	const int on = 1;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0 ||
		setsockopt(fds[1], SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)) < 0)
		return -errno;
	return shutdown(fds[0], SHUT_RD) < 0 ? -errno : 0;
}

/* `wake` is the client's end of the socket pair. */
static int
socket_attach(struct eng_socket *s, struct sock_conn *k, const char *name, int wake)
{
	const struct eng_config *cfg = s->c->cfg;
	struct shm_sock_msg m = {.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_WELCOME};
	struct client_home home = {0};
	struct eng_region r;
	int rc, fds[3];

	rc = ctl_region_make_home(
		"saker-home", ctl_limits(s->c).client_home_bytes, cfg->huge_pages, &r);
	if (rc < 0)
		return rc;
	home = (struct client_home){.base = r.base,
		.size = r.size,
		.fd = r.fd,
		.page = r.page,
		.wake_fd = k->wake,
		.tenant = k->cred.uid,
		.pid = k->cred.pid,
		.uid = k->cred.uid,
		.conn = k->number};
	rc = ctl_client_create(s->c, name, &home, &k->cl);
	if (rc < 0) {
		munmap(r.base, r.size);
		close(r.fd);
		return rc;
	}
	k->wake = -1; /* k->cl closes it from here on */
	ctl_users_attached(&s->users, k->user);
	m.size = r.size;
	fds[0] = r.fd;
	fds[1] = wake;
	fds[2] = k->doorbell;
	return sk_sock_send(k->fd, &m, sizeof(m), fds, 3, MSG_DONTWAIT);
}

/* Creates the eventfd of a connection's doorbell, which the client and the engine share; the engine
 * neither reads nor writes it. Returns 0 or -errno. */
static int
make_doorbell(struct eng_socket *s, struct sock_conn *k)
{
	const struct eng_control_args *a = &s->c->a;

	k->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->doorbell < 0)
		return -errno;
	return a->doorbell != NULL ? a->doorbell(a->wake_arg, k->doorbell, true) : 0;
}

/* Creates the descriptors of a connection, and attaches its client. Returns 0 or -errno. */
static int
socket_welcome(struct eng_socket *s, struct sock_conn *k, const char *name)
{
	int wake[2] = {-1, -1}, rc = make_wake(wake);

	k->wake = wake[0];
	if (rc == 0)
		rc = make_doorbell(s, k);
	if (rc == 0)
		rc = socket_attach(s, k, name, wake[1]);
	if (wake[1] >= 0)
		close(wake[1]);
	if (k->wake >= 0)
		close(k->wake);
	k->wake = -1;
	return rc;
}

static const char *
hello_refusal(int rc)
{
	switch (rc) {
	case -EUSERS:
		return "the limit of clients is reached";
	case -EDQUOT:
		return "the limit of clients of one user is reached";
	case -ENOSPC:
		return "the user, or this saker, has mapped its maximum of regions";
	default:
		return "there is no memory for another client";
	}
}

void
ctl_sock_hello(struct eng_socket *s, struct sock_conn *k, const struct shm_sock_msg *m)
{
	int rc = socket_welcome(s, k, m->text);

	if (rc == 0) {
		sk_log(SK_LOG_INFO, "client %u (%s): process %d of user %u", k->cl->eng.index,
			k->cl->eng.name, k->cred.pid, k->cred.uid);
		return;
	}
	ctl_sock_refuse(k->fd, rc, hello_refusal(rc));
	ctl_sock_close(s, k);
}

bool
ctl_sock_region(struct eng_socket *s, struct sock_conn *k, const struct shm_sock_msg *m, int fd)
{
	struct shm_sock_msg reply = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REGION_IS, .size = m->size};
	struct ctl_inbox *in = calloc(1, sizeof(*in));
	char why[sizeof(reply.text)] = "there is no memory";
	struct eng_region r;
	int n = in != NULL ? ctl_region_map_fd(fd, m->size, m->flags, &r, why, sizeof(why))
			   : -ENOMEM;

	if (n == 0) {
		n = ctl_region_take(s->c, k->cl, &r, why, sizeof(why));
		if (n < 0)
			munmap(r.base, r.size);
	}
	if (n < 0) {
		free(in);
		ctl_sock_refuse(k->fd, n, why);
		return false;
	}
	in->kind = CTL_IN_REGION;
	in->region.id = k->cl->id;
	in->region.number = (uint32_t)n;
	in->region.map = r;
	ctl_inbox_push(s->c, in);
	reply.region = (uint32_t)n;
	if (sk_sock_send(k->fd, &reply, sizeof(reply), NULL, 0, MSG_DONTWAIT) < 0)
		ctl_sock_close(s, k);
	return true;
}
