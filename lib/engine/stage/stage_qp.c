/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs on their stage: those with something to send take turns; those without cost nothing. What a
 * QP has to say and cannot, because a ring is full, it owes; the stage tries again at the end of
 * each turn.
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
eng_qp_owe(struct eng_stage *s, struct eng_qp *qp, uint16_t what)
{
	qp->owes |= what;
	if (qp->owing)
		return;
	qp->owing = true;
	TAILQ_INSERT_TAIL(&s->owing, qp, owe);
}

/* Serves one QP; false: it has nothing more to do now. */
static bool
stage_qp_run(struct eng_stage *s, struct eng_qp *qp)
{
	const struct eng_half *half = eng_half_of(qp);
	bool more = false;

	if (qp->rd.state == RD_QP_ERR)
		half->flush(qp);
	else if (qp->by_hand && (qp->chan == NULL || qp->lost))
		eng_hand_rung(s, qp);
	if (qp->connected || (qp->type == SHM_UD && qp->host == NULL))
		more = half->run(s, qp);
	eng_sq_show(qp);
	return more;
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
		if (!qp->client->dead && stage_qp_run(s, qp))
			eng_qp_activate(s, qp);
	}
	/* Those that had no turn are the first in the next one. */
	TAILQ_CONCAT(&turn, &s->active, next);
	TAILQ_CONCAT(&s->active, &turn, next);
	return n > 0;
}

/* ---- What the QP's transport half asks for ---- */

bool
eng_qp_tell(struct eng_stage *s, const struct eng_qp *qp, enum eng_to_transport type,
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
	int closed = qp->falcon ? (int)ROF_CONNECTION_LOST : (int)IW_LLP_CLOSED;

	/* The end of the stream is told as such, but not of a QP that was moved by hand; one that
	 * is being deleted has nobody to tell. */
	if (code == 0 || (code == closed && !qp->by_hand) || qp->deleting != NULL)
		return;
	qp->code = code;
	eng_qp_owe(ctx, qp, EQP_O_FATAL);
}

static bool
op_invalidate(void *ctx, struct rd_mr *mr)
{
	(void)ctx;
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
};

/* ---- What is owed ---- */

static bool
pay_transport(struct eng_stage *s, struct eng_qp *qp)
{
	if (!qp->connected)
		qp->owes &= ~(EQP_O_CONSUMED | EQP_O_CLOSE | EQP_O_ABORT);
	if ((qp->owes & EQP_O_CONSUMED) && eng_qp_tell(s, qp, ENG_T_CONSUMED, NULL, qp->consumed)) {
		qp->consumed = 0;
		qp->owes &= ~EQP_O_CONSUMED;
	}
	if ((qp->owes & EQP_O_CLOSE) && eng_qp_tell(s, qp, ENG_T_CLOSE, NULL, 0))
		qp->owes &= ~EQP_O_CLOSE;
	if ((qp->owes & EQP_O_ABORT) && eng_qp_tell(s, qp, ENG_T_ABORT, NULL, 0))
		qp->owes &= ~EQP_O_ABORT;
	if ((qp->owes & EQP_O_RELEASE) && eng_qp_tell(s, qp, ENG_T_RELEASE, NULL, 0))
		qp->owes &= ~EQP_O_RELEASE;
	return !(qp->owes & (EQP_O_CONSUMED | EQP_O_CLOSE | EQP_O_ABORT | EQP_O_RELEASE));
}

static void
pay_control(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_ctl *m;

	if ((qp->owes & EQP_O_FATAL) && (m = eng_unasked(s, ENG_EC_QP_FATAL, qp->client)) != NULL) {
		m->qp = qp;
		m->code = qp->code;
		eng_unasked_send(s, m);
		qp->owes &= ~EQP_O_FATAL;
	}
	if (qp->owes & EQP_O_FATAL)
		return;
	if ((qp->owes & EQP_O_WAITS) && (m = eng_unasked(s, ENG_EC_QP_WAITS, qp->client)) != NULL) {
		m->qp = qp;
		eng_unasked_send(s, m);
		qp->owes &= ~EQP_O_WAITS;
	}
	if ((qp->owes & EQP_O_ENDED) &&
		(m = eng_unasked(s, ENG_EC_DISCONNECTED, qp->client)) != NULL) {
		m->qp = qp;
		m->status = qp->ended;
		m->code = qp->falcon && qp->chan == NULL;
		eng_unasked_send(s, m);
		qp->owes &= ~EQP_O_ENDED;
	}
}

bool
eng_qps_owing(struct eng_stage *s)
{
	struct eng_qp *qp, *next;

	for (qp = TAILQ_FIRST(&s->owing); qp != NULL; qp = next) {
		next = TAILQ_NEXT(qp, owe);
		if (qp->owes & EQP_O_DOOM) {
			qp->owes &= ~EQP_O_DOOM;
			eng_half_of(qp)->disconnect(s, qp, IW_CLOSE_ABORT);
		}
		pay_transport(s, qp);
		pay_control(s, qp);
		if (qp->owes == EQP_O_GONE) {
			if (qp->deleting->type == ENG_CE_QP_RESET)
				eng_qp_renew(s, qp);
			else
				eng_qp_forget(s, qp);
		} else if (qp->owes == 0) {
			TAILQ_REMOVE(&s->owing, qp, owe);
			qp->owing = false;
		}
	}
	return true;
}

/* ---- What the transport stage says ---- */

static void
stage_qp_closed(struct eng_stage *s, struct eng_qp *qp, int error)
{
	uint16_t said = EQP_O_RELEASE | EQP_O_ENDED;

	eng_half_of(qp)->closed(s, qp, error);
	qp->connected = false;
	qp->consumed = 0;
	qp->ended = error;
	if (qp->deleting != NULL)
		said |= EQP_O_GONE;
	eng_qp_owe(s, qp, said);
}

void
eng_dmsg_drop(const struct eng_dmsg *m)
{
	eng_iwarp.drop(m);
	eng_falcon.drop(m);
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
		eng_half_of(qp)->message(s, qp, m);
	}
}

/* Nothing of it is under way any more: the answer goes out, and the control stage may free it. */
void
eng_qp_forget(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_client_stage *cs = &qp->client->stage[s->index];
	struct eng_ctl *m = qp->deleting;
	struct eng_work work;

	eng_half_of(qp)->info(qp, &work);
	eng_work_add(&s->done, &work);
	if (qp->active)
		TAILQ_REMOVE(&s->active, qp, next);
	if (qp->owing)
		TAILQ_REMOVE(&s->owing, qp, owe);
	if (qp->type == SHM_UD && qp->host == NULL)
		eng_datagram_del(s, qp);
	eng_half_of(qp)->destroy(s, qp);
	qp->deleting = NULL;
	qp->active = qp->owing = false;
	if (qp->handle < cs->nqps && cs->qps[qp->handle] == qp)
		cs->qps[qp->handle] = NULL;
	s->qps[qp->index] = NULL;
	s->free_index[s->nfree++] = qp->index;
	eng_stage_answer(s, m, 0);
}
