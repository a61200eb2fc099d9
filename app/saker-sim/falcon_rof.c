/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA over Falcon: a flow is a reliable QP at each end, a message a Write or a Read of it. Client,
 * engine stage and the ring between the stages are here: work requests are made when they are
 * fetched, and what goes from one stage to the other stands in two lists until its turn.
 */
#include "falcon_host.h"

#include <errno.h>
#include <stdlib.h>

#include "../../lib/base/mem.h"
#include "../../lib/rof/rof.h"

#define RNR_CODE   1
#define TX_BUDGET  64
#define MR_KEY     7
#define REGION_MAX (1ull << 40)

/* One step of the way up or down. */
struct item {
	struct item *next;
	struct sim_end *end;
	struct fa_delivery up;
	struct rof_msg down;
};

struct list {
	struct item *head, **tail;
};

/* An end of a flow. */
struct rof_end {
	struct sim_end *end;
	struct rd_qp rd;
	struct rof_qp *q;
	struct rof_chan *c;
	struct rof_end *next; /* of the host's */
	struct rof_end *next_active;
	bool active;     /* the send queue, or what waits, needs a turn */
	uint64_t in;     /* bytes that came in, as far as they were reported */
	unsigned turn;   /* Writes and Reads take turns */
	uint32_t queued; /* work requests fetched, not completed */
};

struct rof_host {
	struct rof_stage st; /* first */
	struct falcon_host *t;
	struct rd_pd pd;
	struct rd_mr_table *mrs;
	struct rd_mr mr; /* everything: no byte is looked at */
	struct rd_extent extent;
	struct list up, down;
	struct rof_end *ends, *active;
	struct sim_pool items;
	uint32_t rkey;
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

static void
activate(struct rof_host *r, struct rof_end *e)
{
	if (e->active)
		return;
	e->active = true;
	e->next_active = r->active;
	r->active = e;
}

/* ---- The client ---- */

static bool
sq_pending(void *ctx, struct rd_qp *qp)
{
	struct rof_end *e = qp->user;

	return e->end == &e->end->flow->end[0] && e->end->flow->filling != NULL &&
	       e->queued < qp->caps.sq_depth;
}

static bool
sq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr)
{
	struct rof_host *r = ctx;
	struct rof_end *e = qp->user;
	const struct sim_scenario *sc = r->t->h->w->sc;
	struct sim_message *m;
	uint32_t n;

	if (!sq_pending(ctx, qp))
		return false;
	n = sim_flow_take(e->end->flow, (uint32_t)sc->message_bytes, &m);
	*wr = (struct rd_wr){.opcode = RD_WRITE, .nsge = 1, .rkey = r->rkey};
	if (sc->operation == SIM_PULL || (sc->operation == SIM_BOTH && e->turn++ % 2))
		wr->opcode = RD_READ;
	wr->sge[0] = (struct rd_sge){.len = n, .lkey = r->mr.stag};
	e->queued++;
	return true;
}

/* Nothing of what is sent needs a receive. */
static bool
rq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr)
{
	return false;
}

static void
complete(void *ctx, struct rd_qp *qp, bool recv, const struct rd_wc *wc)
{
	struct rof_host *r = ctx;
	struct rof_end *e = qp->user;
	struct sim_world *w = r->t->h->w;

	e->queued--;
	if (wc->status != RD_SUCCESS)
		sim_flow_failed(e->end->flow);
	sim_flow_acked(e->end->flow, w->sc->message_bytes, w->events.now);
	activate(r, e);
}

static void
qp_error(void *ctx, struct rd_qp *qp, int code)
{
	struct rof_end *e = qp->user;

	sim_flow_dead(e->end->flow);
}

static bool
invalidate(void *ctx, struct rd_mr *mr)
{
	return rd_mr_invalidate(mr);
}

/* ---- Between the stages ---- */

static struct fa_buf *
buf_get(void *ctx, uint32_t room)
{
	struct rof_host *r = ctx;

	return falcon_buf_get(r->t, NULL);
}

static void
buf_put(void *ctx, struct fa_buf *b)
{
	struct rof_host *r = ctx;

	falcon_buf_free(r->t, b);
}

static bool
tell(void *ctx, struct rof_chan *c, const struct rof_msg *m)
{
	struct rof_host *r = ctx;
	struct rof_end *e = rof_chan_user(c);

	list_add(r, &r->down, &(struct item){.end = e->end, .down = *m});
	return true;
}

static void
close_qp(void *ctx, struct rof_qp *q)
{
	/* qp_error() has counted it */
}

static bool
deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
{
	struct falcon_host *t = ctx;
	struct rof_host *r = t->ulp_state;

	list_add(r, &r->up, &(struct item){.end = fa_conn_user(c), .up = *d});
	return true;
}

/* Bytes that were placed since the last time. */
static void
report(struct rof_host *r, struct rof_end *e)
{
	struct rof_info info;

	rof_get_info(e->q, &info);
	if (info.bytes_in != e->in)
		sim_flow_delivered_in_order(
			e->end->flow, info.bytes_in - e->in, r->t->h->w->events.now);
	e->in = info.bytes_in;
}

static void
go_up(struct rof_host *r, uint64_t now)
{
	struct item *i;

	while ((i = list_take(&r->up)) != NULL) {
		struct rof_end *e = i->end->ulp;

		if (rof_rx(e->c, now, &i->up))
			activate(r, e);
		report(r, e);
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
		case ROF_MSG_PULL_DATA:
			fa_pull_data(c, now, m->outcome.rsn, m->buf);
			break;
		default:
			fa_outcome(c, now, &m->outcome);
		}
		sim_pool_put(&r->items, i);
	}
}

static void
work_requests(struct rof_host *r, uint64_t now)
{
	struct rof_end *list = r->active, *e;
	enum rof_tx_result res;

	r->active = NULL;
	while ((e = list) != NULL) {
		list = e->next_active;
		e->active = false;
		res = rof_tx(e->q, now, TX_BUDGET);
		if (res == ROF_TX_MORE || res == ROF_TX_NOBUF)
			activate(r, e);
	}
}

/* ---- The host ---- */

static int
region(struct rof_host *r)
{
	struct sk_key key = {{1, 2}}; /* all hosts' regions have the same STag */
	static uint8_t nothing;

	r->mrs = rd_mr_table_create(16, &key);
	if (r->mrs == NULL)
		return -ENOMEM;
	r->extent = (struct rd_extent){.len = REGION_MAX, .host = &nothing};
	r->mr = (struct rd_mr){.access = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE |
					 RD_ACC_REMOTE_READ | RD_ACC_ZERO_BASED,
		.pd = &r->pd,
		.len = REGION_MAX,
		.valid = true,
		.nextents = 1,
		.extents = &r->extent};
	if (rd_mr_add(r->mrs, &r->mr, MR_KEY) < 0)
		return -ENOSPC;
	r->rkey = r->mr.stag;
	return 0;
}

static int
rof_create(struct falcon_host *t)
{
	struct rof_host *r = sim_calloc(1, sizeof(*r));

	t->ulp_state = r;
	r->t = t;
	r->items.size = sizeof(struct item);
	r->up.tail = &r->up.head;
	r->down.tail = &r->down.head;
	/* Credits that the pools cannot cover would end connections. */
	if (t->pools.tx_pkt_req < t->h->w->max_conns)
		return -ENOBUFS;
	if (region(r) < 0)
		return -ENOMEM;
	r->st.ctx = r;
	r->st.lengths_only = true;
	r->st.ops = (struct rof_ops){.rd = {.mrs = r->mrs,
					     .sq_next = sq_next,
					     .sq_pending = sq_pending,
					     .rq_next = rq_next,
					     .complete = complete,
					     .qp_error = qp_error,
					     .invalidate = invalidate},
		.buf_get = buf_get,
		.buf_put = buf_put,
		.tell = tell,
		.close = close_qp};
	return 0;
}

static void
rof_destroy(struct falcon_host *t)
{
	struct rof_host *r = t->ulp_state;
	struct rof_end *e;

	while ((e = r->ends) != NULL) {
		r->ends = e->next;
		if (e->q != NULL)
			rof_qp_destroy(e->q);
		if (e->c != NULL)
			rof_chan_destroy(e->c);
		free(e);
	}
	if (r->mrs != NULL) {
		rd_mr_del(r->mrs, &r->mr);
		rd_mr_table_destroy(r->mrs);
	}
	sim_pool_free(&r->items);
	free(r);
}

/* So that all connections of the host together do not ask for more than the pools have. */
static struct fa_credits
credits(const struct falcon_host *t)
{
	const struct fa_pools *p = &t->pools;
	uint32_t n = t->h->w->max_conns;

	return (struct fa_credits){.req_pkt_tx = SK_MAX(p->tx_pkt_req / n, 1u),
		.req_buf_tx = SK_MAX(p->tx_buf_req / n, p->tx_buf_req / p->tx_pkt_req),
		.req_pkt_rx = SK_MAX(p->rx_pkt_ulp / n, 1u),
		.req_buf_rx = SK_MAX(p->rx_buf_ulp / n, p->rx_buf_ulp / p->rx_pkt_ulp),
		.data_pkt_tx = SK_MAX(p->tx_pkt_data / n, 1u),
		.data_buf_tx = SK_MAX(p->tx_buf_data / n, p->tx_buf_data / p->tx_pkt_data)};
}

static uint32_t
qpn(const struct sim_flow *f, unsigned side)
{
	return 2 * f->id + side + 2;
}

static int
open_end(struct falcon_host *t, struct sim_end *end)
{
	const struct sim_scenario *sc = t->h->w->sc;
	struct rof_host *r = t->ulp_state;
	struct rof_end *e = sim_calloc(1, sizeof(*e));
	unsigned side = end == &end->flow->end[1];
	struct rof_chan_params p = {.transport = ROF_RC,
		.ordering = sc->ordered ? ROF_ORDER_STRONG
					: (uint8_t)(ROF_ORDER_WEAK + sc->rof_unordered),
		.errors = sc->ordered ? ROF_ERRORS_VERBS : ROF_ERRORS_COMPLETE,
		.mtu = sc->payload,
		.pools = t->pools,
		.credits = credits(t),
		.rnr_code = RNR_CODE,
		.rnr_retry = ROF_RNR_FOREVER};

	e->end = end;
	e->next = r->ends;
	r->ends = e;
	end->ulp = e;
	e->rd = (struct rd_qp){.qpn = qpn(end->flow, side),
		.pd = &r->pd,
		.caps = {.sq_depth = 1024, .rq_depth = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.sig_all = true,
		.access = RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ,
		.ird = (uint16_t)sc->rof_reads,
		.ord = (uint16_t)sc->rof_reads,
		.user = e};
	e->c = rof_chan_create(&r->st, &p, e);
	e->q = rof_qp_create(&r->st, &e->rd, 0);
	if (e->c == NULL || e->q == NULL)
		return -EINVAL;
	rof_qp_start(e->q, e->c, qpn(end->flow, !side));
	return 0;
}

static void
dead(struct falcon_host *t, struct sim_end *end)
{
	struct rof_end *e = end->ulp;

	rof_closed(e->q, -ETIMEDOUT);
}

static const struct falcon_ulp rof = {
	.headers = ROF_MAX + 4, /* and padding */
	.create = rof_create,
	.destroy = rof_destroy,
	.open = open_end,
	.deliver = deliver,
	.dead = dead,
	/* no .xon: credits keep the pools from running out, nobody is stopped */
};

static int
create(struct sim_host *h)
{
	return falcon_create(h, &rof);
}

static void
offer(struct sim_flow *f, uint64_t now)
{
	struct falcon_host *t = f->src->stack;

	activate(t->ulp_state, f->end[0].ulp);
}

/* The stages take turns until neither has anything for the other. */
static unsigned
poll(struct sim_host *h, uint64_t now, unsigned budget)
{
	struct falcon_host *t = h->stack;
	struct rof_host *r = t->ulp_state;
	unsigned sent = 0;

	do {
		go_up(r, now);
		work_requests(r, now);
		go_down(r, now);
		sent += falcon_poll(h, now, budget);
	} while (r->up.head != NULL && sent < budget);
	return sent;
}

static uint64_t
deadline(struct sim_host *h)
{
	struct falcon_host *t = h->stack;
	struct rof_host *r = t->ulp_state;

	return r->up.head != NULL || r->active != NULL ? 0 : falcon_deadline(h);
}

const struct sim_transport sim_rof = {
	.name = "rof",
	.create = create,
	.destroy = falcon_destroy,
	.connect = falcon_connect,
	.input = falcon_input,
	.offer = offer,
	.poll = poll,
	.deadline = deadline,
	.count = falcon_count,
};
