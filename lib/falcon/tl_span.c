/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pushes without a transaction. On an ordered connection, a push that arrives in order goes to the
 * ULP at once, and the usual outcome ends it: nothing but its PSN and its resources must be known
 * in between. So such pushes have no object: the span of the connection records a number of them
 * with consecutive RSNs and PSNs, and equal resources. In all other respects they are transactions
 * in the state TL_ULP_TX, and they become that (tl_request()) when anything but FA_TAKEN happens to
 * them.
 */
#include "conn_priv.h"

bool
tl_run_ready(const struct fa_conn *c)
{
	const struct tl_conn *tl = &c->tl;

	return c->params.ordered && tl->held == 0 && tl->rnr == TL_RNR_NONE && !tl->restart &&
	       !tl->busy && !tl->running && !tl->dead;
}

static bool
tl_run_push(struct fa_conn *c, const struct wire_falcon_plain *h)
{
	struct fa_stack *s = c->s;
	struct tl_conn *tl = &c->tl;
	uint32_t cells = tl_cells(h->len, s->cfg.pools.rx_cell), limit = s->cfg.conn_requests;
	struct tl_span *span = &tl->span;

	if (h->rsn != tl->rx_rsn || (limit && tl->in_net >= limit) || cells > UINT16_MAX ||
		!tl_net_calm(&s->tl, cells))
		return false;
	if (span->n == 0)
		*span = (struct tl_span){h->rsn, h->psn, 0, (uint16_t)cells};
	else if (h->rsn != span->rsn + span->n || h->psn != span->psn + span->n ||
		 cells != span->cells)
		return false;
	if (!tl_net_take(c, cells, 1))
		return false;
	span->n++;
	tl->out++;
	tl->rx_rsn++;
	return true;
}

bool
tl_run_accept(struct fa_conn *c, uint64_t now, const struct wire_falcon_plain *h)
{
	switch (h->type) {
	case FALCON_PUSH_DATA:
		return tl_run_push(c, h);
	case FALCON_PULL_REQUEST:
		return tl_run_pull(c, h);
	default:
		return tl_run_pull_data(c, now, h);
	}
}

uint32_t
tl_run_room(const struct fa_conn *c)
{
	uint32_t limit = c->s->cfg.conn_requests, have = c->tl.in_net;

	return SK_MIN(
		tl_net_room(c, c->tl.span.cells), limit ? limit - SK_MIN(have, limit) : UINT32_MAX);
}

void
tl_run_pushes(struct fa_conn *c, uint32_t n)
{
	struct tl_conn *tl = &c->tl;

	tl->span.n = (uint16_t)(tl->span.n + n);
	tl->out += n;
	tl->rx_rsn += n;
	tl_net_take(c, tl->span.cells, n); /* tl_run_room() permits them */
}

/* Removes the first `n` pushes. */
static void
span_shorten(struct tl_span *span, uint32_t n)
{
	span->rsn += n;
	span->psn += n;
	span->n = (uint16_t)(span->n - n);
}

uint32_t
tl_span_taken(struct fa_conn *c, uint64_t now, uint32_t rsn, uint32_t n)
{
	struct tl_conn *tl = &c->tl;
	uint32_t psn = tl->span.psn, cells = tl->span.cells;

	if (tl->span.n == 0 || tl->span.rsn != rsn || tl->rnr != TL_RNR_NONE)
		return 0;
	n = SK_MIN(n, (uint32_t)tl->span.n);
	span_shorten(&tl->span, n);
	tl->out -= n;
	if ((int32_t)(rsn + n - tl->judged) > 0)
		tl->judged = rsn + n;
	pdl_ulp_acks(c, now, psn, n);
	tl_net_give(c, cells, n);
	return n;
}

static struct tl_txn *
span_object(struct fa_conn *c, const struct tl_span *span)
{
	struct tl_txn *t = tl_net_adopt(c, span->cells);

	t->state = TL_ULP_TX;
	t->psn = span->psn;
	t->pkt.rsn = span->rsn;
	TAILQ_INSERT_TAIL(&c->tl.ins, t, link);
	tl_insert(&c->s->tl.requests, t);
	return t;
}

/* Usually the ULP answers the oldest request. */
struct tl_txn *
tl_request_find(const struct fa_conn *c, uint32_t rsn)
{
	struct tl_txn *t = TAILQ_FIRST(&c->tl.ins);

	if (t == NULL || t->pkt.rsn == rsn)
		return t;
	return tl_find(&c->s->tl.requests, c, rsn);
}

struct tl_txn *
tl_request(struct fa_conn *c, uint32_t rsn)
{
	struct tl_span *span = &c->tl.span;
	struct tl_txn *t = tl_request_find(c, rsn);

	if (t != NULL || rsn - span->rsn >= span->n)
		return t;
	do { /* those before it become objects, too */
		t = span_object(c, span);
		span_shorten(span, 1);
	} while (t->pkt.rsn != rsn);
	return t;
}

void
tl_span_drop(struct fa_conn *c)
{
	uint32_t n = c->tl.span.n;

	tl_net_give(c, c->tl.span.cells, n);
	c->tl.out -= n;
	span_shorten(&c->tl.span, n);
}
