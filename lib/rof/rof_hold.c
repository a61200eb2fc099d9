/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams before their connection exists. A program may post as soon as it has an address handle,
 * but the connection takes round trips to create, or fails. Datagrams posted meanwhile wait as
 * pending messages, so that a host that does not answer blocks no send queue: beyond a limit, a
 * datagram is lost immediately, as datagrams may be.
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
	if (c->pending_tail - c->pending_head == c->pending_cap && !rof_pending_grow(c))
		return ROF_ROOM_RING;
	return ROF_ROOM;
}

/* Until the first message is sent, each transaction corresponds to one pending message. */
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
	c->tx_cell = p->pools.tx_cell;
	c->rx_cell = p->pools.rx_cell;
	c->txns = txns;
	for (uint32_t i = c->txn_base; i != c->txn_next; i++) {
		struct rof_txn *t = &old[i & (c->txn_cap - 1)];
		struct rof_msg *m =
			&c->pending[(c->pending_head + i - c->txn_base) & (c->pending_cap - 1)];

		if (m->buf->len > most) {
			c->st->ops.buf_put(c->st->ctx, m->buf);
			rof_txn_lost(c, t);
			continue;
		}
		rof_txn_move(c, &txns[(p->tx_rsn + n) & (c->txn_cap - 1)], t);
		c->pending[(c->pending_head + n++) & (c->pending_cap - 1)] = *m;
	}
	free(old);
	c->txn_base = p->tx_rsn;
	c->txn_next = p->tx_rsn + n;
	c->pending_tail = c->pending_head + n;
	return true;
}
