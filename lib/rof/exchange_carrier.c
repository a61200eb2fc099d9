/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A carrier: the stream between two hosts on which their exchanges run. It has an opening in each
 * direction, in clear; then frames, in clear or in TLS. The carrier gathers one frame at a time, in
 * a buffer for the longest valid one, and refuses an invalid frame by its header. A frame is valid
 * or not for its exchange alone: it never ends the carrier.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/secret.h"
#include "exchange_priv.h"

#define REQUEST_NS 3000000000u
#define REPLY_NS   10000000000u

/* Ends the carrier. Returns -why. */
static int
carrier_fail(struct rofx_carrier *k, enum rofx_reason why)
{
	k->why = (uint8_t)why;
	k->deadline = UINT64_MAX;
	return -(int)why;
}

/* ---- Out ---- */

/* Wipes bytes of frames that were taken; they may have been keys. */
static void
gone(struct rofx_carrier *k, size_t n)
{
	explicit_bzero(k->out + k->out_at, n);
	k->out_at = (uint16_t)(k->out_at + n);
}

/* Seals the frames that wait for TLS. */
static int
carrier_seal(struct rofx_carrier *k)
{
	while (k->link != NULL && k->out_at < k->out_len) {
		int n = rofx_link_write(k->link, k->out + k->out_at, k->out_len - k->out_at);

		if (n <= 0)
			return n;
		gone(k, (size_t)n);
	}
	return 0;
}

static void
compact(struct rofx_carrier *k)
{
	uint16_t len = (uint16_t)(k->out_len - k->out_at);

	if (k->out_at == 0)
		return;
	memmove(k->out, k->out + k->out_at, len);
	explicit_bzero(k->out + len, (size_t)(k->out_len - len));
	k->out_len = len;
	k->out_at = 0;
}

void
rofx_carrier_use(struct rofx_carrier *k)
{
	if (!rofx_carrier_ready(k))
		return;
	k->used = true;
	k->deadline = UINT64_MAX;
}

uint8_t *
rofx_carrier_room(struct rofx_carrier *k, size_t len)
{
	uint8_t *at;

	if (k->why != ROFX_NONE)
		return NULL;
	compact(k);
	if (len > (size_t)(ROFX_CARRIER_OUT - k->out_len))
		return NULL;
	at = k->out + k->out_len;
	k->out_len = (uint16_t)(k->out_len + len);
	return at;
}

/* Queues a short frame, if there is room. */
static void
carrier_say(struct rofx_carrier *k, uint32_t to, uint32_t from, enum rofx_reason why)
{
	const struct rofx_frame f = {.type = ROFX_F_REJECT, .to = to, .from = from, .why = why};
	uint8_t *at = rofx_carrier_room(k, ROFX_HEADER_LEN + ROFX_REJECT_LEN);

	if (at != NULL)
		rofx_frame_emit(at, &f);
}

void
rofx_refuse(struct rofx_carrier *k, const struct rofx_frame *f, enum rofx_reason why)
{
	carrier_say(k, f->from, ROFX_NO_ID, why);
}

/* The other types answer a frame of this side, whose exchange has ended meanwhile. */
void
rofx_unknown(struct rofx_carrier *k, const struct rofx_frame *f)
{
	if (f->from != ROFX_NO_ID && (f->type == ROFX_F_CONNECT || f->type == ROFX_F_ACCEPT ||
					     f->type == ROFX_F_READY || f->type == ROFX_F_REKEY ||
					     f->type == ROFX_F_END || f->type == ROFX_F_CHECK))
		carrier_say(k, f->from, f->to, ROFX_GONE);
}

static void
send_opening(struct rofx_carrier *k, const struct rofx_opening *o)
{
	rofx_opening_emit(k->opening, o);
	k->opening_at = 0;
}

static size_t
carrier_copy(uint8_t *buf, size_t room, const uint8_t *from, size_t have)
{
	size_t n = SK_MIN(room, have);

	if (n > 0)
		memcpy(buf, from, n);
	return n;
}

size_t
rofx_carrier_output(struct rofx_carrier *k, uint8_t *buf, size_t room)
{
	size_t n = carrier_copy(
		buf, room, k->opening + k->opening_at, (size_t)(ROFX_OPENING_LEN - k->opening_at));
	size_t frames;

	k->opening_at = (uint8_t)(k->opening_at + n);
	if (k->opening_at < ROFX_OPENING_LEN)
		return n;
	if (k->link != NULL) {
		/* An error becomes visible with the peer's answer, or without one by the
		 * timeout. */
		carrier_seal(k);
		return n + rofx_link_take(k->link, buf + n, room - n);
	}
	/* An initiator that required TLS and was refused sends nothing in clear, and a responder
	 * nothing before its opening. */
	if (k->secure || (!k->initiator && !k->opened))
		return n;
	frames = carrier_copy(
		buf + n, room - n, k->out + k->out_at, (size_t)(k->out_len - k->out_at));
	gone(k, frames);
	return n + frames;
}

/* ---- Openings ---- */

static enum rofx_reason
link_open(struct rofx_carrier *k)
{
	return (enum rofx_reason) - rofx_link_create(&k->link, k->identity, k->initiator,
					    k->has_local ? &k->local_addr : NULL,
					    k->has_peer ? &k->peer_addr : NULL);
}

static int
opened_reply(struct rofx_carrier *k, const struct rofx_opening *o)
{
	if (o->version != ROFX_VERSION)
		return carrier_fail(k, ROFX_BAD_VERSION);
	if (o->status != 0)
		return carrier_fail(k, rofx_reason_of(o->status));
	if (o->security != (k->secure ? ROFX_SECURE : ROFX_CLEAR) || o->stage >= o->stages)
		return carrier_fail(k, ROFX_CONTRADICTION);
	return 0;
}

static enum rofx_reason
judge_opening(const struct rofx_carrier *k, const struct rofx_opening *o)
{
	if (o->version != ROFX_VERSION)
		return ROFX_BAD_VERSION;
	if (o->security > ROFX_SECURE || o->stage >= o->stages)
		return ROFX_MALFORMED;
	if (o->security == ROFX_SECURE && k->identity == NULL)
		return ROFX_NO_TLS;
	if (o->security == ROFX_CLEAR && (k->require_psp || k->identity != NULL))
		return ROFX_TLS_NEEDED;
	return ROFX_NONE;
}

static int
opened_request(struct rofx_carrier *k, const struct rofx_opening *o)
{
	enum rofx_reason why = judge_opening(k, o);
	struct rofx_opening reply = {.reply = true,
		.version = ROFX_VERSION,
		.security = o->security == ROFX_SECURE ? ROFX_SECURE : ROFX_CLEAR,
		.stage = k->stage,
		.stages = k->stages};

	if (why == ROFX_NONE && o->security == ROFX_SECURE) {
		why = link_open(k);
		k->secure = true;
	}
	reply.status = why != ROFX_NONE ? rofx_code(why) : 0;
	send_opening(k, &reply);
	return why != ROFX_NONE ? carrier_fail(k, why) : 0;
}

/* ---- In ---- */

/* The bytes to read: in clear, a window on the received bytes; in TLS, the opened bytes. */
struct source {
	struct rofx_link *link;
	const uint8_t *data;
	size_t len;
};

/* Fills the frame buffer up to `want` bytes. Returns 1 when it is filled, 0 when bytes are missing,
 * or -reason. */
static int
carrier_gather(struct rofx_carrier *k, struct source *s, size_t want)
{
	while (k->frame_have < want) {
		size_t room = want - k->frame_have;
		int n;

		if (s->link != NULL) {
			n = rofx_link_read(s->link, k->frame + k->frame_have, room);
			k->parts += n > 0 && (size_t)n < room;
		} else {
			n = (int)carrier_copy(k->frame + k->frame_have, room, s->data, s->len);
			s->data += n;
			s->len -= (size_t)n;
		}
		if (n <= 0)
			return n;
		k->frame_have = (uint16_t)(k->frame_have + n);
	}
	return 1;
}

static int
read_opening(struct rofx_carrier *k, struct source *s)
{
	struct rofx_opening o;
	int n = carrier_gather(k, s, ROFX_OPENING_LEN);

	if (n <= 0)
		return n;
	k->frame_have = 0;
	if (rofx_opening_parse(&o, k->frame) != 0 || o.reply != k->initiator)
		return carrier_fail(k, ROFX_BAD_KEY);
	k->opened = true;
	k->peer_version = o.version;
	k->peer_stage = o.stage;
	k->peer_stages = o.stages;
	n = k->initiator ? opened_reply(k, &o) : opened_request(k, &o);
	return n < 0 ? n : 1;
}

/* Processes a frame that names no exchange at either side: the peer ends the carrier. */
static int
carrier_reject(struct rofx_carrier *k, const struct rofx_frame *f)
{
	struct rofx_frame whole = *f;

	if (rofx_frame_parse(&whole, f->private_data, f->private_len) != 0)
		return carrier_fail(k, ROFX_MALFORMED);
	return carrier_fail(k, whole.why);
}

/* Returns 1 when a frame was read, 0 when bytes are missing, or -reason. The body is not parsed
 * yet: the frame has it as its private data. */
static int
read_frame(struct rofx_carrier *k, struct source *s)
{
	struct rofx_frame f = {0};
	int len, n = carrier_gather(k, s, ROFX_HEADER_LEN);

	if (n <= 0)
		return n < 0 ? carrier_fail(k, -n) : 0;
	len = rofx_header_parse(&f, k->frame);
	if (len < 0) {
		carrier_say(k, ROFX_NO_ID, ROFX_NO_ID, -len);
		return carrier_fail(k, -len);
	}
	n = carrier_gather(k, s, (size_t)(ROFX_HEADER_LEN + len));
	if (n <= 0)
		return n < 0 ? carrier_fail(k, -n) : 0;
	f.private_data = k->frame + ROFX_HEADER_LEN;
	f.private_len = (uint16_t)len;
	rofx_carrier_use(k);
	n = 1;
	if (f.type == ROFX_F_REJECT && f.to == ROFX_NO_ID && f.from == ROFX_NO_ID)
		n = carrier_reject(k, &f);
	else
		k->on_frame(k->ctx, k, &f);
	explicit_bzero(k->frame, k->frame_have);
	k->frame_have = 0;
	return n;
}

static int
carrier_read_all(struct rofx_carrier *k, struct source *s)
{
	int n = 1;

	while (n > 0 && !k->opened)
		n = read_opening(k, s);
	if (n <= 0)
		return n;
	if (k->link != NULL) {
		n = rofx_link_feed(k->link, s->data, s->len);
		if (n < 0)
			return carrier_fail(k, -n);
		s->link = k->link;
	}
	do
		n = read_frame(k, s);
	while (n > 0);
	if (n >= 0 && carrier_seal(k) < 0)
		n = carrier_fail(k, ROFX_TLS);
	if (n >= 0 && k->link != NULL &&
		(rofx_link_unread(k->link) || rofx_link_pending(k->link) > ROFX_BACKLOG_MAX))
		n = carrier_fail(k, ROFX_FLOOD);
	if (k->initiator && rofx_carrier_ready(k))
		k->deadline = UINT64_MAX;
	if (k->link != NULL && !rofx_link_busy(k->link)) {
		rofx_identity_release(k->identity);
		k->identity = NULL;
	}
	return n;
}

int
rofx_carrier_input(struct rofx_carrier *k, uint64_t now, const uint8_t *data, size_t len)
{
	struct source s = {NULL, data, len};
	int n;

	if (k->why != ROFX_NONE)
		return -(int)k->why;
	if (len == 0)
		return 0;
	n = carrier_read_all(k, &s);
	return n < 0 ? n : (int)len;
}

/* ---- Creation and destruction ---- */

static void
carrier_config(struct rofx_carrier *k, const struct rofx_config *cfg, uint64_t now)
{
	uint64_t request_ns = cfg->request_ns != 0 ? cfg->request_ns : REQUEST_NS;
	uint64_t reply_ns = cfg->reply_ns != 0 ? cfg->reply_ns : REPLY_NS;

	k->deadline = now + (k->initiator ? reply_ns : request_ns);
	k->stage = cfg->stage;
	k->stages = cfg->stages;
	k->require_psp = cfg->require_psp;
	k->has_peer = cfg->peer != NULL;
	k->has_local = cfg->local != NULL;
	if (cfg->peer != NULL)
		k->peer_addr = *cfg->peer;
	if (cfg->local != NULL)
		k->local_addr = *cfg->local;
	if (cfg->tls == NULL)
		return;
	/* In this order: a generation that is loaded meanwhile makes the carrier outdated. */
	k->loads = rofx_identity_loads(cfg->tls);
	k->identity = rofx_identity_hold(cfg->tls);
}

/* Begins the initiator's half of the stream. Returns 0 or -errno. */
static int
carrier_begin(struct rofx_carrier *k)
{
	struct rofx_opening o = {.version = ROFX_VERSION, .stage = k->stage, .stages = k->stages};
	enum rofx_reason why = ROFX_NONE;

	if (k->identity != NULL) {
		k->secure = true;
		o.security = ROFX_SECURE;
		why = link_open(k);
	}
	send_opening(k, &o);
	if (why == ROFX_NONE)
		return 0;
	return why == ROFX_NO_KEY ? -ENOKEY : -ENOMEM;
}

struct rofx_carrier *
rofx_carrier_create(const struct rofx_config *cfg, uint64_t now, bool initiator,
	rofx_frame_fn *on_frame, void *ctx, int *err)
{
	struct rofx_carrier *k;

	*err = -EINVAL;
	if (cfg->stages > ROFX_STAGES || cfg->stage >= SK_MAX(cfg->stages, 1))
		return NULL;
	*err = -ENOMEM;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return NULL;
	k->initiator = initiator;
	k->on_frame = on_frame;
	k->ctx = ctx;
	k->peer_version = ROFX_VERSION;
	k->opening_at = ROFX_OPENING_LEN;
	k->frame = sk_secret_alloc(ROFX_FRAME_MAX);
	k->out = sk_secret_alloc(ROFX_CARRIER_OUT);
	carrier_config(k, cfg, now);
	if (k->frame != NULL && k->out != NULL)
		*err = initiator ? carrier_begin(k) : 0;
	if (*err == 0)
		return k;
	rofx_carrier_destroy(k);
	return NULL;
}

void
rofx_carrier_destroy(struct rofx_carrier *k)
{
	if (k == NULL)
		return;
	rofx_link_destroy(k->link);
	rofx_identity_release(k->identity);
	sk_secret_free(k->frame, ROFX_FRAME_MAX);
	sk_secret_free(k->out, ROFX_CARRIER_OUT);
	free(k);
}

/* ---- Inspection ---- */

uint32_t
rofx_carrier_parts(const struct rofx_carrier *k)
{
	return k->parts;
}

bool
rofx_carrier_handshakes(const struct rofx_carrier *k)
{
	if (k->why != ROFX_NONE)
		return false;
	return k->link != NULL ? rofx_link_busy(k->link) : k->identity != NULL && !k->opened;
}

bool
rofx_carrier_ready(const struct rofx_carrier *k)
{
	return k->why == ROFX_NONE && k->opened && (k->link == NULL || !rofx_link_busy(k->link));
}

bool
rofx_carrier_secure(const struct rofx_carrier *k)
{
	return k->secure;
}

bool
rofx_carrier_used(const struct rofx_carrier *k)
{
	return k->used;
}

bool
rofx_carrier_outdated(const struct rofx_carrier *k, const struct rofx_tls *tls)
{
	return tls != NULL && k->loads != rofx_identity_loads(tls);
}

uint8_t
rofx_carrier_peer_stage(const struct rofx_carrier *k)
{
	return k->peer_stage;
}

uint8_t
rofx_carrier_peer_stages(const struct rofx_carrier *k)
{
	return k->peer_stages;
}

uint64_t
rofx_carrier_deadline(const struct rofx_carrier *k)
{
	return k->deadline;
}

void
rofx_carrier_timeout(struct rofx_carrier *k, uint64_t now)
{
	if (k->deadline != UINT64_MAX && now >= k->deadline)
		carrier_fail(k, ROFX_TIMEOUT);
}

enum rofx_reason
rofx_carrier_why(const struct rofx_carrier *k)
{
	return k->why;
}

uint8_t
rofx_carrier_peer_version(const struct rofx_carrier *k)
{
	return k->peer_version;
}

uint32_t
rofx_frame_to(const struct rofx_frame *f)
{
	return f->to;
}

uint32_t
rofx_frame_from(const struct rofx_frame *f)
{
	return f->from;
}

bool
rofx_frame_begins(const struct rofx_frame *f)
{
	return (f->type == ROFX_F_CONNECT || f->type == ROFX_F_LOOKUP) && f->to == ROFX_NO_ID &&
	       f->from != ROFX_NO_ID;
}

bool
rofx_frame_retires(const struct rofx_frame *f)
{
	return f->type == ROFX_F_REJECT && f->private_len > 0 &&
	       rofx_reason_of(f->private_data[0]) == ROFX_RETIRED;
}

bool
rofx_frame_withdraws(const struct rofx_frame *f)
{
	return f->type == ROFX_F_REJECT && f->to == ROFX_NO_ID;
}
