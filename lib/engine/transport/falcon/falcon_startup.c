/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a Falcon connection begins: the exchange of lib/rof on a TCP connection, and what comes of
 * it. It runs beside MPA's in the states of the connection, and says the same things to the control
 * stage. The stream stays the control channel: when it ends, the connection does.
 */
#include <errno.h>
#include <string.h>

#include "../../../base/mem.h"
#include "falcon_priv.h"

/* ---- The stream ---- */

int
eng_falcon_say(struct eng_transport *t, struct eng_conn *c)
{
	for (;;) {
		struct tcp_rec *rec = eng_rec_alloc(t->tx_pool);
		size_t n;

		if (rec == NULL)
			return -ENOMEM;
		n = rofx_output(c->falcon->x, rec->data, ENG_COPY_MAX);
		if (n == 0) {
			eng_rec_free(rec);
			return 0;
		}
		rec->len = (uint32_t)n;
		t->tcp_work = true;
		tcp_send(c->tcp, rec);
	}
}

static void
set_timer(struct eng_transport *t, struct eng_conn *c)
{
	if (c->su != NULL)
		sk_timer_set(&t->wheel, &c->su->timer, rofx_deadline(c->falcon->x));
	if (c->falcon->fa != NULL)
		eng_falcon_keys_arm(t, c->falcon);
}

static const struct rofx_config *
exchange_config(const struct eng_transport *t, struct rofx_config *cfg)
{
	*cfg = (struct rofx_config){.tls = t->e->tls,
		.request_ns = ENG_REQUEST_TIMEOUT_NS,
		.reply_ns = ENG_REPLY_TIMEOUT_NS};
	return cfg;
}

/* The peer hears why before the stream ends. */
static void
falcon_startup_give_up(struct eng_transport *t, struct eng_conn *c, int error)
{
	uint8_t state = c->state;

	if (c->error == 0)
		c->error = error;
	if (state == ECONN_BOUND && c->falcon->fa != NULL) {
		eng_falcon_fail(t, c, ROFX_NO_RESOURCE, error);
		return;
	}
	/* Somebody knows of it, and is told when TCP has closed. */
	if (state == ECONN_BOUND || state == ECONN_REQUESTED || state == ECONN_ESTABLISHED) {
		eng_conn_pend(t, c, ECONN_P_CLOSE);
		return;
	}
	c->state = state == ECONN_OPENING ? ECONN_DEAD : ECONN_DRAIN;
	if (state == ECONN_OPENING)
		eng_startup_notice(t, c, ENG_TC_FAILED);
	eng_conn_pend(t, c, ECONN_P_CLOSE);
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
	default:
		return -EPROTO;
	}
}

/* ---- What has come ---- */

/* As the control stage knows it from MPA. */
static void
note_result(struct eng_conn *c, uint16_t ird, uint16_t ord, const struct rofx_side *peer,
	const void *private_data, uint16_t len)
{
	struct mpa_result *r = &c->su->mpa.result;

	*r = (struct mpa_result){
		.revision = 2,
		.enhanced = true,
		.ird = ird,
		.ord = ord,
		.peer_ird = peer->ird,
		.peer_ord = peer->ord,
		.private_len = SK_MIN(len, (uint16_t)SHM_PRIVATE_MAX),
	};
	memcpy(r->private_data, private_data, r->private_len);
}

/* May it be asked so, here? Addresses are claims: those of the stream are believed. */
static enum rofx_reason
falcon_startup_judge(const struct eng_conn *c, const struct rofx_side *peer)
{
	const struct tcp_tuple *ends = tcp_tuple(c->tcp);
	bool by_hand = c->su->listener == ENG_LISTENER_HAND;

	if ((peer->transport == ROF_UD && !by_hand) || !sk_addr_eq(&peer->gid, &ends->raddr))
		return ROFX_TRANSPORT;
	if (by_hand != (peer->addressing == ROFX_ADDRESS))
		return ROFX_NO_SERVICE;
	return by_hand && !sk_addr_eq(&peer->to_gid, &ends->laddr) ? ROFX_NO_QP : ROFX_NONE;
}

static void
requested(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_request *r = rofx_request(c->falcon->x);
	enum rofx_reason why = falcon_startup_judge(c, &r->peer);

	if (why != ROFX_NONE) {
		rofx_reject(c->falcon->x, why, NULL, 0);
		falcon_startup_give_up(t, c, -EPROTO);
		return;
	}
	c->su->ask = (struct eng_falcon_ask){.falcon = true,
		.transport = r->peer.transport,
		.addressing = r->peer.addressing,
		.qpn = r->peer.qpn,
		.to_qpn = r->peer.to_qpn};
	note_result(c, r->peer.ord, r->peer.ird, &r->peer, r->private_data, r->private_len);
	c->state = ECONN_REQUESTED;
	eng_startup_notice(t, c, ENG_TC_REQUEST);
}

static void
falcon_startup_established(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_agreed *a = rofx_agreed(c->falcon->x);
	int rc;

	if (c->state == ECONN_DRAIN) /* the far end of a mirror */
		return;
	rc = eng_falcon_agreed(t, c);
	if (rc == 0)
		note_result(c, c->falcon->start->ird, c->falcon->start->ord, &a->peer,
			a->private_data, a->private_len);
	if (rc == 0 && c->state == ECONN_OPENING)
		rc = rofx_ready(c->falcon->x);
	if (rc < 0) {
		falcon_startup_give_up(t, c, rc);
		return;
	}
	if (c->state == ECONN_OPENING)
		c->state = ECONN_ESTABLISHED;
	eng_startup_notice(t, c, ENG_TC_ESTABLISHED);
	tcp_set_keepalive(c->tcp, t->now, t->e->cfg.falcon.keepalive_ns);
	rofx_trim(c->falcon->x);
	if (c->state == ECONN_BOUND)
		eng_conn_pend(t, c, ECONN_P_OPEN | ECONN_P_RESUME);
}

static void
rejected(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_agreed *a = rofx_agreed(c->falcon->x);
	enum rofx_reason why = rofx_why(c->falcon->x);

	sk_count(t->falcon->rofx_counters, why);
	if (why != ROFX_REFUSED) {
		falcon_startup_give_up(t, c, falcon_startup_error_of(why));
		return;
	}
	note_result(c, 0, 0, &a->peer, a->private_data, a->private_len);
	c->state = ECONN_DEAD;
	eng_startup_notice(t, c, ENG_TC_REJECTED);
	eng_conn_pend(t, c, ECONN_P_CLOSE);
}

/* Somebody wants to know which datagram QP serves a port. */
static void
asked(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_question *q = rofx_question(c->falcon->x);
	const struct tcp_tuple *ends = tcp_tuple(c->tcp);
	const struct rofx_side none = {0};

	if (c->su->listener != ENG_LISTENER_HAND || !sk_addr_eq(&q->gid, &ends->raddr) ||
		!sk_addr_eq(&q->to_gid, &ends->laddr)) {
		rofx_reject(c->falcon->x, ROFX_NO_SERVICE, NULL, 0);
		falcon_startup_give_up(t, c, -EPROTO);
		return;
	}
	note_result(c, 0, 0, &none, q->private_data, q->private_len);
	c->su->ask = (struct eng_falcon_ask){.falcon = true, .lookup = true, .service = q->service};
	c->state = ECONN_REQUESTED;
	eng_startup_notice(t, c, ENG_TC_REQUEST);
}

/* And so do we know. */
static void
falcon_startup_found(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_answer *a = rofx_answer(c->falcon->x);
	const struct rofx_side none = {0};

	note_result(c, 0, 0, &none, a->private_data, a->private_len);
	c->su->ask.found = true;
	c->su->ask.qpn = a->qpn;
	c->su->ask.qkey = a->qkey;
	c->state = ECONN_DEAD;
	eng_startup_notice(t, c, ENG_TC_REJECTED);
	eng_conn_pend(t, c, ECONN_P_CLOSE);
}

static void
falcon_startup_failed(struct eng_transport *t, struct eng_conn *c)
{
	enum rofx_reason why = rofx_why(c->falcon->x);
	bool aborted = why == ROFX_REFUSED && c->falcon->fa != NULL;

	sk_count(t->falcon->rofx_counters, why);
	falcon_startup_give_up(t, c, aborted ? -ECONNRESET : falcon_startup_error_of(why));
}

/* Works off what the exchange has to tell, and sends what it has to say. */
static void
falcon_startup_advance(struct eng_transport *t, struct eng_conn *c)
{
	struct rofx *x = c->falcon->x;
	enum rofx_event ev;

	while ((ev = rofx_event(x)) != ROFX_EV_NONE) {
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
			if (eng_falcon_take_key(t, c->falcon) < 0)
				falcon_startup_give_up(t, c, -ENOMEM);
			break;
		case ROFX_EV_REKEYED:
			eng_falcon_key_taken(t, c->falcon);
			break;
		default: /* only of lookups, and of streams that end: TCP tells of those */
			break;
		}
	}
	if (eng_falcon_say(t, c) < 0)
		falcon_startup_give_up(t, c, -ENOMEM);
	set_timer(t, c);
}

bool
eng_falcon_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain)
{
	if (c->pending & (ECONN_P_ABORT | ECONN_P_CLOSE | ECONN_P_FAIL))
		return false;
	for (const struct tcp_slice *s = chain; s != NULL; s = s->next) {
		tcp_consumed(c->tcp, s->len);
		if (rofx_input(c->falcon->x, t->now, s->data, s->len) < 0)
			break;
	}
	eng_slice_free(chain);
	falcon_startup_advance(t, c);
	return true;
}

bool
eng_falcon_begins(const struct eng_transport *t, const struct tcp_slice *chain)
{
	return t->falcon != NULL && rofx_match(chain->data, chain->len) != 0;
}

/* ---- Beginnings and answers ---- */

int
eng_falcon_listen(struct eng_transport *t, struct eng_conn *c)
{
	struct rofx_config cfg;

	c->falcon = eng_falcon_reserve(t, c);
	if (c->falcon == NULL)
		return -ENOBUFS;
	c->falcon->x = rofx_listen(exchange_config(t, &cfg), t->now);
	return c->falcon->x == NULL ? -ENOMEM : 0;
}

static int
ask_for(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m)
{
	struct rofx_question q = {.service = m->ask.service,
		.gid = ends->laddr,
		.to_gid = ends->raddr,
		.private_len = m->private_len};
	struct rofx_config cfg;
	int rc = 0;

	memcpy(q.private_data, m->private_data, q.private_len);
	c->su->ask = m->ask;
	c->falcon->x = rofx_lookup(exchange_config(t, &cfg), t->now, &q, &rc);
	return c->falcon->x == NULL ? rc : 0;
}

int
eng_falcon_found(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	int rc = rofx_found(c->falcon->x, m->ask.qpn, m->ask.qkey, m->private_data, m->private_len);

	return rc < 0 ? rc : eng_falcon_say(t, c);
}

int
eng_falcon_connect(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m)
{
	struct rofx_config cfg;
	struct rofx_side side;
	int rc;

	c->falcon = t->falcon == NULL ? NULL : eng_falcon_reserve(t, c);
	if (c->falcon == NULL)
		return t->falcon == NULL ? -EPROTONOSUPPORT : -ENOBUFS;
	if (m->ask.lookup)
		return ask_for(t, c, ends, m);
	rc = eng_falcon_terms(t, c, ends, &m->ask, &side);
	if (rc == 0)
		c->falcon->x = rofx_connect(exchange_config(t, &cfg), t->now, &side,
			m->private_data, m->private_len, &rc);
	explicit_bzero(&side, sizeof(side));
	return c->falcon->x == NULL ? rc : 0;
}

void
eng_falcon_connected(struct eng_transport *t, struct eng_conn *c)
{
	falcon_startup_advance(t, c);
}

int
eng_falcon_reply(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m, bool accept)
{
	struct rofx_side side;
	int rc;

	if (!accept) {
		rc = rofx_reject(c->falcon->x, m->code ? (enum rofx_reason)m->code : ROFX_REFUSED,
			m->private_data, m->private_len);
		return rc < 0 ? rc : eng_falcon_say(t, c);
	}
	rc = eng_falcon_terms(t, c, tcp_tuple(c->tcp), &m->ask, &side);
	if (rc == 0)
		rc = rofx_accept(c->falcon->x, t->now, &side, m->private_data, m->private_len);
	explicit_bzero(&side, sizeof(side));
	if (rc == -EPROTO) /* the peer is told why, then the stream ends */
		rc = 0;
	if (rc == 0)
		falcon_startup_advance(t, c);
	return rc;
}

int
eng_falcon_mirror(struct eng_transport *t, struct eng_conn *c)
{
	struct rofx_side side;
	int rc;

	if (c->falcon == NULL)
		return -EINVAL;
	side = rofx_request(c->falcon->x)->peer;
	/* The initiator sees through it: what it seals with are its own keys. */
	memset(side.key128, 0, sizeof(side.key128));
	memset(side.key256, 0, sizeof(side.key256));
	c->state = ECONN_DRAIN;
	rc = rofx_accept(c->falcon->x, t->now, &side, NULL, 0);
	if (rc < 0)
		eng_conn_pend(t, c, ECONN_P_ABORT);
	else
		falcon_startup_advance(t, c);
	eng_startup_free(t, c); /* nothing more is awaited of this end */
	return rc;
}

void
eng_falcon_expired(struct eng_transport *t, struct eng_conn *c)
{
	rofx_timeout(c->falcon->x, t->now);
	falcon_startup_advance(t, c);
}
