/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a QP's connection, as a table of states and events. A command to another stage is
 * unanswered in some states; a QP that is to go waits there for the answer, so that each stage's
 * view is known when its end begins.
 */
#include <errno.h>
#include <stdlib.h>

#include "cm_priv.h"

/* Returns whether the message was kept. */
typedef bool cm_action(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m);

/* ---- What goes out ---- */

static void answered(struct eng_control *c, struct ctl_msg *msg);

/* The pool cannot be empty: clients' commands and peers' requests leave a reserve, and an answer
 * brings at most one new command. */
static struct ctl_msg *
command(struct eng_control *c, struct ctl_qp *q, enum eng_ctl_type type)
{
	struct ctl_msg *msg = ctl_msg_get(c, type, answered);

	msg->m.cookie = ctl_qp_cookie(q);
	msg->m.qp = &q->eng;
	msg->m.client = &q->client->eng;
	msg->m.conn = q->conn;
	msg->m.transport = q->transport;
	msg->m.stage = q->eng.stage;
	msg->m.qp_index = q->index;
	return msg;
}

static void
tell(struct eng_control *c, struct ctl_qp *q, enum shm_op op, int status)
{
	struct shm_msg m = {.op = (uint16_t)op, .status = status};

	if (q->dying || q->by_hand)
		return;
	m.body.cm.qp = q->eng.handle;
	m.body.cm.listener = m.body.cm.request = SHM_NONE;
	ctl_tell(c, q->client, &m, offsetof(struct shm_cm, private_data));
}

/* The outcome of a start-up, with the peer's private data. */
static struct ctl_event *
outcome(const struct ctl_qp *q, enum shm_op op, const struct eng_ctl *m)
{
	struct shm_msg msg = {.op = (uint16_t)op};
	struct shm_cm *cm = &msg.body.cm;

	cm->qp = q->eng.handle;
	cm->listener = cm->request = SHM_NONE;
	cm->local = m->tuple.laddr;
	cm->remote = m->tuple.raddr;
	cm->lport = m->tuple.lport;
	cm->rport = m->tuple.rport;
	cm_describe(cm, &m->mpa, q->ird, q->ord);
	cm->dialect = q->draft_ext ? SHM_DIALECT_DRAFT : SHM_DIALECT_RFC7306;
	return ctl_event_new(
		&msg, (uint32_t)offsetof(struct shm_cm, private_data) + cm->private_len);
}

/* A QP that is moved by hand has nobody to tell: the program knows no connection. */
static void
tell_outcome(struct eng_control *c, struct ctl_qp *q, struct ctl_event *ev)
{
	if (q->by_hand)
		free(ev);
	else
		ctl_tell_event(c, q->client, ev);
}

/* ---- The end ---- */

static bool
leaving(const struct ctl_qp *q)
{
	return q->dying || q->reset;
}

static bool
act_leave(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	cm_hand_forget(c, q);
	q->cm = q->dying ? CM_DELETING : CM_RESETTING;
	ctl_send_stage(c, q->eng.stage, command(c, q, q->dying ? ENG_CE_QP_DEL : ENG_CE_QP_RESET));
	return false;
}

static void
reset_reply(struct eng_control *c, struct ctl_qp *q, int status)
{
	struct ctl_op *op = q->reset;

	q->reset = NULL;
	if (op && status < 0)
		ctl_refuse(c, &op->reply, status, "the QP could not be reset");
	if (op)
		ctl_op_reply(c, op);
}

static bool
act_deleted(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	struct ctl_op *op = q->op;

	reset_reply(c, q, -ECANCELED);
	ctl_qp_free(c, q);
	ctl_op_reply(c, op);
	return false;
}

static bool
act_reset(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	q->cm = CM_IDLE;
	q->by_hand = q->given_up = q->waits = q->ended = false;
	q->ird = q->ord = 0;
	q->move = (struct shm_qp_move){.state = RD_QP_RESET};
	reset_reply(c, q, m->status);
	return q->dying ? act_leave(c, q, NULL) : false;
}

static bool
act_wait(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	return false;
}

/* Expected: it crossed something of ours. */
static bool
act_late(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	sk_count(c->counters, ENG_STALE);
	return false;
}

/* The connection came to nothing; the QP may try again. */
static bool
to_idle(struct eng_control *c, struct ctl_qp *q)
{
	q->cm = CM_IDLE;
	if (leaving(q))
		return act_leave(c, q, NULL);
	if (q->by_hand)
		cm_hand_again(c, q);
	return false;
}

static bool
to_closed(struct eng_control *c, struct ctl_qp *q)
{
	if (q->by_hand && q->unopened)
		return to_idle(c, q);
	q->cm = CM_CLOSED;
	return leaving(q) ? act_leave(c, q, NULL) : false;
}

static bool
act_unreachable(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	tell(c, q, SHM_EV_UNREACHABLE, m->status);
	return to_idle(c, q);
}

/* The attempt has failed; an unenhanced one may follow. */
static bool
act_failed(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	if (!m->fall_back)
		return act_unreachable(c, q, m);
	sk_count(c->counters, ENG_FALL_BACK);
	cm_start_connect(c, q, m);
	return false;
}

static bool
act_rejected(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	tell_outcome(c, q, outcome(q, SHM_EV_REJECTED, m));
	return to_idle(c, q);
}

void
cm_abort(struct eng_control *c, struct ctl_qp *q, int how)
{
	struct ctl_msg *msg = command(c, q, ENG_CT_ABORT);

	q->cm = how == ENG_ABORT_UNANSWERED ? CM_GIVING_WAY : CM_ABORTING;
	msg->m.code = how;
	ctl_send_transport(c, q->transport, msg);
}

static bool
act_abort(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	cm_abort(c, q, 0);
	return false;
}

static bool
act_aborted(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	return to_idle(c, q);
}

/* ---- Beginnings ---- */

static bool
act_opened(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	q->conn = m->conn;
	q->cm = CM_OPENING;
	if (leaving(q) || q->given_up)
		return act_abort(c, q, NULL);
	if (q->request)
		cm_abort(c, q, ENG_ABORT_UNANSWERED);
	return false;
}

/* The attempt that was to give way has ended, or has been accepted by now. */
static bool
act_gave_way(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	if (m->status != -EBUSY)
		return to_idle(c, q);
	cm_hand_drop(c, q, ROFX_CROSSED);
	q->cm = CM_OPENING;
	return leaving(q) || q->given_up ? act_abort(c, q, NULL) : false;
}

/* The request that waits has gone; what is said of our own attempt is no news. */
static bool
act_dropped(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	if (m->cookie == 0)
		cm_accept_forget(c, q);
	return false;
}

static bool
act_start(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	struct ctl_msg *msg = command(c, q, ENG_CE_QP_START);

	cm_hand_drop(c, q, ROFX_CROSSED);
	msg->m.params = cm_params(c, q, true, &m->mpa);
	q->outcome = outcome(q, SHM_EV_ESTABLISHED, m);
	msg->m.params.emss = m->params.emss;
	msg->m.params.send_space = m->params.send_space;
	q->cm = CM_STARTING;
	ctl_send_stage(c, q->eng.stage, msg);
	return false;
}

/* The connection is dead, but our next command will name it: its index must not be used again
 * before. */
static bool
act_hold(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	if (q->held) {
		sk_count(c->counters, ENG_CM_STATE);
		return false;
	}
	q->held = m;
	return true;
}

static void
release_held(struct eng_control *c, struct ctl_qp *q)
{
	if (q->held)
		ctl_return(c, &c->transport[q->transport], q->held);
	q->held = NULL;
}

static bool
act_bind(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	q->cm = CM_BINDING;
	ctl_send_transport(c, q->transport, command(c, q, ENG_CT_BIND));
	release_held(c, q);
	return false;
}

static bool
act_accept(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	q->cm = CM_ACCEPTING;
	cm_accept_send(c, q, command(c, q, ENG_CT_ACCEPT));
	release_held(c, q);
	return false;
}

/* The engine stage could not start it. */
static bool
act_not_started(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	cm_accept_forget(c, q);
	free(q->outcome);
	q->outcome = NULL;
	tell(c, q, SHM_EV_UNREACHABLE, m->status);
	act_abort(c, q, NULL);
	release_held(c, q);
	return false;
}

/* ---- Through ---- */

static bool
act_disconnected(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	q->unopened = m->code != 0;
	tell(c, q, SHM_EV_DISCONNECTED, m->status);
	return to_closed(c, q);
}

/* It ended while a command about it is unanswered. */
static bool
act_ended_early(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	q->ended = true;
	q->unopened = m->code != 0;
	q->end_status = m->status;
	return false;
}

static bool
act_bound(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	struct ctl_event *ev = q->outcome;

	q->outcome = NULL;
	q->cm = CM_ESTABLISHED;
	if (leaving(q)) {
		free(ev);
		return act_leave(c, q, NULL);
	}
	cm_hand_up(c, q);
	tell_outcome(c, q, ev);
	if (!q->ended)
		return false;
	tell(c, q, SHM_EV_DISCONNECTED, q->end_status);
	return to_closed(c, q);
}

/* It ended before its start-up was through. */
static bool
act_never_up(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	q->unopened = m->code != 0;
	tell(c, q, SHM_EV_UNREACHABLE, m->status ? m->status : -ECONNRESET);
	return to_closed(c, q);
}

static bool
act_accepted(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	q->cm = CM_WAIT_PEER;
	if (q->ended) {
		tell(c, q, SHM_EV_UNREACHABLE, q->end_status ? q->end_status : -ECONNRESET);
		return to_closed(c, q);
	}
	return leaving(q) ? act_leave(c, q, NULL) : false;
}

static bool
act_up(struct eng_control *c, struct ctl_qp *q, struct eng_ctl *m)
{
	q->cm = CM_ESTABLISHED;
	if (leaving(q))
		return act_leave(c, q, NULL);
	cm_hand_up(c, q);
	tell_outcome(c, q, outcome(q, SHM_EV_ESTABLISHED, m));
	if (!q->ended)
		return false;
	tell(c, q, SHM_EV_DISCONNECTED, q->end_status);
	return to_closed(c, q);
}

/* ---- The table ---- */

static cm_action *const table[CM_STATES][CM_EVENTS] = {
	[CM_IDLE] =
		{
			[CM_EV_DELETE] = act_leave,
		},
	[CM_CONNECTING] =
		{
			[CM_EV_CONNECTED] = act_opened,
			[CM_EV_NOT_CONNECTED] = act_unreachable,
			[CM_EV_FAILED] = act_dropped,
			[CM_EV_DELETE] = act_wait,
		},
	[CM_OPENING] =
		{
			[CM_EV_UP] = act_start,
			[CM_EV_REJECTED] = act_rejected,
			[CM_EV_FAILED] = act_failed,
			[CM_EV_DELETE] = act_abort,
		},
	[CM_STARTING] =
		{
			[CM_EV_ABORTED] = act_late,
			[CM_EV_STARTED] = act_bind,
			[CM_EV_NOT_STARTED] = act_not_started,
			[CM_EV_FAILED] = act_hold,
			[CM_EV_DELETE] = act_wait,
		},
	[CM_BINDING] =
		{
			[CM_EV_ABORTED] = act_late,
			[CM_EV_BOUND] = act_bound,
			[CM_EV_ENDED] = act_ended_early,
			[CM_EV_FAILED] = act_late,
			[CM_EV_DELETE] = act_wait,
		},
	[CM_ACCEPT_STARTING] =
		{
			[CM_EV_STARTED] = act_accept,
			[CM_EV_NOT_STARTED] = act_not_started,
			[CM_EV_FAILED] = act_hold,
			[CM_EV_DELETE] = act_wait,
		},
	[CM_ACCEPTING] =
		{
			[CM_EV_ACCEPTED] = act_accepted,
			[CM_EV_UP] = act_up,
			[CM_EV_ENDED] = act_ended_early,
			[CM_EV_FAILED] = act_late,
			[CM_EV_DELETE] = act_wait,
		},
	[CM_WAIT_PEER] =
		{
			[CM_EV_UP] = act_up,
			[CM_EV_ENDED] = act_never_up,
			[CM_EV_FAILED] = act_late,
			[CM_EV_DELETE] = act_leave,
		},
	[CM_ESTABLISHED] =
		{
			[CM_EV_ABORTED] = act_late,
			[CM_EV_ACCEPTED] = act_late,
			[CM_EV_ENDED] = act_disconnected,
			[CM_EV_FAILED] = act_late,
			[CM_EV_DELETE] = act_leave,
		},
	[CM_CLOSED] =
		{
			[CM_EV_ABORTED] = act_late,
			[CM_EV_ACCEPTED] = act_late,
			[CM_EV_UP] = act_late,
			[CM_EV_FAILED] = act_late,
			[CM_EV_DELETE] = act_leave,
		},
	[CM_ABORTING] =
		{
			[CM_EV_ABORTED] = act_aborted,
			[CM_EV_UP] = act_late,
			[CM_EV_REJECTED] = act_late,
			[CM_EV_FAILED] = act_late,
			[CM_EV_DELETE] = act_wait,
		},
	[CM_DELETING] =
		{
			[CM_EV_DELETED] = act_deleted,
			[CM_EV_ACCEPTED] = act_late,
			[CM_EV_UP] = act_late,
			[CM_EV_FAILED] = act_late,
			[CM_EV_ENDED] = act_late,
			[CM_EV_ABORTED] = act_late,
		},
	[CM_WAITING] =
		{
			[CM_EV_ACCEPTED] = act_late,
			[CM_EV_UP] = act_late,
			[CM_EV_FAILED] = act_late,
			[CM_EV_DELETE] = act_leave,
		},
	[CM_GIVING_WAY] =
		{
			[CM_EV_ABORTED] = act_gave_way,
			[CM_EV_UP] = act_start,
			[CM_EV_REJECTED] = act_late,
			[CM_EV_FAILED] = act_dropped,
			[CM_EV_DELETE] = act_wait,
		},
	[CM_RESETTING] =
		{
			[CM_EV_RESET] = act_reset,
			[CM_EV_ACCEPTED] = act_late,
			[CM_EV_UP] = act_late,
			[CM_EV_FAILED] = act_late,
			[CM_EV_ENDED] = act_late,
			[CM_EV_ABORTED] = act_late,
			[CM_EV_DELETE] = act_wait,
		},
};

bool
cm_input(struct eng_control *c, struct ctl_qp *q, enum cm_event ev, struct eng_ctl *m)
{
	cm_action *act = table[q->cm][ev];

	if (!act) {
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

static void
answered(struct eng_control *c, struct ctl_msg *msg)
{
	struct ctl_qp *q = ctl_qp_of_cookie(c, msg->m.cookie);

	if (q)
		cm_input(c, q, answer_event(&msg->m), &msg->m);
	else
		sk_count(c->counters, ENG_STALE);
}

void
cm_start_connect(struct eng_control *c, struct ctl_qp *q, const struct eng_ctl *what)
{
	struct ctl_msg *msg;

	q->cm = CM_CONNECTING;
	q->ended = q->unopened = false;
	q->transport = (uint8_t)(q->eng.stage % c->cfg->ntransports);
	msg = command(c, q, ENG_CT_CONNECT);
	msg->m.tuple = what->tuple;
	msg->m.offer = what->offer;
	msg->m.fall_back = what->fall_back;
	msg->m.ask = cm_falcon_ask(c, q, &what->offer);
	msg->m.private_len = what->private_len;
	memcpy(msg->m.private_data, what->private_data, what->private_len);
	ctl_send_transport(c, q->transport, msg);
}

void
cm_start_accept(struct eng_control *c, struct ctl_qp *q, const struct iw_params *params)
{
	struct ctl_msg *msg = command(c, q, ENG_CE_QP_START);

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
	if (!q)
		r = cm_request_of_conn(c, m->transport, m->conn);
	if (r)
		q = r->accepting;
	if (r && !q)
		cm_request_free(c, r);
	else if (!q)
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
