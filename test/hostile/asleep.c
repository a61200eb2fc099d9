/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that take or leave something and then sleep. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "hostile.h"

/* ---- Completion queues with a pending event ---- */

struct pending {
	struct raw_qp qp;
	struct raw_cq cq;
};

static int
pending_make(struct raw_client *c, uint32_t pd, struct pending *o)
{
	struct shm_msg m = {.body.move.state = RD_QP_ERR};
	int rc = raw_cq(c, 2, &o->cq);

	if (rc == 0)
		rc = raw_qp(c, pd, &o->cq, 2, SHM_IWARP, &o->qp);
	m.body.move.qp = o->qp.i.qp;
	return rc < 0 ? rc : raw_command(c, &m, SHM_QP_MODIFY);
}

/* Arms the CQ, and posts a request that completes at once because the QP has failed. */
static void
pending_fire(struct raw_client *c, struct pending *o)
{
	shm_arm(&o->cq.shared->arm, false);
	raw_request(c, &o->qp, RD_SEND, RD_SIGNALED, NULL, 0, 0);
}

/* Fills the event ring of a stage with events of the first CQ, whose completions are taken. */
static void
events_fill(struct hostile *h, struct pending *o)
{
	uint32_t room = 1u << h->c.h.event[0].log2_count;
	struct shm_cqe e;

	for (uint32_t i = 0; i < room && !hostile_stop; i++) {
		pending_fire(&h->c, o);
		while (!raw_poll(&o->cq, &e) && !hostile_stop)
			hostile_rest(h, 0);
		while (shm_prod_room(&o->qp.sq) == 0 && !hostile_stop)
			hostile_rest(h, 0);
	}
}

/* Arms thousands of CQs behind a full event ring, with a completion in each. */
int
attack_owed(struct hostile *h)
{
	uint32_t n = h->number ? h->number : 16000, made = 0, pd;
	struct pending *all = calloc(n, sizeof(*all));
	int rc = all == NULL ? -ENOMEM : raw_pd(&h->c, &pd);

	while (rc == 0 && made < n && pending_make(&h->c, pd, &all[made]) == 0)
		made++;
	if (rc < 0 || made == 0) {
		free(all);
		return rc < 0 ? rc : -EDQUOT;
	}
	events_fill(h, &all[0]);
	for (uint32_t i = 0; i < made; i++)
		pending_fire(&h->c, &all[i]);
	h->done = made;
	hostile_ready("CQs owe an event", made);
	hostile_sleep(h);
	free(all);
	return 0;
}

/* ---- All objects of a kind ---- */

static int
hog(struct hostile *h, enum shm_op op, const struct shm_msg *wanted, const char *what)
{
	uint32_t most = h->number ? h->number : 1u << 20;
	struct shm_msg m;

	for (h->done = 0; h->done < most; h->done++) {
		m = *wanted;
		if (op == SHM_LISTEN)
			m.body.cm.lport = (uint16_t)(10000 + h->done);
		if (raw_try(&h->c, &m, op) < 0) {
			fprintf(stderr, "%.*s\n", (int)sizeof(m.body.text), m.body.text);
			h->refused++;
			break;
		}
	}
	hostile_ready(what, h->done);
	return hostile_sleep(h);
}

int
attack_hog_qps(struct hostile *h)
{
	struct shm_msg m = {.body.qp = {.srq = SHM_NONE,
				    .sq_depth = 1,
				    .rq_depth = 1,
				    .max_send_sge = 1,
				    .max_recv_sge = 1,
				    .xrcd = SHM_NONE}};
	struct raw_cq cq;
	int rc = raw_pd(&h->c, &m.body.qp.pd);

	if (rc == 0)
		rc = raw_cq(&h->c, 2, &cq);
	if (rc < 0)
		return rc;
	m.body.qp.send_cq = m.body.qp.recv_cq = cq.i.cq;
	return hog(h, SHM_QP_CREATE, &m, "QPs");
}

int
attack_hog_cqs(struct hostile *h)
{
	const struct shm_msg m = {.body.cq.depth = 2};

	return hog(h, SHM_CQ_CREATE, &m, "CQs");
}

int
attack_hog_pds(struct hostile *h)
{
	const struct shm_msg m = {0};

	return hog(h, SHM_PD_CREATE, &m, "PDs");
}

int
attack_hog_listeners(struct hostile *h)
{
	const struct shm_msg m = {.body.cm = {.crc = 2, .markers = 2}};

	return hog(h, SHM_LISTEN, &m, "listeners");
}

int
attack_hog_clients(struct hostile *h)
{
	uint32_t n = 0, most = h->number ? h->number : 1024;
	struct raw_client *all = calloc(most, sizeof(*all));

	if (all == NULL)
		return -ENOMEM;
	while (n < most && hostile_attach(h, &all[n]) == 0)
		n++;
	h->done = n;
	hostile_ready("places of clients", n);
	hostile_sleep(h);
	while (n-- > 0)
		raw_detach(&all[n]);
	free(all);
	return 0;
}
