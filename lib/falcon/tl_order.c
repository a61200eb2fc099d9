/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of deliveries (sections 8.4.2, 8.5.2), and the only place that calls the ULP with them.
 * On an ordered connection requests go to the ULP, and completions and pull data return, strictly
 * by RSN; on an unordered one as they become ready.
 *
 * The ULP may call Falcon from inside a delivery, even with the outcome of that very request. So a
 * transaction's state is set before the call, and restored if the queue to the ULP was full.
 */
#include "conn_priv.h"

void
tl_ready(struct tl_txn *t)
{
	struct tl_conn *tl = &t->c->tl;

	if (!t->c->params.ordered)
		TAILQ_INSERT_TAIL(&tl->ready, t, queue);
	else if (t->state == TL_HELD && t->pkt.rsn == tl->rx_rsn)
		tl->head = t;
}

/* An RSN is skipped only when no request is with the ULP: if the ULP refused an earlier one, the
 * order would return to that one, and would have to find the mark again. */
void
tl_find_head(struct fa_conn *c, uint64_t now)
{
	struct tl_conn *tl = &c->tl;
	struct tl_txn *t;

	tl->head = NULL;
	while (tl->held && tl->head == NULL) {
		t = tl_find(&c->s->tl.requests, c, tl->rx_rsn);
		if (t != NULL && (t->state == TL_HELD || t->state == TL_REFUSED_BY_ULP)) {
			tl->head = t;
		} else if (t != NULL && t->state == TL_PASSED_OVER && tl->out == 0) {
			tl->rx_rsn++;
			tl_target_finish(t);
		} else {
			break;
		}
	}
	/* The clock of a gap restarts with each one that is closed. */
	if (tl->held && tl->head == NULL)
		tl_gap(c, now);
	else
		tl->gap_since = 0;
}

bool
tl_deliver(struct fa_conn *c, const struct fa_delivery *d)
{
	struct fa_stack *s = c->s;

	if (s->ops.deliver(s->ctx, c, d))
		return true;
	c->tl.busy = true;
	fa_count(s, FA_DELIVER_BUSY);
	return false;
}

/* ---- Deliveries to the initiator's ULP ---- */

static void
tl_order_complete(struct fa_conn *c, struct tl_txn *t)
{
	struct fa_delivery d = {.type = FA_COMPLETION,
		.completion = t->completion,
		.ulp_code = t->ulp_code,
		.rsn = t->pkt.rsn,
		.request_len = t->pkt.request_len};

	if (t->type == FALCON_PULL_REQUEST && t->completion == FA_DONE) {
		d.type = FA_PULL_DATA;
		d.buf = t->buf;
	}
	if (!tl_deliver(c, &d)) {
		if (!c->params.ordered)
			TAILQ_INSERT_HEAD(&c->tl.ready, t, queue);
		return;
	}
	t->buf = NULL;
	TAILQ_REMOVE(&c->tl.reqs, t, link);
	tl_request_rx_done(c->s, t);
	t->state = TL_GONE;
	if (!t->in_pdl)
		tl_request_free(c->s, t);
}

/* Returns the number of complete pushes from `t` on whose RSNs follow each other. */
static uint32_t
pushes_done(const struct tl_txn *t)
{
	uint32_t n = 0, rsn = t->pkt.rsn;

	for (; t != NULL && t->state == TL_READY && t->type == FALCON_PUSH_DATA &&
		t->completion == FA_DONE && t->pkt.rsn == rsn + n;
		t = TAILQ_NEXT(t, link))
		n++;
	return n;
}

/* Does what tl_order_complete() does for the first `n` requests, which pushes_done() counted, with
 * one delivery. */
static void
complete_run(struct fa_conn *c, uint32_t n)
{
	struct tl_txn *t = TAILQ_FIRST(&c->tl.reqs);
	struct fa_delivery d = {.type = FA_COMPLETION,
		.completion = FA_DONE,
		.rsn = t->pkt.rsn,
		.more = n - 1,
		.request_len = t->pkt.request_len};

	if (!tl_deliver(c, &d))
		return;
	for (; n > 0; n--) {
		t = TAILQ_FIRST(&c->tl.reqs);
		TAILQ_REMOVE(&c->tl.reqs, t, link);
		tl_request_rx_done(c->s, t);
		t->state = TL_GONE;
		if (!t->in_pdl)
			tl_request_free(c->s, t);
	}
}

/* Completes requests that never had a transaction, after all others. */
static void
complete_lost(struct fa_conn *c)
{
	struct tl_conn *tl = &c->tl;
	struct fa_delivery d = {.type = FA_COMPLETION, .completion = tl->lost_code};

	while (tl->lost && !tl->busy && tl->lost_rsn != tl->tx_rsn) {
		d.rsn = tl->lost_rsn++;
		if (!tl_deliver(c, &d))
			tl->lost_rsn--;
	}
}

/* ---- Deliveries to the target's ULP ---- */

static void
tl_order_offer(struct fa_conn *c, struct tl_txn *t)
{
	struct tl_conn *tl = &c->tl;
	struct fa_delivery d = {.type = t->type == FALCON_PUSH_DATA ? FA_PUSH : FA_PULL,
		.rsn = t->pkt.rsn,
		.request_len = t->pkt.request_len,
		.restart = tl->restart,
		.buf = t->buf};

	t->state = TL_ULP_TX;
	t->buf = NULL;
	tl->out++;
	tl->restart = false;
	if (tl_deliver(c, &d))
		return;
	t->state = TL_HELD;
	t->buf = d.buf;
	tl->out--;
	tl->restart = d.restart;
	if (!c->params.ordered)
		TAILQ_INSERT_HEAD(&tl->ready, t, queue);
}

/* Delivers the head of an ordered connection. State that is set before the call is restored after
 * it, if the queue to the ULP was full. */
static void
offer_head(struct fa_conn *c, uint64_t now)
{
	struct tl_conn *tl = &c->tl;
	struct tl_txn *t = tl->head;
	uint8_t rnr = tl->rnr;

	tl_rnr_leave(t);
	tl_hold(tl, t, -1u);
	tl->rx_rsn++;
	tl->head = NULL;
	tl->offer = false;
	if (rnr == TL_RNR_WAIT)
		tl->rnr = TL_RNR_PROBE;
	tl_order_offer(c, t);
	if (!tl->busy) {
		if (!tl->held)
			tl->gap_since = 0;
		else if (tl->head == NULL && tl->rnr == TL_RNR_NONE)
			tl_find_head(c, now);
		return;
	}
	tl->rnr = rnr;
	tl->offer = rnr == TL_RNR_WAIT;
	tl->head = t;
	tl->rx_rsn = t->pkt.rsn;
	tl_hold(tl, t, 1);
}

static void
run_ordered(struct fa_conn *c, uint64_t now)
{
	struct tl_conn *tl = &c->tl;
	struct tl_txn *t;
	uint32_t n;

	while (!tl->busy) {
		t = TAILQ_FIRST(&tl->reqs);
		n = t != NULL && c->s->cfg.runs ? pushes_done(t) : 0;
		if (n > 0)
			complete_run(c, n);
		else if (t != NULL && t->state == TL_READY)
			tl_order_complete(c, t);
		else if (tl->head != NULL &&
			 (tl->rnr == TL_RNR_NONE || (tl->rnr == TL_RNR_WAIT && tl->offer)))
			offer_head(c, now);
		else
			break;
	}
}

static void
run_unordered(struct fa_conn *c)
{
	struct tl_conn *tl = &c->tl;
	struct tl_txn *t;

	while (!tl->busy && (t = TAILQ_FIRST(&tl->ready)) != NULL) {
		TAILQ_REMOVE(&tl->ready, t, queue);
		if (t->state == TL_READY)
			tl_order_complete(c, t);
		else
			tl_order_offer(c, t);
	}
}

void
tl_run(struct fa_conn *c, uint64_t now)
{
	struct tl_conn *tl = &c->tl;
	struct fa_stack *s = c->s;

	if (tl->running)
		return;
	tl->running = true;
	if (c->params.ordered)
		run_ordered(c, now);
	else
		run_unordered(c);
	if (tl->lost && TAILQ_EMPTY(&tl->reqs)) {
		tl_wait_complete(c, tl->lost_code);
		complete_lost(c);
	}
	if (tl->dead && !tl->dead_sent && !tl->busy && TAILQ_EMPTY(&tl->reqs)) {
		tl->dead_sent = true;
		s->ops.event(s->ctx, c, FA_EV_DEAD);
	}
	tl->running = false;
	if (s->tl.waits[TL_DATA].count > 0)
		tl_data_resume(s, now);
	if (s->tl.waits[TL_REQUESTS].count > 0)
		tl_wait_resume(s, now);
	if (s->tl.xoff)
		tl_xon(s);
}

void
fa_deliver_resume(struct fa_conn *c, uint64_t now)
{
	c->tl.busy = false;
	tl_run(c, now);
}
