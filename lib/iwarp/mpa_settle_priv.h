/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What RFC 6581 9 says about the word of IRD, ORD and control flags, for whichever frames carry it:
 * MPA's or SCTP's session control.
 */
#ifndef SAKER_MPA_SETTLE_PRIV_H
#define SAKER_MPA_SETTLE_PRIV_H

#include "mpa.h"

/* Initiator: the word of the request. */
void mpa_settle_request(const struct mpa_offer *o, struct wire_mpa_ird_ord *word);
/* Either side: what the peer's frame says, and our own depths for the time being. `word` is NULL
 * when the frame is not an enhanced one. */
void mpa_settle_input(
	const struct mpa_offer *o, struct mpa_result *r, const struct wire_mpa_ird_ord *word);
/* Responder: which ready-to-receive message asks most of us, of those that both know. */
void mpa_settle_requested(const struct mpa_offer *o, struct mpa_result *r);
/* Responder: the word of the reply, and our depths if we accept. */
void mpa_settle_reply(const struct mpa_offer *o, struct mpa_result *r, bool accept, uint16_t ird,
	uint16_t ord, struct wire_mpa_ird_ord *word);
/* Initiator: an enhanced reply that accepts. 0, or the reason why it cannot be had. */
int mpa_settle_accepted(
	const struct mpa_offer *o, struct mpa_result *r, const struct wire_mpa_ird_ord *word);
/* The RDMAP Terminate for `why` (RFC 6581 8), with its DDP header: at most MPA_TERMINATE_ULPDU
 * bytes at `ulpdu`. Returns its length. */
unsigned mpa_terminate_ulpdu(enum mpa_reason why, uint8_t *ulpdu);
#define MPA_TERMINATE_ULPDU (DDP_UNTAGGED_LEN + RDMAP_TERMINATE_LEN)

#endif
