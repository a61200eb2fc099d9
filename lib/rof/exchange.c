/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machine of an exchange: which frame is valid in which state, and its effect.
 * exchange_answer.c has the calls of the application.
 */
#include "exchange_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/prf.h"
#include "../base/secret.h"

#define MS_NS 1000000u
/* How often a request is repeated: beyond the carriers that a peer opens in search of a stage. */
#define REPEATS_MOST 40

/* ---- Ends ---- */

static void
rofx_raise(struct rofx *x, enum rofx_event ev)
{
	x->events |= (uint16_t)(1u << ev);
}

int
rofx_fail_silent(struct rofx *x, enum rofx_reason why)
{
	x->state = ROFX_S_FAILED;
	x->why = (uint8_t)why;
	x->deadline = UINT64_MAX;
	x->events = 0;
	rofx_raise(x, ROFX_EV_FAILED);
	return -(int)why;
}

int
rofx_fail(struct rofx *x, enum rofx_reason why)
{
	struct rofx_frame f = {.type = ROFX_F_REJECT, .why = why};
	bool asks = x->state == ROFX_S_ASKED || x->state == ROFX_S_LOOKUP;

	if (asks && x->out_len > 0) /* the request has not left, or waits to leave again */
		rofx_forget(x);
	if (!asks || x->passed)
		(void)rofx_send(x, &f); /* no room: the peer gets no reason */
	return rofx_fail_silent(x, why);
}

/* ---- Received frames ---- */

/* Copies the private data of a frame; the check of its header limits them to ROFX_PRIVATE_MAX. */
static void
copy_private(const struct rofx_frame *f, uint16_t *len, uint8_t *data)
{
	*len = f->private_len;
	memcpy(data, f->private_data, f->private_len);
}

/* Takes the peer's key for the agreed version. */
static int
take_key(struct rofx *x, const struct rofx_frame *f)
{
	if (f->key_len != psp_key_len(x->agreed->psp))
		return rofx_fail(x, ROFX_CONTRADICTION);
	memcpy(x->agreed->tx.key, f->sa.key, f->key_len);
	return 0;
}

/* Keeps what the established connection needs of the agreement. */
static void
take_terms(struct rofx *x)
{
	x->psp = x->agreed->psp;
	x->rx_spi = x->was_spi = x->agreed->rx.spi;
	x->tx_spi = x->agreed->tx.spi;
}

/* Notes whether the peer supports lists of ports, and takes its list. */
static void
take_list(struct rofx *x, const struct rofx_frame *f)
{
	x->su->lists = f->list != ROFX_LIST_UNKNOWN;
	x->agreed->listed = f->list == ROFX_LIST_FOLLOWS;
	if (x->agreed->listed)
		memcpy(x->agreed->tx_ports, f->ports, sizeof(f->ports));
}

static int
on_connect(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	struct rofx_request *r = &x->su->request;

	x->su->digest = f->digest;
	r->peer = f->side;
	r->secure = x->secure;
	r->service = f->service;
	r->port = f->port;
	x->su->lists = f->list != ROFX_LIST_UNKNOWN;
	copy_private(f, &r->private_len, r->private_data);
	x->state = ROFX_S_DECIDE;
	x->deadline = UINT64_MAX;
	rofx_raise(x, ROFX_EV_REQUEST);
	return 0;
}

static int
on_lookup(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	struct rofx_question *q = &x->su->question;

	x->su->digest = f->digest;
	q->service = f->service;
	q->gid = f->gid;
	q->to_gid = f->to_gid;
	copy_private(f, &q->private_len, q->private_data);
	x->state = ROFX_S_SEARCH;
	x->deadline = UINT64_MAX;
	rofx_raise(x, ROFX_EV_LOOKUP);
	return 0;
}

/* Processes a request that the initiator repeats, because a carrier has ended: the answer is sent
 * again, or follows when the application has decided. */
static int
on_repeated(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	if (f->digest != x->su->digest)
		return rofx_fail(x, ROFX_CONTRADICTION);
	if (x->state != ROFX_S_ANSWERED)
		x->deadline = UINT64_MAX;
	else if (x->out_len == 0 && rofx_send_accept(x) != 0)
		return rofx_fail_silent(x, ROFX_FLOOD);
	return 0;
}

static int
on_accept(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	int err = rofx_settle_reply(&x->su->ours, &f->side, x->agreed);

	if (err != 0)
		return rofx_fail(x, err);
	if (take_key(x, f) < 0)
		return -ROFX_CONTRADICTION;
	take_list(x, f);
	take_terms(x);
	copy_private(f, &x->agreed->private_len, x->agreed->private_data);
	rofx_forget(x); /* the request that waits to be repeated */
	x->state = ROFX_S_AGREED;
	x->deadline = now + x->reply_ns; /* until READY is confirmed */
	rofx_raise(x, ROFX_EV_AGREED);
	return 0;
}

/* Processes an ACCEPT that the responder has repeated, because it received the request again. READY
 * is on its way. */
static int
on_accept_again(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	return x->initiator ? 0 : rofx_fail(x, ROFX_UNEXPECTED);
}

/* Queues a frame without a body, unless one of this type waits. If there is no room it is not sent:
 * a peer that needs it repeats its own frame. */
static void
send_once(struct rofx *x, uint8_t type)
{
	struct rofx_frame f = {.type = type};

	if (!rofx_queued(x, type))
		(void)rofx_send(x, &f);
}

static int
on_ready_again(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	if (x->initiator)
		return rofx_fail(x, ROFX_UNEXPECTED);
	send_once(x, ROFX_F_CHECK); /* confirms READY */
	return 0;
}

static int
on_ready(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	if (f->list == ROFX_LIST_FOLLOWS && !x->su->lists)
		return rofx_fail(x, ROFX_CONTRADICTION);
	if (take_key(x, f) < 0)
		return -ROFX_CONTRADICTION;
	take_list(x, f);
	take_terms(x);
	send_once(x, ROFX_F_CHECK); /* confirms READY */
	x->state = ROFX_S_LIVE;
	x->deadline = UINT64_MAX;
	rofx_raise(x, ROFX_EV_ESTABLISHED);
	return 0;
}

static int
on_found(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	struct rofx_answer *a = &x->su->answer;

	a->qpn = f->qpn;
	a->qkey = f->qkey;
	copy_private(f, &a->private_len, a->private_data);
	x->state = ROFX_S_DONE;
	x->deadline = UINT64_MAX;
	rofx_raise(x, ROFX_EV_FOUND);
	return 0;
}

static int
on_later(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	uint64_t delay = (uint64_t)SK_MIN(SK_MAX(f->delay_ms, 1u), ROFX_LATER_MAX_MS) * MS_NS;

	if (now + delay > x->su->patience_end)
		return rofx_fail(x, ROFX_NOT_READY);
	rofx_forget(x); /* the request that waits to be repeated */
	x->state = ROFX_S_AGAIN;
	x->deadline = now + delay;
	return 0;
}

/* Queues the request again, for another carrier. */
static int
ask_again(struct rofx *x)
{
	if (x->out_len > 0)
		return 0;
	if (x->su->repeats++ >= REPEATS_MOST)
		return rofx_fail_silent(x, ROFX_CLOSED);
	return rofx_send_request(x) == 0 ? 0 : rofx_fail_silent(x, ROFX_FLOOD);
}

/* Processes the rejection of a CONNECT or LOOKUP, with the application's private data. A request on
 * a carrier that is retired is repeated on another one, and one that the peer has forgotten after
 * LATER begins anew. */
static int
on_reject(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	bool forgotten = f->why == ROFX_GONE && x->peer_id != ROFX_NO_ID;

	if (x->state != ROFX_S_AGAIN && (f->why == ROFX_RETIRED || forgotten) &&
		now < x->su->patience_end) {
		x->peer_id = ROFX_NO_ID;
		return ask_again(x);
	}
	rofx_forget(x);
	copy_private(f, &x->agreed->private_len, x->agreed->private_data);
	x->state = ROFX_S_DONE;
	x->why = (uint8_t)f->why;
	x->deadline = UINT64_MAX;
	rofx_raise(x, ROFX_EV_REJECTED);
	return 0;
}

/* Processes a REJECT in any other state: the peer gives up. */
static int
on_given_up(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	return rofx_fail_silent(x, f->why);
}

/* Ends the connection when both sides have ended it. */
static void
end_if_over(struct rofx *x)
{
	if (!x->finished || !x->ended)
		return;
	x->state = ROFX_S_DONE;
	x->deadline = UINT64_MAX;
}

static int
on_end(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	if (x->ended) /* repeated on another carrier */
		return 0;
	x->ended = true;
	rofx_raise(x, ROFX_EV_ENDED);
	end_if_over(x);
	return 0;
}

/* Processes a REJECT of an established connection. A peer that has seen END and has forgotten the
 * connection since reports that it is gone: the END that answers ours was lost with a carrier. */
static int
on_broken(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	return x->finished && f->why == ROFX_GONE ? on_end(x, now, f) : on_given_up(x, now, f);
}

static int
on_check(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	return 0; /* only a side without the connection answers */
}

static int
on_rekey(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	if (f->sa.spi == x->tx_spi && f->sa.version == x->psp) {
		/* Repeated on another carrier: REKEYED may have been lost, or waits. */
		if (!x->rekeyed && !rofx_queued(x, ROFX_F_REKEYED)) {
			x->rekeyed = true;
			return rofx_rekeyed(x) == 0 ? 0 : rofx_fail_silent(x, ROFX_FLOOD);
		}
		return 0;
	}
	if (x->rekeyed)
		return rofx_fail(x, ROFX_UNEXPECTED);
	if (f->sa.version != x->psp || f->key_len != psp_key_len(x->psp))
		return rofx_fail(x, ROFX_CONTRADICTION);
	x->theirs = sk_secret_alloc(sizeof(*x->theirs));
	if (x->theirs == NULL)
		return rofx_fail(x, ROFX_NO_RESOURCE);
	x->theirs->version = x->psp;
	x->theirs->spi = x->tx_spi = f->sa.spi;
	memcpy(x->theirs->key, f->sa.key, f->key_len);
	x->rekeyed = true;
	rofx_raise(x, ROFX_EV_REKEY);
	return 0;
}

static int
on_rekeyed(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	if (f->spi != x->rx_spi && f->spi != x->was_spi)
		return rofx_fail(x, ROFX_UNEXPECTED);
	/* The answer to a REKEY that was repeated may arrive when the next change is under way. */
	if (!x->rekeying || f->spi != x->rx_spi)
		return 0;
	x->rekeying = false;
	rofx_unqueue(x, ROFX_F_REKEY); /* it waits to be repeated */
	sk_secret_free(x->ours, sizeof(*x->ours));
	x->ours = NULL;
	if (!x->finished) /* else it is the limit for the answer to END */
		x->deadline = UINT64_MAX;
	rofx_raise(x, ROFX_EV_REKEYED);
	return 0;
}

/* A frame without an entry is invalid in that state. */
typedef int (*step_fn)(struct rofx *x, uint64_t now, const struct rofx_frame *f);
static const step_fn steps[ROFX_S_COUNT][ROFX_F_COUNT] = {
	[ROFX_S_ASKED] = {[ROFX_F_ACCEPT] = on_accept,
		[ROFX_F_REJECT] = on_reject,
		[ROFX_F_LATER] = on_later},
	/* An answer to a request that was repeated may arrive beside the first one. */
	[ROFX_S_AGAIN] = {[ROFX_F_ACCEPT] = on_accept,
		[ROFX_F_REJECT] = on_reject,
		[ROFX_F_LATER] = on_later},
	[ROFX_S_LOOKUP] = {[ROFX_F_FOUND] = on_found, [ROFX_F_REJECT] = on_reject},
	[ROFX_S_AGREED] = {[ROFX_F_ACCEPT] = on_accept_again, [ROFX_F_REJECT] = on_given_up},
	[ROFX_S_WAIT] = {[ROFX_F_CONNECT] = on_connect,
		[ROFX_F_LOOKUP] = on_lookup,
		[ROFX_F_REJECT] = on_given_up},
	[ROFX_S_DECIDE] = {[ROFX_F_CONNECT] = on_repeated, [ROFX_F_REJECT] = on_given_up},
	[ROFX_S_SEARCH] = {[ROFX_F_LOOKUP] = on_repeated, [ROFX_F_REJECT] = on_given_up},
	[ROFX_S_ANSWERED] = {[ROFX_F_CONNECT] = on_repeated,
		[ROFX_F_READY] = on_ready,
		[ROFX_F_REJECT] = on_given_up},
	[ROFX_S_LIVE] = {[ROFX_F_ACCEPT] = on_accept_again,
		[ROFX_F_READY] = on_ready_again,
		[ROFX_F_REKEY] = on_rekey,
		[ROFX_F_REKEYED] = on_rekeyed,
		[ROFX_F_END] = on_end,
		[ROFX_F_CHECK] = on_check,
		[ROFX_F_REJECT] = on_broken},
};

/* Returns whether a frame of this type is valid in the current state. */
static bool
rofx_expected(const struct rofx *x, uint8_t type)
{
	return steps[x->state][type] != NULL;
}

/* Runs the state machine with a frame. Returns 0 or -reason. */
static int
rofx_step(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	return steps[x->state][f->type](x, now, f);
}

/* Checks that a frame is one of the exchange's peer. The first frame names it. */
static bool
is_peers(const struct rofx *x, const struct rofx_frame *f)
{
	if (f->to != x->id && f->to != ROFX_NO_ID)
		return false;
	return f->from == x->peer_id || x->peer_id == ROFX_NO_ID;
}

/* Returns whether the frame shows that the peer has READY: a responder sends it afterwards only. */
static bool
confirms(uint8_t type)
{
	return type == ROFX_F_CHECK || type == ROFX_F_REKEY || type == ROFX_F_REKEYED ||
	       type == ROFX_F_END;
}

/* Notes that the peer has READY. */
static void
confirmed(struct rofx *x)
{
	x->unconfirmed = false;
	if (!x->rekeying && !x->finished)
		x->deadline = UINT64_MAX;
	if (x->trims)
		rofx_trim(x);
}

int
rofx_take(struct rofx *x, uint64_t now, const struct rofx_carrier *k, const struct rofx_frame *f)
{
	static const struct sk_key plain;
	struct rofx_frame whole = *f;
	int err;

	if (!is_peers(x, f) || (x->secure && !k->secure))
		return -ROFX_UNKNOWN;
	if (x->state >= ROFX_S_DONE)
		return 0;
	if (!rofx_expected(x, f->type))
		return rofx_fail(x, ROFX_UNEXPECTED);
	if (f->type == ROFX_F_ACCEPT || f->type == ROFX_F_LATER)
		x->peer_id = f->from;
	if (x->unconfirmed && confirms(f->type))
		confirmed(x);
	if (f->type == ROFX_F_CONNECT || f->type == ROFX_F_LOOKUP)
		whole.digest = sk_siphash(&plain, f->private_data, f->private_len);
	err = rofx_frame_parse(&whole, f->private_data, f->private_len);
	err = err != 0 ? rofx_fail(x, err) : rofx_step(x, now, &whole);
	explicit_bzero(&whole, sizeof(whole));
	return err;
}

/* ---- The end of a carrier, and timeouts ---- */

/* Queues again what an established connection has sent, and nobody has confirmed. A frame that
 * still waits was not lost: a copy would take the room of others. */
static void
lost_live(struct rofx *x)
{
	if (x->unconfirmed && !rofx_queued(x, ROFX_F_READY))
		(void)rofx_send_ready(x);
	if (x->rekeying && !rofx_queued(x, ROFX_F_REKEY))
		(void)rofx_send_rekey(x);
	if (x->finished || !x->unconfirmed)
		send_once(x, x->finished ? ROFX_F_END : ROFX_F_CHECK);
}

void
rofx_lost(struct rofx *x, uint64_t now)
{
	switch (x->state) {
	case ROFX_S_ASKED:
	case ROFX_S_LOOKUP:
		(void)ask_again(x);
		break;
	case ROFX_S_DECIDE:
	case ROFX_S_SEARCH:
		/* The initiator repeats its request, if it still exists. */
		x->deadline = now + x->su->cfg.request_ns;
		break;
	case ROFX_S_LIVE:
		lost_live(x);
		break;
	default: /* the initiator repeats its request, or READY */
		break;
	}
}

bool
rofx_confirmed(const struct rofx *x)
{
	return x->state == ROFX_S_LIVE && !x->unconfirmed;
}

bool
rofx_finished(const struct rofx *x)
{
	return x->finished && x->ended;
}

int
rofx_finish(struct rofx *x, uint64_t now)
{
	struct rofx_frame f = {.type = ROFX_F_END};

	if (x->state != ROFX_S_LIVE)
		return -EINVAL;
	if (x->finished)
		return 0;
	if (rofx_send(x, &f) != 0) {
		rofx_fail_silent(x, ROFX_FLOOD);
		return 0;
	}
	x->finished = true;
	x->deadline = now + x->reply_ns;
	end_if_over(x);
	return 0;
}

uint64_t
rofx_deadline(const struct rofx *x)
{
	return x->deadline;
}

void
rofx_timeout(struct rofx *x, uint64_t now)
{
	if (now < x->deadline || x->deadline == UINT64_MAX)
		return;
	if (x->state == ROFX_S_AGAIN)
		rofx_send_connect(x, now);
	else
		rofx_fail(x, ROFX_TIMEOUT);
}

enum rofx_event
rofx_event(struct rofx *x)
{
	unsigned ev;

	if (x->events == 0)
		return ROFX_EV_NONE;
	ev = (unsigned)__builtin_ctz(x->events);
	x->events &= (uint16_t)(x->events - 1);
	return ev;
}
