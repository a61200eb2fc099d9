/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of the control stage to an engine stage, the answers, and the notices.
 * control/control.h has the rules. */
#include <errno.h>
#include <string.h>

#include <rte_ring.h>

#include "qp_ops_priv.h"

void
eng_stage_answer(struct eng_stage *s, struct eng_ctl *m, int status)
{
	m->status = status;
	rte_ring_sp_enqueue(s->to_control, m);
}

static int
qp_add(struct eng_stage *s, struct eng_ctl *m)
{
	struct eng_qp *qp = m->qp;
	struct eng_client_stage *cs = qp->client != NULL ? &qp->client->stage[s->index] : NULL;
	int rc;

	if (s->nfree == 0)
		return -ENOBUFS;
	if (cs != NULL && qp->handle >= cs->nqps)
		return -EINVAL;
	qp->payer = cs != NULL ? cs : &s->own;
	qp->ops = qp->host != NULL ? &eng_host_ops : eng_qp_ops[qp->kind];
	rc = qp->ops->create(s, qp);
	if (rc < 0)
		return rc;
	qp->index = m->qp_index = s->free_index[--s->nfree];
	s->qps[qp->index] = qp;
	s->qps_used = SK_MAX(s->qps_used, qp->index + 1);
	if (cs == NULL)
		return 0;
	cs->qps[qp->handle] = qp;
	if (qp->type == SHM_UD)
		eng_datagram_add(s, qp);
	return 0;
}

static int
qp_start(struct eng_stage *s, const struct eng_ctl *m)
{
	struct eng_qp *qp = m->qp;
	int rc;

	if (qp->connected || qp->rd.state == RD_QP_ERR)
		return -ENOTCONN;
	if (!eng_stage_link(s, m->transport))
		return -ENOMEM;
	qp->transport = m->transport;
	qp->conn = m->conn;
	rc = qp->ops->start(s, qp, &m->start);
	if (rc < 0)
		return rc;
	qp->connected = true;
	eng_qp_activate(s, qp);
	return 0;
}

static int
qp_close(struct eng_stage *s, const struct eng_ctl *m)
{
	if (m->close.how == ENG_CLOSE_UNBOUND)
		eng_qp_unbound(s, m->qp);
	else
		m->qp->ops->disconnect(s, m->qp, m->close.how);
	eng_qp_activate(s, m->qp);
	return 0;
}

/* Executes ENG_CE_QP_DEL and ENG_CE_QP_RESET, which it answers when the connection is released. */
static void
qp_leave(struct eng_stage *s, struct eng_ctl *m)
{
	struct eng_qp *qp = m->qp;

	qp->deleting = m;
	if (qp->connected)
		eng_qp_pend(s, qp, EQP_P_ABORT);
	else
		eng_qp_pend(s, qp, EQP_P_GONE);
}

static int
qp_query(struct eng_ctl *m)
{
	m->qp_info.state = (uint8_t)m->qp->rd.state;
	m->qp->ops->info(m->qp, &m->qp_info.work);
	return 0;
}

/* Executes a command about a client. Returns false when the command is about something else. */
static bool
client_command(struct eng_stage *s, const struct eng_ctl *m)
{
	switch (m->type) {
	case ENG_CE_CLIENT_ADD:
		eng_round_add(s, m->client);
		eng_doorbells_add(s, m->client);
		return true;
	case ENG_CE_CLIENT_DEL:
		eng_doorbells_del(s, m->client);
		eng_notice_client_del(s, &m->client->stage[s->index]);
		eng_round_del(s, &m->client->stage[s->index]);
		return true;
	case ENG_CE_CLIENT_RATES:
		eng_round_change(s, m->client, &m->rates.client, &m->rates.user);
		return true;
	case ENG_CE_AH_ADD:
		eng_ah_set(s, m->client, m->object.number, m->object.object);
		return true;
	case ENG_CE_AH_DEL:
		eng_ah_set(s, m->client, m->object.number, NULL);
		return true;
	default:
		return false;
	}
}

/* Executes a command about a shared receive queue or a CQ. Returns false when the command is about
 * something else. */
static bool
queue_command(struct eng_stage *s, const struct eng_ctl *m)
{
	switch (m->type) {
	case ENG_CE_SRQ_ADD:
		eng_srq_add(s, m->object.object);
		return true;
	case ENG_CE_SRQ_DEL:
		eng_srq_del(s, m->object.object);
		return true;
	case ENG_CE_SRQ_LIMIT:
		eng_srq_limit(s, m->object.object, m->object.number);
		return true;
	case ENG_CE_SRQ_MOVE:
		eng_srq_move(m->object.object, &m->object.ring);
		return true;
	case ENG_CE_CQ_DEL:
		eng_cq_forget(s, m->object.object);
		return true;
	case ENG_CE_CQ_MOVE:
		eng_cq_move(s, m->object.object, &m->object.ring);
		return true;
	default:
		return false;
	}
}

/* Executes a command about a QP that is answered at once. Returns the status of the answer. */
static int
qp_command(struct eng_stage *s, struct eng_ctl *m)
{
	switch (m->type) {
	case ENG_CE_QP_ADD:
		return qp_add(s, m);
	case ENG_CE_QP_START:
		return qp_start(s, m);
	case ENG_CE_QP_CLOSE:
		return qp_close(s, m);
	case ENG_CE_QP_MOVE:
		if (m->qp->type == SHM_UD)
			eng_datagram_move(s, m->qp, m);
		else
			eng_modified_move(m->qp, m);
		return 0;
	case ENG_CE_QP_FAIL:
		if (m->qp->host != NULL)
			eng_host_fail(s, m->qp);
		else
			eng_modified_fail(s, m->qp);
		return 0;
	case ENG_CE_QP_QUERY:
		return qp_query(m);
	default:
		return -EINVAL;
	}
}

/* Returns whether the command is about a QP that the stage does not have: ENG_CE_QP_ADD has failed,
 * and the control stage had sent other commands before it received the answer. */
static bool
lacks_qp(const struct eng_stage *s, const struct eng_ctl *m)
{
	return m->type > ENG_CE_QP_ADD && m->type <= ENG_CE_QP_QUERY &&
	       s->qps[m->qp->index] != m->qp;
}

/* Executes a command and sets *rc. Returns false when the answer follows later. */
static bool
command(struct eng_stage *s, struct eng_ctl *m, int *rc)
{
	if (lacks_qp(s, m)) {
		*rc = -ENOTCONN;
		return true;
	}
	if (m->type == ENG_CE_QP_DEL || m->type == ENG_CE_QP_RESET) {
		qp_leave(s, m);
		return false;
	}
	*rc = client_command(s, m) || queue_command(s, m) ? 0 : qp_command(s, m);
	return true;
}

bool
eng_stage_ctl(struct eng_stage *s)
{
	void *m[ENG_BURST];
	unsigned n = rte_ring_sc_dequeue_burst(s->from_control, m, ENG_BURST, NULL);
	int rc;

	for (unsigned i = 0; i < n; i++) {
		struct eng_ctl *c = m[i];

		if (c->type >= ENG_CTL_NOTICE)
			eng_notice_put(s, c);
		else if (command(s, c, &rc))
			eng_stage_answer(s, c, rc);
	}
	return n > 0;
}
