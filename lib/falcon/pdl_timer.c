/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only timer of a connection and the deadlines behind it. A new deadline can only move the
 * timer forward; when the timer fires, it runs the deadlines that are due and is set to the
 * earliest of the others. So sending a packet seldom touches the wheel. Also: the measures after
 * retransmissions without effect (9.1.5, 11).
 */
#include "conn_priv.h"

void
pdl_due(struct fa_conn *c, uint64_t at)
{
	if (at >= c->pdl.timer_at)
		return;
	c->pdl.timer_at = at;
	fa_timer_set(c->s, &c->pdl.timer, at);
}

uint64_t
pdl_timeout(const struct fa_conn *c, const struct fa_pkt *p)
{
	const struct fa_config *cfg = &c->s->cfg;
	uint64_t rto = SK_MAX(c->pdl.rto_ns, 3 * c->s->pdl.wait_ns); /* behind that of a probe */

	return SK_MIN(rto << SK_MIN(p->timeouts, PDL_BACKOFF_MAX),
		SK_MAX(cfg->rto_max_ns, cfg->rto_min_ns));
}

bool
pdl_count_timeout(struct fa_conn *c, uint64_t now, struct fa_pkt *p)
{
	uint64_t observed = fa_observed(c->s, now);

	if (observed - p->counted_at < pdl_timeout(c, p))
		return false;
	p->counted_at = observed;
	p->timeouts += p->timeouts < UINT16_MAX;
	return true;
}

/* The results of a scan of a window, by flow. */
struct expiry {
	unsigned *times;          /* timeouts in succession of a packet that is lost */
	bool asked[FA_FLOWS_MAX]; /* an earlier packet goes out again, or did and is outstanding */
};

/*
 * Returns the new deadline of a packet whose deadline has passed, or an earlier time than `now` if
 * it has timed out. Often only acknowledgements are late, because those of other connections are in
 * front of them. So the deadline moves when hosts have become busy since the packet left, and a
 * packet waits for the acknowledgement of an earlier one of its flow, which goes out again or did:
 * only that one is sent in vain. If it is not, its acknowledgement shows RACK the packets that are
 * lost. After an RNR timeout the peer may not have kept a packet, and acknowledgements of other
 * packets do not show whether it has.
 */
static uint64_t
new_deadline(const struct fa_conn *c, uint64_t now, const struct pdl_txw *w, const struct fa_pkt *p,
	const struct expiry *e)
{
	const struct fa_config *cfg = &c->s->cfg;
	uint64_t timeout = pdl_timeout(c, p), at = p->sent_at + timeout;

	if (p->flags & PKT_RNR || (cfg->max_retransmits && p->timeouts > cfg->max_retransmits))
		return p->deadline;
	if (at > now && !pdl_bit(w->held, PDL_WINDOW_MAX, p->psn))
		return at;
	return cfg->rack && e->asked[p->flow] && !p->resync ? now + timeout : p->deadline;
}

/* Processes a timeout of `p`. Returns false after the last attempt of a Resync. */
static bool
pdl_timer_expire(
	struct fa_conn *c, uint64_t now, struct pdl_txw *w, struct fa_pkt *p, struct expiry *e)
{
	uint32_t max = c->s->cfg.max_retransmits;
	bool held = pdl_bit(w->held, PDL_WINDOW_MAX, p->psn);

	/* While a ULP waits out an RNR timeout, its path is not silent. */
	if (!(p->flags & PKT_RNR))
		(void)pdl_count_timeout(c, now, p);
	if (max && p->timeouts > max) {
		if (p->resync)
			return false;
		pdl_to_resync(p, FALCON_RESYNC_RETRANSMISSIONS, FA_LOCAL_TIMEOUT, 0);
	}
	if (!held)
		e->times[p->flow] = SK_MAX(e->times[p->flow], SK_MAX(p->timeouts, 1u));
	pdl_txw_lost(w, p, held ? PKT_INSIST : PKT_TIMEOUT);
	e->asked[p->flow] = true;
	return true;
}

static bool
scan(struct fa_conn *c, uint64_t now, struct pdl_txw *w, unsigned times[FA_FLOWS_MAX])
{
	struct expiry e = {.times = times};

	for (uint32_t psn = w->base; pdl_txw_find(w, &psn, PDL_WAITING); psn++) {
		struct fa_pkt *p = pdl_txw_get(w, psn);

		if (p->deadline <= now)
			p->deadline = new_deadline(c, now, w, p, &e);
		if (p->deadline <= now && !pdl_timer_expire(c, now, w, p, &e))
			return false;
		e.asked[p->flow] |= p->flags & PKT_RETX && !pdl_bit(w->held, PDL_WINDOW_MAX, psn);
		if (p->deadline > now)
			c->pdl.rtx_due = SK_MIN(c->pdl.rtx_due, p->deadline);
	}
	return true;
}

static void
rto(struct fa_conn *c, uint64_t now)
{
	unsigned times[FA_FLOWS_MAX] = {0};

	c->pdl.rtx_due = SK_NEVER;
	if (!scan(c, now, &c->pdl.tx[PDL_REQUEST], times) ||
		!scan(c, now, &c->pdl.tx[PDL_DATA], times)) {
		fa_trace(c, FA_GIVEN_UP);
		fa_conn_fail(c, now, FA_DEAD_CONNECTION);
		return;
	}
	for (unsigned i = 0; i < c->pdl.flows; i++)
		if (times[i])
			pdl_cc_retransmit(c, now, i, FA_RUE_TIMEOUT, times[i]);
	pdl_wake(c);
}

static bool
is_due(uint64_t *at, uint64_t now)
{
	if (*at > now)
		return false;
	*at = SK_NEVER;
	return true;
}

void
pdl_timer(struct fa_conn *c, uint64_t now)
{
	struct pdl_conn *d = &c->pdl;
	uint64_t next;

	d->timer_at = SK_NEVER;
	next = pdl_ack_timer(c, now);
	if (is_due(&d->pace_due, now))
		pdl_wake(c);
	if (is_due(&d->loss_due, now))
		pdl_loss_timer(c, now);
	if (is_due(&d->tlp_due, now))
		pdl_tlp(c, now);
	if (is_due(&d->rtx_due, now))
		rto(c, now);
	if (c->dead)
		return;
	next = SK_MIN(next, d->pace_due);
	next = SK_MIN(next, d->loss_due);
	next = SK_MIN(next, d->tlp_due);
	next = SK_MIN(next, d->rtx_due);
	pdl_due(c, next);
}
