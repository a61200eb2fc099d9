/* SPDX-License-Identifier: BSD-3-Clause */
/* See fake_sock.h. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_sock.h"

#define HOME (1u << 20)

static void
reply(struct fake_sock *k, struct shm_sock_msg *m, const int *fds, size_t nfds)
{
	struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	m->magic = SHM_MAGIC;
	m->version = SHM_VERSION;
	if (nfds > 0) {
		memset(&control, 0, sizeof(control));
		control.align.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.align), fds, nfds * sizeof(int));
		h.msg_control = control.buf;
		h.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	}
	cr_assert_eq(sendmsg(k->sock, &h, MSG_NOSIGNAL), (ssize_t)sizeof(*m));
}

static void
welcome(struct fake_sock *k, struct shm_sock_msg *m)
{
	int wake[2], fds[3];
	void *home;

	memcpy(k->name, m->text, sizeof(k->name));
	memset(m, 0, sizeof(*m));
	if (k->refuse_hello != NULL) {
		m->op = SHM_REFUSED;
		m->status = k->refuse_status != 0 ? k->refuse_status : -EUSERS;
		strcpy(m->text, k->refuse_hello);
		reply(k, m, NULL, 0);
		return;
	}
	fds[0] = memfd_create("fake", 0);
	cr_assert_eq(ftruncate(fds[0], HOME), 0);
	home = mmap(NULL, HOME, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	cr_assert_neq(home, MAP_FAILED);
	fake_init(&k->f, home, HOME, 0);
	if (k->wrong_magic)
		k->f.h->magic = 1;
	cr_assert_eq(pipe2(wake, O_NONBLOCK), 0);
	k->f.wake = wake[1];
	k->wake_engine = eventfd(0, EFD_NONBLOCK);
	fds[1] = wake[0];
	fds[2] = k->wake_engine;
	m->op = SHM_WELCOME;
	m->size = HOME;
	reply(k, m, fds, k->few_fds ? 2 : 3);
	close(fds[0]);
	close(wake[0]);
}

static void
region(struct fake_sock *k, const struct shm_sock_msg *in, int fd)
{
	struct shm_sock_msg m = {.op = SHM_REGION_IS};
	uint32_t i = k->regions;
	void *p;

	cr_assert_geq(fd, 0, "a region comes with its memfd");
	if (in->size > k->region_most) {
		k->refused_regions++;
		m.op = SHM_REFUSED;
		m.status = -EDQUOT;
		strcpy(m.text, "the quota of memory is used up");
	} else {
		k->sealed = k->sealed && (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) != 0;
		p = mmap(NULL, in->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		cr_assert_neq(p, MAP_FAILED);
		k->region[i] = p;
		k->region_size[i] = in->size;
		m.region = 11 + i;
		k->regions++;
	}
	close(fd);
	reply(k, &m, NULL, 0);
}

/* Receives one message of the client. Returns false when it has detached. */
static bool
message(struct fake_sock *k)
{
	struct shm_sock_msg m;
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};
	int fd = -1;

	if (recvmsg(k->sock, &h, 0) != (ssize_t)sizeof(m))
		return false;
	cr_assert_eq(m.magic, SHM_MAGIC);
	cr_assert_eq(m.version, SHM_VERSION);
	if (CMSG_FIRSTHDR(&h) != NULL)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fd));
	if (m.op == SHM_HELLO)
		welcome(k, &m);
	else
		region(k, &m, fd);
	return true;
}

/* Sleeps as an engine does: sets the flag, fences, polls once more. */
static bool
turn(struct fake_sock *k)
{
	struct pollfd p[3] = {{k->stop, POLLIN, 0}, {k->sock, POLLIN, 0}, {-1, POLLIN, 0}};
	uint64_t n;

	pthread_mutex_lock(&k->lock);
	if (k->f.h != NULL) {
		p[2].fd = k->wake_engine;
		__atomic_store_n(&k->f.h->engine_sleeps, 1, __ATOMIC_SEQ_CST);
		shm_fence();
		fake_poll(&k->f);
	}
	pthread_mutex_unlock(&k->lock);
	poll(p, 3, -1);
	pthread_mutex_lock(&k->lock);
	if (k->f.h != NULL)
		__atomic_store_n(&k->f.h->engine_sleeps, 0, __ATOMIC_SEQ_CST);
	if ((p[2].revents & POLLIN) != 0 && read(k->wake_engine, &n, sizeof(n)) > 0)
		k->wakes++;
	if (p[1].revents != 0 && !message(k))
		p[0].revents = POLLIN;
	pthread_mutex_unlock(&k->lock);
	return p[0].revents == 0;
}

static void *
serve(void *arg)
{
	struct fake_sock *k = arg;
	struct pollfd p[2] = {{k->stop, POLLIN, 0}, {k->listen, POLLIN, 0}};

	poll(p, 2, -1);
	if (p[0].revents != 0)
		return NULL;
	k->sock = accept(k->listen, NULL, NULL);
	while (turn(k))
		;
	close(k->sock);
	return NULL;
}

void
fake_sock_start(struct fake_sock *k)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	snprintf(k->path, sizeof(k->path), "/tmp/saker-test-%d.sock", (int)getpid());
	strcpy(un.sun_path, k->path);
	unlink(k->path);
	k->listen = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	cr_assert_eq(bind(k->listen, (const struct sockaddr *)&un, sizeof(un)), 0);
	cr_assert_eq(listen(k->listen, 1), 0);
	k->stop = eventfd(0, 0);
	k->sock = -1;
	k->sealed = true;
	pthread_mutex_init(&k->lock, NULL);
	pthread_create(&k->thread, NULL, serve, k);
}

void
fake_sock_stop(struct fake_sock *k)
{
	const uint64_t one = 1;

	cr_assert_eq(write(k->stop, &one, sizeof(one)), (ssize_t)sizeof(one));
	pthread_join(k->thread, NULL);
	close(k->listen);
	close(k->stop);
	unlink(k->path);
}
