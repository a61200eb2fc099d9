/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detection of losses before a timeout (9.1.4): by the distance to a later packet that arrived, or,
 * with RACK, by the time since a packet that was sent later arrived; by the peer's report that it
 * dropped packets out of its window (OWN); and, with TLP, by a probe when no acknowledgement
 * arrives. Packets that the peer has are never lost: its ULP may take its time.
 */
#include "conn_priv.h"

#define TICKS_NS(t) ((uint64_t)(t)*FA_TICK_PS / 1000)

/* Flows with early retransmissions, for one event of the congestion algorithm each. */
struct found {
	bool flow[FA_FLOWS_MAX];
};

/*
 * Each early retransmission restarts the packet's timer (9.1.5). While other packets get through,
 * one that never does would be retransmitted for ever: so its counter advances as fast as timeouts
 * would have advanced it. Returns true when the counter is at its limit; the timer then does the
 * rest.
 */
static bool
exhausted(struct fa_conn *c, uint64_t now, struct fa_pkt *p)
{
	uint32_t max = c->s->cfg.max_retransmits;

	if (max == 0 || !pdl_count_timeout(c, now, p) || p->timeouts <= max)
		return false;
	p->deadline = c->pdl.rtx_due = now;
	pdl_due(c, now);
	return true;
}

static void
pdl_loss_lost(struct fa_conn *c, uint64_t now, struct pdl_txw *w, struct fa_pkt *p, struct found *k)
{
	if (exhausted(c, now, p))
		return;
	pdl_txw_lost(w, p, PKT_EARLY);
	k->flow[p->flow] = true;
}

static void
pdl_loss_report(struct fa_conn *c, uint64_t now, const struct found *k)
{
	for (unsigned i = 0; i < c->pdl.flows; i++)
		if (k->flow[i])
			pdl_cc_retransmit(c, now, i, FA_RUE_EARLY, 1);
}

static bool
is_distant(const struct fa_conn *c, const struct pdl_txw *w, uint32_t psn)
{
	return (int32_t)(w->highest - psn) > (int32_t)c->s->cfg.ooo_threshold;
}

/* Applies the distance heuristic with its recency check. */
static void
by_distance(struct fa_conn *c, uint64_t now, struct pdl_txw *w, uint64_t rtt, struct found *k)
{
	for (uint32_t psn = w->base; pdl_txw_find(w, &psn, PDL_MISSING); psn++) {
		struct fa_pkt *p = pdl_txw_get(w, psn);

		if (!is_distant(c, w, psn))
			return;
		if (p->sent_at + rtt < now)
			pdl_loss_lost(c, now, w, p, k);
	}
}

bool
pdl_loss_shown(const struct fa_conn *c, unsigned flow)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct pdl_txw *w = &c->pdl.tx[i];

		for (uint32_t psn = w->base; pdl_txw_find(w, &psn, PDL_ABSENT); psn++) {
			if (!is_distant(c, w, psn))
				break;
			if (pdl_txw_get(w, psn)->flow == flow)
				return true;
		}
	}
	return false;
}

/* OWN: the peer dropped packets beyond its window. Marks all that it does not have as lost, each at
 * most once in a round trip. */
static void
by_own(struct fa_conn *c, uint64_t now, struct pdl_txw *w, uint64_t rtt, struct found *k)
{
	for (uint32_t psn = w->base; pdl_txw_find(w, &psn, PDL_MISSING); psn++) {
		struct fa_pkt *p = pdl_txw_get(w, psn);

		if (p->sent_at + rtt < now)
			pdl_loss_lost(c, now, w, p, k);
	}
}

/* A packet that is acknowledged sooner than a round trip after its retransmission had only been
 * overtaken: the allowance for reordering grows (as RFC 8985 does by DSACK), and shrinks when that
 * no longer happens. */
void
pdl_loss_learn(struct fa_conn *c, uint64_t now, const struct fa_pkt *p)
{
	struct pdl_flow *f = &c->pdl.flow[p->flow];

	if (now - p->sent_at < TICKS_NS(f->rack_rtt) * 3 / 4) {
		f->reo_steps += f->reo_steps < PDL_REO_STEPS;
		f->reo_right = 0;
	} else if (f->reo_steps && ++f->reo_right == PDL_REO_PERSIST) {
		f->reo_steps--;
		f->reo_right = 0;
	}
}

/* RACK: a packet is lost when one that was sent after it on the same path has arrived, and a round
 * trip plus the allowance for reordering has passed since. */
static void
by_time(struct fa_conn *c, uint64_t now, struct pdl_txw *w, struct found *k)
{
	struct pdl_conn *d = &c->pdl;
	uint32_t ticks = fa_ticks(now);

	for (uint32_t psn = w->base; pdl_txw_find(w, &psn, PDL_MISSING); psn++) {
		struct fa_pkt *p = pdl_txw_get(w, psn);
		const struct pdl_flow *f = &d->flow[p->flow];
		uint32_t sent = fa_ticks(p->sent_at), newer = f->rack_t1 - sent;
		uint64_t rtt = TICKS_NS(f->rack_rtt), due;

		/* As in pdl_cc_ack(), a time that is not between `sent` and now is an older one. */
		if (!f->rack_valid || newer > ticks - sent ||
			(newer == 0 && !pdl_before(psn, w->highest))) {
			/* On one flow, all packets behind one that was sent only once were sent
			 * later. */
			if (d->flows == 1 && !(p->flags & PKT_RETX))
				return;
			continue;
		}
		due = p->sent_at + rtt + SK_MAX(rtt / 4 * (1u + f->reo_steps), PDL_REO_MIN_NS);
		if (due <= now)
			pdl_loss_lost(c, now, w, p, k);
		else
			d->loss_due = SK_MIN(d->loss_due, due);
	}
}

static void
rack(struct fa_conn *c, uint64_t now, struct found *k)
{
	c->pdl.loss_due = SK_NEVER;
	by_time(c, now, &c->pdl.tx[PDL_REQUEST], k);
	by_time(c, now, &c->pdl.tx[PDL_DATA], k);
	pdl_due(c, c->pdl.loss_due);
}

void
pdl_loss_ack(struct fa_conn *c, uint64_t now, const struct wire_falcon *h, uint32_t rtt_ticks)
{
	struct pdl_conn *d = &c->pdl;
	uint64_t rtt = rtt_ticks ? TICKS_NS(rtt_ticks) : d->rto_ns;
	struct found k = {0};

	if (c->s->cfg.rack) {
		rack(c, now, &k);
	} else if (h->type == FALCON_EACK) {
		by_distance(c, now, &d->tx[PDL_REQUEST], rtt, &k);
		by_distance(c, now, &d->tx[PDL_DATA], rtt, &k);
	}
	if (h->own_request)
		by_own(c, now, &d->tx[PDL_REQUEST], rtt, &k);
	if (h->own_data)
		by_own(c, now, &d->tx[PDL_DATA], rtt, &k);
	pdl_loss_report(c, now, &k);
}

void
pdl_loss_timer(struct fa_conn *c, uint64_t now)
{
	struct found k = {0};

	rack(c, now, &k);
	pdl_loss_report(c, now, &k);
	pdl_wake(c);
}

/* ---- Tail loss probe ---- */

static uint64_t
probe_timeout(const struct fa_conn *c)
{
	return SK_MAX(c->pdl.pto_ns, 2 * c->s->pdl.wait_ns + c->s->cfg.ack_delay_ns);
}

void
pdl_tlp_arm(struct fa_conn *c, uint64_t now)
{
	struct pdl_conn *d = &c->pdl;
	const struct pdl_txw *r = &d->tx[PDL_REQUEST], *w = &d->tx[PDL_DATA];

	if (!c->s->cfg.rack || d->tlp_out)
		return;
	if (r->base == r->next && w->base == w->next) {
		d->tlp_due = d->rtx_due = d->loss_due = SK_NEVER;
		return;
	}
	d->tlp_due = now + probe_timeout(c);
	pdl_due(c, d->tlp_due);
}

static struct fa_pkt *
first_missing(const struct pdl_txw *w)
{
	uint32_t psn = w->base;

	return pdl_txw_find(w, &psn, PDL_MISSING) ? pdl_txw_get(w, psn) : NULL;
}

/* Sends one probe for both windows. */
void
pdl_tlp(struct fa_conn *c, uint64_t now)
{
	struct pdl_txw *r = &c->pdl.tx[PDL_REQUEST], *w = &c->pdl.tx[PDL_DATA];
	struct fa_pkt *pull = first_missing(r), *p = first_missing(w);
	uint64_t due;

	if (r->lost_count || w->lost_count)
		/* A lost packet is a probe, too, once it may go out. */
		return;
	if (pull != NULL && (p == NULL || (pdl_is_request(p) && pdl_before(pull->rsn, p->rsn))))
		p = pull;
	if (p == NULL)
		return;
	due = p->sent_at + probe_timeout(c);
	if (due > now) {
		/* Since the packet left, hosts have become busy. */
		c->pdl.tlp_due = due;
		return;
	}
	c->pdl.tlp_out = true;
	pdl_txw_lost(&c->pdl.tx[pdl_window_of(p)], p, PKT_PROBE);
	pdl_wake(c);
}

uint32_t
pdl_data_in_doubt(const struct fa_conn *c, uint64_t now)
{
	const struct pdl_txw *w = &c->pdl.tx[PDL_DATA];
	uint32_t rtt = UINT32_MAX, n = w->next - w->base;
	const struct fa_pkt *p;

	if (n == 0 || !pdl_bit(w->live, PDL_WINDOW_MAX, w->base))
		return n;
	for (unsigned i = 0; i < c->pdl.flows; i++)
		rtt = SK_MIN(rtt, c->pdl.flow[i].cc.rtt);
	p = pdl_txw_get(w, w->base);
	return !(p->flags & PKT_RETX) && now - p->sent_at < TICKS_NS(rtt) / 8 ? 0 : n;
}
