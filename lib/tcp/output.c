/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection's turn: the segments that it sends, their order, and the limits of the two windows.
 * Each step sends at most the rest of the turn's budget; when the port is full, the rest waits for
 * the next poll.
 */
#include "tcp_priv.h"

struct turn {
	uint64_t now;
	unsigned sent, most;
	bool busy; /* the port is full (-EAGAIN) */
};

/* Notes the return value of a tcp_seg_ function. Returns true when the turn may continue. */
static bool
took(struct turn *t, int rc)
{
	if (rc < 0) {
		t->busy = true;
		return false;
	}
	t->sent += rc ? (unsigned)rc : 1;
	return t->sent < t->most;
}

static struct tcp_rec *
next_lost(struct tcp_conn *c)
{
	struct tcp_rec *r = c->lost_hint != NULL ? c->lost_hint : c->seg_head;

	while (r != NULL && !(r->flags & R_LOST))
		r = r->seg_next;
	c->lost_hint = r;
	return r;
}

static bool
send_lost(struct tcp_conn *c, struct turn *t)
{
	struct tcp_rec *r;
	uint32_t flight;
	int rc;

	while (c->lost_out && (r = next_lost(c)) != NULL) {
		flight = tcp_in_flight(c);
		/* After the path MTU became small, a segment makes many. Their number is bounded,
		 * as the walks over them are, and that of the cuts. The first one is always sent,
		 * at the latest after a timeout, so that the others can follow. */
		if (r->seg_len > c->emss && ((flight && c->nsegs >= 2 * TCP_MAX_SEGS) ||
						    (r != c->seg_head && tcp_seg_cuts_full(c))))
			return true;
		if (!(c->todo & DO_RTX_FIRST) && flight &&
			flight + SK_MIN(r->seg_len, c->emss) > c->cwnd)
			return true;
		rc = tcp_seg_retransmit(c, t->now, r);
		if (rc == 0)
			c->todo &= ~DO_RTX_FIRST;
		if (!took(t, rc))
			return false;
	}
	c->todo &= ~DO_RTX_FIRST;
	return true;
}

/* Returns the bytes that the peer's window has room for (RFC 9293 3.8.6). */
static uint32_t
window_left(const struct tcp_conn *c)
{
	uint32_t out = c->snd_nxt - c->snd_una;

	return c->snd_wnd > out ? c->snd_wnd - out : 0;
}

static uint32_t
cwnd_left(const struct tcp_conn *c)
{
	uint32_t flight = tcp_in_flight(c);

	if (!flight)
		return SK_MAX(c->cwnd, c->emss);
	return c->cwnd > flight ? c->cwnd - flight : 0;
}

/* Notes whether the congestion window limited the sender (RFC 9438 5.8, RFC 7661). */
static void
note_limit(struct tcp_conn *c, bool by_cwnd)
{
	bool limited = by_cwnd;

	if (!by_cwnd && c->cwnd < c->ssthresh)
		limited = tcp_in_flight(c) >= c->cwnd / 2;
	c->flags = limited ? c->flags | F_CWND_LIMITED : c->flags & ~F_CWND_LIMITED;
}

static bool
send_new(struct tcp_conn *c, struct turn *t)
{
	uint32_t wnd, cw;
	int n;

	if (c->snd_una == c->snd_nxt && t->now - c->last_tx > tcp_rtt_rto(c))
		c->s->cc->idle(c, t->now);
	while (c->unsent != NULL) {
		wnd = window_left(c);
		cw = cwnd_left(c);
		if (c->nsegs >= TCP_MAX_SEGS)
			return true;
		n = tcp_seg_new(c, t->now, SK_MIN(wnd, cw));
		if (n == 0) {
			note_limit(c, cw <= wnd);
			if (cw > wnd && c->snd_una == c->snd_nxt)
				tcp_timers_window_closed(c, t->now);
			return true;
		}
		if (!took(t, n))
			return false;
	}
	note_limit(c, false);
	return true;
}

/* Sends a tail loss probe (RFC 8985 7.3): new data if there is any and the peer has room, else the
 * last segment again. */
static bool
send_tlp(struct tcp_conn *c, struct turn *t)
{
	int rc;

	if (c->seg_tail == NULL || c->ca == CA_RECOVERY || c->ca == CA_LOSS) {
		c->todo &= ~DO_TLP;
		tcp_timers_acked(c, t->now);
		return true;
	}
	c->flags |= F_TLP_OUT; /* so that the RTO is set next, and not another probe */
	c->fast = false;       /* see input_is_plain() */
	rc = c->unsent != NULL ? tcp_seg_new(c, t->now, window_left(c)) : 0;
	if (rc > 0) {
		c->flags &= ~F_TLP_RETRANS;
	} else if (rc == 0) {
		rc = tcp_seg_retransmit(c, t->now, c->seg_tail);
		c->flags |= F_TLP_RETRANS;
	}
	if (rc < 0) {
		c->flags &= ~F_TLP_OUT;
		return took(t, rc);
	}
	tcp_trace(c, TCP_TLP);
	c->n_tlps++;
	c->tlp_end = c->snd_nxt;
	c->todo &= ~DO_TLP;
	tcp_timers_acked(c, t->now);
	return took(t, rc);
}

static bool
send_fin(struct tcp_conn *c, struct turn *t)
{
	if (c->todo & DO_FIN_AGAIN)
		return took(t, tcp_seg_fin(c, t->now, true));
	if ((c->flags & (F_FIN_QUEUED | F_FIN_SENT)) == F_FIN_QUEUED && c->unsent == NULL)
		return took(t, tcp_seg_fin(c, t->now, false));
	return true;
}

static bool
send_probes(struct tcp_conn *c, struct turn *t)
{
	int rc;

	if (!(c->todo & (DO_WND_PROBE | DO_KEEPALIVE)))
		return true;
	rc = tcp_seg_probe(c, t->now);
	if (rc == 0) {
		if (c->todo & DO_WND_PROBE)
			tcp_trace(c, TCP_ZERO_WINDOW_PROBE);
		if (c->todo & DO_KEEPALIVE)
			tcp_trace(c, TCP_KEEPALIVE);
		c->todo &= ~(DO_WND_PROBE | DO_KEEPALIVE | DO_WND_FORCE);
	}
	return took(t, rc);
}

/* Sends an acknowledgement that no other segment has carried: at least one for each second
 * full-sized segment (RFC 9293 3.8.6.3). */
static bool
output_send_ack(struct tcp_conn *c, struct turn *t)
{
	if (!(c->todo & DO_ACK))
		return true;
	if (tcp_ack_due(c))
		c->flags &= ~F_LONE;
	if (c->todo & DO_ACK_NOW || tcp_ack_due(c))
		return took(t, tcp_seg_pure_ack(c, t->now));
	tcp_timers_ack_delayed(c, t->now);
	return true;
}

/* Sends SACK blocks first and in a segment of their own: a full data segment has no room for
 * them. */
static bool
send_report(struct tcp_conn *c, struct turn *t)
{
	if (c->todo & DO_ACK_NOW && (c->nsack || c->flags & F_DSACK))
		return took(t, tcp_seg_pure_ack(c, t->now));
	return true;
}

/* Sends an acknowledgement in SYN-RECEIVED: the answer to a segment that is not acceptable (RFC
 * 9293 3.10.7.4), or a challenge (RFC 5961). */
static bool
send_early_ack(struct tcp_conn *c, struct turn *t)
{
	return !(c->todo & DO_ACK_NOW) || took(t, tcp_seg_pure_ack(c, t->now));
}

static bool
all_steps(struct tcp_conn *c, struct turn *t)
{
	if (c->todo & DO_SYN && !took(t, tcp_seg_syn(c, t->now)))
		return false;
	if (c->state < TCPS_ESTABLISHED)
		return c->state != TCPS_SYN_RCVD || send_early_ack(c, t);
	if (c->todo & DO_DETECT)
		tcp_loss_detect(c, t->now);
	if (!send_report(c, t))
		return false;
	if (c->lost_out && !send_lost(c, t))
		return false;
	if (c->todo & DO_TLP && !send_tlp(c, t))
		return false;
	if (c->unsent != NULL && !send_new(c, t))
		return false;
	if (c->flags & F_FIN_QUEUED && !send_fin(c, t))
		return false;
	return send_probes(c, t) && output_send_ack(c, t);
}

unsigned
tcp_output(struct tcp_conn *c, uint64_t now, unsigned most)
{
	struct turn t = {.now = now, .most = most};
	struct tcp_stack *s = c->s;

	if (all_steps(c, &t))
		return t.sent;
	c->where = t.busy ? ON_BUSY : ON_WORK;
	TAILQ_INSERT_TAIL(t.busy ? &s->busy : &s->work, c, work);
	return t.sent;
}
