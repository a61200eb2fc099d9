/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs that a program moves itself: which moves there are, and what each does. */
#include <errno.h>

#include "cm_priv.h"

static void
closed(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	if (op->status < 0)
		ctl_refuse(c, &op->reply, op->status, "the QP has gone");
	ctl_op_reply(c, op);
}

static int
to_error(struct eng_control *c, struct ctl_client *cl, struct ctl_qp *q, struct shm_msg *m)
{
	struct ctl_op *op;
	struct ctl_msg *msg;

	if (q->cm != CM_IDLE && q->cm != CM_ESTABLISHED && q->cm != CM_CLOSED)
		return ctl_refuse(c, m, -EBUSY, "QP %u is connecting", q->eng.handle);
	op = ctl_op_new(c, cl, m, NULL, closed);
	if (!op)
		return ctl_refuse(c, m, -ENOMEM, "no memory");
	msg = ctl_msg_get(c, ENG_CE_QP_CLOSE, NULL);
	msg->m.qp = &q->eng;
	msg->m.client = &cl->eng;
	msg->m.how = IW_CLOSE_ABORT;
	ctl_op_send_stage(c, op, q->eng.stage, msg);
	return CTL_LATER;
}

int
ctl_qp_modify(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct shm_qp_move *to = &m->body.move;
	struct ctl_qp *q = ctl_qp_find(cl, to->qp);

	if (!q)
		return ctl_refuse(c, m, -EINVAL, "there is no QP %u", to->qp);
	if (to->state == RD_QP_ERR)
		return to_error(c, cl, q, m);
	if (to->state < RD_QP_INIT || to->state > RD_QP_RTS)
		return ctl_refuse(c, m, -EINVAL, "a QP is not moved to state %u", to->state);
	if (to->remote_qpn != 0)
		return ctl_refuse(c, m, -EPROTOTYPE, "QP %u is connected by listener and port",
			q->eng.handle);
	return 0;
}
