/* SPDX-License-Identifier: BSD-3-Clause */
/* See fake.h. Handles of each kind count up from a number of their own, about 7, so that a test
 * detects a handle that is used as an index or as a handle of another kind. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../lib/base/mem.h"
#include "fake.h"

void
fake_init(struct fake *f, void *base, uint64_t size, uint64_t mem_len)
{
	const struct shm_home home = {.nstages = FAKE_STAGES,
		.commands = 8,
		.events = 16,
		.doorbells = 128,
		.cq_events = 64,
		.mem_len = mem_len};

	memset(f, 0, sizeof(*f));
	f->wake = -1;
	f->home = base;
	f->h = base;
	cr_assert_eq(shm_header_lay(f->h, size, &home), 0);
	shm_take_init(&f->cmd, base, &f->h->cmd);
	shm_prod_init(&f->evt, base, &f->h->evt);
	for (uint32_t i = 0; i < FAKE_STAGES; i++) {
		shm_take_init(&f->doorbell[i], base, &f->h->doorbell[i]);
		shm_prod_init(&f->event[i], base, &f->h->event[i]);
	}
	f->heap = f->h->heap;
	f->heap_end = f->h->heap + f->h->heap_len;
	__atomic_store_n(&f->h->engine_alive, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&f->h->magic, SHM_MAGIC, __ATOMIC_RELEASE);
}

static uint64_t
heap_take(struct fake *f, uint64_t bytes)
{
	uint64_t at = f->heap;

	f->heap += (bytes + SHM_LINE - 1) & ~(uint64_t)(SHM_LINE - 1);
	cr_assert_leq(f->heap, f->heap_end);
	return at;
}

/* Makes the memory of a new ring that of an older queue: all entries look valid. */
static void
stale(struct fake *f, const struct shm_ring_at *at)
{
	for (uint32_t i = 0; i < 1u << at->log2_count && !f->nonsense; i++)
		*(uint32_t *)(f->home + at->entries + (uint64_t)i * at->stride) = 1;
}

static void
lay(struct fake *f, struct shm_ring_at *at, uint32_t depth, uint16_t stride, uint64_t cons)
{
	at->log2_count = shm_log2(depth);
	at->stride = stride;
	at->cons = cons;
	at->entries = heap_take(f, shm_ring_bytes(at));
	stale(f, at);
}

void
fake_sub(struct fake *f, uint32_t cq, uint32_t sub)
{
	struct fake_cq *q = &f->cq[cq];
	uint64_t at = heap_take(f, SHM_LINE + (sizeof(struct shm_cqe) << q->log2_depth));
	struct shm_ring_at ring = shm_cq_ring(at, q->log2_depth);

	stale(f, &ring);
	shm_prod_start(&q->sub[sub], f->home, &ring);
	q->shared->sub[q->shared->nsubs] = at;
	__atomic_store_n(&q->shared->nsubs, q->shared->nsubs + 1, __ATOMIC_RELEASE);
}

static void
make_cq(struct fake *f, struct shm_cq_info *info)
{
	struct fake_cq *cq = &f->cq[f->ncq];

	info->at = f->nonsense ? f->h->size - 8 : heap_take(f, shm_cq_bytes(FAKE_STAGES));
	info->depth = 1u << shm_log2(info->depth);
	cq->log2_depth = shm_log2(info->depth);
	cq->shared = (struct shm_cq *)(f->home + info->at);
	for (uint32_t i = 0; i < FAKE_STAGES && !f->nonsense && !f->no_subs; i++)
		fake_sub(f, f->ncq, i);
	info->cq = 100 + f->ncq++;
}

/* The larger rings are in memory that looks like the lap that begins there. */
static void
resize_cq(struct fake *f, struct shm_cq_info *info)
{
	struct fake_cq *cq = &f->cq[info->cq - 100];
	uint8_t log2 = shm_log2(info->depth);

	if (log2 < cq->log2_depth && !f->depth_only)
		log2 = cq->log2_depth;
	info->depth = 1u << log2;
	if (log2 == cq->log2_depth || f->depth_only)
		return;
	info->nsubs = cq->shared->nsubs;
	info->at = heap_take(f, info->nsubs * shm_cq_ring_bytes(log2));
	cq->log2_depth = log2;
	for (uint32_t i = 0; i < info->nsubs; i++) {
		struct shm_ring_at ring = shm_cq_ring(info->at + i * shm_cq_ring_bytes(log2), log2);
		uint32_t next = shm_ring_moved(cq->sub[i].next, 1u << log2);

		for (uint32_t k = 0; k < 1u << log2; k++)
			*(uint32_t *)(f->home + ring.entries + (uint64_t)k * ring.stride) =
				shm_turn(next, log2);
		shm_prod_move(&cq->sub[i], f->home, &ring);
	}
	if (f->during != 0)
		cr_assert(fake_complete(f, info->cq - 100, 0, f->during, 0));
	if (f->nonsense)
		info->at = f->h->size - 128;
}

static void
make_qp(struct fake *f, struct shm_qp_info *info)
{
	struct fake_qp *qp = &f->qp[f->nqp];

	info->at = f->nonsense ? f->h->size : heap_take(f, sizeof(struct shm_qp));
	info->sq_depth = 1u << shm_log2(info->sq_depth);
	lay(f, &info->sq, info->sq_depth, shm_sqe_stride(info->max_send_sge, info->max_inline),
		info->at + offsetof(struct shm_qp, sq));
	shm_take_init(&qp->sq, f->home, &info->sq);
	if (info->srq == SHM_NONE) {
		info->rq_depth = 1u << shm_log2(info->rq_depth);
		lay(f, &info->rq, info->rq_depth, shm_rqe_stride(info->max_recv_sge),
			info->at + offsetof(struct shm_qp, rq));
		shm_take_init(&qp->rq, f->home, &info->rq);
	}
	qp->shared = (struct shm_qp *)(f->home + info->at);
	info->stage = f->nqp % FAKE_STAGES;
	info->state = RD_QP_INIT;
	info->qpn = 0xabc000 + f->nqp * 3;
	info->qp = 7 + f->nqp++;
}

static void
make_srq(struct fake *f, struct shm_srq_info *info)
{
	lay(f, &info->rq, info->depth, shm_rqe_stride(info->max_sge),
		heap_take(f, sizeof(struct shm_cons)));
	shm_take_init(&f->srq[f->nsrq], f->home, &info->rq);
	info->srq = 300 + f->nsrq++;
}

static void
resize_srq(struct fake *f, struct shm_srq_info *info)
{
	struct shm_take *t = &f->srq[info->srq - 300];
	uint32_t next;

	if (info->depth != 0) {
		lay(f, &info->rq, info->depth, t->stride, heap_take(f, sizeof(struct shm_cons)));
		f->larger = info->rq;
		if (f->nonsense)
			info->rq.entries = f->h->size - 64;
		return;
	}
	for (unsigned i = 0; i < f->take_first; i++)
		shm_take_pop(t);
	shm_take_publish(t);
	next = t->next;
	shm_take_init(t, f->home, &f->larger);
	t->next = next;
	shm_take_publish(t);
}

static void
answer(struct fake *f, struct shm_msg *m)
{
	switch (m->op) {
	case SHM_QUERY_DEVICE:
		strcpy(m->body.device.name, "fake");
		m->body.device.max_ird = 16;
		m->body.device.max_ord = 8;
		break;
	case SHM_PD_CREATE:
		m->body.handle = 40 + f->others++;
		break;
	case SHM_MR_CREATE:
		m->body.mr.mr = 500 + f->others++;
		m->body.mr.stag = 0x1234500u + m->body.mr.mr;
		break;
	case SHM_MW_CREATE:
		m->body.mw.mw = 700 + f->others++;
		m->body.mw.stag = 0xabcd00fe;
		break;
	case SHM_CQ_CREATE:
		make_cq(f, &m->body.cq);
		break;
	case SHM_CQ_RESIZE:
		resize_cq(f, &m->body.cq);
		break;
	case SHM_QP_CREATE:
		make_qp(f, &m->body.qp);
		break;
	case SHM_SRQ_CREATE:
		make_srq(f, &m->body.srq);
		break;
	case SHM_SRQ_RESIZE:
		resize_srq(f, &m->body.srq);
		break;
	case SHM_QP_QUERY:
		m->body.qp.qpn = m->body.handle;
		m->body.qp.state = RD_QP_RTS;
		break;
	case SHM_LISTEN:
		m->body.cm.listener = 600 + f->others++;
		if (m->body.cm.lport == 0)
			m->body.cm.lport = 49152;
		break;
	default:
		break;
	}
}

static void
emit(struct fake *f, const struct shm_msg *m)
{
	uint8_t *e;

	cr_assert_gt(shm_prod_room(&f->evt), 0);
	e = shm_prod_entry(&f->evt);
	memcpy(e + sizeof(uint32_t), (const uint8_t *)m + sizeof(uint32_t),
		sizeof(*m) - sizeof(uint32_t));
	shm_prod_push(&f->evt);
}

static void
command(struct fake *f, struct shm_msg *m)
{
	cr_assert(m->op > 0 && m->op < SHM_OP_COUNT, "op %u", m->op);
	cr_assert_neq(m->tag, 0, "tag 0 is for events");
	f->last = *m;
	f->seen[m->op]++;
	if (f->refuse_op == m->op && f->seen[m->op] > f->refuse_after) {
		m->status = f->refuse_status;
		memset(&m->body, 'x', sizeof(m->body));
		strcpy(m->body.text, f->refuse_text);
	} else {
		answer(f, m);
	}
	emit(f, m);
}

static void
commands(struct fake *f)
{
	struct shm_msg batch[8];
	unsigned n = 0;
	const struct shm_msg *m;

	while (n < 8 && (m = shm_take_peek(&f->cmd)) != NULL) {
		batch[n++] = *m;
		shm_take_pop(&f->cmd);
	}
	if (n == 0)
		return;
	shm_take_publish(&f->cmd);
	if (n > f->most)
		f->most = n;
	for (unsigned i = 0; i < n; i++)
		command(f, &batch[f->backwards ? n - 1 - i : i]);
	if (__atomic_load_n(&f->h->client_sleeps, __ATOMIC_ACQUIRE) != SHM_SLEEPS_EVENTS)
		fake_wake(f);
}

void
fake_poll(struct fake *f)
{
	for (uint32_t i = 0; i < FAKE_STAGES; i++) {
		const struct shm_doorbell *d;

		while (!f->mute && (d = shm_take_peek(&f->doorbell[i])) != NULL) {
			uint32_t what = d->what;

			shm_take_pop(&f->doorbell[i]);
			shm_take_publish(&f->doorbell[i]);
			if (what == SHM_RING_MAILBOX) {
				cr_assert_eq(i, 0, "commands ring at stage 0");
				commands(f);
				continue;
			}
			cr_assert(what >= 7 && what < 7 + f->nqp, "doorbell of %u", what);
			cr_assert_eq(i, (what - 7) % FAKE_STAGES, "a QP rings at its stage");
			shm_pend_clear(&f->qp[what - 7].shared->pending);
			f->qp[what - 7].rung++;
		}
	}
}

void
fake_idle(void *f)
{
	fake_poll(f);
}

void
fake_event(struct fake *f, const struct shm_msg *m)
{
	emit(f, m);
	fake_wake(f);
}

bool
fake_complete(struct fake *f, uint32_t cq, uint32_t sub, uint64_t wr_id, uint8_t flags)
{
	struct shm_prod *p = &f->cq[cq].sub[sub];
	struct shm_cqe *e = shm_prod_entry(p);

	if (shm_prod_room(p) == 0)
		return false;
	e->wr_id = wr_id;
	e->qpn = 0xabc000;
	e->opcode = RD_WRITE;
	e->status = RD_SUCCESS;
	e->flags = flags;
	e->byte_len = 64;
	e->imm = wr_id + 1;
	shm_prod_push(p);
	if (shm_arm_fire(&f->cq[cq].shared->arm, (flags & RD_WC_SOLICITED) != 0))
		fake_cq_event(f, sub, 100 + cq);
	return true;
}

void
fake_cq_event(struct fake *f, uint32_t stage, uint32_t cq)
{
	struct shm_prod *p = &f->event[stage];

	cr_assert_gt(shm_prod_room(p), 0);
	*(struct shm_cq_event *)shm_prod_entry(p) = (struct shm_cq_event){.cq = cq};
	shm_prod_push(p);
	fake_wake(f);
}

void
fake_wake(struct fake *f)
{
	const uint64_t one = 1;

	shm_fence();
	if (__atomic_load_n(&f->h->client_sleeps, __ATOMIC_ACQUIRE) == 0 || f->wake < 0)
		return;
	f->wakes++;
	cr_assert_eq(write(f->wake, &one, sizeof(one)), (ssize_t)sizeof(one));
}

bool
fake_sq(struct fake *f, uint32_t qp, struct shm_sqe *e)
{
	struct shm_take *t = &f->qp[qp].sq;
	const void *at = shm_take_peek(t);

	if (at == NULL)
		return false;
	memset(e, 0, sizeof(*e));
	memcpy(e, at, SK_MIN(t->stride, sizeof(*e)));
	shm_take_pop(t);
	shm_take_publish(t);
	return true;
}

struct saker *
fake_flat(struct fake *f, uint64_t size, uint64_t mem_len)
{
	struct saker *s = NULL;
	void *base = aligned_alloc(4096, size);

	cr_assert_not_null(base);
	memset(base, 0, size);
	fake_init(f, base, size, mem_len);
	cr_assert_eq(saker_open_flat(base, size, fake_idle, f, &s), 0, "%s", saker_error());
	return s;
}
