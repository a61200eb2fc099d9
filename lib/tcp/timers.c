/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection has three deadlines. One timer in the wheel serves the earlier one of the first two,
 * and one the third. A deadline that moves later or disappears does not change the wheel: the timer
 * fires early once and is set again. So a segment costs no operation on the wheel. Only where
 * segments come one by one, after a pause, the last acknowledgement stops the timer: it would fire
 * when other connections have driven this one and its neighbours in the wheel out of the cache.
 *
 *	T_RTX     one of: RTO (RFC 6298), PTO (RFC 8985 7), RACK's reordering wait (RFC 8985 6.3),
 *	          persist timer (RFC 9293 3.8.6.1)
 *	T_DELACK  delayed acknowledgement
 *	T_LIFE    the earlier of keepalive and the end of a smaller path MTU, or the end of
 *	          FIN-WAIT-2, TIME-WAIT and of the time that tcp_limit_life() and tcp_leave() set
 */
#include "tcp_priv.h"

static void
timers_arm(struct tcp_conn *c, unsigned k, uint64_t deadline)
{
	struct sk_timer *t = k == T_LIFE ? &c->life : &c->timer;

	c->due[k] = deadline;
	if (!sk_timer_is_set(t) || deadline < t->deadline)
		sk_timer_set(&c->s->wheel, t, deadline);
}

static void
timers_arm_rtx(struct tcp_conn *c, enum tcp_rtx_kind kind, uint64_t deadline)
{
	c->rtx_kind = kind;
	timers_arm(c, T_RTX, deadline);
}

/* Returns true when a tail loss probe may be scheduled (RFC 8985 7.2). */
static bool
probe_allowed(const struct tcp_conn *c)
{
	return c->flags & F_SACK && !(c->flags & F_TLP_OUT) && c->srtt && c->nsegs &&
	       !c->sacked_out && !c->backoff && (c->ca == CA_OPEN || c->ca == CA_CWR);
}

/* Returns the time after which a probe is sent (RFC 8985 7.2), ns. */
static uint64_t
probe_after(const struct tcp_conn *c)
{
	uint64_t rtt = SK_MAX(c->srtt, c->rack.min_rtt + c->s->wait_ns);
	uint64_t pto = 2 * rtt + (c->nsegs == 1 ? TCP_PEER_DELACK_NS : 0);

	return SK_MAX(pto, TCP_PTO_MIN_NS);
}

static void
arm_rtx(struct tcp_conn *c, uint64_t now)
{
	uint64_t rto = tcp_rtt_rto(c), pto;

	if (c->snd_una == c->snd_nxt) {
		c->rtx_kind = RTX_NONE;
		c->due[T_RTX] = SK_NEVER;
		if (c->flags & F_PAUSED && c->due[T_DELACK] == SK_NEVER)
			sk_timer_stop(&c->s->wheel, &c->timer);
		return;
	}
	if (probe_allowed(c)) {
		pto = probe_after(c);
		if (pto < rto) {
			timers_arm_rtx(c, RTX_PTO, now + pto);
			return;
		}
	}
	timers_arm_rtx(c, RTX_RTO, now + rto);
}

void
tcp_timers_sent(struct tcp_conn *c, uint64_t now)
{
	if (c->rtx_kind == RTX_RTO || c->rtx_kind == RTX_REO)
		return;
	/* The peer has opened its window: the backoff of the probes is none of this segment. It
	 * stays for one that persist_due() sends into a silly window. */
	if (c->rtx_kind == RTX_PERSIST && !c->retries)
		c->backoff = 0;
	arm_rtx(c, now);
}

void
tcp_timers_acked(struct tcp_conn *c, uint64_t now)
{
	arm_rtx(c, now);
}

void
tcp_timers_reorder(struct tcp_conn *c, uint64_t now, uint64_t wait)
{
	timers_arm_rtx(c, RTX_REO, now + wait);
}

/* Adds the time since the last call to the time for which the peer's window was closed. */
static void
window_was_closed(struct tcp_conn *c, uint64_t now)
{
	if (c->n_acked - c->closed_acked >= TCP_WINDOW_PROGRESS) {
		c->closed_ns = 0;
		c->closed_acked = c->n_acked;
	}
	c->closed_ns += now - c->closed_at;
	c->closed_at = now;
}

static bool
closed_too_long(const struct tcp_conn *c)
{
	return c->s->cfg.zero_window_ns && c->closed_ns >= c->s->cfg.zero_window_ns;
}

void
tcp_timers_window_closed(struct tcp_conn *c, uint64_t now)
{
	if (c->rtx_kind == RTX_PERSIST)
		return;
	c->closed_at = now;
	c->fast = false; /* see input_is_plain() */
	timers_arm_rtx(c, RTX_PERSIST, closed_too_long(c) ? now : now + tcp_rtt_rto(c));
}

void
tcp_timers_window_answered(struct tcp_conn *c, uint64_t now)
{
	c->retries = 0;
	window_was_closed(c, now);
}

/* Resets a connection whose window was closed for too long, and returns whether it did. */
static bool
end_closed(struct tcp_conn *c, uint64_t now)
{
	window_was_closed(c, now);
	if (!closed_too_long(c))
		return false;
	tcp_trace(c, TCP_ZERO_WINDOW_END);
	tcp_conn_reset(c, now, -ETIMEDOUT);
	return true;
}

bool
tcp_timers_window_shrunk(struct tcp_conn *c, uint64_t now)
{
	c->closed_at = SK_MAX(c->closed_at, c->last_tx);
	return end_closed(c, now);
}

/* The peer has discarded the retransmission that the timer waits for. Its deadline never becomes
 * later: a peer that opens and closes its window again and again does not delay its end. */
void
tcp_timers_window_opened(struct tcp_conn *c, uint64_t now)
{
	c->backoff = 0;
	if (c->rtx_kind == RTX_RTO)
		timers_arm_rtx(c, RTX_RTO, SK_MIN(c->due[T_RTX], now + tcp_rtt_rto(c)));
}

void
tcp_timers_ack_delayed(struct tcp_conn *c, uint64_t now)
{
	if (c->due[T_DELACK] == SK_NEVER)
		timers_arm(c, T_DELACK, now + c->s->cfg.delack_ns);
}

void
tcp_timers_life(struct tcp_conn *c, uint64_t deadline)
{
	timers_arm(c, T_LIFE, deadline);
}

/* Returns the smaller of two times of which 0 means none. */
static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/* Returns the silence after which the connection sends a probe as it is now; 0: none. A peer that
 * vanished would leave the bytes that the connection holds there for ever. */
static uint64_t
keepalive_idle(const struct tcp_conn *c)
{
	const struct tcp_config *cfg = &c->s->cfg;

	if (c->keepalive_ns)
		return c->keepalive_ns;
	return earlier(cfg->keepalive_idle_ns, tcp_holds_bytes(c) ? cfg->keepalive_held_ns : 0);
}

/* Returns the time between two checks of the silence; 0: none. */
static uint64_t
keepalive_period(const struct tcp_conn *c)
{
	const struct tcp_config *cfg = &c->s->cfg;

	return c->keepalive_ns ? c->keepalive_ns
			       : earlier(cfg->keepalive_idle_ns, cfg->keepalive_held_ns);
}

/* Sets the time of the next check of a connection that lives, SK_NEVER when keepalive needs none.
 */
static void
alive_until(struct tcp_conn *c, uint64_t keepalive)
{
	uint64_t next = c->pmtu.until ? SK_MIN(keepalive, c->pmtu.until) : keepalive;

	if (next != SK_NEVER && !c->limited)
		tcp_timers_life(c, next);
}

void
tcp_timers_alive(struct tcp_conn *c, uint64_t now)
{
	alive_until(c, keepalive_period(c) ? now + keepalive_period(c) : SK_NEVER);
}

void
tcp_set_keepalive(struct tcp_conn *c, uint64_t now, uint64_t idle_ns)
{
	c->keepalive_ns = idle_ns;
	if (c->state == TCPS_ESTABLISHED)
		tcp_timers_alive(c, now);
}

void
tcp_timers_stop(struct tcp_conn *c)
{
	for (unsigned k = 0; k < T_COUNT; k++)
		c->due[k] = SK_NEVER;
	c->rtx_kind = RTX_NONE;
	sk_timer_stop(&c->s->wheel, &c->timer);
	sk_timer_stop(&c->s->wheel, &c->life);
}

/* Probes the peer's closed window (RFC 9293 3.8.6.1), for as long as the peer answers and the
 * configuration permits it to keep our records. */
static void
persist_due(struct tcp_conn *c, uint64_t now)
{
	if (end_closed(c, now))
		return;
	if (c->retries >= c->s->cfg.data_retries) {
		tcp_trace(c, TCP_TIMED_OUT);
		tcp_conn_end(c, c->soft_error ? -c->soft_error : -ETIMEDOUT);
		return;
	}
	c->retries++;
	if (c->backoff < 16)
		c->backoff++;
	c->todo |= DO_WND_PROBE | DO_WND_FORCE;
	timers_arm_rtx(c, RTX_PERSIST, now + tcp_rtt_rto(c));
	tcp_conn_wake(c);
}

/* Returns the deadline of the oldest segment by the present estimates, when that of a probe or of
 * the RTO has passed. It is later than `now` if segments have begun to wait longer since the
 * segment was sent. */
static uint64_t
present_deadline(const struct tcp_conn *c, enum tcp_rtx_kind kind)
{
	if (c->seg_head == NULL)
		return 0;
	if (kind == RTX_PTO)
		return c->seg_head->sent_at + probe_after(c);
	return kind == RTX_RTO ? c->seg_head->sent_at + tcp_rtt_rto(c) : 0;
}

/* A probe and a retransmission set the timer anew when they leave. It runs before, too: while the
 * port is full or mbufs are missing, the connection would otherwise have no timer, and no end. */
static void
rtx_due(struct tcp_conn *c, uint64_t now)
{
	enum tcp_rtx_kind kind = c->rtx_kind;
	uint64_t deadline = present_deadline(c, kind);

	if (deadline > now) {
		timers_arm_rtx(c, kind, deadline);
		return;
	}
	c->rtx_kind = RTX_NONE;
	c->fast = false;
	switch (kind) {
	case RTX_PTO:
		c->todo |= DO_TLP;
		timers_arm_rtx(c, RTX_RTO, now + tcp_rtt_rto(c));
		tcp_conn_wake(c);
		break;
	case RTX_REO:
		tcp_loss_detect(c, now);
		if (c->rtx_kind == RTX_NONE)
			timers_arm_rtx(c, RTX_RTO, now + tcp_rtt_rto(c));
		tcp_conn_wake(c);
		break;
	case RTX_PERSIST:
		persist_due(c, now);
		break;
	case RTX_RTO:
		tcp_loss_rto(c, now);
		if (c->state != TCPS_CLOSED)
			timers_arm_rtx(c, RTX_RTO, now + tcp_rtt_rto(c));
		break;
	case RTX_NONE:
		break;
	}
}

static void
delack_due(struct tcp_conn *c, uint64_t now)
{
	if (!(c->todo & DO_ACK))
		return;
	c->flags |= F_LONE;
	tcp_conn_ack_now(c);
}

/* Asks the owner, once in a silence, to report the bytes that it has processed: it may report them
 * late, and then the connection holds none. Returns false when the owner was asked before. */
static bool
ask_owner(struct tcp_conn *c, uint64_t now)
{
	if (c->keepalive_ns || !c->rcv_unread || c->flags & F_ASKED)
		return false;
	c->flags |= F_ASKED;
	alive_until(c, now + c->s->cfg.keepalive_interval_ns);
	tcp_conn_event(c, TCP_EV_UNREAD);
	return true;
}

static void
keepalive_due(struct tcp_conn *c, uint64_t now)
{
	const struct tcp_config *cfg = &c->s->cfg;
	uint64_t idle = keepalive_idle(c), next = now + keepalive_period(c);

	if (!idle || now - c->last_rx < idle) {
		c->probes = 0;
		c->flags &= ~F_ASKED;
		alive_until(c, idle ? SK_MIN(next, c->last_rx + idle) : next);
		return;
	}
	if (ask_owner(c, now))
		return;
	if (c->snd_una == c->snd_nxt) { /* else the RTO decides on the peer */
		if (c->probes >= cfg->keepalive_probes) {
			tcp_trace(c, TCP_TIMED_OUT);
			tcp_conn_end(c, -ETIMEDOUT);
			return;
		}
		c->probes++;
		c->todo |= DO_KEEPALIVE;
		tcp_conn_wake(c);
	}
	alive_until(c, now + (c->keepalive_ns ? idle / 5 : cfg->keepalive_interval_ns));
}

void
tcp_timers_half_closed(struct tcp_conn *c, uint64_t now)
{
	c->half_closed_in = c->n_bytes_in;
	if (!c->limited) /* else the time is set */
		tcp_timers_life(c, now + TCP_FIN_WAIT_2_NS);
}

/* Ends a half-closed connection unless it is in use: only new bytes in order keep it, as a peer
 * that never closes could send other segments for ever. */
static void
half_closed_due(struct tcp_conn *c, uint64_t now)
{
	if (c->n_bytes_in != c->half_closed_in) {
		tcp_timers_half_closed(c, now);
		return;
	}
	tcp_trace(c, TCP_TIMED_OUT);
	tcp_conn_end(c, -ETIMEDOUT);
}

static void
life_due(struct tcp_conn *c, uint64_t now)
{
	if (c->limited && c->state != TCPS_TIME_WAIT) {
		tcp_left_due(c, now);
		return;
	}
	switch (c->state) {
	case TCPS_TIME_WAIT:
		if (c->refused != NULL) /* the owner has not accepted the last bytes yet */
			tcp_timers_life(c, now + 2 * c->s->cfg.msl_ns);
		else
			tcp_conn_end(c, 0);
		break;
	case TCPS_FIN_WAIT_2:
		half_closed_due(c, now);
		break;
	default:
		if (c->pmtu.until && c->pmtu.until <= now)
			tcp_pmtu_expire(c);
		if (c->state == TCPS_CLOSED)
			break;
		if (keepalive_period(c))
			keepalive_due(c, now);
		else
			alive_until(c, SK_NEVER);
	}
}

void
tcp_timers_fire(void *stack, struct sk_timer *t, uint64_t now)
{
	static void (*const due[T_COUNT])(struct tcp_conn *, uint64_t) = {
		[T_RTX] = rtx_due, [T_DELACK] = delack_due, [T_LIFE] = life_due};
	struct tcp_stack *s = stack;
	struct tcp_conn *c = &s->pool[((uintptr_t)t - (uintptr_t)s->pool) / sizeof(*c)];
	unsigned first = t == &c->life ? T_LIFE : 0, end = t == &c->life ? T_COUNT : T_LIFE;
	uint64_t next = SK_NEVER;

	tcp_conn_hold(c);
	for (unsigned k = first; k < end && c->state != TCPS_CLOSED; k++) {
		if (c->due[k] > now)
			continue;
		c->due[k] = SK_NEVER;
		due[k](c, now);
	}
	for (unsigned k = first; k < end; k++)
		next = SK_MIN(next, c->due[k]);
	if (next != SK_NEVER && c->state != TCPS_CLOSED)
		sk_timer_set(&s->wheel, t, next);
	tcp_conn_release(c);
}
