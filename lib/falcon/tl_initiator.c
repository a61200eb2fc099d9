/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator (section 8.4). A request of the local ULP gets its RSN and all the resources that
 * its answer will need, and goes to packet delivery; acknowledgements and pull data complete it.
 */
#include "conn_priv.h"

/* ---- The state machine of 8.4.1: the effect of an event on a transaction ---- */

enum step {
	NOT = 0, /* impossible */
	SAME,    /* no change */
	ACKD,    /* the pull request has arrived */
	DONE,    /* complete, with the event's completion */
};

static const uint8_t steps[TL_GONE + 1][TL_EV_GIVE_UP + 1] = {
	/*                 ACK   FAIL  DATA  GIVE_UP */
	[TL_PUSH_TX] = {DONE, DONE, NOT, DONE},
	[TL_PULL_TX] = {ACKD, DONE, DONE, DONE},
	[TL_PULL_ACKD] = {NOT, NOT, DONE, DONE},
	[TL_READY] = {SAME, SAME, NOT, SAME},
	[TL_GONE] = {SAME, SAME, NOT, NOT},
};

bool
tl_initiator_event(struct tl_txn *t, enum tl_event ev, uint8_t completion, uint8_t ulp_code)
{
	enum step step = steps[t->state][ev];

	if (step == ACKD)
		t->state = TL_PULL_ACKD;
	if (step == DONE) {
		t->state = TL_READY;
		t->completion = completion;
		t->ulp_code = ulp_code;
		tl_remove(&t->c->s->tl.pulls, t);
		tl_ready(t);
	}
	return step != NOT;
}

/* ---- Requests of the local ULP ---- */

/* Fails a request that gets no transaction. On an ordered connection no request can follow it. */
static void
tl_initiator_refuse(struct fa_conn *c, uint64_t now, uint32_t rsn, enum fa_completion code)
{
	struct fa_delivery d = {.type = FA_COMPLETION, .completion = code, .rsn = rsn};

	if (!c->params.ordered && !c->tl.busy && tl_deliver(c, &d))
		return;
	c->tl.lost = true;
	c->tl.lost_rsn = rsn;
	c->tl.lost_code = code;
	fa_conn_fail(c, now, code);
}

bool
tl_begin(struct fa_conn *c, uint64_t now, bool pull, uint32_t rsn, struct fa_buf *buf,
	uint32_t response_len)
{
	struct fa_stack *s = c->s;
	const struct fa_pools *p = &s->cfg.pools;
	uint32_t len = buf != NULL ? buf->len : 0;
	struct tl_txn *t = tl_request_alloc(c, pull ? 1 : tl_cells(len, p->tx_cell),
		pull ? tl_cells(response_len, p->rx_cell) : 0);

	if (t == NULL)
		return false;
	t->type = t->pkt.type = pull ? FALCON_PULL_REQUEST : FALCON_PUSH_DATA;
	t->state = pull ? TL_PULL_TX : TL_PUSH_TX;
	t->pkt.buf = buf;
	t->pkt.rsn = rsn;
	t->pkt.request_len = pull ? response_len : len;
	t->pkt.since = fa_observed(c->s, now);
	t->in_pdl = true;
	TAILQ_INSERT_TAIL(&c->tl.reqs, t, link);
	if (pull)
		tl_insert(&s->tl.pulls, t);
	tl_watch(c, now);
	pdl_send(c, now, &t->pkt);
	tl_xoff(s);
	return true;
}

static void
tl_initiator_start(
	struct fa_conn *c, uint64_t now, bool pull, struct fa_buf *buf, uint32_t response_len)
{
	struct fa_stack *s = c->s;
	struct tl_conn *tl = &c->tl;
	uint32_t rsn = tl->tx_rsn++;

	if (tl->lost || c->dead) {
		if (!tl->lost) {
			tl->lost = true;
			tl->lost_rsn = rsn;
			tl->lost_code = FA_DEAD_CONNECTION;
		}
		fa_buf_free(s, buf);
		tl_run(c, now);
		return;
	}
	if ((buf != NULL && buf->len > c->params.mtu) || response_len > c->params.mtu) {
		fa_count(s, FA_LENGTH);
		fa_buf_free(s, buf);
		tl_initiator_refuse(c, now, rsn, FA_OPERATION_ERROR);
		return;
	}
	if (tl->wait_head == NULL && tl_begin(c, now, pull, rsn, buf, response_len))
		return;
	fa_count(s, FA_POOL_EMPTY);
	if (tl_wait(c, pull, rsn, buf, response_len))
		return;
	fa_buf_free(s, buf);
	tl_initiator_refuse(c, now, rsn, FA_LOCAL_RESOURCE);
}

/* Does what tl_initiator_start() does for a request whose resources are free. Returns false,
 * without any effect, otherwise. */
static inline __attribute__((always_inline)) bool
request_start(struct fa_conn *c, uint64_t now, bool pull, struct fa_buf *buf, uint32_t response_len)
{
	const struct fa_pools *p = &c->s->cfg.pools;
	struct tl_conn *tl = &c->tl;
	struct tl_txn *t;

	if (tl->lost || c->dead || buf->len > c->params.mtu || response_len > c->params.mtu ||
		tl->wait_head != NULL || c->s->cfg.general)
		return false;
	t = tl_request_alloc(c, pull ? 1 : tl_cells(buf->len, p->tx_cell),
		pull ? tl_cells(response_len, p->rx_cell) : 0);
	if (t == NULL)
		return false;
	t->type = t->pkt.type = pull ? FALCON_PULL_REQUEST : FALCON_PUSH_DATA;
	t->state = pull ? TL_PULL_TX : TL_PUSH_TX;
	t->pkt.buf = buf;
	t->pkt.rsn = tl->tx_rsn++;
	t->pkt.request_len = pull ? response_len : buf->len;
	t->pkt.since = fa_observed(c->s, now);
	t->in_pdl = true;
	TAILQ_INSERT_TAIL(&tl->reqs, t, link);
	if (pull)
		tl_insert(&c->s->tl.pulls, t);
	if (tl->reclaim_at == SK_NEVER)
		tl_watch(c, now);
	pdl_send(c, now, &t->pkt);
	if (tl_scarce(&c->s->tl))
		tl_xoff(c->s);
	return true;
}

void
fa_push(struct fa_conn *c, uint64_t now, struct fa_buf *buf)
{
	if (buf == NULL || !request_start(c, now, false, buf, 0))
		tl_initiator_start(c, now, false, buf, 0);
}

void
fa_pull(struct fa_conn *c, uint64_t now, struct fa_buf *buf, uint32_t response_len)
{
	if (buf == NULL || !request_start(c, now, true, buf, response_len))
		tl_initiator_start(c, now, true, buf, response_len);
}

void
fa_request(struct fa_conn *c, uint64_t now, struct fa_buf *buf)
{
	if (buf->pull)
		fa_pull(c, now, buf, buf->response_len);
	else
		fa_push(c, now, buf);
}

/* ---- From packet delivery ---- */

void
tl_packet_gone(struct fa_stack *s, struct tl_txn *t)
{
	t->in_pdl = false;
	fa_buf_free(s, t->pkt.buf);
	t->pkt.buf = NULL;
	tl_request_tx_done(s, t);
}

void
tl_sent(struct fa_conn *c, uint64_t now, struct fa_pkt *p, enum fa_completion how, uint8_t ulp_code)
{
	struct tl_txn *t = tl_txn_of(p);

	/* A push is in no table, and an ordered connection completes it in the order of c->tl.reqs:
	 * see the row of TL_PUSH_TX. */
	if (t->state == TL_PUSH_TX && how == FA_DONE && c->params.ordered && !c->s->cfg.general) {
		tl_packet_gone(c->s, t);
		t->state = TL_READY;
		t->completion = FA_DONE;
		t->ulp_code = ulp_code;
		return;
	}
	if (t->state == TL_DATA_TX) {
		tl_pkt_free(c, p);
		return;
	}
	tl_packet_gone(c->s, t);
	if (t->state == TL_GONE)
		tl_request_free(c->s, t);
	else
		tl_initiator_event(t, how == FA_DONE ? TL_EV_ACK : TL_EV_FAIL, how, ulp_code);
}

/* Ends the pushes and pull data, whose payloads are freed together. See tl_sent() for the pushes of
 * ordered connections. */
void
tl_all_sent(struct fa_conn *c, uint64_t now, struct fa_pkt *const *p, unsigned n)
{
	struct tl_stack *tl = &c->s->tl;
	struct fa_buf *bufs, **end = &bufs;

	for (unsigned i = 0; i < n; i++) {
		struct tl_txn *t = tl_txn_of(p[i]);
		struct fa_buf *buf = t->pkt.buf;
		bool data = t->state == TL_DATA_TX;

		if (buf == NULL || (!data && (t->state != TL_PUSH_TX || !c->params.ordered))) {
			tl_sent(c, now, p[i], FA_DONE, p[i]->ulp_code);
			continue;
		}
		*end = buf;
		end = &buf->next;
		if (data) {
			tl_data_free(c->s, t);
			continue;
		}
		t->pkt.buf = NULL;
		t->in_pdl = false;
		t->state = TL_READY;
		t->completion = FA_DONE;
		t->ulp_code = p[i]->ulp_code;
		tl->tx_pkt_req.used--;
		tl->tx_buf_req.used -= t->tx_cells;
	}
	*end = NULL;
	fa_bufs_free(c->s, bufs);
}

void
tl_pkt_free(struct fa_conn *c, struct fa_pkt *p)
{
	struct tl_txn *t = tl_txn_of(p);

	if (t->state == TL_DATA_TX) {
		fa_buf_free(c->s, p->buf);
		tl_data_free(c->s, t);
		return;
	}
	tl_packet_gone(c->s, t);
	if (t->state == TL_GONE)
		tl_request_free(c->s, t);
}

/* Returns the pull with this RSN whose pull data has not arrived, or NULL. Usually it is the oldest
 * request. */
static struct tl_txn *
pull_find(const struct fa_conn *c, uint32_t rsn)
{
	struct tl_txn *t = TAILQ_FIRST(&c->tl.reqs);

	if (t != NULL && t->pkt.rsn == rsn && t->hashed)
		return t;
	return tl_find(&c->s->tl.pulls, c, rsn);
}

enum tl_take
tl_rx_pull_data(
	struct fa_conn *c, uint64_t now, const struct wire_falcon *h, struct fa_buf *payload)
{
	struct fa_stack *s = c->s;
	struct tl_txn *t = pull_find(c, h->rsn);

	if (t != NULL && t->in_pdl)
		pdl_implied_ack(c, now, &t->pkt);
	/* Section 11: a longer payload is an error, a shorter one is valid. */
	if (t != NULL && payload != NULL && payload->len > t->pkt.request_len) {
		fa_count(s, FA_LENGTH);
		tl_initiator_event(t, TL_EV_GIVE_UP, FA_OPERATION_ERROR, 0);
		return TL_DROPPED;
	}
	if (t == NULL || !tl_initiator_event(t, TL_EV_DATA, FA_DONE, 0)) {
		fa_count(s, FA_NO_REQUEST);
		return TL_DROPPED;
	}
	t->buf = payload;
	return TL_TAKEN;
}

bool
tl_run_pull_data(struct fa_conn *c, uint64_t now, const struct wire_falcon_plain *h)
{
	struct tl_txn *t = TAILQ_FIRST(&c->tl.reqs);
	struct fa_stack *s = c->s;

	/* A pull in the table has no pull data yet. */
	if (t == NULL || t->pkt.rsn != h->rsn || !t->hashed || t->pkt.resync ||
		h->len > t->pkt.request_len)
		return false;
	if (t->in_pdl)
		pdl_implied_ack(c, now, &t->pkt);
	tl_remove(&s->tl.pulls, t);
	TAILQ_REMOVE(&c->tl.reqs, t, link);
	tl_request_rx_done(s, t);
	tl_request_free(s, t);
	return true;
}
