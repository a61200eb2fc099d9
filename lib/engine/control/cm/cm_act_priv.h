/* SPDX-License-Identifier: BSD-3-Clause */
/* The actions of a connection's state machine (cm_act.c), which the table in cm.c refers to. */
#ifndef SAKER_ENGINE_CM_ACT_PRIV_H
#define SAKER_ENGINE_CM_ACT_PRIV_H

#include "cm.h"

/* Handles one event in one state. `m` is the message that caused the event, or NULL for
 * CM_EV_DELETE. Returns whether the connection keeps `m`, a notice, to return it later. */
typedef bool cm_action(struct eng_control *c, struct cm_conn *q, struct eng_ctl *m);

cm_action cm_act_abort, cm_act_aborted, cm_act_accept, cm_act_accepted, cm_act_bind, cm_act_bound,
	cm_act_unbind, cm_act_deleted, cm_act_disconnected, cm_act_dropped, cm_act_ended_early,
	cm_act_failed, cm_act_found, cm_act_gave_way, cm_act_hold, cm_act_late, cm_act_leave,
	cm_act_never_up, cm_act_not_opened, cm_act_not_started, cm_act_opened, cm_act_rejected,
	cm_act_reset, cm_act_start, cm_act_up, cm_act_wait;

/* Returns a command about the connection, with its cookie, indices and QP filled in. The answer
 * goes to cm_answered(). */
struct ctl_msg *cm_command(struct eng_control *c, struct cm_conn *q, enum eng_ctl_type type);
/* Returns ENG_CE_QP_START, after it has made the rings between the stages of the connection. */
struct ctl_msg *cm_start_command(struct eng_control *c, struct cm_conn *q);
/* Turns an answered command into an event of its connection; a ctl_done. */
void cm_answered(struct eng_control *c, struct ctl_msg *msg);

#endif
