/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start-up exchange (RFC 5044 7.1, RFC 6581): one request, one reply, and what the two sides
 * have agreed on then. Bytes may come in any pieces; nothing behind a frame is ever taken, since
 * that is the first FPDU.
 */
#include "mpa.h"

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
	s->initiator = initiator;
	s->offer = *offer;
	s->have = 0;
	memset(&s->result, 0, sizeof(s->result));
}

static int
fail(struct mpa_startup *s, enum mpa_reason why)
{
	s->state = MPA_FAILED;
	return -(int)why;
}

/* ---- Ready-to-receive messages (RFC 6581 9.2) ---------------------------------------------------
 */

static bool
peer_to_peer(const struct mpa_offer *o)
{
	return o->rtr_send || o->rtr_write || o->rtr_read;
}

/* What we take as a responder. Without a preference: a Write of no bytes costs a receiver nothing,
 * and one message at least must be supported. */
static struct wire_mpa_ird_ord
responder_rtr(const struct mpa_offer *o)
{
	if (!peer_to_peer(o))
		return (struct wire_mpa_ird_ord){.a = true, .c = true};
	return (struct wire_mpa_ird_ord){
		.a = true, .b = o->rtr_send, .c = o->rtr_write, .d = o->rtr_read};
}

/* Of the messages that both sides know the one that costs least: a Send may meet a posted receive,
 * a Read has an answer. */
static uint8_t
choose_rtr(const struct wire_mpa_ird_ord *x, const struct wire_mpa_ird_ord *y)
{
	if (x->c && y->c)
		return MPA_RTR_WRITE;
	if (x->b && y->b)
		return MPA_RTR_SEND;
	if (x->d && y->d)
		return MPA_RTR_READ;
	return MPA_RTR_NONE;
}

/* ---- Frames out
 * ------------------------------------------------------------------------------------ */

static int
emit(uint8_t *buf, struct wire_mpa_startup *h, const struct wire_mpa_ird_ord *word,
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
	struct wire_mpa_ird_ord word = {.ird = o->ird, .ord = o->ord};

	if (s->state != MPA_IDLE || o->revision < 1 || o->revision > 2)
		return -EINVAL;
	if (o->ird > MPA_IRD_AUTO || o->ord > MPA_IRD_AUTO)
		return -EINVAL;
	if (len > mpa_private_max(o->revision))
		return -EMSGSIZE;
	word.a = peer_to_peer(o);
	word.b = o->rtr_send;
	word.c = o->rtr_write;
	word.d = o->rtr_read;
	s->state = MPA_WAIT_REPLY;
	return emit(buf, &h, &word, private_data, len);
}

/* RFC 6581 9.1, the responder's part: its ORD is at most the initiator's IRD; its IRD need not
 * exceed the initiator's ORD; a side that does not state its limit is answered in kind and leaves
 * ours alone. */
static void
settle_responder(struct mpa_result *r, uint16_t ird, uint16_t ord, struct wire_mpa_ird_ord *word)
{
	r->ird = ird;
	r->ord = ord;
	if (r->peer_ord != MPA_IRD_AUTO)
		r->ird = SK_MIN(ird, r->peer_ord);
	if (r->peer_ird != MPA_IRD_AUTO)
		r->ord = SK_MIN(ord, r->peer_ird);
	if (r->rtr == MPA_RTR_READ)
		r->ird = SK_MAX(r->ird, 1);
	word->ird = r->peer_ord == MPA_IRD_AUTO ? MPA_IRD_AUTO : r->ird;
	word->ord = r->peer_ird == MPA_IRD_AUTO ? MPA_IRD_AUTO : r->ord;
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
	struct wire_mpa_ird_ord word = {0};

	if (s->state != MPA_REQUESTED || ird > MPA_IRD_AUTO || ord > MPA_IRD_AUTO)
		return -EINVAL;
	if (len > MPA_PRIVATE_MAX - (r->enhanced ? MPA_IRD_ORD_LEN : 0u))
		return -EMSGSIZE;
	if (r->peer_to_peer)
		word = responder_rtr(&s->offer);
	word.ird = ird;
	word.ord = ord;
	if (accept)
		settle_responder(r, ird, ord, &word);
	s->state = accept ? MPA_ACCEPTED : MPA_REFUSED;
	return emit(buf, &h, &word, private_data, len);
}

/* ---- Frames in
 * ------------------------------------------------------------------------------------- */

/* The fixed part of the frame, as soon as it is here. 0 or a reason. */
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
	/* At revision 1 the bit is reserved, which means: not looked at. */
	h->enhanced = h->enhanced && h->revision >= 2;
	if (h->enhanced && h->private_len < MPA_IRD_ORD_LEN)
		return MPA_ENHANCED_SHORT;
	return 0;
}

/* What both sides read from a frame. */
static void
take_frame(struct mpa_startup *s, const struct wire_mpa_startup *h, struct wire_mpa_ird_ord *word)
{
	struct mpa_result *r = &s->result;
	const uint8_t *p = s->frame + MPA_STARTUP_LEN;

	*word = (struct wire_mpa_ird_ord){.ird = MPA_IRD_AUTO, .ord = MPA_IRD_AUTO};
	r->private_len = h->private_len;
	if (h->enhanced) {
		wire_mpa_ird_ord_parse(word, p, MPA_IRD_ORD_LEN);
		p += MPA_IRD_ORD_LEN;
		r->private_len = (uint16_t)(r->private_len - MPA_IRD_ORD_LEN);
	}
	memcpy(r->private_data, p, r->private_len);
	r->revision = h->revision;
	r->enhanced = h->enhanced;
	r->crc = h->crc || s->offer.crc;
	r->tx_markers = h->markers;
	r->rx_markers = s->offer.markers;
	r->ird = s->offer.ird;
	r->ord = s->offer.ord;
	r->peer_ird = word->ird;
	r->peer_ord = word->ord;
	r->peer_to_peer = word->a;
}

/* The reject bit of a request is reserved (RFC 5044 7.1.1): it is not looked at. */
static int
take_request(struct mpa_startup *s, const struct wire_mpa_startup *h)
{
	struct wire_mpa_ird_ord word, ours = responder_rtr(&s->offer);

	take_frame(s, h, &word);
	if (word.a)
		s->result.rtr = choose_rtr(&ours, &word);
	s->state = MPA_REQUESTED;
	return 0;
}

/* RFC 6581 9.1, the initiator's part. False: the responder wants to read more at once than we
 * offered. */
static bool
settle_initiator(struct mpa_result *r)
{
	if (r->peer_ord != MPA_IRD_AUTO) {
		if (r->peer_ord > r->ird)
			return false;
		r->ird = r->peer_ord;
	}
	if (r->peer_ird != MPA_IRD_AUTO)
		r->ord = SK_MIN(r->ord, r->peer_ird);
	return true;
}

/* RFC 6581 9.2, the initiator's part. False: the responder takes none of our ready-to-receive
 * messages. */
static bool
settle_rtr(struct mpa_startup *s, struct wire_mpa_ird_ord *word)
{
	struct mpa_result *r = &s->result;
	struct wire_mpa_ird_ord ours = {
		.b = s->offer.rtr_send, .c = s->offer.rtr_write, .d = s->offer.rtr_read};

	if (!word->a)
		return true;
	word->d = word->d && r->peer_ird > 0;
	r->rtr = choose_rtr(&ours, word);
	if (r->rtr == MPA_RTR_READ)
		r->ord = SK_MAX(r->ord, 1);
	return r->rtr != MPA_RTR_NONE;
}

static int
take_reply(struct mpa_startup *s, const struct wire_mpa_startup *h)
{
	bool asked = peer_to_peer(&s->offer);
	struct wire_mpa_ird_ord word;

	take_frame(s, h, &word);
	if (h->reject) {
		s->state = MPA_REFUSED;
		return 0;
	}
	if (s->offer.crc && !h->crc)
		return MPA_PARAMETERS;
	if (h->revision == 2) {
		if (!h->enhanced || word.a != asked)
			return MPA_PARAMETERS;
		if (!settle_initiator(&s->result) || !settle_rtr(s, &word))
			return MPA_PARAMETERS;
	}
	s->state = MPA_ACCEPTED;
	return 0;
}

/* Fills the frame up to `want` bytes; returns how many it took. */
static size_t
gather(struct mpa_startup *s, size_t want, const uint8_t *data, size_t len)
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
		return fail(s, MPA_EARLY_DATA);
	if (s->state != MPA_WAIT_REPLY && s->state != MPA_WAIT_REQUEST)
		return fail(s, MPA_BAD_STARTUP);
	used = gather(s, MPA_STARTUP_LEN, data, len);
	if (s->have < MPA_STARTUP_LEN)
		return (int)used;
	err = check_header(s, &h);
	if (err != 0)
		return fail(s, err);
	used += gather(s, MPA_STARTUP_LEN + h.private_len, data + used, len - used);
	if (s->have < MPA_STARTUP_LEN + h.private_len)
		return (int)used;
	err = s->initiator ? take_reply(s, &h) : take_request(s, &h);
	return err != 0 ? fail(s, err) : (int)used;
}
