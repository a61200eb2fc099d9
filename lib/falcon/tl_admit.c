/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission of requests from the network: their validity, and the resources for them (section
 * 8.2.4). In the green zone, the shares of users and connections decide. The head of its
 * connection's line is admitted beyond these and into the red zone, and a push that the ULP refused
 * makes room for it, but only while no other request of the connection is on its way through the
 * ULP: on an ordered connection each request that arrives in order is the head of line. So a head
 * of line is refused only where others are on their way through the ULP (CR#3).
 */
#include "conn_priv.h"

#include "../base/mem.h"

/* Returns whether a request is the head of its line. On an unordered connection it is, when no
 * request is on its way through the ULP. Pushes that the ULP refused do not count as on their way:
 * they may wait for a retransmission, and for this very packet, since windows move in order. */
static bool
head_of_line(const struct fa_conn *c, uint32_t rsn)
{
	return c->params.ordered ? rsn == c->tl.rx_rsn : c->tl.in_net == c->tl.evictable;
}

/* Returns the number of admitted requests that are not on their way through the ULP. */
static uint32_t
waiting(const struct tl_conn *tl)
{
	return SK_MAX(tl->held, tl->evictable);
}

/* Returns whether the peer may have one more pull outstanding. Those whose data is not acknowledged
 * count, except for as many as the peer may have received already: a peer that complies never has
 * more. The request that others wait for is not refused because of those that wait. */
static bool
pulls_permit(struct fa_conn *c, uint64_t now, bool hol)
{
	uint32_t share = c->s->cfg.conn_pulls, most = c->params.pulls, have = c->tl.pulls;

	if (hol)
		have -= c->tl.pulls_held;
	if (share && have >= share) {
		fa_count(c->s, FA_PULLS_SHARE);
		return false;
	}
	if (!most || have < most || have - most < pdl_data_in_doubt(c, now))
		return true;
	fa_count(c->s, FA_PULLS_EXCESS);
	return false;
}

/* Returns whether a request fits into the limits of the connection and the share of its user. */
static bool
shares_permit(const struct fa_conn *c, bool pull, uint32_t cells)
{
	const struct tl_shares *sh = &c->s->tl.shares;
	uint32_t limit = c->s->cfg.conn_requests;

	return (!limit || c->tl.in_net < limit) && tl_net_share(c, pull) &&
	       sk_share_check(&sh->net, c->tl.share, tl_units(cells, sh->rx_cells)) == SK_SHARE_OK;
}

/* `head`: the request is the head of its line; `alone`: and no request of the connection is on its
 * way through the ULP. */
static bool
tl_admit_permits(
	struct fa_conn *c, uint64_t now, uint8_t type, uint32_t cells, bool head, bool alone)
{
	struct fa_stack *s = c->s;
	bool pull = type == FALCON_PULL_REQUEST;

	if (pull && !pulls_permit(c, now, head))
		return false;
	if (!alone)
		return tl_net_fits(s, cells, false) && shares_permit(c, pull, cells);
	/* All that an unordered connection holds now are pushes that the ULP refused. A further one
	 * takes the place of these where the connection may not hold more. */
	while (!c->params.ordered && c->tl.evictable > 0 && !shares_permit(c, pull, cells))
		tl_rnr_evict_last(c);
	while (!tl_net_fits(s, cells, true)) {
		if (!tl_rnr_evict(s, now))
			return false;
	}
	return true;
}

/* Admits a request. Returns NULL, and counts it, when there is no room. */
static struct tl_txn *
tl_admit_enter(
	struct fa_conn *c, uint64_t now, uint8_t type, uint8_t state, uint32_t rsn, uint32_t cells)
{
	struct fa_stack *s = c->s;
	struct tl_conn *tl = &c->tl;
	bool head = head_of_line(c, rsn), alone = head && tl->in_net == waiting(tl);
	struct tl_txn *t = tl_admit_permits(c, now, type, cells, head, alone)
				   ? tl_net_alloc(c, type, cells, alone)
				   : NULL;

	if (t == NULL) {
		fa_count(s, FA_NO_RESOURCE);
		return NULL;
	}
	t->state = state;
	t->pkt.rsn = rsn;
	TAILQ_INSERT_TAIL(&tl->ins, t, link);
	tl_insert(&s->tl.requests, t);
	if (c->params.ordered) {
		tl_hold(tl, t, 1);
		if (rsn != tl->rx_rsn && tl->head == NULL && tl->gap_since == 0)
			tl_gap(c, now);
	}
	return t;
}

static bool
lengths_ok(const struct fa_conn *c, const struct wire_falcon *h, uint32_t len)
{
	return len <= c->params.mtu && h->request_len <= c->params.mtu &&
	       (h->type != FALCON_PUSH_DATA || h->request_len == len);
}

/* Processes a request whose RSN is present already. */
static enum tl_take
came_again(struct tl_txn *t, uint64_t now, const struct wire_falcon *h, struct fa_buf *payload,
	bool again)
{
	struct fa_stack *s = t->c->s;

	if (!again || t->type != FALCON_PUSH_DATA || t->psn != h->psn) {
		fa_count(s, FA_RSN);
		return TL_DROPPED;
	}
	fa_buf_free(s, payload);
	tl_rnr_again(t, now);
	return TL_TAKEN;
}

/* The request goes to the ULP at once: it never is one of those that are held. Where the peer may
 * have more pulls than agreed, or resources are scarce, tl_admit_permits() decides. */
bool
tl_run_pull(struct fa_conn *c, const struct wire_falcon_plain *h)
{
	struct fa_stack *s = c->s;
	struct tl_conn *tl = &c->tl;
	uint32_t share = s->cfg.conn_pulls, limit = s->cfg.conn_requests, most = c->params.pulls;
	struct tl_txn *t;

	if (h->rsn != tl->rx_rsn || h->request_len > c->params.mtu ||
		(share && tl->pulls >= share) || (most && tl->pulls >= most) ||
		(limit && tl->in_net >= limit) || !tl_net_calm(&s->tl, 1) || !tl_pulls_calm(&s->tl))
		return false;
	t = tl_net_alloc(c, FALCON_PULL_REQUEST, 1, false);
	if (t == NULL)
		return false;
	t->state = TL_ULP_TX;
	t->psn = h->psn;
	t->pkt.rsn = h->rsn;
	t->pkt.request_len = h->request_len;
	TAILQ_INSERT_TAIL(&tl->ins, t, link);
	tl_insert(&s->tl.requests, t);
	tl->out++;
	tl->rx_rsn++;
	tl->gap_since = 0;
	return true;
}

static enum tl_take
rx_request(struct fa_conn *c, uint64_t now, const struct wire_falcon *h, struct fa_buf *payload,
	bool again)
{
	struct fa_stack *s = c->s;
	struct tl_conn *tl = &c->tl;
	bool push = h->type == FALCON_PUSH_DATA;
	uint32_t len = payload != NULL ? payload->len : 0;
	struct tl_txn *t;

	if (!lengths_ok(c, h, len)) {
		fa_count(s, FA_LENGTH);
		return TL_DROPPED;
	}
	t = tl_request(c, h->rsn);
	if (t != NULL)
		return came_again(t, now, h, payload, again);
	if (c->params.ordered && h->rsn - tl->rx_rsn >= TL_RSN_REACH) {
		fa_count(s, FA_RSN);
		return TL_DROPPED;
	}
	t = tl_admit_enter(
		c, now, h->type, TL_HELD, h->rsn, push ? tl_cells(len, s->cfg.pools.rx_cell) : 1);
	if (t == NULL)
		return TL_REFUSED;
	t->psn = h->psn;
	t->pkt.request_len = h->request_len;
	t->buf = payload;
	tl_ready(t);
	if (tl->rnr == TL_RNR_WAIT) {
		if (h->rsn == tl->rx_rsn)
			tl->offer = true;
		else if (push)
			tl_rnr_behind(t, now);
	}
	return TL_TAKEN;
}

bool
tl_rx_is_next(const struct fa_conn *c, const struct wire_falcon *h)
{
	const struct tl_txn *oldest = TAILQ_FIRST(&c->tl.reqs);

	if (h->type != FALCON_PULL_DATA)
		return head_of_line(c, h->rsn);
	return !c->params.ordered || (oldest != NULL && oldest->pkt.rsn == h->rsn);
}

enum tl_take
tl_rx(struct fa_conn *c, uint64_t now, const struct wire_falcon *h, struct fa_buf *payload,
	bool again)
{
	if (h->type == FALCON_PULL_DATA)
		return tl_rx_pull_data(c, now, h, payload);
	return rx_request(c, now, h, payload, again);
}

/* ---- Resync ---- */

static enum tl_take
resynced_pull_data(struct fa_conn *c, uint32_t rsn)
{
	struct tl_txn *t = tl_find(&c->s->tl.pulls, c, rsn);

	if (t == NULL) {
		fa_count(c->s, FA_NO_REQUEST);
		return TL_DROPPED;
	}
	tl_initiator_event(t, TL_EV_GIVE_UP, FA_REMOTE_ERROR, 0);
	return TL_TAKEN;
}

enum tl_take
tl_resynced(struct fa_conn *c, uint64_t now, const struct wire_falcon *h)
{
	struct tl_conn *tl = &c->tl;
	struct tl_txn *t;

	if (h->resync_type == FALCON_PULL_DATA)
		return resynced_pull_data(c, h->rsn);
	t = tl_request(c, h->rsn);
	if (t != NULL && (t->state == TL_HELD || t->state == TL_REFUSED_BY_ULP)) {
		tl_pass_over(t, now);
		return TL_TAKEN;
	}
	if (t != NULL) {
		t->no_ack = true;
		return TL_TAKEN;
	}
	if (!c->params.ordered || (int32_t)(h->rsn - tl->rx_rsn) < 0)
		/* No later request depends on it: this is a Resync after a NACK. */
		return TL_TAKEN;
	if (h->rsn - tl->rx_rsn >= TL_RSN_REACH) {
		fa_count(c->s, FA_RSN);
		return TL_DROPPED;
	}
	t = tl_admit_enter(c, now, h->resync_type, TL_PASSED_OVER, h->rsn, 0);
	if (t == NULL)
		return TL_REFUSED;
	tl_pass_over(t, now);
	return TL_TAKEN;
}
