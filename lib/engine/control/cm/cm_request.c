/* SPDX-License-Identifier: BSD-3-Clause */
/* Connect requests: a peer's start-up frame has come, a client is asked, and for a bounded time its
 * answer is waited for. */
#include <errno.h>
#include <stdlib.h>

#include "cm_priv.h"

static struct cm_request_bucket *
cm_request_bucket_of(const struct eng_control *c, uint8_t transport, uint32_t conn)
{
	return &c->requests[(conn * ENG_MAX_TRANSPORTS + transport) % CTL_REQUEST_HASH];
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

/* The number says which place, the bits above it which turn: a late answer does not meet another
 * peer's request. */
struct cm_request *
cm_request_find(const struct ctl_client *cl, uint32_t handle)
{
	struct cm_request *r = ctl_table_get(&cl->requests, handle % CTL_CLIENT_REQUESTS);

	return r != NULL && r->handle == handle ? r : NULL;
}

void
cm_request_answered(struct eng_control *c, struct cm_request *r)
{
	if (r->listener != NULL)
		r->listener->pending--;
	r->listener = NULL;
	if (r->timed)
		TAILQ_REMOVE(&c->waiting, r, waiting);
	r->timed = false;
}

void
cm_request_free(struct eng_control *c, struct cm_request *r)
{
	cm_request_answered(c, r);
	LIST_REMOVE(r, bucket);
	ctl_table_del(&r->client->requests, r->handle % CTL_CLIENT_REQUESTS);
	free(r->private_data);
	free(r);
}

static void
send_reject(
	struct eng_control *c, uint8_t transport, uint32_t conn, const struct shm_cm *cm, int why)
{
	struct ctl_msg *msg = ctl_msg_get(c, ENG_CT_REJECT, NULL);

	msg->m.conn = conn;
	msg->m.code = why;
	if (cm != NULL) {
		msg->m.offer.ird = SK_MIN(cm->ird, MPA_IRD_AUTO);
		msg->m.offer.ord = SK_MIN(cm->ord, MPA_IRD_AUTO);
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
	bool work = false;

	while ((r = TAILQ_FIRST(&c->waiting)) != NULL && r->deadline <= c->now &&
		ctl_has_reserve(c)) {
		sk_count(c->counters, ENG_REQUEST_TIMEOUT);
		cm_request_reject(c, r, NULL);
		work = true;
	}
	return work;
}

uint64_t
cm_request_deadline(const struct eng_control *c)
{
	const struct cm_request *r = TAILQ_FIRST(&c->waiting);

	return r != NULL ? r->deadline : SK_NEVER;
}

static void
request_tell(struct eng_control *c, const struct cm_request *r, const struct eng_ctl *m)
{
	const struct mpa_result *mpa = &m->mpa;
	struct shm_msg msg = {.op = SHM_EV_CONNECT_REQUEST};
	struct shm_cm *cm = &msg.body.cm;

	cm->qp = SHM_NONE;
	cm->listener = r->listener->handle;
	cm->request = r->handle;
	cm->local = r->tuple.laddr;
	cm->remote = r->tuple.raddr;
	cm->lport = r->tuple.lport;
	cm->rport = r->tuple.rport;
	cm->transport = r->falcon ? SHM_FALCON : SHM_IWARP;
	cm->type = r->type;
	if (r->type == SHM_UD) {
		cm->space = SHM_SPACE_UDP;
		cm->lport = r->service;
	}
	/* What the peer will have outstanding here is our IRD, and what it admits our ORD. */
	cm_describe(cm, mpa, SK_MIN(mpa->peer_ord, c->cfg->limits.ird),
		SK_MIN(mpa->peer_ird, c->cfg->limits.ord));
	ctl_tell(c, r->client, &msg,
		(uint32_t)offsetof(struct shm_cm, private_data) + cm->private_len);
}

struct cm_request *
cm_request_new(struct eng_control *c, struct ctl_client *cl, const struct eng_ctl *m)
{
	struct cm_request *r = NULL;

	if (cl->requests.used < CTL_CLIENT_REQUESTS)
		r = calloc(1, sizeof(*r));
	if (r == NULL)
		return NULL;
	r->client = cl;
	r->transport = m->transport;
	r->conn = m->conn;
	r->tuple = m->tuple;
	r->emss = m->params.emss;
	r->send_space = m->params.send_space;
	r->mpa = m->mpa;
	r->falcon = m->falcon;
	r->type = m->falcon && m->ask.transport == ROF_XRC ? SHM_XRC_RECV : SHM_RC;
	if (m->falcon && m->ask.lookup) {
		r->type = SHM_UD;
		r->service = m->ask.service;
	}
	r->handle = (uint32_t)ctl_table_add(&cl->requests, r) +
		    CTL_CLIENT_REQUESTS * (uint32_t)cl->request_generation++;
	LIST_INSERT_HEAD(cm_request_bucket_of(c, r->transport, r->conn), r, bucket);
	return r;
}

/* The client of the listener is asked, and has so much time. */
static struct cm_request *
request_for(struct eng_control *c, struct cm_listener *l, const struct eng_ctl *m)
{
	struct cm_request *r = cm_request_new(c, l->client, m);

	if (r == NULL)
		return NULL;
	r->listener = l;
	l->pending++;
	r->deadline = c->now + CTL_REQUEST_NS;
	r->timed = true;
	TAILQ_INSERT_TAIL(&c->waiting, r, waiting);
	return r;
}

void
cm_request_in(struct eng_control *c, struct eng_ctl *m)
{
	bool lookup = m->falcon && m->ask.lookup;
	struct cm_listener *l = lookup ? cm_listener_of_service(c, &m->tuple.laddr, m->ask.service)
				       : cm_listener_find(c, m->listener);
	struct cm_request *r = NULL;

	if (m->falcon && m->ask.addressing == ROFX_ADDRESS) {
		cm_hand_request(c, m);
		return;
	}
	/* A client that lags behind with its events gets no more of them from strangers. */
	if (l != NULL && !l->closing && l->client->phase == CTL_LIVE && l->pending < l->backlog &&
		l->client->nevents < CTL_CLIENT_EVENTS / 2)
		r = request_for(c, l, m);
	if (r == NULL) {
		cm_request_refuse(c, m, lookup && l == NULL ? ROFX_NO_SERVICE : ROFX_NONE);
		return;
	}
	request_tell(c, r, m);
}
