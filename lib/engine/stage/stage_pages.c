/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs that wait for missing pages of their client's memory. A QP has one request at most, with the
 * number of its index. When the request is done the transport tries again, and requests the next
 * pages if some are still missing. A request may outlast its QP; the QP that gets the index
 * meanwhile waits for it.
 */
#include "../common/pages.h"
#include "qp_ops_priv.h"

#define PAGES_TURN 64 /* requests whose QPs continue in a turn */

void
eng_pages_fetch(void *ctx, struct rd_qp *rd, const uint8_t *at, uint64_t len)
{
	struct eng_stage *s = ctx;
	const struct eng_qp *qp = eng_qp_of(rd);
	struct eng_fetch_req *r = eng_pages_req(s->e->pages, s->index, qp->index);

	sk_count(s->counters, ENG_PAGE_WAIT);
	if (r->busy)
		return; /* the QP tries again when that request is done */
	r->at = at;
	r->len = len;
	r->client = qp->client->index;
	eng_pages_submit(s->e->pages, r);
}

bool
eng_pages_poll(struct eng_stage *s)
{
	struct eng_fetch_req *r;
	unsigned n = 0;

	while (n < PAGES_TURN && (r = eng_pages_done(s->e->pages, s->index)) != NULL) {
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
