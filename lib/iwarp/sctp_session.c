/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DDP Stream Session Control: codec and state machine. mpa_settle.c interprets the word of IRD, ORD
 * and flags, as it does for MPA. The legal sequences of RFC 5043 6 and RFC 6581 7 are a table of
 * the messages that each state accepts.
 */
#include "sctp_session.h"

#include <errno.h>

#include "../base/be.h"
#include "mpa_settle_priv.h"

struct session_hdr {
	be16 ssn;
	be16 function;
} __attribute__((packed));
_Static_assert(sizeof(struct session_hdr) == SCTP_SESSION_LEN, "DDP Stream Session Control");

static bool
has_word(uint16_t function)
{
	return function == SCTP_INITIATE_ENHANCED || function == SCTP_ACCEPT_ENHANCED;
}

int
sctp_session_parse(struct sctp_session_msg *out, const uint8_t *p, size_t len)
{
	const struct session_hdr *h = (const struct session_hdr *)p;

	if (len < SCTP_SESSION_LEN)
		return -MPA_BAD_STARTUP;
	*out = (struct sctp_session_msg){
		.ssn = be16_get(h->ssn), .function = be16_get(h->function)};
	if (out->function < SCTP_INITIATE || out->function > SCTP_REJECT_ENHANCED)
		return -MPA_BAD_STARTUP;
	p += SCTP_SESSION_LEN;
	len -= SCTP_SESSION_LEN;
	if (len > MPA_PRIVATE_MAX || (out->function == SCTP_TERMINATE && len > 0))
		return -MPA_PRIVATE_TOO_LONG;
	if (has_word(out->function)) {
		if (wire_mpa_ird_ord_parse(&out->word, p, len) < 0)
			return -MPA_ENHANCED_SHORT;
		p += MPA_IRD_ORD_LEN;
		len -= MPA_IRD_ORD_LEN;
	}
	out->private_len = (uint16_t)len;
	out->private_data = p;
	return 0;
}

int
sctp_session_emit(uint8_t *p, const struct sctp_session_msg *in)
{
	struct session_hdr *h = (struct session_hdr *)p;
	size_t word = has_word(in->function) ? MPA_IRD_ORD_LEN : 0;

	if (in->private_len > MPA_PRIVATE_MAX - word ||
		(in->function == SCTP_TERMINATE && in->private_len > 0))
		return -EMSGSIZE;
	h->ssn = be16_of(in->ssn);
	h->function = be16_of(in->function);
	p += SCTP_SESSION_LEN;
	if (word > 0)
		wire_mpa_ird_ord_emit(p, &in->word);
	if (in->private_len > 0)
		memcpy(p + word, in->private_data, in->private_len);
	return (int)(SCTP_SESSION_LEN + word + in->private_len);
}

void
sctp_session_init(struct sctp_session *s, bool initiator, const struct mpa_offer *offer)
{
	memset(s, 0, sizeof(*s));
	s->state = initiator ? SCTP_SESSION_IDLE : SCTP_SESSION_WAIT_INITIATE;
	s->initiator = initiator;
	s->offer = *offer;
}

static int
sctp_session_build(struct sctp_session *s, uint8_t *buf, struct sctp_session_msg *m,
	const void *private_data, size_t len, enum sctp_session_state next)
{
	int n;

	if (len > MPA_PRIVATE_MAX)
		return -EMSGSIZE;
	m->ssn = s->ssn;
	m->private_len = (uint16_t)len;
	m->private_data = private_data;
	n = sctp_session_emit(buf, m);
	if (n < 0)
		return n;
	s->ssn++;
	s->state = next;
	return n;
}

int
sctp_session_initiate(struct sctp_session *s, uint8_t *buf, const void *private_data, size_t len)
{
	const struct mpa_offer *o = &s->offer;
	struct sctp_session_msg m = {
		.function = o->revision == 2 ? SCTP_INITIATE_ENHANCED : SCTP_INITIATE};

	if (s->state != SCTP_SESSION_IDLE || o->revision < 1 || o->revision > 2 ||
		o->ird > MPA_IRD_AUTO || o->ord > MPA_IRD_AUTO)
		return -EINVAL;
	mpa_settle_request(o, &m.word);
	return sctp_session_build(s, buf, &m, private_data, len, SCTP_SESSION_WAIT_REPLY);
}

/* [verdict][request was enhanced] */
static const uint8_t reply_function[3][2] = {
	[SCTP_VERDICT_ACCEPT] = {SCTP_ACCEPT, SCTP_ACCEPT_ENHANCED},
	[SCTP_VERDICT_REJECT] = {SCTP_REJECT, SCTP_REJECT},
	[SCTP_VERDICT_REJECT_ENHANCED] = {0, SCTP_REJECT_ENHANCED},
};

int
sctp_session_reply(struct sctp_session *s, uint8_t *buf, enum sctp_verdict verdict, uint16_t ird,
	uint16_t ord, const void *private_data, size_t len)
{
	struct sctp_session_msg m = {.function = reply_function[verdict][s->result.enhanced]};
	bool accept = verdict == SCTP_VERDICT_ACCEPT;
	struct mpa_result before = s->result;
	int n;

	if (s->state != SCTP_SESSION_REQUESTED || m.function == 0 || ird > MPA_IRD_AUTO ||
		ord > MPA_IRD_AUTO)
		return -EINVAL;
	mpa_settle_reply(&s->offer, &s->result, accept, ird, ord, &m.word);
	n = sctp_session_build(s, buf, &m, private_data, len,
		accept ? SCTP_SESSION_ACCEPTED : SCTP_SESSION_REFUSED);
	if (n < 0)
		s->result = before;
	else
		s->accepted = accept;
	return n;
}

int
sctp_session_terminate(struct sctp_session *s, uint8_t *buf)
{
	struct sctp_session_msg m = {.function = SCTP_TERMINATE};

	if (s->state != SCTP_SESSION_WAIT_REPLY && s->state != SCTP_SESSION_REQUESTED &&
		s->state != SCTP_SESSION_ACCEPTED && s->state != SCTP_SESSION_FAILED)
		return -EINVAL;
	s->accepted = false;
	return sctp_session_build(s, buf, &m, NULL, 0, SCTP_SESSION_TERMINATED);
}

unsigned
sctp_session_fault(const struct sctp_session *s, uint8_t *ulpdu)
{
	if (s->state != SCTP_SESSION_FAILED || !s->accepted)
		return 0;
	return mpa_terminate_ulpdu(s->why, ulpdu);
}

/* ---- Messages received ---- */

static void
take_private(struct sctp_session *s, const struct sctp_session_msg *m)
{
	struct mpa_result *r = &s->result;

	r->enhanced = m->function >= SCTP_INITIATE_ENHANCED;
	r->revision = r->enhanced ? 2 : 1;
	s->peer_private.len = m->private_len;
	memcpy(s->peer_private.data, m->private_data, m->private_len);
	mpa_settle_input(&s->offer, r, has_word(m->function) ? &m->word : NULL);
}

/* Accepts an Initiate. A responder without the enhancements does not recognize the enhanced message
 * and closes the stream (RFC 6581 10). */
static int
take_initiate(struct sctp_session *s, const struct sctp_session_msg *m)
{
	bool enhanced = m->function == SCTP_INITIATE_ENHANCED;

	if (enhanced && s->offer.revision < 2)
		return MPA_BAD_REVISION;
	take_private(s, m);
	mpa_settle_requested(&s->offer, &s->result);
	s->state = SCTP_SESSION_REQUESTED;
	return 0;
}

/* Accepts an Accept. An enhanced Initiate must be answered by an enhanced Accept, a plain Initiate
 * by a plain Accept. */
static int
take_accept(struct sctp_session *s, const struct sctp_session_msg *m)
{
	bool enhanced = m->function == SCTP_ACCEPT_ENHANCED;
	int err = 0;

	s->accepted = true;
	if (enhanced != (s->offer.revision == 2))
		return MPA_PARAMETERS;
	take_private(s, m);
	if (enhanced)
		err = mpa_settle_accepted(&s->offer, &s->result, &m->word);
	if (err == 0)
		s->state = SCTP_SESSION_ACCEPTED;
	return err;
}

static int
take_reject(struct sctp_session *s, const struct sctp_session_msg *m)
{
	if (m->function == SCTP_REJECT_ENHANCED && s->offer.revision < 2)
		return MPA_PARAMETERS;
	take_private(s, m);
	s->unenhanced_would = m->function == SCTP_REJECT_ENHANCED;
	s->state = SCTP_SESSION_REFUSED;
	return 0;
}

static int
take_terminate(struct sctp_session *s, const struct sctp_session_msg *m)
{
	s->state =
		s->state == SCTP_SESSION_WAIT_REPLY ? SCTP_SESSION_NO_ULP : SCTP_SESSION_TERMINATED;
	return 0;
}

/* The handler of each message that is in sequence; all others are out of sequence. */
static int (*const takers[SCTP_SESSION_FAILED + 1][SCTP_REJECT_ENHANCED + 1])(
	struct sctp_session *s, const struct sctp_session_msg *m) = {
	[SCTP_SESSION_WAIT_INITIATE] =
		{
			[SCTP_INITIATE] = take_initiate,
			[SCTP_INITIATE_ENHANCED] = take_initiate,
		},
	[SCTP_SESSION_WAIT_REPLY] =
		{
			[SCTP_ACCEPT] = take_accept,
			[SCTP_ACCEPT_ENHANCED] = take_accept,
			[SCTP_REJECT] = take_reject,
			[SCTP_REJECT_ENHANCED] = take_reject,
			[SCTP_TERMINATE] = take_terminate,
		},
	[SCTP_SESSION_REQUESTED] = {[SCTP_TERMINATE] = take_terminate},
	[SCTP_SESSION_ACCEPTED] = {[SCTP_TERMINATE] = take_terminate},
};

static bool
sctp_session_over(const struct sctp_session *s)
{
	return s->state >= SCTP_SESSION_REFUSED;
}

int
sctp_session_input(struct sctp_session *s, const uint8_t *p, size_t len)
{
	struct sctp_session_msg m;
	int err = -sctp_session_parse(&m, p, len);

	if (err == 0)
		err = takers[s->state][m.function] != NULL ? takers[s->state][m.function](s, &m)
							   : MPA_BAD_STARTUP;
	if (err != 0 && !sctp_session_over(s)) {
		s->state = SCTP_SESSION_FAILED;
		s->why = (enum mpa_reason)err;
	}
	return -err;
}
