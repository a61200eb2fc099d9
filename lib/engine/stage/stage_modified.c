/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs modified by the program. Such a QP may exist before its peer: posted work waits, and the
 * stage notifies the control stage (ENG_EC_QP_WAITS), which connects the QP. As with hardware, the
 * end of the connection does not change the QP's state. If the peer has gone, work requests fail
 * when the time of their retransmissions is over. Until then the program can destroy the QP without
 * an error: two programs that end their exchange at the same time may have requests in flight that
 * neither of them waits for.
 */
#include "qp_ops_priv.h"

void
eng_modified_move(struct eng_qp *qp, const struct eng_ctl *m)
{
	qp->rd.access = m->move.access;
	qp->modified |= m->move.modified;
}

void
eng_modified_fail(struct eng_stage *s, struct eng_qp *qp)
{
	if (qp->chan == NULL || qp->lost)
		rof_unreachable(qp->rof);
	if (qp->chan == NULL && qp->connected)
		eng_qp_pend(s, qp, EQP_P_ABORT);
	eng_qp_activate(s, qp);
}

/* Notifies the control stage, which answers with ENG_CE_QP_FAIL unless the peer appears in time. */
static void
modified_wait(struct eng_stage *s, struct eng_qp *qp)
{
	qp->waits = true;
	eng_qp_pend(s, qp, EQP_P_WAITS);
}

void
eng_modified_posted(struct eng_stage *s, struct eng_qp *qp)
{
	if (!qp->waits && eng_sq_pending(s, &qp->rd))
		modified_wait(s, qp);
}

void
eng_modified_closed(struct eng_stage *s, struct eng_qp *qp)
{
	if (qp->chan == NULL)
		return; /* the connection was never open: the control stage may try again */
	qp->waits = false;
	qp->lost = true;
	if (!rof_idle(qp->rof))
		modified_wait(s, qp);
	eng_qp_activate(s, qp);
}

void
eng_qp_renew(struct eng_stage *s, struct eng_qp *qp)
{
	const struct eng_qp_ops *ops = qp->ops;
	struct eng_ctl *m = qp->deleting;
	struct eng_qp was = *qp;
	int rc;

	qp->pending = 0;
	qp->deleting = NULL;
	eng_qp_sum(s, qp);
	rc = ops->create(s, qp);
	if (rc < 0) { /* the transport's part stays as it was */
		eng_stage_answer(s, m, rc);
		return;
	}
	qp->summed = (struct eng_work){0};
	ops->destroy(s, &was);
	qp->chan = NULL;
	qp->modified = qp->waits = qp->lost = false;
	qp->rd.state = RD_QP_ERR; /* so that eng_qp_drain() is called */
	qp->deleting = m;
	qp->drains = true;
	/* In case the client continues to post, the depths bound the numbers. */
	qp->drain_sq = qp->rd.caps.sq_depth;
	qp->drain_rq = qp->rd.srq == NULL ? qp->rd.caps.rq_depth : 0;
	eng_qp_activate(s, qp);
}

bool
eng_qp_drain(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_ctl *m = qp->deleting;
	struct rd_wr wr;

	for (unsigned n = ENG_QP_BURST; n > 0 && qp->drain_sq > 0; n--)
		qp->drain_sq = eng_sq_next(s, &qp->rd, &wr) ? qp->drain_sq - 1 : 0;
	for (unsigned n = ENG_QP_BURST; n > 0 && qp->drain_rq > 0; n--)
		qp->drain_rq = eng_rq_next(s, &qp->rd, &wr) ? qp->drain_rq - 1 : 0;
	eng_sq_show(qp);
	if ((qp->drain_sq > 0 || qp->drain_rq > 0) && !qp->client->dead)
		return true;
	qp->rd.state = RD_QP_INIT;
	qp->drains = false;
	qp->deleting = NULL;
	eng_stage_answer(s, m, 0);
	return false;
}
