/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transactions that took too long (section 11): all resources are soft state, which TL frees after
 * a time much longer than packet delivery's own attempts. One timer per connection walks only old
 * transactions. Also: the end of a connection.
 */
#include "conn_priv.h"

#include "../base/mem.h"

void
tl_arm(struct fa_conn *c)
{
	fa_tl_timer(c, SK_MIN(c->tl.rnr_at, c->tl.reclaim_at));
}

void
tl_watch(struct fa_conn *c, uint64_t now)
{
	if (c->tl.reclaim_at != SK_NEVER || c->s->cfg.reclaim_ns == 0)
		return;
	c->tl.reclaim_at = now + c->s->cfg.reclaim_ns;
	tl_arm(c);
}

void
tl_gap(struct fa_conn *c, uint64_t now)
{
	c->tl.gap_since = fa_observed(c->s, now);
	tl_watch(c, now);
}

static void
tl_reclaim_give_up(struct fa_conn *c, uint64_t now, struct tl_txn *t)
{
	fa_count(c->s, FA_RECLAIMED);
	if (t->in_pdl && pdl_withdraw(c, now, &t->pkt, FALCON_RESYNC_TIMEOUT, FA_LOCAL_TIMEOUT))
		tl_packet_gone(c->s, t);
	tl_initiator_event(t, TL_EV_GIVE_UP, FA_LOCAL_TIMEOUT, 0);
}

/* Requests are in the order in which they began. A young one delays the completion of those behind
 * it, so the walk ends there. */
static void
reclaim_requests(struct fa_conn *c, uint64_t now)
{
	uint64_t ns = c->s->cfg.reclaim_ns, age;
	struct tl_txn *t;

	TAILQ_FOREACH (t, &c->tl.reqs, link) {
		if (t->state == TL_READY)
			continue;
		age = fa_observed(c->s, now) - t->pkt.since;
		if (age < ns) {
			c->tl.reclaim_at = now + ns - age;
			return;
		}
		tl_reclaim_give_up(c, now, t);
	}
}

/* Fails a connection whose requests wait for one that never arrives, and for which no Resync
 * arrives: the peer would have given it up long ago. The limit is twice the time, since both ends
 * may have the same. */
static void
reclaim_gap(struct fa_conn *c, uint64_t now)
{
	uint64_t ns = 2 * c->s->cfg.reclaim_ns, age = fa_observed(c->s, now) - c->tl.gap_since;

	if (c->tl.gap_since == 0 || c->tl.head != NULL)
		return;
	if (c->tl.out) {
		/* The ULP may refuse one of these, and the order returns to it. */
		tl_gap(c, now);
		return;
	}
	if (age < ns) {
		c->tl.reclaim_at = SK_MIN(c->tl.reclaim_at, now + ns - age);
		return;
	}
	fa_count(c->s, FA_RECLAIMED);
	fa_conn_fail(c, now, FA_DEAD_CONNECTION);
}

void
tl_timer(struct fa_conn *c, uint64_t now)
{
	struct tl_conn *tl = &c->tl;

	if (now >= tl->rnr_at)
		tl_rnr_due(c, now);
	if (now >= tl->reclaim_at) {
		tl->reclaim_at = SK_NEVER;
		reclaim_requests(c, now);
		reclaim_gap(c, now);
	}
	tl_run(c, now);
	tl_arm(c);
}

void
tl_dead(struct fa_conn *c, uint64_t now, enum fa_completion code)
{
	struct tl_conn *tl = &c->tl;
	struct tl_txn *t;

	tl->dead = true;
	TAILQ_FOREACH (t, &tl->reqs, link)
		tl_initiator_event(t, TL_EV_GIVE_UP, code, 0);
	if (!tl->lost) {
		tl->lost = true;
		tl->lost_rsn = tl->tx_rsn;
		tl->lost_code = code;
	}
	while ((t = TAILQ_FIRST(&tl->ins)) != NULL)
		tl_target_finish(t);
	tl_span_drop(c);
	tl->rnr = TL_RNR_NONE;
	tl->gap_since = 0;
	tl->rnr_at = tl->reclaim_at = SK_NEVER;
	tl_arm(c);
	tl_run(c, now);
}
