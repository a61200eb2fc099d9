/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Terminate of a failed start-up (RFC 6581 8). Only an initiator can send it: its peer is in
 * FPDU mode after the reply and waits for the first FPDU, whereas a responder must not send an FPDU
 * before the initiator (RFC 5044 7.1.2).
 */
#include "mpa_settle_priv.h"

#define LAYER_LLP 2
#define ETYPE_MPA 0

static uint8_t
code_of(enum mpa_reason why)
{
	switch (why) {
	case MPA_NO_IRD:
		return 6;
	case MPA_NO_RTR:
		return 7;
	default:
		return 5; /* all failures without a code of their own (RFC 6581 9.3) */
	}
}

unsigned
mpa_terminate_ulpdu(enum mpa_reason why, uint8_t *ulpdu)
{
	const struct wire_ddp d = {
		.last = true, .opcode = RDMAP_TERMINATE, .qn = DDP_QN_TERMINATE, .msn = 1};
	const struct wire_terminate t = {
		.layer = LAYER_LLP, .etype = ETYPE_MPA, .code = code_of(why)};
	unsigned len = wire_ddp_emit(ulpdu, &d);

	return len + wire_terminate_emit(ulpdu + len, &t);
}

unsigned
mpa_terminate_emit(const struct mpa_startup *s, uint8_t *buf)
{
	uint8_t ulpdu[MPA_TERMINATE_ULPDU];
	struct mpa_writer w;
	struct mpa_tx tx;
	unsigned len;

	if (s->state != MPA_FAILED || !s->accepted)
		return 0;
	len = mpa_terminate_ulpdu(s->why, ulpdu);
	mpa_tx_init(&tx, s->result.crc, s->result.tx_markers, MPA_TERMINATE_FPDU);
	mpa_write_begin(&w, &tx, buf, len);
	mpa_write_put(&w, ulpdu, len);
	return mpa_write_end(&w);
}
