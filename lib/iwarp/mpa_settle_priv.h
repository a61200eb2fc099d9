/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The negotiation of RFC 6581 9: the word of IRD, ORD and control flags, for both kinds of frames
 * that carry it: MPA's start-up frames and SCTP's session control messages.
 */
#ifndef SAKER_MPA_SETTLE_PRIV_H
#define SAKER_MPA_SETTLE_PRIV_H

#include "mpa.h"

/* Initiator: builds the word of the request. */
void mpa_settle_request(const struct mpa_offer *o, struct wire_mpa_ird_ord *word);
/* Either side: records in *r what the peer's frame states, and the depths of the local offer as a
 * preliminary outcome. `word` is NULL if the frame is not an enhanced one. */
void mpa_settle_input(
	const struct mpa_offer *o, struct mpa_result *r, const struct wire_mpa_ird_ord *word);
/* Responder: determines the ready-to-receive message that needs the most preparation among those
 * that both sides support (mpa_result.rtr). */
void mpa_settle_requested(const struct mpa_offer *o, struct mpa_result *r);
/* Responder: builds the word of the reply and, if it accepts, sets the depths of this side. */
void mpa_settle_reply(const struct mpa_offer *o, struct mpa_result *r, bool accept, uint16_t ird,
	uint16_t ord, struct wire_mpa_ird_ord *word);
/* Initiator: settles the outcome of an enhanced reply that accepts. Returns 0, or the reason why
 * the connection cannot be used. */
int mpa_settle_accepted(
	const struct mpa_offer *o, struct mpa_result *r, const struct wire_mpa_ird_ord *word);
/* Writes the RDMAP Terminate for `why` (RFC 6581 8) with its DDP header, at most
 * MPA_TERMINATE_ULPDU bytes at `ulpdu`. Returns its length. */
unsigned mpa_terminate_ulpdu(enum mpa_reason why, uint8_t *ulpdu);
#define MPA_TERMINATE_ULPDU (DDP_UNTAGGED_LEN + RDMAP_TERMINATE_LEN)

#endif
