/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that work within their rights: many busy QPs, servers of peers on the wire, and the
 * comparison of two clients whose rings one thread fills.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../lib/base/mem.h"
#include "../support/clock.h"
#include "hostile.h"

/* ---- Many busy QPs ---- */

#define BUSY_DEPTH 16
#define BUSY_CQ    65536
/* The most requests that the queues of one of two compared clients hold together: as many as one
 * queue may hold. */
#define SHARE_DEPTH 4096

/* A client whose QPs are connected to each other in pairs, and one end of each pair sends. */
struct crowd {
	struct hostile h;
	struct raw_qp *qp; /* sender, receiver, sender, ... */
	struct raw_cq cq;
	struct raw_mem mem;
	uint32_t pairs, depth;
	uint32_t *posted;
	uint64_t done;
};

static int
crowd_join(struct crowd *w, uint32_t wanted, uint32_t depth)
{
	struct raw_client *c = &w->h.c;
	uint32_t pd;
	int rc = raw_pd(c, &pd);

	w->depth = depth;
	w->qp = calloc(2ul * wanted, sizeof(*w->qp));
	w->posted = calloc(wanted, sizeof(*w->posted));
	if (w->qp == NULL || w->posted == NULL)
		return -ENOMEM;
	if (rc == 0)
		rc = raw_cq(c, BUSY_CQ, &w->cq);
	if (rc == 0)
		rc = raw_memory(c, pd, 65536, 0, &w->mem);
	if (rc == 0)
		rc = raw_listen(c, w->h.port);
	for (; rc == 0 && w->pairs < wanted; w->pairs++) {
		struct raw_qp *q = &w->qp[2ul * w->pairs];

		if (raw_qp(c, pd, &w->cq, depth, SHM_IWARP, &q[0]) < 0 ||
			raw_qp(c, pd, &w->cq, 2, SHM_IWARP, &q[1]) < 0 ||
			hostile_self(&w->h, &q[0], &q[1]) < 0)
			break;
	}
	return rc < 0 ? rc : w->pairs == 0 ? -EDQUOT : 0;
}

/* Posts 8-byte Writes to each send queue, until it is full or as many as it holds were posted:
 * saker takes them meanwhile, and the CQ would overflow before the next poll. Every fourth Write
 * has a completion, which carries the number of the QP. */
static void
crowd_post(struct crowd *w)
{
	const struct rd_sge sge = {w->mem.base, 8, w->mem.stag};

	for (uint32_t i = 0; i < w->pairs; i++) {
		struct raw_qp *q = &w->qp[2ul * i];

		for (uint32_t n = 0; n < w->depth && shm_prod_room(&q->sq) > 0; n++) {
			uint8_t flags = ++w->posted[i] % 4 == 0 ? RD_SIGNALED : 0;

			raw_request(
				&w->h.c, q, RD_WRITE, flags, &sge, w->mem.base + 64, w->mem.stag);
		}
	}
}

/* Prints the events that precede a failed Write: they have its reason. */
static void
crowd_events(struct crowd *w)
{
	struct shm_msg m;

	while (raw_event(&w->h.c, &m))
		fprintf(stderr, "event %u: %s\n", m.op, strerror(-m.status));
}

static int
crowd_poll(struct crowd *w)
{
	struct shm_cqe e;

	raw_beat(&w->h.c);
	while (raw_poll(&w->cq, &e)) {
		if (e.status != 0) {
			crowd_events(w);
			fprintf(stderr, "a Write failed with status %u\n", e.status);
			return -EIO;
		}
		w->done += 4;
	}
	return 0;
}

static void
crowd_free(struct crowd *w)
{
	raw_memory_free(&w->mem);
	free(w->qp);
	free(w->posted);
}

int
attack_busy(struct hostile *h)
{
	static struct crowd w;
	int rc;

	w = (struct crowd){.h = *h};
	rc = crowd_join(&w, h->number ? h->number : 1000, BUSY_DEPTH);
	if (rc == 0) {
		hostile_ready("busy QPs", w.pairs);
		while (rc == 0 && !hostile_stop) {
			crowd_post(&w);
			rc = crowd_poll(&w);
			hostile_rest(&w.h, 200);
		}
	}
	*h = w.h;
	h->done = w.done;
	crowd_free(&w);
	return rc;
}

/* Serves both clients in turn for `ns`. */
static int
share_run(struct crowd w[2], uint64_t ns)
{
	uint64_t end = now_ns() + ns;
	int rc = 0;

	w[0].done = w[1].done = 0;
	while (rc == 0 && now_ns() < end)
		for (int i = 0; i < 2 && rc == 0; i++) {
			crowd_post(&w[i]);
			rc = crowd_poll(&w[i]);
		}
	return rc;
}

int
share_main(int argc, char **argv)
{
	static struct crowd w[2];
	int rc = 0, ms = atoi(argv[argc - 1]);

	for (int i = 0; i < 2 && rc == 0; i++) {
		uint32_t n = (uint32_t)atoi(argv[4 + 3 * i]);
		uint32_t others = (uint32_t)atoi(argv[4 + 3 * (1 - i)]);
		uint32_t depth = SK_MIN(BUSY_DEPTH, SHARE_DEPTH / SK_MAX(n, others));

		w[i].h = (struct hostile){.where = argv[2 + 3 * i],
			.addr = argv[3 + 3 * i],
			.user = geteuid(),
			.port = (uint16_t)(atoi(argv[8]) + i)};
		rc = hostile_attach(&w[i].h, &w[i].h.c);
		w[i].h.attached = rc == 0;
		/* The single QP of a client is as deep as all queues of the other one together: a
		 * pass over the clients that does not find them full fills both alike. */
		if (rc == 0)
			rc = crowd_join(&w[i], n, n == 1 ? depth * others : depth);
	}
	if (rc == 0)
		rc = share_run(w, 200000000); /* until all queues are full */
	if (rc == 0)
		rc = share_run(w, (uint64_t)ms * 1000000);
	if (rc == 0)
		printf("share %.3f: %llu messages over %u QPs, %llu over %u\n",
			(double)w[0].done / (double)(w[0].done + w[1].done),
			(unsigned long long)w[0].done, w[0].pairs, (unsigned long long)w[1].done,
			w[1].pairs);
	for (int i = 0; i < 2; i++) {
		if (w[i].h.attached)
			raw_detach(&w[i].h.c);
		crowd_free(&w[i]);
	}
	return rc != 0;
}

/* ---- Servers of peers on the wire ---- */

struct server {
	struct raw_qp *qp;
	struct raw_cq cq;
	struct raw_mem mem;
	uint32_t nqps, used;
	bool sends;
};

#define SERVER_BYTES (1ull << 20)

static void
server_event(struct hostile *h, struct server *s, const struct shm_msg *m)
{
	struct shm_msg a = {
		.body.cm = {
			.request = m->body.cm.request, .crc = 2, .markers = 2, .ird = 4, .ord = 4}};

	if (m->op == SHM_EV_CONNECT_REQUEST && s->used < s->nqps) {
		a.body.cm.qp = s->qp[s->used++].i.qp;
		raw_post(&h->c, &a, SHM_ACCEPT);
		return;
	}
	h->refused += m->status < 0;
	if (m->op != SHM_EV_ESTABLISHED)
		return;
	h->done++;
	for (uint32_t i = 0; s->sends && i < s->used; i++) {
		const struct rd_sge sge = {s->mem.base, SERVER_BYTES, s->mem.stag};

		/* The address is the peer's affair: it never looks at it. */
		for (int n = 0; s->qp[i].i.qp == m->body.cm.qp && n < 2; n++)
			raw_request(&h->c, &s->qp[i], RD_WRITE, 0, &sge, 0, 0x100);
	}
}

static int
server_run(struct hostile *h, bool sends)
{
	struct server s = {.sends = sends, .nqps = h->number ? h->number : 100};
	struct shm_msg m = {.body.cm = {.lport = h->port,
				    .crc = 2,
				    .markers = 2,
				    .backlog = 256,
				    .rtr = SHM_RTR_NONE}};
	uint32_t pd, made = 0;
	int rc = raw_pd(&h->c, &pd);

	s.qp = calloc(s.nqps, sizeof(*s.qp));
	if (rc == 0)
		rc = s.qp == NULL ? -ENOMEM : raw_cq(&h->c, 4096, &s.cq);
	if (rc == 0)
		rc = raw_memory(&h->c, pd, SERVER_BYTES, 0, &s.mem);
	while (rc == 0 && made < s.nqps && raw_qp(&h->c, pd, &s.cq, 4, SHM_IWARP, &s.qp[made]) == 0)
		made++;
	s.nqps = made;
	if (rc == 0)
		rc = raw_command(&h->c, &m, SHM_LISTEN);
	if (rc == 0)
		hostile_ready("QPs for peers", made);
	while (rc == 0 && !hostile_stop) {
		if (raw_event(&h->c, &m))
			server_event(h, &s, &m);
		else
			hostile_rest(h, 500);
	}
	raw_memory_free(&s.mem);
	free(s.qp);
	return rc;
}

/* Accepts every peer, and posts no receive. */
int
attack_accept(struct hostile *h)
{
	return server_run(h, false);
}

/* Sends 2 MiB to each peer. */
int
attack_send(struct hostile *h)
{
	return server_run(h, true);
}
