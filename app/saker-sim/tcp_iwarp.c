/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iWARP. TCP may cut FPDUs at any byte, so payloads are bytes here: each host has a region of the
 * length of a message, and segments carry copies. The simulator omits MPA's start-up exchange and
 * configures its result at both sides.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../lib/iwarp/iwarp.h"
#include "rdma_client.h"
#include "tcp_host.h"

#define TX_BUDGET    64
#define FPDU_HEADERS 24 /* length, tagged DDP header, padding, CRC */

struct iw_host {
	struct rdma_host rdma; /* first: context of its operations */
	struct iw_stage st;
	struct tcp_host *t;
	uint8_t *bytes;
};

static struct tcp_rec *
rec_get(void *ctx, uint32_t room)
{
	struct iw_host *i = ctx;

	return room <= i->t->room ? sim_tcp_rec_new(i->t, NULL) : NULL;
}

static void
rec_put(void *ctx, struct tcp_rec *rec)
{
	struct iw_host *i = ctx;

	sim_pool_put(&i->t->recs, rec);
}

static bool
send(void *ctx, struct iw_qp *q, struct tcp_rec *rec)
{
	struct rdma_end *e = sim_rdma_end_of(iw_qp_rd(q));

	rec->owner = e->end;
	tcp_send(e->end->conn, rec);
	return true;
}

static void
consumed(void *ctx, struct iw_qp *q, uint32_t bytes)
{
	struct rdma_end *e = sim_rdma_end_of(iw_qp_rd(q));

	if (e->end->conn != NULL)
		tcp_consumed(e->end->conn, bytes);
}

static void
tcp_iwarp_slice_free(void *ctx, struct tcp_slice *chain)
{
	struct iw_host *i = ctx;

	sim_tcp_slices_free(i->t, chain);
}

static void
close_stream(void *ctx, struct iw_qp *q, enum iw_close how)
{
	struct rdma_end *e = sim_rdma_end_of(iw_qp_rd(q));

	sim_flow_failed(e->end->flow);
}

/* ---- Between TCP and iWARP ---- */

static void
tcp_iwarp_open_end(struct tcp_host *t, struct sim_end *end)
{
	const struct sim_scenario *sc = t->h->w->sc;
	struct iw_host *i = t->ulp_state;
	struct rdma_end *e = sim_rdma_end_new(&i->rdma, end);
	struct iw_params p = {.initiator = end == &end->flow->end[0],
		.crc = true,
		.ird = (uint16_t)sc->reads,
		.ord = (uint16_t)sc->reads,
		.emss = tcp_emss(end->conn),
		.send_space = sc->tcp_buffer_kib * 1024};

	e->q = iw_qp_create(&i->st, &e->rd);
	if (e->q == NULL) {
		sim_flow_failed(end->flow);
		return;
	}
	iw_qp_start(e->q, t->h->w->events.now / SIM_NS, &p);
}

static void
tcp_iwarp_deliver(struct tcp_host *t, struct sim_end *end, struct tcp_slice *chain)
{
	struct iw_host *i = t->ulp_state;
	struct rdma_end *e = end->ulp;
	struct iw_info info;

	if (iw_rx(e->q, t->h->w->events.now / SIM_NS, chain))
		sim_rdma_activate(&i->rdma, e);
	iw_get_info(e->q, &info);
	sim_rdma_placed(e, info.bytes_in);
}

static void
tcp_iwarp_acked(struct tcp_host *t, struct sim_end *end, uint32_t bytes)
{
	struct iw_host *i = t->ulp_state;
	struct rdma_end *e = end->ulp;

	if (e->q != NULL && iw_space(e->q, bytes))
		sim_rdma_activate(&i->rdma, e);
}

static void
tcp_iwarp_closed(struct tcp_host *t, struct sim_end *end, int reason)
{
	struct rdma_end *e = end->ulp;

	if (e != NULL)
		iw_closed(e->q, t->h->w->events.now / SIM_NS, reason);
}

static void
emss(struct tcp_host *t, struct sim_end *end)
{
	struct rdma_end *e = end->ulp;

	if (e != NULL)
		iw_emss(e->q, tcp_emss(end->conn));
}

/* ---- The host ---- */

static int
iw_create(struct tcp_host *t)
{
	struct iw_host *i = sim_calloc(1, sizeof(*i));

	t->ulp_state = i;
	i->t = t;
	i->bytes = sim_calloc(t->h->w->sc->message_bytes, 1);
	i->st.ctx = i;
	i->st.ops = (struct iw_ops){.rec_get = rec_get,
		.rec_put = rec_put,
		.send = send,
		.consumed = consumed,
		.slice_free = tcp_iwarp_slice_free,
		.close = close_stream};
	if (sim_rdma_host_init(&i->rdma, t->h, i->bytes) < 0)
		return -ENOMEM;
	i->st.ops.rd = sim_rdma_ops(&i->rdma);
	return 0;
}

static void
iw_destroy(struct tcp_host *t)
{
	struct iw_host *i = t->ulp_state;

	if (i == NULL)
		return;
	for (struct rdma_end *e = i->rdma.ends; e != NULL; e = e->next)
		if (e->q != NULL)
			iw_qp_destroy(e->q);
	sim_rdma_host_fini(&i->rdma);
	free(i->bytes);
	free(i);
}

static const struct tcp_ulp iwarp = {
	.headers = FPDU_HEADERS,
	.bytes = true,
	.create = iw_create,
	.destroy = iw_destroy,
	.open = tcp_iwarp_open_end,
	.deliver = tcp_iwarp_deliver,
	.acked = tcp_iwarp_acked,
	.closed = tcp_iwarp_closed,
	.emss = emss,
};

static int
tcp_iwarp_create(struct sim_host *h)
{
	return sim_tcp_create(h, &iwarp);
}

static void
tcp_iwarp_offer(struct sim_flow *f, uint64_t now)
{
	struct tcp_host *t = f->src->stack;
	struct iw_host *i = t->ulp_state;

	sim_rdma_activate(&i->rdma, f->end[0].ulp);
}

static bool
tcp_iwarp_send_requests(struct rdma_end *e, uint64_t now)
{
	enum iw_tx_result res = iw_tx(e->q, now, TX_BUDGET);

	return res == IW_TX_MORE || res == IW_TX_NOBUF;
}

static unsigned
tcp_iwarp_poll(struct sim_host *h, uint64_t now, unsigned budget)
{
	struct tcp_host *t = h->stack;
	struct iw_host *i = t->ulp_state;

	sim_rdma_turn(&i->rdma, now, tcp_iwarp_send_requests);
	return sim_tcp_poll(h, now, budget);
}

static uint64_t
tcp_iwarp_deadline(struct sim_host *h)
{
	struct tcp_host *t = h->stack;
	struct iw_host *i = t->ulp_state;

	return i->rdma.active != NULL ? 0 : sim_tcp_deadline(h);
}

const struct sim_transport sim_iwarp = {
	.name = "iwarp",
	.create = tcp_iwarp_create,
	.destroy = sim_tcp_destroy,
	.connect = sim_tcp_open,
	.input = sim_tcp_packet_input,
	.offer = tcp_iwarp_offer,
	.poll = tcp_iwarp_poll,
	.deadline = tcp_iwarp_deadline,
	.count = sim_tcp_count,
};
