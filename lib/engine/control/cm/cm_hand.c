/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs that a program moves itself: whose connection nobody asks for, and which finds its peer by
 * (GID, QPN). From RTR on it takes its peer's request; from RTS on it begins, too, again and again
 * while the peer is not ready, and rarely while there is no work. doc/falcon-cm.md 9 says what
 * happens when both begin.
 */
#include <errno.h>

#include "cm_priv.h"

#define MS_NS         1000000ull
#define PAUSE_NS      (10 * MS_NS)   /* after the first attempt that failed; then twice as long */
#define PAUSE_MAX_NS  (4000 * MS_NS) /* while there is nothing to send */
#define PAUSE_WORK_NS (250 * MS_NS)  /* while there is */
#define ATTEMPT_NS    (5000 * MS_NS)
#define RETRY_NS      MS_NS /* while the control stage is short of messages */
#define TIMER_BUDGET  64
#define CROSSED_NS    (1000 * MS_NS) /* after which a request does not cross one of ours */
#define TIMEOUT_NS    4096           /* of verbs, to the power of its `timeout` */

/* ---- When ---- */

static void
rearm(struct eng_control *c, struct ctl_qp *q)
{
	uint64_t at = q->waits ? q->patience_end : SK_NEVER;

	if (q->cm == CM_WAITING && q->move.state == RD_QP_RTS)
		at = SK_MIN(at, q->attempt_at);
	if (q->cm == CM_CONNECTING || q->cm == CM_OPENING)
		at = SK_MIN(at, q->attempt_end);
	sk_timer_set(&c->wheel, &q->timer, at);
}

/* As long as a message would be tried again, but connections are not made for that. */
static uint64_t
patience_end(const struct eng_control *c, const struct ctl_qp *q)
{
	const struct shm_qp_move *m = &q->move;
	uint64_t ns = ((uint64_t)TIMEOUT_NS << m->timeout) * (m->retry + 1u);

	if (m->state != RD_QP_RTS || m->timeout == 0)
		return SK_NEVER;
	return c->now + SK_MAX(ns, c->cfg->falcon.patience_ns);
}

void
cm_hand_waits(struct eng_control *c, struct ctl_qp *q)
{
	if (!q->by_hand || q->given_up || q->cm == CM_ESTABLISHED || q->cm == CM_CLOSED)
		return;
	if (!q->waits)
		q->patience_end = patience_end(c, q);
	q->waits = true;
	q->pause = PAUSE_NS;
	q->attempt_at = c->now;
	rearm(c, q);
}

void
cm_hand_rts(struct eng_control *c, struct ctl_qp *q)
{
	if (q->waits)
		q->patience_end = patience_end(c, q);
	q->pause = PAUSE_NS;
	q->attempt_at = c->now;
	rearm(c, q);
}

void
cm_hand_up(struct eng_control *c, struct ctl_qp *q)
{
	q->waits = false;
	q->attempt_end = c->now;
	sk_timer_stop(&c->wheel, &q->timer);
}

/* ---- The request that an attempt gives way to ---- */

void
cm_hand_drop(struct eng_control *c, struct ctl_qp *q, enum rofx_reason why)
{
	struct cm_request *r = q->request;
	const struct eng_ctl m = {
		.transport = r != NULL ? r->transport : 0, .conn = r != NULL ? r->conn : 0};

	if (r == NULL)
		return;
	cm_request_refuse(c, &m, why);
	cm_accept_forget(c, q);
}

void
cm_hand_forget(struct eng_control *c, struct ctl_qp *q)
{
	sk_timer_stop(&c->wheel, &q->timer);
	cm_accept_forget(c, q);
}

static void
cm_hand_offer(const struct eng_control *c, const struct ctl_qp *q, struct mpa_offer *out)
{
	const struct eng_limits *l = &c->cfg->limits;

	*out = (struct mpa_offer){.revision = 2, .ird = SK_MIN(q->move.ird, l->ird)};
	/* Until RTS the program has not said how much it will ask for. */
	out->ord = q->move.state == RD_QP_RTS ? SK_MIN(q->move.ord, l->ord) : l->ord;
}

static void
accept(struct eng_control *c, struct ctl_qp *q)
{
	struct cm_request *r = q->request;
	struct mpa_result mpa = r->mpa;
	struct iw_params params;

	cm_hand_offer(c, q, &r->offer);
	mpa_result_accept(&mpa, &r->offer);
	params = cm_params(c, q, false, &mpa);
	q->transport = r->transport;
	q->conn = r->conn;
	cm_start_accept(c, q, &params);
	rearm(c, q);
}

/* ---- Attempts ---- */

void
cm_hand_again(struct eng_control *c, struct ctl_qp *q)
{
	uint64_t most = q->waits ? PAUSE_WORK_NS : PAUSE_MAX_NS;

	if (q->given_up) {
		q->cm = CM_CLOSED;
		return;
	}
	q->cm = CM_WAITING;
	if (q->request != NULL) {
		accept(c, q);
		return;
	}
	q->attempt_at = c->now + q->pause;
	q->pause = SK_MIN(2 * q->pause, most);
	rearm(c, q);
}

static void
attempt(struct eng_control *c, struct ctl_qp *q)
{
	struct eng_ctl what = {.tuple = {.laddr = q->move.local,
				       .raddr = q->move.remote,
				       .rport = c->cfg->falcon.port,
				       .vlan = ETH_NO_VLAN}};

	cm_hand_offer(c, q, &what.offer);
	q->attempt_end = c->now + ATTEMPT_NS;
	cm_start_connect(c, q, &what);
}

void
cm_hand_give_up(struct eng_control *c, struct ctl_qp *q)
{
	q->given_up = true;
	q->waits = false;
	sk_timer_stop(&c->wheel, &q->timer);
	if (q->cm == CM_WAITING)
		q->cm = CM_CLOSED;
	else if (q->cm == CM_OPENING)
		cm_abort(c, q, 0);
	if (q->cm == CM_CONNECTING || q->cm == CM_GIVING_WAY)
		cm_hand_drop(c, q, ROFX_NO_QP);
}

/* The peer has had its time. */
static void
cm_hand_fail(struct eng_control *c, struct ctl_qp *q)
{
	struct ctl_msg *msg = ctl_msg_get(c, ENG_CE_QP_FAIL, NULL);

	msg->m.qp = &q->eng;
	msg->m.client = &q->client->eng;
	ctl_send_stage(c, q->eng.stage, msg);
	if (q->host == NULL) {
		cm_hand_give_up(c, q);
		return;
	}
	q->waits = false; /* of hosts: what waited is lost, and it is tried again */
	rearm(c, q);
}

static void
cm_hand_fire(void *ctx, struct sk_timer *timer, uint64_t now)
{
	struct eng_control *c = ctx;
	struct ctl_qp *q = SK_CONTAINER(timer, struct ctl_qp, timer);

	if (!ctl_has_reserve(c)) {
		sk_timer_set(&c->wheel, timer, now + RETRY_NS);
		return;
	}
	if (q->waits && now >= q->patience_end) {
		cm_hand_fail(c, q);
		return;
	}
	if (q->cm == CM_WAITING && now >= q->attempt_at)
		attempt(c, q);
	else if (q->cm == CM_OPENING && now >= q->attempt_end)
		cm_abort(c, q, 0);
	else if (q->cm == CM_CONNECTING)
		q->attempt_end = now + RETRY_NS;
	rearm(c, q);
}

bool
cm_hand_poll(struct eng_control *c)
{
	return sk_wheel_poll(&c->wheel, c->now, TIMER_BUDGET, cm_hand_fire, c) > 0;
}

/* ---- Somebody asks ---- */

/* The QP that waits for just this peer. To all others it is not there, whatever they guess. */
static struct ctl_qp *
cm_hand_addressed(const struct eng_control *c, const struct eng_ctl *m)
{
	struct ctl_qp *q = ctl_qp_of_number(c, m->ask.to_qpn);
	const struct shm_qp_move *w;

	if (q == NULL || !q->by_hand || q->given_up || q->dying || q->reset != NULL ||
		q->cm == CM_CLOSED || q->client->phase != CTL_LIVE)
		return NULL;
	w = &q->move;
	if (w->remote_qpn != m->ask.qpn || !sk_addr_eq(&w->remote, &m->tuple.raddr))
		return NULL;
	return sk_addr_is_any(&w->local) || sk_addr_eq(&w->local, &m->tuple.laddr) ? q : NULL;
}

/* Datagrams: the other host itself asks. If there is a connection, the two have crossed; or the
 * other side has started anew and forgotten it, and what it asks next will find it gone. */
static struct ctl_qp *
of_host(struct eng_control *c, const struct eng_ctl *m)
{
	struct ctl_host *h = cm_host_get(c, &m->tuple.raddr);
	struct ctl_msg *msg;

	if (h == NULL)
		return NULL;
	if (h->q.cm == CM_ESTABLISHED && c->now > h->q.attempt_end + CROSSED_NS) {
		msg = ctl_msg_get(c, ENG_CE_QP_CLOSE, NULL);
		msg->m.qp = &h->q.eng;
		msg->m.client = &h->q.client->eng;
		msg->m.how = IW_CLOSE_ABORT;
		ctl_send_stage(c, h->q.eng.stage, msg);
	}
	return &h->q;
}

/* Both have begun. */
static enum rofx_crossing
crossing(const struct eng_ctl *m)
{
	const struct rofx_side ours = {.gid = m->tuple.laddr, .qpn = m->ask.to_qpn};
	const struct rofx_side theirs = {.gid = m->tuple.raddr, .qpn = m->ask.qpn};

	return rofx_cross(&ours, &theirs);
}

/* The QP has asked for itself. */
static void
mirror(struct eng_control *c, const struct eng_ctl *m)
{
	struct ctl_msg *msg = ctl_msg_get(c, ENG_CT_ACCEPT, NULL);

	msg->m.conn = m->conn;
	msg->m.ask.mirror = true;
	ctl_send_transport(c, m->transport, msg);
}

/* 0: the request is the QP's now; or why not. */
static enum rofx_reason
cm_hand_take(struct eng_control *c, struct ctl_qp *q, const struct eng_ctl *m)
{
	bool begun = q->cm == CM_CONNECTING || q->cm == CM_OPENING;

	if (m->ask.transport != cm_falcon_ask(c, q, &m->offer).transport)
		return ROFX_TRANSPORT;
	if (begun && crossing(m) == ROFX_SELF) {
		mirror(c, m);
		return ROFX_NONE;
	}
	if (q->request != NULL || (q->cm != CM_WAITING && (!begun || crossing(m) == ROFX_OURS)))
		return ROFX_CROSSED;
	q->request = cm_request_new(c, q->client, m);
	if (q->request == NULL)
		return ROFX_NO_RESOURCE;
	q->request->accepting = q;
	if (q->cm == CM_WAITING)
		accept(c, q);
	else if (q->cm == CM_OPENING)
		cm_abort(c, q, ENG_ABORT_UNANSWERED);
	return ROFX_NONE; /* or once our own attempt can be named */
}

void
cm_hand_request(struct eng_control *c, const struct eng_ctl *m)
{
	bool host = m->ask.transport == ROF_UD && m->ask.to_qpn == 0 && m->ask.qpn == 0;
	struct ctl_qp *q = host ? of_host(c, m) : cm_hand_addressed(c, m);
	enum rofx_reason why = q != NULL ? cm_hand_take(c, q, m) : ROFX_NO_QP;

	if (why != ROFX_NONE)
		cm_request_refuse(c, m, why);
}
