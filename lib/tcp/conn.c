/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a connection: tcp_connect() or a listener creates it, then it is closed or aborted,
 * and ends. tcp_conn_end() is the only place where a connection ends, so that its records, slices,
 * lists and timers and the owner's table of tuples are always cleared together.
 */
#include <string.h>

#include "tcp_priv.h"

static struct tcp_conn *
tcp_conn_alloc(struct tcp_stack *s)
{
	struct tcp_conn *c = TAILQ_FIRST(&s->free);

	if (c != NULL) {
		TAILQ_REMOVE(&s->free, c, link);
		memset(c, 0, sizeof(*c));
	} else if (s->pool_fresh < s->pool_size) {
		c = &s->pool[s->pool_fresh++];
	}
	return c;
}

struct tcp_conn *
tcp_conn_new(struct tcp_stack *s, const struct tcp_tuple *t, uint32_t mtu)
{
	struct tcp_conn *c = tcp_conn_alloc(s);

	if (c == NULL)
		return NULL;
	c->s = s;
	c->tuple = *t;
	c->mtu = c->pmtu.link = mtu;
	c->peer_mss = sk_addr_is_v4(&t->raddr) ? TCP_MSS_DEFAULT_V4 : TCP_MSS_DEFAULT_V6;
	c->iss = tcp_isn(s, t, s->now);
	c->snd_una = c->snd_nxt = c->recover = c->rtx_high = c->rtt_seq = c->iss;
	c->ts_offset = tcp_ts_offset(s, t);
	c->rcv_mss = TCP_MSS_DEFAULT_V4;
	c->last_rx = c->last_tx = s->now;
	for (unsigned k = 0; k < T_COUNT; k++)
		c->due[k] = SK_NEVER;
	if (s->cfg.timestamps)
		c->flags |= F_TS; /* offered; tcp_conn_options() clears it when the peer refuses */
	tcp_conn_set_emss(c);
	tcp_rtt_init(c);
	tcp_rack_init(c);
	c->ssthresh = UINT32_MAX / 2;
	s->cc->init(c);
	return c;
}

void
tcp_conn_free_now(struct tcp_conn *c)
{
	struct tcp_listener *l = c->listener;

	TAILQ_INSERT_HEAD(&c->s->free, c, link);
	if (l != NULL)
		tcp_listen_unref(l);
}

void
tcp_conn_drop_buffers(struct tcp_conn *c)
{
	struct tcp_rec *chain = c->seg_head != NULL ? c->seg_head : c->unsent;

	c->seg_head = c->seg_tail = c->unsent = c->q_tail = c->lost_hint = NULL;
	c->queued = c->sacked_out = c->lost_out = c->nsegs = c->nsacked = 0;
	tcp_reasm_free_all(c);
	if (chain != NULL)
		c->s->ops.rec_free(c->s->ctx, chain);
}

/* The list of field `link` depends on the state. */
void
tcp_conn_unlink(struct tcp_conn *c)
{
	struct tcp_stack *s = c->s;

	tcp_listen_settle(c);
	if (c->state == TCPS_TIME_WAIT) {
		TAILQ_REMOVE(&s->tw, c, link);
		s->n_tw--;
		return;
	}
	if (c->left) {
		TAILQ_REMOVE(&s->left, c, link);
		s->n_left--;
		return;
	}
	tcp_listen_leave(c);
	if (c->flags & F_HALF)
		s->n_half--;
	else
		s->n_live--;
	c->flags &= ~F_HALF;
}

void
tcp_conn_event(struct tcp_conn *c, enum tcp_event ev)
{
	if ((c->flags & (F_ANNOUNCED | F_OVER)) != F_ANNOUNCED)
		return;
	tcp_conn_hold(c);
	c->s->ops.event(c->s->ctx, c, ev);
	tcp_conn_release(c);
}

void
tcp_conn_over(struct tcp_conn *c, int reason)
{
	if (c->flags & F_OVER)
		return;
	c->reason = reason;
	if (c->flags & F_ANNOUNCED) {
		c->flags |= F_OVER;
		c->s->ops.event(c->s->ctx, c, TCP_EV_CLOSED);
	}
	c->flags |= F_OVER;
}

void
tcp_conn_end(struct tcp_conn *c, int reason)
{
	struct tcp_stack *s = c->s;

	if (c->state == TCPS_CLOSED)
		return;
	tcp_conn_hold(c);
	tcp_timers_stop(c);
	if (c->where != ON_NONE)
		TAILQ_REMOVE(c->where == ON_WORK ? &s->work : &s->busy, c, work);
	c->where = ON_NONE;
	tcp_conn_unlink(c);
	c->state = TCPS_CLOSED;
	c->fast = false;
	tcp_conn_drop_buffers(c);
	tcp_conn_over(c, reason);
	s->ops.conn_removed(s->ctx, c);
	tcp_conn_release(c);
}

void
tcp_conn_time_wait(struct tcp_conn *c)
{
	struct tcp_stack *s = c->s;

	tcp_conn_unlink(c);
	c->state = TCPS_TIME_WAIT;
	c->fast = false;
	c->rtx_kind = RTX_NONE;
	c->due[T_RTX] = SK_NEVER;
	TAILQ_INSERT_TAIL(&s->tw, c, link);
	s->n_tw++;
	tcp_timers_life(c, s->now + 2 * s->cfg.msl_ns);
	if (c->flags & F_FIN_NOTIFIED) /* else the owner still has bytes to accept */
		tcp_conn_over(c, 0);
	if (s->n_tw > s->cfg.max_time_wait)
		tcp_conn_end(TAILQ_FIRST(&s->tw), 0);
}

bool
tcp_conn_set_emss(struct tcp_conn *c)
{
	bool v4 = sk_addr_is_v4(&c->tuple.raddr);
	uint32_t ours = c->mtu - (v4 ? IP4_LEN : IP6_LEN) - TCP_LEN;
	uint32_t old = c->emss;

	c->emss = SK_MIN(ours, c->peer_mss);
	if (c->flags & F_TS)
		c->emss -= TCP_TS_LEN;
	return c->emss != old;
}

void
tcp_conn_options(struct tcp_conn *c, const struct wire_tcp *syn)
{
	const struct tcp_config *cfg = &c->s->cfg;

	if (syn->mss)
		c->peer_mss = SK_MAX(syn->mss, TCP_MSS_MIN);
	c->flags &= ~(F_TS | F_SACK | F_WSCALE);
	if (syn->ts && cfg->timestamps) {
		c->flags |= F_TS;
		c->ts_recent = syn->ts_val;
		c->ts_recent_at = c->s->now;
	}
	if (syn->sack_ok && cfg->sack)
		c->flags |= F_SACK;
	if (syn->wscale != 0xff) {
		c->flags |= F_WSCALE;
		c->snd_wscale = SK_MIN(syn->wscale, TCP_WSCALE_MAX);
		c->rcv_wscale = cfg->rcv_wscale;
	}
	tcp_conn_set_emss(c);
	c->snd_wnd = c->max_wnd = syn->window; /* the window of a SYN is never scaled */
	c->snd_wl1 = syn->seq;
	c->snd_wl2 = syn->ack;
	c->irs = syn->seq;
	c->rcv_nxt = c->rcv_acked = syn->seq + 1;
	c->rcv_adv = c->rcv_nxt + SK_MIN(cfg->rcv_buf, 0xffffu);
}

void
tcp_conn_established(struct tcp_conn *c)
{
	struct tcp_stack *s = c->s;

	if (c->flags & F_HALF) {
		c->flags &= ~F_HALF;
		s->n_half--;
		s->n_live++;
		tcp_listen_established(c);
	}
	c->state = c->flags & F_FIN_QUEUED ? TCPS_FIN_WAIT_1 : TCPS_ESTABLISHED;
	c->todo &= ~DO_SYN; /* a SYN,ACK may wait for the port */
	c->retries = c->backoff = 0;
	c->recover = c->rtx_high = c->rack.fack = c->snd_una;
	s->cc->init(c);
	tcp_timers_alive(c, s->now);
	c->flags |= F_ANNOUNCED;
	tcp_conn_event(c, TCP_EV_CONNECTED);
	tcp_conn_wake(c);
}

int
tcp_connect(struct tcp_stack *s, uint64_t now, const struct tcp_tuple *t, uint32_t mtu, void *user,
	struct tcp_conn **out)
{
	struct tcp_conn *c;

	s->now = now;
	if (s->n_live >= s->cfg.max_conns)
		return -ENOBUFS;
	c = tcp_conn_new(s, t, mtu);
	if (c == NULL)
		return -ENOBUFS;
	s->n_live++;
	c->user = user;
	c->flags |= F_ANNOUNCED | F_CLAIMED;
	c->state = TCPS_SYN_SENT;
	c->todo = DO_SYN;
	tcp_conn_wake(c);
	*out = c;
	s->ops.conn_added(s->ctx, c, NULL);
	return 0;
}

void
tcp_close(struct tcp_conn *c, uint64_t now)
{
	c->s->now = now;
	if (c->flags & F_FIN_QUEUED)
		return;
	switch (c->state) {
	case TCPS_SYN_SENT:
		tcp_conn_end(c, 0);
		return;
	case TCPS_ESTABLISHED:
		c->state = TCPS_FIN_WAIT_1;
		break;
	case TCPS_CLOSE_WAIT:
		c->state = TCPS_LAST_ACK;
		break;
	case TCPS_SYN_RCVD:
		break;
	default:
		return;
	}
	c->flags |= F_FIN_QUEUED;
	c->fast = false;
	tcp_conn_wake(c);
}

void
tcp_conn_reset(struct tcp_conn *c, uint64_t now, int reason)
{
	struct tcp_out out;

	if (c->state >= TCPS_SYN_RCVD && c->state != TCPS_TIME_WAIT) {
		tcp_seg_header(c, now, &out, TCP_RST | TCP_ACK, c->snd_nxt);
		tcp_rst_send(c->s, c, &c->tuple, &out.tcp);
	}
	tcp_conn_end(c, reason);
}

void
tcp_abort(struct tcp_conn *c, uint64_t now)
{
	c->s->now = now;
	tcp_conn_reset(c, now, -ECONNABORTED);
}

int
tcp_send(struct tcp_conn *c, struct tcp_rec *chain)
{
	struct tcp_rec *last = chain;
	uint32_t n = chain->len;

	if (c->flags & (F_FIN_QUEUED | F_OVER) || c->state == TCPS_CLOSED) {
		c->s->ops.rec_free(c->s->ctx, chain);
		return -EPIPE;
	}
	for (; last->next != NULL; last = last->next)
		n += last->next->len;
	if (c->q_tail != NULL)
		c->q_tail->next = chain;
	if (c->unsent == NULL)
		c->unsent = chain;
	c->q_tail = last;
	c->queued += n;
	tcp_conn_wake(c);
	return 0;
}

int64_t
tcp_send_space(const struct tcp_conn *c)
{
	return (int64_t)c->s->cfg.snd_buf - c->queued;
}
