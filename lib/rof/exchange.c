/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machine of the exchange: which frame is valid in which state, and its effect.
 * exchange_answer.c has the calls of the application.
 */
#include "exchange_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"

#define MS_NS 1000000u

/* ---- Ends ---- */

void
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

	(void)rofx_send(x, &f); /* no room: the peer gets no reason but the stream's end */
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

/* Notes whether the peer knows lists of ports, and takes its list. */
static void
take_list(struct rofx *x, const struct rofx_frame *f)
{
	x->lists = f->list != ROFX_LIST_UNKNOWN;
	x->agreed->listed = f->list == ROFX_LIST_FOLLOWS;
	if (x->agreed->listed)
		memcpy(x->agreed->tx_ports, f->ports, sizeof(f->ports));
}

static int
on_connect(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	struct rofx_request *r = &x->su->request;

	r->peer = f->side;
	r->secure = x->secure;
	x->lists = f->list != ROFX_LIST_UNKNOWN;
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

	q->service = f->service;
	q->gid = f->gid;
	q->to_gid = f->to_gid;
	copy_private(f, &q->private_len, q->private_data);
	x->state = ROFX_S_SEARCH;
	x->deadline = UINT64_MAX;
	rofx_raise(x, ROFX_EV_LOOKUP);
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
	copy_private(f, &x->agreed->private_len, x->agreed->private_data);
	x->state = ROFX_S_AGREED;
	x->deadline = UINT64_MAX;
	rofx_raise(x, ROFX_EV_AGREED);
	return 0;
}

static int
on_ready(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	if (f->list == ROFX_LIST_FOLLOWS && !x->lists)
		return rofx_fail(x, ROFX_CONTRADICTION);
	if (take_key(x, f) < 0)
		return -ROFX_CONTRADICTION;
	take_list(x, f);
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

	if (now + delay > x->patience_end)
		return rofx_fail(x, ROFX_NOT_READY);
	x->state = ROFX_S_AGAIN;
	x->deadline = now + delay;
	return 0;
}

/* Processes the rejection of a CONNECT or LOOKUP, with the application's private data. */
static int
on_reject(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
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

static int
on_rekey(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	struct rofx_agreed *a = x->agreed;

	if (x->rekeyed)
		return rofx_fail(x, ROFX_UNEXPECTED);
	if (f->sa.version != a->psp || f->sa.spi == a->tx.spi)
		return rofx_fail(x, ROFX_CONTRADICTION);
	if (take_key(x, f) < 0)
		return -ROFX_CONTRADICTION;
	a->tx.spi = f->sa.spi;
	x->rekeyed = true;
	rofx_raise(x, ROFX_EV_REKEY);
	return 0;
}

static int
on_rekeyed(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	if (!x->rekeying || f->spi != x->agreed->rx.spi)
		return rofx_fail(x, ROFX_UNEXPECTED);
	x->rekeying = false;
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
	[ROFX_S_AGAIN] = {[ROFX_F_REJECT] = on_reject},
	[ROFX_S_LOOKUP] = {[ROFX_F_FOUND] = on_found, [ROFX_F_REJECT] = on_reject},
	[ROFX_S_AGREED] = {[ROFX_F_REJECT] = on_given_up},
	[ROFX_S_WAIT] = {[ROFX_F_CONNECT] = on_connect,
		[ROFX_F_LOOKUP] = on_lookup,
		[ROFX_F_REJECT] = on_given_up},
	[ROFX_S_DECIDE] = {[ROFX_F_REJECT] = on_given_up},
	[ROFX_S_SEARCH] = {[ROFX_F_REJECT] = on_given_up},
	[ROFX_S_ANSWERED] = {[ROFX_F_READY] = on_ready, [ROFX_F_REJECT] = on_given_up},
	[ROFX_S_LIVE] = {[ROFX_F_REKEY] = on_rekey,
		[ROFX_F_REKEYED] = on_rekeyed,
		[ROFX_F_REJECT] = on_given_up},
};

bool
rofx_expected(const struct rofx *x, uint8_t type)
{
	return steps[x->state][type] != NULL;
}

int
rofx_step(struct rofx *x, uint64_t now, const struct rofx_frame *f)
{
	return steps[x->state][f->type](x, now, f);
}

/* ---- Openings ---- */

static int
opened_reply(struct rofx *x, const struct rofx_opening *o)
{
	if (o->version != ROFX_VERSION)
		return rofx_fail_silent(x, ROFX_BAD_VERSION);
	if (o->status != 0)
		return rofx_fail_silent(x, rofx_reason_of(o->status));
	if (o->security != (x->secure ? ROFX_SECURE : ROFX_CLEAR))
		return rofx_fail_silent(x, ROFX_CONTRADICTION);
	return 0;
}

static enum rofx_reason
judge_opening(const struct rofx *x, const struct rofx_opening *o)
{
	if (o->version != ROFX_VERSION)
		return ROFX_BAD_VERSION;
	if (o->security > ROFX_SECURE)
		return ROFX_MALFORMED;
	if (o->security == ROFX_SECURE && x->identity == NULL)
		return ROFX_NO_TLS;
	if (o->security == ROFX_CLEAR &&
		(x->cfg.require_psp || (x->identity != NULL && !x->cfg.allow_clear)))
		return ROFX_TLS_NEEDED;
	return ROFX_NONE;
}

static int
opened_request(struct rofx *x, const struct rofx_opening *o)
{
	enum rofx_reason why = judge_opening(x, o);
	struct rofx_opening reply = {.reply = true,
		.version = ROFX_VERSION,
		.security = o->security == ROFX_SECURE ? ROFX_SECURE : ROFX_CLEAR};

	if (why == ROFX_NONE && o->security == ROFX_SECURE) {
		why = rofx_link_open(x);
		x->secure = true;
	}
	reply.status = why != ROFX_NONE ? rofx_code(why) : 0;
	rofx_send_opening(x, &reply);
	return why != ROFX_NONE ? rofx_fail_silent(x, why) : 0;
}

int
rofx_opened(struct rofx *x, const struct rofx_opening *o)
{
	x->opened = true;
	x->peer_version = o->version;
	return x->initiator ? opened_reply(x, o) : opened_request(x, o);
}

bool
rofx_handshakes(const struct rofx *x)
{
	if (x->state >= ROFX_S_DONE)
		return false;
	return x->link != NULL ? rofx_link_busy(x->link) : x->identity != NULL && !x->opened;
}

/* ---- The stream's end, and timeouts ---- */

void
rofx_closed(struct rofx *x)
{
	if (x->state >= ROFX_S_DONE)
		return;
	if (x->state != ROFX_S_LIVE) {
		rofx_fail_silent(x, ROFX_CLOSED);
		return;
	}
	x->state = ROFX_S_DONE;
	x->deadline = UINT64_MAX;
	rofx_raise(x, ROFX_EV_ENDED);
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
