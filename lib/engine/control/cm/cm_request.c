/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of peers. The control stage passes a request to the client of the listener as an event,
 * and rejects the request if the client does not answer within CTL_REQUEST_NS. */
#include <errno.h>
#include <stdlib.h>

#include "cm_kind_priv.h"

static struct cm_request_bucket *
cm_request_bucket_of(const struct eng_control *c, uint8_t transport, uint32_t conn)
{
	/* The indices of one transport stage are consecutive. */
	return &c->requests[(conn + transport * (CTL_REQUEST_HASH / c->cfg->ntransports)) %
			    CTL_REQUEST_HASH];
}

struct cm_request *
cm_request_of_conn(const struct eng_control *c, uint8_t transport, uint32_t conn)
{
	struct cm_request *r;

	LIST_FOREACH (r, cm_request_bucket_of(c, transport, conn), bucket)
		if (r->transport == transport && r->conn == conn)
			return r;
	return NULL;
}

/* The low bits of the handle are the position in the table, the high bits a generation: a late
 * answer does not reach the request of another peer. */
struct cm_request *
cm_request_find(const struct ctl_client *cl, uint32_t handle)
{
	struct cm_request *r = ctl_table_get(&cl->requests, handle % CTL_CLIENT_REQUESTS);

	return r != NULL && r->handle == handle ? r : NULL;
}

void
cm_request_orphan(struct cm_request *r)
{
	if (r->listener == NULL)
		return;
	r->listener->pending--;
	LIST_REMOVE(r, of_listener);
	r->listener = NULL;
}

static void
request_placed(struct cm_request *r)
{
	if (r->unplaced)
		TAILQ_REMOVE(&r->client->unplaced, r, place);
	r->unplaced = false;
}

int
cm_request_place(struct ctl_client *cl, uint8_t kind, uint8_t type)
{
	struct cm_request *r = TAILQ_FIRST(&cl->unplaced);

	if (r == NULL || r->kind != kind || r->type != type)
		return -1;
	request_placed(r);
	return r->transport;
}

void
cm_request_answered(struct eng_control *c, struct cm_request *r)
{
	cm_request_orphan(r);
	request_placed(r);
	if (r->timed)
		TAILQ_REMOVE(&c->waiting, r, waiting);
	r->timed = false;
}

void
cm_request_free(struct eng_control *c, struct cm_request *r)
{
	cm_request_answered(c, r);
	LIST_REMOVE(r, bucket);
	if (r->client != NULL)
		ctl_table_del(&r->client->requests, r->handle % CTL_CLIENT_REQUESTS);
	ctl_share_give(c, CTL_POOL_REQUEST, r->user);
	free(r->private_data);
	free(r);
}

static void
send_reject(
	struct eng_control *c, uint8_t transport, uint32_t conn, const struct shm_cm *cm, int why)
{
	struct ctl_msg *msg = ctl_msg_get(c, ENG_CT_REJECT, NULL);

	msg->m.conn = conn;
	msg->m.reject.why = (uint8_t)why;
	if (cm != NULL) {
		msg->m.reject.ird = SK_MIN(cm->ird, SHM_DEPTH_AUTO);
		msg->m.reject.ord = SK_MIN(cm->ord, SHM_DEPTH_AUTO);
		msg->m.private_len = cm->private_len;
		memcpy(msg->m.private_data, cm->private_data, cm->private_len);
	}
	ctl_send_transport(c, transport, msg);
}

void
cm_request_reject(struct eng_control *c, struct cm_request *r, const struct shm_cm *cm)
{
	send_reject(c, r->transport, r->conn, cm, 0);
	cm_request_free(c, r);
}

void
cm_request_refuse(struct eng_control *c, const struct eng_ctl *m, enum rofx_reason why)
{
	sk_count(c->counters, ENG_REQUEST_REFUSED);
	send_reject(c, m->transport, m->conn, NULL, (int)why);
}

bool
cm_request_poll(struct eng_control *c)
{
	struct cm_request *r;
	unsigned n;

	for (n = 0; n < CTL_TURN_REQUESTS && (r = TAILQ_FIRST(&c->waiting)) != NULL &&
		    r->deadline <= c->now && ctl_has_reserve(c);
		n++) {
		if (r->listener != NULL) /* NULL: its listener was closed */
			sk_count(c->counters, ENG_REQUEST_TIMEOUT);
		cm_request_reject(c, r, NULL);
	}
	return n != 0;
}

uint64_t
cm_request_deadline(const struct eng_control *c)
{
	const struct cm_request *r = TAILQ_FIRST(&c->waiting);

	return r != NULL ? r->deadline : SK_NEVER;
}

static void
request_send(struct eng_control *c, const struct cm_request *r, const struct eng_ctl *m)
{
	struct shm_msg msg = {.op = SHM_EV_CONNECT_REQUEST};
	const struct eng_outcome *o = &r->outcome;
	struct shm_cm *cm = &msg.body.cm;

	cm->qp = SHM_NONE;
	cm->listener = r->listener->handle;
	cm->request = r->handle;
	cm->local = r->tuple.laddr;
	cm->remote = r->tuple.raddr;
	cm->lport = r->tuple.lport;
	cm->rport = r->tuple.rport;
	cm->transport = r->kind;
	cm->type = r->type;
	if (r->type == SHM_UD) {
		cm->space = SHM_SPACE_UDP;
		cm->lport = r->service;
	}
	/* This side's IRD is bounded by the peer's ORD, and this side's ORD by the peer's IRD. */
	cm_describe(cm, o, SK_MIN(o->peer_ord, c->cfg->limits.ird),
		SK_MIN(o->peer_ird, c->cfg->limits.ord), m);
	ctl_client_send(c, r->client, &msg,
		(uint32_t)offsetof(struct shm_cm, private_data) + cm->private_len);
}

/* Copies the contents of a notice to the request. */
static void
cm_request_fill(struct cm_request *r, const struct eng_ctl *m)
{
	r->transport = m->transport;
	r->conn = m->conn;
	if (m->type == ENG_TC_LOOKUP) {
		r->tuple = m->lookup.tuple;
		r->kind = r->outcome.kind = r->offer.kind = m->lookup.kind;
		r->type = SHM_UD;
		r->service = m->lookup.service;
		return;
	}
	r->tuple = m->peer.tuple;
	r->emss = m->peer.emss;
	r->send_space = m->peer.send_space;
	r->outcome = m->peer.outcome;
	r->kind = r->offer.kind = r->outcome.kind;
	r->type = cm_kinds[r->kind]->request_type(&r->outcome);
	cm_kinds[r->kind]->request(&r->outcome, &r->offer);
}

struct cm_request *
cm_request_new(struct eng_control *c, struct ctl_client *cl, const struct eng_ctl *m)
{
	uint16_t user = cl != NULL ? cl->eng.user : SK_USER_INSTANCE;
	struct cm_request *r;

	if (cl != NULL && cl->requests.used == cl->requests.cap)
		return NULL;
	if (!ctl_share_take(c, CTL_POOL_REQUEST, user))
		return NULL;
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		ctl_share_give(c, CTL_POOL_REQUEST, user);
		return NULL;
	}
	r->client = cl;
	r->user = user;
	cm_request_fill(r, m);
	if (cl != NULL)
		r->handle = (uint32_t)ctl_table_add(&cl->requests, r) +
			    CTL_CLIENT_REQUESTS * (uint32_t)cl->request_generation++;
	LIST_INSERT_HEAD(cm_request_bucket_of(c, r->transport, r->conn), r, bucket);
	return r;
}

/* Returns a request with a deadline for the answer of the listener's client, or NULL when the
 * listener is closed or has too many requests, or the client has many queued events: peers cannot
 * fill the rest of that queue. */
static struct cm_request *
request_for(struct eng_control *c, struct cm_listener *l, const struct eng_ctl *m)
{
	struct cm_request *r = NULL;

	if (l != NULL && !l->closing && l->client->phase == CTL_LIVE && l->pending < l->backlog &&
		l->client->nevents < CTL_CLIENT_EVENTS / 2)
		r = cm_request_new(c, l->client, m);
	if (r == NULL)
		return NULL;
	r->listener = l;
	r->modes = l->modes;
	r->class = l->class;
	LIST_INSERT_HEAD(&l->requests, r, of_listener);
	l->pending++;
	r->deadline = c->now + CTL_REQUEST_NS;
	r->timed = true;
	TAILQ_INSERT_TAIL(&c->waiting, r, waiting);
	r->unplaced = r->type != SHM_UD; /* a lookup is about a QP that exists */
	if (r->unplaced)
		TAILQ_INSERT_TAIL(&l->client->unplaced, r, place);
	return r;
}

static void
request_enter(struct eng_control *c, struct cm_listener *l, const struct eng_ctl *m,
	enum rofx_reason no_listener)
{
	struct cm_request *r = request_for(c, l, m);

	if (r != NULL)
		request_send(c, r, m);
	else
		cm_request_refuse(c, m, l == NULL ? no_listener : ROFX_NONE);
}

/* Returns whether this turn may handle another request. */
static bool
request_may_come(struct eng_control *c)
{
	if (!cm_may_answer(c) || c->requests_left == 0)
		return false;
	c->requests_left--;
	return true;
}

bool
cm_notice_request(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	if (!request_may_come(c))
		return false;
	if (cm_kinds[m->peer.outcome.kind]->names_qp(&m->peer.outcome))
		cm_modified_request(c, m);
	else
		request_enter(c, cm_listener_find(c, m->peer.listener), m, ROFX_NONE);
	ctl_return(c, t, m);
	return true;
}

bool
cm_notice_lookup(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	if (!request_may_come(c))
		return false;
	request_enter(c, cm_listener_of_service(c, &m->lookup.tuple.laddr, m->lookup.service), m,
		ROFX_NO_SERVICE);
	ctl_return(c, t, m);
	return true;
}
