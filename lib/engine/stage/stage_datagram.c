/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams on the engine stage. The datagram QPs and address handles of a protection domain live
 * on one stage, together with the host connections that they send over: one for each host, order of
 * data and class that an address handle names, or that the other host has requested. A host
 * connection has a struct eng_qp without queues, so that the control stage creates, starts and
 * deletes it like any other QP. A datagram may arrive over the host connection of another stage
 * than its QP's: that stage passes it on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../base/mem.h"
#include "../common/places.h"
#include "qp_ops_priv.h"

/* Most datagrams that wait for a stage, a power of two; and the part of the receive mbufs of a
 * transport stage that they may be, since a stage that does not run must not hold all of them. */
#define PASSED_MOST 1024
#define PASSED_PART 4
#define PASSED_TURN 256 /* datagrams in a turn */
#define WAKE_TURN   16  /* QPs that wait for room on a channel and are activated in a visit */

#define GRH_IP4     20 /* offset of an IPv4 header in the 40 bytes */
#define GRH_IP4_LEN 20
#define GRH_NEXT    0x1b /* next header of InfiniBand's transport */
#define GRH_TTL     64
#define GRH_UDP     17

/* ---- QPs by number ---- */

int
eng_numbers_init(struct eng_stage *s)
{
	const struct eng_places *p = s->e->places;

	if (p == NULL)
		return 0;
	s->datagram_qps = calloc(p->mask + 1, sizeof(s->datagram_qps[0]));
	s->xrc_srqs = calloc(p->srq_mask + 1, sizeof(s->xrc_srqs[0]));
	return s->datagram_qps != NULL && s->xrc_srqs != NULL ? 0 : -ENOMEM;
}

void
eng_numbers_fini(struct eng_stage *s)
{
	free(s->datagram_qps);
	free(s->xrc_srqs);
}

static struct eng_qp **
datagram_slot(const struct eng_stage *s, uint32_t qpn)
{
	return &s->datagram_qps[eng_place_slot(s->e->places, qpn)];
}

void
eng_datagram_add(struct eng_stage *s, struct eng_qp *qp)
{
	if (s->datagram_qps != NULL)
		*datagram_slot(s, qp->rd.qpn) = qp;
}

void
eng_datagram_del(struct eng_stage *s, struct eng_qp *qp)
{
	if (s->datagram_qps != NULL)
		*datagram_slot(s, qp->rd.qpn) = NULL;
}

struct rof_qp *
eng_datagram_qp(void *ctx, struct rof_chan *c, uint32_t qpn)
{
	const struct eng_qp *qp = *datagram_slot(ctx, qpn);

	if (qp == NULL || qp->rd.qpn != qpn || qp->deleting != NULL || qp->client->dead)
		return NULL;
	return qp->rof;
}

void
eng_datagram_move(struct eng_stage *s, struct eng_qp *qp, const struct eng_ctl *m)
{
	if (m->move.state == RD_QP_INIT)
		rof_qp_set_qkey(qp->rof, m->move.qkey);
	else if (qp->rd.state == RD_QP_INIT)
		rof_qp_start_ud(qp->rof, m->move.ordering, m->move.errors,
			eng_falcon_mtu(s->e, s->e->cfg.falcon.mtu, s->e->cfg.ports[0].mtu));
	eng_qp_activate(s, qp);
}

/* ---- Address handles ---- */

void
eng_ah_set(struct eng_stage *s, struct eng_client *c, uint32_t handle, struct eng_ah *ah)
{
	struct eng_client_stage *cs = &c->stage[s->index];

	if (handle < cs->nahs)
		cs->ahs[handle] = ah;
}

/* Accepts only a handle of the QP's own client, whose address handle belongs to the protection
 * domain of the QP, and whose host connection the stage has. Requests the host connection if it is
 * not open yet. */
struct rof_chan *
eng_datagram_chan(void *ctx, struct rof_qp *q, uint32_t handle)
{
	struct eng_stage *s = ctx;
	const struct eng_qp *qp = eng_qp_of(rof_qp_rd(q));
	const struct eng_client_stage *cs = &qp->client->stage[s->index];
	const struct eng_ah *ah = handle < cs->nahs ? cs->ahs[handle] : NULL;

	if (ah == NULL || ah->pd != qp->rd.pd || ah->host->chan == NULL)
		return NULL;
	if (!ah->host->host->open && !ah->host->waits) {
		ah->host->waits = true;
		eng_qp_pend(s, ah->host, EQP_P_WAITS);
	}
	return ah->host->chan;
}

/* ---- Datagrams that wait for pages ---- */

int
eng_datagram_late_take(void *ctx, struct rof_qp *q)
{
	struct eng_stage *s = ctx;
	int user = (int)(eng_qp_of(rof_qp_rd(q))->payer->user - s->users);

	return sk_share_take(&s->late_share, (uint32_t)user, 1) == SK_SHARE_OK ? user : -1;
}

void
eng_datagram_late_give(void *ctx, int user)
{
	struct eng_stage *s = ctx;

	sk_share_give(&s->late_share, (uint32_t)user, 1);
}

/* ---- The 40 bytes before a datagram ---- */

/* Writes the IPv4 header into the last 20 bytes, as RoCE over IPv4 does. */
static void
grh_ip4(const struct eng_host *h, uint32_t len, uint8_t *p)
{
	uint16_t total = (uint16_t)(GRH_IP4_LEN + len), sum;

	p[0] = 0x45;
	p[2] = (uint8_t)(total >> 8);
	p[3] = (uint8_t)total;
	p[6] = 0x40; /* do not fragment */
	p[8] = GRH_TTL;
	p[9] = GRH_UDP;
	memcpy(p + 12, &h->raddr.b[12], 4);
	memcpy(p + 16, &h->laddr.b[12], 4);
	sum = wire_sum_fold(wire_sum(0, p, GRH_IP4_LEN));
	memcpy(p + 10, &sum, sizeof(sum));
}

void
eng_datagram_grh(void *ctx, struct rof_chan *c, uint32_t len, uint8_t grh[ROF_GRH_LEN])
{
	const struct eng_host *h = ((const struct eng_qp *)rof_chan_user(c))->host;

	memset(grh, 0, ROF_GRH_LEN);
	if (sk_addr_is_v4(&h->raddr)) {
		grh_ip4(h, len, grh + GRH_IP4);
		return;
	}
	grh[0] = 0x60;
	grh[4] = (uint8_t)(len >> 8);
	grh[5] = (uint8_t)len;
	grh[6] = GRH_NEXT;
	grh[7] = GRH_TTL;
	memcpy(grh + 8, h->raddr.b, 16);
	memcpy(grh + 24, h->laddr.b, 16);
}

/* ---- Datagrams for the QPs of other stages ---- */

/* The element of the ring of such datagrams. */
struct passed {
	struct fa_buf *buf;
	uint8_t grh[ROF_GRH_LEN];
};

int
eng_passed_init(struct eng_stage *s)
{
	unsigned count = PASSED_MOST;

	if (s->e->places == NULL || s->e->cfg.nstages == 1)
		return 0;
	while (count > s->e->cfg.limits.rx_mbufs / PASSED_PART && count > 2)
		count /= 2;
	s->passed = eng_ring_create_many(s->e, "dg", s->index, sizeof(struct passed), count);
	return s->passed != NULL ? 0 : -ENOMEM;
}

void
eng_passed_fini(struct eng_stage *s)
{
	struct passed p;

	while (s->passed != NULL && rte_ring_sc_dequeue_elem(s->passed, &p, sizeof(p)) == 0)
		eng_fbuf_free(p.buf);
	rte_ring_free(s->passed);
}

bool
eng_datagram_pass(void *ctx, uint32_t qpn, struct fa_buf *buf, const uint8_t grh[ROF_GRH_LEN])
{
	struct eng_stage *s = ctx;
	int stage = eng_place_find(s->e->places, qpn);
	struct passed p = {.buf = buf};

	if (stage < 0 || stage == (int)s->index)
		return false;
	memcpy(p.grh, grh, sizeof(p.grh));
	if (rte_ring_enqueue_elem(s->e->stages[stage]->passed, &p, sizeof(p)) == 0) {
		sk_count(s->counters, ENG_DATAGRAM);
		return true;
	}
	sk_count(s->counters, ENG_DATAGRAM_FULL);
	eng_fbuf_free(buf);
	return true;
}

/* Delivers a datagram, and charges its QP's client for it. */
static void
passed_take(struct eng_stage *s, const struct passed *p)
{
	struct rof_qp *q;

	s->spent = (struct eng_spent){.bytes = p->buf->len};
	q = rof_rx_passed(&s->rof, p->buf, p->grh);
	s->arrived += s->spent.bytes;
	if (q != NULL)
		eng_round_charge(s, eng_qp_of(rof_qp_rd(q)));
}

bool
eng_passed_poll(struct eng_stage *s)
{
	struct passed p[ENG_BURST];
	unsigned n, all = 0;

	do {
		n = rte_ring_sc_dequeue_burst_elem(s->passed, p, sizeof(p[0]), ENG_BURST, NULL);
		for (unsigned i = 0; i < n; i++)
			passed_take(s, &p[i]);
		all += n;
	} while (n == ENG_BURST && all < PASSED_TURN);
	return all > 0;
}

/* ---- Host connections ---- */

/* Activates the QPs that waited for a channel, and can continue. */
static void
chan_wake(struct eng_stage *s, struct rof_chan *c)
{
	struct rof_qp *q;

	while ((q = rof_chan_wake(c)) != NULL)
		eng_qp_activate(s, eng_qp_of(rof_qp_rd(q)));
}

/* Completes all datagrams as lost that waited for the channel or were in flight. Activates only the
 * QPs that can continue now: a peer decides how often a host connection ends, and the clients of
 * all other QPs would be charged for visits. */
static void
chan_lose(struct eng_stage *s, struct rof_chan *c)
{
	rof_chan_lose(c);
	chan_wake(s, c);
}

/* Returns the parameters of a channel without a connection. */
static struct rof_chan_params
host_params(const struct eng_stage *s, const struct eng_qp *qp)
{
	return (struct rof_chan_params){
		.transport = ROF_UD,
		.ordering = qp->host->ordered ? ROF_ORDER_STRONG : ROF_ORDER_NONE,
		.errors = ROF_ERRORS_COMPLETE,
		.mtu = eng_falcon_mtu(s->e, s->e->cfg.falcon.mtu, s->e->cfg.ports[0].mtu),
		.pools = s->e->cfg.falcon.stack.pools,
	};
}

static void
host_hold(struct eng_qp *qp)
{
	rof_chan_hold(qp->chan, ROF_HELD_MAX);
	qp->host->open = qp->waits = false;
}

static int
host_create(struct eng_stage *s, struct eng_qp *qp)
{
	const struct rof_chan_params p = host_params(s, qp);

	qp->chan = rof_chan_create(&s->rof, &p, qp);
	if (qp->chan == NULL)
		return -ENOMEM;
	host_hold(qp);
	return 0;
}

static void
host_destroy(struct eng_stage *s, struct eng_qp *qp)
{
	if (qp->chan == NULL)
		return;
	chan_lose(s, qp->chan);
	rof_chan_destroy(qp->chan);
	qp->chan = NULL;
}

/* Makes the channel a new one. That cannot fail: the old one would send to a connection that has
 * ended, whose index may be that of another one. */
static void
start_over(struct eng_stage *s, struct eng_qp *qp)
{
	const struct rof_chan_params p = host_params(s, qp);

	chan_lose(s, qp->chan);
	rof_chan_renew(qp->chan, &p);
	host_hold(qp);
}

void
eng_host_fail(struct eng_stage *s, struct eng_qp *qp)
{
	if (!qp->host->open)
		start_over(s, qp);
}

static int
stage_datagram_host_start(struct eng_stage *s, struct eng_qp *qp, const struct eng_start *start)
{
	return 0;
}

static void
host_open(struct eng_stage *s, struct eng_qp *qp, struct eng_falcon_start *start)
{
	qp->host->laddr = start->laddr;
	qp->host->raddr = start->raddr;
	qp->host->open = rof_chan_open(qp->chan, &start->chan);
	if (!qp->host->open)
		eng_qp_pend(s, qp, EQP_P_ABORT);
	eng_qp_activate(s, qp);
	chan_wake(s, qp->chan);
	free(start);
}

static void
host_message(struct eng_stage *s, struct eng_qp *qp, const struct eng_dmsg *m)
{
	struct fa_delivery d;

	switch (m->id_type & 15) {
	case ENG_E_OPEN:
		host_open(s, qp, (struct eng_falcon_start *)(uintptr_t)m->u);
		return;
	case ENG_E_FIN:
		eng_qp_pend(s, qp, EQP_P_CLOSE);
		return;
	}
	if (!qp->host->open || !eng_falcon_delivery(m, &d)) {
		eng_dmsg_drop(m);
		return;
	}
	qp->host->packets++;
	for (const struct fa_buf *b = d.buf; b != NULL; b = b->next)
		s->spent.bytes += b->len;
	if (!rof_rx(qp->chan, s->now, &d))
		return;
	eng_qp_activate(s, qp);
	chan_wake(s, qp->chan);
}

/* Activates some of the QPs that wait for room, while there is any. */
static bool
host_run(struct eng_stage *s, struct eng_qp *qp)
{
	bool more = rof_chan_wakes(qp->chan, WAKE_TURN) > 0;

	chan_wake(s, qp->chan);
	return !rof_chan_tx(qp->chan) || more;
}

static bool
host_flush(struct eng_qp *qp)
{
	return false;
}

static void
host_disconnect(struct eng_stage *s, struct eng_qp *qp, enum eng_close how)
{
	eng_qp_pend(s, qp, how == ENG_CLOSE_ORDERLY ? EQP_P_CLOSE : EQP_P_ABORT);
}

static void
host_closed(struct eng_stage *s, struct eng_qp *qp, int error)
{
	start_over(s, qp);
}

static bool
host_opened(const struct eng_qp *qp)
{
	return qp->chan != NULL;
}

static void
host_info(const struct eng_qp *qp, struct eng_work *out)
{
	*out = (struct eng_work){0};
}

const struct eng_qp_ops eng_host_ops = {
	.create = host_create,
	.destroy = host_destroy,
	.start = stage_datagram_host_start,
	.run = host_run,
	.flush = host_flush,
	.message = host_message,
	.disconnect = host_disconnect,
	.closed = host_closed,
	.opened = host_opened,
	.info = host_info,
	.lost = ROF_CONNECTION_LOST,
};
