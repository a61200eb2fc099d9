/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start-up of a Falcon connection: the exchange of lib/rof on a TCP connection, and the
 * handling of its events. The start-up uses the same states and sends the same notices as that of
 * MPA. The TCP connection stays open as the control channel: when it ends, the Falcon connection
 * ends.
 */
#include <errno.h>
#include <string.h>

#include "../../../base/mem.h"
#include "falcon_priv.h"

/* ---- The stream ---- */

int
eng_falcon_send(struct eng_transport *t, struct eng_conn *c)
{
	for (;;) {
		struct tcp_rec *rec = eng_rec_alloc(t->tx_pool);
		size_t n;

		if (rec == NULL)
			return -ENOMEM;
		n = rofx_output(eng_falcon_exchange(c), rec->data, ENG_COPY_MAX);
		if (n == 0) {
			eng_rec_free(rec);
			return 0;
		}
		rec->len = (uint32_t)n;
		tcp_send(c->tcp, rec);
	}
}

static void
set_timer(struct eng_transport *t, struct eng_conn *c)
{
	if (c->su != NULL)
		sk_timer_set(&t->wheel, &c->su->timer, rofx_deadline(eng_falcon_exchange(c)));
	if (c->part != NULL && eng_falcon_conn_of(c)->fa != NULL)
		eng_falcon_keys_arm(t, eng_falcon_conn_of(c));
}

/* The pointers in *cfg are valid as long as `ends`. */
static const struct rofx_config *
exchange_config(
	const struct eng_transport *t, const struct tcp_tuple *ends, struct rofx_config *cfg)
{
	*cfg = (struct rofx_config){.tls = t->e->cfg.falcon.tls,
		.require_psp = t->e->cfg.falcon.require_psp,
		.local = &ends->laddr,
		.peer = &ends->raddr,
		.request_ns = ENG_REQUEST_TIMEOUT_NS,
		.reply_ns = ENG_REPLY_TIMEOUT_NS};
	return cfg;
}

/* Frees the exchange and its place when a start-up has ended and TCP only closes: a peer that does
 * not close its direction must not hold them. */
static void
falcon_startup_end(struct eng_transport *t, struct eng_conn *c)
{
	if (c->su != NULL)
		sk_timer_stop(&t->wheel, &c->su->timer);
	eng_falcon_half_free(t, c);
	if (c->part != NULL)
		eng_falcon_close(t, eng_falcon_conn_of(c));
	c->part = NULL;
}

/* Ends a start-up that has failed with `error`. The exchange sends the reason to the peer before
 * the stream ends. */
static void
falcon_startup_give_up(struct eng_transport *t, struct eng_conn *c, int error)
{
	uint8_t state = c->state;

	if (c->error == 0)
		c->error = error;
	if (state == ECONN_BOUND && eng_falcon_conn_of(c)->fa != NULL) {
		eng_falcon_fail(t, c, ROFX_NO_RESOURCE, error);
		return;
	}
	/* Other stages hold the connection; eng_conn_lost() reports its end when TCP has closed. */
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

/* Checks that the listener serves this form of request, and that the addresses in the request,
 * which the peer may have forged, are those of the stream. Returns ROFX_NONE, or the reason for a
 * REJECT. */
static enum rofx_reason
falcon_startup_judge(const struct eng_conn *c, const struct rofx_side *peer)
{
	const struct tcp_tuple *ends = tcp_tuple(c->tcp);
	bool by_qpn = c->su->listener == ENG_LISTENER_BY_QPN;

	if ((peer->transport == ROF_UD && !by_qpn) || !sk_addr_eq(&peer->gid, &ends->raddr))
		return ROFX_TRANSPORT;
	if (by_qpn != (peer->addressing == ROFX_ADDRESS))
		return ROFX_NO_SERVICE;
	return by_qpn && !sk_addr_eq(&peer->to_gid, &ends->laddr) ? ROFX_NO_QP : ROFX_NONE;
}

/* The request takes a place among the connections. With TLS, its sender has proved its identity. */
static void
requested(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_request *r = rofx_request(eng_falcon_exchange(c));
	enum rofx_reason why = falcon_startup_judge(c, &r->peer);

	if (why == ROFX_NONE && eng_falcon_half_promote(t, c) < 0)
		why = ROFX_NO_RESOURCE;
	if (why != ROFX_NONE) {
		sk_count(eng_falcon_of(t)->rofx_counters, why);
		rofx_reject(eng_falcon_exchange(c), why, NULL, 0);
		falcon_startup_give_up(t, c, -EPROTO);
		return;
	}
	falcon_note_outcome(c, r->peer.ord, r->peer.ird, &r->peer, r->private_data, r->private_len);
	c->state = ECONN_REQUESTED;
	eng_startup_notice(t, c, ENG_TC_REQUEST);
}

/* Sends READY, which rofx_trim() would otherwise keep in the buffer of the start-up. */
static int
falcon_startup_ready(struct eng_transport *t, struct eng_conn *c, const struct rofx_agreed *a)
{
	int rc;

	eng_falcon_list_ports(t, eng_falcon_exchange(c), tcp_tuple(c->tcp), &a->ours, &a->peer);
	rc = rofx_ready(eng_falcon_exchange(c));
	return rc < 0 ? rc : eng_falcon_send(t, c);
}

static void
falcon_startup_established(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_agreed *a = rofx_agreed(eng_falcon_exchange(c));
	int rc;

	if (c->state == ECONN_DRAIN) /* the accepting end of a self-connected QP */
		return;
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
	tcp_set_keepalive(c->tcp, t->now, t->e->cfg.falcon.keepalive_ns);
	rofx_trim(eng_falcon_exchange(c));
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
	eng_conn_pend(t, c, ECONN_P_CLOSE);
}

/* Handles the peer's request for the QPN of the datagram QP that serves a port. */
static void
asked(struct eng_transport *t, struct eng_conn *c)
{
	const struct rofx_question *q = rofx_question(eng_falcon_exchange(c));
	const struct tcp_tuple *ends = tcp_tuple(c->tcp);
	const struct rofx_side none = {0};

	if (c->su->listener != ENG_LISTENER_BY_QPN || !sk_addr_eq(&q->gid, &ends->raddr) ||
		!sk_addr_eq(&q->to_gid, &ends->laddr)) {
		rofx_reject(eng_falcon_exchange(c), ROFX_NO_SERVICE, NULL, 0);
		falcon_startup_give_up(t, c, -EPROTO);
		return;
	}
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
	eng_conn_pend(t, c, ECONN_P_CLOSE);
}

static void
falcon_startup_failed(struct eng_transport *t, struct eng_conn *c)
{
	enum rofx_reason why = rofx_why(eng_falcon_exchange(c));
	bool aborted = why == ROFX_REFUSED && c->part != NULL && eng_falcon_conn_of(c)->fa != NULL;

	sk_count(eng_falcon_of(t)->rofx_counters, why);
	falcon_startup_give_up(t, c, aborted ? -ECONNRESET : falcon_startup_error_of(why));
}

/* Handles the events of the exchange, and sends its frames. */
static void
falcon_startup_advance(struct eng_transport *t, struct eng_conn *c)
{
	struct rofx *x = eng_falcon_exchange(c);
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
			if (eng_falcon_take_key(t, eng_falcon_conn_of(c)) < 0)
				falcon_startup_give_up(t, c, -ENOMEM);
			break;
		case ROFX_EV_REKEYED:
			eng_falcon_key_taken(t, eng_falcon_conn_of(c));
			break;
		default: /* the end of the stream, which TCP reports, too */
			break;
		}
	}
	if (eng_falcon_send(t, c) < 0)
		falcon_startup_give_up(t, c, -ENOMEM);
	if ((c->state == ECONN_DRAIN || c->state == ECONN_DEAD) && (c->pending & ECONN_P_CLOSE))
		falcon_startup_end(t, c);
	else
		set_timer(t, c);
}

bool
eng_falcon_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain)
{
	/* Once this side has ended the exchange, it ignores the rest of the stream. It must accept
	 * the bytes: lib/tcp keeps a connection until its owner has all of them. */
	const bool ended = c->pending & (ECONN_P_ABORT | ECONN_P_CLOSE | ECONN_P_FAIL);
	bool over = ended;

	if (!ended && !eng_falcon_may(t, c, false))
		return false;
	for (const struct tcp_slice *s = chain; s != NULL; s = s->next) {
		tcp_consumed(c->tcp, s->len);
		over = over || rofx_input(eng_falcon_exchange(c), t->now, s->data, s->len) < 0;
	}
	eng_slice_free(chain);
	if (ended)
		return true;
	falcon_startup_advance(t, c);
	return true;
}

bool
eng_falcon_begins(const struct eng_transport *t, const struct tcp_slice *chain)
{
	return eng_falcon_of(t) != NULL && rofx_match(chain->data, chain->len) != 0;
}

/* ---- Functions of eng_link_falcon ---- */

int
eng_falcon_listen(struct eng_transport *t, struct eng_conn *c)
{
	struct rofx_config cfg;
	struct rofx *x = rofx_listen(exchange_config(t, tcp_tuple(c->tcp), &cfg), t->now);
	int rc = x != NULL ? eng_falcon_half_create(t, c, x) : -ENOMEM;

	if (rc < 0)
		rofx_destroy(x);
	return rc;
}

static int
ask_for(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m)
{
	struct rofx_question q = {.service = m->connect.service,
		.gid = ends->laddr,
		.to_gid = ends->raddr,
		.private_len = m->private_len};
	struct rofx_config cfg;
	int rc = 0;

	memcpy(q.private_data, m->private_data, q.private_len);
	c->su->service = m->connect.service;
	eng_falcon_conn_of(c)->x = rofx_lookup(exchange_config(t, ends, &cfg), t->now, &q, &rc);
	if (rc == -ENOKEY)
		sk_count(eng_falcon_of(t)->rofx_counters, ROFX_NO_KEY);
	return eng_falcon_conn_of(c)->x == NULL ? rc : 0;
}

int
eng_falcon_found(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	int rc;

	if (c->su->notice != ENG_TC_LOOKUP)
		return -ENOENT;
	rc = rofx_found(eng_falcon_exchange(c), m->lookup.qpn, m->lookup.qkey, m->private_data,
		m->private_len);
	if (rc == 0)
		rc = eng_falcon_send(t, c);
	falcon_startup_end(t, c);
	return rc;
}

int
eng_falcon_connect(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m)
{
	struct rofx_config cfg;
	struct rofx_side side;
	int rc;

	if (eng_falcon_of(t) == NULL)
		return -EPROTONOSUPPORT;
	rc = eng_falcon_half_create(t, c, NULL);
	if (rc < 0)
		return rc;
	c->part = eng_falcon_reserve(t, c);
	if (c->part == NULL)
		return -ENOBUFS;
	if (m->type == ENG_CT_LOOKUP)
		return ask_for(t, c, ends, m);
	rc = eng_falcon_terms(t, c, ends, &m->connect.offer, &side);
	if (rc == 0)
		eng_falcon_conn_of(c)->x = rofx_connect(exchange_config(t, ends, &cfg), t->now,
			&side, m->private_data, m->private_len, &rc);
	explicit_bzero(&side, sizeof(side));
	if (rc == -ENOKEY)
		sk_count(eng_falcon_of(t)->rofx_counters, ROFX_NO_KEY);
	return eng_falcon_conn_of(c)->x == NULL ? rc : 0;
}

void
eng_falcon_begin(struct eng_transport *t, struct eng_conn *c)
{
	falcon_startup_advance(t, c);
}

void
eng_falcon_connected(struct eng_transport *t, struct eng_conn *c)
{
	if (eng_falcon_may(t, c, true))
		eng_falcon_begin(t, c);
}

int
eng_falcon_reject(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	enum rofx_reason why = m->reject.why != 0 ? (enum rofx_reason)m->reject.why : ROFX_REFUSED;
	int rc = rofx_reject(eng_falcon_exchange(c), why, m->private_data, m->private_len);

	if (rc == 0)
		rc = eng_falcon_send(t, c);
	falcon_startup_end(t, c);
	return rc;
}

/* ENG_TC_ESTABLISHED follows when the initiator has sent READY. */
int
eng_falcon_accept(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	const struct tcp_tuple *ends = tcp_tuple(c->tcp);
	struct rofx *x = eng_falcon_exchange(c);
	struct rofx_side side;
	int rc;

	rc = eng_falcon_terms(t, c, ends, &m->connect.offer, &side);
	if (rc == 0) {
		eng_falcon_list_ports(t, x, ends, &side, &rofx_request(x)->peer);
		rc = rofx_accept(x, t->now, &side, m->private_data, m->private_len);
	}
	explicit_bzero(&side, sizeof(side));
	if (rc == -EPROTO) /* the exchange sends the peer the reason, then the stream ends */
		rc = 0;
	if (rc == 0)
		falcon_startup_advance(t, c);
	return rc;
}

int
eng_falcon_self(struct eng_transport *t, struct eng_conn *c)
{
	struct rofx_side side;
	int rc;

	if (eng_falcon_conn_of(c) == NULL)
		return -EINVAL;
	side = rofx_request(eng_falcon_exchange(c))->peer;
	/* The initiator detects that it is its own peer, and uses its own keys. */
	memset(side.key128, 0, sizeof(side.key128));
	memset(side.key256, 0, sizeof(side.key256));
	c->state = ECONN_DRAIN;
	rc = rofx_accept(eng_falcon_exchange(c), t->now, &side, NULL, 0);
	if (rc < 0)
		eng_conn_pend(t, c, ECONN_P_ABORT);
	else
		falcon_startup_advance(t, c);
	eng_startup_free(t, c); /* this end has no further events */
	return rc;
}

void
eng_falcon_expired(struct eng_transport *t, struct eng_conn *c)
{
	rofx_timeout(eng_falcon_exchange(c), t->now);
	falcon_startup_advance(t, c);
}
