/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the control stage to an engine stage (control_priv.h says what each owes), and
 * messages to it. */
#include <errno.h>
#include <string.h>

#include <rte_ring.h>

#include "qp_ops_priv.h"

struct eng_ctl *
eng_unasked(struct eng_stage *s, enum eng_ctl_type type, struct eng_client *client)
{
	struct eng_ctl *m;

	if (s->nunasked == 0)
		return NULL;
	m = s->unasked_free[--s->nunasked];
	memset(m, 0, sizeof(*m));
	m->type = (uint16_t)type;
	m->from = m->stage = (uint8_t)s->index;
	m->client = client;
	return m;
}

void
eng_unasked_send(struct eng_stage *s, struct eng_ctl *m)
{
	/* The ring has a place for each message that there is. */
	rte_ring_sp_enqueue(s->to_control, m);
}

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
	struct eng_client_stage *cs = &qp->client->stage[s->index];
	int rc;

	if (s->nfree == 0)
		return -ENOBUFS;
	if (qp->handle >= cs->nqps && qp->host == NULL)
		return -EINVAL;
	rc = eng_half_of(qp)->create(s, qp);
	if (rc < 0)
		return rc;
	qp->index = m->qp_index = s->free_index[--s->nfree];
	s->qps[qp->index] = qp;
	if (qp->host != NULL)
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
	qp->transport = m->transport;
	qp->conn = m->conn;
	rc = eng_half_of(qp)->start(s, qp, m);
	if (rc < 0)
		return rc;
	qp->connected = true;
	eng_qp_activate(s, qp);
	return 0;
}

static int
qp_close(struct eng_stage *s, const struct eng_ctl *m)
{
	eng_half_of(m->qp)->disconnect(s, m->qp, m->how);
	eng_qp_activate(s, m->qp);
	return 0;
}

/* Answered when the connection has been released. */
static void
qp_leave(struct eng_stage *s, struct eng_ctl *m)
{
	struct eng_qp *qp = m->qp;

	qp->deleting = m;
	if (qp->connected)
		eng_qp_owe(s, qp, EQP_O_ABORT);
	else
		eng_qp_owe(s, qp, EQP_O_GONE);
}

static int
qp_query(struct eng_ctl *m)
{
	m->code = (int)m->qp->rd.state;
	eng_half_of(m->qp)->info(m->qp, &m->info.work);
	return 0;
}

/* Returns true when the command is to be answered now. */
static bool
command(struct eng_stage *s, struct eng_ctl *m, int *rc)
{
	*rc = 0;
	switch (m->type) {
	case ENG_CE_CLIENT_ADD:
		eng_bells_add(s, m->client);
		break;
	case ENG_CE_CLIENT_DEL:
		eng_bells_del(s, m->client);
		break;
	case ENG_CE_QP_ADD:
		*rc = qp_add(s, m);
		break;
	case ENG_CE_QP_START:
		*rc = qp_start(s, m);
		break;
	case ENG_CE_QP_CLOSE:
		*rc = qp_close(s, m);
		break;
	case ENG_CE_QP_DEL:
	case ENG_CE_QP_RESET:
		qp_leave(s, m);
		return false;
	case ENG_CE_QP_MOVE:
		if (m->qp->type == SHM_UD)
			eng_datagram_move(s, m->qp, m);
		else
			eng_hand_move(m->qp, m);
		break;
	case ENG_CE_QP_FAIL:
		if (m->qp->host != NULL)
			eng_host_fail(s, m->qp);
		else
			eng_hand_fail(s, m->qp);
		break;
	case ENG_CE_QP_QUERY:
		*rc = qp_query(m);
		break;
	case ENG_CE_AH_ADD:
		eng_ah_set(s, m->client, (uint32_t)m->code, m->object);
		break;
	case ENG_CE_AH_DEL:
		eng_ah_set(s, m->client, (uint32_t)m->code, NULL);
		break;
	case ENG_CE_SRQ_ADD:
		eng_srq_add(s, m->object);
		break;
	case ENG_CE_SRQ_DEL:
		eng_srq_del(s, m->object);
		break;
	case ENG_CE_SRQ_LIMIT:
		eng_srq_limit(s, m->object, (uint32_t)m->code);
		break;
	case ENG_CE_CQ_DEL:
		eng_cq_forget(s, m->object);
		break;
	default:
		*rc = -EINVAL;
	}
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

		if (c->type >= ENG_TC_REQUEST)
			s->unasked_free[s->nunasked++] = c;
		else if (command(s, c, &rc))
			eng_stage_answer(s, c, rc);
	}
	return n > 0;
}
