/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of a connection that is the same for every transport: its states, and its messages to
 * the engine stage. When a ring is full, a message becomes a pending bit and is sent later: no
 * message is lost, and meanwhile TCP's receive window closes. The index of a connection is used
 * again only when no message in flight can contain it.
 */
#include <errno.h>
#include <string.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "link.h"

struct eng_conn *
eng_conn_alloc(struct eng_transport *t, uint8_t state)
{
	struct eng_conn *c = TAILQ_FIRST(&t->free);

	if (c != NULL) {
		TAILQ_REMOVE(&t->free, c, next);
	} else if (t->fresh < t->nconns) {
		c = &t->conns[t->fresh];
		c->index = t->fresh++;
	} else {
		return NULL;
	}
	*c = (struct eng_conn){.index = c->index, .state = state};
	t->nused++;
	return c;
}

bool
eng_conn_admit(struct eng_transport *t, struct eng_conn *c, uint16_t user)
{
	if (sk_share_take(&t->conn_share, user, 1) != SK_SHARE_OK) {
		sk_count(t->counters, ENG_CONN_SHARE);
		return false;
	}
	c->user = user;
	c->counted = true;
	return true;
}

bool
eng_conn_charge(struct eng_transport *t, struct eng_conn *c, uint16_t user)
{
	uint16_t was = c->user;

	if (user == was)
		return true;
	if (!eng_conn_admit(t, c, user))
		return false;
	sk_share_give(&t->conn_share, was, 1);
	return true;
}

static void
conn_return_share(struct eng_transport *t, struct eng_conn *c)
{
	if (c->counted)
		sk_share_give(&t->conn_share, c->user, 1);
	c->counted = false;
}

/* Removes the connection from the list that it is in, if any. */
static void
conn_dequeue(struct eng_transport *t, struct eng_conn *c)
{
	if (c->queue == ECONN_Q_PENDING)
		TAILQ_REMOVE(&t->pending, c, next);
	else if (c->queue == ECONN_Q_NOTICE)
		TAILQ_REMOVE(&t->unnoticed, c, next);
	c->queue = ECONN_Q_NONE;
}

void
eng_conn_put(struct eng_transport *t, struct eng_conn *c)
{
	if (eng_conn_alive(c) || c->notice_out || c->release_due || (c->pending & ECONN_P_NOTICE) ||
		(c->state != ECONN_DEAD && c->state != ECONN_DRAIN))
		return;
	conn_dequeue(t, c);
	eng_startup_free(t, c);
	conn_return_share(t, c);
	c->pending = 0;
	c->state = ECONN_FREE;
	t->nused--;
	TAILQ_INSERT_HEAD(&t->free, c, next);
}

void
eng_conn_pend(struct eng_transport *t, struct eng_conn *c, uint16_t what)
{
	if (c->queue != ECONN_Q_PENDING) {
		conn_dequeue(t, c);
		TAILQ_INSERT_TAIL(&t->pending, c, next);
		c->queue = ECONN_Q_PENDING;
	}
	c->pending |= what;
}

void
eng_conn_drain(struct eng_transport *t, struct eng_conn *c)
{
	c->state = ECONN_DRAIN;
	if (c->tcp != NULL)
		eng_conn_pend(t, c, ECONN_P_RESUME);
}

bool
eng_conn_send(struct eng_transport *t, const struct eng_conn *c, enum eng_to_stage type, uint64_t u,
	uint32_t arg)
{
	struct eng_dmsg m = {.u = u, .arg = arg, .id_type = ENG_DMSG(type, c->qp_index)};

	if (rte_ring_sp_enqueue_elem(t->to_stage[c->stage], &m, sizeof(m)) == 0)
		return true;
	sk_count(t->counters, ENG_RING_FULL);
	return false;
}

bool
eng_tcp_deliver(void *ctx, struct tcp_conn *conn, struct tcp_slice *chain)
{
	struct eng_transport *t = ctx;
	struct eng_conn *c = tcp_user(conn);

	if (c == NULL)
		return false;
	switch (c->state) {
	case ECONN_BOUND:
	case ECONN_CARRIER:
		return c->link->deliver(t, c, chain);
	case ECONN_OPENING:
	case ECONN_WAITING:
	case ECONN_REQUESTED: /* the peer must not send yet: the transport handles it as an error */
		return eng_startup_deliver(t, c, chain);
	case ECONN_DRAIN:
	case ECONN_DEAD:
		for (const struct tcp_slice *s = chain; s != NULL; s = s->next)
			tcp_consumed(conn, s->len);
		eng_slice_free(chain);
		return true;
	default:
		return false; /* TCP offers them again once the connection is bound */
	}
}

static bool
send_closed(struct eng_transport *t, struct eng_conn *c)
{
	if (!eng_conn_send(t, c, ENG_E_CLOSED, 0, (uint32_t)-c->error))
		return false;
	c->state = ECONN_DEAD;
	return true;
}

/* Delivers the bytes that arrived with the start-up frame, then the bytes that TCP holds. */
static bool
conn_resume(struct eng_transport *t, struct eng_conn *c)
{
	if (c->state != ECONN_DRAIN && !c->link->resume(t, c))
		return false;
	c->pending &= ~ECONN_P_RESUME;
	if (c->tcp != NULL)
		tcp_deliver_resume(c->tcp);
	return !(c->pending & ECONN_P_RESUME);
}

/* Closes or aborts the TCP connection, or ends the connection that has none. No function of lib/tcp
 * may be running at this time. Nothing uses the bytes of a closed one any more, so the peer does
 * not decide how long it stays. */
static void
conn_end(struct eng_transport *t, struct eng_conn *c)
{
	uint16_t what = c->pending & (ECONN_P_ABORT | ECONN_P_CLOSE);

	c->pending &= ~(ECONN_P_ABORT | ECONN_P_CLOSE);
	if (c->rides)
		c->link->break_off(t, c);
	if (c->tcp == NULL)
		return;
	if (what & ECONN_P_ABORT) {
		tcp_abort(c->tcp, t->now);
		return;
	}
	tcp_limit_life(c->tcp, t->now);
	tcp_close(c->tcp, t->now);
}

void
eng_conn_use_path(struct eng_transport *t, struct eng_conn *c)
{
	uint16_t port = c->path.port;

	c->pending &= ~ECONN_P_MOVED;
	if (c->tcp == NULL)
		return;
	tcp_set_tso(c->tcp, port < t->e->cfg.nports ? t->e->ports[port].tso : 0);
	tcp_set_link_mtu(c->tcp, t->now, c->path.mtu);
}

/* Performs the pending actions in the order that the receivers of the messages require. */
static bool
conn_pending(struct eng_transport *t, struct eng_conn *c)
{
	uint16_t was = c->pending;

	if (c->pending & (ECONN_P_ABORT | ECONN_P_CLOSE))
		conn_end(t, c);
	if (c->pending & ECONN_P_MOVED)
		eng_conn_use_path(t, c);
	if (c->link != NULL)
		c->link->pending_first(t, c);
	if (c->pending & ECONN_P_NOTICE) {
		/* Others that have waited for longer get the next notice. */
		if (!TAILQ_EMPTY(&t->unnoticed) || !eng_startup_send_notice(t, c))
			return false;
		c->pending &= ~ECONN_P_NOTICE;
	}
	if ((c->pending & ECONN_P_RESUME) && !conn_resume(t, c))
		return false;
	if (c->link != NULL)
		c->link->pending(t, c);
	if ((c->pending & ECONN_P_FIN) && eng_conn_send(t, c, ENG_E_FIN, 0, 0))
		c->pending &= ~ECONN_P_FIN;
	if (c->pending == ECONN_P_CLOSED && send_closed(t, c))
		c->pending = 0;
	return c->pending != was;
}

bool
eng_conns_due(const struct eng_transport *t)
{
	return !TAILQ_EMPTY(&t->pending) || (t->nnotices > 0 && !TAILQ_EMPTY(&t->unnoticed));
}

bool
eng_conns_pending(struct eng_transport *t)
{
	struct eng_conn *c, *next;
	bool work = false;

	while (t->nnotices > 0 && (c = TAILQ_FIRST(&t->unnoticed)) != NULL) {
		conn_dequeue(t, c);
		if ((c->pending & ECONN_P_NOTICE) && eng_startup_send_notice(t, c))
			c->pending &= ~ECONN_P_NOTICE;
		eng_conn_pend(t, c, 0);
		work = true;
	}
	for (c = TAILQ_FIRST(&t->pending); c != NULL; c = next) {
		next = TAILQ_NEXT(c, next);
		work |= conn_pending(t, c);
		if (c->queue != ECONN_Q_PENDING)
			continue;
		if (c->pending == 0) {
			conn_dequeue(t, c);
			eng_conn_put(t, c);
		} else if (c->pending & ECONN_P_NOTICE) {
			conn_dequeue(t, c);
			TAILQ_INSERT_TAIL(&t->unnoticed, c, next);
			c->queue = ECONN_Q_NOTICE;
		}
	}
	return work;
}

struct tcp_tuple
eng_conn_ends(const struct eng_transport *t, const struct eng_conn *c)
{
	struct tcp_tuple ends;

	if (c->tcp != NULL)
		return *tcp_tuple(c->tcp);
	c->link->ends(t, c, &ends, NULL);
	return ends;
}

static void
conn_closed(struct eng_transport *t, struct eng_conn *c)
{
	if (c->error == 0)
		c->error = tcp_close_reason(c->tcp);
	eng_flight_keep(t, c);
	/* lib/tcp keeps the connection in TIME_WAIT without its user, and answers by itself. */
	tcp_set_user(c->tcp, NULL);
	c->tcp = NULL;
	eng_conn_lost(t, c);
}

void
eng_conn_lost(struct eng_transport *t, struct eng_conn *c)
{
	conn_return_share(t, c);
	if (c->link != NULL)
		c->link->closed(t, c);
	if (c->state == ECONN_BOUND) {
		/* Of a closed connection, only its end is still reported. */
		c->pending &= ECONN_P_NOTICE | ECONN_P_FIN;
		eng_conn_pend(t, c, ECONN_P_CLOSED);
		return;
	}
	if (c->state == ECONN_OPENING || c->state == ECONN_WAITING || c->state == ECONN_REQUESTED ||
		c->state == ECONN_ESTABLISHED)
		eng_startup_closed(t, c);
	eng_conn_put(t, c);
}

/*
 * The records of a left connection count against the share of their user until they are
 * acknowledged, like all records: a client that leaves many behind waits for records itself. Its
 * user may be gone by then, though, and the next user with this number would have less for up to a
 * minute, as the engine stage cannot find out whose they were. So all left connections of a stage
 * together hold at most an ENG_LEFT_PART-th of the records that a stage has, and a user its share
 * of these. The place in conn_share is free at once: left connections have places of their own in
 * lib/tcp.
 */
void
eng_conn_leave(struct eng_transport *t, struct eng_conn *c)
{
	/* `c` may be free when tcp_leave() returns. */
	const struct eng_left left = {
		.units = 1 + tcp_queued_records(c->tcp), .user = c->user, .class = c->path.class};
	struct tcp_note note;

	memcpy(&note, &left, sizeof(note));
	if (sk_share_take(&t->left_share, left.user, left.units) != SK_SHARE_OK) {
		sk_count(t->counters, ENG_LEFT_SHARE);
		tcp_abort(c->tcp, t->now);
		return;
	}
	/* Nothing adapts a left connection to another port. */
	tcp_set_tso(c->tcp, 0);
	if (!tcp_leave(c->tcp, t->now, &note))
		sk_share_give(&t->left_share, left.user, left.units);
}

bool
eng_conn_left(const struct tcp_conn *conn, struct eng_left *left)
{
	const struct tcp_note *note = tcp_left(conn);

	if (note == NULL)
		return false;
	memcpy(left, note, sizeof(*left));
	return true;
}

void
eng_conn_left_end(struct eng_transport *t, const struct tcp_conn *conn)
{
	struct eng_left left;

	if (eng_conn_left(conn, &left))
		sk_share_give(&t->left_share, left.user, left.units);
}

static void
linger_end(struct eng_transport *t, struct eng_conn *c)
{
	c->lingers = false;
	eng_conn_pend(t, c, ECONN_P_CLOSE);
}

void
eng_conn_peer_fin(struct eng_transport *t, struct eng_conn *c)
{
	c->fin = true;
	if (c->state == ECONN_CARRIER)
		c->link->peer_fin(t, c);
	else if (c->state == ECONN_BOUND)
		eng_conn_pend(t, c, ECONN_P_FIN);
	else if (c->state == ECONN_OPENING || c->state == ECONN_WAITING)
		eng_startup_fail(t, c, -ECONNRESET);
	else if (c->lingers || c->state == ECONN_DRAIN)
		linger_end(t, c);
}

void
eng_tcp_event(void *ctx, struct tcp_conn *conn, enum tcp_event ev)
{
	struct eng_transport *t = ctx;
	struct eng_conn *c = tcp_user(conn);

	if (c == NULL) {
		if (ev == TCP_EV_CONNECTED)
			eng_startup_passive(t, conn);
		return;
	}
	switch (ev) {
	case TCP_EV_CONNECTED:
		eng_startup_connected(t, c);
		break;
	case TCP_EV_SENT:
		if (c->state == ECONN_BOUND || c->state == ECONN_CARRIER)
			c->link->sent(t, c);
		if (c->lingers && tcp_all_acked(conn))
			linger_end(t, c);
		break;
	case TCP_EV_UNREAD:
	case TCP_EV_EMSS:
		if (c->state == ECONN_BOUND)
			c->link->emss(t, c);
		break;
	case TCP_EV_PEER_FIN:
		eng_conn_peer_fin(t, c);
		break;
	case TCP_EV_CLOSED:
		conn_closed(t, c);
		break;
	}
}

void
eng_conn_bind(struct eng_transport *t, struct eng_conn *c, uint8_t stage, uint32_t qp_index)
{
	eng_transport_link(t, stage);
	c->stage = stage;
	c->qp_index = qp_index;
	c->release_due = true;
	c->state = ECONN_BOUND;
	if (!eng_conn_alive(c)) {
		eng_conn_pend(t, c, ECONN_P_CLOSED);
		return;
	}
	c->link->bound(t, c);
	if (c->fin)
		eng_conn_pend(t, c, ECONN_P_FIN);
}

void
eng_conn_drop(const struct eng_dmsg *m)
{
	for (unsigned k = 0; k < ENG_KINDS; k++)
		eng_links[k]->drop(m);
}

void
eng_conn_message(struct eng_transport *t, const struct eng_dmsg *m)
{
	uint32_t index = m->id_type >> 4, type = m->id_type & 15;
	struct eng_conn *c = index < t->fresh ? &t->conns[index] : NULL;

	if (type == ENG_T_RELEASE) {
		if (c != NULL && c->release_due) {
			c->release_due = false;
			eng_conn_put(t, c);
		}
		return;
	}
	if (c == NULL || !eng_conn_alive(c) || c->link == NULL || c->state < ECONN_REQUESTED ||
		c->state == ECONN_CARRIER) {
		eng_conn_drop(m);
		sk_count(t->counters, ENG_STALE);
		return;
	}
	switch (type) {
	case ENG_T_CLOSE:
		c->link->close(t, c);
		break;
	case ENG_T_ABORT:
		c->link->abort(t, c);
		break;
	default:
		c->link->message(t, c, m);
	}
}
