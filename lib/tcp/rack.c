/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RACK (RFC 8985 6): a segment is lost when one that was sent sufficiently later has been
 * delivered. What is sufficient is the reordering window, which starts at nothing and widens when
 * the network is seen to reorder.
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
	if (!tcp_seq_lt(end, r->fack))
		r->fack = end;
	else if (!(seg->flags & R_RETRANS))
		c->flags |= F_REORDERING;

	if (seg->flags & R_RETRANS) {
		/* The acknowledgement may be for an earlier transmission: then this says nothing.
		 */
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

/* Step 4: a DSACK says that a retransmission was for nothing, so the window was too small; once per
 * round trip. */
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

/* Step 5. Original transmissions are in the order of their times, so the walk ends at the first
 * that is too young and has nothing retransmitted behind it. */
void
tcp_rack_detect(struct tcp_conn *c, uint64_t now)
{
	const struct tcp_rack *r = &c->rack;
	uint64_t wait = 0, window, due;
	struct tcp_rec *seg;

	if (!r->xmit_ts || (c->ca == CA_OPEN && !c->sacked_out))
		return;
	window = r->rtt + reo_wnd(c);
	for (seg = c->seg_head; seg != NULL; seg = seg->seg_next) {
		if (seg->flags & (R_SACKED | R_LOST))
			continue;
		if (!sent_after(r->xmit_ts, r->end_seq, seg->sent_at, seg->seq + seg->seg_len)) {
			if (!tcp_seq_lt(seg->seq, c->rtx_high))
				break;
			continue;
		}
		due = seg->sent_at + window;
		if (due <= now) {
			tcp_count(c->s, TCP_RACK_LOSS);
			tcp_loss_mark(c, seg);
		} else {
			wait = SK_MAX(wait, due - now);
		}
	}
	if (wait)
		tcp_timers_reorder(c, now, wait);
}
