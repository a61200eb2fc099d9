/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deliveries that wait for missing pages of the client's memory. A reliable QP keeps the first one
 * and all behind it, in order and without a verdict, so that Falcon's windows and resources bound
 * them. A datagram must not block the connection that it shares with other QPs: its bytes are
 * copied, it counts as received, and only the datagrams of the same QP wait behind it.
 */
#include "rof_priv.h"

#include <stdlib.h>
#include <string.h>

#define LATE_MIN 16 /* the first capacity, in deliveries */

/* ---- Deliveries of a reliable QP ---- */

static bool
late_grow(struct rof_chan *c)
{
	struct fa_delivery *d = rof_ring_grow(
		c->late, sizeof(*d), &c->late_cap, c->late_head, c->late_tail, LATE_MIN);

	if (d != NULL)
		c->late = d;
	return d != NULL;
}

void
rof_late_add(struct rof_chan *c, const struct fa_delivery *d)
{
	if (c->late_tail - c->late_head < c->late_cap || late_grow(c)) {
		c->late[c->late_tail++ & (c->late_cap - 1)] = *d;
		c->is_late = true;
		return;
	}
	if (d->buf != NULL)
		c->st->ops.buf_put(c->st->ctx, d->buf);
	if (c->rc != NULL)
		rof_fail(c->rc, ROF_NO_BUFFER);
}

void
rof_chan_drop(struct rof_chan *c)
{
	for (; c->late_head != c->late_tail; c->late_head++) {
		struct fa_delivery *d = &c->late[c->late_head & (c->late_cap - 1)];

		if (d->buf != NULL)
			c->st->ops.buf_put(c->st->ctx, d->buf);
	}
	while (c->parked != NULL)
		rof_parked_remove(c);
}

static void
late_deliveries(struct rof_chan *c)
{
	while (c->late_head != c->late_tail) {
		struct fa_delivery d = c->late[c->late_head & (c->late_cap - 1)];

		if (!rof_rx_one(c, &d))
			return;
		c->late_head++;
	}
	c->is_late = false;
}

/* ---- Datagrams ---- */

struct rof_late {
	struct rof_late *next;
	struct rof_recv *r;
	int user;         /* ops.late_take() */
	struct rof_in in; /* its buffer is `buf` */
	struct fa_buf buf;
	uint8_t grh[ROF_GRH_LEN];
	uint8_t bytes[]; /* the packet, with its headers */
};

/* Takes a place for a datagram that waits. Returns false when there is none. */
static bool
late_take(struct rof_qp *q, int *user)
{
	struct rof_stage *st = q->st;

	if (st->late >= ROF_LATE_ALL)
		return false;
	*user = st->ops.late_take != NULL ? st->ops.late_take(st->ctx, q) : 0;
	st->late += *user >= 0;
	return *user >= 0;
}

static void
late_give(struct rof_stage *st, int user)
{
	st->late--;
	if (st->ops.late_give != NULL)
		st->ops.late_give(st->ctx, user);
}

bool
rof_late_datagram(struct rof_qp *q, const struct rof_in *in, const uint8_t grh[ROF_GRH_LEN],
	struct rof_recv *r)
{
	struct rof_late *l;
	int user;

	if (!late_take(q, &user))
		return false;
	l = malloc(sizeof(*l) + in->buf->data_len);
	if (l == NULL) {
		late_give(q->st, user);
		return false;
	}
	l->user = user;
	l->next = NULL;
	l->r = r;
	l->in = *in;
	l->buf = (struct fa_buf){
		.data = l->bytes, .data_len = in->buf->data_len, .len = in->buf->len};
	l->in.buf = &l->buf;
	memcpy(l->bytes, in->buf->data, in->buf->data_len);
	memcpy(l->grh, grh, ROF_GRH_LEN);
	*q->late_end = l;
	q->late_end = &l->next;
	q->nlate++;
	return true;
}

/* Removes the first datagram that waits. */
static void
late_remove(struct rof_qp *q)
{
	struct rof_late *l = q->late;

	q->late = l->next;
	if (q->late == NULL)
		q->late_end = &q->late;
	q->nlate--;
	late_give(q->st, l->user);
	rof_recv_put(q->st, l->r);
	free(l);
}

static void
late_datagrams(struct rof_qp *q)
{
	while (q->late != NULL) {
		if (!rof_ud_deliver(q, q->late->r, &q->late->in, q->late->grh))
			return;
		late_remove(q);
	}
}

static void
late_flush(struct rof_qp *q, const struct rof_recv *r)
{
	struct rd_wc wc = {
		.wr_id = r->wr.wr_id,
		.qpn = q->rd->qpn,
		.opcode = RD_RECV,
		.status = RD_WR_FLUSH_ERR,
	};

	q->st->ops.rd.complete(q->st->ctx, q->rd, true, &wc);
}

void
rof_late_end(struct rof_qp *q, bool flush)
{
	while (q->late != NULL) {
		if (flush)
			late_flush(q, q->late->r);
		late_remove(q);
	}
	if (q->kept == NULL)
		return;
	if (flush)
		late_flush(q, q->kept);
	rof_recv_put(q->st, q->kept);
	q->kept = NULL;
}

bool
rof_pages(struct rof_qp *q)
{
	bool waited = q->tx_pages;

	q->tx_pages = false;
	late_datagrams(q);
	if (q->c == NULL)
		return waited;
	rof_parked_run(q->c);
	late_deliveries(q->c);
	return rof_rx_kicks(q->c) || waited;
}
