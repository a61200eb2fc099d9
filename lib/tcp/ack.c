/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applies an acknowledgement to the queue of records (RFC 9293 3.10.7.4, "fifth"): gives records
 * back to their owner, takes RTT samples, and informs RACK and the congestion controller.
 */
#include "tcp_priv.h"

/* Takes the records that `ack` covers whole out of the first segment, which is acknowledged in
 * part. Returns the last record to free, or NULL. */
static struct tcp_rec *
trim_head(struct tcp_conn *c, uint32_t ack)
{
	struct tcp_rec *h = c->seg_head, *r = h, *last = NULL;
	uint32_t n = 0;

	while (r->len <= ack - h->seq - n) {
		n += r->len;
		last = r;
		r = r->next;
	}
	if (last == NULL)
		return NULL;
	r->seq = h->seq + n;
	r->seg_len = h->seg_len - n;
	r->flags = h->flags;
	r->xmits = h->xmits;
	r->sent_at = h->sent_at;
	r->seg_next = h->seg_next;
	if (h->flags & R_LOST)
		c->lost_out -= n;
	if (h->flags & R_SACKED)
		c->sacked_out -= n;
	if (c->lost_hint == h)
		c->lost_hint = r;
	if (c->seg_tail == h)
		c->seg_tail = r;
	c->seg_head = r;
	c->queued -= n;
	return last;
}

/* Returns the last record of a segment. `end` is the first record behind it, sent or not. */
static struct tcp_rec *
last_record(struct tcp_rec *seg, const struct tcp_rec *end)
{
	while (seg->next != end)
		seg = seg->next;
	return seg;
}

static void
forget_segment(struct tcp_conn *c, struct tcp_rec *h, struct tcp_acked *a)
{
	if (h->flags & R_SACKED) {
		c->sacked_out -= h->seg_len;
		c->nsacked--;
	} else {
		tcp_rack_delivered(c, h, a);
	}
	if (h->flags & R_LOST)
		c->lost_out -= h->seg_len;
	if (c->lost_hint == h)
		c->lost_hint = h->seg_next;
	c->nsegs--;
	c->queued -= h->seg_len;
}

/* Takes the records below `ack` off the queue and gives them back to the owner. */
static void
clean_queue(struct tcp_conn *c, uint32_t ack, struct tcp_acked *a)
{
	struct tcp_rec *chain = c->seg_head, *h = chain, *last = NULL, *cut;

	while (h != NULL && tcp_seq_le(h->seq + h->seg_len, ack)) {
		struct tcp_rec *next = h->seg_next;

		forget_segment(c, h, a);
		last = last_record(h, next != NULL ? next : c->unsent);
		h = next;
	}
	c->seg_head = h;
	if (h == NULL) {
		c->seg_tail = NULL;
		if (c->unsent == NULL)
			c->q_tail = NULL;
	} else if (tcp_seq_lt(h->seq, ack)) {
		cut = trim_head(c, ack);
		last = cut != NULL ? cut : last;
	}
	if (last == NULL)
		return;
	last->next = NULL;
	c->s->ops.rec_free(c->s->ctx, chain);
}

static void
sample_rtt(struct tcp_conn *c, const struct tcp_acked *a)
{
	if (a->last_sent)
		tcp_rtt_min(c, a->now, a->now - a->last_sent);
	if (tcp_seq_lt(c->snd_una, c->rtt_seq))
		return;
	if (a->first_sent) {
		uint64_t rtt = a->now - a->first_sent;

		tcp_rtt_sample(c, a->now, rtt);
		tcp_rtt_wait(c->s, rtt - SK_MIN(rtt, c->rack.min_rtt));
	} else if (a->ts && a->ts_ecr && a->bytes) {
		/* Karn: the segment was sent more than once. The echoed timestamp identifies the
		 * transmission, with the precision of a tick. */
		uint32_t ticks = tcp_ticks(c, a->now) - a->ts_ecr;

		if (ticks > 1u << 16)
			return;
		tcp_rtt_sample(c, a->now, (uint64_t)(ticks + 1) << TCP_TICK_SHIFT);
	} else {
		return;
	}
	c->rtt_seq = c->snd_nxt;
}

static void
ack_progress(struct tcp_conn *c, uint32_t ack, struct tcp_acked *a)
{
	a->bytes = ack - c->snd_una;
	c->snd_una = ack;
	c->n_acked += a->bytes;
	c->backoff = c->retries = 0;
	clean_queue(c, ack, a);
}

void
tcp_ack_plain(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg)
{
	struct tcp_acked a = {.now = now, .ts = seg->ts, .ts_ecr = seg->ts_ecr};

	ack_progress(c, seg->ack, &a);
	sample_rtt(c, &a);
	if (c->flags & F_ECN && c->s->cc->ecn_feedback != NULL)
		c->s->cc->ecn_feedback(c, a.bytes, false);
	c->s->cc->acked(c, now, a.bytes, c->flags & F_CWND_LIMITED);
	tcp_timers_acked(c, now);
	tcp_conn_event(c, TCP_EV_SENT);
}

/* Takes SND.WND from the segment, unless it is an old one (RFC 9293 3.10.7.4). Returns true when
 * the window changed. */
static bool
update_window(struct tcp_conn *c, const struct wire_tcp *seg)
{
	uint32_t wnd = (uint32_t)seg->window << c->snd_wscale, old = c->snd_wnd;

	if (!(tcp_seq_lt(c->snd_wl1, seg->seq) ||
		    (c->snd_wl1 == seg->seq && tcp_seq_le(c->snd_wl2, seg->ack))))
		return false;
	c->snd_wnd = wnd;
	c->snd_wl1 = seg->seq;
	c->snd_wl2 = seg->ack;
	c->max_wnd = SK_MAX(c->max_wnd, wnd);
	return wnd != old;
}

/* Progress with a peer without SACK: the duplicate acknowledgements do not count any more, and a
 * partial acknowledgement identifies the next lost segment (RFC 6582 3.2). The same holds after a
 * timeout for segments that it did not mark, as they were sent shortly before it. */
static void
newreno_progress(struct tcp_conn *c)
{
	c->sacked_out = 0;
	c->dupacks = 0;
	if ((c->ca == CA_RECOVERY || c->ca == CA_LOSS) && tcp_seq_lt(c->snd_una, c->recover) &&
		c->seg_head != NULL && !(c->seg_head->flags & (R_RETRANS | R_LOST))) {
		tcp_loss_mark(c, c->seg_head);
		c->todo |= DO_RTX_FIRST;
	}
}

/* Notes that the peer is alive after a timeout; `opened`: it has opened its closed window. */
static void
retry_answered(struct tcp_conn *c, uint64_t now, bool opened)
{
	c->answered = true;
	if (opened)
		tcp_timers_window_opened(c, now);
}

void
tcp_ack(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg, uint32_t len)
{
	struct tcp_acked a = {.now = now,
		.reported = c->snd_una + c->sacked_out,
		.ts = seg->ts,
		.ts_ecr = seg->ts_ecr,
		.ece = (seg->flags & TCP_ECE) != 0};
	bool shut = !c->snd_wnd, window = update_window(c, seg);

	if (c->rtx_kind == RTX_PERSIST)
		tcp_timers_window_answered(c, now);
	else if (c->retries)
		retry_answered(c, now, shut && c->snd_wnd);
	if (seg->ack != c->snd_una) {
		ack_progress(c, seg->ack, &a);
		if (!(c->flags & F_SACK))
			newreno_progress(c);
	} else if (!len && !window && c->snd_una != c->snd_nxt && !(seg->flags & TCP_FIN) &&
		   !(c->flags & F_SACK)) {
		tcp_loss_dupack(c, &a); /* RFC 5681 2 */
	}
	if (c->flags & F_SACK && seg->nsack)
		tcp_sack_process(c, seg, &a);
	sample_rtt(c, &a);
	if (a.bytes || a.sacked) {
		tcp_rack_round(c, seg->ack);
		tcp_timers_acked(c, now);
	}
	tcp_loss_judge_rto(c, &a);
	tcp_loss_tlp_ack(c, seg->ack, &a);
	tcp_rack_acked(c, now);
	tcp_loss_after_ack(c, &a);
	if (a.bytes)
		tcp_conn_event(c, TCP_EV_SENT);
}

void
tcp_ack_overtaken(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg)
{
	struct tcp_acked a = {.now = now,
		.reported = c->snd_una + c->sacked_out,
		.ts = seg->ts,
		.ts_ecr = seg->ts_ecr};

	if (!(c->flags & F_SACK) || !seg->nsack)
		return;
	tcp_sack_process(c, seg, &a);
	if (a.sacked)
		tcp_timers_acked(c, now);
	tcp_rack_acked(c, now);
	tcp_loss_after_ack(c, &a);
}
