/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a QP's connection, as a table of states and events. A command to another stage is
 * unanswered in some states; a QP that is to go waits there for the answer, so that each stage's
 * view is known when its end begins.
 */
#include "cm_act_priv.h"

/* ---- The table ---- */

static cm_action *const table[CM_STATES][CM_EVENTS] = {
	[CM_IDLE] =
		{
			[CM_EV_DELETE] = cm_act_leave,
		},
	[CM_CONNECTING] =
		{
			[CM_EV_CONNECTED] = cm_act_opened,
			[CM_EV_NOT_CONNECTED] = cm_act_not_opened,
			[CM_EV_FAILED] = cm_act_dropped,
			[CM_EV_DELETE] = cm_act_wait,
		},
	[CM_OPENING] =
		{
			[CM_EV_UP] = cm_act_start,
			[CM_EV_REJECTED] = cm_act_rejected,
			[CM_EV_FAILED] = cm_act_failed,
			[CM_EV_DELETE] = cm_act_abort,
		},
	[CM_STARTING] =
		{
			[CM_EV_ABORTED] = cm_act_late,
			[CM_EV_STARTED] = cm_act_bind,
			[CM_EV_NOT_STARTED] = cm_act_not_started,
			[CM_EV_FAILED] = cm_act_hold,
			[CM_EV_DELETE] = cm_act_wait,
		},
	[CM_BINDING] =
		{
			[CM_EV_ABORTED] = cm_act_late,
			[CM_EV_BOUND] = cm_act_bound,
			[CM_EV_ENDED] = cm_act_ended_early,
			[CM_EV_FAILED] = cm_act_late,
			[CM_EV_DELETE] = cm_act_wait,
		},
	[CM_ACCEPT_STARTING] =
		{
			[CM_EV_STARTED] = cm_act_accept,
			[CM_EV_NOT_STARTED] = cm_act_not_started,
			[CM_EV_FAILED] = cm_act_hold,
			[CM_EV_DELETE] = cm_act_wait,
		},
	[CM_ACCEPTING] =
		{
			[CM_EV_ACCEPTED] = cm_act_accepted,
			[CM_EV_UP] = cm_act_up,
			[CM_EV_ENDED] = cm_act_ended_early,
			[CM_EV_FAILED] = cm_act_late,
			[CM_EV_DELETE] = cm_act_wait,
		},
	[CM_WAIT_PEER] =
		{
			[CM_EV_UP] = cm_act_up,
			[CM_EV_ENDED] = cm_act_never_up,
			[CM_EV_FAILED] = cm_act_late,
			[CM_EV_DELETE] = cm_act_leave,
		},
	[CM_ESTABLISHED] =
		{
			[CM_EV_ABORTED] = cm_act_late,
			[CM_EV_ACCEPTED] = cm_act_late,
			[CM_EV_ENDED] = cm_act_disconnected,
			[CM_EV_FAILED] = cm_act_late,
			[CM_EV_DELETE] = cm_act_leave,
		},
	[CM_CLOSED] =
		{
			[CM_EV_ABORTED] = cm_act_late,
			[CM_EV_ACCEPTED] = cm_act_late,
			[CM_EV_UP] = cm_act_late,
			[CM_EV_FAILED] = cm_act_late,
			[CM_EV_DELETE] = cm_act_leave,
		},
	[CM_ABORTING] =
		{
			[CM_EV_ABORTED] = cm_act_aborted,
			[CM_EV_UP] = cm_act_late,
			[CM_EV_REJECTED] = cm_act_late,
			[CM_EV_FAILED] = cm_act_late,
			[CM_EV_DELETE] = cm_act_wait,
		},
	[CM_DELETING] =
		{
			[CM_EV_DELETED] = cm_act_deleted,
			[CM_EV_ACCEPTED] = cm_act_late,
			[CM_EV_UP] = cm_act_late,
			[CM_EV_FAILED] = cm_act_late,
			[CM_EV_ENDED] = cm_act_late,
			[CM_EV_ABORTED] = cm_act_late,
		},
	[CM_WAITING] =
		{
			[CM_EV_ACCEPTED] = cm_act_late,
			[CM_EV_UP] = cm_act_late,
			[CM_EV_FAILED] = cm_act_late,
			[CM_EV_DELETE] = cm_act_leave,
		},
	[CM_GIVING_WAY] =
		{
			[CM_EV_ABORTED] = cm_act_gave_way,
			[CM_EV_UP] = cm_act_start,
			[CM_EV_REJECTED] = cm_act_late,
			[CM_EV_FAILED] = cm_act_dropped,
			[CM_EV_DELETE] = cm_act_wait,
		},
	[CM_RESETTING] =
		{
			[CM_EV_RESET] = cm_act_reset,
			[CM_EV_ACCEPTED] = cm_act_late,
			[CM_EV_UP] = cm_act_late,
			[CM_EV_FAILED] = cm_act_late,
			[CM_EV_ENDED] = cm_act_late,
			[CM_EV_ABORTED] = cm_act_late,
			[CM_EV_DELETE] = cm_act_wait,
		},
};

bool
cm_input(struct eng_control *c, struct ctl_qp *q, enum cm_event ev, struct eng_ctl *m)
{
	cm_action *act = table[q->cm][ev];

	if (act == NULL) {
		sk_count(c->counters, ENG_CM_STATE);
		return false;
	}
	return act(c, q, m);
}

/* ---- What comes in ---- */

static enum cm_event
answer_event(const struct eng_ctl *m)
{
	switch (m->type) {
	case ENG_CT_CONNECT:
		return m->status < 0 ? CM_EV_NOT_CONNECTED : CM_EV_CONNECTED;
	case ENG_CE_QP_START:
		return m->status < 0 ? CM_EV_NOT_STARTED : CM_EV_STARTED;
	case ENG_CT_BIND:
		return CM_EV_BOUND;
	case ENG_CT_ACCEPT:
		return CM_EV_ACCEPTED;
	case ENG_CT_ABORT:
		return CM_EV_ABORTED;
	case ENG_CE_QP_RESET:
		return CM_EV_RESET;
	default:
		return CM_EV_DELETED;
	}
}

void
cm_answered(struct eng_control *c, struct ctl_msg *msg)
{
	struct ctl_qp *q = ctl_qp_of_cookie(c, msg->m.cookie);

	if (q != NULL)
		cm_input(c, q, answer_event(&msg->m), &msg->m);
	else
		sk_count(c->counters, ENG_STALE);
}

void
cm_start_connect(struct eng_control *c, struct ctl_qp *q, const struct eng_ctl *what)
{
	cm_connect_at(c, q, what, q->eng.stage % c->cfg->ntransports);
}

void
cm_connect_at(
	struct eng_control *c, struct ctl_qp *q, const struct eng_ctl *what, unsigned transport)
{
	struct ctl_msg *msg;

	q->cm = CM_CONNECTING;
	q->ended = q->unopened = false;
	q->transport = (uint8_t)transport;
	msg = cm_command(c, q, ENG_CT_CONNECT);
	msg->m.tuple = what->tuple;
	msg->m.offer = what->offer;
	msg->m.fall_back = what->fall_back;
	msg->m.ask = what->ask.lookup ? what->ask : cm_falcon_ask(c, q, &what->offer);
	msg->m.private_len = what->private_len;
	memcpy(msg->m.private_data, what->private_data, what->private_len);
	ctl_send_transport(c, q->transport, msg);
}

void
cm_start_accept(struct eng_control *c, struct ctl_qp *q, const struct iw_params *params)
{
	struct ctl_msg *msg = cm_command(c, q, ENG_CE_QP_START);

	q->cm = CM_ACCEPT_STARTING;
	q->ended = q->unopened = false;
	msg->m.params = *params;
	ctl_send_stage(c, q->eng.stage, msg);
}

bool
cm_unasked(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	struct cm_request *r = NULL;
	struct ctl_qp *q;
	bool kept = false;

	/* Each may need a command of ours; answers that come later may need one each, too. */
	if (c->nspare <= CTL_RESERVE / 2)
		return false;
	if (m->type == ENG_TC_REQUEST) {
		cm_request_in(c, m);
		ctl_return(c, t, m);
		return true;
	}
	q = ctl_qp_of_cookie(c, m->cookie);
	if (q == NULL)
		r = cm_request_of_conn(c, m->transport, m->conn);
	if (r != NULL)
		q = r->accepting;
	if (r != NULL && q == NULL)
		cm_request_free(c, r);
	else if (q == NULL)
		sk_count(c->counters, ENG_STALE);
	else
		kept = cm_input(c, q,
			m->type == ENG_TC_ESTABLISHED ? CM_EV_UP
			: m->type == ENG_TC_REJECTED  ? CM_EV_REJECTED
						      : CM_EV_FAILED,
			m);
	if (!kept)
		ctl_return(c, t, m);
	return true;
}
