/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that an RDMA transport calls, and the QPs of a host. */
#include "rdma_client.h"

#include <errno.h>
#include <stdlib.h>

#define SQ_DEPTH 1024
#define MR_KEY   7

void
sim_rdma_activate(struct rdma_host *r, struct rdma_end *e)
{
	if (e->active)
		return;
	e->active = true;
	e->next_active = r->active;
	r->active = e;
}

static bool
sq_pending(void *ctx, struct rd_qp *qp)
{
	struct rdma_end *e = sim_rdma_end_of(qp);

	return e->end == &e->end->flow->end[0] && e->end->flow->filling != NULL &&
	       e->queued < qp->caps.sq_depth;
}

static bool
sq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr)
{
	struct rdma_host *r = ctx;
	struct rdma_end *e = sim_rdma_end_of(qp);
	const struct sim_scenario *sc = r->h->w->sc;
	struct sim_message *m;
	uint32_t n;

	if (!sq_pending(ctx, qp))
		return false;
	n = sim_flow_take(e->end->flow, (uint32_t)sc->message_bytes, &m);
	/* All hosts' regions have the same STag. */
	*wr = (struct rd_wr){.opcode = RD_WRITE, .nsge = 1, .rkey = r->mr.stag};
	if (sc->operation == SIM_PULL || (sc->operation == SIM_BOTH && e->turn++ % 2))
		wr->opcode = RD_READ;
	wr->sge[0] = (struct rd_sge){.len = n, .lkey = r->mr.stag};
	e->queued++;
	return true;
}

/* Writes and Reads consume no receive. */
static bool
rq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr)
{
	return false;
}

static void
rdma_client_complete(void *ctx, struct rd_qp *qp, bool recv, const struct rd_wc *wc)
{
	struct rdma_host *r = ctx;
	struct rdma_end *e = sim_rdma_end_of(qp);
	struct sim_world *w = r->h->w;

	e->queued--;
	if (wc->status != RD_SUCCESS)
		sim_flow_failed(e->end->flow);
	sim_flow_acked(e->end->flow, w->sc->message_bytes, w->events.now);
	sim_rdma_activate(r, e);
}

static void
qp_error(void *ctx, struct rd_qp *qp, int code)
{
	struct rdma_end *e = sim_rdma_end_of(qp);

	sim_flow_dead(e->end->flow);
}

static bool
rdma_client_invalidate(void *ctx, struct rd_mr *mr)
{
	return rd_mr_invalidate(mr);
}

struct rd_ops
sim_rdma_ops(const struct rdma_host *r)
{
	return (struct rd_ops){.mrs = r->mrs,
		.sq_next = sq_next,
		.sq_pending = sq_pending,
		.rq_next = rq_next,
		.complete = rdma_client_complete,
		.qp_error = qp_error,
		.invalidate = rdma_client_invalidate};
}

void
sim_rdma_placed(struct rdma_end *e, uint64_t bytes_in)
{
	struct sim_flow *f = e->end->flow;

	if (bytes_in != e->in)
		sim_flow_delivered_in_order(f, bytes_in - e->in, f->w->events.now);
	e->in = bytes_in;
}

int
sim_rdma_host_init(struct rdma_host *r, struct sim_host *h, uint8_t *bytes)
{
	struct sk_key key = {{1, 2}};
	uint64_t len = h->w->sc->message_bytes;
	static uint8_t nothing;

	r->h = h;
	r->mrs = rd_mr_table_create(16, &key);
	if (r->mrs == NULL)
		return -ENOMEM;
	r->extent = (struct rd_extent){.len = len, .host = bytes != NULL ? bytes : &nothing};
	r->mr = (struct rd_mr){.access = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE |
					 RD_ACC_REMOTE_READ | RD_ACC_ZERO_BASED,
		.pd = &r->pd,
		.len = len,
		.valid = true,
		.nextents = 1,
		.extents = &r->extent};
	return rd_mr_add(r->mrs, &r->mr, MR_KEY);
}

void
sim_rdma_host_fini(struct rdma_host *r)
{
	struct rdma_end *e;

	while ((e = r->ends) != NULL) {
		r->ends = e->next;
		free(e);
	}
	if (r->mrs == NULL)
		return;
	rd_mr_del(r->mrs, &r->mr);
	rd_mr_table_destroy(r->mrs);
}

void
sim_rdma_turn(struct rdma_host *r, uint64_t now, bool (*send)(struct rdma_end *e, uint64_t now))
{
	struct rdma_end *list = r->active, *e;

	r->active = NULL;
	while ((e = list) != NULL) {
		list = e->next_active;
		e->active = false;
		if (send(e, now))
			sim_rdma_activate(r, e);
	}
}

uint32_t
sim_rdma_qpn(const struct sim_flow *f, unsigned side)
{
	return 2 * f->id + side + 2;
}

struct rdma_end *
sim_rdma_end_new(struct rdma_host *r, struct sim_end *end)
{
	const struct sim_scenario *sc = r->h->w->sc;
	struct rdma_end *e = sim_calloc(1, sizeof(*e));

	e->end = end;
	e->next = r->ends;
	r->ends = e;
	end->ulp = e;
	e->rd = (struct rd_qp){.qpn = sim_rdma_qpn(end->flow, end == &end->flow->end[1]),
		.state = RD_QP_INIT,
		.pd = &r->pd,
		.caps = {.sq_depth = SQ_DEPTH,
			.rq_depth = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sig_all = true,
		.access = RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ,
		.ird = (uint16_t)sc->reads,
		.ord = (uint16_t)sc->reads};
	return e;
}
