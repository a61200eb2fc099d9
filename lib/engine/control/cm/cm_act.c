/* SPDX-License-Identifier: BSD-3-Clause */
/* The actions of the table in cm.c: each handles one event of a connection in one state. */
#include <errno.h>
#include <stdlib.h>

#include "cm_act_priv.h"

/* ---- Commands and events that are sent ---- */

/* The pool cannot be empty: clients' commands and peers' requests leave a reserve, and each answer
 * causes at most one new command. */
struct ctl_msg *
cm_command(struct eng_control *c, struct cm_conn *q, enum eng_ctl_type type)
{
	struct ctl_msg *msg = ctl_msg_get(c, type, cm_answered);

	msg->m.cookie = cm_conn_cookie(q);
	msg->m.qp = q->qp;
	ctl_msg_charge(c, msg, q->client);
	msg->m.client = cm_client_of(q);
	msg->m.user = cm_user_of(q);
	msg->m.conn = q->conn;
	msg->m.transport = q->transport;
	msg->m.stage = q->qp->stage;
	msg->m.qp_index = q->qp_index;
	return msg;
}

struct ctl_msg *
cm_start_command(struct eng_control *c, struct cm_conn *q)
{
	if (c->a.link != NULL)
		c->a.link(c->a.wake_arg, q->transport, q->qp->stage);
	return cm_command(c, q, ENG_CE_QP_START);
}

static void
cm_act_send_event(struct eng_control *c, struct cm_conn *q, enum shm_op op, int status)
{
	struct shm_msg m = {.op = (uint16_t)op, .status = status};

	if (q->dying || q->modified || q->client == NULL)
		return;
	m.body.cm.qp = q->qp->handle;
	m.body.cm.listener = m.body.cm.request = SHM_NONE;
	ctl_client_send(c, q->client, &m, offsetof(struct shm_cm, private_data));
}

/* Returns the client's event for the outcome of a start-up, with the peer's private data. */
static struct ctl_event *
cm_act_outcome(const struct cm_conn *q, enum shm_op op, const struct eng_ctl *m)
{
	struct shm_msg msg = {.op = (uint16_t)op};
	struct shm_cm *cm = &msg.body.cm;

	cm->qp = q->qp->handle;
	cm->listener = cm->request = SHM_NONE;
	cm->local = m->peer.tuple.laddr;
	cm->remote = m->peer.tuple.raddr;
	cm->lport = m->peer.tuple.lport;
	cm->rport = m->peer.tuple.rport;
	cm_describe(cm, &m->peer.outcome, q->ird, q->ord, m);
	cm->dialect = q->draft_ext ? SHM_DIALECT_DRAFT : SHM_DIALECT_RFC7306;
	return ctl_event_new(
		&msg, (uint32_t)offsetof(struct shm_cm, private_data) + cm->private_len);
}

/* Returns the client's event for the answer to a lookup of a datagram service. */
static struct ctl_event *
cm_act_found_event(const struct cm_conn *q, const struct eng_ctl *m)
{
	struct shm_msg msg = {.op = SHM_EV_ESTABLISHED};
	struct shm_cm *cm = &msg.body.cm;

	cm->qp = q->qp->handle;
	cm->listener = cm->request = SHM_NONE;
	cm->local = m->lookup.tuple.laddr;
	cm->remote = m->lookup.tuple.raddr;
	cm->lport = m->lookup.tuple.lport;
	cm->rport = m->lookup.service;
	cm->space = SHM_SPACE_UDP;
	cm->remote_qpn = m->lookup.qpn;
	cm->remote_qkey = m->lookup.qkey;
	cm_private(cm, m);
	return ctl_event_new(
		&msg, (uint32_t)offsetof(struct shm_cm, private_data) + cm->private_len);
}

/* Sends the event, unless the program has modified the QP itself: such a program receives no events
 * about connections. */
static void
cm_act_send_outcome(struct eng_control *c, struct cm_conn *q, struct ctl_event *ev)
{
	if (q->modified)
		free(ev);
	else
		ctl_client_send_event(c, q->client, ev);
}

/* ---- The end of connections and QPs ---- */

static bool
leaving(const struct cm_conn *q)
{
	return q->dying || q->reset != NULL;
}

bool
cm_act_leave(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	cm_modified_drop(c, q, ROFX_NO_QP);
	cm_modified_forget(c, q);
	cm_again_drop(q);
	q->state = q->dying ? CM_DELETING : CM_RESETTING;
	ctl_send_stage(
		c, q->qp->stage, cm_command(c, q, q->dying ? ENG_CE_QP_DEL : ENG_CE_QP_RESET));
	return false;
}

static void
reset_reply(struct eng_control *c, struct cm_conn *q, int status)
{
	struct ctl_op *op = q->reset;

	q->reset = NULL;
	if (op != NULL && status < 0)
		ctl_refuse(c, &op->reply, status, "the QP could not be reset");
	if (op != NULL)
		ctl_op_reply(c, op);
}

bool
cm_act_deleted(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	struct ctl_op *op = q->op;

	reset_reply(c, q, -ECANCELED);
	q->free(c, q);
	ctl_op_reply(c, op);
	return false;
}

bool
cm_act_reset(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	q->state = CM_IDLE;
	q->attempt++;
	q->modified = q->given_up = q->waits = q->ended = q->reserved = false;
	q->ird = q->ord = 0;
	q->move = (struct shm_qp_move){.state = RD_QP_RESET};
	q->class = q->chosen;
	ctl_class_fill(&q->class, &q->client->class);
	reset_reply(c, q, m->status);
	return q->dying ? cm_act_leave(c, q, NULL) : false;
}

bool
cm_act_wait(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	return false;
}

/* Ignores an event that has crossed a command of the control stage. */
bool
cm_act_late(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	sk_count(c->counters, ENG_STALE);
	return false;
}

/* The attempt has ended without a connection. The QP may make another one. */
static bool
to_idle(struct eng_control *c, struct cm_conn *q)
{
	q->state = CM_IDLE;
	cm_again_drop(q);
	if (leaving(q))
		return cm_act_leave(c, q, NULL);
	if (q->modified)
		cm_modified_again(c, q);
	return false;
}

static bool
to_closed(struct eng_control *c, struct cm_conn *q)
{
	if (cm_is_host(q) && !leaving(q)) {
		q->ended = false;
		cm_modified_again(c, q);
		return false;
	}
	if (q->modified && q->unopened)
		return to_idle(c, q);
	q->state = CM_CLOSED;
	return leaving(q) ? cm_act_leave(c, q, NULL) : false;
}

static bool
cm_act_unreachable(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	cm_act_send_event(c, q, SHM_EV_UNREACHABLE, m->status);
	return to_idle(c, q);
}

/* If the client has chosen the local port, the home of the connection may be another transport
 * stage: that stage receives the command instead. */
bool
cm_act_not_opened(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	if (m->status != -EXDEV || leaving(q))
		return cm_act_unreachable(c, q, m);
	cm_connect_at(c, q, m, m->transport);
	return false;
}

/* Makes an unenhanced attempt after an enhanced one has failed, if the offer allows it. Repeats an
 * attempt that no listener has answered. */
bool
cm_act_failed(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	if (m->status == -ECONNREFUSED && !leaving(q) && cm_again_later(c, q))
		return false;
	if (!m->connect.offer.retry)
		return cm_act_unreachable(c, q, m);
	sk_count(c->counters, ENG_FALL_BACK);
	cm_start_connect(c, q, m);
	return false;
}

bool
cm_act_rejected(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	cm_act_send_outcome(c, q, cm_act_outcome(q, SHM_EV_REJECTED, m));
	return to_idle(c, q);
}

bool
cm_act_found(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	cm_act_send_outcome(c, q, cm_act_found_event(q, m));
	return to_idle(c, q);
}

void
cm_abort(struct eng_control *c, struct cm_conn *q, int how)
{
	struct ctl_msg *msg = cm_command(c, q, ENG_CT_ABORT);

	q->state = how == ENG_ABORT_UNANSWERED ? CM_GIVING_WAY : CM_ABORTING;
	msg->m.abort.how = how;
	ctl_send_transport(c, q->transport, msg);
}

bool
cm_act_abort(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	cm_abort(c, q, 0);
	return false;
}

bool
cm_act_aborted(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	return to_idle(c, q);
}

/* ---- The start of connections ---- */

bool
cm_act_opened(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	q->conn = m->conn;
	q->state = CM_OPENING;
	if (leaving(q) || q->given_up)
		return cm_act_abort(c, q, NULL);
	if (q->request != NULL)
		cm_abort(c, q, ENG_ABORT_UNANSWERED);
	return false;
}

/* The attempt that gives way has ended; or -EBUSY: the peer has accepted it meanwhile, so the
 * request is rejected instead. */
bool
cm_act_gave_way(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	if (m->status != -EBUSY)
		return to_idle(c, q);
	cm_modified_drop(c, q, ROFX_CROSSED);
	q->state = CM_OPENING;
	return leaving(q) || q->given_up ? cm_act_abort(c, q, NULL) : false;
}

/* Frees the request if the notice is about it (cookie 0). A notice about the attempt of this side
 * needs no action, since that attempt ends anyway. */
bool
cm_act_dropped(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	if (m->cookie == 0)
		cm_accept_forget(c, q);
	return false;
}

bool
cm_act_start(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	struct ctl_msg *msg = cm_start_command(c, q);

	cm_modified_drop(c, q, ROFX_CROSSED);
	cm_again_drop(q);
	msg->m.start = cm_start(c, q, true, &m->peer);
	q->outcome = cm_act_outcome(q, SHM_EV_ESTABLISHED, m);
	q->state = CM_STARTING;
	ctl_send_stage(c, q->qp->stage, msg);
	return false;
}

/* The connection is dead, but the next command of the control stage names it. Keeps the notice
 * until then, so that the transport stage does not use the index for another connection. */
bool
cm_act_hold(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	if (q->held != NULL) {
		sk_count(c->counters, ENG_CM_STATE);
		return false;
	}
	q->held = m;
	return true;
}

static void
cm_act_release_held(struct eng_control *c, struct cm_conn *q)
{
	if (q->held != NULL)
		ctl_return(c, &c->transport[q->transport], q->held);
	q->held = NULL;
}

bool
cm_act_bind(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	q->state = CM_BINDING;
	ctl_send_transport(c, q->transport, cm_command(c, q, ENG_CT_BIND));
	cm_act_release_held(c, q);
	return false;
}

bool
cm_act_accept(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	q->state = CM_ACCEPTING;
	cm_accept_send(c, q, cm_command(c, q, ENG_CT_ACCEPT));
	cm_act_release_held(c, q);
	return false;
}

/* Aborts the connection, since the engine stage could not start the QP. */
bool
cm_act_not_started(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	cm_accept_forget(c, q);
	free(q->outcome);
	q->outcome = NULL;
	cm_act_send_event(c, q, SHM_EV_UNREACHABLE, m->status);
	cm_act_abort(c, q, NULL);
	cm_act_release_held(c, q);
	return false;
}

/* ---- Bound connections ---- */

bool
cm_act_disconnected(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	q->unopened = m->event.code != 0;
	cm_act_send_event(c, q, SHM_EV_DISCONNECTED, m->status);
	return to_closed(c, q);
}

/* Notes that the stream has ended while a command about the connection is unanswered. */
bool
cm_act_ended_early(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	q->ended = true;
	q->unopened = m->event.code != 0;
	q->end_status = m->status;
	return false;
}

/* Releases the started QP, since the transport stage has no connection for it: the stream ends when
 * the engine stage has answered, as if it had ended early. */
bool
cm_act_unbind(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	struct ctl_msg *msg = cm_command(c, q, ENG_CE_QP_CLOSE);

	msg->m.close.how = ENG_CLOSE_UNBOUND;
	ctl_send_stage(c, q->qp->stage, msg);
	return false;
}

bool
cm_act_bound(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	struct ctl_event *ev = q->outcome;

	q->outcome = NULL;
	q->state = CM_ESTABLISHED;
	if (leaving(q)) {
		free(ev);
		return cm_act_leave(c, q, NULL);
	}
	cm_modified_up(c, q);
	cm_act_send_outcome(c, q, ev);
	if (!q->ended)
		return false;
	cm_act_send_event(c, q, SHM_EV_DISCONNECTED, q->end_status);
	return to_closed(c, q);
}

/* Returns whether the notice that the connection is established waits for a later turn. */
static bool
is_up(const struct eng_control *c, const struct cm_conn *q)
{
	return ctl_notice_waits(c, q->transport, ENG_TC_ESTABLISHED, cm_conn_cookie(q));
}

/* The stream has ended before the start-up was complete, unless the control stage only has not
 * handled the notice about that. */
bool
cm_act_never_up(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	if (is_up(c, q))
		return cm_act_ended_early(c, q, m);
	q->unopened = m->event.code != 0;
	cm_act_send_event(c, q, SHM_EV_UNREACHABLE, m->status ? m->status : -ECONNRESET);
	return to_closed(c, q);
}

bool
cm_act_accepted(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	q->state = CM_WAIT_PEER;
	if (q->ended && !is_up(c, q)) {
		cm_act_send_event(
			c, q, SHM_EV_UNREACHABLE, q->end_status ? q->end_status : -ECONNRESET);
		return to_closed(c, q);
	}
	return leaving(q) ? cm_act_leave(c, q, NULL) : false;
}

bool
cm_act_up(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m)
{
	q->state = CM_ESTABLISHED;
	if (leaving(q))
		return cm_act_leave(c, q, NULL);
	cm_modified_up(c, q);
	cm_act_send_outcome(c, q, cm_act_outcome(q, SHM_EV_ESTABLISHED, m));
	if (!q->ended)
		return false;
	cm_act_send_event(c, q, SHM_EV_DISCONNECTED, q->end_status);
	return to_closed(c, q);
}
