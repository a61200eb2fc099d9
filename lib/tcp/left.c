/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that their owner has left: TCP sends the records of the queue and a FIN, as after
 * tcp_close(), and nobody receives (RFC 9293 3.6, 3.10.4). The peer decides how long that takes,
 * and the owner how often it happens, so both are bounded: TCP_LEFT_NS is the time in all, however
 * often the peer opens its window or acknowledges a byte, and max_left is the number. Left
 * connections have places of their own, so that they take none of those that new connections need.
 * The same time bounds a connection that its owner keeps for its end alone (tcp_limit_life()).
 */
#include "tcp_priv.h"

void
tcp_left_unread(struct tcp_conn *c, uint64_t now)
{
	tcp_trace(c, TCP_LEFT_UNREAD);
	tcp_conn_reset(c, now, -ECONNABORTED);
}

void
tcp_limit_life(struct tcp_conn *c, uint64_t now)
{
	if (c->limited || c->state == TCPS_TIME_WAIT)
		return;
	c->limited = true;
	tcp_timers_life(c, now + TCP_LEFT_NS);
}

bool
tcp_leave(struct tcp_conn *c, uint64_t now, const struct tcp_note *note)
{
	struct tcp_stack *s = c->s;

	s->now = now;
	if (tcp_holds_bytes(c)) {
		tcp_left_unread(c, now);
		return false;
	}
	if (s->n_left >= s->cfg.max_left)
		tcp_trace(c, TCP_LEFT_FULL);
	if (c->state < TCPS_ESTABLISHED || c->state == TCPS_TIME_WAIT ||
		s->n_left >= s->cfg.max_left) {
		tcp_conn_reset(c, now, -ECONNABORTED);
		return false;
	}
	tcp_count(s, TCP_LEFT);
	tcp_conn_hold(c);
	tcp_close(c, now);
	tcp_conn_unlink(c);
	c->left = true;
	c->note = *note;
	TAILQ_INSERT_TAIL(&s->left, c, link);
	s->n_left++;
	tcp_limit_life(c, now);
	tcp_conn_over(c, -ECONNABORTED);
	c->user = NULL;
	tcp_conn_release(c);
	return true;
}

const struct tcp_note *
tcp_left(const struct tcp_conn *c)
{
	return c->left ? &c->note : NULL;
}

/* In FIN-WAIT-2 the peer has all bytes, and only does not close its direction. */
void
tcp_left_due(struct tcp_conn *c, uint64_t now)
{
	if (c->state == TCPS_FIN_WAIT_2) {
		tcp_trace(c, TCP_TIMED_OUT);
		tcp_conn_end(c, -ETIMEDOUT);
		return;
	}
	tcp_trace(c, c->left ? TCP_LEFT_END : TCP_TIMED_OUT);
	tcp_conn_reset(c, now, -ETIMEDOUT);
}

void
tcp_left_reset(struct tcp_stack *s, uint64_t now,
	bool (*pick)(const void *ctx, const struct tcp_tuple *t), const void *ctx)
{
	struct tcp_conn *c, *next;

	s->now = now;
	for (c = TAILQ_FIRST(&s->left); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (pick(ctx, &c->tuple))
			tcp_conn_reset(c, now, -ECONNABORTED);
	}
}

uint32_t
tcp_queued_records(const struct tcp_conn *c)
{
	const struct tcp_rec *r = c->seg_head != NULL ? c->seg_head : c->unsent;
	uint32_t n = 0;

	for (; r != NULL; r = r->next)
		n++;
	return n;
}
