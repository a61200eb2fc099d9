/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues, and XRC domains. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "client_priv.h"

static int
srq_bind(struct saker_srq *srq, struct saker *s, const struct shm_srq_info *info)
{
	if (info->max_sge > RD_MAX_SGE ||
		!shm_ring_ok(&info->rq, s->size, shm_rqe_stride(info->max_sge)))
		return -EPROTO;
	shm_ring_clear(s->home, &info->rq);
	shm_prod_init(&srq->rq.ring, s->home, &info->rq);
	srq->rq.gone = &s->gone;
	srq->rq.max_sge = info->max_sge;
	srq->number = info->srqn;
	srq->s = s;
	return 0;
}

int
saker_srq_create(struct saker_pd *pd, uint32_t depth, uint32_t max_sge, struct saker_srq **out)
{
	struct saker_srq_attr attr = {.depth = depth, .max_sge = max_sge};

	return saker_srq_create_as(pd, &attr, out);
}

int
saker_srq_create_as(struct saker_pd *pd, struct saker_srq_attr *attr, struct saker_srq **out)
{
	struct saker *s = pd->obj.s;
	struct saker_srq *srq = cl_zalloc(sizeof(*srq));
	struct shm_msg m;
	int rc;

	if (srq == NULL)
		return cl_fail(-ENOMEM, "no memory for a shared receive queue");
	memset(&m, 0, sizeof(m));
	m.body.srq.pd = pd->obj.handle;
	m.body.srq.depth = attr->depth;
	m.body.srq.max_sge = attr->max_sge;
	m.body.srq.limit = attr->limit;
	m.body.srq.xrcd = attr->xrcd != NULL ? attr->xrcd->obj.handle : SHM_NONE;
	m.body.srq.cq = attr->cq != NULL ? attr->cq->obj.handle : SHM_NONE;
	rc = cl_command(s, &m, SHM_SRQ_CREATE);
	if (rc == 0 && srq_bind(srq, s, &m.body.srq) < 0) {
		cl_command_handle(s, SHM_SRQ_DESTROY, m.body.srq.srq);
		rc = cl_fail(
			-EPROTO, "the engine reported an invalid place for a shared receive queue");
	}
	if (rc == 0)
		rc = cl_obj_add(s, &srq->obj, srq, CL_SRQ, m.body.srq.srq);
	if (rc < 0) {
		free(srq);
		return rc;
	}
	attr->depth = m.body.srq.depth;
	attr->max_sge = m.body.srq.max_sge;
	srq->user = attr->user;
	*out = srq;
	return 0;
}

int
saker_srq_destroy(struct saker_srq *srq)
{
	return cl_obj_destroy(&srq->obj);
}

void *
saker_srq_user(const struct saker_srq *srq)
{
	return srq->user;
}

uint32_t
saker_srq_num(const struct saker_srq *srq)
{
	return srq->number;
}

/* Sends SHM_SRQ_MODIFY with a limit, or SHM_SRQ_RESIZE with a depth, and sets *m to the reply. */
static int
srq_command(
	struct saker_srq *srq, enum shm_op op, uint32_t depth, uint32_t limit, struct shm_msg *m)
{
	memset(m, 0, sizeof(*m));
	m->body.srq.srq = srq->obj.handle;
	m->body.srq.depth = depth;
	m->body.srq.limit = limit;
	return cl_command(srq->s, m, op);
}

int
saker_srq_set_limit(struct saker_srq *srq, uint32_t limit)
{
	struct shm_msg m;

	return srq_command(srq, SHM_SRQ_MODIFY, 0, limit, &m);
}

/* ---- Growth ---- */

uint32_t
cl_srq_count(struct saker_srq *srq)
{
	struct shm_prod *p = &srq->rq.ring;

	return p->next - __atomic_load_n(&p->cons->taken, __ATOMIC_ACQUIRE);
}

/* Copies the receives that the engine may not have taken to a larger ring. */
static void
srq_copy(const struct saker_srq *srq, const struct shm_ring_at *at, struct shm_prod *to)
{
	const struct shm_prod *from = &srq->rq.ring;
	uint32_t i = from->next - SK_MIN(cl_srq_count((struct saker_srq *)srq), from->count);

	shm_ring_clear(srq->s->home, at);
	shm_prod_init(to, srq->s->home, at);
	for (; i != from->next; i++) {
		uint8_t *e = to->entries + (size_t)(i & (to->count - 1)) * to->stride;

		memcpy(e, from->entries + (size_t)(i & (from->count - 1)) * from->stride,
			to->stride);
		__atomic_store_n(
			(uint32_t *)(void *)e, shm_turn(i, to->log2_count), __ATOMIC_RELAXED);
	}
	to->next = from->next;
	to->taken = from->taken;
}

/* Resizes a locked queue. Returns 0 or -errno. */
static int
srq_resize(struct saker_srq *srq, uint32_t depth)
{
	struct shm_prod *ring = &srq->rq.ring, larger;
	struct shm_msg m;
	int rc = srq_command(srq, SHM_SRQ_RESIZE, depth, 0, &m);

	if (rc < 0)
		return rc;
	if (!shm_ring_ok(&m.body.srq.rq, srq->s->size, ring->stride) ||
		m.body.srq.rq.stride != ring->stride ||
		m.body.srq.rq.log2_count <= ring->log2_count)
		return cl_fail(
			-EPROTO, "the engine reported an invalid place for a larger receive queue");
	srq_copy(srq, &m.body.srq.rq, &larger);
	rc = srq_command(srq, SHM_SRQ_RESIZE, 0, 0, &m);
	if (rc == 0)
		*ring = larger;
	return rc;
}

int
saker_srq_resize(struct saker_srq *srq, uint32_t depth)
{
	int rc = 0;

	if (!sk_own(&srq->rq.lock, 0))
		return cl_fail(
			-EBUSY, "a receive queue cannot be resized while a post is under way");
	if (depth > srq->rq.ring.count)
		rc = srq_resize(srq, depth);
	sk_disown(&srq->rq.lock);
	return rc < 0 ? rc : (int)srq->rq.ring.count;
}

/* ---- XRC domains ---- */

int
saker_xrcd_open(struct saker *s, uint64_t dev, uint64_t ino, bool create, bool exclusive,
	struct saker_xrcd **out)
{
	struct saker_xrcd *x = cl_zalloc(sizeof(*x));
	struct shm_msg m;
	int rc;

	if (x == NULL)
		return cl_fail(-ENOMEM, "no memory for an XRC domain");
	memset(&m, 0, sizeof(m));
	m.body.xrcd.dev = dev;
	m.body.xrcd.ino = ino;
	m.body.xrcd.create = create;
	m.body.xrcd.exclusive = exclusive;
	rc = cl_command(s, &m, SHM_XRCD_OPEN);
	if (rc == 0)
		rc = cl_obj_add(s, &x->obj, x, CL_XRCD, m.body.xrcd.xrcd);
	if (rc < 0) {
		free(x);
		return rc;
	}
	*out = x;
	return 0;
}

int
saker_xrcd_close(struct saker_xrcd *x)
{
	return cl_obj_destroy(&x->obj);
}
