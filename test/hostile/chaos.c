/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that attach and end in every way. `chaos` does all that a hostile process can do to what
 * saker has given it, also after its end: it writes to descriptors and memory that it has kept,
 * floods the socket, and loses pages while its messages are under way. `churn` are correct
 * programs, some of which die.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/clock.h"
#include "hostile.h"
#include "../support/rng.h"

#define KEPT    8  /* clients whose descriptors and memory are kept after their end */
#define REGIONS 55 /* REGIONs of a flood */
#define BYTES   32768u
/* The exit status of a life of churn for which saker had no place. */
#define NO_PLACE 77

static uint64_t chaos_rng;

static uint32_t
chaos_below(uint32_t n)
{
	return rng_below(&chaos_rng, n);
}

/* ---- What is kept ---- */

struct kept {
	int bell, wake, home_fd;
	uint8_t *home;
	uint64_t size;
};
static struct kept kept[KEPT];

static void
kept_free(struct kept *k)
{
	if (k->home == NULL)
		return;
	munmap(k->home, k->size);
	close(k->bell);
	close(k->wake);
	close(k->home_fd);
	*k = (struct kept){0};
}

/* Takes everything from the client but its connection, which it closes. */
static void
keep(struct raw_client *c)
{
	struct kept *k = &kept[chaos_below(KEPT)];

	kept_free(k);
	*k = (struct kept){c->bell_fd, c->wake_fd, c->home_fd, c->home, c->size};
	close(c->fd);
}

/* Writes to what dead clients have left: eventfds, wake-up sockets and home regions. */
static void
kept_write(void)
{
	const uint64_t one = 1;

	for (unsigned i = 0; i < KEPT; i++) {
		struct kept *k = &kept[i];
		bool written;

		if (k->home == NULL)
			continue;
		written = write(k->bell, &one, sizeof(one)) == sizeof(one);
		written = write(k->wake, &one, sizeof(one)) == sizeof(one) && written;
		for (unsigned n = 0; n < (written ? 64 : 32); n++)
			k->home[rng_next(&chaos_rng) % k->size] = (uint8_t)chaos_below(256);
	}
}

/* ---- Deeds of chaos ---- */

static void
deed_leave(struct hostile *h)
{
	keep(&h->c);
	kept_write();
}

/* Writes random words into the queues that saker reads, with values that are nearly right. */
static void
deed_scribble(struct hostile *h)
{
	uint32_t *at = (uint32_t *)h->c.home;
	uint32_t words = (uint32_t)(h->c.size / 4), heads = (uint32_t)(h->c.h.heap / 4);

	for (unsigned i = 0; i < 20000; i++) {
		uint32_t n = chaos_below(i % 2 ? words : heads);

		at[n] = i % 3 == 0 ? chaos_below(8) : at[n] + chaos_below(3) - 1;
		if (i % 1000 == 0)
			raw_wake(&h->c);
	}
	keep(&h->c);
}

/* Sends REGIONs and hangs up while they are under way. */
static void
deed_regions(struct hostile *h)
{
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REGION, .size = 4096};
	int fd = raw_memfd(4096, 0);
	uint32_t n = chaos_below(2 * REGIONS);

	for (uint32_t i = 0; fd >= 0 && i < n; i++)
		if (raw_socket_send(h->c.fd, &m, fd) < 0)
			break;
	if (fd >= 0)
		close(fd);
	keep(&h->c);
}

/* Posts commands and hangs up while they are under way. */
static void
deed_commands(struct hostile *h)
{
	for (uint32_t i = 0; i < 12; i++) {
		struct shm_msg m = {0};

		for (unsigned n = 0; i % 2 && n < 64; n++)
			m.body.raw[n] = (uint8_t)rng_next(&chaos_rng);
		raw_post(&h->c, &m, (enum shm_op)chaos_below(SHM_OP_COUNT + 4));
	}
	keep(&h->c);
}

/* Sends messages that are none. */
static void
deed_garbage(struct hostile *h)
{
	struct shm_sock_msg m;
	uint8_t *at = (uint8_t *)&m;

	for (size_t i = 0; i < sizeof(m); i++)
		at[i] = (uint8_t)rng_next(&chaos_rng);
	if (chaos_below(2)) {
		m.magic = SHM_MAGIC;
		m.version = SHM_VERSION;
		m.op = chaos_below(8);
	}
	raw_socket_send(h->c.fd, &m, chaos_below(2) ? h->c.bell_fd : -1);
	keep(&h->c);
}

/*
 * Brings memory of which the pages do not exist and cannot exist (there is no page of 1 GiB; or all
 * pages are punched out and the file may not grow again), and has saker access it while REGIONs
 * arrive.
 */
static void
deed_sigbus(struct hostile *h)
{
	const uint64_t len = 1ull << 30;
	struct shm_msg m = {.body.mr = {.access = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE,
				    .base = RAW_BASE,
				    .len = 1 << 20,
				    .nextents = 1,
				    .extents = {{.len = 1 << 20}}}};
	int big = raw_memfd(len, MFD_HUGETLB | MFD_HUGE_1GB), small = raw_memfd(4096, 0);
	struct shm_sock_msg g = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REGION, .size = 4096};
	struct raw_qp qp[2];
	struct raw_cq cq;
	struct rd_sge sge = {RAW_BASE, 512, 0};
	int region = big >= 0 ? raw_region(&h->c, big, len) : -1;

	if (region > 0 && raw_pd(&h->c, &m.body.mr.pd) == 0 && raw_cq(&h->c, 64, &cq) == 0 &&
		raw_qp(&h->c, m.body.mr.pd, &cq, 16, SHM_IWARP, &qp[0]) == 0 &&
		raw_qp(&h->c, m.body.mr.pd, &cq, 16, SHM_IWARP, &qp[1]) == 0) {
		m.body.mr.extents[0].region = (uint32_t)region;
		if (raw_try(&h->c, &m, SHM_MR_CREATE) == 0 && raw_listen(&h->c, h->port) == 0 &&
			hostile_self(h, &qp[0], &qp[1]) == 0) {
			sge.lkey = m.body.mr.stag;
			for (int i = 0; small >= 0 && i < REGIONS; i++) {
				if (i == REGIONS / 4)
					raw_request(
						&h->c, &qp[0], RD_SEND, RD_SIGNALED, &sge, 0, 0);
				if (raw_socket_send(h->c.fd, &g, small) < 0)
					break;
			}
			h->refused++;
			if (chaos_below(2))
				raw_nap(20000);
		}
	}
	if (big >= 0)
		close(big);
	if (small >= 0)
		close(small);
	keep(&h->c);
}

/* Does one deed after the other, each as a new client. Prints the number of clients, and of those
 * that had pages missing. */
int
attack_chaos(struct hostile *h)
{
	static void (*const deeds[])(struct hostile * h) = {deed_leave, deed_leave, deed_scribble,
		deed_regions, deed_regions, deed_commands, deed_garbage, deed_sigbus};
	const size_t ndeeds = sizeof(deeds) / sizeof(deeds[0]);

	chaos_rng = h->number + 1;
	h->port = (uint16_t)(20000 + h->number % 1000 * 20);
	hostile_ready("is the seed", h->number);
	while (!hostile_stop) {
		kept_write();
		if (raw_attach(&h->c, h->where, true) < 0) {
			raw_nap(2000);
			continue;
		}
		h->done++;
		deeds[chaos_below(h->addr != NULL ? ndeeds : ndeeds - 1)](h);
	}
	for (unsigned i = 0; i < KEPT; i++)
		kept_free(&kept[i]);
	return 0;
}

/* ---- Churn ---- */

static int
churn_write(struct hostile *h, struct raw_qp *qp, struct raw_cq *cq, const struct raw_mem *m)
{
	const struct rd_sge sge = {m->base, BYTES, m->stag};
	struct shm_cqe e;

	for (uint32_t i = 0; i < BYTES; i++)
		m->at[i] = (uint8_t)rng_next(&chaos_rng);
	raw_request(&h->c, qp, RD_WRITE, 0, &sge, m->base + BYTES, m->stag);
	/* The Read comes back after the Write has been placed. */
	raw_request(&h->c, qp, RD_READ, RD_SIGNALED,
		&(struct rd_sge){m->base + 2ul * BYTES, BYTES, m->stag}, m->base + BYTES, m->stag);
	for (uint64_t end = now_ns() + 60000000000ull; !raw_poll(cq, &e);) {
		if (now_ns() > end)
			return -ETIMEDOUT;
		raw_nap(50);
	}
	return e.status != 0 ? -EIO
	       : memcmp(m->at, m->at + BYTES, BYTES) != 0 ||
			       memcmp(m->at, m->at + 2ul * BYTES, BYTES) != 0
		       ? -EBADMSG
		       : 0;
}

/* Returns whether a step of a life succeeded, and reports the one that did not. */
static bool
churn_step(const char *what, int rc)
{
	if (rc < 0)
		fprintf(stderr, "churn: %s: %s\n", what, strerror(-rc));
	return rc >= 0;
}

/* The life of one client. Returns the exit status of its process. */
static int
churn_life(struct hostile *h)
{
	uint32_t pd, end = chaos_below(5);
	struct raw_qp qp[2];
	struct raw_cq cq;
	struct raw_mem m;
	int rc = raw_attach(&h->c, h->where, true);

	if (rc == -EUSERS)
		return NO_PLACE;
	if (!churn_step("attach", rc) || !churn_step("PD", raw_pd(&h->c, &pd)) ||
		!churn_step("CQ", raw_cq(&h->c, 64, &cq)) ||
		!churn_step("first QP", raw_qp(&h->c, pd, &cq, 16, SHM_IWARP, &qp[0])) ||
		!churn_step("second QP", raw_qp(&h->c, pd, &cq, 16, SHM_IWARP, &qp[1])) ||
		!churn_step("memory", raw_memory(&h->c, pd, 1 << 20, 0, &m)) ||
		!churn_step("listener", raw_listen(&h->c, h->port)) ||
		!churn_step("connection", hostile_self(h, &qp[0], &qp[1])))
		return 1;
	for (int i = 0; i < 4; i++) {
		if (!churn_step("a Write and a Read", churn_write(h, &qp[0], &cq, &m)))
			return 1;
		if (end == 0 && i == 2)
			raise(SIGKILL);
	}
	switch (end) {
	case 1: /* everything in order */
		rc = raw_destroy(&h->c, SHM_QP_DESTROY, qp[0].i.qp);
		rc |= raw_destroy(&h->c, SHM_QP_DESTROY, qp[1].i.qp);
		rc |= raw_destroy(&h->c, SHM_CQ_DESTROY, cq.i.cq);
		rc |= raw_destroy(&h->c, SHM_MR_DESTROY, m.mr);
		rc |= raw_destroy(&h->c, SHM_PD_DESTROY, pd);
		raw_detach(&h->c);
		return !churn_step("destroy", rc);
	case 2: /* with requests under way */
		for (int i = 0; i < 8; i++)
			raw_request(&h->c, &qp[0], RD_WRITE, 0,
				&(struct rd_sge){m.base, BYTES, m.stag}, m.base + BYTES, m.stag);
		return 0;
	case 3: /* the receiver first, and the sender with requests under way */
		raw_request(&h->c, &qp[0], RD_WRITE, 0, &(struct rd_sge){m.base, BYTES, m.stag},
			m.base + BYTES, m.stag);
		return !churn_step("the receiver", raw_destroy(&h->c, SHM_QP_DESTROY, qp[1].i.qp));
	default:
		return 0;
	}
}

/* Returns 0, or -EIO for the status of a life that failed, and reports a signal. */
static int
churn_ended(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == NO_PLACE ? 0 : -EIO;
	if (WTERMSIG(status) == SIGKILL)
		return 0;
	fprintf(stderr, "churn: signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return -EIO;
}

/* Runs one client after the other, each in a process of its own. Prints the number of those that
 * ran, and of those that found no place. */
int
attack_churn(struct hostile *h)
{
	int failed = 0;

	hostile_ready("is the seed", h->number);
	for (uint32_t round = 0; !hostile_stop && failed == 0; round++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0) {
			chaos_rng = h->number * 1000003ull + round;
			h->port = (uint16_t)(20000 + h->number % 1000 * 20 + round % 20);
			_exit(churn_life(h));
		}
		if (child < 0)
			return -errno;
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		h->done++;
		failed = churn_ended(status);
		if (WIFEXITED(status) && WEXITSTATUS(status) == NO_PLACE)
			h->refused++;
	}
	return failed;
}
