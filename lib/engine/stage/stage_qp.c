/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QPs of a stage. QPs with work are served round robin; a QP without work costs nothing. A
 * message that a QP cannot send because a ring is full stays pending, and the stage tries again at
 * the end of each turn.
 */
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "qp_ops_priv.h"

void
eng_qp_activate(struct eng_stage *s, struct eng_qp *qp)
{
	if (qp->active)
		return;
	qp->active = true;
	TAILQ_INSERT_TAIL(&s->active, qp, next);
}

void
eng_qp_pend(struct eng_stage *s, struct eng_qp *qp, uint16_t what)
{
	qp->pending |= what;
	if (qp->queued)
		return;
	qp->queued = true;
	TAILQ_INSERT_TAIL(&s->pending, qp, pend);
}

/* Serves one QP. Returns whether it has more work for the next turn. */
static bool
stage_qp_run(struct eng_stage *s, struct eng_qp *qp)
{
	const struct eng_qp_ops *ops = qp->ops;
	bool more = false;

	if (qp->rd.state == RD_QP_ERR)
		ops->flush(qp);
	else if (qp->modified && (qp->chan == NULL || qp->lost))
		eng_modified_posted(s, qp);
	if (qp->connected || (qp->type == SHM_UD && qp->host == NULL))
		more = ops->run(s, qp);
	eng_sq_show(qp);
	return more;
}

/* Returns whether the client of the QP is dead. A host connection has no client. */
static bool
is_dead(const struct eng_qp *qp)
{
	return qp->client != NULL && qp->client->dead;
}

bool
eng_qps_run(struct eng_stage *s)
{
	struct eng_qp_list turn = TAILQ_HEAD_INITIALIZER(turn);
	unsigned n = 0;

	TAILQ_CONCAT(&turn, &s->active, next);
	for (; n < ENG_QP_TURN && !TAILQ_EMPTY(&turn); n++) {
		struct eng_qp *qp = TAILQ_FIRST(&turn);

		TAILQ_REMOVE(&turn, qp, next);
		qp->active = false;
		if (!is_dead(qp) && stage_qp_run(s, qp))
			eng_qp_activate(s, qp);
	}
	/* QPs that were not served are the first of the next turn. */
	TAILQ_CONCAT(&turn, &s->active, next);
	TAILQ_CONCAT(&s->active, &turn, next);
	return n > 0;
}

/* ---- The functions that both transports call (rd_ops) ---- */

bool
eng_qp_send(struct eng_stage *s, const struct eng_qp *qp, enum eng_to_transport type,
	const void *ptr, uint32_t arg)
{
	struct eng_dmsg m = {.u = (uintptr_t)ptr, .arg = arg, .id_type = ENG_DMSG(type, qp->conn)};

	if (rte_ring_sp_enqueue_elem(s->to_transport[qp->transport], &m, sizeof(m)) == 0)
		return true;
	sk_count(s->counters, ENG_RING_FULL);
	return false;
}

static void
op_qp_error(void *ctx, struct rd_qp *rd, int code)
{
	struct eng_qp *qp = eng_qp_of(rd);
	int closed = qp->ops->lost;

	/* ENG_EC_DISCONNECTED reports the end of a connection. For a QP modified by the program,
	 * the end is an error of the QP. A QP that is being deleted reports nothing. */
	if (code == 0 || (code == closed && !qp->modified) || qp->deleting != NULL)
		return;
	qp->code = code;
	eng_qp_pend(ctx, qp, EQP_P_FATAL);
}

static bool
op_invalidate(void *ctx, struct rd_mr *mr)
{
	return rd_mr_invalidate(mr);
}

static uint64_t
op_quiesce(void *ctx)
{
	const struct eng_stage *s = ctx;

	return s->e->cfg.nstages > 1 ? rte_rcu_qsbr_start(s->e->qsbr) : 0;
}

static bool
op_quiesced(void *ctx, uint64_t token)
{
	const struct eng_stage *s = ctx;

	return rte_rcu_qsbr_check(s->e->qsbr, token, false) == 1;
}

const struct rd_ops eng_stage_rd_ops = {
	.sq_next = eng_sq_next,
	.sq_pending = eng_sq_pending,
	.rq_next = eng_rq_next,
	.complete = eng_complete,
	.qp_error = op_qp_error,
	.invalidate = op_invalidate,
	.quiesce = op_quiesce,
	.quiesced = op_quiesced,
	.fetch = eng_pages_fetch,
};

/* ---- Pending messages ---- */

static bool
send_pending_transport(struct eng_stage *s, struct eng_qp *qp)
{
	if (!qp->connected)
		qp->pending &= ~(EQP_P_CONSUMED | EQP_P_CLOSE | EQP_P_ABORT);
	if ((qp->pending & EQP_P_CONSUMED) &&
		eng_qp_send(s, qp, ENG_T_CONSUMED, NULL, qp->consumed)) {
		qp->consumed = 0;
		qp->pending &= ~EQP_P_CONSUMED;
	}
	if ((qp->pending & EQP_P_CLOSE) && eng_qp_send(s, qp, ENG_T_CLOSE, NULL, 0))
		qp->pending &= ~EQP_P_CLOSE;
	if ((qp->pending & EQP_P_ABORT) && eng_qp_send(s, qp, ENG_T_ABORT, NULL, 0))
		qp->pending &= ~EQP_P_ABORT;
	if ((qp->pending & EQP_P_RELEASE) && eng_qp_send(s, qp, ENG_T_RELEASE, NULL, 0))
		qp->pending &= ~EQP_P_RELEASE;
	return !(qp->pending & (EQP_P_CONSUMED | EQP_P_CLOSE | EQP_P_ABORT | EQP_P_RELEASE));
}

static void
send_pending_notices(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_ctl *m;

	if ((qp->pending & EQP_P_FATAL) &&
		(m = eng_notice_get(s, ENG_EC_QP_FATAL, qp->client)) != NULL) {
		m->qp = qp;
		m->event.code = qp->code;
		eng_notice_send(s, m);
		qp->pending &= ~EQP_P_FATAL;
	}
	if (qp->pending & EQP_P_FATAL)
		return;
	if ((qp->pending & EQP_P_WAITS) &&
		(m = eng_notice_get(s, ENG_EC_QP_WAITS, qp->client)) != NULL) {
		m->qp = qp;
		eng_notice_send(s, m);
		qp->pending &= ~EQP_P_WAITS;
	}
	if ((qp->pending & EQP_P_ENDED) &&
		(m = eng_notice_get(s, ENG_EC_DISCONNECTED, qp->client)) != NULL) {
		m->qp = qp;
		m->status = qp->ended;
		m->event.code = !qp->ops->opened(qp);
		eng_notice_send(s, m);
		qp->pending &= ~EQP_P_ENDED;
	}
}

bool
eng_qps_pending(struct eng_stage *s)
{
	struct eng_qp *qp, *next;

	for (qp = TAILQ_FIRST(&s->pending); qp != NULL; qp = next) {
		next = TAILQ_NEXT(qp, pend);
		if (qp->pending & EQP_P_DOOM) {
			qp->pending &= ~EQP_P_DOOM;
			qp->ops->disconnect(s, qp, ENG_CLOSE_ABORT);
		}
		send_pending_transport(s, qp);
		send_pending_notices(s, qp);
		if (qp->pending == EQP_P_GONE) {
			if (qp->deleting->type == ENG_CE_QP_RESET)
				eng_qp_renew(s, qp);
			else
				eng_qp_forget(s, qp);
		} else if (qp->pending == 0) {
			TAILQ_REMOVE(&s->pending, qp, pend);
			qp->queued = false;
		}
	}
	return true;
}

/* ---- Messages of a transport stage ---- */

static void
stage_qp_closed(struct eng_stage *s, struct eng_qp *qp, int error)
{
	uint16_t said = EQP_P_RELEASE | EQP_P_ENDED;

	qp->ops->closed(s, qp, error);
	qp->connected = false;
	qp->consumed = 0;
	qp->ended = error;
	if (qp->deleting != NULL)
		said |= EQP_P_GONE;
	eng_qp_pend(s, qp, said);
}

void
eng_dmsg_drop(const struct eng_dmsg *m)
{
	for (unsigned k = 0; k < ENG_KINDS; k++)
		eng_qp_ops[k]->drop(m);
}

void
eng_qp_message(struct eng_stage *s, const struct eng_dmsg *m)
{
	uint32_t index = m->id_type >> 4, type = m->id_type & 15;
	struct eng_qp *qp = index < s->nqps ? s->qps[index] : NULL;

	if (qp == NULL || !qp->connected) {
		eng_dmsg_drop(m);
		sk_count(s->counters, ENG_STALE);
	} else if (type == ENG_E_CLOSED) {
		stage_qp_closed(s, qp, -(int)m->arg);
	} else {
		qp->ops->message(s, qp, m);
	}
}

void
eng_qp_forget(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_client_stage *cs = qp->client != NULL ? &qp->client->stage[s->index] : NULL;
	struct eng_ctl *m = qp->deleting;
	struct eng_work work;

	qp->ops->info(qp, &work);
	eng_work_add(&s->done, &work);
	if (qp->active)
		TAILQ_REMOVE(&s->active, qp, next);
	if (qp->queued)
		TAILQ_REMOVE(&s->pending, qp, pend);
	if (qp->type == SHM_UD && qp->host == NULL)
		eng_datagram_del(s, qp);
	qp->ops->destroy(s, qp);
	qp->deleting = NULL;
	qp->active = qp->queued = false;
	if (cs != NULL && qp->handle < cs->nqps && cs->qps[qp->handle] == qp)
		cs->qps[qp->handle] = NULL;
	s->qps[qp->index] = NULL;
	s->free_index[s->nfree++] = qp->index;
	eng_stage_answer(s, m, 0);
}
