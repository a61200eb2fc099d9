/* SPDX-License-Identifier: BSD-3-Clause */
/* See mini.h. Handles are indices; a failure ends the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mini.h"

static void
need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "mini: %s\n", what);
	exit(1);
}

bool
mini_init(struct mini *m, uint64_t size)
{
	const struct shm_home home = {
		.nstages = 1, .commands = 16, .events = 32, .doorbells = 128, .cq_events = 4};

	memset(m, 0, sizeof(*m));
	m->home = aligned_alloc(4096, size);
	if (m->home == NULL)
		return false;
	memset(m->home, 0, size);
	m->size = size;
	m->h = (struct shm_header *)m->home;
	if (shm_header_lay(m->h, size, &home) != 0)
		return false;
	shm_take_init(&m->cmd, m->home, &m->h->cmd);
	shm_take_init(&m->doorbell, m->home, &m->h->doorbell[0]);
	shm_prod_init(&m->evt, m->home, &m->h->evt);
	shm_prod_init(&m->event, m->home, &m->h->event[0]);
	m->heap = m->h->heap;
	m->h->engine_alive = 1;
	__atomic_store_n(&m->h->magic, SHM_MAGIC, __ATOMIC_RELEASE);
	return true;
}

void
mini_free(struct mini *m)
{
	free(m->home);
}

static uint64_t
heap_take(struct mini *m, uint64_t bytes)
{
	uint64_t at = m->heap;

	m->heap += (bytes + SHM_LINE - 1) & ~(uint64_t)(SHM_LINE - 1);
	need(m->heap <= m->size, "the region is too small");
	return at;
}

static void
lay(struct mini *m, struct shm_ring_at *at, uint32_t depth, uint16_t stride, uint64_t cons)
{
	at->log2_count = shm_log2(depth);
	at->stride = stride;
	at->cons = cons;
	at->entries = heap_take(m, shm_ring_bytes(at));
}

static void
make_cq(struct mini *m, struct shm_cq_info *info)
{
	struct mini_cq *cq = &m->cq[m->ncq];
	struct shm_ring_at ring;
	uint64_t at;

	need(m->ncq < MINI_OBJS, "too many CQs");
	info->at = heap_take(m, shm_cq_bytes(1));
	at = heap_take(m, SHM_LINE + (sizeof(struct shm_cqe) << shm_log2(info->depth)));
	info->depth = 1u << shm_log2(info->depth);
	ring = shm_cq_ring(at, shm_log2(info->depth));
	cq->shared = (struct shm_cq *)(m->home + info->at);
	cq->shared->sub[0] = at;
	cq->shared->nsubs = 1;
	shm_prod_init(&cq->ring, m->home, &ring);
	info->cq = m->ncq++;
}

static void
resize_cq(struct mini *m, struct shm_cq_info *info)
{
	struct mini_cq *cq = &m->cq[info->cq];
	uint8_t log2 = shm_log2(info->depth);
	struct shm_ring_at ring;

	info->depth = 1u << log2;
	info->at = heap_take(m, shm_cq_ring_bytes(log2));
	info->nsubs = 1;
	ring = shm_cq_ring(info->at, log2);
	shm_prod_move(&cq->ring, m->home, &ring);
}

static void
make_qp(struct mini *m, struct shm_qp_info *info)
{
	struct mini_qp *qp = &m->qp[m->nqp];

	need(m->nqp < MINI_OBJS, "too many QPs");
	info->at = heap_take(m, sizeof(struct shm_qp));
	lay(m, &info->sq, info->sq_depth, shm_sqe_stride(info->max_send_sge, info->max_inline),
		info->at + offsetof(struct shm_qp, sq));
	lay(m, &info->rq, info->rq_depth, shm_rqe_stride(info->max_recv_sge),
		info->at + offsetof(struct shm_qp, rq));
	qp->shared = (struct shm_qp *)(m->home + info->at);
	shm_take_init(&qp->sq, m->home, &info->sq);
	qp->cq = info->send_cq;
	info->qpn = 0x100 + m->nqp;
	info->qp = m->nqp++;
}

static void
make_srq(struct mini *m, struct shm_srq_info *info)
{
	info->depth = 1u << shm_log2(info->depth);
	lay(m, &info->rq, info->depth, shm_rqe_stride(info->max_sge), heap_take(m, SHM_LINE));
	info->srq = m->handles++;
}

static void
command(struct mini *m, const struct shm_msg *in)
{
	struct shm_msg *out;

	need(shm_prod_room(&m->evt) > 0, "the event ring is full");
	out = shm_prod_entry(&m->evt);
	memcpy((uint8_t *)out + sizeof(uint32_t), (const uint8_t *)in + sizeof(uint32_t),
		sizeof(*in) - sizeof(uint32_t));
	if (in->op == SHM_CQ_CREATE)
		make_cq(m, &out->body.cq);
	else if (in->op == SHM_CQ_RESIZE)
		resize_cq(m, &out->body.cq);
	else if (in->op == SHM_QP_CREATE)
		make_qp(m, &out->body.qp);
	else if (in->op == SHM_SRQ_CREATE)
		make_srq(m, &out->body.srq);
	else if (in->op == SHM_PD_CREATE)
		out->body.handle = m->handles++;
	shm_prod_push(&m->evt);
}

static void
serve(struct mini *m, struct mini_qp *qp)
{
	struct mini_cq *cq = &m->cq[qp->cq];
	const struct shm_sqe *e;

	shm_pend_clear(&qp->shared->pending);
	while ((e = shm_take_peek(&qp->sq)) != NULL && shm_prod_room(&cq->ring) > 0) {
		struct shm_cqe *c = shm_prod_entry(&cq->ring);
		uint64_t wr_id = e->wr_id;
		uint8_t opcode = e->opcode;

		/* The entry of a request is free before its completion exists. */
		shm_take_pop(&qp->sq);
		shm_take_publish(&qp->sq);
		c->wr_id = wr_id;
		c->qpn = 0x100 + (uint32_t)(qp - m->qp);
		c->opcode = opcode;
		c->status = RD_SUCCESS;
		shm_prod_push(&cq->ring);
	}
	need(e == NULL, "a completion queue is full");
	cq->pending |= shm_arm_fire(&cq->shared->arm, false);
}

/* A program may arm a CQ often before it takes events: an event without room is pending. */
static void
send_events(struct mini *m)
{
	for (uint32_t i = 0; i < m->ncq && shm_prod_room(&m->event) > 0; i++) {
		struct shm_cq_event *e = shm_prod_entry(&m->event);

		if (!m->cq[i].pending)
			continue;
		e->cq = i;
		e->sub = 0;
		e->until = m->cq[i].ring.next;
		shm_prod_push(&m->event);
		m->cq[i].pending = false;
	}
}

bool
mini_poll(struct mini *m)
{
	const struct shm_doorbell *d;
	const struct shm_msg *in;
	bool any = false;

	for (; (d = shm_take_peek(&m->doorbell)) != NULL; any = true) {
		uint32_t what = d->what;

		shm_take_pop(&m->doorbell);
		shm_take_publish(&m->doorbell);
		if (what != SHM_RING_MAILBOX) {
			need(what < m->nqp, "a doorbell of nobody");
			serve(m, &m->qp[what]);
			continue;
		}
		for (; (in = shm_take_peek(&m->cmd)) != NULL; shm_take_publish(&m->cmd)) {
			command(m, in);
			shm_take_pop(&m->cmd);
		}
	}
	send_events(m);
	return any;
}

void
mini_idle(void *m)
{
	mini_poll(m);
}
