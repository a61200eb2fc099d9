/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs modified by the program. No command requests their connections: the QP identifies its peer by
 * GID and QP number. From RTR on, the QP accepts the request of its peer. From RTS on, it also
 * makes attempts itself: frequent ones while it has work, rare ones otherwise, until the peer is
 * ready. doc/falcon-cm.md 9 defines the result when both sides make an attempt. A QP whose
 * connection has ended makes no further attempt: its work fails when the patience for the peer is
 * over. Host connections are made in the same way.
 */
#include <errno.h>

#include "cm_kind_priv.h"

#define MS_NS         1000000ull
#define PAUSE_NS      (10 * MS_NS)   /* after the first failed attempt; doubles each time */
#define PAUSE_MAX_NS  (4000 * MS_NS) /* longest pause while the QP has no work */
#define PAUSE_WORK_NS (250 * MS_NS)  /* longest pause while the QP has work */
#define ATTEMPT_NS    (5000 * MS_NS) /* longest attempt */
#define RETRY_NS      MS_NS          /* pause while no message is free */
#define TIMER_BUDGET  8              /* timers in a turn */
#define PACE_NS       50000ull       /* least time between two attempts of one user */
#define CROSSED_NS    (1000 * MS_NS) /* longest time between two crossing requests */
#define TIMEOUT_NS    4096           /* unit of verbs' timeout: 4096 ns * 2^timeout */

/* ---- Times ---- */

static void
rearm(struct eng_control *c, struct cm_conn *q)
{
	uint64_t at = q->waits ? q->patience_end : SK_NEVER;

	if (q->state == CM_WAITING && q->move.state == RD_QP_RTS)
		at = SK_MIN(at, q->attempt_at);
	if (q->state == CM_CONNECTING || q->state == CM_OPENING)
		at = SK_MIN(at, q->attempt_end);
	sk_timer_set(&c->wheel, &q->timer, at);
}

/* Returns when the patience for the peer ends: the time for which verbs would retransmit a message,
 * but at least c->patience_ns, since that time was not chosen for making connections. */
static uint64_t
patience_end(const struct eng_control *c, const struct cm_conn *q)
{
	const struct shm_qp_move *m = &q->move;
	uint64_t ns = ((uint64_t)TIMEOUT_NS << m->timeout) * (m->retry + 1u);

	if (m->state != RD_QP_RTS || m->timeout == 0)
		return SK_NEVER;
	return c->now + SK_MAX(ns, c->patience_ns);
}

/* Makes the next attempt due: now, or at the time that it has reserved. Repetitions neither delay
 * the attempt nor reserve another time, for which the others of the user would wait. */
static void
attempt_soon(struct eng_control *c, struct cm_conn *q)
{
	q->pause = PAUSE_NS;
	if (!q->reserved)
		q->attempt_at = SK_MIN(q->attempt_at, c->now);
	rearm(c, q);
}

static void
modified_waits(struct eng_control *c, struct cm_conn *q)
{
	if (!q->modified || q->given_up || q->state == CM_ESTABLISHED)
		return;
	if (!q->waits)
		q->patience_end = patience_end(c, q);
	q->waits = true;
	attempt_soon(c, q);
}

bool
cm_notice_waits(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	modified_waits(c, m->qp->control);
	return true;
}

void
cm_modified_rts(struct eng_control *c, struct cm_conn *q)
{
	if (q->waits)
		q->patience_end = patience_end(c, q);
	attempt_soon(c, q);
}

void
cm_modified_up(struct eng_control *c, struct cm_conn *q)
{
	q->waits = false;
	q->attempt_end = c->now;
	sk_timer_stop(&c->wheel, &q->timer);
}

/* ---- The request that an attempt gives way to ---- */

void
cm_modified_drop(struct eng_control *c, struct cm_conn *q, enum rofx_reason why)
{
	struct cm_request *r = q->request;
	struct eng_ctl m = {0};

	if (r == NULL)
		return;
	m.transport = r->transport;
	m.conn = r->conn;
	cm_request_refuse(c, &m, why);
	cm_accept_forget(c, q);
}

void
cm_modified_forget(struct eng_control *c, struct cm_conn *q)
{
	sk_timer_stop(&c->wheel, &q->timer);
	cm_accept_forget(c, q);
}

/* Makes the offer that answers a request. Returns ROFX_NONE, or the reason for which the request
 * must be rejected: the configuration has changed and does not allow the modes of the QP. */
static enum rofx_reason
answer_offer(struct eng_control *c, const struct cm_conn *q, struct eng_offer *out)
{
	int rc = cm_modified_offer(c, q, out);

	return rc == 0 ? ROFX_NONE : rc == -EACCES ? ROFX_NO_PSP : ROFX_ERRORS;
}

/* Accepts q->request. Returns false after rejecting it. */
static bool
modified_accept(struct eng_control *c, struct cm_conn *q)
{
	struct cm_request *r = q->request;
	enum rofx_reason why = answer_offer(c, q, &r->offer);
	struct eng_start start;

	if (why != ROFX_NONE) {
		cm_modified_drop(c, q, why);
		return false;
	}
	start = cm_agree(c, q, r);
	q->transport = r->transport;
	q->conn = r->conn;
	cm_start_accept(c, q, &start);
	rearm(c, q);
	return true;
}

/* ---- Attempts ---- */

void
cm_modified_again(struct eng_control *c, struct cm_conn *q)
{
	uint64_t most = q->waits ? PAUSE_WORK_NS : PAUSE_MAX_NS;

	if (q->given_up) {
		q->state = CM_CLOSED;
		return;
	}
	q->state = CM_WAITING;
	if (q->request != NULL && modified_accept(c, q))
		return;
	q->attempt_at = c->now + q->pause;
	q->reserved = false;
	q->pause = SK_MIN(2 * q->pause, most);
	rearm(c, q);
}

void
cm_modified_give_up(struct eng_control *c, struct cm_conn *q)
{
	q->given_up = true;
	q->waits = false;
	sk_timer_stop(&c->wheel, &q->timer);
	if (q->state == CM_WAITING)
		q->state = CM_CLOSED;
	else if (q->state == CM_OPENING)
		cm_abort(c, q, 0);
	if (q->state == CM_CONNECTING || q->state == CM_GIVING_WAY)
		cm_modified_drop(c, q, ROFX_NO_QP);
}

/* Fails the QP, since the peer did not appear in time, or the configuration does not allow its
 * modes any more. */
static void
cm_modified_fail(struct eng_control *c, struct cm_conn *q)
{
	struct ctl_msg *msg = ctl_msg_get(c, ENG_CE_QP_FAIL, NULL);

	msg->m.qp = q->qp;
	msg->m.client = cm_client_of(q);
	ctl_send_stage(c, q->qp->stage, msg);
	if (!cm_is_host(q)) {
		cm_modified_give_up(c, q);
		return;
	}
	q->waits = false; /* a host connection loses the waiting datagrams, and tries again */
	rearm(c, q);
}

static void
attempt(struct eng_control *c, struct cm_conn *q)
{
	struct eng_ctl what = {.type = ENG_CT_CONNECT,
		.connect = {.tuple = {.laddr = q->move.local,
				    .raddr = q->move.remote,
				    .rport = cm_kinds[q->qp->kind]->qpn_port(c),
				    .vlan = ETH_NO_VLAN}}};

	if (cm_modified_offer(c, q, &what.connect.offer) < 0) {
		cm_modified_fail(c, q);
		if (cm_is_host(q))
			cm_modified_again(c, q);
		return;
	}
	q->attempt_end = c->now + ATTEMPT_NS;
	cm_start_connect(c, q, &what);
}

/* A connection that ends does not return the time that it has reserved. Therefore a user's next
 * time is at most so far ahead as if each of its connections had reserved one. */
bool
cm_attempt_is_paced(struct eng_control *c, struct cm_conn *q)
{
	uint16_t user = cm_user_of(q);
	uint64_t most = c->now + PACE_NS * c->share[CTL_POOL_QP].used[user];
	struct ctl_user *u = &c->users[user];

	if (!q->reserved) {
		q->attempt_at = SK_MAX(c->now, SK_MIN(u->attempt_at, most));
		u->attempt_at = q->attempt_at + PACE_NS;
	}
	q->reserved = q->attempt_at > c->now;
	return !q->reserved;
}

static void
cm_modified_fire(void *ctx, struct sk_timer *timer, uint64_t now)
{
	struct eng_control *c = ctx;
	struct cm_conn *q = SK_CONTAINER(timer, struct cm_conn, timer);

	if (!ctl_has_reserve(c)) {
		sk_timer_set(&c->wheel, timer, now + RETRY_NS);
		return;
	}
	if (q->state == CM_REFUSED) {
		cm_again_fire(c, q);
		return;
	}
	if (q->waits && now >= q->patience_end) {
		cm_modified_fail(c, q);
		return;
	}
	if (q->state == CM_WAITING && now >= q->attempt_at) {
		if (cm_attempt_is_paced(c, q))
			attempt(c, q);
	} else if (q->state == CM_OPENING && now >= q->attempt_end) {
		cm_abort(c, q, 0);
	} else if (q->state == CM_CONNECTING) {
		q->attempt_end = now + RETRY_NS;
	}
	rearm(c, q);
}

bool
cm_modified_poll(struct eng_control *c)
{
	return sk_wheel_poll(&c->wheel, c->now, TIMER_BUDGET, cm_modified_fire, c) > 0;
}

/* ---- Requests that name a QP ---- */

static const struct eng_falcon_ask *
ask_of(const struct eng_ctl *m)
{
	return &m->peer.outcome.falcon;
}

/* Returns the connection of the requested QP if the program has named exactly this peer, or NULL. A
 * peer that guesses a QP number receives the same answer as for a QP that does not exist. */
static struct cm_conn *
modified_addressed(const struct eng_control *c, const struct eng_ctl *m)
{
	const struct tcp_tuple *tuple = &m->peer.tuple;
	struct cm_conn *q = ctl_conn_of_qpn(c, ask_of(m)->to_qpn);
	const struct shm_qp_move *w;

	if (q == NULL || !q->modified || q->given_up || q->dying || q->reset != NULL ||
		q->state == CM_CLOSED || q->client->phase != CTL_LIVE)
		return NULL;
	w = &q->move;
	if (w->remote_qpn != ask_of(m)->qpn || !sk_addr_eq(&w->remote, &tuple->raddr))
		return NULL;
	return sk_addr_is_any(&w->local) || sk_addr_eq(&w->local, &tuple->laddr) ? q : NULL;
}

/* Returns the host connection that another host requests, or NULL. If there is an established one,
 * the two requests have crossed, or the other host has restarted and lost its end. In the second
 * case the old connection is closed, and the next request of that host succeeds. */
static struct cm_conn *
of_host(struct eng_control *c, const struct eng_ctl *m)
{
	bool ordered = ask_of(m)->ordering == ROF_ORDER_STRONG;
	uint32_t number = ask_of(m)->to_qpn;
	struct ctl_host *h = NULL;
	struct cm_conn *q;
	struct ctl_msg *msg;

	if (number < CM_HOST_NUMBERS && ask_of(m)->qpn == number)
		h = cm_host_get(c, &m->peer.tuple.raddr, ordered, number);
	if (h == NULL)
		return NULL;
	q = &h->conn;
	if (q->state == CM_ESTABLISHED && c->now > q->attempt_end + CROSSED_NS) {
		msg = ctl_msg_get(c, ENG_CE_QP_CLOSE, NULL);
		msg->m.qp = q->qp;
		msg->m.close.how = ENG_CLOSE_ABORT;
		ctl_send_stage(c, q->qp->stage, msg);
	}
	return q;
}

/* Returns which of two crossing requests survives. */
static enum rofx_crossing
crossing(const struct eng_ctl *m)
{
	const struct rofx_side ours = {.gid = m->peer.tuple.laddr, .qpn = ask_of(m)->to_qpn};
	const struct rofx_side theirs = {.gid = m->peer.tuple.raddr, .qpn = ask_of(m)->qpn};

	return rofx_cross(&ours, &theirs);
}

/* Accepts the request of a self-connected QP. */
static void
accept_self(struct eng_control *c, const struct eng_ctl *m)
{
	struct ctl_msg *msg = ctl_msg_get(c, ENG_CT_SELF, NULL);

	msg->m.conn = m->conn;
	ctl_send_transport(c, m->transport, msg);
}

/* Makes the QP accept the request, now or when its own attempt has ended. Returns ROFX_NONE, or the
 * reason for which the request must be rejected. */
static enum rofx_reason
cm_modified_take(struct eng_control *c, struct cm_conn *q, const struct eng_ctl *m)
{
	struct eng_offer offer;
	bool begun = q->state == CM_CONNECTING || q->state == CM_OPENING;
	enum rofx_reason why = answer_offer(c, q, &offer);

	if (why != ROFX_NONE)
		return why;
	if (ask_of(m)->transport != offer.falcon.transport)
		return ROFX_TRANSPORT;
	if (begun && crossing(m) == ROFX_SELF) {
		accept_self(c, m);
		return ROFX_NONE;
	}
	if (q->request != NULL || (q->state != CM_WAITING && (!begun || crossing(m) == ROFX_OURS)))
		return ROFX_CROSSED;
	q->request = cm_request_new(c, q->client, m);
	if (q->request == NULL)
		return ROFX_NO_RESOURCE;
	q->request->accepting = q;
	if (q->state == CM_WAITING)
		modified_accept(c, q);
	else if (q->state == CM_OPENING)
		cm_abort(c, q, ENG_ABORT_UNANSWERED);
	return ROFX_NONE; /* CM_CONNECTING: the attempt is aborted when its index is known */
}

void
cm_modified_request(struct eng_control *c, const struct eng_ctl *m)
{
	bool host = ask_of(m)->transport == ROF_UD;
	struct cm_conn *q = host ? of_host(c, m) : modified_addressed(c, m);
	enum rofx_reason why = q != NULL ? cm_modified_take(c, q, m) : ROFX_NO_QP;

	if (why != ROFX_NONE)
		cm_request_refuse(c, m, why);
}
