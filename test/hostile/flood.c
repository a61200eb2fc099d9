/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that flood their mailbox or their doorbells, and a host that floods the wire. Each fills
 * what it can and rests, so that saker always has something to do, and the flood's own processor
 * has not.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"

#define UNDER_WAY 12  /* commands */
#define PAUSE_US  50  /* between two looks at the mailbox */
#define RING_US   500 /* between two fills of a doorbell ring */
#define RING_STEP 64  /* doorbells at a time */

/* ---- Commands ---- */

/* Keeps commands under way. `next` fills in the one that follows the reply *m, and returns its
 * op. */
static int
mailbox_flood(struct hostile *h, enum shm_op (*next)(struct hostile *h, struct shm_msg *m))
{
	struct shm_msg m = {0};

	hostile_ready("commands under way", UNDER_WAY);
	for (unsigned i = 0; i < UNDER_WAY; i++) {
		enum shm_op op = next(h, &m);

		raw_post(&h->c, &m, op);
		m = (struct shm_msg){0};
	}
	for (unsigned at_once = 0; !hostile_stop; at_once++) {
		enum shm_op op;

		if (at_once == UNDER_WAY || !raw_take(&h->c, &m)) {
			hostile_rest(h, at_once == UNDER_WAY ? 0 : PAUSE_US);
			at_once = 0;
			continue;
		}
		h->done++;
		h->refused += m.status < 0;
		op = next(h, &m);
		while (!raw_post(&h->c, &m, op) && !hostile_stop)
			hostile_rest(h, PAUSE_US);
	}
	return 0;
}

/* Sends nothing, and wakes up every h->number us: the control for the floods. */
int
attack_rhythm(struct hostile *h)
{
	unsigned us = h->number ? h->number : PAUSE_US;

	hostile_ready("us between two looks at the mailbox", us);
	for (; !hostile_stop; h->done++)
		hostile_rest(h, us);
	return 0;
}

static struct shm_device device;

static int
device_get(struct hostile *h)
{
	struct shm_msg m = {0};
	int rc = raw_command(&h->c, &m, SHM_QUERY_DEVICE);

	device = m.body.device;
	return rc;
}

static enum shm_op
next_deep_cq(struct hostile *h, struct shm_msg *m)
{
	if (m->op == SHM_CQ_CREATE && m->status == 0) {
		uint32_t cq = m->body.cq.cq;

		*m = (struct shm_msg){.body.handle = cq};
		return SHM_CQ_DESTROY;
	}
	*m = (struct shm_msg){.body.cq.depth = h->number ? h->number : device.max_cq_depth};
	return SHM_CQ_CREATE;
}

int
attack_deep_cqs(struct hostile *h)
{
	int rc = device_get(h);

	return rc < 0 ? rc : mailbox_flood(h, next_deep_cq);
}

static struct shm_qp_info deep_qp;

static enum shm_op
next_deep_qp(struct hostile *h, struct shm_msg *m)
{
	if (m->op == SHM_QP_CREATE && m->status == 0) {
		uint32_t qp = m->body.qp.qp;

		*m = (struct shm_msg){.body.handle = qp};
		return SHM_QP_DESTROY;
	}
	*m = (struct shm_msg){.body.qp = deep_qp};
	m->body.qp.sq_depth = h->number ? h->number : deep_qp.sq_depth;
	return SHM_QP_CREATE;
}

int
attack_deep_qps(struct hostile *h)
{
	struct raw_cq cq;
	int rc = device_get(h);

	deep_qp = (struct shm_qp_info){.srq = SHM_NONE,
		.sq_depth = device.max_sq_depth,
		.rq_depth = device.max_rq_depth,
		.max_send_sge = device.max_send_sge,
		.max_recv_sge = device.max_recv_sge,
		.xrcd = SHM_NONE};
	if (rc == 0)
		rc = raw_pd(&h->c, &deep_qp.pd);
	if (rc == 0)
		rc = raw_cq(&h->c, 2, &cq);
	deep_qp.send_cq = deep_qp.recv_cq = cq.i.cq;
	return rc < 0 ? rc : mailbox_flood(h, next_deep_qp);
}

static uint32_t xrcd;

static enum shm_op
next_open(struct hostile *h, struct shm_msg *m)
{
	/* A number that no QP has. */
	*m = (struct shm_msg){.body.qp = {.xrcd = xrcd, .qpn = 5 + (uint32_t)(h->done % 2)}};
	return SHM_QP_OPEN;
}

/* Opens QPs that do not exist, beside thousands that do. */
int
attack_qp_open(struct hostile *h)
{
	uint32_t n = h->number ? h->number : 16000, pd;
	struct shm_msg m = {0};
	struct raw_cq cq;
	struct raw_qp qp;
	int rc = raw_pd(&h->c, &pd);

	if (rc == 0)
		rc = raw_cq(&h->c, 2, &cq);
	while (rc == 0 && n-- > 0 && raw_qp(&h->c, pd, &cq, 1, SHM_IWARP, &qp) == 0)
		;
	if (rc == 0)
		rc = raw_command(&h->c, &m, SHM_XRCD_OPEN);
	xrcd = m.body.xrcd.xrcd;
	return rc < 0 ? rc : mailbox_flood(h, next_open);
}

static enum shm_op
next_waking(struct hostile *h, struct shm_msg *m)
{
	char wake[8];

	while (read(h->c.wake_fd, wake, sizeof(wake)) > 0)
		;
	*m = (struct shm_msg){0};
	return SHM_QUERY_DEVICE;
}

/* Sleeps by what it tells saker, and makes each wake-up long: its end of the socket pair is
 * registered with epoll thousands of times, and the kernel visits all of them. */
int
attack_wakes(struct hostile *h)
{
	const struct rlimit most = {20000, 20000};
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	uint32_t n = h->number ? h->number : 16000, made = 0;
	int epoll = epoll_create1(EPOLL_CLOEXEC), *fds = calloc(n, sizeof(*fds)), rc = -EMFILE;

	setrlimit(RLIMIT_NOFILE, &most);
	for (; fds != NULL && made < n; made++) {
		fds[made] = dup(h->c.wake_fd);
		if (fds[made] < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fds[made], &ev) < 0)
			break;
	}
	((struct shm_header *)(void *)h->c.home)->client_sleeps = SHM_SLEEPS;
	fprintf(stderr, "%u registrations\n", made);
	if (made > 0)
		rc = mailbox_flood(h, next_waking);
	while (made > 0)
		close(fds[--made]);
	close(epoll);
	free(fds);
	return rc;
}

static enum shm_op
next_valid(struct hostile *h, struct shm_msg *m)
{
	*m = (struct shm_msg){0};
	return h->number == 0 ? SHM_QUERY_DEVICE : (enum shm_op)h->number;
}

int
attack_mailbox_valid(struct hostile *h)
{
	return mailbox_flood(h, next_valid);
}

static enum shm_op
next_invalid(struct hostile *h, struct shm_msg *m)
{
	/* All ops, some of which do not exist, with handles that do not exist. */
	*m = (struct shm_msg){.body.handle = 0x5a5a5a5a};
	return (enum shm_op)(h->done % (2 * SHM_OP_COUNT));
}

int
attack_mailbox_invalid(struct hostile *h)
{
	return mailbox_flood(h, next_invalid);
}

/* ---- Doorbells ---- */

static int
doorbell_flood(struct hostile *h, uint32_t first, uint32_t step)
{
	uint32_t what = first;

	hostile_ready("doorbells a ring", h->c.doorbell[0].count);
	while (!hostile_stop) {
		for (unsigned s = 0; s < h->c.h.nstages; s++)
			while (!hostile_stop && raw_ring(&h->c, s, what)) {
				what += step;
				if (++h->done % RING_STEP == 0)
					hostile_rest(h, 0);
			}
		raw_wake(&h->c);
		hostile_rest(h, RING_US);
	}
	return 0;
}

/* Rings for a QP whose queue is empty. */
int
attack_doorbell_valid(struct hostile *h)
{
	struct raw_cq cq;
	struct raw_qp qp = {0};
	uint32_t pd;
	int rc = raw_pd(&h->c, &pd);

	if (rc == 0)
		rc = raw_cq(&h->c, 2, &cq);
	if (rc == 0)
		rc = raw_qp(&h->c, pd, &cq, 2, SHM_IWARP, &qp);
	return rc < 0 ? rc : doorbell_flood(h, qp.i.qp, 0);
}

int
attack_doorbell_invalid(struct hostile *h)
{
	return doorbell_flood(h, 0x1000, 77);
}

/* Rings for a mailbox that is empty. */
int
attack_doorbell_empty(struct hostile *h)
{
	return doorbell_flood(h, SHM_RING_MAILBOX, 0);
}

/* ---- Frames ---- */

#define FRAME_US 6 /* between two frames */

/* Reads frames, each behind its length of two bytes in host order. Returns how many fit. */
static unsigned
frames_read(const char *path, uint8_t (*frame)[2048], uint16_t *len, unsigned most)
{
	FILE *f = fopen(path, "re");
	unsigned n = 0;

	while (f != NULL && n < most && fread(&len[n], sizeof(len[n]), 1, f) == 1 &&
		len[n] <= sizeof(frame[n]) && fread(frame[n], len[n], 1, f) == 1)
		n++;
	if (f != NULL)
		fclose(f);
	return n;
}

/* Sends the frames of the file h->addr on the interface h->where, over and over, one at a time. */
int
attack_frames(struct hostile *h)
{
	enum { MOST = 32768 };
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(h->where)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), rc = fd < 0 ? -errno : 0;
	uint8_t(*frame)[2048] = malloc(MOST * sizeof(*frame));
	uint16_t *len = malloc(MOST * sizeof(*len));
	unsigned n = 0, us = h->number ? h->number : FRAME_US;

	if (frame != NULL && len != NULL && h->addr != NULL)
		n = frames_read(h->addr, frame, len, MOST);
	if (rc == 0 && n == 0)
		rc = -ENODATA;
	if (rc == 0)
		hostile_ready("us between two frames", us);
	for (unsigned i = 0; rc == 0 && !hostile_stop; i = (i + 1) % n) {
		/* The interface drops what its queue has no room for. */
		h->refused +=
			sendto(fd, frame[i], len[i], 0, (struct sockaddr *)&to, sizeof(to)) < 0;
		h->done++;
		hostile_rest(h, us);
	}
	free(frame);
	free(len);
	if (fd >= 0)
		close(fd);
	return rc;
}
