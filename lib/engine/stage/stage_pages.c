/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs that wait for missing pages of their client's memory. A QP has one request at most, with the
 * number of its index. When the request is done the transport tries again, and requests the next
 * pages if some are still missing. A request may outlast its QP; the QP that gets the index
 * meanwhile waits for it.
 *
 * A probe that fails raises a signal, which costs the loop some microseconds, and a client may
 * remove its pages again and again. So a turn has a budget of such probes, and a user has a rate:
 * requests that exceed it wait, and their QPs with them.
 */
#include "../../base/mem.h"
#include "../common/pages.h"
#include "../common/sigbus.h"
#include "qp_ops_priv.h"

#define PAGES_TURN 64 /* requests whose QPs continue in a turn */

/* Submits a request when the user's rate permits it. */
static void
pages_request(struct eng_stage *s, struct eng_stage_user *u, struct eng_fetch_req *r)
{
	uint64_t since = s->now - SK_MIN(s->now, (uint64_t)ENG_FETCH_BURST_NS);

	u->fetch_paid = SK_MAX(u->fetch_paid, since) + ENG_FETCH_NS;
	if (u->fetch_paid <= s->now) {
		eng_pages_submit(s->e->pages, r);
		return;
	}
	sk_count(s->counters, ENG_PAGE_RATE);
	sk_timer_set(&s->fetches, &r->timer, u->fetch_paid);
}

void
eng_pages_fetch(void *ctx, struct rd_qp *rd, const uint8_t *at, uint64_t len)
{
	struct eng_stage *s = ctx;
	const struct eng_qp *qp = eng_qp_of(rd);
	struct eng_fetch_req *r = eng_pages_req(s->e->pages, s->index, qp->index);

	sk_count(s->counters, ENG_PAGE_WAIT);
	s->faults++;
	s->spent.other += ENG_COST_FAULT;
	if (r->busy || sk_timer_is_set(&r->timer))
		return; /* the QP tries again when that request is done */
	r->at = at;
	r->len = len;
	r->guard = eng_guard_name(at);
	r->client = qp->client->index;
	pages_request(s, qp->payer->user, r);
}

static void
pages_fire(void *ctx, struct sk_timer *t, uint64_t now)
{
	struct eng_stage *s = ctx;
	struct eng_fetch_req *r = SK_CONTAINER(t, struct eng_fetch_req, timer);

	if (s->qps[r->number] != NULL) /* otherwise the QP has gone */
		eng_pages_submit(s->e->pages, r);
}

void
eng_pages_due(struct eng_stage *s)
{
	sk_wheel_poll(&s->fetches, s->now, PAGES_TURN, pages_fire, s);
}

bool
eng_pages_poll(struct eng_stage *s)
{
	struct eng_fetch_req *r;
	unsigned n = 0;

	while (n < PAGES_TURN && s->faults < ENG_FAULTS_TURN &&
		(r = eng_pages_done(s->e->pages, s->index)) != NULL) {
		struct eng_qp *qp = s->qps[r->number];

		n++;
		if (qp == NULL || qp->ops->pages == NULL)
			continue;
		eng_round_begin(s, qp);
		if (qp->ops->pages(s, qp))
			eng_qp_activate(s, qp);
		eng_round_charge(s, qp);
	}
	return n > 0;
}
