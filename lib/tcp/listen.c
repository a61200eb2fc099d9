/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners (LISTEN of RFC 9293), and the limits on the state that unauthenticated peers can
 * create. Half-open connections have a pool of their own: a flood of SYNs displaces the oldest
 * half-open connections, and never an established one.
 */
#include <stdlib.h>

#include "tcp_priv.h"

struct tcp_listener *
tcp_listen(struct tcp_stack *s, uint32_t backlog, void *user)
{
	struct tcp_listener *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->s = s;
	l->user = user;
	l->backlog = backlog;
	TAILQ_INIT(&l->half);
	TAILQ_INIT(&l->unclaimed);
	TAILQ_INSERT_TAIL(&s->listeners, l, link);
	return l;
}

/* A closed listener stays until its last connection is gone: a connection in TIME_WAIT may pass a
 * new SYN to it. */
void
tcp_listen_unref(struct tcp_listener *l)
{
	if (--l->refs == 0 && l->closed) {
		TAILQ_REMOVE(&l->s->listeners, l, link);
		free(l);
	}
}

void
tcp_unlisten(struct tcp_listener *l, uint64_t now)
{
	struct tcp_conn *c;

	l->closed = true;
	l->refs++;
	while ((c = TAILQ_FIRST(&l->half)) != NULL)
		tcp_abort(c, now);
	while ((c = TAILQ_FIRST(&l->unclaimed)) != NULL)
		tcp_abort(c, now);
	tcp_listen_unref(l);
}

void *
tcp_listener_user(const struct tcp_listener *l)
{
	return l->user;
}

void
tcp_listen_leave(struct tcp_conn *c)
{
	struct tcp_listener *l = c->listener;

	if (!(c->flags & F_LISTED))
		return;
	c->flags &= ~F_LISTED;
	if (c->flags & F_HALF) {
		TAILQ_REMOVE(&l->half, c, link);
		l->n_half--;
	} else {
		TAILQ_REMOVE(&l->unclaimed, c, link);
		l->n_unclaimed--;
	}
}

void
tcp_listen_established(struct tcp_conn *c)
{
	struct tcp_listener *l = c->listener;

	TAILQ_REMOVE(&l->half, c, link);
	l->n_half--;
	if (c->flags & F_CLAIMED) {
		c->flags &= ~F_LISTED;
		return;
	}
	TAILQ_INSERT_TAIL(&l->unclaimed, c, link);
	l->n_unclaimed++;
}

void
tcp_claim(struct tcp_conn *c, void *user)
{
	if (c->state != TCPS_TIME_WAIT && c->state != TCPS_CLOSED && !(c->flags & F_HALF))
		tcp_listen_leave(c);
	c->flags |= F_CLAIMED;
	c->user = user;
}

/* Drops a half-open connection of the listener that has most of them, so that a flood on one port
 * harms the clients of that port only. */
static void
drop_oldest_half_open(struct tcp_stack *s)
{
	struct tcp_listener *l, *most = NULL;

	TAILQ_FOREACH (l, &s->listeners, link) {
		if (most == NULL || l->n_half > most->n_half)
			most = l;
	}
	if (most != NULL && most->n_half) {
		tcp_count(s, TCP_HALF_OPEN_FULL);
		tcp_conn_end(TAILQ_FIRST(&most->half), -ECONNABORTED);
	}
}

/* Makes room for one more half-open connection, if need be by dropping an older one. Returns false
 * when there is no room. */
static bool
tcp_listen_make_room(struct tcp_listener *l)
{
	struct tcp_stack *s = l->s;

	if (s->n_live >= s->cfg.max_conns) {
		tcp_count(s, TCP_CONNS_FULL);
		return false;
	}
	if (l->n_half + l->n_unclaimed >= l->backlog) {
		if (!l->n_half) {
			tcp_count(s, TCP_BACKLOG_FULL);
			return false;
		}
		tcp_count(s, TCP_HALF_OPEN_FULL);
		tcp_conn_end(TAILQ_FIRST(&l->half), -ECONNABORTED);
	}
	if (s->n_half >= s->cfg.max_half_open)
		drop_oldest_half_open(s);
	return true;
}

static void
passive_open(
	struct tcp_listener *l, const struct tcp_tuple *t, uint32_t mtu, const struct wire_tcp *seg)
{
	struct tcp_stack *s = l->s;
	struct tcp_conn *c;

	if (!tcp_listen_make_room(l))
		return;
	c = tcp_conn_new(s, t, mtu);
	if (c == NULL) {
		tcp_count(s, TCP_CONNS_FULL);
		return;
	}
	tcp_conn_options(c, seg);
	/* RFC 3168 6.1.1: ECE and CWR in a SYN request ECN. */
	if (s->cfg.ecn && (seg->flags & (TCP_ECE | TCP_CWR)) == (TCP_ECE | TCP_CWR))
		c->flags |= F_ECN;
	c->flags |= F_PASSIVE | F_HALF | F_LISTED;
	c->state = TCPS_SYN_RCVD;
	c->listener = l;
	l->refs++;
	l->n_half++;
	TAILQ_INSERT_TAIL(&l->half, c, link);
	s->n_half++;
	c->todo = DO_SYN;
	tcp_conn_wake(c);
	s->ops.conn_added(s->ctx, c, l);
}

void
tcp_listen_input(struct tcp_listener *l, uint64_t now, const struct tcp_tuple *t, uint32_t mtu,
	const struct wire_tcp *seg, struct tcp_slice *payload, uint8_t ecn)
{
	struct tcp_stack *s = l->s;
	uint32_t len = tcp_slice_len(payload);

	s->now = now;
	/* RFC 9293 lets a receiver drop data in a SYN: the peer sends it again. */
	tcp_slice_drop(s, payload);
	if (seg->flags & TCP_RST)
		return;
	if (seg->flags & TCP_ACK || l->closed) {
		tcp_rst_answer(s, t, seg, len);
	} else if ((seg->flags & (TCP_SYN | TCP_FIN)) != TCP_SYN) {
		tcp_count(s, TCP_BAD_FLAGS);
	} else {
		passive_open(l, t, mtu, seg);
	}
}
