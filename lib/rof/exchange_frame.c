/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames of the exchange, byte by byte (figures in doc/falcon-cm.md). All fields are
 * big-endian; reserved bytes are sent as 0 and ignored when received.
 */
#include <string.h>

#include "../base/mem.h"
#include "exchange_priv.h"

static const uint8_t key_request[ROFX_KEY_LEN + 1] = "RoF ID Req Frame";
static const uint8_t key_reply[ROFX_KEY_LEN + 1] = "RoF ID Rep Frame";

/* Indexed by code. */
static const uint8_t codes[] = {
	[1] = ROFX_REFUSED,
	[2] = ROFX_CROSSED,
	[3] = ROFX_NO_QP,
	[4] = ROFX_NO_SERVICE,
	[5] = ROFX_NO_RESOURCE,
	[6] = ROFX_TRANSPORT,
	[7] = ROFX_ORDERING,
	[8] = ROFX_ERRORS,
	[9] = ROFX_ENCAPSULATION,
	[10] = ROFX_NO_PSP,
	[11] = ROFX_CRYPTO_IN_CLEAR,
	[12] = ROFX_MALFORMED,
	[13] = ROFX_UNEXPECTED,
	[14] = ROFX_CONTRADICTION,
	[15] = ROFX_TIMEOUT,
	[16] = ROFX_BAD_VERSION,
	[17] = ROFX_NO_TLS,
	[18] = ROFX_TLS_NEEDED,
	[19] = ROFX_BAD_FRAME,
	[20] = ROFX_NOT_READY,
	[21] = ROFX_NO_KEY,
	[22] = ROFX_PSP_REQUIRED,
	[23] = ROFX_GONE,
	[24] = ROFX_RETIRED,
};

uint8_t
rofx_code(enum rofx_reason why)
{
	for (size_t c = 1; c < SK_ARRAY_LEN(codes); c++)
		if (codes[c] == why)
			return (uint8_t)c;
	return 1;
}

enum rofx_reason
rofx_reason_of(uint8_t code)
{
	return code > 0 && code < SK_ARRAY_LEN(codes) ? codes[code] : ROFX_REFUSED;
}

/* ---- Numbers ---- */

static uint8_t *
exchange_frame_put(uint8_t *p, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
	return p + bytes;
}

static uint64_t
get(const uint8_t **p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | (*p)[i];
	*p += bytes;
	return v;
}

static uint8_t *
exchange_frame_put_addr(uint8_t *p, const struct sk_addr *a)
{
	memcpy(p, a->b, sizeof(a->b));
	return p + sizeof(a->b);
}

static void
get_addr(const uint8_t **p, struct sk_addr *a)
{
	memcpy(a->b, *p, sizeof(a->b));
	*p += sizeof(a->b);
}

/* ---- Openings ---- */

int
rofx_match(const uint8_t *data, size_t len)
{
	size_t n = SK_MIN(len, ROFX_KEY_LEN);

	if (memcmp(data, key_request, n) != 0)
		return 0;
	return n == ROFX_KEY_LEN ? 1 : -1;
}

void
rofx_opening_emit(uint8_t *p, const struct rofx_opening *o)
{
	memcpy(p, o->reply ? key_reply : key_request, ROFX_KEY_LEN);
	p[16] = o->version;
	p[17] = (uint8_t)((o->stages > 0 ? o->stages - 1 : 0) << 2 | o->security);
	p[18] = o->status;
	p[19] = o->stage;
}

int
rofx_opening_parse(struct rofx_opening *o, const uint8_t p[ROFX_OPENING_LEN])
{
	o->reply = memcmp(p, key_reply, ROFX_KEY_LEN) == 0;
	if (!o->reply && memcmp(p, key_request, ROFX_KEY_LEN) != 0)
		return ROFX_BAD_KEY;
	o->version = p[16];
	o->security = p[17] & 3;
	o->stages = (uint8_t)((p[17] >> 2) + 1);
	o->status = p[18];
	o->stage = p[19];
	return 0;
}

/* ---- Out ---- */

static uint8_t *
put_side(uint8_t *p, const struct rofx_side *s)
{
	p = exchange_frame_put(p, s->transport, 1);
	p = exchange_frame_put(p, s->addressing, 1);
	p = exchange_frame_put(p, s->ordering, 1);
	p = exchange_frame_put(p, s->errors, 1);
	p = exchange_frame_put(p, s->cid, 4);
	p = exchange_frame_put(p, s->qpn, 4);
	p = exchange_frame_put(p, s->to_qpn, 4);
	p = exchange_frame_put_addr(p, &s->gid);
	p = exchange_frame_put_addr(p, &s->to_gid);
	p = exchange_frame_put(p, s->request_psn, 4);
	p = exchange_frame_put(p, s->data_psn, 4);
	p = exchange_frame_put(p, s->rsn, 4);
	p = exchange_frame_put(p, s->mtu, 2);
	p = exchange_frame_put(p, s->ird, 2);
	p = exchange_frame_put(p, s->ord, 2);
	p = exchange_frame_put(p, s->request_window, 1);
	p = exchange_frame_put(p, s->data_window, 1);
	p = exchange_frame_put(p, s->flows, 1);
	p = exchange_frame_put(p, s->rnr_retry, 1);
	p = exchange_frame_put(p, s->rnr_code, 1);
	p = exchange_frame_put(p, s->ttl, 1);
	p = exchange_frame_put(p, s->function, 4);
	p = exchange_frame_put(p, s->tunnel, 1);
	p = exchange_frame_put(p, s->has_pcid, 1);
	p = exchange_frame_put(p, s->psp, 2);
	p = exchange_frame_put(p, s->has_pcid ? s->pcid : 0, 8);
	return exchange_frame_put(p, s->spi, 4);
}

/* Returns whether the frame has an address for the outer headers. */
static bool
has_outer(const struct rofx_frame *f)
{
	return (f->type == ROFX_F_CONNECT || f->type == ROFX_F_ACCEPT) && f->side.tunnel;
}

/* Returns whether the type of the frame has a field for an enum rofx_list. */
static bool
has_list_field(uint8_t type)
{
	return type == ROFX_F_CONNECT || type == ROFX_F_ACCEPT || type == ROFX_F_READY;
}

static bool
has_list(const struct rofx_frame *f)
{
	return has_list_field(f->type) && f->list == ROFX_LIST_FOLLOWS;
}

static uint8_t *
put_list(uint8_t *p, const struct rofx_frame *f)
{
	for (unsigned i = 0; i < ROFX_PORTS; i++)
		p = exchange_frame_put(p, f->ports[i], 2);
	return p;
}

static uint8_t *
put_key(uint8_t *p, const struct rofx_frame *f)
{
	memset(p, 0, PSP_KEY_MAX);
	memcpy(p, f->sa.key, f->key_len);
	return p + PSP_KEY_MAX;
}

static uint8_t *
put_fixed(uint8_t *p, const struct rofx_frame *f)
{
	switch (f->type) {
	case ROFX_F_CONNECT:
		p = put_side(p, &f->side);
		p = exchange_frame_put(p, f->private_len, 2);
		p = exchange_frame_put(exchange_frame_put(p, f->list, 1), 0, 1);
		return exchange_frame_put(exchange_frame_put(p, f->service, 2), f->port, 2);
	case ROFX_F_ACCEPT:
		p = put_side(p, &f->side);
		p = exchange_frame_put(p, f->private_len, 2);
		p = exchange_frame_put(p, f->key_len, 1);
		return put_key(exchange_frame_put(p, f->list, 1), f);
	case ROFX_F_READY:
		p = exchange_frame_put(p, f->key_len, 1);
		p = exchange_frame_put(p, f->list, 1);
		return put_key(exchange_frame_put(p, 0, 2), f);
	case ROFX_F_REJECT:
		p = exchange_frame_put(p, rofx_code(f->why), 1);
		return exchange_frame_put(exchange_frame_put(p, 0, 1), f->private_len, 2);
	case ROFX_F_LATER:
		return exchange_frame_put(p, f->delay_ms, 4);
	case ROFX_F_LOOKUP:
		p = exchange_frame_put(p, f->service, 2);
		p = exchange_frame_put(p, f->private_len, 2);
		return exchange_frame_put_addr(exchange_frame_put_addr(p, &f->gid), &f->to_gid);
	case ROFX_F_FOUND:
		p = exchange_frame_put(p, f->qpn, 4);
		p = exchange_frame_put(p, f->qkey, 4);
		return exchange_frame_put(exchange_frame_put(p, f->private_len, 2), 0, 2);
	case ROFX_F_REKEY:
		p = exchange_frame_put(p, f->sa.spi, 4);
		p = exchange_frame_put(p, f->sa.version, 1);
		p = exchange_frame_put(p, f->key_len, 1);
		return put_key(exchange_frame_put(p, 0, 2), f);
	case ROFX_F_REKEYED:
		return exchange_frame_put(p, f->spi, 4);
	default: /* END, CHECK */
		return p;
	}
}

size_t
rofx_frame_emit(uint8_t *p, const struct rofx_frame *f)
{
	uint8_t *end = put_fixed(p + ROFX_HEADER_LEN, f);

	if (has_outer(f))
		end = exchange_frame_put_addr(end, &f->side.outer);
	if (has_list(f))
		end = put_list(end, f);
	if (f->private_len > 0) {
		memcpy(end, f->private_data, f->private_len);
		end += f->private_len;
	}
	p[0] = ROFX_VERSION;
	p[1] = f->type;
	exchange_frame_put(p + 2, (uint64_t)(end - p) - ROFX_HEADER_LEN, 2);
	exchange_frame_put(exchange_frame_put(p + 4, f->to, 4), f->from, 4);
	return (size_t)(end - p);
}

/* ---- In ---- */

/* The bodies: fixed length in bytes, and whether private data follows. */
static const struct {
	uint8_t fixed;
	bool private_data;
} bodies[ROFX_F_COUNT] = {
	[ROFX_F_CONNECT] = {ROFX_CONNECT_LEN, true},
	[ROFX_F_ACCEPT] = {ROFX_ACCEPT_LEN, true},
	[ROFX_F_READY] = {ROFX_READY_LEN, false},
	[ROFX_F_REJECT] = {ROFX_REJECT_LEN, true},
	[ROFX_F_LATER] = {ROFX_LATER_LEN, false},
	[ROFX_F_LOOKUP] = {ROFX_LOOKUP_LEN, true},
	[ROFX_F_FOUND] = {ROFX_FOUND_LEN, true},
	[ROFX_F_REKEY] = {ROFX_REKEY_LEN, false},
	[ROFX_F_REKEYED] = {ROFX_REKEYED_LEN, false},
	[ROFX_F_END] = {ROFX_END_LEN, false},
	[ROFX_F_CHECK] = {ROFX_CHECK_LEN, false},
};

int
rofx_header_parse(struct rofx_frame *f, const uint8_t p[ROFX_HEADER_LEN])
{
	const uint8_t *names = p + 4;
	unsigned len = (unsigned)p[2] << 8 | p[3], most;
	bool connects, answers;

	if (p[0] != ROFX_VERSION)
		return -ROFX_BAD_VERSION;
	f->type = p[1];
	f->to = (uint32_t)get(&names, 4);
	f->from = (uint32_t)get(&names, 4);
	if (f->type == 0 || f->type >= ROFX_F_COUNT)
		return -ROFX_BAD_FRAME;
	connects = f->type == ROFX_F_CONNECT || f->type == ROFX_F_ACCEPT;
	answers = f->type == ROFX_F_ACCEPT || f->type == ROFX_F_READY;
	most = bodies[f->type].fixed + (connects ? ROFX_OUTER_LEN : 0u) +
	       (answers ? ROFX_LIST_LEN : 0u) +
	       (bodies[f->type].private_data ? ROFX_PRIVATE_MAX : 0u);
	if (len < bodies[f->type].fixed || len > most)
		return -ROFX_BAD_FRAME;
	return (int)len;
}

static void
get_side(const uint8_t **p, struct rofx_side *s, uint8_t *flags)
{
	s->transport = (uint8_t)get(p, 1);
	s->addressing = (uint8_t)get(p, 1);
	s->ordering = (uint8_t)get(p, 1);
	s->errors = (uint8_t)get(p, 1);
	s->cid = (uint32_t)get(p, 4);
	s->qpn = (uint32_t)get(p, 4);
	s->to_qpn = (uint32_t)get(p, 4);
	get_addr(p, &s->gid);
	get_addr(p, &s->to_gid);
	s->request_psn = (uint32_t)get(p, 4);
	s->data_psn = (uint32_t)get(p, 4);
	s->rsn = (uint32_t)get(p, 4);
	s->mtu = (uint16_t)get(p, 2);
	s->ird = (uint16_t)get(p, 2);
	s->ord = (uint16_t)get(p, 2);
	s->request_window = (uint8_t)get(p, 1);
	s->data_window = (uint8_t)get(p, 1);
	s->flows = (uint8_t)get(p, 1);
	s->rnr_retry = (uint8_t)get(p, 1);
	s->rnr_code = (uint8_t)get(p, 1);
	s->ttl = (uint8_t)get(p, 1);
	s->function = (uint32_t)get(p, 4);
	flags[0] = (uint8_t)get(p, 1);
	flags[1] = (uint8_t)get(p, 1);
	s->tunnel = flags[0];
	s->has_pcid = flags[1];
	s->psp = (uint16_t)get(p, 2);
	s->pcid = get(p, 8);
	s->spi = (uint32_t)get(p, 4);
}

static bool
get_checked_side(const uint8_t **p, struct rofx_side *s)
{
	uint8_t flags[2];

	get_side(p, s, flags);
	return flags[0] <= 1 && flags[1] <= 1 && rofx_side_valid(s, false);
}

static bool
get_key(const uint8_t **p, struct rofx_frame *f)
{
	memcpy(f->sa.key, *p, PSP_KEY_MAX);
	*p += PSP_KEY_MAX;
	return f->key_len == 0 || f->key_len == 16 || f->key_len == 32;
}

static bool
get_fixed(const uint8_t **p, struct rofx_frame *f)
{
	bool ok;

	switch (f->type) {
	case ROFX_F_CONNECT:
		ok = get_checked_side(p, &f->side);
		f->private_len = (uint16_t)get(p, 2);
		f->list = (uint8_t)get(p, 1);
		*p += 1;
		f->service = (uint16_t)get(p, 2);
		f->port = (uint16_t)get(p, 2);
		return ok && f->list < ROFX_LIST_FOLLOWS;
	case ROFX_F_ACCEPT:
		ok = get_checked_side(p, &f->side);
		f->private_len = (uint16_t)get(p, 2);
		f->key_len = (uint8_t)get(p, 1);
		f->list = (uint8_t)get(p, 1);
		return get_key(p, f) && ok && f->list <= ROFX_LIST_FOLLOWS;
	case ROFX_F_READY:
		f->key_len = (uint8_t)get(p, 1);
		f->list = (uint8_t)get(p, 1);
		*p += 2;
		return get_key(p, f) && f->list <= ROFX_LIST_FOLLOWS;
	case ROFX_F_REJECT:
		f->why = rofx_reason_of((uint8_t)get(p, 1));
		*p += 1;
		f->private_len = (uint16_t)get(p, 2);
		return true;
	case ROFX_F_LATER:
		f->delay_ms = (uint32_t)get(p, 4);
		return true;
	case ROFX_F_LOOKUP:
		f->service = (uint16_t)get(p, 2);
		f->private_len = (uint16_t)get(p, 2);
		get_addr(p, &f->gid);
		get_addr(p, &f->to_gid);
		return true;
	case ROFX_F_FOUND:
		f->qpn = (uint32_t)get(p, 4);
		f->qkey = (uint32_t)get(p, 4);
		f->private_len = (uint16_t)get(p, 2);
		*p += 2;
		return f->qpn <= ROF_QPN_MAX;
	case ROFX_F_REKEY:
		f->sa.spi = (uint32_t)get(p, 4);
		f->sa.version = (uint8_t)get(p, 1);
		f->key_len = (uint8_t)get(p, 1);
		*p += 2;
		return get_key(p, f) && f->sa.spi != 0;
	case ROFX_F_REKEYED:
		f->spi = (uint32_t)get(p, 4);
		return true;
	default: /* END, CHECK */
		return true;
	}
}

/* Reads the list of ports, and checks each: fa_params.paths depends on its low two bits. */
static bool
get_list(const uint8_t **p, struct rofx_frame *f)
{
	bool ok = true;

	for (unsigned i = 0; i < ROFX_PORTS; i++) {
		f->ports[i] = (uint16_t)get(p, 2);
		ok = ok && f->ports[i] >= ROFX_PORT_BASE && (f->ports[i] & 3) == (i & 3);
	}
	return ok;
}

int
rofx_frame_parse(struct rofx_frame *f, const uint8_t *p, size_t len)
{
	size_t fixed = bodies[f->type].fixed;

	f->private_len = 0;
	if (len < fixed)
		return ROFX_MALFORMED;
	if (!get_fixed(&p, f))
		return ROFX_MALFORMED;
	if (has_outer(f)) {
		fixed += ROFX_OUTER_LEN;
		if (len < fixed)
			return ROFX_MALFORMED;
		get_addr(&p, &f->side.outer);
		if (!rofx_outer_valid(&f->side))
			return ROFX_MALFORMED;
	}
	if (has_list(f)) {
		fixed += ROFX_LIST_LEN;
		if (len < fixed || !get_list(&p, f))
			return ROFX_MALFORMED;
	}
	f->private_data = p;
	return f->private_len == len - fixed && f->private_len <= ROFX_PRIVATE_MAX ? 0
										   : ROFX_MALFORMED;
}
