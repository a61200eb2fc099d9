/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QPs of a stage and their messages. A message that a QP cannot send because a ring is full or
 * no notice is free stays pending. Such a QP waits in a list, and costs nothing until the ring has
 * room or a notice is free.
 */
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "qp_ops_priv.h"

/* Removes the QP from the list that eng_qp.pend is in. */
static void
stage_qp_unqueue(struct eng_stage *s, struct eng_qp *qp)
{
	enum eng_qp_queue was = qp->queued;

	qp->queued = EQP_Q_NONE;
	if (was == EQP_Q_TURN)
		TAILQ_REMOVE(&s->pending, qp, pend);
	if (was == EQP_Q_RING)
		TAILQ_REMOVE(&s->ring_full[qp->transport], qp, pend);
	if (was == EQP_Q_NOTICE) {
		TAILQ_REMOVE(&qp->payer->notice_qps, qp, pend);
		eng_notice_client_idle(s, qp->payer);
	}
}

void
eng_qp_pend(struct eng_stage *s, struct eng_qp *qp, uint16_t what)
{
	qp->pending |= what;
	if (qp->queued == EQP_Q_TURN || qp->queued == EQP_Q_RING)
		return;
	stage_qp_unqueue(s, qp);
	qp->queued = EQP_Q_TURN;
	TAILQ_INSERT_TAIL(&s->pending, qp, pend);
}

/* ---- The functions that both transports call (rd_ops) ---- */

bool
eng_qp_send(struct eng_stage *s, const struct eng_qp *qp, enum eng_to_transport type,
	const void *ptr, uint32_t arg)
{
	struct eng_dmsg m = {.u = (uintptr_t)ptr, .arg = arg, .id_type = ENG_DMSG(type, qp->conn)};

	if (rte_ring_sp_enqueue_elem(s->to_transport[qp->transport], &m, sizeof(m)) == 0)
		return true;
	s->spent.ring_full = true;
	sk_count(s->counters, ENG_RING_FULL);
	return false;
}

static void
op_qp_error(void *ctx, struct rd_qp *rd, int code)
{
	struct eng_qp *qp = eng_qp_of(rd);
	int closed = qp->ops->lost;

	eng_qp_activate(ctx, qp); /* its turns flush the queues, and its client pays */
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
	.sq_writes = eng_sq_writes,
	.sq_took = eng_sq_took,
	.rq_next = eng_rq_next,
	.complete = eng_complete,
	.qp_error = op_qp_error,
	.flush_later = true,
	.invalidate = op_invalidate,
	.quiesce = op_quiesce,
	.quiesced = op_quiesced,
	.fetch = eng_pages_fetch,
};

/* ---- Pending messages ---- */

/* Sends the end of a connection that the QP does not wait for. Returns false when the ring is full.
 */
static bool
send_abort(struct eng_stage *s, struct eng_qp *qp)
{
	bool leave = qp->ops->may_leave != NULL && qp->ops->may_leave(qp);

	if (!eng_qp_send(s, qp, leave ? ENG_T_LEAVE : ENG_T_ABORT, NULL, qp->consumed))
		return false;
	qp->consumed = 0;
	return true;
}

static bool
send_pending_transport(struct eng_stage *s, struct eng_qp *qp)
{
	if (!qp->connected)
		qp->pending &= ~(EQP_P_CONSUMED | EQP_P_CLOSE | EQP_P_ABORT);
	if ((qp->pending & EQP_P_CONSUMED) &&
		(qp->consumed == 0 || eng_qp_send(s, qp, ENG_T_CONSUMED,
					      (void *)(uintptr_t)qp->whole, qp->consumed))) {
		qp->consumed = 0;
		qp->pending &= ~EQP_P_CONSUMED;
	}
	if ((qp->pending & EQP_P_CLOSE) && eng_qp_send(s, qp, ENG_T_CLOSE, NULL, 0))
		qp->pending &= ~EQP_P_CLOSE;
	if ((qp->pending & EQP_P_ABORT) && send_abort(s, qp))
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
	if ((qp->pending & EQP_P_ENDED) &&
		(m = eng_notice_get(s, ENG_EC_DISCONNECTED, qp->client)) != NULL) {
		m->qp = qp;
		m->status = qp->ended;
		m->event.code = !qp->ops->opened(qp);
		eng_notice_send(s, m);
		qp->pending &= ~EQP_P_ENDED;
	}
	/* The control stage ignores this notice while it has a connection for the QP. */
	if ((qp->pending & (EQP_P_WAITS | EQP_P_ENDED)) == EQP_P_WAITS &&
		(m = eng_notice_get(s, ENG_EC_QP_WAITS, qp->client)) != NULL) {
		m->qp = qp;
		eng_notice_send(s, m);
		qp->pending &= ~EQP_P_WAITS;
	}
}

/* Frees the stage's part of a QP of which nothing is in flight, and answers ENG_CE_QP_DEL. From
 * then on the control stage may free the QP. */
static void
eng_qp_forget(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_client_stage *cs = qp->client != NULL ? &qp->client->stage[s->index] : NULL;
	struct eng_ctl *m = qp->deleting;

	eng_qp_sum(s, qp);
	eng_qp_deactivate(s, qp);
	stage_qp_unqueue(s, qp);
	if (qp->type == SHM_UD && qp->host == NULL)
		eng_datagram_del(s, qp);
	qp->ops->destroy(s, qp);
	qp->deleting = NULL;
	if (cs != NULL && qp->handle < cs->nqps && cs->qps[qp->handle] == qp)
		cs->qps[qp->handle] = NULL;
	s->qps[qp->index] = NULL;
	s->free_index[s->nfree++] = qp->index;
	eng_stage_answer(s, m, 0);
}

/* Completes the end of a QP, whose messages are all sent. */
static void
stage_qp_gone(struct eng_stage *s, struct eng_qp *qp)
{
	if (qp->pending != EQP_P_GONE)
		return;
	if (qp->deleting->type == ENG_CE_QP_RESET)
		eng_qp_renew(s, qp);
	else
		eng_qp_forget(s, qp);
}

void
eng_qp_notices(struct eng_stage *s, struct eng_qp *qp)
{
	send_pending_notices(s, qp);
	if (qp->pending & EQP_P_NOTICES)
		eng_notice_qp(s, qp);
	else
		stage_qp_gone(s, qp);
}

/* Sends the pending messages of a QP in s->pending or in a list of s->ring_full. The QP leaves that
 * list. If a ring is full, it waits at the end of s->ring_full. */
static void
stage_qp_settle(struct eng_stage *s, struct eng_qp *qp)
{
	if (qp->pending & EQP_P_DOOM) {
		qp->pending &= ~EQP_P_DOOM;
		eng_round_begin(s, qp);
		qp->ops->disconnect(s, qp, ENG_CLOSE_ABORT);
	}
	stage_qp_unqueue(s, qp);
	if (!send_pending_transport(s, qp)) {
		qp->queued = EQP_Q_RING;
		TAILQ_INSERT_TAIL(&s->ring_full[qp->transport], qp, pend);
	} else if (qp->pending & EQP_P_NOTICES) {
		eng_notice_qp(s, qp);
	} else {
		stage_qp_gone(s, qp);
	}
}

void
eng_qps_pending(struct eng_stage *s)
{
	struct eng_qp *qp;

	for (unsigned i = 0; i < s->nlinked; i++) {
		unsigned t = s->linked[i];

		while ((qp = TAILQ_FIRST(&s->ring_full[t])) != NULL &&
			!rte_ring_full(s->to_transport[t]))
			stage_qp_settle(s, qp);
	}
	while ((qp = TAILQ_FIRST(&s->pending)) != NULL)
		stage_qp_settle(s, qp);
}

/* ---- Messages of a transport stage ---- */

static void
stage_qp_closed(struct eng_stage *s, struct eng_qp *qp, int error, uint16_t said)
{
	qp->ops->closed(s, qp, error);
	qp->connected = false;
	qp->consumed = 0;
	qp->ended = error;
	if (qp->deleting != NULL)
		said |= EQP_P_GONE;
	eng_qp_pend(s, qp, said);
}

void
eng_qp_unbound(struct eng_stage *s, struct eng_qp *qp)
{
	if (qp->connected)
		stage_qp_closed(s, qp, -ENOTCONN, EQP_P_ENDED);
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
		stage_qp_closed(s, qp, -(int)m->arg, EQP_P_RELEASE | EQP_P_ENDED);
	} else {
		eng_round_begin(s, qp);
		qp->ops->message(s, qp, m);
		s->arrived +=
			SK_MAX(s->spent.bytes, (uint64_t)s->spent.requests * ENG_ANSWER_LEAST);
		eng_round_charge(s, qp);
	}
}
