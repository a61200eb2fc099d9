/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams before there is a connection. A program may post as soon as it has an address handle;
 * making the connection takes round trips, or fails. What is posted meanwhile waits as messages
 * that are not said yet, so that one host that does not answer holds up nobody's send queue: beyond
 * a bound a datagram is lost at once, as datagrams may be.
 */
#include "rof_priv.h"

#include <stdlib.h>

void
rof_chan_hold(struct rof_chan *c, unsigned most)
{
	c->held = true;
	c->hold = SK_MIN(most, ROF_HELD_MAX);
}

enum rof_room
rof_hold_room(struct rof_chan *c)
{
	if (c->txn_next - c->txn_base >= c->hold)
		return ROF_ROOM_LOST;
	if (c->txn_next - c->txn_base == c->txn_cap && !rof_txns_grow(c))
		return ROF_ROOM_RING;
	if (c->owed_tail - c->owed_head == c->owed_cap && !rof_owed_grow(c))
		return ROF_ROOM_RING;
	return ROF_ROOM;
}

static void
rof_hold_lose(struct rof_chan *c, const struct rof_txn *t, struct fa_buf *buf)
{
	c->st->ops.buf_put(c->st->ctx, buf);
	if (t->qp == NULL)
		return;
	rof_count(c->st, ROF_UD_LOST);
	rof_req_progress(t->qp, t->req, RD_SUCCESS, 0);
}

/* While nothing has been said, transactions and what waits to be said go in step. */
bool
rof_chan_open(struct rof_chan *c, const struct rof_chan_params *p)
{
	uint32_t most = wire_rof_len(ROF_UD | ROF_SEND_ONLY_IMM) + p->mtu + 3, n = 0;
	struct rof_txn *old = c->txns, *txns = NULL;

	if (!c->held || p->transport != ROF_UD || !rof_params_ok(p))
		return false;
	if (c->txn_cap > 0 && (txns = calloc(c->txn_cap, sizeof(*txns))) == NULL)
		return false;
	c->held = false;
	c->p = *p;
	c->txns = txns;
	for (uint32_t i = c->txn_base; i != c->txn_next; i++) {
		const struct rof_txn *t = &old[i & (c->txn_cap - 1)];
		struct rof_msg *m = &c->owed[(c->owed_head + i - c->txn_base) & (c->owed_cap - 1)];

		if (m->buf->len > most) {
			rof_hold_lose(c, t, m->buf);
			continue;
		}
		txns[(p->tx_rsn + n) & (c->txn_cap - 1)] = *t;
		c->owed[(c->owed_head + n++) & (c->owed_cap - 1)] = *m;
	}
	free(old);
	c->txn_base = p->tx_rsn;
	c->txn_next = p->tx_rsn + n;
	c->owed_tail = c->owed_head + n;
	return true;
}
