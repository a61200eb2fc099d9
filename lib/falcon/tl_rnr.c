/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests for which the ULP was not ready (sections 8.5.3.4, 11). A pull is kept and delivered
 * again when its timeout is over. A push is NACKed and kept as well: it is delivered again after
 * the timeout, or when its retransmission arrives. If its room is needed for a request at the head
 * of a line, TL drops the copy, since the initiator has its own.
 *
 * On an ordered connection all requests behind the refused one are refused: those that the ULP has
 * by then return with its outcomes, and those that arrive are NACKed here. The refused one is then
 * delivered alone, and the others follow when the ULP has taken it.
 */
#include "conn_priv.h"

#include "../base/mem.h"

static void
evictable(struct tl_txn *t)
{
	TAILQ_INSERT_TAIL(&t->c->s->tl.evictable, t, evict);
	t->evictable = true;
	t->c->tl.evictable++;
}

/* Makes a transaction not evictable any more: PDL would not pass another copy. */
static void
tl_rnr_keep(struct tl_txn *t)
{
	if (!t->evictable)
		return;
	TAILQ_REMOVE(&t->c->s->tl.evictable, t, evict);
	t->evictable = false;
	t->c->tl.evictable--;
}

static void
tl_rnr_nack(struct tl_txn *t, uint64_t now)
{
	pdl_nack(t->c, now, false, t->psn, FALCON_NACK_RNR, t->rnr, 0);
}

/* Blocks an ordered connection at `t`. */
static void
hold_up(struct fa_conn *c, struct tl_txn *t)
{
	struct tl_conn *tl = &c->tl;

	tl->rx_rsn = t->pkt.rsn;
	tl->head = t;
	tl->rnr = TL_RNR_WAIT;
	tl->rnr_code = t->rnr;
	tl->offer = false;
	tl->restart = true;
	tl->gap_since = 0;
	tl->rnr_at = t->due;
	tl_arm(c);
}

/* Unordered: inserts by time, usually at the end. */
static void
queue_by_due(struct fa_conn *c, struct tl_txn *t)
{
	struct tl_conn *tl = &c->tl;
	struct tl_txn *before = TAILQ_LAST(&tl->refused, tl_list);

	while (before != NULL && before->due > t->due)
		before = TAILQ_PREV(before, tl_list, queue);
	if (before != NULL)
		TAILQ_INSERT_AFTER(&tl->refused, before, t, queue);
	else
		TAILQ_INSERT_HEAD(&tl->refused, t, queue);
	if (t->due < tl->rnr_at) {
		tl->rnr_at = t->due;
		tl_arm(c);
	}
}

void
tl_rnr_refused(struct tl_txn *t, uint64_t now, const struct fa_outcome *o)
{
	struct fa_conn *c = t->c;
	bool push = t->type == FALCON_PUSH_DATA;

	t->state = TL_REFUSED_BY_ULP;
	t->buf = o->buf;
	t->rnr = o->rnr & (FALCON_RNR_CODES - 1);
	t->due = push && !c->s->cfg.push_reoffer ? SK_NEVER : now + wire_rnr_ns(t->rnr);
	if (c->params.ordered) {
		int32_t ahead = (int32_t)(t->pkt.rsn - c->tl.rx_rsn);

		/* A request behind one that was delivered again returns from its first delivery. */
		tl_hold(&c->tl, t, 1);
		if (ahead < 0 || (ahead == 0 && c->tl.rnr == TL_RNR_NONE))
			hold_up(c, t);
	} else {
		queue_by_due(c, t);
	}
	if (!push) {
		fa_count(c->s, FA_RNR_OUT);
	} else if (t->no_ack) {
		tl_pass_over(t, now);
	} else {
		evictable(t);
		tl_rnr_nack(t, now);
	}
}

void
tl_rnr_over(struct tl_txn *t, uint64_t now)
{
	struct tl_conn *tl = &t->c->tl;

	if (tl->rnr != TL_RNR_PROBE || t->pkt.rsn != tl->rx_rsn - 1)
		return;
	tl->rnr = TL_RNR_NONE;
	tl_find_head(t->c, now);
}

void
tl_rnr_behind(struct tl_txn *t, uint64_t now)
{
	t->state = TL_REFUSED_BY_ULP;
	t->rnr = t->c->tl.rnr_code;
	evictable(t);
	tl_rnr_nack(t, now);
}

void
tl_rnr_again(struct tl_txn *t, uint64_t now)
{
	struct tl_conn *tl = &t->c->tl;

	if (t->state != TL_REFUSED_BY_ULP)
		return; /* the ULP has it, or gets it immediately */
	if (!t->c->params.ordered) {
		tl_rnr_leave(t);
		t->state = TL_HELD;
		tl_ready(t);
	} else if (t != tl->head && tl->rnr == TL_RNR_WAIT) {
		tl_rnr_nack(t, now); /* the NACK may be repeated */
	} else {
		tl->offer |= t == tl->head;
		tl_rnr_keep(t);
	}
}

void
tl_rnr_due(struct fa_conn *c, uint64_t now)
{
	struct tl_conn *tl = &c->tl;
	struct tl_txn *t;

	tl->rnr_at = SK_NEVER;
	if (c->params.ordered) {
		tl->offer = tl->rnr == TL_RNR_WAIT && tl->head != NULL;
		return;
	}
	while ((t = TAILQ_FIRST(&tl->refused)) != NULL && t->due <= now) {
		tl_rnr_leave(t);
		t->state = TL_HELD;
		tl_ready(t);
	}
	if (t != NULL)
		tl->rnr_at = t->due;
}

void
tl_rnr_leave(struct tl_txn *t)
{
	if (t->state == TL_REFUSED_BY_ULP && !t->c->params.ordered)
		TAILQ_REMOVE(&t->c->tl.refused, t, queue);
	tl_rnr_keep(t);
}

bool
tl_rnr_evict(struct fa_stack *s, uint64_t now)
{
	struct tl_txn *t = TAILQ_LAST(&s->tl.evictable, tl_list);
	struct fa_conn *c;
	bool head;

	if (t == NULL)
		return false;
	c = t->c;
	head = t == c->tl.head;
	fa_count(s, FA_EVICTED);
	tl_target_finish(t);
	if (head && c->tl.held) /* until the initiator repeats it */
		tl_gap(c, now);
	return true;
}

void
tl_rnr_evict_last(struct fa_conn *c)
{
	fa_count(c->s, FA_EVICTED);
	tl_target_finish(TAILQ_LAST(&c->tl.refused, tl_list));
}
