/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start-up of a Falcon connection: the exchange of lib/rof on a carrier, and the handling of
 * its events. The start-up uses the same states and sends the same notices as that of MPA.
 */
#include <errno.h>
#include <string.h>

#include "../../../base/mem.h"
#include "../../../base/secret.h"
#include "falcon_priv.h"

#define PORT_BASE 49152 /* of the ports of active connections whose program chooses none */

/* ---- The exchange ---- */

static void
set_timer(struct eng_transport *t, struct eng_conn *c)
{
	if (c->su != NULL)
		sk_timer_set(&t->wheel, &c->su->timer, rofx_deadline(eng_falcon_exchange(c)));
	if (eng_falcon_conn_of(c)->fa != NULL)
		eng_falcon_keys_arm(t, eng_falcon_conn_of(c));
}

const struct rofx_config *
eng_falcon_config(
	const struct eng_transport *t, const struct tcp_tuple *ends, struct rofx_config *cfg)
{
	*cfg = (struct rofx_config){.tls = t->e->cfg.falcon.tls,
		.require_psp = t->e->cfg.falcon.require_psp,
		.local = &ends->laddr,
		.peer = &ends->raddr,
		.stage = (uint8_t)t->index,
		.stages = (uint8_t)t->e->cfg.ntransports,
		.request_ns = ENG_REQUEST_TIMEOUT_NS};
	return cfg;
}

const struct rofx_config *
eng_falcon_exchange_config(const struct eng_transport *t, struct rofx_config *cfg)
{
	static const struct tcp_tuple none;

	eng_falcon_config(t, &none, cfg);
	cfg->reply_ns = ENG_REPLY_TIMEOUT_NS;
	return cfg;
}

void
eng_falcon_ends(const struct eng_transport *t, const struct eng_conn *c, struct tcp_tuple *tuple,
	struct tcp_info *info)
{
	const struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	const struct eng_falcon_carrier *k = TAILQ_FIRST(&fc->host->carriers);

	*tuple = (struct tcp_tuple){.laddr = fc->host->laddr,
		.raddr = fc->host->raddr,
		.lport = fc->lport,
		.rport = fc->rport,
		.vlan = fc->host->vlan,
		.port = fc->host->port};
	if (info == NULL)
		return;
	if (k != NULL && k->c->tcp != NULL)
		tcp_get_info(k->c->tcp, info);
	else
		*info = (struct tcp_info){.state = "CLOSED"};
}

/* Ends a start-up that has failed with `error`. The exchange sends the reason to the peer. */
static void
falcon_startup_give_up(struct eng_transport *t, struct eng_conn *c, int error)
{
	eng_falcon_fail(t, c, ROFX_NO_RESOURCE, error);
}

static int
falcon_startup_error_of(enum rofx_reason why)
{
	switch (why) {
	case ROFX_TIMEOUT:
	case ROFX_NOT_READY:
		return -ETIMEDOUT;
	case ROFX_NO_QP:
	case ROFX_NO_SERVICE:
		return -ECONNREFUSED;
	case ROFX_NO_RESOURCE:
		return -ENOBUFS;
	case ROFX_CLOSED:
	case ROFX_GONE:
		return -ECONNRESET;
	default:
		return -EPROTO;
	}
}

/* ---- Events of the exchange ---- */

/* Fills in the contents of the next notice. */
static void
falcon_note_outcome(struct eng_conn *c, uint16_t ird, uint16_t ord, const struct rofx_side *peer,
	const void *private_data, uint16_t len)
{
	struct eng_startup *su = c->su;

	su->outcome = (struct eng_outcome){
		.kind = ENG_FALCON,
		.ird = ird,
		.ord = ord,
		.peer_ird = peer->ird,
		.peer_ord = peer->ord,
		.falcon = {.transport = peer->transport,
			.addressing = peer->addressing,
			.ordering = peer->ordering,
			.errors = peer->errors,
			.flows = peer->flows,
			.psp = peer->psp,
			.mtu = peer->mtu,
			.qpn = peer->qpn,
			.to_qpn = peer->to_qpn},
	};
	su->private_len = SK_MIN(len, (uint16_t)SHM_PRIVATE_MAX);
	memcpy(su->private_data, private_data, su->private_len);
}

/* Fills in the contents of ENG_TC_ESTABLISHED: the terms that both sides agreed on. */
static void
note_agreed(struct eng_conn *c, const struct rofx_agreed *a)
{
	const struct eng_falcon_start *start = eng_falcon_conn_of(c)->start;
	struct eng_falcon_ask *terms = &c->su->outcome.falcon;

	falcon_note_outcome(c, start->ird, start->ord, &a->peer, a->private_data, a->private_len);
	terms->flows = a->flows;
	terms->psp = ROFX_PSP(a->psp);
	terms->mtu = (uint16_t)a->mtu;
}

/* Finds the listener of a request and checks that the addresses in the request, which the peer may
 * have forged, are those of the carrier. Returns ROFX_NONE, or the reason for a REJECT. */
static enum rofx_reason
falcon_startup_judge(struct eng_transport *t, struct eng_conn *c, const struct rofx_request *r)
{
	const struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	const struct rofx_side *peer = &r->peer;
	bool by_qpn = peer->addressing == ROFX_ADDRESS;
	struct eng_listener *l;

	if ((peer->transport == ROF_UD && !by_qpn) || !sk_addr_eq(&peer->gid, &fc->host->raddr))
		return ROFX_TRANSPORT;
	if (by_qpn && !sk_addr_eq(&peer->to_gid, &fc->host->laddr))
		return ROFX_NO_QP;
	l = eng_listener_find(t, &fc->host->laddr, by_qpn ? t->e->cfg.falcon.port : r->service);
	if (l == NULL || by_qpn != (l->number == ENG_LISTENER_BY_QPN))
		return by_qpn ? ROFX_NO_QP : ROFX_NO_SERVICE;
	c->su->listener = l->number;
	c->su->offer = l->offer;
	return eng_conn_admit(t, c, l->user) ? ROFX_NONE : ROFX_NO_RESOURCE;
}

static void
requested(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	const struct rofx_request *r = rofx_request(fc->out.x);
	enum rofx_reason why = falcon_startup_judge(t, c, r);

	if (why != ROFX_NONE) {
		sk_count(eng_falcon_of(t)->rofx_counters, why);
		rofx_reject(fc->out.x, why, NULL, 0);
		c->state = ECONN_DRAIN;
		return;
	}
	fc->lport = r->service;
	fc->rport = r->port;
	falcon_note_outcome(c, r->peer.ord, r->peer.ird, &r->peer, r->private_data, r->private_len);
	c->state = ECONN_REQUESTED;
	eng_startup_notice(t, c, ENG_TC_REQUEST);
}

static int
falcon_startup_ready(struct eng_transport *t, struct eng_conn *c, const struct rofx_agreed *a)
{
	struct tcp_tuple ends;

	eng_falcon_ends(t, c, &ends, NULL);
	eng_falcon_list_ports(t, eng_falcon_exchange(c), &ends, &a->ours, &a->peer);
	return rofx_ready(eng_falcon_exchange(c));
}

static void
falcon_startup_established(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	const struct rofx_agreed *a = rofx_agreed(fc->out.x);
	int rc;

	if (fc->accepts_self) { /* it has done what it was for */
		fc->accepts_self = false;
		return;
	}
	rc = eng_falcon_agreed(t, c);
	if (rc == 0)
		note_agreed(c, a);
	if (rc == 0 && c->state == ECONN_OPENING)
		rc = falcon_startup_ready(t, c, a);
	if (rc < 0) {
		falcon_startup_give_up(t, c, rc);
		return;
	}
	if (c->state == ECONN_OPENING)
		c->state = ECONN_ESTABLISHED;
	eng_startup_notice(t, c, ENG_TC_ESTABLISHED);
	rofx_trim(fc->out.x);
	if (c->state == ECONN_BOUND)
		eng_conn_pend(t, c, ECONN_P_OPEN | ECONN_P_RESUME);
}

static void
rejected(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_agreed *a = rofx_agreed(eng_falcon_exchange(c));
	enum rofx_reason why = rofx_why(eng_falcon_exchange(c));

	sk_count(eng_falcon_of(t)->rofx_counters, why);
	if (why != ROFX_REFUSED) {
		falcon_startup_give_up(t, c, falcon_startup_error_of(why));
		return;
	}
	falcon_note_outcome(c, 0, 0, &a->peer, a->private_data, a->private_len);
	c->state = ECONN_DEAD;
	eng_startup_notice(t, c, ENG_TC_REJECTED);
}

/* Handles the peer's request for the QPN of the datagram QP that serves a port. */
static void
asked(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_question *q = rofx_question(eng_falcon_exchange(c));
	const struct eng_falcon_host *h = eng_falcon_conn_of(c)->host;
	const struct rofx_side none = {0};

	if (!sk_addr_eq(&q->gid, &h->raddr) || !sk_addr_eq(&q->to_gid, &h->laddr) ||
		!eng_conn_admit(t, c, SK_USER_INSTANCE)) {
		rofx_reject(eng_falcon_exchange(c), ROFX_NO_SERVICE, NULL, 0);
		c->state = ECONN_DRAIN;
		return;
	}
	c->su->listener = ENG_LISTENER_BY_QPN;
	falcon_note_outcome(c, 0, 0, &none, q->private_data, q->private_len);
	c->su->service = q->service;
	c->state = ECONN_REQUESTED;
	eng_startup_notice(t, c, ENG_TC_LOOKUP);
}

/* Handles the peer's answer to a lookup. */
static void
falcon_startup_found(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_answer *a = rofx_answer(eng_falcon_exchange(c));
	const struct rofx_side none = {0};

	falcon_note_outcome(c, 0, 0, &none, a->private_data, a->private_len);
	c->su->qpn = a->qpn;
	c->su->qkey = a->qkey;
	c->state = ECONN_DEAD;
	eng_startup_notice(t, c, ENG_TC_FOUND);
}

static void
falcon_startup_failed(struct eng_transport *t, struct eng_conn *c)
{
	enum rofx_reason why = rofx_why(eng_falcon_exchange(c));
	bool aborted = why == ROFX_REFUSED && eng_falcon_conn_of(c)->fa != NULL;

	sk_count(eng_falcon_of(t)->rofx_counters, why);
	falcon_startup_give_up(t, c, aborted ? -ECONNRESET : falcon_startup_error_of(why));
}

static void
falcon_startup_event(struct eng_transport *t, struct eng_conn *c, enum rofx_event ev)
{
	switch (ev) {
	case ROFX_EV_REQUEST:
		requested(t, c);
		break;
	case ROFX_EV_LOOKUP:
		asked(t, c);
		break;
	case ROFX_EV_FOUND:
		falcon_startup_found(t, c);
		break;
	case ROFX_EV_AGREED:
	case ROFX_EV_ESTABLISHED:
		falcon_startup_established(t, c);
		break;
	case ROFX_EV_REJECTED:
		rejected(t, c);
		break;
	case ROFX_EV_FAILED:
		falcon_startup_failed(t, c);
		break;
	case ROFX_EV_REKEY:
		if (eng_falcon_take_key(t, eng_falcon_conn_of(c)) < 0)
			falcon_startup_give_up(t, c, -ENOMEM);
		break;
	case ROFX_EV_REKEYED:
		eng_falcon_key_taken(t, eng_falcon_conn_of(c));
		break;
	case ROFX_EV_ENDED:
		eng_conn_peer_fin(t, c);
		break;
	case ROFX_EV_NONE:
		break;
	}
}

/* Returns whether the start-up has ended, and the connection with it. */
static bool
startup_is_over(const struct eng_conn *c)
{
	if (c->state == ECONN_DRAIN)
		return !eng_falcon_conn_of(c)->accepts_self;
	return c->state == ECONN_DEAD;
}

void
eng_falcon_advance(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	enum rofx_event ev;

	while ((ev = rofx_event(fc->out.x)) != ROFX_EV_NONE)
		falcon_startup_event(t, c, ev);
	eng_falcon_send(t, fc);
	if (startup_is_over(c)) {
		eng_falcon_release(t, c);
		eng_conn_put(t, c);
		return;
	}
	/* Until then, the end of a carrier makes it repeat what it has sent, at once. */
	if (fc->list != ENG_FALCON_LIVE && rofx_confirmed(fc->out.x))
		eng_falcon_join(eng_falcon_of(t), fc->host, fc, ENG_FALCON_LIVE);
	if (rofx_finished(fc->out.x))
		eng_falcon_fail(t, c, ROFX_NONE, 0);
	set_timer(t, c);
}

bool
eng_falcon_begins(const struct eng_transport *t, const struct tcp_slice *chain)
{
	return eng_falcon_of(t) != NULL && rofx_match(chain->data, chain->len) != 0;
}

/* ---- Functions of eng_link_falcon ---- */

static int
ask_for(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	struct rofx_question q = {.service = m->connect.service,
		.gid = ends->laddr,
		.to_gid = ends->raddr,
		.private_len = m->private_len};
	struct rofx_config cfg;
	int rc = 0;

	memcpy(q.private_data, m->private_data, q.private_len);
	c->su->service = m->connect.service;
	fc->out.x = rofx_lookup(
		eng_falcon_exchange_config(t, &cfg), t->now, eng_falcon_name(fc), &q, &rc);
	return rc;
}

int
eng_falcon_found(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	int rc;

	if (c->su->notice != ENG_TC_LOOKUP)
		return -ENOENT;
	rc = rofx_found(eng_falcon_exchange(c), m->lookup.qpn, m->lookup.qkey, m->private_data,
		m->private_len);
	eng_falcon_send(t, eng_falcon_conn_of(c));
	eng_falcon_release(t, c);
	return rc;
}

/* The port of a connection is what programs see; the carrier has ports of its own. */
static uint16_t
falcon_startup_port(uint16_t chosen)
{
	uint16_t random;

	if (chosen != 0)
		return chosen;
	sk_random(&random, sizeof(random));
	return (uint16_t)(random | PORT_BASE);
}

static int
ask(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	bool by_qpn = m->connect.offer.falcon.addressing == ROFX_ADDRESS;
	struct rofx_config cfg;
	struct rofx_side side;
	int rc = eng_falcon_terms(t, c, ends, &m->connect.offer, &side);

	fc->lport = falcon_startup_port(ends->lport);
	fc->rport = ends->rport;
	if (rc == 0)
		fc->out.x = rofx_connect(eng_falcon_exchange_config(t, &cfg), t->now,
			eng_falcon_name(fc), &side, by_qpn ? 0 : fc->rport, by_qpn ? 0 : fc->lport,
			m->private_data, m->private_len, &rc);
	explicit_bzero(&side, sizeof(side));
	return rc;
}

/* Sets the user that pays for the connection and its exchange. */
static void
falcon_startup_user(struct eng_falcon_conn *fc, uint16_t user)
{
	fc->out.user = user;
	fc->out.lane = (uint8_t)(user % ENG_FALCON_LANES);
}

int
eng_falcon_connect(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_host *h;
	struct eng_falcon_conn *fc;
	int rc;

	if (f == NULL)
		return -EPROTONOSUPPORT;
	fc = eng_falcon_reserve(t, c);
	if (fc == NULL)
		return -ENOBUFS;
	c->part = fc;
	c->rides = true;
	falcon_startup_user(fc, c->user);
	h = eng_falcon_host_get(f, ends);
	if (h == NULL)
		return -ENOMEM;
	eng_falcon_join(f, h, fc, ENG_FALCON_ASKING);
	rc = m->type == ENG_CT_LOOKUP ? ask_for(t, c, ends, m) : ask(t, c, ends, m);
	if (rc == 0)
		eng_falcon_advance(t, c);
	return rc;
}

void
eng_falcon_abandon(struct eng_transport *t, struct eng_conn *c)
{
	if (c->rides) {
		rofx_give_up(eng_falcon_exchange(c), ROFX_REFUSED);
		eng_falcon_send(t, eng_falcon_conn_of(c));
		eng_falcon_release(t, c);
	}
	eng_conn_put(t, c);
}

int
eng_falcon_reject(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	enum rofx_reason why = m->reject.why != 0 ? (enum rofx_reason)m->reject.why : ROFX_REFUSED;
	int rc = rofx_reject(eng_falcon_exchange(c), why, m->private_data, m->private_len);

	eng_falcon_send(t, eng_falcon_conn_of(c));
	eng_falcon_release(t, c);
	return rc;
}

/* ENG_TC_ESTABLISHED follows when the initiator has sent READY. */
int
eng_falcon_accept(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	struct rofx_side side;
	struct tcp_tuple ends;
	int rc;

	/* A request that names a QP was admitted for the instance. */
	if (!eng_conn_charge(t, c, m->user))
		return -ENOBUFS;
	eng_falcon_ends(t, c, &ends, NULL);
	falcon_startup_user(fc, m->user);
	rc = eng_falcon_terms(t, c, &ends, &m->connect.offer, &side);
	if (rc == 0) {
		eng_falcon_list_ports(t, fc->out.x, &ends, &side, &rofx_request(fc->out.x)->peer);
		rc = rofx_accept(fc->out.x, t->now, &side, m->private_data, m->private_len);
	}
	explicit_bzero(&side, sizeof(side));
	if (rc == -EPROTO) /* the exchange sends the peer the reason and fails */
		rc = 0;
	if (rc == 0)
		eng_falcon_advance(t, c);
	return rc;
}

int
eng_falcon_self(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);
	struct rofx_side side;
	int rc;

	side = rofx_request(fc->out.x)->peer;
	/* The initiator detects that it is its own peer, and uses its own keys. */
	memset(side.key128, 0, sizeof(side.key128));
	memset(side.key256, 0, sizeof(side.key256));
	c->state = ECONN_DRAIN;
	fc->accepts_self = true;
	rc = rofx_accept(fc->out.x, t->now, &side, NULL, 0);
	fc->accepts_self = rc == 0;
	eng_falcon_advance(t, c);
	return rc;
}

void
eng_falcon_expired(struct eng_transport *t, struct eng_conn *c)
{
	rofx_timeout(eng_falcon_exchange(c), t->now);
	eng_falcon_advance(t, c);
}
