/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RACK (RFC 8985 6): a segment is lost when another one that was sent sufficiently later has
 * arrived. The reordering window is the sufficient time: it begins at 0 and grows when the network
 * reorders.
 */
#include "tcp_priv.h"

void
tcp_rack_init(struct tcp_conn *c)
{
	c->rack.reo_wnd_mult = 1;
}

static bool
sent_after(uint64_t t1, uint32_t end1, uint64_t t2, uint32_t end2)
{
	return t1 > t2 || (t1 == t2 && tcp_seq_lt(end2, end1));
}

/* RFC 8985 6.2 steps 2 and 3. */
void
tcp_rack_delivered(struct tcp_conn *c, struct tcp_rec *seg, struct tcp_acked *a)
{
	struct tcp_rack *r = &c->rack;
	uint32_t end = seg->seq + seg->seg_len;
	uint64_t rtt = a->now - seg->sent_at;

	if (!(seg->flags & R_RETRANS)) {
		if (!a->first_sent)
			a->first_sent = seg->sent_at;
		a->last_sent = SK_MAX(a->last_sent, seg->sent_at);
	}
	if (seg->seg_len > r->largest)
		r->largest = (uint16_t)SK_MIN(seg->seg_len, (uint32_t)UINT16_MAX);
	if (!tcp_seq_lt(end, r->fack))
		r->fack = end;
	else if (!(seg->flags & R_RETRANS))
		c->flags |= F_REORDERING;

	if (seg->flags & R_RETRANS) {
		/* The acknowledgement may be of an earlier transmission: then it is no sample. */
		if (a->ts && (int32_t)(a->ts_ecr - tcp_ticks(c, seg->sent_at)) < 0)
			return;
		if (rtt < r->min_rtt)
			return;
	}
	r->rtt = rtt;
	if (sent_after(seg->sent_at, end, r->xmit_ts, r->end_seq)) {
		r->xmit_ts = seg->sent_at;
		r->end_seq = end;
	}
}

/* RFC 8985 6.2 step 4: a DSACK reports an unnecessary retransmission, so the window was too small.
 * It grows once per round trip. */
void
tcp_rack_dsack(struct tcp_conn *c)
{
	if (c->flags & F_RACK_DSACK)
		return;
	c->flags |= F_RACK_DSACK;
	c->rack.dsack_round = c->snd_nxt;
	if (c->rack.reo_wnd_mult < UINT8_MAX)
		c->rack.reo_wnd_mult++;
	c->rack.reo_wnd_persist = TCP_RACK_PERSIST;
}

void
tcp_rack_round(struct tcp_conn *c, uint32_t ack)
{
	if (c->flags & F_RACK_DSACK && !tcp_seq_lt(ack, c->rack.dsack_round))
		c->flags &= ~F_RACK_DSACK;
}

static uint64_t
reo_wnd(const struct tcp_conn *c)
{
	uint64_t w;

	if (!(c->flags & F_REORDERING) &&
		(c->ca == CA_RECOVERY || c->ca == CA_LOSS || c->nsacked >= TCP_DUP_THRESH))
		return 0;
	w = c->rack.reo_wnd_mult * (c->rack.min_rtt / 4);
	return SK_MIN(w, c->srtt);
}

/* RFC 8985 6.2 step 5. RACK requires SACK (3.3): a cumulative acknowledgement does not report which
 * of the segments behind it arrived, and each of them looks older than a retransmission that did.
 * A peer without SACK has NewReno, and the RTO finds its lost retransmissions. Original
 * transmissions are in the order of their times, so the walk ends at the first one that is too
 * young and has no retransmitted segment behind it. */
void
tcp_rack_detect(struct tcp_conn *c, uint64_t now)
{
	const struct tcp_rack *r = &c->rack;
	struct tcp_walks *w = tcp_walks(c);
	uint64_t wait = 0, window, due;
	struct tcp_rec *seg;

	c->todo &= ~DO_DETECT;
	if (!(c->flags & F_SACK) || !r->xmit_ts || (c->ca == CA_OPEN && !c->sacked_out))
		return;
	window = r->rtt + reo_wnd(c);
	for (seg = c->seg_head; seg != NULL; seg = seg->seg_next) {
		w->rack++;
		if (seg->flags & (R_SACKED | R_LOST))
			continue;
		if (!sent_after(r->xmit_ts, r->end_seq, seg->sent_at, seg->seq + seg->seg_len)) {
			if (!tcp_seq_lt(seg->seq, c->rtx_high))
				break;
			continue;
		}
		due = seg->sent_at + window;
		if (due <= now) {
			tcp_trace(c, TCP_RACK_LOSS);
			tcp_loss_mark(c, seg);
		} else {
			wait = SK_MAX(wait, due - now);
		}
	}
	if (wait)
		tcp_timers_reorder(c, now, wait);
}

/* Each acknowledgement may cause a walk over all segments in flight. When those of a turn exceed
 * TCP_MAX_SEGS, one walk before the next output replaces the others of the turn: it finds the same
 * losses. */
void
tcp_rack_acked(struct tcp_conn *c, uint64_t now)
{
	if (tcp_walks(c)->rack < TCP_MAX_SEGS)
		tcp_rack_detect(c, now);
	else
		c->todo |= DO_DETECT;
}
