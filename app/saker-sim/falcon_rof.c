/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA over Falcon. This file has the parts of the engine stage and of the ring between the stages:
 * two lists hold the messages from one stage to the other until its turn. */
#include "falcon_host.h"

#include <errno.h>
#include <stdlib.h>

#include "../../lib/base/mem.h"
#include "../../lib/rof/rof.h"
#include "rdma_client.h"

#define RNR_CODE  1
#define TX_BUDGET 64

/* A message between the stages, in one of two directions. */
struct item {
	struct item *next;
	struct sim_end *end;
	struct fa_delivery up;
	struct rof_msg down;
};

struct list {
	struct item *head, **tail;
};

struct rof_host {
	struct rdma_host rdma; /* first: context of its operations */
	struct rof_stage st;
	struct falcon_host *t;
	struct list up, down;
	struct sim_pool items;
};

static void
list_add(struct rof_host *r, struct list *l, const struct item *what)
{
	struct item *i = sim_pool_get(&r->items);

	*i = *what;
	i->next = NULL;
	*l->tail = i;
	l->tail = &i->next;
}

static struct item *
list_take(struct list *l)
{
	struct item *i = l->head;

	if (i != NULL && (l->head = i->next) == NULL)
		l->tail = &l->head;
	return i;
}

/* ---- Between the stages ---- */

static struct fa_buf *
buf_get(void *ctx, uint32_t room)
{
	struct rof_host *r = ctx;

	return sim_falcon_buf_get(r->t, NULL);
}

static void
buf_put(void *ctx, struct fa_buf *b)
{
	struct rof_host *r = ctx;

	sim_falcon_buf_free(r->t, b);
}

static bool
falcon_rof_send(void *ctx, struct rof_chan *c, const struct rof_msg *m)
{
	struct rof_host *r = ctx;
	struct rdma_end *e = rof_chan_user(c);

	list_add(r, &r->down, &(struct item){.end = e->end, .down = *m});
	return true;
}

static void
close_qp(void *ctx, struct rof_qp *q)
{
	/* qp_error() has counted the QP. */
}

static bool
falcon_rof_deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
{
	struct falcon_host *t = ctx;
	struct rof_host *r = t->ulp_state;

	list_add(r, &r->up, &(struct item){.end = fa_conn_user(c), .up = *d});
	return true;
}

static void
go_up(struct rof_host *r, uint64_t now)
{
	struct rof_info info;
	struct item *i;

	while ((i = list_take(&r->up)) != NULL) {
		struct rdma_end *e = i->end->ulp;

		if (rof_rx(e->c, now, &i->up))
			sim_rdma_activate(&r->rdma, e);
		rof_get_info(e->q, &info);
		sim_rdma_placed(e, info.bytes_in);
		sim_pool_put(&r->items, i);
	}
}

static void
go_down(struct rof_host *r, uint64_t now)
{
	struct item *i;

	while ((i = list_take(&r->down)) != NULL) {
		struct fa_conn *c = i->end->conn;
		struct rof_msg *m = &i->down;

		switch (m->kind) {
		case ROF_MSG_PUSH:
			fa_push(c, now, m->buf);
			break;
		case ROF_MSG_PULL:
			fa_pull(c, now, m->buf, m->response_len);
			break;
		case ROF_MSG_ANSWER:
			fa_answer(c, now, m->outcome.rsn, m->buf);
			break;
		case ROF_MSG_DATA:
			fa_pull_data(c, now, m->outcome.rsn, m->buf);
			break;
		default:
			fa_outcome(c, now, &m->outcome);
		}
		sim_pool_put(&r->items, i);
	}
}

static bool
falcon_rof_send_requests(struct rdma_end *e, uint64_t now)
{
	enum rof_tx_result res = rof_tx(e->q, now, TX_BUDGET);

	return res == ROF_TX_MORE || res == ROF_TX_NOBUF;
}

/* ---- The host ---- */

static int
rof_create(struct falcon_host *t)
{
	struct rof_host *r = sim_calloc(1, sizeof(*r));
	int rc;

	t->ulp_state = r;
	r->t = t;
	r->items.size = sizeof(struct item);
	r->up.tail = &r->up.head;
	r->down.tail = &r->down.head;
	/* With fewer than one context for each connection, connections would fail. */
	if (t->pools.tx_pkt_req < t->h->w->max_conns)
		return -ENOBUFS;
	rc = sim_rdma_host_init(&r->rdma, t->h, NULL);
	r->st.ctx = r;
	r->st.lengths_only = true;
	r->st.ops = (struct rof_ops){.rd = sim_rdma_ops(&r->rdma),
		.buf_get = buf_get,
		.buf_put = buf_put,
		.pass = falcon_rof_send,
		.close = close_qp};
	return rc;
}

static void
rof_destroy(struct falcon_host *t)
{
	struct rof_host *r = t->ulp_state;

	for (struct rdma_end *e = r->rdma.ends; e != NULL; e = e->next) {
		if (e->q != NULL)
			rof_qp_destroy(e->q);
		if (e->c != NULL)
			rof_chan_destroy(e->c);
	}
	sim_rdma_host_fini(&r->rdma);
	sim_pool_free(&r->items);
	free(r);
}

/* Returns the credits of one connection: an equal share of the host's pools, so that all
 * connections together cannot exceed them. */
static struct fa_credits
falcon_rof_credits(const struct falcon_host *t)
{
	const struct fa_pools *p = &t->pools;
	uint32_t n = t->h->w->max_conns;

	return (struct fa_credits){.req_pkt_tx = p->tx_pkt_req / n,
		.req_buf_tx = p->tx_buf_req / n,
		.req_pkt_rx = p->rx_pkt_ulp / n,
		.req_buf_rx = p->rx_buf_ulp / n,
		.data_pkt_tx = p->tx_pkt_data / n,
		.data_buf_tx = p->tx_buf_data / n};
}

static int
falcon_rof_open_end(struct falcon_host *t, struct sim_end *end)
{
	const struct sim_scenario *sc = t->h->w->sc;
	struct rof_host *r = t->ulp_state;
	struct rdma_end *e = sim_rdma_end_new(&r->rdma, end);
	struct rof_chan_params p = {.transport = ROF_RC,
		.ordering = sc->ordered ? ROF_ORDER_STRONG
					: (uint8_t)(ROF_ORDER_WEAK + sc->rof_unordered),
		.errors = sc->ordered ? ROF_ERRORS_VERBS : ROF_ERRORS_COMPLETE,
		.mtu = sc->payload,
		.pools = t->pools,
		.credits = falcon_rof_credits(t),
		.rnr_code = RNR_CODE,
		.rnr_retry = ROF_RNR_FOREVER};

	e->c = rof_chan_create(&r->st, &p, e);
	e->q = rof_qp_create(&r->st, &e->rd, 0);
	if (e->c == NULL || e->q == NULL)
		return -EINVAL;
	rof_qp_start(e->q, e->c, sim_rdma_qpn(end->flow, end == &end->flow->end[0]));
	return 0;
}

static void
falcon_rof_dead(struct falcon_host *t, struct sim_end *end)
{
	struct rdma_end *e = end->ulp;

	rof_closed(e->q, -ETIMEDOUT);
}

static const struct falcon_ulp rof = {
	.headers = ROF_MAX + 4, /* and padding */
	.create = rof_create,
	.destroy = rof_destroy,
	.open = falcon_rof_open_end,
	.deliver = falcon_rof_deliver,
	.dead = falcon_rof_dead,
	/* There is no .xon: with credits the pools never run out, so no flow has to stop. */
};

static int
falcon_rof_create(struct sim_host *h)
{
	return sim_falcon_create(h, &rof);
}

static void
falcon_rof_offer(struct sim_flow *f, uint64_t now)
{
	struct falcon_host *t = f->src->stack;
	struct rof_host *r = t->ulp_state;

	sim_rdma_activate(&r->rdma, f->end[0].ulp);
}

/* Runs the stages alternately until neither has a message for the other. */
static unsigned
falcon_rof_poll(struct sim_host *h, uint64_t now, unsigned budget)
{
	struct falcon_host *t = h->stack;
	struct rof_host *r = t->ulp_state;
	unsigned sent = 0;

	do {
		go_up(r, now);
		sim_rdma_turn(&r->rdma, now, falcon_rof_send_requests);
		go_down(r, now);
		sent += sim_falcon_poll(h, now, budget);
	} while (r->up.head != NULL && sent < budget);
	return sent;
}

static uint64_t
falcon_rof_deadline(struct sim_host *h)
{
	struct falcon_host *t = h->stack;
	struct rof_host *r = t->ulp_state;

	return r->up.head != NULL || r->rdma.active != NULL ? 0 : sim_falcon_deadline(h);
}

const struct sim_transport sim_rof = {
	.name = "rof",
	.create = falcon_rof_create,
	.destroy = sim_falcon_destroy,
	.connect = sim_falcon_connect,
	.input = sim_falcon_input,
	.offer = falcon_rof_offer,
	.poll = falcon_rof_poll,
	.deadline = falcon_rof_deadline,
	.count = sim_falcon_count,
};
