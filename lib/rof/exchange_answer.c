/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of the application: it connects or listens, accepts or rejects, and changes keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/secret.h"
#include "exchange_priv.h"

#define REQUEST_NS  3000000000u
#define REPLY_NS    10000000000u
#define PATIENCE_NS 60000000000u

/* ---- Creation and destruction ---- */

static void
defaults(struct rofx_config *c, const struct rofx_config *from)
{
	*c = *from;
	if (c->request_ns == 0)
		c->request_ns = REQUEST_NS;
	if (c->reply_ns == 0)
		c->reply_ns = REPLY_NS;
	if (c->patience_ns == 0)
		c->patience_ns = PATIENCE_NS;
}

static struct rofx *
exchange_answer_create(const struct rofx_config *cfg, uint64_t now, bool initiator)
{
	struct rofx *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return NULL;
	defaults(&x->cfg, cfg);
	x->initiator = initiator;
	x->peer_version = ROFX_VERSION;
	x->frame_room = x->out_room = ROFX_FRAME_MAX;
	x->opening_at = ROFX_OPENING_LEN;
	x->su = sk_secret_alloc(sizeof(*x->su));
	x->agreed = sk_secret_alloc(sizeof(*x->agreed));
	x->frame = sk_secret_alloc(x->frame_room);
	x->out = sk_secret_alloc(x->out_room);
	x->patience_end = now + x->cfg.patience_ns;
	if (cfg->peer != NULL)
		x->peer_addr = *cfg->peer;
	if (cfg->local != NULL)
		x->local_addr = *cfg->local;
	x->has_peer = cfg->peer != NULL;
	x->has_local = cfg->local != NULL;
	if (cfg->tls != NULL)
		x->identity = rofx_identity_hold(cfg->tls);
	x->cfg.tls = NULL;
	x->cfg.peer = x->cfg.local = NULL;
	if (x->su == NULL || x->agreed == NULL || x->frame == NULL || x->out == NULL) {
		rofx_destroy(x);
		return NULL;
	}
	return x;
}

void
rofx_destroy(struct rofx *x)
{
	if (x == NULL)
		return;
	rofx_link_destroy(x->link);
	rofx_identity_release(x->identity);
	sk_secret_free(x->su, sizeof(*x->su));
	sk_secret_free(x->agreed, sizeof(*x->agreed));
	sk_secret_free(x->frame, x->frame_room);
	sk_secret_free(x->out, x->out_room);
	free(x);
}

enum rofx_reason
rofx_link_open(struct rofx *x)
{
	return (enum rofx_reason) - rofx_link_create(&x->link, x->identity, x->initiator,
					    x->has_local ? &x->local_addr : NULL,
					    x->has_peer ? &x->peer_addr : NULL);
}

/* ---- Initiator ---- */

static struct rofx *
initiator(const struct rofx_config *cfg, uint64_t now, int *err)
{
	struct rofx *x = exchange_answer_create(cfg, now, true);
	struct rofx_opening o = {.version = ROFX_VERSION};
	enum rofx_reason why = ROFX_NONE;

	*err = -ENOMEM;
	if (x == NULL)
		return NULL;
	if (x->identity != NULL) {
		x->secure = true;
		o.security = ROFX_SECURE;
		why = rofx_link_open(x);
	}
	if (why != ROFX_NONE) {
		*err = why == ROFX_NO_KEY ? -ENOKEY : -ENOMEM;
		rofx_destroy(x);
		return NULL;
	}
	*err = 0;
	rofx_send_opening(x, &o);
	return x;
}

int
rofx_send_connect(struct rofx *x, uint64_t now)
{
	struct rofx_frame f = {.type = ROFX_F_CONNECT,
		.side = x->su->ours,
		.list = ROFX_LIST_NONE,
		.private_data = x->su->private_data,
		.private_len = x->su->private_len};
	int err = rofx_send(x, &f);

	explicit_bzero(&f, sizeof(f));
	if (err != 0)
		return rofx_fail_silent(x, ROFX_FLOOD);
	x->state = ROFX_S_ASKED;
	x->deadline = now + x->cfg.reply_ns;
	return 0;
}

struct rofx *
rofx_connect(const struct rofx_config *cfg, uint64_t now, const struct rofx_side *ours,
	const void *private_data, size_t len, int *err)
{
	uint16_t psp =
		ours->psp & (ROFX_PSP(PSP_NO_CRYPTO) | (cfg->tls != NULL ? ROFX_PSP_KEYED : 0));
	struct rofx *x;

	*err = len > ROFX_PRIVATE_MAX ? -EMSGSIZE : -EINVAL;
	if (len > ROFX_PRIVATE_MAX || psp == 0 || !rofx_side_valid(ours, false) ||
		!rofx_outer_valid(ours))
		return NULL;
	x = initiator(cfg, now, err);
	if (x == NULL)
		return NULL;
	x->su->ours = *ours;
	x->su->ours.psp = psp;
	x->su->private_len = (uint16_t)len;
	if (len > 0)
		memcpy(x->su->private_data, private_data, len);
	rofx_send_connect(x, now);
	return x;
}

struct rofx *
rofx_lookup(const struct rofx_config *cfg, uint64_t now, const struct rofx_question *q, int *err)
{
	struct rofx_frame f = {.type = ROFX_F_LOOKUP,
		.service = q->service,
		.gid = q->gid,
		.to_gid = q->to_gid,
		.private_data = q->private_data,
		.private_len = q->private_len};
	struct rofx *x;

	*err = -EMSGSIZE;
	if (q->private_len > ROFX_PRIVATE_MAX)
		return NULL;
	x = initiator(cfg, now, err);
	if (x == NULL)
		return NULL;
	(void)rofx_send(x, &f); /* the first frame always fits */
	x->state = ROFX_S_LOOKUP;
	x->deadline = now + x->cfg.reply_ns;
	return x;
}

/* Fails a stream whose peer does not read. */
static int
exchange_answer_no_room(struct rofx *x)
{
	rofx_fail_silent(x, ROFX_FLOOD);
	return -ENOBUFS;
}

/* Adds a key to the last frame before the peer needs it. */
static void
add_key(struct rofx_frame *f, const struct rofx_sa *sa)
{
	f->sa = *sa;
	f->key_len = (uint8_t)psp_key_len(sa->version);
}

void
rofx_list_ports(struct rofx *x, const uint16_t ports[ROFX_PORTS])
{
	if (x->su == NULL)
		return;
	x->su->lists = true;
	memcpy(x->su->ports, ports, sizeof(x->su->ports));
}

/* Adds the list of this side to its last frame before the peer sends, if the peer knows lists. */
static void
add_list(const struct rofx *x, struct rofx_frame *f)
{
	if (!x->lists)
		return;
	f->list = x->su->lists ? ROFX_LIST_FOLLOWS : ROFX_LIST_NONE;
	memcpy(f->ports, x->su->ports, sizeof(f->ports));
}

int
rofx_ready(struct rofx *x)
{
	struct rofx_frame f = {.type = ROFX_F_READY};
	int err;

	if (x->state != ROFX_S_AGREED)
		return -EINVAL;
	add_key(&f, &x->agreed->rx);
	add_list(x, &f);
	err = rofx_send(x, &f);
	explicit_bzero(&f, sizeof(f));
	if (err != 0)
		return exchange_answer_no_room(x);
	x->state = ROFX_S_LIVE;
	return 0;
}

/* ---- Responder ---- */

struct rofx *
rofx_listen(const struct rofx_config *cfg, uint64_t now)
{
	struct rofx *x = exchange_answer_create(cfg, now, false);

	if (x == NULL)
		return NULL;
	x->state = ROFX_S_WAIT;
	x->deadline = now + x->cfg.request_ns;
	return x;
}

int
rofx_accept(struct rofx *x, uint64_t now, const struct rofx_side *ours, const void *private_data,
	size_t len)
{
	struct rofx_frame f = {
		.type = ROFX_F_ACCEPT, .private_data = private_data, .private_len = (uint16_t)len};
	int err;

	if (x->state != ROFX_S_DECIDE || !rofx_side_valid(ours, true) || !rofx_outer_valid(ours))
		return -EINVAL;
	if (len > ROFX_PRIVATE_MAX)
		return -EMSGSIZE;
	err = rofx_settle_request(&x->su->request.peer, ours, x->secure, x->agreed, &f.side);
	if (err == ROFX_NO_PSP && x->cfg.require_psp && !(x->su->request.peer.psp & ROFX_PSP_KEYED))
		err = ROFX_PSP_REQUIRED;
	if (err != 0) {
		rofx_fail(x, err);
		return -EPROTO;
	}
	x->agreed->private_len = x->su->request.private_len;
	memcpy(x->agreed->private_data, x->su->request.private_data, x->agreed->private_len);
	add_key(&f, &x->agreed->rx);
	add_list(x, &f);
	err = rofx_send(x, &f);
	explicit_bzero(&f, sizeof(f));
	if (err != 0)
		return exchange_answer_no_room(x);
	x->state = ROFX_S_ANSWERED;
	x->deadline = now + x->cfg.reply_ns;
	return 0;
}

static bool
undecided(const struct rofx *x)
{
	return x->state == ROFX_S_DECIDE || x->state == ROFX_S_SEARCH;
}

/* Sends the last frame of a responder. */
static int
send_last(struct rofx *x, struct rofx_frame *f, const void *private_data, size_t len)
{
	if (len > ROFX_PRIVATE_MAX)
		return -EMSGSIZE;
	f->private_data = private_data;
	f->private_len = (uint16_t)len;
	if (rofx_send(x, f) != 0)
		return exchange_answer_no_room(x);
	x->state = ROFX_S_DONE;
	return 0;
}

int
rofx_reject(struct rofx *x, enum rofx_reason why, const void *private_data, size_t len)
{
	struct rofx_frame f = {.type = ROFX_F_REJECT, .why = why};

	return undecided(x) ? send_last(x, &f, private_data, len) : -EINVAL;
}

int
rofx_found(struct rofx *x, uint32_t qpn, uint32_t qkey, const void *private_data, size_t len)
{
	struct rofx_frame f = {.type = ROFX_F_FOUND, .qpn = qpn, .qkey = qkey};

	if (x->state != ROFX_S_SEARCH || qpn > ROF_QPN_MAX)
		return -EINVAL;
	return send_last(x, &f, private_data, len);
}

int
rofx_later(struct rofx *x, uint64_t now, uint32_t delay_ms)
{
	uint32_t ms = SK_MIN(delay_ms, ROFX_LATER_MAX_MS);
	struct rofx_frame f = {.type = ROFX_F_LATER, .delay_ms = ms};

	if (x->state != ROFX_S_DECIDE)
		return -EINVAL;
	if (rofx_send(x, &f) != 0)
		return exchange_answer_no_room(x);
	x->state = ROFX_S_WAIT;
	x->deadline = now + x->cfg.request_ns + (uint64_t)ms * 1000000u;
	return 0;
}

/* ---- An established connection ---- */

int
rofx_rekey(struct rofx *x, uint64_t now, const struct rofx_sa *sa)
{
	struct rofx_frame f = {.type = ROFX_F_REKEY};
	int err;

	if (x->state != ROFX_S_LIVE || sa->version != x->agreed->psp || sa->spi == 0 ||
		sa->spi == x->agreed->rx.spi)
		return -EINVAL;
	if (x->rekeying)
		return -EBUSY;
	add_key(&f, sa);
	err = rofx_send(x, &f);
	explicit_bzero(&f, sizeof(f));
	if (err != 0)
		return exchange_answer_no_room(x);
	x->agreed->rx = *sa;
	x->rekeying = true;
	x->deadline = now + x->cfg.reply_ns;
	return 0;
}

int
rofx_rekeyed(struct rofx *x)
{
	struct rofx_frame f = {.type = ROFX_F_REKEYED};

	if (x->state != ROFX_S_LIVE || !x->rekeyed)
		return -EINVAL;
	f.spi = x->agreed->tx.spi;
	if (rofx_send(x, &f) != 0)
		return exchange_answer_no_room(x);
	x->rekeyed = false;
	return 0;
}

int
rofx_give_up(struct rofx *x, enum rofx_reason why)
{
	if (x->state != ROFX_S_AGREED && x->state != ROFX_S_ANSWERED && x->state != ROFX_S_LIVE)
		return -EINVAL;
	rofx_fail(x, why);
	x->events = 0;
	return 0;
}

/* Shrinks a buffer, unless it holds a frame on its way in or out. */
static void
shrink(uint8_t **buf, uint16_t *room, unsigned used)
{
	uint8_t *small;

	if (used > ROFX_FRAME_LIVE || *room <= ROFX_OUT_LIVE)
		return;
	small = sk_secret_alloc(ROFX_OUT_LIVE);
	if (small == NULL)
		return;
	memcpy(small, *buf, used);
	sk_secret_free(*buf, *room);
	*buf = small;
	*room = ROFX_OUT_LIVE;
}

void
rofx_trim(struct rofx *x)
{
	if (x->state != ROFX_S_LIVE)
		return;
	sk_secret_free(x->su, sizeof(*x->su));
	x->su = NULL;
	rofx_identity_release(x->identity);
	x->identity = NULL;
	if (x->out_at == x->out_len)
		x->out_at = x->out_len = 0;
	shrink(&x->frame, &x->frame_room, x->frame_have);
	shrink(&x->out, &x->out_room, x->out_len);
}

/* ---- Inspection ---- */

enum rofx_reason
rofx_why(const struct rofx *x)
{
	return x->why;
}

uint8_t
rofx_peer_version(const struct rofx *x)
{
	return x->peer_version;
}

const struct rofx_request *
rofx_request(const struct rofx *x)
{
	return x->su != NULL ? &x->su->request : NULL;
}

const struct rofx_question *
rofx_question(const struct rofx *x)
{
	return x->su != NULL ? &x->su->question : NULL;
}

const struct rofx_answer *
rofx_answer(const struct rofx *x)
{
	return x->su != NULL ? &x->su->answer : NULL;
}

const struct rofx_agreed *
rofx_agreed(const struct rofx *x)
{
	return x->agreed;
}
