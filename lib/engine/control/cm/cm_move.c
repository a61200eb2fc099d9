/* SPDX-License-Identifier: BSD-3-Clause */
/* SHM_QP_MODIFY: the changes of state that a program can request, and the check of each. */
#include <errno.h>

#include "cm_kind_priv.h"

#define TIMEOUT_MAX   31 /* 5 bits */
#define RETRY_MAX     7
#define RNR_TIMER_MAX 31

/* Sends a command about the QP to its engine stage, and the reply after the answer. */
static int
on_stage(struct eng_control *c, struct cm_conn *q, struct shm_msg *m, enum eng_ctl_type type)
{
	struct ctl_op *op = ctl_op_new(c, q->client, m, NULL, ctl_op_finish_qp);
	struct ctl_msg *msg;

	if (op == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	msg = ctl_msg_get(c, type, NULL);
	msg->m.qp = q->qp;
	msg->m.client = cm_client_of(q);
	if (type == ENG_CE_QP_CLOSE) {
		msg->m.close.how = ENG_CLOSE_ABORT;
	} else {
		msg->m.move.access = q->move.access;
		msg->m.move.modified = q->modified;
	}
	ctl_op_send_stage(c, op, q->qp->stage, msg);
	return CTL_LATER;
}

static int
to_error(struct eng_control *c, struct cm_conn *q, struct shm_msg *m)
{
	int rc;

	if (!q->modified && q->state != CM_IDLE && q->state != CM_ESTABLISHED &&
		q->state != CM_CLOSED)
		return ctl_refuse(c, m, -EBUSY, "QP %u is connecting", q->qp->handle);
	rc = on_stage(c, q, m, ENG_CE_QP_CLOSE);
	if (rc == CTL_LATER)
		q->move.state = RD_QP_ERR;
	if (rc == CTL_LATER && q->modified)
		cm_modified_give_up(c, q);
	return rc;
}

static int
to_reset(struct eng_control *c, struct cm_conn *q, struct shm_msg *m)
{
	if (!q->modified && q->state != CM_IDLE && q->state != CM_ESTABLISHED &&
		q->state != CM_CLOSED)
		return ctl_refuse(c, m, -EBUSY, "QP %u is connecting", q->qp->handle);
	q->reset = ctl_op_new(c, q->client, m, q, NULL);
	if (q->reset == NULL)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	cm_input(c, q, CM_EV_DELETE, NULL);
	return CTL_LATER;
}

/* Returns whether the command names a peer. If not, the program connects the QP by SHM_CONNECT or
 * SHM_ACCEPT. */
static bool
names_peer(const struct shm_qp_move *m)
{
	return m->remote_qpn != 0 || !sk_addr_is_any(&m->remote);
}

static int
cm_move_to_init(struct eng_control *c, struct cm_conn *q, struct shm_msg *m)
{
	if (q->modified || (q->move.state != RD_QP_RESET && q->move.state != RD_QP_INIT))
		return ctl_refuse(
			c, m, -EINVAL, "QP %u has left the states RESET and INIT", q->qp->handle);
	q->move.state = RD_QP_INIT;
	q->move.access = m->body.move.access;
	return on_stage(c, q, m, ENG_CE_QP_MOVE);
}

static int
peer_check(struct eng_control *c, struct cm_conn *q, struct shm_msg *m)
{
	const struct shm_qp_move *w = &m->body.move;
	char text[SK_ADDR_STRLEN], remote[SK_ADDR_STRLEN];

	if (q->move.state != RD_QP_INIT || q->state != CM_IDLE)
		return ctl_refuse(c, m, -EINVAL, "QP %u is not in INIT", q->qp->handle);
	if (w->remote_qpn == 0 || w->remote_qpn > ROF_QPN_MAX)
		return ctl_refuse(c, m, -EINVAL, "a remote QP number is 1 to 16777215, not %u",
			w->remote_qpn);
	if (sk_addr_is_any(&w->remote) || sk_addr_is_multicast(&w->remote))
		return ctl_refuse(c, m, -EINVAL, "%s is not the GID of a peer",
			sk_addr_str(&w->remote, text));
	if (!sk_addr_is_any(&w->local) && !cm_addr_is_ours(c, &w->local))
		return ctl_refuse(c, m, -EADDRNOTAVAIL, "%s is not an address of this device",
			sk_addr_str(&w->local, text));
	if (!sk_addr_is_any(&w->local) && sk_addr_is_v4(&w->local) != sk_addr_is_v4(&w->remote))
		return ctl_refuse(c, m, -EAFNOSUPPORT,
			"the local GID %s and the remote GID %s are of different families",
			sk_addr_str(&w->local, text), sk_addr_str(&w->remote, remote));
	if (w->min_rnr_timer > RNR_TIMER_MAX)
		return ctl_refuse(c, m, -EINVAL, "an RNR timer is 0 to %u, not %u", RNR_TIMER_MAX,
			w->min_rnr_timer);
	return ctl_class_check(c, m, &w->class) < 0 ? m->status : cm_modes_move(c, m);
}

static int
cm_move_to_rtr(struct eng_control *c, struct cm_conn *q, struct shm_msg *m)
{
	const struct shm_qp_move *w = &m->body.move;
	int rc = peer_check(c, q, m);

	if (rc < 0)
		return rc;
	q->move.state = RD_QP_RTR;
	q->move.remote = w->remote;
	q->move.local = w->local;
	q->move.remote_qpn = w->remote_qpn;
	q->move.modes = w->modes;
	q->class = w->class;
	ctl_class_fill(&q->class, &q->chosen);
	ctl_class_fill(&q->class, &q->client->class);
	q->move.ird = w->ird;
	q->move.min_rnr_timer = w->min_rnr_timer;
	q->modified = true;
	q->state = CM_WAITING;
	return on_stage(c, q, m, ENG_CE_QP_MOVE);
}

static int
cm_move_to_rts(struct eng_control *c, struct cm_conn *q, struct shm_msg *m)
{
	const struct shm_qp_move *w = &m->body.move;

	if (q->move.state != RD_QP_RTR && q->move.state != RD_QP_RTS)
		return ctl_refuse(c, m, -EINVAL, "QP %u is not in RTR", q->qp->handle);
	if (w->timeout > TIMEOUT_MAX)
		return ctl_refuse(
			c, m, -EINVAL, "a timeout is 0 to %u, not %u", TIMEOUT_MAX, w->timeout);
	if (w->retry > RETRY_MAX || w->rnr_retry > RETRY_MAX)
		return ctl_refuse(c, m, -EINVAL, "a retry count is 0 to %u, not %u", RETRY_MAX,
			SK_MAX(w->retry, w->rnr_retry));
	q->move.state = RD_QP_RTS;
	q->move.ord = w->ord;
	q->move.timeout = w->timeout;
	q->move.retry = w->retry;
	q->move.rnr_retry = w->rnr_retry;
	cm_modified_rts(c, q);
	return 0;
}

/* Changes only the access rights of a QP whose connection clients' commands make: rdma_cm programs
 * repeat with ibv_modify_qp() the states that the connection manager sets. */
static int
cm_move_state(struct eng_control *c, struct cm_conn *q, struct shm_msg *m)
{
	const struct shm_qp_move *w = &m->body.move;

	if (!cm_kinds[q->qp->kind]->modifiable)
		return 0;
	if (w->state == RD_QP_INIT && (q->state == CM_IDLE || q->modified))
		return cm_move_to_init(c, q, m);
	if (w->state == RD_QP_INIT) {
		q->move.access = w->access;
		return on_stage(c, q, m, ENG_CE_QP_MOVE);
	}
	if (w->state == RD_QP_RTR && names_peer(w))
		return cm_move_to_rtr(c, q, m);
	if (w->state == RD_QP_RTS && q->modified)
		return q->given_up ? ctl_refuse(c, m, -EINVAL, "QP %u is in the error state", w->qp)
				   : cm_move_to_rts(c, q, m);
	if (q->modified)
		return ctl_refuse(c, m, -EINVAL, "QP %u has a peer already", w->qp);
	return 0;
}

int
ctl_qp_modify(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_qp_move *w = &m->body.move;
	struct ctl_qp *qp = ctl_qp_find(cl, w->qp);
	struct cm_conn *q = qp != NULL ? &qp->conn : NULL;

	if (q == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no QP %u", w->qp);
	if (q->reset != NULL)
		return ctl_refuse(c, m, -EBUSY, "QP %u is being reset", w->qp);
	if (q->move.state == RD_QP_ERR && w->state >= RD_QP_INIT && w->state <= RD_QP_RTS)
		return ctl_refuse(c, m, -EINVAL, "QP %u is in the error state", w->qp);
	if (q->qp->type == SHM_UD && w->state >= RD_QP_INIT && w->state <= RD_QP_RTS)
		return cm_datagram_move(c, q, m, ctl_op_finish_qp);
	switch (w->state) {
	case RD_QP_RESET:
		return to_reset(c, q, m);
	case RD_QP_ERR:
		return to_error(c, q, m);
	case RD_QP_INIT:
	case RD_QP_RTR:
	case RD_QP_RTS:
		return cm_move_state(c, q, m);
	default:
		return ctl_refuse(c, m, -EINVAL, "a QP cannot be moved to state %u", w->state);
	}
}
