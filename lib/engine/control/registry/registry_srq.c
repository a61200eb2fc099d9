/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues. A queue belongs to one engine stage, and all of its QPs are on that stage.
 * An XRC SRQ belongs to the stage of its XRC domain. Senders name it by a number that nobody can
 * guess.
 */
#include <errno.h>
#include <stdlib.h>

#include "registry.h"

#define SRQN_BITS 24

struct ctl_srq *
ctl_srq_find(const struct ctl_client *cl, uint32_t handle)
{
	struct ctl_srq *s = ctl_table_get(&cl->srqs, handle);

	return s != NULL && !s->dying ? s : NULL;
}

/* ---- Creation ---- */

static uint32_t
new_number(struct eng_control *c, uint32_t slot)
{
	uint32_t number;

	do {
		uint32_t n = c->srq_generation[slot]++ << shm_log2(c->xrc_srqs.cap) | slot;

		number = sk_perm24(&c->srqn_key, n & ((1u << SRQN_BITS) - 1));
	} while (number == 0);
	return number;
}

static void
xrc_enter(struct eng_control *c, struct ctl_srq *s, struct ctl_xrcd_ref *x, struct ctl_cq *cq)
{
	s->xrcd = x;
	s->slot = (uint32_t)ctl_table_add(&c->xrc_srqs, s);
	s->eng.number = new_number(c, s->slot);
	s->eng.xrcd = &x->domain->eng;
	s->eng.stage = x->domain->eng.stage;
	s->eng.cq = &cq->eng;
	x->users++;
	cq->eng.refs++;
}

static void
srq_free(struct eng_control *c, struct ctl_client *cl, struct ctl_srq *s)
{
	if (s->xrcd != NULL) {
		ctl_table_del(&c->xrc_srqs, s->slot);
		s->xrcd->users--;
		s->eng.cq->refs--;
	}
	((struct rd_pd *)s->eng.pd)->refs--;
	ctl_heap_free(&cl->heap, s->piece);
	if (s->larger != HEAP_NONE)
		ctl_heap_free(&cl->heap, s->larger);
	ctl_table_del(&cl->srqs, s->eng.handle);
	ctl_total(&c->totals.srqs, -1);
	ctl_give(c, cl, CTL_POOL_SRQ);
	free(s);
}

static void
srq_added(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	if (op->status < 0) {
		srq_free(c, op->client, op->object);
		ctl_refuse(c, &op->reply, op->status,
			"the engine stage has no room for a shared receive queue");
	}
	ctl_op_reply(c, op);
}

/* Places the queue: the cache line of the consumer's index, then the entries. */
static void
srq_lay(struct ctl_client *cl, struct ctl_srq *s, uint64_t at, uint16_t stride,
	struct shm_srq_info *info)
{
	uint64_t cons = cl->heap_at + at;

	info->depth = s->eng.depth;
	info->max_sge = s->eng.max_sge;
	info->srq = s->eng.handle;
	info->srqn = s->eng.number;
	info->rq = ctl_ring_at(cons + SHM_LINE, cons, stride, shm_log2(info->depth));
	shm_take_init(&s->eng.rq, cl->eng.home, &info->rq);
}

static int
limit_check(struct eng_control *c, struct shm_msg *m, uint32_t depth)
{
	if (m->body.srq.limit > depth)
		return ctl_refuse(c, m, -EINVAL,
			"a limit for a shared receive queue of depth %u cannot be %u", depth,
			m->body.srq.limit);
	return 0;
}

static int
xrc_check(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_srq_info *i = &m->body.srq;

	if (i->xrcd == SHM_NONE && i->cq == SHM_NONE)
		return 0;
	if (ctl_xrcd_find(cl, i->xrcd) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no XRC domain %u", i->xrcd);
	if (ctl_cq_find(cl, i->cq) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no completion queue %u", i->cq);
	return 0;
}

/* Checks the command, and takes a unit of CTL_POOL_SRQ. */
static int
srq_check(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_srq_info *i = &m->body.srq;
	int rc;

	if (ctl_pd_find(cl, i->pd) == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no protection domain %u", i->pd);
	if (i->depth < 1 || i->depth > c->cfg->limits.rq_depth)
		return ctl_refuse(c, m, -EINVAL, "a receive queue holds 1 to %u requests, not %u",
			c->cfg->limits.rq_depth, i->depth);
	if (i->max_sge > RD_MAX_SGE)
		return ctl_refuse(c, m, -EINVAL, "a request has at most %u elements, not %u",
			RD_MAX_SGE, i->max_sge);
	rc = limit_check(c, m, 1u << shm_log2(i->depth));
	if (rc == 0)
		rc = xrc_check(c, cl, m);
	if (rc < 0)
		return rc;
	return ctl_take(c, cl, CTL_POOL_SRQ, m);
}

/* Makes the sub-ring in which an XRC SRQ completes receives. Returns 0, or -ENOMEM with a
 * sentence. */
static int
srq_sub(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_srq_info *i = &m->body.srq;

	if (i->xrcd == SHM_NONE || ctl_cq_sub(cl, ctl_cq_find(cl, i->cq),
					   ctl_xrcd_find(cl, i->xrcd)->domain->eng.stage) == 0)
		return 0;
	return ctl_refuse(c, m, -ENOMEM,
		"no room in the home region for the completions of a shared receive queue");
}

/* Returns the engine stage of a new SRQ: that of the datagram QPs of its protection domain, which
 * can then use it, or else the least loaded one. */
static uint32_t
srq_stage(const struct eng_control *c, const struct ctl_client *cl, const struct shm_srq_info *i)
{
	const struct ctl_pd *pd = ctl_pd_find(cl, i->pd);

	return i->xrcd == SHM_NONE && pd->stage >= 0 ? (uint32_t)pd->stage : ctl_least_loaded(c);
}

int
ctl_srq_create(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct shm_srq_info *i = &m->body.srq;
	struct ctl_srq *s;
	struct ctl_op *op;
	struct ctl_msg *msg;
	uint16_t stride;
	uint64_t at;
	int rc = srq_check(c, cl, m);

	if (rc < 0)
		return rc;
	rc = srq_sub(c, cl, m);
	if (rc < 0) {
		ctl_give(c, cl, CTL_POOL_SRQ);
		return rc;
	}
	stride = shm_rqe_stride(i->max_sge);
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		ctl_give(c, cl, CTL_POOL_SRQ);
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	}
	s->eng.depth = 1u << shm_log2(i->depth);
	s->eng.max_sge = SK_MIN((stride - SHM_RQE_BASE) / sizeof(struct rd_sge), RD_MAX_SGE);
	s->eng.limit = i->limit;
	s->larger = HEAP_NONE;
	s->piece = ctl_heap_alloc(
		&cl->heap, SHM_LINE + (uint64_t)s->eng.depth * stride, SHM_LINE, &at);
	op = s->piece == HEAP_NONE ? NULL : ctl_op_new(c, cl, m, s, srq_added);
	if (op == NULL) {
		if (s->piece != HEAP_NONE)
			ctl_heap_free(&cl->heap, s->piece);
		ctl_give(c, cl, CTL_POOL_SRQ);
		free(s);
		return ctl_refuse(
			c, m, -ENOMEM, "no room in the home region for %u receives", i->depth);
	}
	s->eng.client = &cl->eng;
	s->eng.stage = srq_stage(c, cl, i);
	s->eng.pd = &ctl_pd_find(cl, i->pd)->rd;
	((struct rd_pd *)s->eng.pd)->refs++;
	s->eng.handle = (uint32_t)ctl_table_add(&cl->srqs, s);
	ctl_total(&c->totals.srqs, 1);
	if (i->xrcd != SHM_NONE)
		xrc_enter(c, s, ctl_xrcd_find(cl, i->xrcd), ctl_cq_find(cl, i->cq));
	srq_lay(cl, s, at, stride, &op->reply.body.srq);
	msg = ctl_msg_get(c, ENG_CE_SRQ_ADD, NULL);
	msg->m.object.object = &s->eng;
	msg->m.client = &cl->eng;
	ctl_op_send_stage(c, op, s->eng.stage, msg);
	return CTL_LATER;
}

/* ---- The limit ---- */

int
ctl_srq_modify(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_srq *s = ctl_srq_find(cl, m->body.srq.srq);
	struct ctl_op *op;
	struct ctl_msg *msg;
	int rc;

	if (s == NULL)
		return ctl_refuse(
			c, m, -EINVAL, "there is no shared receive queue %u", m->body.srq.srq);
	rc = limit_check(c, m, s->eng.depth);
	if (rc < 0)
		return rc;
	op = ctl_op_new(c, cl, m, s, ctl_op_finish);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	msg = ctl_msg_get(c, ENG_CE_SRQ_LIMIT, NULL);
	msg->m.object.object = &s->eng;
	msg->m.client = &cl->eng;
	msg->m.object.number = m->body.srq.limit;
	ctl_op_send_stage(c, op, s->eng.stage, msg);
	return CTL_LATER;
}

/* ---- Growth ---- */

static int
srq_resize_check(struct eng_control *c, const struct ctl_srq *s, struct shm_msg *m)
{
	const struct shm_srq_info *i = &m->body.srq;

	if (s == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no shared receive queue %u", i->srq);
	if (s->moving)
		return ctl_refuse(c, m, -EBUSY, "shared receive queue %u is moving", i->srq);
	if (i->depth == 0 && s->larger == HEAP_NONE)
		return ctl_refuse(
			c, m, -EINVAL, "shared receive queue %u has no larger ring", i->srq);
	if (i->depth != 0 && (i->depth <= s->eng.depth || i->depth > c->cfg->limits.rq_depth))
		return ctl_refuse(c, m, -EINVAL,
			"a receive queue of depth %u can grow up to %u, not to %u", s->eng.depth,
			c->cfg->limits.rq_depth, i->depth);
	return 0;
}

/* Allocates the larger ring, in the place of one that the client has not moved to. */
static int
srq_larger(struct eng_control *c, struct ctl_client *cl, struct ctl_srq *s, struct shm_msg *m)
{
	struct shm_srq_info *i = &m->body.srq;
	uint16_t stride = s->eng.rq.stride;
	uint8_t log2 = shm_log2(i->depth);
	uint64_t at;

	if (s->larger != HEAP_NONE)
		ctl_heap_free(&cl->heap, s->larger);
	s->larger = ctl_heap_alloc(&cl->heap, SHM_LINE + ((uint64_t)stride << log2), SHM_LINE, &at);
	if (s->larger == HEAP_NONE)
		return ctl_refuse(
			c, m, -ENOMEM, "no room in the home region for %u receives", i->depth);
	at += cl->heap_at;
	s->larger_at = i->rq = ctl_ring_at(at + SHM_LINE, at, stride, log2);
	i->depth = 1u << log2;
	return 0;
}

static void
srq_moved(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	struct ctl_srq *s = op->object;

	ctl_heap_free(&op->client->heap, s->piece);
	s->piece = s->larger;
	s->larger = HEAP_NONE;
	s->eng.depth = 1u << s->larger_at.log2_count;
	s->moving = false;
	ctl_op_reply(c, op);
}

int
ctl_srq_resize(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_srq *s = ctl_srq_find(cl, m->body.srq.srq);
	struct ctl_op *op;
	struct ctl_msg *msg;
	int rc = srq_resize_check(c, s, m);

	if (rc < 0)
		return rc;
	if (m->body.srq.depth != 0)
		return srq_larger(c, cl, s, m);
	op = ctl_op_new(c, cl, m, s, srq_moved);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	s->moving = true;
	msg = ctl_msg_get(c, ENG_CE_SRQ_MOVE, NULL);
	msg->m.object.object = &s->eng;
	msg->m.object.ring = s->larger_at;
	msg->m.client = &cl->eng;
	ctl_op_send_stage(c, op, s->eng.stage, msg);
	return CTL_LATER;
}

/* ---- Destruction ---- */

static void
srq_gone(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	srq_free(c, op->client, op->object);
	ctl_op_reply(c, op);
}

void
ctl_srq_delete(struct eng_control *c, struct ctl_srq *s, struct ctl_op *op)
{
	struct ctl_msg *msg = ctl_msg_get(c, ENG_CE_SRQ_DEL, NULL);

	s->dying = true;
	op->object = s;
	op->finish = srq_gone;
	msg->m.object.object = &s->eng;
	msg->m.client = &op->client->eng;
	ctl_op_send_stage(c, op, s->eng.stage, msg);
}

int
ctl_srq_destroy(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_srq *s = ctl_srq_find(cl, m->body.handle);
	struct ctl_op *op;

	if (s == NULL)
		return ctl_refuse(
			c, m, -EINVAL, "there is no shared receive queue %u", m->body.handle);
	if (s->eng.refs)
		return ctl_refuse(c, m, -EBUSY, "shared receive queue %u serves %u QPs",
			m->body.handle, s->eng.refs);
	op = ctl_op_new(c, cl, m, s, srq_gone);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	ctl_srq_delete(c, s, op);
	return CTL_LATER;
}
