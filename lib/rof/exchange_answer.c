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
exchange_answer_create(const struct rofx_config *cfg, uint64_t now, uint32_t id, bool initiator)
{
	struct rofx *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return NULL;
	x->initiator = initiator;
	x->secure = cfg->tls != NULL;
	x->id = id;
	x->su = sk_secret_alloc(sizeof(*x->su));
	x->agreed = sk_secret_alloc(sizeof(*x->agreed));
	if (x->su == NULL || x->agreed == NULL) {
		rofx_destroy(x);
		return NULL;
	}
	defaults(&x->su->cfg, cfg);
	x->su->cfg.tls = NULL;
	x->su->cfg.peer = x->su->cfg.local = NULL;
	x->reply_ns = x->su->cfg.reply_ns;
	x->su->patience_end = now + x->su->cfg.patience_ns;
	return x;
}

void
rofx_destroy(struct rofx *x)
{
	if (x == NULL)
		return;
	sk_secret_free(x->su, sizeof(*x->su));
	sk_secret_free(x->agreed, sizeof(*x->agreed));
	sk_secret_free(x->ours, sizeof(*x->ours));
	sk_secret_free(x->theirs, sizeof(*x->theirs));
	sk_secret_free(x->out, x->out_room);
	free(x);
}

/* ---- Initiator ---- */

static int
send_lookup(struct rofx *x)
{
	const struct rofx_question *q = &x->su->question;
	struct rofx_frame f = {.type = ROFX_F_LOOKUP,
		.service = q->service,
		.gid = q->gid,
		.to_gid = q->to_gid,
		.private_data = q->private_data,
		.private_len = q->private_len};

	return rofx_send(x, &f);
}

int
rofx_send_request(struct rofx *x)
{
	struct rofx_frame f = {.type = ROFX_F_CONNECT,
		.side = x->su->ours,
		.list = ROFX_LIST_NONE,
		.service = x->su->service,
		.port = x->su->port,
		.private_data = x->su->private_data,
		.private_len = x->su->private_len};
	int err;

	if (x->state == ROFX_S_LOOKUP)
		return send_lookup(x);
	err = rofx_send(x, &f);
	explicit_bzero(&f, sizeof(f));
	return err;
}

int
rofx_send_connect(struct rofx *x, uint64_t now)
{
	if (rofx_send_request(x) != 0)
		return rofx_fail_silent(x, ROFX_FLOOD);
	x->state = ROFX_S_ASKED;
	x->deadline = now + x->reply_ns;
	return 0;
}

struct rofx *
rofx_connect(const struct rofx_config *cfg, uint64_t now, uint32_t id, const struct rofx_side *ours,
	uint16_t service, uint16_t port, const void *private_data, size_t len, int *err)
{
	uint16_t psp =
		ours->psp & (ROFX_PSP(PSP_NO_CRYPTO) | (cfg->tls != NULL ? ROFX_PSP_KEYED : 0));
	struct rofx *x;

	*err = len > ROFX_PRIVATE_MAX ? -EMSGSIZE : -EINVAL;
	if (len > ROFX_PRIVATE_MAX || psp == 0 || !rofx_side_valid(ours, false) ||
		!rofx_outer_valid(ours))
		return NULL;
	x = exchange_answer_create(cfg, now, id, true);
	*err = x == NULL ? -ENOMEM : 0;
	if (x == NULL)
		return NULL;
	x->su->service = service;
	x->su->port = port;
	x->su->ours = *ours;
	x->su->ours.psp = psp;
	x->su->private_len = (uint16_t)len;
	if (len > 0)
		memcpy(x->su->private_data, private_data, len);
	rofx_send_connect(x, now);
	return x;
}

struct rofx *
rofx_lookup(const struct rofx_config *cfg, uint64_t now, uint32_t id, const struct rofx_question *q,
	int *err)
{
	struct rofx *x;

	*err = -EMSGSIZE;
	if (q->private_len > ROFX_PRIVATE_MAX)
		return NULL;
	x = exchange_answer_create(cfg, now, id, true);
	*err = -ENOMEM;
	if (x == NULL)
		return NULL;
	x->state = ROFX_S_LOOKUP;
	x->deadline = now + x->reply_ns;
	x->su->question = *q;
	if (rofx_send_request(x) != 0) {
		rofx_destroy(x);
		return NULL;
	}
	*err = 0;
	return x;
}

/* Fails an exchange whose frames do not pass. */
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
	x->su->listed = true;
	memcpy(x->su->ports, ports, sizeof(x->su->ports));
}

/* Adds the list of this side to its last frame before the peer sends, if the peer supports lists of
 * ports. */
static void
add_list(const struct rofx *x, struct rofx_frame *f)
{
	if (!x->su->lists)
		return;
	f->list = x->su->listed ? ROFX_LIST_FOLLOWS : ROFX_LIST_NONE;
	memcpy(f->ports, x->su->ports, sizeof(f->ports));
}

/* READY leaves before frames of the live connection, which the peer does not expect before it. */
int
rofx_send_ready(struct rofx *x)
{
	struct rofx_frame f = {.type = ROFX_F_READY};
	int err;

	add_key(&f, &x->agreed->rx);
	add_list(x, &f);
	err = rofx_send_first(x, &f);
	explicit_bzero(&f, sizeof(f));
	return err;
}

int
rofx_ready(struct rofx *x)
{
	if (x->state != ROFX_S_AGREED)
		return -EINVAL;
	if (rofx_send_ready(x) != 0)
		return exchange_answer_no_room(x);
	x->state = ROFX_S_LIVE;
	x->unconfirmed = true;
	return 0;
}

/* ---- Responder ---- */

struct rofx *
rofx_listen(const struct rofx_config *cfg, uint64_t now, uint32_t id, const struct rofx_carrier *k,
	const struct rofx_frame *f)
{
	struct rofx *x = exchange_answer_create(cfg, now, id, false);

	if (x == NULL)
		return NULL;
	x->peer_id = f->from;
	x->secure = k->secure;
	x->state = ROFX_S_WAIT;
	x->deadline = now + x->su->cfg.request_ns;
	return x;
}

int
rofx_send_accept(struct rofx *x)
{
	struct rofx_frame f = {.type = ROFX_F_ACCEPT,
		.side = x->su->ours,
		.private_data = x->su->private_data,
		.private_len = x->su->private_len};
	int err;

	add_key(&f, &x->agreed->rx);
	add_list(x, &f);
	err = rofx_send(x, &f);
	explicit_bzero(&f, sizeof(f));
	return err;
}

int
rofx_accept(struct rofx *x, uint64_t now, const struct rofx_side *ours, const void *private_data,
	size_t len)
{
	int err;

	if (x->state != ROFX_S_DECIDE || !rofx_side_valid(ours, true) || !rofx_outer_valid(ours))
		return -EINVAL;
	if (len > ROFX_PRIVATE_MAX)
		return -EMSGSIZE;
	err = rofx_settle_request(&x->su->request.peer, ours, x->secure, x->agreed, &x->su->ours);
	if (err == ROFX_NO_PSP && x->su->cfg.require_psp &&
		!(x->su->request.peer.psp & ROFX_PSP_KEYED))
		err = ROFX_PSP_REQUIRED;
	if (err != 0) {
		rofx_fail(x, err);
		return -EPROTO;
	}
	x->agreed->private_len = x->su->request.private_len;
	memcpy(x->agreed->private_data, x->su->request.private_data, x->agreed->private_len);
	x->su->private_len = (uint16_t)len;
	if (len > 0)
		memcpy(x->su->private_data, private_data, len);
	if (rofx_send_accept(x) != 0)
		return exchange_answer_no_room(x);
	x->state = ROFX_S_ANSWERED;
	x->deadline = now + x->reply_ns;
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
	x->deadline = now + x->su->cfg.request_ns + (uint64_t)ms * 1000000u;
	return 0;
}

/* ---- An established connection ---- */

int
rofx_send_rekey(struct rofx *x)
{
	struct rofx_frame f = {.type = ROFX_F_REKEY};
	int err;

	add_key(&f, x->ours);
	err = rofx_send(x, &f);
	explicit_bzero(&f, sizeof(f));
	return err;
}

int
rofx_rekey(struct rofx *x, uint64_t now, const struct rofx_sa *sa)
{
	if (x->state != ROFX_S_LIVE || sa->version != x->psp || sa->spi == 0 ||
		sa->spi == x->rx_spi)
		return -EINVAL;
	if (x->rekeying)
		return -EBUSY;
	x->ours = sk_secret_alloc(sizeof(*x->ours));
	if (x->ours == NULL)
		return -ENOMEM;
	*x->ours = *sa;
	if (rofx_send_rekey(x) != 0)
		return exchange_answer_no_room(x);
	x->was_spi = x->rx_spi;
	x->rx_spi = sa->spi;
	x->rekeying = true;
	if (!x->finished) /* else the peer must answer END before */
		x->deadline = now + x->reply_ns;
	return 0;
}

int
rofx_rekeyed(struct rofx *x)
{
	struct rofx_frame f = {.type = ROFX_F_REKEYED, .spi = x->tx_spi};

	if (x->state != ROFX_S_LIVE || !x->rekeyed)
		return -EINVAL;
	sk_secret_free(x->theirs, sizeof(*x->theirs));
	x->theirs = NULL;
	if (rofx_send(x, &f) != 0)
		return exchange_answer_no_room(x);
	x->rekeyed = false;
	return 0;
}

int
rofx_give_up(struct rofx *x, enum rofx_reason why)
{
	if (x->state >= ROFX_S_DONE || x->state == ROFX_S_WAIT)
		return -EINVAL;
	rofx_fail(x, why);
	x->events = 0;
	return 0;
}

void
rofx_trim(struct rofx *x)
{
	if (x->state != ROFX_S_LIVE)
		return;
	x->trims = true;
	if (x->unconfirmed)
		return;
	sk_secret_free(x->su, sizeof(*x->su));
	sk_secret_free(x->agreed, sizeof(*x->agreed));
	x->su = NULL;
	x->agreed = NULL;
	rofx_shrink(x);
}

/* ---- Inspection ---- */

enum rofx_reason
rofx_why(const struct rofx *x)
{
	return x->why;
}

uint32_t
rofx_peer_id(const struct rofx *x)
{
	return x->peer_id;
}

const struct rofx_sa *
rofx_tx(const struct rofx *x)
{
	return x->theirs;
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
