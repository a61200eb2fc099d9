/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start-up of MPA on a TCP connection: a request and a reply (RFC 5044, section 7.1; RFC 6581),
 * and the notices about them to the control stage.
 */
#include "iwarp_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../base/mem.h"

static int
mpa_create(struct eng_conn *c, bool initiator)
{
	struct eng_mpa *mpa = calloc(1, sizeof(*mpa));

	if (mpa == NULL)
		return -ENOMEM;
	c->su->part = mpa;
	mpa_startup_init(&mpa->startup, initiator, &c->su->offer.mpa);
	return 0;
}

void
eng_mpa_free(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_mpa *mpa = eng_mpa_of(c);

	if (mpa == NULL)
		return;
	eng_slice_free(mpa->held);
	free(mpa);
	c->su->part = NULL;
}

/* Accepts every stream: the streams of other transports begin with bytes that MPA does not use, and
 * MPA rejects any other invalid stream. */
bool
eng_mpa_begins(const struct eng_transport *t, const struct tcp_slice *chain)
{
	return true;
}

int
eng_mpa_listen(struct eng_transport *t, struct eng_conn *c)
{
	return mpa_create(c, false);
}

int
eng_mpa_connect(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m)
{
	struct eng_mpa *mpa;

	if (m->type != ENG_CT_CONNECT)
		return -EPROTONOSUPPORT;
	if (m->private_len > sizeof(mpa->private_data) ||
		m->private_len > mpa_private_max(m->connect.offer.mpa.revision))
		return -EMSGSIZE;
	if (mpa_create(c, true) < 0)
		return -ENOMEM;
	mpa = eng_mpa_of(c);
	mpa->asked = m->connect.tuple;
	mpa->private_len = m->private_len;
	memcpy(mpa->private_data, m->private_data, m->private_len);
	return 0;
}

/* A second attempt follows when the peer closed the connection without a reply, as a peer without
 * support for enhanced requests does (RFC 6581, section 10). */
void
eng_mpa_retry(const struct eng_conn *c, struct eng_ctl *m)
{
	const struct eng_startup *su = c->su;
	const struct eng_mpa *mpa = eng_mpa_of(c);
	struct eng_offer *offer = &m->connect.offer;

	if (mpa == NULL || !su->offer.retry || c->error != -ECONNRESET || !mpa->startup.initiator ||
		!mpa_fall_back(&mpa->startup, &offer->mpa))
		return;
	offer->kind = ENG_IWARP;
	offer->retry = true;
	offer->ird = offer->mpa.ird;
	offer->ord = offer->mpa.ord;
	offer->class = su->offer.class;
	m->connect.tuple = mpa->asked;
	m->private_len = mpa->private_len;
	memcpy(m->private_data, mpa->private_data, mpa->private_len);
}

/* Sends a start-up frame of `n` bytes in `rec`, and takes `rec`. A negative `n` is the -errno of
 * creating the frame, which the function returns. */
static int
send_frame(struct eng_transport *t, struct eng_conn *c, struct tcp_rec *rec, int n)
{
	if (n < 0) {
		eng_rec_free(rec);
		return n;
	}
	rec->len = (uint32_t)n;
	return tcp_send(c->tcp, rec);
}

static int
send_reply(struct eng_transport *t, struct eng_conn *c, bool accept, uint16_t ird, uint16_t ord,
	const struct eng_ctl *m)
{
	struct tcp_rec *rec = eng_rec_alloc(t->tx_pool);

	if (rec == NULL)
		return -ENOMEM;
	return send_frame(t, c, rec,
		mpa_reply_emit(&eng_mpa_of(c)->startup, rec->data, accept, ird, ord,
			m->private_data, m->private_len));
}

int
eng_mpa_reject(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	return send_reply(t, c, false, m->reject.ird, m->reject.ord, m);
}

/* Copies the terms that both sides agreed on, or that the peer requested, for the next notice. */
static void
mpa_note_outcome(struct eng_conn *c)
{
	const struct mpa_startup *s = &eng_mpa_of(c)->startup;
	struct eng_startup *su = c->su;

	su->outcome = (struct eng_outcome){
		.kind = ENG_IWARP,
		.ird = s->result.ird,
		.ord = s->result.ord,
		.peer_ird = s->result.peer_ird,
		.peer_ord = s->result.peer_ord,
		.mpa = s->result,
	};
	su->private_len = SK_MIN(s->peer_private.len, (uint16_t)SHM_PRIVATE_MAX);
	memcpy(su->private_data, s->peer_private.data, su->private_len);
}

static void
mpa_notice(struct eng_transport *t, struct eng_conn *c, uint16_t notice)
{
	mpa_note_outcome(c);
	eng_startup_notice(t, c, notice);
}

/* Starts the time in which a responder, after its reply, must not send. This time ends with the
 * first FPDU of the initiator (RFC 5044, section 7.1.2), and the configuration may limit it. There
 * is no limit when both sides agreed on a ready-to-receive message, because the initiator then
 * sends one. */
static void
hold_begins(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_mpa *mpa = eng_mpa_of(c);
	uint64_t most = t->e->cfg.mpa_first_fpdu_ns;

	if (most == 0 || mpa->startup.result.rtr != MPA_RTR_NONE)
		return;
	mpa->holds = true;
	sk_timer_set(&t->wheel, &c->su->timer, t->now + most);
}

int
eng_mpa_accept(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	const struct eng_offer *offer = &m->connect.offer;
	int rc;

	mpa_startup_choose(&eng_mpa_of(c)->startup, &offer->mpa);
	rc = send_reply(t, c, true, offer->ird, offer->ord, m);
	if (rc != 0)
		return rc;
	mpa_notice(t, c, ENG_TC_ESTABLISHED);
	hold_begins(t, c);
	return 0;
}

static void
mpa_established(struct eng_transport *t, struct eng_conn *c)
{
	uint64_t delay = t->e->cfg.mpa_first_fpdu_delay_ns;

	c->state = ECONN_ESTABLISHED;
	eng_mpa_of(c)->holds = delay > 0;
	if (delay > 0)
		sk_timer_set(&t->wheel, &c->su->timer, t->now + delay);
	else
		mpa_notice(t, c, ENG_TC_ESTABLISHED);
}

/* Ends the time in which this side must not send. A responder also waits until its reply is
 * acknowledged: the peer could read an FPDU that arrives with the reply as a part of it. */
static void
hold_ends(struct eng_transport *t, struct eng_conn *c)
{
	bool passive = !eng_mpa_of(c)->startup.initiator;

	if (passive && c->tcp != NULL && !tcp_all_acked(c->tcp)) {
		hold_begins(t, c);
		return;
	}
	eng_mpa_of(c)->holds = false;
	if (c->state == ECONN_ESTABLISHED)
		mpa_notice(t, c, ENG_TC_ESTABLISHED);
	else if (passive && c->state == ECONN_BOUND && c->tcp != NULL)
		eng_conn_pend(t, c, ECONN_P_SPEAK);
}

void
eng_mpa_expired(struct eng_transport *t, struct eng_conn *c)
{
	if (eng_mpa_of(c)->holds)
		hold_ends(t, c);
	else
		eng_startup_fail(t, c, -ETIMEDOUT);
}

/* Ends the stream after a failed start-up: with a Terminate message if the peer has accepted, and
 * otherwise with a reset. */
static void
send_terminate(struct eng_transport *t, struct eng_conn *c)
{
	const struct mpa_startup *s = &eng_mpa_of(c)->startup;
	struct tcp_rec *rec = eng_rec_alloc(t->tx_pool);
	int n = rec != NULL ? (int)mpa_terminate_emit(s, rec->data) : 0;
	bool sent = n > 0 && send_frame(t, c, rec, n) == 0;

	if (n == 0 && rec != NULL)
		eng_rec_free(rec);
	eng_conn_pend(t, c, sent ? ECONN_P_CLOSE : ECONN_P_ABORT);
}

void
eng_mpa_abandon(struct eng_transport *t, struct eng_conn *c)
{
	mpa_startup_abandon(&eng_mpa_of(c)->startup);
	send_terminate(t, c);
}

/* Returns the -errno that the program receives. */
static int
mpa_error_of(enum mpa_reason why)
{
	switch (why) {
	case MPA_NO_IRD:
		return -ENOBUFS;
	case MPA_NO_RTR:
		return -EOPNOTSUPP;
	default:
		return -EPROTO;
	}
}

/* Ends a start-up in which the peer sent an invalid frame (RFC 6581, section 8). */
static void
mpa_refuse(struct eng_transport *t, struct eng_conn *c)
{
	const struct mpa_startup *s = &eng_mpa_of(c)->startup;
	struct eng_iwarp *iw = t->part[ENG_IWARP];

	sk_count(iw->mpa_counters, s->why);
	if (!s->accepted) {
		eng_startup_fail(t, c, mpa_error_of(s->why));
		return;
	}
	c->error = mpa_error_of(s->why);
	c->state = ECONN_DEAD;
	eng_startup_notice(t, c, ENG_TC_FAILED);
	send_terminate(t, c);
}

void
eng_mpa_connected(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_mpa *mpa = eng_mpa_of(c);
	struct tcp_rec *rec = eng_rec_alloc(t->tx_pool);

	if (rec == NULL || send_frame(t, c, rec,
				   mpa_request_emit(&mpa->startup, rec->data, mpa->private_data,
					   mpa->private_len)) != 0)
		eng_startup_fail(t, c, -ENOMEM);
	sk_timer_set(&t->wheel, &c->su->timer, t->now + ENG_REPLY_TIMEOUT_NS);
}

/* Acts on the state that the exchange has reached. */
static void
mpa_advance(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_iwarp *iw = t->part[ENG_IWARP];

	switch (eng_mpa_of(c)->startup.state) {
	case MPA_REQUESTED:
		c->state = ECONN_REQUESTED;
		mpa_notice(t, c, ENG_TC_REQUEST);
		break;
	case MPA_ACCEPTED:
		mpa_established(t, c);
		break;
	case MPA_REFUSED:
		sk_count(iw->mpa_counters, MPA_REJECTED);
		c->state = ECONN_DEAD;
		mpa_notice(t, c, ENG_TC_REJECTED);
		eng_conn_pend(t, c, ECONN_P_CLOSE);
		break;
	default:
		break;
	}
}

bool
eng_mpa_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain)
{
	struct mpa_startup *s = &eng_mpa_of(c)->startup;

	while (chain != NULL) {
		int n = mpa_startup_input(s, chain->data, chain->len);
		struct tcp_slice *next = chain->next;

		if (n < 0) {
			mpa_refuse(t, c);
			break;
		}
		tcp_consumed(c->tcp, (uint32_t)n);
		chain->data += n;
		chain->len -= (uint32_t)n;
		/* FPDUs may follow a reply, but no bytes may follow a request (RFC 5044, section
		 * 7.1.2). */
		if (chain->len > 0 && s->initiator)
			break;
		if (chain->len > 0)
			continue;
		chain->next = NULL;
		eng_slice_free(chain);
		chain = next;
	}
	eng_mpa_of(c)->held = chain; /* FPDUs, or bytes of a stream that has failed */
	mpa_advance(t, c);
	return true;
}
