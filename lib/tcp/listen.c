/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners (LISTEN of RFC 9293), and the limits on the state that unauthenticated peers can
 * create. A connection is half-done from its SYN until the owner reports that the peer has
 * completed its request (tcp_settled()). A flood of SYNs displaces the oldest half-open connections
 * (those in SYN-RECEIVED). A connection that is established and half-done is displaced when it is a
 * second old, or when its source prefix has more of them than the one of the new SYN. A settled
 * connection is never displaced.
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
	TAILQ_INIT(&l->half_done);
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
		if (!(c->flags & F_EARLY))
			tcp_listen_settle(c);
		return;
	}
	TAILQ_INSERT_TAIL(&l->unclaimed, c, link);
	l->n_unclaimed++;
}

void
tcp_claim_early(struct tcp_conn *c, void *user)
{
	if (c->state != TCPS_TIME_WAIT && c->state != TCPS_CLOSED && !(c->flags & F_HALF))
		tcp_listen_leave(c);
	c->flags |= F_CLAIMED | F_EARLY;
	c->user = user;
}

void
tcp_settled(struct tcp_conn *c)
{
	c->flags &= ~F_EARLY;
	if (!(c->flags & F_HALF))
		tcp_listen_settle(c);
}

void
tcp_claim(struct tcp_conn *c, void *user)
{
	tcp_claim_early(c, user);
	tcp_settled(c);
}

/* ---- Half-done connections ---- */

/* Returns the list of the source prefix of an address: of an IPv4 address, or of the upper 64 bits
 * of an IPv6 address. The hash is keyed, so that no peer can choose the list of another one. */
static struct tcp_source *
source_of(struct tcp_stack *s, const struct sk_addr *addr)
{
	size_t len = sk_addr_is_v4(addr) ? sizeof(*addr) : sizeof(*addr) / 2;
	uint64_t hash = sk_siphash(&s->cfg.isn_key, addr, len);
	struct tcp_source *source = &s->sources[hash & (TCP_SOURCES - 1)];

	if (source->conns.tqh_last == NULL)
		TAILQ_INIT(&source->conns);
	return source;
}

static void
half_done_add(struct tcp_listener *l, struct tcp_conn *c, struct tcp_source *source)
{
	struct tcp_stack *s = l->s;

	c->flags |= F_HALF_DONE;
	c->born = s->now;
	c->source = (uint16_t)(source - s->sources);
	TAILQ_INSERT_TAIL(&source->conns, c, of_source);
	TAILQ_INSERT_TAIL(&l->half_done, c, of_listener);
	source->n++;
	l->n_half_done++;
	s->n_half_done++;
}

void
tcp_listen_settle(struct tcp_conn *c)
{
	struct tcp_source *source = &c->s->sources[c->source];

	if (!(c->flags & F_HALF_DONE))
		return;
	c->flags &= ~F_HALF_DONE;
	TAILQ_REMOVE(&source->conns, c, of_source);
	TAILQ_REMOVE(&c->listener->half_done, c, of_listener);
	source->n--;
	c->listener->n_half_done--;
	c->s->n_half_done--;
}

/* Ends a connection in SYN-RECEIVED, which sends nothing, for a newer one. */
static void
drop_half_open(struct tcp_conn *c)
{
	tcp_count(c->s, TCP_HALF_OPEN_FULL);
	tcp_conn_end(c, -ECONNABORTED);
}

/* Ends a half-done connection for a newer one with the source `of`, if the rules permit it. */
static bool
displace(struct tcp_conn *c, const struct tcp_source *of)
{
	struct tcp_stack *s = c->s;

	if (s->now - c->born < TCP_HALF_DONE_NS && s->sources[c->source].n <= of->n + 1)
		return false;
	if (c->flags & F_HALF) {
		drop_half_open(c);
		return true;
	}
	tcp_count(s, TCP_HALF_DONE_ENDED);
	tcp_conn_reset(c, s->now, -ECONNABORTED);
	return true;
}

/* Ends a half-done connection of a listener that has any. Returns false when the rules permit none
 * of the oldest ones. */
static bool
displace_of(struct tcp_listener *l, const struct tcp_source *of)
{
	if (displace(TAILQ_FIRST(&l->half_done), of))
		return true;
	if (!l->n_half)
		return false;
	drop_half_open(TAILQ_FIRST(&l->half));
	return true;
}

/* Ends a half-done connection of the listener that has most of them, so that a flood on one port
 * harms the clients of that port only. */
static bool
displace_any(struct tcp_stack *s, const struct tcp_source *of)
{
	struct tcp_listener *l, *most = NULL;

	TAILQ_FOREACH (l, &s->listeners, link) {
		if (most == NULL || l->n_half_done > most->n_half_done)
			most = l;
	}
	return most == NULL || !most->n_half_done || displace_of(most, of);
}

static bool
backlog_room(struct tcp_listener *l, const struct tcp_source *of)
{
	uint32_t most = SK_MAX(l->backlog, (uint32_t)TCP_BACKLOG_MIN);

	if (l->n_half + l->n_unclaimed >= l->backlog) {
		if (!l->n_half)
			return false;
		drop_half_open(TAILQ_FIRST(&l->half));
	}
	most = SK_MIN(most, l->s->cfg.half_open_per_listener);
	return l->n_half_done < most || displace_of(l, of);
}

/* Makes room for one more half-done connection with the source `of`, if need be by ending an older
 * one. Returns 0, or the reason for which there is no room. */
static enum tcp_reason
tcp_listen_make_room(struct tcp_listener *l, const struct tcp_source *of)
{
	struct tcp_stack *s = l->s;

	if (s->n_live >= s->cfg.max_conns)
		return TCP_CONNS_FULL;
	if (of->n >= s->cfg.half_open_per_prefix && !displace(TAILQ_FIRST(&of->conns), of))
		return TCP_PREFIX_FULL;
	if (!backlog_room(l, of))
		return TCP_BACKLOG_FULL;
	if (s->n_half_done >= s->cfg.max_half_open && !displace_any(s, of))
		return TCP_BACKLOG_FULL;
	return TCP_NONE;
}

static void
passive_open(
	struct tcp_listener *l, const struct tcp_tuple *t, uint32_t mtu, const struct wire_tcp *seg)
{
	struct tcp_stack *s = l->s;
	struct tcp_source *source = source_of(s, &t->raddr);
	enum tcp_reason full = tcp_listen_make_room(l, source);
	struct tcp_conn *c;

	if (full != TCP_NONE) {
		tcp_count(s, full);
		return;
	}
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
	half_done_add(l, c, source);
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
