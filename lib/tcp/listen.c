/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners (LISTEN of RFC 9293), and the limits on the state that unauthenticated peers can
 * create. A connection is half-done from its SYN until the owner reports that the peer has
 * completed its request (tcp_settled()). When a listener has no place left, a new SYN displaces one
 * of some half-done connections, drawn at random: the one whose source prefix has most of them, and
 * among equals the oldest. A prefix without a half-done connection always gets a place, and so does
 * the instance itself, for whose connections to itself half of the places are reserved. Another
 * prefix gets a place only when the one that loses it has at least two more, or has held it for a
 * second. Otherwise, and when the backlog is full, a SYN displaces one of the oldest half-open
 * connections (in SYN-RECEIVED) of the listener: the first of its own prefix, of one that has more,
 * or that is a second old. A settled connection is never displaced.
 */
#include <stdlib.h>
#include <string.h>

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
	l->most = SK_MIN(SK_MAX(backlog, (uint32_t)TCP_BACKLOG_MIN), s->cfg.half_open_per_listener);
	l->half_done = calloc(l->most, sizeof(struct tcp_conn *));
	if (l->half_done == NULL) {
		free(l);
		return NULL;
	}
	TAILQ_INIT(&l->half);
	TAILQ_INIT(&l->unclaimed);
	TAILQ_INSERT_TAIL(&s->listeners, l, link);
	return l;
}

void
tcp_listen_free(struct tcp_listener *l)
{
	TAILQ_REMOVE(&l->s->listeners, l, link);
	free(l->half_done);
	free(l);
}

/* A closed listener stays until its last connection is gone. */
void
tcp_listen_unref(struct tcp_listener *l)
{
	if (--l->refs == 0 && l->closed)
		tcp_listen_free(l);
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

/* Returns the keyed hash of the source prefix of an address: of an IPv4 address, or of the upper 64
 * bits of an IPv6 address. */
static uint64_t
prefix_of(const struct tcp_stack *s, const struct sk_addr *addr)
{
	size_t len = sk_addr_is_v4(addr) ? sizeof(*addr) : sizeof(*addr) / 2;

	return sk_siphash(&s->cfg.isn_key, addr, len);
}

/* Returns the slot of the source prefix of an address, or the one that it may take: a free one, or
 * if none is free nearby, one that it shares with another prefix. */
static struct tcp_source *
source_of(struct tcp_stack *s, const struct sk_addr *addr)
{
	uint64_t prefix = prefix_of(s, addr);
	struct tcp_source *slot = NULL;

	for (unsigned i = 0; i < TCP_SOURCE_PROBES; i++) {
		struct tcp_source *at = &s->sources[(prefix + i) & (TCP_SOURCES - 1)];

		if (at->n > 0 && at->prefix == prefix)
			return at;
		if (slot == NULL || (slot->n > 0 && at->n == 0))
			slot = at;
	}
	return slot;
}

static void
half_done_add(struct tcp_listener *l, struct tcp_conn *c, struct tcp_source *source)
{
	struct tcp_stack *s = l->s;

	c->flags |= F_HALF_DONE;
	c->born = s->now;
	c->source = (uint16_t)(source - s->sources);
	if (source->n == 0) {
		source->prefix = prefix_of(s, &c->tuple.raddr);
		TAILQ_INIT(&source->conns);
	}
	TAILQ_INSERT_TAIL(&source->conns, c, of_source);
	c->half_at = l->n_half_done;
	l->half_done[l->n_half_done++] = c;
	source->n++;
	s->n_half_done++;
}

void
tcp_listen_settle(struct tcp_conn *c)
{
	struct tcp_source *source = &c->s->sources[c->source];
	struct tcp_listener *l = c->listener;
	struct tcp_conn *last;

	if (!(c->flags & F_HALF_DONE))
		return;
	c->flags &= ~F_HALF_DONE;
	TAILQ_REMOVE(&source->conns, c, of_source);
	source->n--;
	last = l->half_done[--l->n_half_done];
	last->half_at = c->half_at;
	l->half_done[c->half_at] = last;
	c->s->n_half_done--;
}

/* Ends a connection in SYN-RECEIVED, which sends nothing, for a newer one. */
static void
drop_half_open(struct tcp_conn *c)
{
	tcp_count(c->s, TCP_HALF_OPEN_FULL);
	tcp_conn_end(c, -ECONNABORTED);
}

/* Ends a half-done connection for a newer one. */
static void
displace(struct tcp_conn *c)
{
	if (c->flags & F_HALF) {
		drop_half_open(c);
		return;
	}
	tcp_count(c->s, TCP_HALF_DONE_ENDED);
	tcp_conn_reset(c, c->s->now, -ECONNABORTED);
}

static bool
is_old(const struct tcp_conn *c)
{
	return c->s->now - c->born >= TCP_HALF_DONE_NS;
}

/* Returns whether both ends of a connection have the same address. */
static bool
is_own(const struct tcp_tuple *t)
{
	return memcmp(&t->laddr, &t->raddr, sizeof(t->laddr)) == 0;
}

/* A new SYN that needs a place. */
struct newcomer {
	const struct tcp_source *source;
	bool own; /* is_own() */
};

/* Returns whether a half-done connection is one of the instance to itself, of which no other peer
 * takes the place. They all lose that right while the instance has more of them, at all listeners,
 * than half of the places of this listener. */
static bool
is_reserved(const struct tcp_conn *c)
{
	return is_own(&c->tuple) && c->s->sources[c->source].n <= c->listener->most / 2;
}

/* Returns whether `c` loses its place rather than `than`. */
static bool
loses_rather(const struct tcp_conn *c, const struct tcp_conn *than)
{
	const struct tcp_source *sources = c->s->sources;
	uint32_t n = sources[c->source].n, m = sources[than->source].n;

	if (is_reserved(c) != is_reserved(than))
		return is_reserved(than);
	return n != m ? n > m : c->born < than->born;
}

/* Returns the half-done connection of a listener that loses its place first, among some that are
 * drawn at random; or NULL. The draw is keyed, so that no peer can predict it. */
static struct tcp_conn *
listen_draw(struct tcp_listener *l, const struct newcomer *new)
{
	struct tcp_stack *s = l->s;
	struct tcp_conn *first = NULL;
	uint64_t random = sk_siphash(&s->cfg.isn_key, &s->ndrawn, sizeof(s->ndrawn));

	s->ndrawn++;
	for (unsigned i = 0; i < TCP_SAMPLES; i++, random = random << 8 | random >> 56) {
		uint32_t at = (uint32_t)((uint64_t)(uint32_t)random * l->n_half_done >> 32);
		struct tcp_conn *c = l->half_done[at];

		if (!new->own && is_reserved(c))
			continue;
		if (first == NULL || loses_rather(c, first))
			first = c;
	}
	return first;
}

/* Ends the first of the TCP_SAMPLES oldest half-open connections of a listener whose place the
 * newcomer may take. Returns false when there is none. */
static bool
displace_half_open(struct tcp_listener *l, const struct newcomer *new)
{
	const struct tcp_source *sources = l->s->sources, *of = new->source;
	unsigned seen = 0;
	struct tcp_conn *c;

	TAILQ_FOREACH (c, &l->half, link) {
		const struct tcp_source *its = &sources[c->source];

		if (seen++ == TCP_SAMPLES)
			break;
		if (!new->own && is_reserved(c))
			continue;
		if (its == of || its->n > of->n || (new->own && !is_own(&c->tuple)) || is_old(c)) {
			drop_half_open(c);
			return true;
		}
	}
	return false;
}

/* Ends a half-done connection of a listener that has any. Returns false when the rules permit
 * none. */
static bool
displace_of(struct tcp_listener *l, const struct newcomer *new)
{
	const struct tcp_source *sources = l->s->sources, *of = new->source;
	struct tcp_conn *c = listen_draw(l, new);

	if (c != NULL && (of->n == 0 || (new->own && !is_own(&c->tuple)) || is_old(c) ||
				 sources[c->source].n > of->n + 1)) {
		displace(c);
		return true;
	}
	return displace_half_open(l, new);
}

/* Ends a half-done connection of the listener that has most of them, so that a flood on one port
 * harms the clients of that port only. */
static bool
displace_any(struct tcp_stack *s, const struct newcomer *new)
{
	struct tcp_listener *l, *most = NULL;

	TAILQ_FOREACH (l, &s->listeners, link) {
		if (most == NULL || l->n_half_done > most->n_half_done)
			most = l;
	}
	return most == NULL || !most->n_half_done || displace_of(most, new);
}

/* Makes room in the backlog of a listener, which counts what the owner has not claimed, and among
 * its half-done connections. Returns false when the rules permit none. */
static bool
backlog_room(struct tcp_listener *l, const struct newcomer *new)
{
	if (l->n_half + l->n_unclaimed >= l->backlog && !displace_half_open(l, new))
		return false;
	return l->n_half_done < l->most || displace_of(l, new);
}

/* Ends the oldest half-done connection of a source, if it is old. */
static bool
displace_oldest(const struct tcp_source *source)
{
	struct tcp_conn *c = TAILQ_FIRST(&source->conns);

	if (!is_old(c))
		return false;
	displace(c);
	return true;
}

/* Makes room for one more half-done connection, if need be by ending an older one. Returns 0, or
 * the reason for which there is no room. */
static enum tcp_reason
tcp_listen_make_room(struct tcp_listener *l, const struct newcomer *new)
{
	struct tcp_stack *s = l->s;

	if (s->n_live >= s->cfg.max_conns)
		return TCP_CONNS_FULL;
	if (new->source->n >= s->cfg.half_open_per_prefix && !displace_oldest(new->source))
		return TCP_PREFIX_FULL;
	if (!backlog_room(l, new))
		return TCP_BACKLOG_FULL;
	if (s->n_half_done >= s->cfg.max_half_open && !displace_any(s, new))
		return TCP_BACKLOG_FULL;
	return TCP_NONE;
}

/* Refuses a SYN. Settled connections stay, so that the peer gets a reset at once when they have
 * taken all places; it may repeat a SYN for which half-done connections left no place. */
static void
refuse(struct tcp_stack *s, const struct tcp_tuple *t, const struct wire_tcp *seg,
	enum tcp_reason full)
{
	tcp_count(s, full);
	if (full == TCP_CONNS_FULL)
		tcp_rst_answer(s, t, seg, 0);
}

static void
passive_open(
	struct tcp_listener *l, const struct tcp_tuple *t, uint32_t mtu, const struct wire_tcp *seg)
{
	struct tcp_stack *s = l->s;
	struct tcp_source *source = source_of(s, &t->raddr);
	const struct newcomer new = {.source = source, .own = is_own(t)};
	enum tcp_reason full = tcp_listen_make_room(l, &new);
	struct tcp_conn *c;

	c = full == TCP_NONE ? tcp_conn_new(s, t, mtu) : NULL;
	if (c == NULL) {
		refuse(s, t, seg, full == TCP_NONE ? TCP_CONNS_FULL : full);
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
