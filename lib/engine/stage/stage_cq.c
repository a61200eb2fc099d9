/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions and their events. The stage writes a completion into its sub-ring of the CQ
 * immediately. At the end of the turn it checks once per CQ whether the client has armed it, and
 * sends one event for all completions of the turn.
 */
#include <unistd.h>

#include "stage_priv.h"

static void
touch(struct eng_stage *s, struct rd_cq *cq)
{
	if (cq->sub[s->index].touched)
		return;
	cq->sub[s->index].touched = true;
	cq->sub[s->index].next_touched = s->touched;
	s->touched = cq;
}

static void
stage_cq_fill(struct shm_cqe *e, const struct rd_wc *wc)
{
	e->opcode = wc->opcode;
	e->status = wc->status;
	e->flags = wc->flags;
	e->wr_id = wc->wr_id;
	e->qpn = wc->qpn;
	e->byte_len = wc->byte_len;
	e->imm = wc->imm;
	e->inv_stag = wc->inv_stag;
	e->vendor_err = wc->vendor_err;
	e->src_qpn = wc->src_qp;
}

bool
eng_cq_put(struct eng_stage *s, struct rd_cq *cq, const struct rd_wc *wc)
{
	struct shm_prod *ring = &cq->sub[s->index].ring;

	touch(s, cq);
	if (shm_prod_room(ring) == 0) {
		sk_count(s->counters, ENG_CQ_OVERFLOW);
		cq->sub[s->index].overflow = true;
		return false;
	}
	stage_cq_fill(shm_prod_entry(ring), wc);
	shm_prod_push(ring);
	if ((wc->flags & RD_WC_SOLICITED) || wc->status != RD_SUCCESS)
		cq->sub[s->index].solicited = true;
	return true;
}

void
eng_complete(void *ctx, struct rd_qp *rd, bool recv, const struct rd_wc *wc)
{
	struct eng_qp *qp = eng_qp_of(rd);

	if (qp->deleting != NULL)
		return; /* the client has destroyed the QP */
	if (!recv)
		eng_sq_show(qp);
	if (!eng_cq_put(ctx, recv ? rd->recv_cq : rd->send_cq, wc))
		eng_qp_pend(ctx, qp, EQP_P_DOOM);
}

/* Wakes the client if it sleeps. `wake_fd` is the engine's own descriptor, which never blocks. */
static void
wake_client(const struct eng_client *c)
{
	const uint64_t one = 1;

	if (c->wake_fd < 0)
		return;
	shm_fence();
	/* EAGAIN: the descriptor is full, so a wake-up is in it already. */
	if (__atomic_load_n(&c->header->client_sleeps, __ATOMIC_RELAXED) != 0 &&
		write(c->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* Sends a completion event. Returns false while the event ring of the client is full. */
static bool
send_event(struct eng_stage *s, struct rd_cq *cq)
{
	struct shm_prod *ring = &cq->client->stage[s->index].event;
	struct shm_cq_event *e;

	if (shm_prod_room(ring) == 0)
		return false;
	e = shm_prod_entry(ring);
	e->cq = cq->handle;
	shm_prod_push(ring);
	wake_client(cq->client);
	return true;
}

static bool
tell_overflow(struct eng_stage *s, struct rd_cq *cq)
{
	struct eng_ctl *m = eng_notice_get(s, ENG_EC_CQ_OVERFLOW, cq->client);

	if (m == NULL)
		return false;
	m->object.object = cq;
	eng_notice_send(s, m);
	cq->sub[s->index].told = true;
	return true;
}

/* Sends the events of a CQ that are due. Returns false when one of them could not be sent. */
static bool
stage_cq_settle(struct eng_stage *s, struct rd_cq *cq)
{
	bool done = true;

	if (cq->client->dead)
		return true;
	if (cq->sub[s->index].overflow && !cq->sub[s->index].told)
		done = tell_overflow(s, cq);
	if (cq->sub[s->index].owed || shm_arm_fire(&cq->shared->arm, cq->sub[s->index].solicited)) {
		cq->sub[s->index].owed = !send_event(s, cq);
		done &= !cq->sub[s->index].owed;
	}
	cq->sub[s->index].solicited = false;
	return done;
}

void
eng_cqs_touched(struct eng_stage *s)
{
	struct rd_cq *cq = s->touched, *next;

	s->touched = NULL;
	for (; cq != NULL; cq = next) {
		next = cq->sub[s->index].next_touched;
		cq->sub[s->index].touched = false;
		if (!stage_cq_settle(s, cq))
			touch(s, cq);
	}
}

void
eng_cq_forget(struct eng_stage *s, struct rd_cq *cq)
{
	struct rd_cq **link = &s->touched;

	for (; *link != NULL; link = &(*link)->sub[s->index].next_touched) {
		if (*link == cq) {
			*link = cq->sub[s->index].next_touched;
			cq->sub[s->index].touched = false;
			return;
		}
	}
}
