/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machine of a connection, as a table of states and events. In some states a command to
 * another stage is unanswered. A QP that is to be destroyed or reset waits there for the answer, so
 * that the state of each stage is certain when its destruction begins.
 */
#include <stdlib.h>

#include "cm_act_priv.h"
#include "cm_kind_priv.h"

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
			[CM_EV_FOUND] = cm_act_found,
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
			[CM_EV_NOT_BOUND] = cm_act_unbind,
			[CM_EV_UNBOUND] = cm_act_bound,
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
			[CM_EV_NOT_ACCEPTED] = cm_act_unbind,
			[CM_EV_UNBOUND] = cm_act_accepted,
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
			[CM_EV_FOUND] = cm_act_late,
			[CM_EV_REJECTED] = cm_act_late,
			[CM_EV_FAILED] = cm_act_dropped,
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
			[CM_EV_FOUND] = cm_act_late,
			[CM_EV_REJECTED] = cm_act_late,
			[CM_EV_FAILED] = cm_act_dropped,
			[CM_EV_DELETE] = cm_act_wait,
		},
	[CM_REFUSED] =
		{
			[CM_EV_DELETE] = cm_act_leave,
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
cm_input(struct eng_control *c, struct cm_conn *q, enum cm_event ev, struct eng_ctl *m)
{
	cm_action *act = table[q->state][ev];

	if (act == NULL) {
		sk_count(c->counters, ENG_CM_STATE);
		return false;
	}
	return act(c, q, m);
}

/* ---- Answers, and the commands that begin ---- */

static enum cm_event
answer_event(const struct eng_ctl *m)
{
	switch (m->type) {
	case ENG_CT_CONNECT:
	case ENG_CT_LOOKUP:
		return m->status < 0 ? CM_EV_NOT_CONNECTED : CM_EV_CONNECTED;
	case ENG_CE_QP_START:
		return m->status < 0 ? CM_EV_NOT_STARTED : CM_EV_STARTED;
	case ENG_CT_BIND:
		return m->status < 0 ? CM_EV_NOT_BOUND : CM_EV_BOUND;
	case ENG_CT_ACCEPT:
		return m->status < 0 ? CM_EV_NOT_ACCEPTED : CM_EV_ACCEPTED;
	case ENG_CT_ABORT:
		return CM_EV_ABORTED;
	case ENG_CE_QP_RESET:
		return CM_EV_RESET;
	case ENG_CE_QP_CLOSE:
		return CM_EV_UNBOUND;
	default:
		return CM_EV_DELETED;
	}
}

void
cm_answered(struct eng_control *c, struct ctl_msg *msg)
{
	struct cm_conn *q = cm_conn_of_attempt(c, msg->m.cookie);

	if (q != NULL)
		cm_input(c, q, answer_event(&msg->m), &msg->m);
	else
		sk_count(c->counters, ENG_STALE);
}

/* Returns the transport stage that opens the connections of an engine stage: one of the same loop,
 * if there is one. */
static unsigned
opening_transport(const struct eng_config *cfg, unsigned stage)
{
	for (unsigned k = 0; k < cfg->ntransports; k++) {
		unsigned t = (stage + k) % cfg->ntransports;

		if (cfg->transport_loop[t] == cfg->stage_loop[stage])
			return t;
	}
	return stage % cfg->ntransports;
}

void
cm_start_connect(struct eng_control *c, struct cm_conn *q, const struct eng_ctl *what)
{
	cm_connect_at(c, q, what, opening_transport(c->cfg, q->qp->stage));
}

void
cm_connect_at(
	struct eng_control *c, struct cm_conn *q, const struct eng_ctl *what, unsigned transport)
{
	struct ctl_msg *msg;

	q->state = CM_CONNECTING;
	q->attempt++;
	q->ended = q->unopened = false;
	q->transport = (uint8_t)transport;
	msg = cm_command(c, q, what->type == ENG_CT_LOOKUP ? ENG_CT_LOOKUP : ENG_CT_CONNECT);
	msg->m.connect = what->connect;
	msg->m.private_len = what->private_len;
	memcpy(msg->m.private_data, what->private_data, what->private_len);
	ctl_send_transport(c, q->transport, msg);
}

void
cm_start_accept(struct eng_control *c, struct cm_conn *q, const struct eng_start *start)
{
	struct ctl_msg *msg;

	q->attempt++;
	msg = cm_start_command(c, q);
	q->state = CM_ACCEPT_STARTING;
	q->ended = q->unopened = false;
	msg->m.start = *start;
	ctl_send_stage(c, q->qp->stage, msg);
}

/* ---- Notices ---- */

static const uint8_t outcome_event[ENG_CTL_TYPES] = {
	[ENG_TC_ESTABLISHED] = CM_EV_UP,
	[ENG_TC_FOUND] = CM_EV_FOUND,
	[ENG_TC_REJECTED] = CM_EV_REJECTED,
	[ENG_TC_FAILED] = CM_EV_FAILED,
};

bool
cm_notice_outcome(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	struct cm_conn *q = cm_conn_of_attempt(c, m->cookie);
	struct cm_request *r = NULL;
	bool kept = false;

	if (!cm_may_answer(c))
		return false;
	if (m->cookie == 0) /* ENG_CT_ACCEPT is not sent yet */
		r = cm_request_of_conn(c, m->transport, m->conn);
	if (r != NULL)
		q = r->accepting;
	if (r != NULL && q == NULL)
		cm_request_free(c, r);
	else if (q == NULL)
		sk_count(c->counters, ENG_STALE);
	else
		kept = cm_input(c, q, (enum cm_event)outcome_event[m->type], m);
	if (!kept)
		ctl_return(c, t, m);
	return true;
}

bool
cm_notice_disconnected(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	cm_input(c, m->qp->control, CM_EV_ENDED, m);
	return true;
}

bool
cm_notice_fatal(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	struct cm_conn *q = m->qp->control;
	const struct sk_reason_list *list = cm_kinds[q->qp->kind]->reasons;
	int code = m->event.code;
	const char *name = code > 0 && code < (int)list->count ? list->reasons[code].name : "";

	if (q->client == NULL)
		return true;
	ctl_client_send_async(c, q->client, SHM_EV_QP_FATAL, q->qp->handle, code, name);
	ctl_qp_notify_openers(c, ctl_qp_of(q), code, name);
	return true;
}

/* ---- For the registry ---- */

static void
cm_conn_leave(struct eng_control *c, struct cm_conn *q)
{
	cm_input(c, q, CM_EV_DELETE, NULL);
}

static void
conn_forget(struct eng_control *c, struct cm_conn *q)
{
	cm_modified_forget(c, q);
	cm_again_drop(q);
	free(q->outcome);
	q->outcome = NULL;
}

const struct ctl_conn_ops cm_conn_ops = {
	.leave = cm_conn_leave,
	.forget = conn_forget,
	.place = cm_request_place,
};
