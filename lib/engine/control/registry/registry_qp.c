/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs. The control stage checks the command, chooses an engine stage and a QP number, and
 * places the queues in the home region. A QP number is a keyed permutation of slot and generation,
 * so that nobody can predict the next number from the last.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../common/places.h"
#include "registry.h"

#define QPN_BITS 24

struct ctl_qp *
ctl_qp_find(const struct ctl_client *cl, uint32_t handle)
{
	struct ctl_qp_ref *ref = ctl_table_get(&cl->qps, handle);
	struct ctl_qp *q = (struct ctl_qp *)ref;

	return ref != NULL && !ref->opened && q->added && !q->conn.dying ? q : NULL;
}

struct cm_conn *
ctl_conn_of_qpn(const struct eng_control *c, uint32_t qpn)
{
	uint32_t n = sk_perm24_inv(&c->qpn_key, qpn & ((1u << QPN_BITS) - 1));
	struct cm_conn *conn = ctl_table_get(&c->conns, n & ((1u << shm_log2(c->conns.cap)) - 1));

	return conn != NULL && conn->client != NULL && conn->qp->rd.qpn == qpn ? conn : NULL;
}

static uint32_t
new_qpn(struct eng_control *c, struct cm_conn *conn)
{
	uint32_t bits = shm_log2(c->conns.cap), qpn;

	do {
		uint32_t n = c->conn_generation[conn->slot]++ << bits | conn->slot;

		qpn = sk_perm24(&c->qpn_key, n & ((1u << QPN_BITS) - 1));
	} while (qpn < 2);
	conn->generation = c->conn_generation[conn->slot];
	return qpn;
}

static int
depths_check(struct eng_control *c, struct shm_msg *m)
{
	const struct shm_qp_info *i = &m->body.qp;
	const struct eng_limits *l = &c->cfg->limits;

	if (i->sq_depth > l->sq_depth)
		return ctl_refuse(c, m, -EINVAL, "a send queue holds up to %u requests, not %u",
			l->sq_depth, i->sq_depth);
	if (i->srq == SHM_NONE && i->rq_depth > l->rq_depth)
		return ctl_refuse(c, m, -EINVAL, "a receive queue holds up to %u requests, not %u",
			l->rq_depth, i->rq_depth);
	if (i->max_send_sge > RD_MAX_SGE || i->max_recv_sge > RD_MAX_SGE)
		return ctl_refuse(c, m, -EINVAL, "a request has up to %u elements, not %u",
			RD_MAX_SGE, SK_MAX(i->max_send_sge, i->max_recv_sge));
	if (i->max_inline > RD_MAX_INLINE)
		return ctl_refuse(c, m, -EINVAL, "a request carries up to %u inline bytes, not %u",
			RD_MAX_INLINE, i->max_inline);
	return 0;
}

/* The domains and queues that a QP of each type has. */
static const struct qp_parts {
	bool pd, send, recv, srq, xrcd;
} parts[] = {
	[SHM_RC] = {.pd = true, .send = true, .recv = true, .srq = true},
	[SHM_UD] = {.pd = true, .send = true, .recv = true, .srq = true},
	[SHM_XRC_SEND] = {.pd = true, .send = true},
	[SHM_XRC_RECV] = {.xrcd = true},
};

static int
parts_check(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_qp_info *i = &m->body.qp;
	const struct qp_parts *p = &parts[i->type];

	if (p->pd && ctl_pd_find(cl, i->pd) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no protection domain %u", i->pd);
	if (p->send && ctl_cq_find(cl, i->send_cq) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no completion queue %u", i->send_cq);
	if (p->recv && ctl_cq_find(cl, i->recv_cq) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no completion queue %u", i->recv_cq);
	if (p->srq && i->srq != SHM_NONE && ctl_srq_find(cl, i->srq) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no shared receive queue %u", i->srq);
	if (!p->srq && i->srq != SHM_NONE)
		return ctl_refuse(
			c, m, -EINVAL, "a QP of type %u has no shared receive queue", i->type);
	if (p->xrcd && ctl_xrcd_find(cl, i->xrcd) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no XRC domain %u", i->xrcd);
	if (i->type == SHM_UD && i->srq != SHM_NONE && ctl_pd_find(cl, i->pd)->stage >= 0 &&
		(int)ctl_srq_find(cl, i->srq)->eng.stage != ctl_pd_find(cl, i->pd)->stage)
		return ctl_refuse(c, m, -EOPNOTSUPP,
			"shared receive queue %u is on another stage than the datagrams of its "
			"protection domain",
			i->srq);
	if (p->srq && i->srq != SHM_NONE && ctl_srq_find(cl, i->srq)->xrcd != NULL)
		return ctl_refuse(c, m, -EINVAL, "shared receive queue %u is for XRC", i->srq);
	return 0;
}

/* Checks the command, and takes a unit of CTL_POOL_QP. */
static int
qp_check(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_qp_info *i = &m->body.qp;
	int rc;

	if (i->transport >= ENG_KINDS || c->qp_types[i->transport] == 0)
		return ctl_refuse(
			c, m, -EPROTONOSUPPORT, "transport %u is not enabled here", i->transport);
	if (i->type > SHM_XRC_RECV || !(c->qp_types[i->transport] & 1u << i->type))
		return ctl_refuse(c, m, -EOPNOTSUPP, "transport %u has no QPs of type %u",
			i->transport, i->type);
	rc = parts_check(c, cl, m);
	if (rc == 0)
		rc = ctl_class_check(c, m, &i->class);
	if (rc < 0)
		return rc;
	rc = depths_check(c, m);
	return rc < 0 ? rc : ctl_take(c, cl, CTL_POOL_QP, m);
}

static uint64_t
ring_bytes(const struct shm_ring_at *at)
{
	return at->stride ? shm_ring_bytes(at) : 0;
}

/* Sets the capabilities, rounded up to the strides of the entries, and completes the reply with the
 * offsets and strides of the queues. Returns the bytes that the queues take in the heap. */
static uint64_t
qp_lay(struct rd_qp_caps *caps, struct shm_qp_info *i)
{
	bool own_rq = parts[i->type].recv && i->srq == SHM_NONE, own_sq = parts[i->type].send;
	uint16_t sqe = shm_sqe_stride(i->max_send_sge, i->max_inline);
	uint16_t rqe = own_rq ? shm_rqe_stride(i->max_recv_sge) : 0;
	uint32_t room = sqe - SHM_SQE_BASE;

	i->sq = i->rq = (struct shm_ring_at){0};
	*caps = (struct rd_qp_caps){0};
	if (own_sq) {
		caps->sq_depth = 1u << shm_log2(i->sq_depth);
		caps->max_send_sge = (uint16_t)SK_MIN(room / sizeof(struct rd_sge), RD_MAX_SGE);
		caps->max_inline = (uint16_t)SK_MIN(room, RD_MAX_INLINE);
		i->sq = ctl_ring_at(sizeof(struct shm_qp), offsetof(struct shm_qp, sq), sqe,
			shm_log2(caps->sq_depth));
	}
	if (own_rq) {
		caps->rq_depth = 1u << shm_log2(i->rq_depth);
		caps->max_recv_sge =
			(uint16_t)SK_MIN((rqe - SHM_RQE_BASE) / sizeof(struct rd_sge), RD_MAX_SGE);
		i->rq = ctl_ring_at(sizeof(struct shm_qp) + ring_bytes(&i->sq),
			offsetof(struct shm_qp, rq), rqe, shm_log2(caps->rq_depth));
	}
	return sizeof(struct shm_qp) + ring_bytes(&i->sq) + ring_bytes(&i->rq);
}

/* Initializes the queue of a QP that has none: it is always empty, whatever the client writes. */
static void
no_queue(struct shm_take *t)
{
	static _Alignas(SHM_LINE) uint8_t never[SHM_LINE];
	static struct shm_cons nobody;
	const struct shm_ring_at at = {.stride = SHM_LINE};

	shm_take_init(t, never, &at);
	t->cons = &nobody;
}

/* Makes the offsets relative to the home region, and initializes the engine's private copies. */
static void
qp_place(struct ctl_client *cl, struct ctl_qp *q, uint64_t at, struct shm_qp_info *i)
{
	i->at = cl->heap_at + at;
	no_queue(&q->eng.sq);
	no_queue(&q->eng.rq);
	if (i->sq.stride) {
		i->sq.entries += i->at;
		i->sq.cons += i->at;
		shm_take_init(&q->eng.sq, cl->eng.home, &i->sq);
	}
	if (i->rq.stride) {
		i->rq.entries += i->at;
		i->rq.cons += i->at;
		shm_take_init(&q->eng.rq, cl->eng.home, &i->rq);
	}
	q->eng.shared = (struct shm_qp *)(cl->eng.home + i->at);
}

static void
qp_refer(struct eng_control *c, struct ctl_client *cl, struct ctl_qp *q, int by)
{
	/* An XRC receive QP has no protection domain: that of the XRC SRQ in a request counts. */
	if (q->xrcd != NULL)
		q->xrcd->users += (uint32_t)by;
	else
		((struct rd_pd *)q->eng.rd.pd)->refs += (uint32_t)by;
	if (q->eng.rd.send_cq != NULL)
		q->eng.rd.send_cq->refs += (uint32_t)by;
	if (q->eng.rd.recv_cq != NULL)
		q->eng.rd.recv_cq->refs += (uint32_t)by;
	if (q->eng.rd.srq != NULL)
		q->eng.rd.srq->refs += (uint32_t)by;
	c->stage_qps[q->eng.stage] += (uint32_t)by;
	if (q->eng.type == SHM_UD)
		c->ud_qps += (uint32_t)by;
	ctl_total(&c->totals.qps, by);
}

uint8_t
ctl_least_loaded(const struct eng_control *c)
{
	uint8_t best = 0;

	for (uint8_t i = 1; i < c->cfg->nstages; i++)
		if (c->stage_qps[i] < c->stage_qps[best])
			best = i;
	return best;
}

/* Returns the least loaded engine stage of the transport stage's loop, or of all if the loop has
 * none. */
static uint8_t
least_loaded_near(const struct eng_control *c, unsigned transport)
{
	const struct eng_config *cfg = c->cfg;
	int best = -1;

	for (unsigned i = 0; i < cfg->nstages; i++)
		if (cfg->stage_loop[i] == cfg->transport_loop[transport] &&
			(best < 0 || c->stage_qps[i] < c->stage_qps[best]))
			best = (int)i;
	return best < 0 ? ctl_least_loaded(c) : (uint8_t)best;
}

static void
qp_conn_free(struct eng_control *c, struct cm_conn *conn)
{
	ctl_qp_free(c, ctl_qp_of(conn));
}

/* Returns the engine stage of a QP that is created. Most programs create a QP for a request that
 * has arrived, and then accept the request with it: such a QP shares the loop of the connection. */
static uint8_t
qp_stage(const struct eng_control *c, struct ctl_client *cl, const struct shm_qp_info *i)
{
	int transport;

	if (i->srq != SHM_NONE)
		return (uint8_t)ctl_srq_find(cl, i->srq)->eng.stage;
	if (parts[i->type].xrcd)
		return ctl_xrcd_find(cl, i->xrcd)->domain->eng.stage;
	if (i->type == SHM_UD && ctl_pd_find(cl, i->pd)->stage >= 0)
		return (uint8_t)ctl_pd_find(cl, i->pd)->stage;
	transport = c->conn_ops->place(cl, i->transport, i->type);
	return transport < 0 ? ctl_least_loaded(c) : least_loaded_near(c, (unsigned)transport);
}

/* Makes the sub-rings in which the QP completes its requests. Returns 0, or -ENOMEM with a
 * sentence. */
static int
qp_subs(struct eng_control *c, struct ctl_client *cl, uint8_t stage, struct shm_msg *m)
{
	const struct shm_qp_info *i = &m->body.qp;
	const struct qp_parts *p = &parts[i->type];
	int rc = p->send ? ctl_cq_sub(cl, ctl_cq_find(cl, i->send_cq), stage) : 0;

	if (rc == 0 && p->recv)
		rc = ctl_cq_sub(cl, ctl_cq_find(cl, i->recv_cq), stage);
	if (rc < 0)
		return ctl_refuse(
			c, m, rc, "no room in the home region for the completions of a QP");
	return 0;
}

static void
registry_qp_enter(struct eng_control *c, struct ctl_client *cl, struct ctl_qp *q, uint8_t stage,
	struct shm_qp_info *i)
{
	struct rd_qp *rd = &q->eng.rd;
	const struct qp_parts *p = &parts[i->type];
	struct ctl_srq *s = i->srq == SHM_NONE ? NULL : ctl_srq_find(cl, i->srq);

	q->conn.qp = &q->eng;
	q->conn.client = cl;
	q->conn.chosen = q->conn.class = i->class;
	ctl_class_fill(&q->conn.class, &cl->class);
	q->conn.free = qp_conn_free;
	q->eng.client = &cl->eng;
	q->eng.type = i->type;
	q->xrcd = p->xrcd ? ctl_xrcd_find(cl, i->xrcd) : NULL;
	q->eng.xrcd = q->xrcd != NULL ? &q->xrcd->domain->eng : NULL;
	q->eng.stage = stage;
	q->eng.control = &q->conn;
	q->eng.kind = i->transport;
	rd->state = RD_QP_INIT;
	rd->pd = p->pd ? &ctl_pd_find(cl, i->pd)->rd : NULL;
	rd->send_cq = p->send ? &ctl_cq_find(cl, i->send_cq)->eng : NULL;
	rd->recv_cq = p->recv ? &ctl_cq_find(cl, i->recv_cq)->eng : NULL;
	rd->srq = s != NULL ? &s->eng : NULL;
	rd->sig_all = i->sig_all != 0;
	rd->access = i->access ? i->access
			       : RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC;
	q->conn.slot = (uint32_t)ctl_table_add(&c->conns, &q->conn);
	q->ref.handle = q->eng.handle = (uint32_t)ctl_table_add(&cl->qps, &q->ref);
	rd->qpn = new_qpn(c, &q->conn);
	if (i->type == SHM_UD && c->a.places != NULL)
		eng_place_set(c->a.places, q->conn.slot, rd->qpn, stage);
	qp_refer(c, cl, q, 1);
}

static void
qp_describe(const struct ctl_qp *q, struct shm_qp_info *i)
{
	const struct rd_qp_caps *caps = &q->eng.rd.caps;

	i->sq_depth = caps->sq_depth;
	i->rq_depth = caps->rq_depth;
	i->max_send_sge = caps->max_send_sge;
	i->max_recv_sge = caps->max_recv_sge;
	i->max_inline = caps->max_inline;
	i->sig_all = q->eng.rd.sig_all;
	i->access = q->eng.rd.access;
	i->transport = q->eng.kind;
	i->state = RD_QP_INIT;
	i->qp = q->eng.handle;
	i->qpn = q->eng.rd.qpn;
	i->stage = q->eng.stage;
	i->ird = q->conn.ird;
	i->ord = q->conn.ord;
	i->type = q->eng.type;
	i->xrcd = q->xrcd != NULL ? q->xrcd->handle : SHM_NONE;
	i->qkey = 0;
	i->rsv = 0;
	i->class = q->conn.class;
}

static void
qp_added(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	struct ctl_qp *q = op->object;

	if (op->status < 0) {
		ctl_refuse(c, &op->reply, op->status, "the engine stage has no room for a QP");
		ctl_qp_free(c, q);
	} else {
		q->added = true;
		q->conn.qp_index = last->qp_index;
	}
	ctl_op_reply(c, op);
}

int
ctl_qp_create(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_qp *q;
	struct ctl_op *op;
	struct ctl_msg *msg;
	uint64_t len, at;
	int rc = qp_check(c, cl, m);
	uint8_t stage;

	if (rc < 0)
		return rc;
	stage = qp_stage(c, cl, &m->body.qp);
	rc = qp_subs(c, cl, stage, m);
	if (rc == 0 && m->body.qp.type == SHM_UD)
		rc = ctl_pd_settle(c, cl, ctl_pd_find(cl, m->body.qp.pd), stage, m);
	if (rc < 0) {
		ctl_give(c, cl, CTL_POOL_QP);
		return rc;
	}
	q = aligned_alloc(64, (sizeof(*q) + 63) & ~(size_t)63);
	op = q != NULL ? ctl_op_new(c, cl, m, q, qp_added) : NULL;
	if (op == NULL) {
		ctl_give(c, cl, CTL_POOL_QP);
		free(q);
		return ctl_refuse(c, m, -ENOMEM, "no memory for a QP");
	}
	memset(q, 0, sizeof(*q));
	len = qp_lay(&q->eng.rd.caps, &op->reply.body.qp);
	q->piece = ctl_heap_alloc(&cl->heap, len, sizeof(struct shm_qp), &at);
	if (q->piece == HEAP_NONE) {
		ctl_give(c, cl, CTL_POOL_QP);
		ctl_op_free(c, op);
		free(q);
		return ctl_refuse(c, m, -ENOMEM,
			"no room in the home region for %llu bytes of queues",
			(unsigned long long)len);
	}
	qp_place(cl, q, at, &op->reply.body.qp);
	registry_qp_enter(c, cl, q, stage, &m->body.qp);
	qp_describe(q, &op->reply.body.qp);
	msg = ctl_msg_get(c, ENG_CE_QP_ADD, NULL);
	msg->m.qp = &q->eng;
	msg->m.client = &cl->eng;
	ctl_op_send_stage(c, op, q->eng.stage, msg);
	return CTL_LATER;
}

void
ctl_qp_free(struct eng_control *c, struct ctl_qp *q)
{
	struct ctl_client *cl = q->conn.client;

	ctl_qp_leave_openers(c, q);
	c->conn_ops->forget(c, &q->conn);
	if (q->eng.type == SHM_UD && c->a.places != NULL)
		eng_place_clear(c->a.places, q->conn.slot);
	qp_refer(c, cl, q, -1);
	ctl_heap_free(&cl->heap, q->piece);
	ctl_table_del(&cl->qps, q->ref.handle);
	ctl_table_del(&c->conns, q->conn.slot);
	ctl_give(c, cl, CTL_POOL_QP);
	free(q);
}

void
ctl_qp_delete(struct eng_control *c, struct ctl_qp *q, struct ctl_op *op)
{
	q->conn.dying = true;
	q->conn.op = op;
	c->conn_ops->leave(c, &q->conn);
}

int
ctl_qp_destroy(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_qp_ref *ref = ctl_table_get(&cl->qps, m->body.handle);
	struct ctl_qp *q = ctl_qp_find(cl, m->body.handle);
	struct ctl_op *op;

	if (ref != NULL && ref->opened) {
		ctl_opened_free((struct ctl_opened *)ref);
		return 0;
	}
	if (q == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no QP %u", m->body.handle);
	op = ctl_op_new(c, cl, m, q, NULL);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	ctl_qp_delete(c, q, op);
	return CTL_LATER;
}

static void
qp_queried(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	struct shm_qp_info *i = &op->reply.body.qp;
	/* By its number, since the client may be one that has only opened the QP. */
	const struct cm_conn *conn = ctl_conn_of_qpn(c, i->qpn);

	if (op->status < 0)
		ctl_refuse(c, &op->reply, op->status, "the QP was destroyed meanwhile");
	else if (conn != NULL && (conn->modified || conn->qp->type == SHM_UD) &&
		 last->qp_info.state != RD_QP_ERR)
		i->state = conn->move.state; /* whether or not a connection exists */
	else
		i->state = last->qp_info.state;
	ctl_op_reply(c, op);
}

/* Returns a QP that the client owns or has opened, or NULL. */
static struct ctl_qp *
query_target(const struct ctl_client *cl, uint32_t handle)
{
	struct ctl_qp_ref *ref = ctl_table_get(&cl->qps, handle);
	struct ctl_qp *target;

	if (ref == NULL || !ref->opened)
		return ctl_qp_find(cl, handle);
	target = ((struct ctl_opened *)ref)->target;
	return target != NULL && !target->conn.dying ? target : NULL;
}

int
ctl_qp_query(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_qp *q = query_target(cl, m->body.handle);
	struct ctl_op *op;
	struct ctl_msg *msg;

	if (q == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no QP %u", m->body.handle);
	memset(&m->body, 0, sizeof(m->body.qp));
	qp_describe(q, &m->body.qp);
	if (q->conn.client != cl) { /* handles of another client are not valid here */
		m->body.qp.qp = SHM_NONE;
		m->body.qp.xrcd = SHM_NONE;
	}
	op = ctl_op_new(c, cl, m, NULL, qp_queried);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	msg = ctl_msg_get(c, ENG_CE_QP_QUERY, NULL);
	msg->m.qp = &q->eng;
	msg->m.client = &cl->eng;
	ctl_op_send_stage(c, op, q->eng.stage, msg);
	return CTL_LATER;
}
