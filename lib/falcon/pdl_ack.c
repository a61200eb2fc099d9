/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incoming acknowledgements and NACKs, and the bases in other packets (9.2.3, 9.2.4). An
 * acknowledgement is a snapshot of the peer's windows. One with a base behind the current one is
 * older than another that has arrived, and is not used.
 */
#include "conn_priv.h"

/* Returns 0, FA_STALE_ACK or FA_FUTURE_ACK. */
static enum fa_reason
pdl_ack_check(const struct pdl_conn *d, uint32_t rbpsn, uint32_t dbpsn)
{
	const struct pdl_txw *r = &d->tx[PDL_REQUEST], *w = &d->tx[PDL_DATA];

	if (pdl_before(rbpsn, r->base) || pdl_before(dbpsn, w->base))
		return FA_STALE_ACK;
	if (rbpsn - r->base > r->next - r->base || dbpsn - w->base > w->next - w->base)
		return FA_FUTURE_ACK;
	return FA_NONE;
}

static void
pdl_ack_acked(struct fa_conn *c, uint64_t now, struct pdl_txw *w, struct fa_pkt *p)
{
	c->pdl.flow[p->flow].acked++;
	if (p->flags & PKT_RETX)
		pdl_loss_learn(c, now, p);
	pdl_txw_remove(w, p);
	tl_sent(c, now, p, p->resync ? p->completion : FA_DONE, p->ulp_code);
}

/* Does what pdl_ack_acked() does for all packets before `base`, where no packet counts as lost or
 * as retransmitted, on the only flow: what they have in common changes once. */
static void
acked_run(struct fa_conn *c, uint64_t now, struct pdl_txw *w, uint32_t base)
{
	struct fa_pkt *done[PDL_WINDOW_MAX];
	uint32_t n = 0, requests = 0, ndone = 0;

	for (uint32_t psn = w->base; psn != base; psn++) {
		struct fa_pkt *p = pdl_txw_get(w, psn);

		if (!pdl_bit(w->live, PDL_WINDOW_MAX, psn))
			continue;
		n++;
		requests += pdl_is_request(p);
		if (p->flags & PKT_RETX)
			pdl_loss_learn(c, now, p);
		if (p->resync)
			tl_sent(c, now, p, p->completion, p->ulp_code);
		else
			done[ndone++] = p;
	}
	tl_all_sent(c, now, done, ndone);
	c->pdl.flow[0].acked += n;
	w->flow_out[0] = (uint16_t)(w->flow_out[0] - n);
	w->orc = (uint16_t)(w->orc - requests);
	pdl_bits_clear(w->live, w->base, base - w->base);
	pdl_bits_clear(w->held, w->base, base - w->base);
}

/* Moves the base of a window: all packets before `base` have arrived. Returns whether it moved. */
static bool
pdl_ack_advance(struct fa_conn *c, uint64_t now, struct pdl_txw *w, uint32_t base)
{
	if (base == w->base)
		return false;
	if (c->pdl.flows == 1 && !w->lost_count && !w->orrc && !c->s->cfg.general)
		acked_run(c, now, w, base);
	else
		for (uint32_t psn = w->base; psn != base; psn++)
			if (pdl_bit(w->live, PDL_WINDOW_MAX, psn))
				pdl_ack_acked(c, now, w, pdl_txw_get(w, psn));
	pdl_txw_rebase(c->s, w, base);
	return true;
}

static bool
bases(struct fa_conn *c, uint64_t now, uint32_t rbpsn, uint32_t dbpsn)
{
	bool r = pdl_ack_advance(c, now, &c->pdl.tx[PDL_REQUEST], rbpsn);
	bool d = pdl_ack_advance(c, now, &c->pdl.tx[PDL_DATA], dbpsn);

	return r || d;
}

static void
pdl_ack_progress(struct fa_conn *c, uint64_t now)
{
	c->pdl.tlp_out = false;
	pdl_tlp_arm(c, now);
	pdl_wake(c);
}

enum fa_reason
pdl_piggyback(struct fa_conn *c, uint64_t now, uint32_t rbpsn, uint32_t dbpsn)
{
	const struct pdl_txw *w = c->pdl.tx;
	enum fa_reason why;

	if (rbpsn == w[PDL_REQUEST].base && dbpsn == w[PDL_DATA].base)
		return FA_NONE;
	why = pdl_ack_check(&c->pdl, rbpsn, dbpsn);
	if (why)
		return why;
	bases(c, now, rbpsn, dbpsn);
	pdl_ack_progress(c, now);
	return FA_NONE;
}

/* ---- EACK ---- */

/* Returns the outstanding packets among the 64 from base + offset on, as bits of a map on the
 * wire. */
static uint64_t
outstanding(const struct pdl_txw *w, unsigned offset)
{
	uint32_t psn = w->base + offset;
	unsigned i = psn % PDL_WINDOW_MAX / 64, shift = psn % 64;
	uint64_t bits = w->live[i] >> shift;

	if (shift)
		bits |= w->live[(i + 1) % PDL_WORDS] << (64 - shift);
	return bits;
}

/* Acknowledges the packets of a bitmap, behind a gap. Returns whether any was outstanding. */
static bool
ack_map(struct fa_conn *c, uint64_t now, struct pdl_txw *w, unsigned offset, uint64_t map)
{
	uint64_t bits = map & outstanding(w, offset);
	bool any = bits != 0;

	for (; bits; bits &= bits - 1) {
		uint32_t psn = w->base + offset + (uint32_t)__builtin_ctzll(bits);

		pdl_ack_acked(c, now, w, pdl_txw_get(w, psn));
	}
	return any;
}

/* Marks a packet as received and with the peer's ULP: it is not lost, even if it was marked so; the
 * ULP may take its time (9). */
static void
pdl_ack_hold(struct fa_conn *c, uint64_t now, struct pdl_txw *w, struct fa_pkt *p)
{
	p->timeouts = 0;
	if (p->flags & PKT_INSIST || pdl_bit(w->held, PDL_WINDOW_MAX, p->psn))
		return;
	pdl_txw_found(w, p);
	pdl_bit_set(w->held, PDL_WINDOW_MAX, p->psn);
	p->deadline = now + c->s->cfg.ulp_rto_ns;
	if (p->deadline < c->pdl.rtx_due) {
		c->pdl.rtx_due = p->deadline;
		pdl_due(c, p->deadline);
	}
}

static void
rx_map(struct fa_conn *c, uint64_t now, struct pdl_txw *w, unsigned offset, uint64_t map)
{
	uint64_t bits = map & outstanding(w, offset);

	for (; bits; bits &= bits - 1) {
		uint32_t psn = w->base + offset + (uint32_t)__builtin_ctzll(bits);

		pdl_ack_hold(c, now, w, pdl_txw_get(w, psn));
	}
}

static void
highest(struct pdl_txw *w, unsigned offset, uint64_t map)
{
	uint32_t psn = w->base + offset + 63 - (uint32_t)__builtin_clzll(map | 1);

	if (map && pdl_before(psn, w->next) && pdl_before(w->highest, psn))
		w->highest = psn;
}

static bool
eack(struct fa_conn *c, uint64_t now, const struct wire_falcon *h)
{
	struct pdl_txw *r = &c->pdl.tx[PDL_REQUEST], *w = &c->pdl.tx[PDL_DATA];
	bool any = ack_map(c, now, r, 0, h->req_map);

	highest(r, 0, h->req_map);
	for (unsigned i = 0; i < 2; i++) {
		any |= ack_map(c, now, w, i * 64, h->data_ack[i]);
		rx_map(c, now, w, i * 64, h->data_rx[i]);
		highest(w, i * 64, h->data_rx[i] | h->data_ack[i]);
	}
	return any;
}

/* ---- NACK ---- */

static const struct {
	uint8_t resync, completion;
} refusals[] = {
	[FALCON_NACK_XLR] = {FALCON_RESYNC_REMOTE_XLR, FA_REMOTE_ERROR},
	[FALCON_NACK_CIE] = {FALCON_RESYNC_CIE, FA_TARGET_CIE},
	[FALCON_NACK_NON_RECOVERABLE] = {FALCON_RESYNC_NON_RECOVERABLE, FA_TARGET_FATAL},
	[FALCON_NACK_INVALID_CID] = {FALCON_RESYNC_INVALID_CID, FA_TARGET_CID},
};

/* Processes an RNR NACK: the packet waits for max(RTO, the ULP's timeout) (11). */
static void
not_ready(struct fa_conn *c, uint64_t now, struct pdl_txw *w, struct fa_pkt *p, uint8_t code)
{
	uint64_t wait = SK_MAX(wire_rnr_ns(code), c->pdl.rto_ns);

	fa_trace(c, FA_RNR_IN);
	if (p->resync || p->type != FALCON_PUSH_DATA)
		return;
	pdl_txw_found(w, p);
	pdl_bit_set(w->held, PDL_WINDOW_MAX, p->psn);
	p->flags = (uint8_t)((p->flags & ~PKT_WHY) | PKT_RNR);
	p->timeouts = 0;
	/* The peer is alive: reclaim may wait. */
	p->since = p->counted_at = fa_observed(c->s, now);
	p->deadline = now + wait;
	if (p->deadline < c->pdl.rtx_due) {
		c->pdl.rtx_due = p->deadline;
		pdl_due(c, p->deadline);
	}
}

static void
pdl_ack_nack(struct fa_conn *c, uint64_t now, const struct wire_falcon *h)
{
	struct pdl_txw *w = &c->pdl.tx[h->nack_request ? PDL_REQUEST : PDL_DATA];
	struct fa_pkt *p;

	if (h->psn - w->base >= w->next - w->base) {
		fa_count(c->s, pdl_before(h->psn, w->base) ? FA_STALE_ACK : FA_NACK_UNKNOWN);
		return;
	}
	if (!pdl_bit(w->live, PDL_WINDOW_MAX, h->psn))
		return;
	p = pdl_txw_get(w, h->psn);
	switch (h->nack_code) {
	case FALCON_NACK_RESOURCES:
		/* The congestion algorithm reacts; otherwise the packet counts as lost. But the
		 * path and the peer are well: there is no reason to give up. */
		p->timeouts = 0;
		p->counted_at = fa_observed(c->s, now);
		return;
	case FALCON_NACK_RNR:
		not_ready(c, now, w, p, h->rnr_timeout);
		return;
	case FALCON_NACK_XLR:
	case FALCON_NACK_CIE:
	case FALCON_NACK_NON_RECOVERABLE:
	case FALCON_NACK_INVALID_CID:
		if (p->resync)
			return;
		pdl_to_resync(p, refusals[h->nack_code].resync, refusals[h->nack_code].completion,
			h->ulp_code);
		pdl_txw_found(w, p);
		pdl_txw_lost(w, p, PKT_INSIST);
		return;
	default:
		fa_count(c->s, FA_NACK_UNKNOWN);
	}
}

void
pdl_ack_input(struct fa_conn *c, uint64_t now, const struct fa_in *in)
{
	const struct wire_falcon *h = in->hdr;
	enum fa_reason why = pdl_ack_check(&c->pdl, h->rbpsn, h->dbpsn);
	unsigned flow = pdl_flow_of(&c->pdl, in->path);
	uint32_t rtt;

	if (why) {
		fa_count(c->s, why);
		/* On several paths, acknowledgements overtake each other: without this call, the
		 * times of a slow path would never be used. */
		if (why == FA_STALE_ACK && c->pdl.flows > 1) {
			pdl_cc_ack(c, now, in, flow);
			pdl_wake(c);
		}
		return;
	}
	bases(c, now, h->rbpsn, h->dbpsn);
	if (h->type == FALCON_EACK)
		eack(c, now, h);
	rtt = pdl_cc_ack(c, now, in, flow);
	if (h->type == FALCON_NACK)
		pdl_ack_nack(c, now, h);
	pdl_loss_ack(c, now, h, rtt);
	pdl_ack_progress(c, now);
}
