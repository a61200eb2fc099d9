/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The negotiation of depths and ready-to-receive messages (RFC 6581 9): the initiator proposes, the
 * responder reduces, the initiator may refuse the result.
 */
#include "mpa_settle_priv.h"

#include "../base/mem.h"

static bool
peer_to_peer(const struct mpa_offer *o)
{
	return o->rtr_send || o->rtr_write || o->rtr_read;
}

void
mpa_settle_request(const struct mpa_offer *o, struct wire_mpa_ird_ord *word)
{
	*word = (struct wire_mpa_ird_ord){
		.a = peer_to_peer(o),
		.b = o->rtr_send,
		.c = o->rtr_write,
		.d = o->rtr_read,
		.ird = o->ird,
		.ord = o->ord,
	};
}

void
mpa_settle_input(
	const struct mpa_offer *o, struct mpa_result *r, const struct wire_mpa_ird_ord *word)
{
	r->ird = o->ird;
	r->ord = o->ord;
	r->peer_ird = word != NULL ? word->ird : MPA_IRD_AUTO;
	r->peer_ord = word != NULL ? word->ord : MPA_IRD_AUTO;
	/* Without flag A the other flags have no meaning. */
	r->peer_to_peer = word != NULL && word->a;
	r->peer_send = r->peer_to_peer && word->b;
	r->peer_write = r->peer_to_peer && word->c;
	r->peer_read = r->peer_to_peer && word->d;
	r->rtr = MPA_RTR_NONE;
}

/* Returns the ready-to-receive messages that a responder accepts. At least one message must be
 * supported; without a preference it is the Write of no bytes, which costs a receiver nothing. */
static struct wire_mpa_ird_ord
responder_rtr(const struct mpa_offer *o)
{
	return (struct wire_mpa_ird_ord){
		.a = true,
		.b = o->rtr_send,
		.c = o->rtr_write || !peer_to_peer(o),
		.d = o->rtr_read,
	};
}

void
mpa_settle_requested(const struct mpa_offer *o, struct mpa_result *r)
{
	struct wire_mpa_ird_ord ours = responder_rtr(o);

	r->rtr = MPA_RTR_NONE;
	if (ours.b && r->peer_send)
		r->rtr = MPA_RTR_SEND;
	else if (ours.c && r->peer_write)
		r->rtr = MPA_RTR_WRITE;
	else if (ours.d && r->peer_read)
		r->rtr = MPA_RTR_READ;
}

/* Sets the depths of an accepting responder. Its ORD is at most the initiator's IRD. Its IRD need
 * not exceed the initiator's ORD, but must be at least 1 if a Read is the ready-to-receive message.
 * If the initiator does not state a limit, the responder does not state one either and keeps its
 * own depth. */
static void
accept_depths(struct mpa_result *r, uint16_t ird, uint16_t ord)
{
	r->ird = ird;
	r->ord = ord;
	if (r->peer_ord != MPA_IRD_AUTO)
		r->ird = SK_MIN(r->ird, r->peer_ord);
	if (r->peer_ird != MPA_IRD_AUTO)
		r->ord = SK_MIN(r->ord, r->peer_ird);
	if (r->rtr == MPA_RTR_READ)
		r->ird = SK_MAX(r->ird, 1);
}

void
mpa_result_accept(struct mpa_result *r, const struct mpa_offer *o)
{
	r->crc = r->peer_crc || o->crc;
	r->rx_markers = o->markers;
	mpa_settle_requested(o, r);
	accept_depths(r, o->ird, o->ord);
}

void
mpa_settle_reply(const struct mpa_offer *o, struct mpa_result *r, bool accept, uint16_t ird,
	uint16_t ord, struct wire_mpa_ird_ord *word)
{
	*word = (struct wire_mpa_ird_ord){0};
	if (r->peer_to_peer)
		*word = responder_rtr(o);
	/* A rejection may state the depths that would have been needed. */
	word->ird = ird;
	word->ord = ord;
	if (!accept)
		return;
	accept_depths(r, ird, ord);
	word->d = word->d && r->ird > 0;
	word->ird = r->peer_ord == MPA_IRD_AUTO ? MPA_IRD_AUTO : r->ird;
	word->ord = r->peer_ird == MPA_IRD_AUTO ? MPA_IRD_AUTO : r->ord;
}

/* Chooses the cheapest of the ready-to-receive messages that both sides support: a Write needs
 * nothing, a Send may consume a posted receive, a Read needs a response. */
static int
choose_rtr(const struct mpa_offer *o, struct mpa_result *r, const struct wire_mpa_ird_ord *word)
{
	if (o->rtr_write && word->c)
		r->rtr = MPA_RTR_WRITE;
	else if (o->rtr_send && word->b)
		r->rtr = MPA_RTR_SEND;
	else if (o->rtr_read && word->d && word->ird > 0)
		r->rtr = MPA_RTR_READ;
	else
		return MPA_NO_RTR;
	if (r->rtr == MPA_RTR_READ)
		r->ord = SK_MAX(r->ord, 1);
	return 0;
}

int
mpa_settle_accepted(
	const struct mpa_offer *o, struct mpa_result *r, const struct wire_mpa_ird_ord *word)
{
	if (word->a != peer_to_peer(o))
		return MPA_PARAMETERS;
	if (word->ord != MPA_IRD_AUTO) {
		if (word->ord > r->ird)
			return MPA_NO_IRD;
		r->ird = word->ord;
	}
	if (word->ird != MPA_IRD_AUTO)
		r->ord = SK_MIN(r->ord, word->ird);
	return word->a ? choose_rtr(o, r, word) : 0;
}
