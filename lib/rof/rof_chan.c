/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ULP side of one Falcon connection. Falcon numbers requests in the order in which they are
 * submitted, so the channel counts them to get their RSN, and matches deliveries by it. A message
 * for which the ring has no room becomes pending, and no transaction is started until it is sent.
 */
#include "rof_priv.h"

#include <stdlib.h>
#include <string.h>

void
rof_users(struct rof_stage *st, int change)
{
	st->users += (unsigned)change;
	if (st->users > 0)
		return;
	free(st->spare_op);
	st->spare_op = NULL;
	while (st->spare_recv != NULL) {
		struct rof_recv *r = st->spare_recv;

		st->spare_recv = r->next;
		free(r);
	}
	st->spare_recvs = 0;
}

/* Sets *out to the cost of a transaction. Returns false for datagram channels, which have no
 * credits: they serve many QPs, and Falcon itself refuses requests (8.2.3). */
static bool
cost(const struct rof_chan_params *p, enum rof_txn_kind kind, uint32_t len, struct fa_credits *out)
{
	if (p->transport == ROF_UD)
		return false;
	if (kind == ROF_TXN_PUSH)
		fa_cost_push(&p->pools, len, out);
	else
		fa_cost_pull(&p->pools, len, out);
	return true;
}

/* Checks that the credits suffice for one full packet, behind the longest headers of its kind;
 * otherwise the packet would wait for ever. */
static bool
one_fits(const struct rof_chan_params *p, enum rof_txn_kind kind)
{
	uint8_t opcode = kind == ROF_TXN_PUSH ? ROF_WRITE_ONLY_IMM : ROF_READ_RESPONSE_ONLY;
	uint32_t len = wire_rof_len(opcode | p->transport) + p->mtu + wire_rof_pad(p->mtu);
	struct fa_credits have = p->credits, need;

	return !cost(p, kind, len, &need) || fa_credits_take(&have, &need);
}

bool
rof_params_ok(const struct rof_chan_params *p)
{
	if (p->mtu < ROF_MTU_MIN || p->mtu > ROF_MTU_MAX || p->ordering > ROF_ORDER_NONE ||
		p->errors > ROF_ERRORS_COMPLETE || p->pools.tx_cell == 0 || p->pools.rx_cell == 0)
		return false;
	/* Without order between packets, the requests before an error cannot be determined
	 * (6.4). */
	if (p->ordering == ROF_ORDER_NONE && p->errors != ROF_ERRORS_COMPLETE)
		return false;
	return one_fits(p, ROF_TXN_PUSH) && one_fits(p, ROF_TXN_READ);
}

static void
chan_init(struct rof_chan *c, struct rof_stage *st, const struct rof_chan_params *p, void *user)
{
	memset(c, 0, sizeof(*c));
	c->st = st;
	c->user = user;
	c->p = *p;
	c->tx_cell = p->pools.tx_cell;
	c->rx_cell = p->pools.rx_cell;
	c->plain = p->transport == ROF_RC && p->ordering == ROF_ORDER_STRONG && !st->lengths_only &&
		   !st->general;
	c->credits = p->credits;
	c->txn_base = c->txn_next = p->tx_rsn;
	c->sn = c->sn_next = 1; /* 8.2 */
	TAILQ_INIT(&c->ready);
	TAILQ_INIT(&c->waiting);
}

struct rof_chan *
rof_chan_create(struct rof_stage *st, const struct rof_chan_params *p, void *user)
{
	struct rof_chan *c =
		rof_params_ok(p) ? aligned_alloc(_Alignof(struct rof_chan), sizeof(*c)) : NULL;

	if (c == NULL)
		return NULL;
	chan_init(c, st, p, user);
	rof_users(st, 1);
	return c;
}

void
rof_chan_lose(struct rof_chan *c)
{
	for (; c->txn_base != c->txn_next; c->txn_base++)
		rof_txn_lost(c, &c->txns[c->txn_base & (c->txn_cap - 1)]);
	c->wakes = UINT32_MAX;
}

/* Frees what the channel has. */
static void
chan_clear(struct rof_chan *c)
{
	struct rof_stage *st = c->st;

	if (c->p.transport == ROF_UD)
		rof_chan_lose(c);
	for (; c->pending_head != c->pending_tail; c->pending_head++) {
		struct rof_msg *m = &c->pending[c->pending_head & (c->pending_cap - 1)];

		if (m->buf != NULL)
			st->ops.buf_put(st->ctx, m->buf);
		if (m->outcome.buf != NULL)
			st->ops.buf_put(st->ctx, m->outcome.buf);
	}
	while (rof_chan_wake(c) != NULL)
		;
	rof_chan_drop(c);
	free(c->late);
	free(c->pending);
	free(c->txns);
}

void
rof_chan_renew(struct rof_chan *c, const struct rof_chan_params *p)
{
	chan_clear(c);
	chan_init(c, c->st, p, c->user);
}

void
rof_chan_destroy(struct rof_chan *c)
{
	struct rof_stage *st = c->st;

	chan_clear(c);
	free(c);
	rof_users(st, -1);
}

void *
rof_chan_user(const struct rof_chan *c)
{
	return c->user;
}

/* ---- Pending messages ---- */

void *
rof_ring_grow(void *ring, size_t size, uint32_t *cap, uint32_t head, uint32_t tail, uint32_t least)
{
	uint32_t more = *cap ? 2 * *cap : least;
	uint8_t *to = malloc(more * size), *from = ring;

	if (to == NULL)
		return NULL;
	for (uint32_t i = head; i != tail; i++)
		memcpy(to + (i & (more - 1)) * size, from + (i & (*cap - 1)) * size, size);
	free(ring);
	*cap = more;
	return to;
}

bool
rof_pending_grow(struct rof_chan *c)
{
	struct rof_msg *m = rof_ring_grow(c->pending, sizeof(*m), &c->pending_cap, c->pending_head,
		c->pending_tail, ROF_PENDING_MIN);

	if (m != NULL)
		c->pending = m;
	return m != NULL;
}

bool
rof_chan_send(struct rof_chan *c, const struct rof_msg *m)
{
	if (!c->held && c->pending_head == c->pending_tail && c->st->ops.pass(c->st->ctx, c, m))
		return true;
	if (c->pending_tail - c->pending_head == c->pending_cap && !rof_pending_grow(c))
		return false;
	c->pending[c->pending_tail++ & (c->pending_cap - 1)] = *m;
	return true;
}

bool
rof_chan_tx(struct rof_chan *c)
{
	if (c->held)
		return true;
	for (; c->pending_head != c->pending_tail; c->pending_head++)
		if (!c->st->ops.pass(
			    c->st->ctx, c, &c->pending[c->pending_head & (c->pending_cap - 1)]))
			return false;
	return true;
}

/* ---- Datagram QPs that wait for room ---- */

static void
chan_list(struct rof_chan *c, struct rof_qp *q, bool ready)
{
	if (q->waits_for != NULL)
		return;
	q->waits_for = c;
	q->is_ready = ready;
	TAILQ_INSERT_TAIL(ready ? &c->ready : &c->waiting, q, of_waiting);
}

void
rof_chan_wait(struct rof_chan *c, struct rof_qp *q)
{
	chan_list(c, q, false);
}

void
rof_chan_ready(struct rof_chan *c, struct rof_qp *q)
{
	chan_list(c, q, true);
}

uint32_t
rof_chan_wakes(struct rof_chan *c, uint32_t most)
{
	if (TAILQ_EMPTY(&c->waiting))
		return 0;
	c->wakes = SK_MIN(most, c->txn_cap - (c->txn_next - c->txn_base));
	return c->wakes;
}

struct rof_qp *
rof_chan_wake(struct rof_chan *c)
{
	struct rof_qp *q = TAILQ_FIRST(&c->ready);

	if (q == NULL && c->wakes > 0 && (q = TAILQ_FIRST(&c->waiting)) != NULL)
		c->wakes--;
	if (q != NULL)
		rof_chan_unwait(q);
	return q;
}

void
rof_chan_unwait(struct rof_qp *q)
{
	struct rof_chan *c = q->waits_for;

	if (c == NULL)
		return;
	TAILQ_REMOVE(q->is_ready ? &c->ready : &c->waiting, q, of_waiting);
	q->waits_for = NULL;
}

/* ---- Transactions ---- */

/* Detaches a transaction from its QP. */
static inline void
txn_detach(const struct rof_chan *c, struct rof_txn *t)
{
	if (t->qp != NULL && c->p.transport == ROF_UD)
		LIST_REMOVE(t, of_qp);
	t->qp = NULL;
}

void
rof_txn_move(const struct rof_chan *c, struct rof_txn *to, struct rof_txn *from)
{
	*to = *from;
	if (from->qp == NULL || c->p.transport != ROF_UD)
		return;
	LIST_INSERT_BEFORE(from, to, of_qp);
	LIST_REMOVE(from, of_qp);
}

void
rof_txn_lost(struct rof_chan *c, struct rof_txn *t)
{
	struct rof_qp *q = t->qp;

	if (q == NULL)
		return;
	txn_detach(c, t);
	rof_count(c->st, ROF_UD_LOST);
	rof_req_progress(q, t->req, RD_SUCCESS, 0);
	if (q->blocked)
		rof_chan_ready(c, q);
}

bool
rof_txns_grow(struct rof_chan *c)
{
	uint32_t cap = c->txn_cap ? 2 * c->txn_cap : ROF_TXNS_MIN;
	struct rof_txn *t;

	if (cap > ROF_TXNS_MAX)
		return false;
	t = malloc(cap * sizeof(*t));
	if (t == NULL)
		return false;
	for (uint32_t i = c->txn_base; i != c->txn_next; i++)
		rof_txn_move(c, &t[i & (cap - 1)], &c->txns[i & (c->txn_cap - 1)]);
	free(c->txns);
	c->txns = t;
	c->txn_cap = cap;
	return true;
}

enum rof_room
rof_chan_room(struct rof_chan *c, struct rof_qp *q, enum rof_txn_kind kind, uint32_t len)
{
	struct fa_credits need;

	if (c->held)
		return rof_hold_room(c);
	if (!rof_chan_tx(c))
		return ROF_ROOM_RING;
	if (c->txn_cap == 0 && !rof_txns_grow(c))
		return ROF_ROOM_RING;
	if ((c->txn_next - c->txn_base == c->txn_cap && !rof_txns_grow(c)) ||
		(cost(&c->p, kind, len, &need) && !fa_credits_take(&c->credits, &need))) {
		if (c->p.transport == ROF_UD)
			rof_chan_wait(c, q);
		return ROF_ROOM_LATER;
	}
	/* Room for one pending message: a transaction with an RSN must be sent. */
	if (c->pending_cap > 0 || rof_pending_grow(c))
		return ROF_ROOM;
	rof_chan_unroom(c, kind, len);
	return ROF_ROOM_RING;
}

void
rof_chan_unroom(struct rof_chan *c, enum rof_txn_kind kind, uint32_t len)
{
	struct fa_credits had;

	if (cost(&c->p, kind, len, &had))
		fa_credits_give(&c->credits, &had);
}

struct rof_txn *
rof_chan_start(struct rof_chan *c, const struct rof_msg *m, enum rof_txn_kind kind)
{
	struct rof_txn *t = &c->txns[c->txn_next++ & (c->txn_cap - 1)];
	struct fa_credits need;

	*t = (struct rof_txn){
		.kind = (uint8_t)kind,
		.sn = c->sn++,
		.len = kind == ROF_TXN_PUSH ? m->buf->len : m->response_len,
	};
	if (cost(&c->p, kind, t->len, &need))
		t->cells = (uint16_t)(kind == ROF_TXN_PUSH ? need.req_buf_tx : need.req_buf_rx);
	rof_chan_send(c, m);
	return t;
}

struct rof_txn *
rof_chan_txn(struct rof_chan *c, uint32_t rsn)
{
	struct rof_txn *t;

	if (rsn - c->txn_base >= c->txn_next - c->txn_base)
		return NULL;
	t = &c->txns[rsn & (c->txn_cap - 1)];
	return t->kind == ROF_TXN_NONE ? NULL : t;
}

void
rof_chan_done(struct rof_chan *c, uint32_t rsn, struct rof_txn *t)
{
	rof_chan_unroom(c, t->kind, t->len);
	t->kind = ROF_TXN_NONE;
	txn_detach(c, t);
	rof_chan_rebase(c);
}

void
rof_forget(struct rof_qp *q)
{
	const struct rof_chan *c = q->c;
	struct rof_txn *t;

	if (c != NULL)
		for (uint32_t i = c->txn_base; i != c->txn_next; i++)
			if (c->txns[i & (c->txn_cap - 1)].qp == q)
				c->txns[i & (c->txn_cap - 1)].qp = NULL;
	while ((t = LIST_FIRST(&q->datagrams)) != NULL) {
		LIST_REMOVE(t, of_qp);
		t->qp = NULL;
	}
}

bool
rof_chan_fills(const struct rof_chan *c, const struct rof_qp *q, uint32_t stag)
{
	for (uint32_t i = c->txn_base; q->pulls_out > 0 && i != c->txn_next; i++) {
		const struct rof_txn *t = &c->txns[i & (c->txn_cap - 1)];

		if ((t->kind == ROF_TXN_READ || t->kind == ROF_TXN_ATOMIC) && t->qp == q &&
			t->sink_lkey == stag)
			return true;
	}
	return false;
}
