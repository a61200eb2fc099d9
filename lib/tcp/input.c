/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes a segment of a connection: RFC 9293 3.10.7, with RFC 5961 (blind attacks), RFC 7323
 * (PAWS), RFC 3168 and RFC 8257 (ECN). A table has one handler per state. An established connection
 * without anything unusual takes the fast path: one list of guards, then straight code.
 */
#include "tcp_priv.h"

#define CONTROL (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK | TCP_URG | TCP_ECE | TCP_CWR)

/* A segment on its way through the handlers. */
struct seg_in {
	uint64_t now;
	const struct wire_tcp *tcp;
	struct tcp_slice *payload; /* NULL once a function owns it */
	uint32_t len;
	uint8_t ecn;
};

static void
input_drop(struct tcp_conn *c, struct seg_in *in)
{
	tcp_slice_drop(c->s, in->payload);
	in->payload = NULL;
}

static void
refuse_segment(struct tcp_conn *c, struct seg_in *in, enum tcp_reason reason)
{
	tcp_count(c->s, reason);
	input_drop(c, in);
}

/* Sends a challenge ACK (RFC 5961 7), unless the connection sent too many recently. The number is
 * limited per connection and window of time. An attacker could measure a limit that all connections
 * share. */
static void
tcp_challenge(struct tcp_conn *c)
{
	uint64_t now = c->s->now;

	if (now - c->challenge_at >= TCP_CHALLENGE_NS || !c->challenge_at) {
		c->challenge_at = now;
		c->challenges = 0;
	}
	if (c->challenges >= TCP_CHALLENGES) {
		tcp_count(c->s, TCP_CHALLENGE_LIMIT);
		return;
	}
	c->challenges++;
	tcp_count(c->s, TCP_CHALLENGE);
	tcp_conn_ack_now(c);
}

/* ---- ECN ---- */

/* Updates the ECE flag of our acknowledgements: RFC 3168 6.1.3, or RFC 8257 3.2 (each change of CE
 * is acknowledged immediately, with the old state). */
static void
see_ecn(struct tcp_conn *c, const struct seg_in *in)
{
	bool ce = in->ecn == IP_ECN_CE, echo = c->flags & F_ECHO_CE;

	if (!(c->flags & F_ECN) || !in->len)
		return;
	if (ce)
		tcp_count(c->s, TCP_ECN_CE);
	if (c->s->cc->precise_ecn) {
		if (ce != echo && c->todo & DO_ACK)
			tcp_seg_pure_ack(c, in->now);
		c->flags = ce ? c->flags | F_ECHO_CE : c->flags & ~F_ECHO_CE;
		return;
	}
	if (in->tcp->flags & TCP_CWR)
		c->flags &= ~F_ECHO_CE;
	if (ce) {
		c->flags |= F_ECHO_CE;
		tcp_conn_ack_now(c);
	}
}

/* ---- The checks, in the order of RFC 9293 3.10.7.4 ---- */

/* Compares the timestamp with the last one (RFC 7323 5.3 R1). */
static bool
paws_ok(struct tcp_conn *c, const struct seg_in *in)
{
	if (!(c->flags & F_TS) || in->tcp->flags & TCP_RST)
		return true;
	if (!in->tcp->ts) /* RFC 7323 3.2: after the negotiation, each segment has it */
		return false;
	return (int32_t)(in->tcp->ts_val - c->ts_recent) >= 0 ||
	       in->now - c->ts_recent_at > TCP_PAWS_IDLE_NS;
}

/* First: checks the sequence number. Later steps cut off the bytes before and behind the window. */
static bool
seq_ok(const struct tcp_conn *c, const struct seg_in *in)
{
	uint32_t seq = in->tcp->seq, wnd = c->rcv_adv - c->rcv_nxt;
	uint32_t n = in->len + !!(in->tcp->flags & TCP_SYN) + !!(in->tcp->flags & TCP_FIN);

	if (seq == c->rcv_nxt)
		return true; /* also with a closed window: the acknowledgement counts */
	if (!n)
		return seq - c->rcv_nxt < wnd;
	return tcp_seq_lt(seq, c->rcv_adv) && tcp_seq_lt(c->rcv_nxt, seq + n);
}

/* Answers a segment that is not acceptable, so that a peer with wrong sequence numbers recovers. */
static void
not_acceptable(struct tcp_conn *c, struct seg_in *in)
{
	uint32_t seq = in->tcp->seq;

	tcp_count(c->s, TCP_OUT_OF_WINDOW);
	if (!(in->tcp->flags & TCP_RST)) {
		if (c->state == TCPS_SYN_RCVD && in->tcp->flags & TCP_SYN && seq == c->irs) {
			c->todo |= DO_SYN;
			tcp_conn_wake(c);
		} else if (in->len && tcp_seq_le(seq + in->len, c->rcv_nxt)) {
			tcp_count(c->s, TCP_DUP_PAYLOAD);
			tcp_reasm_dsack(c, seq, seq + in->len);
			tcp_conn_ack_now(c);
		} else if (in->len || seq + 1 == c->rcv_nxt) {
			tcp_conn_ack_now(c); /* a probe, or data behind the window */
		} else {
			tcp_challenge(c);
		}
	}
	input_drop(c, in);
}

/* Second: processes RST (RFC 5961 3.2). */
static void
reset_in(struct tcp_conn *c, struct seg_in *in)
{
	input_drop(c, in);
	if (in->tcp->seq != c->rcv_nxt) {
		tcp_challenge(c);
		return;
	}
	tcp_trace(c, TCP_RESET_IN);
	tcp_conn_end(c,
		c->state == TCPS_SYN_RCVD && !(c->flags & F_PASSIVE) ? -ECONNREFUSED : -ECONNRESET);
}

/* Fifth, in SYN-RECEIVED: completes the handshake. Returns false when the segment is processed. */
static bool
handshake_done(struct tcp_conn *c, struct seg_in *in)
{
	const struct wire_tcp *t = in->tcp;

	if (!tcp_seq_lt(c->snd_una, t->ack) || tcp_seq_lt(c->snd_nxt, t->ack)) {
		tcp_rst_answer(c->s, &c->tuple, t, in->len);
		input_drop(c, in);
		return false;
	}
	if (!c->retries)
		tcp_rtt_first(c, in->now);
	c->snd_una = c->rtt_seq = t->ack;
	c->snd_wnd = (uint32_t)t->window << c->snd_wscale;
	c->max_wnd = SK_MAX(c->max_wnd, c->snd_wnd);
	c->snd_wl1 = t->seq;
	c->snd_wl2 = t->ack;
	c->rtx_kind = RTX_NONE;
	c->due[T_RTX] = SK_NEVER;
	tcp_conn_established(c);
	return c->state != TCPS_CLOSED;
}

/* Fifth: processes ACK. Returns false when the segment is processed. */
static bool
ack_in(struct tcp_conn *c, struct seg_in *in)
{
	uint32_t ack = in->tcp->ack;

	if (c->state == TCPS_SYN_RCVD && !handshake_done(c, in))
		return false;
	if (tcp_seq_lt(c->snd_nxt, ack)) {
		refuse_segment(c, in, TCP_FUTURE_ACK);
		tcp_challenge(c);
		return false;
	}
	if (tcp_seq_lt(ack, c->snd_una)) {
		tcp_count(c->s, TCP_OLD_ACK);
		if (c->snd_una - ack <= c->max_wnd) {
			tcp_ack_overtaken(c, in->now, in->tcp);
			return true; /* the payload may still be valid */
		}
		tcp_challenge(c); /* RFC 5961 5.2 */
		input_drop(c, in);
		return false;
	}
	tcp_ack(c, in->now, in->tcp, in->len);
	if (c->state != TCPS_CLOSED && c->flags & F_FIN_SENT && c->snd_una == c->snd_nxt)
		tcp_fin_acked(c);
	return c->state != TCPS_CLOSED;
}

/* Seventh and eighth: process payload and FIN. */
static void
text_in(struct tcp_conn *c, struct seg_in *in)
{
	uint32_t end = in->tcp->seq + in->len;
	struct tcp_slice *payload = in->payload;

	if (c->state > TCPS_FIN_WAIT_2 || c->flags & F_FIN_TAKEN) {
		if (in->len || in->tcp->flags & TCP_FIN)
			tcp_conn_ack_now(c);
		input_drop(c, in);
		return;
	}
	/* The bytes of [rcv_nxt, end) are new; others are duplicates of what the owner had. */
	if (c->left && in->len && tcp_seq_lt(c->rcv_nxt, end)) {
		input_drop(c, in);
		tcp_left_unread(c, in->now);
		return;
	}
	if (in->tcp->flags & TCP_FIN && tcp_seq_le(end, c->rcv_adv) && !(c->flags & F_FIN_NOTED)) {
		c->flags |= F_FIN_NOTED;
		c->rcv_fin = end;
	}
	if (in->tcp->flags & TCP_FIN)
		tcp_conn_ack_now(c);
	if (in->len) {
		c->rcv_mss = SK_MAX(c->rcv_mss, SK_MIN(in->len, c->emss));
		in->payload = NULL;
		see_ecn(c, in);
		c->todo |= DO_ACK;
		tcp_reasm_input(c, in->tcp->seq, payload, in->len);
	}
	if (c->state != TCPS_CLOSED)
		tcp_fin_reached(c);
}

/* Stores the peer's timestamp (RFC 7323 4.3), after all checks of the segment: with the timestamp
 * of a forged one, PAWS would refuse each segment of the peer from here on. */
static void
take_timestamp(struct tcp_conn *c, const struct seg_in *in)
{
	if (!in->tcp->ts || tcp_seq_lt(c->rcv_acked, in->tcp->seq))
		return;
	c->ts_recent = in->tcp->ts_val;
	c->ts_recent_at = in->now;
}

/* Handles a segment in the states in which both sides have sent their SYN. */
static void
in_synchronized(struct tcp_conn *c, struct seg_in *in)
{
	const struct wire_tcp *t = in->tcp;

	if (!paws_ok(c, in)) {
		refuse_segment(c, in, TCP_PAWS);
		if (t->ts)
			tcp_conn_ack_now(c);
		return;
	}
	if (!seq_ok(c, in)) {
		not_acceptable(c, in);
		return;
	}
	if (t->flags & TCP_RST) {
		reset_in(c, in);
	} else if (t->flags & TCP_SYN) { /* fourth: RFC 5961 4.2 */
		input_drop(c, in);
		tcp_challenge(c);
	} else if (!(t->flags & TCP_ACK)) {
		refuse_segment(c, in, TCP_BAD_FLAGS);
	} else if (ack_in(c, in)) {
		take_timestamp(c, in);
		text_in(c, in);
	}
}

/* Handles a segment in SYN-RECEIVED. After a simultaneous open, the peer's SYN,ACK repeats its SYN
 * (RFC 9293 3.5 figure 7). The window check of the text would refuse it; here its acknowledgement
 * counts. */
static void
in_syn_rcvd(struct tcp_conn *c, struct seg_in *in)
{
	struct wire_tcp ack;

	if ((in->tcp->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == (TCP_SYN | TCP_ACK) &&
		!(c->flags & F_PASSIVE) && in->tcp->seq == c->irs) {
		ack = *in->tcp;
		ack.flags &= ~TCP_SYN;
		ack.seq++;
		ack.window >>= c->snd_wscale; /* the window of a SYN is not scaled */
		in->tcp = &ack;
	}
	in_synchronized(c, in);
}

/* Handles a segment in SYN-SENT (RFC 9293 3.10.7.3). */
static void
in_syn_sent(struct tcp_conn *c, struct seg_in *in)
{
	const struct wire_tcp *t = in->tcp;
	bool acked = t->flags & TCP_ACK;

	input_drop(c, in); /* TCP drops data in a SYN; the peer sends it again */
	if (acked && (!tcp_seq_lt(c->iss, t->ack) || tcp_seq_lt(c->snd_nxt, t->ack))) {
		tcp_rst_answer(c->s, &c->tuple, t, in->len);
		return;
	}
	if (t->flags & TCP_RST) {
		if (acked) {
			tcp_trace(c, TCP_RESET_IN);
			tcp_conn_end(c, -ECONNREFUSED);
		}
		return;
	}
	if (!(t->flags & TCP_SYN)) {
		tcp_count(c->s, TCP_BAD_FLAGS);
		return;
	}
	tcp_conn_options(c, t);
	if (!acked) { /* simultaneous open */
		if (c->s->cfg.ecn && (t->flags & (TCP_ECE | TCP_CWR)) == (TCP_ECE | TCP_CWR))
			c->flags |= F_ECN;
		c->state = TCPS_SYN_RCVD;
		c->todo |= DO_SYN;
		tcp_conn_wake(c);
		return;
	}
	if (c->s->cfg.ecn && !c->retries && (t->flags & (TCP_ECE | TCP_CWR)) == TCP_ECE)
		c->flags |= F_ECN;
	if (!c->retries)
		tcp_rtt_first(c, in->now);
	c->snd_una = c->rtt_seq = t->ack;
	c->rtx_kind = RTX_NONE;
	c->due[T_RTX] = SK_NEVER;
	tcp_conn_ack_now(c);
	tcp_conn_established(c);
}

/* A SYN with a later timestamp or sequence number cannot be mistaken for one of the old incarnation
 * (RFC 6191, RFC 9293 3.10.7.4 "fourth"). */
bool
tcp_reopen(struct tcp_conn *c, uint64_t now, const struct wire_tcp *t)
{
	bool later = t->ts && c->flags & F_TS ? (int32_t)(t->ts_val - c->ts_recent) > 0
					      : tcp_seq_lt(c->rcv_nxt, t->seq);

	if (c->state != TCPS_TIME_WAIT || c->refused != NULL || !later ||
		(t->flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) != TCP_SYN)
		return false;
	c->s->now = now;
	c->s->reopened = (struct tcp_reopened){c->tuple, c->snd_nxt, true};
	tcp_conn_end(c, 0);
	return true;
}

static void
in_time_wait(struct tcp_conn *c, struct seg_in *in)
{
	if (in->tcp->flags & TCP_RST) { /* RFC 1337: a reset does not end TIME-WAIT */
		input_drop(c, in);
		return;
	}
	if (in->tcp->flags & TCP_FIN && in->tcp->seq + in->len + 1 == c->rcv_nxt)
		/* "eighth": TIME-WAIT begins again. */
		tcp_timers_life(c, in->now + 2 * c->s->cfg.msl_ns);
	in_synchronized(c, in);
}

static void
in_closed(struct tcp_conn *c, struct seg_in *in)
{
	input_drop(c, in);
}

static void (*const handlers[TCPS_COUNT])(struct tcp_conn *, struct seg_in *) = {
	[TCPS_CLOSED] = in_closed,
	[TCPS_SYN_SENT] = in_syn_sent,
	[TCPS_SYN_RCVD] = in_syn_rcvd,
	[TCPS_ESTABLISHED] = in_synchronized,
	[TCPS_FIN_WAIT_1] = in_synchronized,
	[TCPS_FIN_WAIT_2] = in_synchronized,
	[TCPS_CLOSE_WAIT] = in_synchronized,
	[TCPS_CLOSING] = in_synchronized,
	[TCPS_LAST_ACK] = in_synchronized,
	[TCPS_TIME_WAIT] = in_time_wait,
};

/* ---- The fast path ---- */

/* Returns true when the next segments may try the fast path. Code that makes one of these
 * conditions untrue clears c->fast immediately. */
static bool
input_is_plain(const struct tcp_conn *c)
{
	return c->state == TCPS_ESTABLISHED && c->ca == CA_OPEN && c->ooo == NULL &&
	       c->refused == NULL && !c->sacked_out && !c->lost_out &&
	       !(c->flags & (F_FIN_NOTED | F_ECHO_CE | F_TLP_OUT)) && c->rtx_kind != RTX_PERSIST &&
	       c->flags & F_SACK;
}

static inline bool
fast_guards(const struct tcp_conn *c, const struct wire_tcp *t, uint32_t len, uint8_t ecn)
{
	return c->fast && (t->flags & CONTROL) == TCP_ACK && t->seq == c->rcv_nxt && !t->nsack &&
	       t->ts == !!(c->flags & F_TS) &&
	       (!t->ts || (int32_t)(t->ts_val - c->ts_recent) >= 0) &&
	       len <= c->rcv_adv - c->rcv_nxt && t->ack - c->snd_una <= c->snd_nxt - c->snd_una &&
	       ecn != IP_ECN_CE;
}

static void
fast_input(struct tcp_conn *c, const struct seg_in *in)
{
	const struct wire_tcp *t = in->tcp;
	uint32_t at = t->seq;

	if (t->ts && tcp_seq_le(t->seq, c->rcv_acked)) {
		c->ts_recent = t->ts_val;
		c->ts_recent_at = in->now;
	}
	c->snd_wnd = (uint32_t)t->window << c->snd_wscale;
	c->snd_wl1 = t->seq;
	c->snd_wl2 = t->ack;
	if (c->snd_wnd > c->max_wnd)
		c->max_wnd = c->snd_wnd;
	if (t->ack != c->snd_una) {
		tcp_ack_plain(c, in->now, t);
		if (c->state == TCPS_CLOSED) {
			tcp_slice_drop(c->s, in->payload);
			return;
		}
	}
	if (!in->len)
		return;
	if (in->len > c->rcv_mss)
		c->rcv_mss = SK_MIN(in->len, c->emss);
	c->todo |= DO_ACK;
	for (struct tcp_slice *p = in->payload; p != NULL; p = p->next) {
		p->seq = at;
		at += p->len;
	}
	c->rcv_nxt = at;
	tcp_reasm_deliver(c, in->payload, in->len);
}

/* Returns whether the connection has nothing to send but an acknowledgement that may be delayed
 * (RFC 9293 3.8.6.3). It then needs no turn before the timer. Without the fast path, too: the
 * connections would otherwise send in another order. */
static inline bool
ack_may_wait(const struct tcp_conn *c)
{
	bool plain = c->fast || (c->s->cfg.general && input_is_plain(c));

	return plain && c->todo == DO_ACK && c->unsent == NULL && !tcp_ack_due(c);
}

/* The acknowledgement of a lone segment leaves in this turn. Its delay would not save a segment, as
 * it did not last time, and would cost a timer, and memory of the peer, which keeps the data. */
static inline void
delay_ack(struct tcp_conn *c, uint64_t now)
{
	if (c->flags & F_LONE)
		tcp_conn_ack_now(c);
	else
		tcp_timers_ack_delayed(c, now);
}

void
tcp_input(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg, struct tcp_slice *payload,
	uint8_t ecn)
{
	struct seg_in in = {.now = now, .tcp = seg, .payload = payload, .ecn = ecn};

	in.len = tcp_slice_len(payload);
	c->s->now = now;
	c->flags = now - c->last_rx < TCP_PAUSE_NS ? c->flags & ~F_PAUSED : c->flags | F_PAUSED;
	c->last_rx = now;
	tcp_conn_hold(c);
	if (fast_guards(c, seg, in.len, ecn)) {
		fast_input(c, &in);
	} else {
		c->fast = false;
		handlers[c->state](c, &in);
		/* Frees payload that no handler took because the connection ended. */
		input_drop(c, &in);
		c->fast = !c->s->cfg.general && input_is_plain(c);
	}
	if (ack_may_wait(c))
		delay_ack(c, now);
	else if (c->todo || c->unsent != NULL || c->lost_out)
		tcp_conn_wake(c);
	tcp_conn_release(c);
}
