/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and completion queues: the commands that create, resize and destroy them. */
#include <errno.h>
#include <stdlib.h>

#include "registry.h"

struct ctl_pd *
ctl_pd_find(const struct ctl_client *cl, uint32_t handle)
{
	return ctl_table_get(&cl->pds, handle);
}

struct ctl_cq *
ctl_cq_find(const struct ctl_client *cl, uint32_t handle)
{
	struct ctl_cq *cq = ctl_table_get(&cl->cqs, handle);

	return cq != NULL && !cq->dying ? cq : NULL;
}

struct shm_ring_at
ctl_ring_at(uint64_t entries, uint64_t cons, uint16_t stride, uint8_t log2_count)
{
	return (struct shm_ring_at){
		.entries = entries, .cons = cons, .stride = stride, .log2_count = log2_count};
}

/* ---- Protection domains ---- */

int
ctl_pd_create(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_pd *pd;

	if (ctl_take(c, cl, CTL_POOL_PD, m) < 0)
		return m->status;
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL) {
		ctl_give(c, cl, CTL_POOL_PD);
		return ctl_refuse(c, m, -ENOMEM, "no memory for a protection domain");
	}
	pd->rd.client = cl->eng.index;
	pd->stage = -1;
	pd->handle = (uint32_t)ctl_table_add(&cl->pds, pd);
	ctl_total(&c->totals.pds, 1);
	m->body.handle = pd->handle;
	return 0;
}

int
ctl_pd_settle(struct eng_control *c, struct ctl_client *cl, struct ctl_pd *pd, int stage,
	struct shm_msg *m)
{
	struct eng_client_stage *cs;

	if (pd->stage >= 0)
		return 0;
	if (stage < 0)
		stage = ctl_least_loaded(c);
	cs = &cl->eng.stage[stage];
	if (cs->ahs == NULL) {
		cs->ahs = calloc(cl->ahs.cap, sizeof(*cs->ahs));
		if (cs->ahs == NULL)
			return ctl_refuse(c, m, -ENOMEM, "no memory for address handles");
		cs->nahs = cl->ahs.cap;
	}
	pd->stage = stage;
	return 0;
}

void
ctl_pd_free(struct eng_control *c, struct ctl_client *cl, struct ctl_pd *pd)
{
	ctl_table_del(&cl->pds, pd->handle);
	ctl_total(&c->totals.pds, -1);
	ctl_give(c, cl, CTL_POOL_PD);
	free(pd);
}

int
ctl_pd_destroy(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_pd *pd = ctl_pd_find(cl, m->body.handle);

	if (pd == NULL)
		return ctl_refuse(
			c, m, -EINVAL, "there is no protection domain %u", m->body.handle);
	if (pd->rd.refs)
		return ctl_refuse(c, m, -EBUSY, "protection domain %u has %u users", m->body.handle,
			pd->rd.refs);
	ctl_pd_free(c, cl, pd);
	return 0;
}

/* ---- Completion queues ---- */

int
ctl_cq_sub(struct ctl_client *cl, struct ctl_cq *cq, uint32_t stage)
{
	struct eng_cq_sub *sub = &cq->eng.sub[stage];
	struct shm_ring_at where;
	uint64_t at;

	if ((cq->stages >> stage & 1) != 0)
		return 0;
	sub->piece =
		ctl_heap_alloc(&cl->heap, shm_cq_ring_bytes(shm_log2(cq->depth)), SHM_LINE, &at);
	if (sub->piece == HEAP_NONE)
		return -ENOMEM;
	at += cl->heap_at;
	where = shm_cq_ring(at, shm_log2(cq->depth));
	shm_prod_start(&sub->ring, cl->eng.home, &where);
	cq->stages |= 1ull << stage;
	cq->eng.shared->sub[cq->nsubs] = at;
	sub->number = cq->nsubs++;
	__atomic_store_n(&cq->eng.shared->nsubs, cq->nsubs, __ATOMIC_RELEASE);
	return 0;
}

/* Places the shared part of the queue. */
static void
cq_lay(struct ctl_client *cl, struct ctl_cq *cq, uint64_t at, struct shm_cq_info *info)
{
	memset(info, 0, sizeof(*info));
	info->depth = cq->depth;
	info->cq = cq->eng.handle;
	info->at = cl->heap_at + at;
	cq->eng.shared = (struct shm_cq *)(cl->eng.home + info->at);
}

static struct ctl_cq *
cq_alloc(unsigned nstages)
{
	size_t len = sizeof(struct ctl_cq) + nstages * sizeof(struct eng_cq_sub);
	struct ctl_cq *cq = aligned_alloc(64, len);

	if (cq != NULL)
		memset(cq, 0, len);
	return cq;
}

int
ctl_cq_create(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	uint32_t depth = m->body.cq.depth;
	struct ctl_cq *cq;
	uint64_t at, bytes = shm_cq_bytes(c->cfg->nstages);

	if (depth < 1 || depth > c->cfg->limits.cq_depth)
		return ctl_refuse(c, m, -EINVAL, "a completion queue holds 1 to %u entries, not %u",
			c->cfg->limits.cq_depth, depth);
	if (ctl_take(c, cl, CTL_POOL_CQ, m) < 0)
		return m->status;
	cq = cq_alloc(c->cfg->nstages);
	if (cq == NULL) {
		ctl_give(c, cl, CTL_POOL_CQ);
		return ctl_refuse(c, m, -ENOMEM, "no memory for a completion queue");
	}
	cq->depth = 1u << shm_log2(depth);
	cq->piece = ctl_heap_alloc(&cl->heap, bytes, bytes, &at);
	if (cq->piece == HEAP_NONE) {
		ctl_give(c, cl, CTL_POOL_CQ);
		free(cq);
		return ctl_refuse(c, m, -ENOMEM,
			"no room in the home region for a completion queue of %u entries", depth);
	}
	cq->eng.client = &cl->eng;
	cq->eng.handle = (uint32_t)ctl_table_add(&cl->cqs, cq);
	ctl_total(&c->totals.cqs, 1);
	cq_lay(cl, cq, at, &m->body.cq);
	return 0;
}

/* ---- Growth ---- */

static void
cq_moved(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	struct ctl_cq *cq = op->object;

	cq->moving = false;
	ctl_op_reply(c, op);
}

static int
resize_check(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_cq_info *i = &m->body.cq;
	const struct ctl_cq *cq = ctl_cq_find(cl, i->cq);

	if (cq == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no completion queue %u", i->cq);
	if (i->depth < 1 || i->depth > c->cfg->limits.cq_depth)
		return ctl_refuse(c, m, -EINVAL, "a completion queue holds 1 to %u entries, not %u",
			c->cfg->limits.cq_depth, i->depth);
	if (cq->moving)
		return ctl_refuse(c, m, -EBUSY, "completion queue %u is being resized", i->cq);
	return 0;
}

/* Makes the stages of the sub-rings move to those in the last piece, at offset `at`. */
static void
cq_move_out(struct eng_control *c, struct ctl_cq *cq, struct ctl_op *op, uint64_t at)
{
	uint8_t log2 = shm_log2(cq->depth);

	cq->moving = true;
	for (unsigned i = 0; i < c->cfg->nstages; i++) {
		struct ctl_msg *msg;

		if ((cq->stages >> i & 1) == 0)
			continue;
		msg = ctl_msg_get(c, ENG_CE_CQ_MOVE, NULL);
		msg->m.object.object = &cq->eng;
		msg->m.object.ring =
			shm_cq_ring(at + cq->eng.sub[i].number * shm_cq_ring_bytes(log2), log2);
		msg->m.client = &op->client->eng;
		ctl_op_send_stage(c, op, i, msg);
	}
}

int
ctl_cq_resize(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct shm_cq_info *i = &m->body.cq;
	struct ctl_cq *cq = ctl_cq_find(cl, i->cq);
	struct ctl_op *op;
	uint32_t depth, piece;
	uint64_t at;
	int rc = resize_check(c, cl, m);

	if (rc < 0)
		return rc;
	depth = 1u << shm_log2(i->depth);
	*i = (struct shm_cq_info){.cq = i->cq, .depth = SK_MAX(depth, cq->depth)};
	if (depth <= cq->depth)
		return 0;
	if (cq->nsubs == 0) {
		cq->depth = depth;
		return 0;
	}
	piece = ctl_heap_alloc(
		&cl->heap, cq->nsubs * shm_cq_ring_bytes(shm_log2(depth)), SHM_LINE, &at);
	if (piece == HEAP_NONE)
		return ctl_refuse(
			c, m, -ENOMEM, "no room in the home region for %u completions", depth);
	i->at = cl->heap_at + at;
	i->nsubs = cq->nsubs;
	op = ctl_op_new(c, cl, m, cq, cq_moved);
	if (op == NULL) {
		ctl_heap_free(&cl->heap, piece);
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	}
	cq->depth = depth;
	cq->moved[cq->nmoved++] = piece;
	cq_move_out(c, cq, op, cl->heap_at + at);
	return CTL_LATER;
}

/* ---- Destruction ---- */

static void
cq_gone(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	struct ctl_cq *cq = op->object;
	struct ctl_client *cl = op->client;

	for (unsigned i = 0; i < c->cfg->nstages; i++)
		if ((cq->stages >> i & 1) != 0)
			ctl_heap_free(&cl->heap, cq->eng.sub[i].piece);
	for (uint32_t i = 0; i < cq->nmoved; i++)
		ctl_heap_free(&cl->heap, cq->moved[i]);
	ctl_heap_free(&cl->heap, cq->piece);
	ctl_table_del(&cl->cqs, cq->eng.handle);
	ctl_total(&c->totals.cqs, -1);
	ctl_give(c, cl, CTL_POOL_CQ);
	free(cq);
	ctl_op_reply(c, op);
}

void
ctl_cq_delete(struct eng_control *c, struct ctl_cq *cq, struct ctl_op *op)
{
	cq->dying = true;
	op->object = cq;
	op->finish = cq_gone;
	for (unsigned i = 0; i < c->cfg->nstages; i++) {
		struct ctl_msg *msg = ctl_msg_get(c, ENG_CE_CQ_DEL, NULL);

		msg->m.object.object = &cq->eng;
		msg->m.client = &op->client->eng;
		ctl_op_send_stage(c, op, i, msg);
	}
}

int
ctl_cq_destroy(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_cq *cq = ctl_cq_find(cl, m->body.handle);
	struct ctl_op *op;

	if (cq == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no completion queue %u", m->body.handle);
	if (cq->eng.refs)
		return ctl_refuse(c, m, -EBUSY, "completion queue %u serves %u queues",
			m->body.handle, cq->eng.refs);
	op = ctl_op_new(c, cl, m, cq, cq_gone);
	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	ctl_cq_delete(c, cq, op);
	return CTL_LATER;
}
