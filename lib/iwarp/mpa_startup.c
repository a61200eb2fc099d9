/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start-up exchange (RFC 5044 7.1, RFC 6581): one request, one reply, and the outcome. Bytes
 * may arrive in pieces of any size; no byte behind a frame is consumed, because it belongs to the
 * first FPDU.
 */
#include "mpa_settle_priv.h"

#include <errno.h>

#include "../base/mem.h"

size_t
mpa_private_max(uint8_t revision)
{
	return revision >= 2 ? MPA_PRIVATE_MAX - MPA_IRD_ORD_LEN : MPA_PRIVATE_MAX;
}

void
mpa_startup_init(struct mpa_startup *s, bool initiator, const struct mpa_offer *offer)
{
	s->state = initiator ? MPA_IDLE : MPA_WAIT_REQUEST;
	s->why = MPA_NONE;
	s->initiator = initiator;
	s->accepted = false;
	s->offer = *offer;
	s->have = 0;
	memset(&s->result, 0, sizeof(s->result));
}

static int
mpa_startup_fail(struct mpa_startup *s, enum mpa_reason why)
{
	s->state = MPA_FAILED;
	s->why = why;
	return -(int)why;
}

void
mpa_startup_abandon(struct mpa_startup *s)
{
	mpa_startup_fail(s, MPA_LOCAL);
}

bool
mpa_fall_back(const struct mpa_startup *s, struct mpa_offer *again)
{
	if (s->state != MPA_WAIT_REPLY || s->have > 0 || s->offer.revision < 2 ||
		s->offer.enhanced_only)
		return false;
	*again = s->offer;
	again->revision = 1;
	again->rtr_send = again->rtr_write = again->rtr_read = false;
	return true;
}

void
mpa_startup_choose(struct mpa_startup *s, const struct mpa_offer *o)
{
	uint8_t revision = s->offer.revision;

	if (s->state != MPA_REQUESTED)
		return;
	s->offer = *o;
	s->offer.revision = revision;
	mpa_result_accept(&s->result, o);
}

/* ---- Frames sent ---- */

static int
mpa_startup_emit(uint8_t *buf, struct wire_mpa_startup *h, const struct wire_mpa_ird_ord *word,
	const void *private_data, size_t len)
{
	unsigned at = MPA_STARTUP_LEN;

	if (h->enhanced)
		at += wire_mpa_ird_ord_emit(buf + at, word);
	if (len > 0)
		memcpy(buf + at, private_data, len);
	h->private_len = (uint16_t)(at - MPA_STARTUP_LEN + len);
	wire_mpa_startup_emit(buf, h);
	return (int)(at + len);
}

int
mpa_request_emit(struct mpa_startup *s, uint8_t *buf, const void *private_data, size_t len)
{
	const struct mpa_offer *o = &s->offer;
	struct wire_mpa_startup h = {
		.markers = o->markers,
		.crc = o->crc,
		.enhanced = o->revision == 2,
		.revision = o->revision,
	};
	struct wire_mpa_ird_ord word;

	if (s->state != MPA_IDLE || o->revision < 1 || o->revision > 2)
		return -EINVAL;
	if (o->ird > MPA_IRD_AUTO || o->ord > MPA_IRD_AUTO)
		return -EINVAL;
	if (len > mpa_private_max(o->revision))
		return -EMSGSIZE;
	mpa_settle_request(o, &word);
	s->state = MPA_WAIT_REPLY;
	return mpa_startup_emit(buf, &h, &word, private_data, len);
}

int
mpa_reply_emit(struct mpa_startup *s, uint8_t *buf, bool accept, uint16_t ird, uint16_t ord,
	const void *private_data, size_t len)
{
	struct mpa_result *r = &s->result;
	struct wire_mpa_startup h = {
		.reply = true,
		.markers = r->rx_markers,
		.crc = r->crc,
		.reject = !accept,
		.enhanced = r->enhanced,
		.revision = r->revision,
	};
	struct wire_mpa_ird_ord word;

	if (s->state != MPA_REQUESTED || ird > MPA_IRD_AUTO || ord > MPA_IRD_AUTO)
		return -EINVAL;
	if (len > MPA_PRIVATE_MAX - (r->enhanced ? MPA_IRD_ORD_LEN : 0u))
		return -EMSGSIZE;
	mpa_settle_reply(&s->offer, r, accept, ird, ord, &word);
	s->state = accept ? MPA_ACCEPTED : MPA_REFUSED;
	return mpa_startup_emit(buf, &h, &word, private_data, len);
}

/* ---- Frames received ---- */

/* Parses and checks the fixed part of the frame. Returns 0 or a reason. */
static int
check_header(const struct mpa_startup *s, struct wire_mpa_startup *h)
{
	int err = wire_mpa_startup_parse(h, s->frame, s->have);

	if (err == -WIRE_MPA_LENGTH)
		return MPA_PRIVATE_TOO_LONG;
	if (err < 0 || h->reply != s->initiator)
		return MPA_BAD_STARTUP;
	if (h->revision < 1 || h->revision > s->offer.revision)
		return MPA_BAD_REVISION;
	/* At revision 1 the bit is reserved and must be ignored. */
	h->enhanced = h->enhanced && h->revision >= 2;
	if (h->enhanced && h->private_len < MPA_IRD_ORD_LEN)
		return MPA_ENHANCED_SHORT;
	return 0;
}

/* Records what both sides read from a frame. */
static void
take_frame(struct mpa_startup *s, const struct wire_mpa_startup *h, struct wire_mpa_ird_ord *word)
{
	struct mpa_result *r = &s->result;
	const uint8_t *p = s->frame + MPA_STARTUP_LEN;

	s->peer_private.len = h->private_len;
	if (h->enhanced) {
		wire_mpa_ird_ord_parse(word, p, MPA_IRD_ORD_LEN);
		p += MPA_IRD_ORD_LEN;
		s->peer_private.len = (uint16_t)(s->peer_private.len - MPA_IRD_ORD_LEN);
	}
	memcpy(s->peer_private.data, p, s->peer_private.len);
	r->revision = h->revision;
	r->enhanced = h->enhanced;
	r->peer_crc = h->crc;
	r->crc = h->crc || s->offer.crc;
	r->tx_markers = h->markers;
	r->rx_markers = s->offer.markers;
	mpa_settle_input(&s->offer, r, h->enhanced ? word : NULL);
}

/* Accepts a request frame. Its reject bit is reserved and ignored (RFC 5044 7.1.1). */
static int
take_request(struct mpa_startup *s, const struct wire_mpa_startup *h)
{
	struct wire_mpa_ird_ord word;

	take_frame(s, h, &word);
	mpa_settle_requested(&s->offer, &s->result);
	s->state = MPA_REQUESTED;
	return 0;
}

static int
take_reply(struct mpa_startup *s, const struct wire_mpa_startup *h)
{
	struct wire_mpa_ird_ord word;
	int err = 0;

	take_frame(s, h, &word);
	if (h->reject) {
		s->state = MPA_REFUSED;
		return 0;
	}
	s->accepted = true;
	if (s->offer.crc && !h->crc)
		return MPA_PARAMETERS;
	if (h->revision == 2)
		err = h->enhanced ? mpa_settle_accepted(&s->offer, &s->result, &word)
				  : MPA_PARAMETERS;
	else if (s->offer.revision == 2 && s->offer.enhanced_only)
		err = MPA_PARAMETERS;
	if (err == 0)
		s->state = MPA_ACCEPTED;
	return err;
}

/* Fills the frame up to `want` bytes. Returns the number of bytes taken from `data`. */
static size_t
mpa_startup_gather(struct mpa_startup *s, size_t want, const uint8_t *data, size_t len)
{
	size_t n = s->have < want ? SK_MIN(want - s->have, len) : 0;

	if (n > 0)
		memcpy(s->frame + s->have, data, n);
	s->have = (uint16_t)(s->have + n);
	return n;
}

int
mpa_startup_input(struct mpa_startup *s, const uint8_t *data, size_t len)
{
	struct wire_mpa_startup h;
	size_t used;
	int err;

	if (len == 0 || s->state == MPA_ACCEPTED || s->state == MPA_REFUSED)
		return 0;
	if (s->state == MPA_REQUESTED)
		return mpa_startup_fail(s, MPA_EARLY_DATA);
	if (s->state != MPA_WAIT_REPLY && s->state != MPA_WAIT_REQUEST)
		return mpa_startup_fail(s, MPA_BAD_STARTUP);
	used = mpa_startup_gather(s, MPA_STARTUP_LEN, data, len);
	if (s->have < MPA_STARTUP_LEN)
		return (int)used;
	err = check_header(s, &h);
	if (err != 0)
		return mpa_startup_fail(s, err);
	used += mpa_startup_gather(s, MPA_STARTUP_LEN + h.private_len, data + used, len - used);
	if (s->have < MPA_STARTUP_LEN + h.private_len)
		return (int)used;
	err = s->initiator ? take_reply(s, &h) : take_request(s, &h);
	return err != 0 ? mpa_startup_fail(s, err) : (int)used;
}
