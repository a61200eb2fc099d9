/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues. The stage takes receives from them, and notifies the client once when
 * fewer receives are left than the limit. It does not count the receives, because the client posts
 * them without a doorbell: the queue is below its limit when the entry `limit` - 1 places further
 * is not valid.
 */
#include <errno.h>

#include "../common/places.h"
#include "stage_priv.h"

static void
check_limit(struct eng_stage *s, struct rd_srq *srq)
{
	struct shm_take at = srq->rq;

	if (srq->limit == 0)
		return;
	at.next += srq->limit - 1;
	if (shm_take_peek(&at) != NULL)
		return;
	srq->limit = 0;
	eng_notice_srq(s, srq);
}

void
eng_srq_limit(struct eng_stage *s, struct rd_srq *srq, uint32_t limit)
{
	srq->limit = limit;
	check_limit(s, srq);
}

void
eng_srq_move(struct rd_srq *srq, const struct shm_ring_at *to)
{
	uint32_t next = srq->rq.next;

	shm_take_init(&srq->rq, srq->client->home, to);
	srq->rq.next = next;
	shm_take_publish(&srq->rq);
}

bool
eng_srq_next(struct eng_stage *s, struct rd_srq *srq, struct rd_wr *wr)
{
	if (!eng_receive_next(&srq->rq, srq->max_sge, wr))
		return false;
	check_limit(s, srq);
	return true;
}

/* Returns the place of an XRC SRQ in the table. */
static struct rd_srq **
srq_slot(const struct eng_stage *s, uint32_t srqn)
{
	return &s->xrc_srqs[eng_place_srq_slot(s->e->places, srqn)];
}

void
eng_srq_add(struct eng_stage *s, struct rd_srq *srq)
{
	if (srq->xrcd != NULL && s->xrc_srqs != NULL)
		*srq_slot(s, srq->number) = srq;
}

void
eng_srq_del(struct eng_stage *s, struct rd_srq *srq)
{
	struct eng_client_stage *cs = &srq->client->stage[s->index];

	if (srq->queued)
		TAILQ_REMOVE(&cs->notice_srqs, srq, pend);
	srq->queued = false;
	eng_notice_client_idle(s, cs);
	if (srq->xrcd != NULL && s->xrc_srqs != NULL)
		*srq_slot(s, srq->number) = NULL;
}

/* ---- XRC ---- */

/* Returns the SRQ with a number, or NULL. It must belong to the XRC domain of the receive QP. */
static struct rd_srq *
stage_srq_find(const struct eng_stage *s, const struct rof_qp *q, uint32_t srqn)
{
	const struct eng_qp *qp = eng_qp_of(rof_qp_rd(q));
	struct rd_srq *srq = *srq_slot(s, srqn);

	if (srq == NULL || srq->number != srqn || qp->type != SHM_XRC_RECV ||
		srq->xrcd != qp->xrcd || srq->client->dead)
		return NULL;
	return srq;
}

int
eng_xrc_next(void *ctx, struct rof_qp *q, uint32_t srqn, struct rd_wr *wr)
{
	struct rd_srq *srq = stage_srq_find(ctx, q, srqn);

	return srq == NULL ? -ENOENT : eng_srq_next(ctx, srq, wr);
}

const struct rd_pd *
eng_xrc_pd(void *ctx, struct rof_qp *q, uint32_t srqn)
{
	const struct rd_srq *srq = stage_srq_find(ctx, q, srqn);

	return srq == NULL ? NULL : srq->pd;
}

/* Drops the completion of an SRQ that was destroyed. When the CQ is full, the completion is lost
 * and the client of the SRQ receives an error event; the QP may belong to another client, and
 * continues. */
void
eng_xrc_complete(void *ctx, struct rof_qp *q, uint32_t srqn, const struct rd_wc *wc)
{
	struct rd_srq *srq = stage_srq_find(ctx, q, srqn);

	if (srq != NULL)
		eng_cq_put(ctx, srq->cq, wc);
}
