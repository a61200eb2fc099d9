/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Terminate (RFC 5040 4.8 and 7). One table maps a reason to the Terminate's layer, error type and
 * code and determines whether the faulty segment is quoted. The first error wins; its Terminate is
 * sent once, after all FPDUs that were built before, and then the stream closes.
 */
#include "iw_priv.h"

#include "../base/mem.h"

#include <string.h>

enum quote {
	SILENT,   /* sends no Terminate */
	NOTHING,  /* quotes nothing: no segment is at fault, or its layout is not known */
	DDP_HEAD, /* quotes the segment length and the DDP header */
	ALL_HEAD, /* also quotes the RDMAP header of a Read Request */
};

enum { RDMAP = 0, DDP = 1, LLP = 2 };

static const struct rule {
	uint8_t quote;
	uint8_t layer, etype, code;
} rules[iw_reason_count] = {
	[IW_LLP_CRC] = {NOTHING, LLP, 0, 0x02},
	[IW_LLP_MARKER] = {NOTHING, LLP, 0, 0x03},
	[IW_DDP_T_STAG] = {DDP_HEAD, DDP, 1, 0x00},
	[IW_DDP_T_BOUNDS] = {DDP_HEAD, DDP, 1, 0x01},
	[IW_DDP_T_STREAM] = {DDP_HEAD, DDP, 1, 0x02},
	[IW_DDP_T_WRAP] = {DDP_HEAD, DDP, 1, 0x03},
	[IW_DDP_T_VERSION] = {NOTHING, DDP, 1, 0x04},
	[IW_DDP_U_QN] = {DDP_HEAD, DDP, 2, 0x01},
	[IW_DDP_U_NO_BUFFER] = {DDP_HEAD, DDP, 2, 0x02},
	[IW_DDP_U_MSN] = {DDP_HEAD, DDP, 2, 0x03},
	[IW_DDP_U_MO] = {DDP_HEAD, DDP, 2, 0x04},
	[IW_DDP_U_TOO_LONG] = {DDP_HEAD, DDP, 2, 0x05},
	[IW_DDP_U_VERSION] = {NOTHING, DDP, 2, 0x06},
	[IW_DDP_LOCAL] = {NOTHING, DDP, 0, 0x00},
	[IW_RDMAP_STAG] = {ALL_HEAD, RDMAP, 1, 0x00},
	[IW_RDMAP_BOUNDS] = {ALL_HEAD, RDMAP, 1, 0x01},
	[IW_RDMAP_ACCESS] = {ALL_HEAD, RDMAP, 1, 0x02},
	[IW_RDMAP_STREAM] = {ALL_HEAD, RDMAP, 1, 0x03},
	[IW_RDMAP_WRAP] = {ALL_HEAD, RDMAP, 1, 0x04},
	[IW_RDMAP_CANNOT_INV] = {ALL_HEAD, RDMAP, 1, 0x09},
	[IW_RDMAP_VERSION] = {NOTHING, RDMAP, 2, 0x05},
	[IW_RDMAP_OPCODE] = {DDP_HEAD, RDMAP, 2, 0x06},
	[IW_READ_RESPONSE_BAD] = {DDP_HEAD, RDMAP, 2, 0x06},
	[IW_RDMAP_CATASTROPHIC_STREAM] = {DDP_HEAD, RDMAP, 2, 0x07},
	[IW_RDMAP_UNSPECIFIED] = {NOTHING, RDMAP, 2, 0xff},
	[IW_RDMAP_LOCAL] = {NOTHING, RDMAP, 0, 0x00},
	[IW_IRD_EXCEEDED] = {DDP_HEAD, DDP, 2, 0x02},
	[IW_ATOMIC_UNALIGNED] = {DDP_HEAD, RDMAP, 2, 0x07}, /* RFC 7306 8.2 */
	[IW_ATOMIC_OPERATION] = {DDP_HEAD, RDMAP, 2, 0x06},
	[IW_ATOMIC_CONTENDED] = {DDP_HEAD, RDMAP, 2, 0x07},
	[IW_ATOMIC_RESPONSE_BAD] = {DDP_HEAD, RDMAP, 2, 0x06},
	[IW_EXT_LENGTH] = {DDP_HEAD, RDMAP, 2, 0xff},
};

static void
quote_segment(struct wire_terminate *t, enum quote quote, const uint8_t *seg, uint32_t have,
	uint32_t seg_len)
{
	struct wire_ddp d;
	int hdr_len = wire_ddp_parse(&d, seg, have);

	if (hdr_len < 0)
		return;
	t->m = t->d = true;
	t->ddp_seg_len = (uint16_t)seg_len;
	t->ddp_len = (uint8_t)hdr_len;
	memcpy(t->ddp_header, seg, (size_t)hdr_len);
	if (quote != ALL_HEAD || d.opcode != RDMAP_READ_REQUEST || have < IW_SEG_HEAD)
		return;
	t->r = true;
	memcpy(t->rdmap_header, seg + hdr_len, RDMAP_READ_REQUEST_LEN);
}

static void
terminate_build(
	struct iw_qp *q, enum iw_reason reason, const uint8_t *seg, uint32_t have, uint32_t seg_len)
{
	const struct rule *r = &rules[reason];
	struct wire_terminate t = {.layer = r->layer, .etype = r->etype, .code = r->code};

	if (r->quote == SILENT)
		return;
	if (seg != NULL && r->quote != NOTHING)
		quote_segment(&t, r->quote, seg, have, seg_len);
	q->term_len = (uint8_t)wire_terminate_emit(q->term, &t);
	q->info.term_layer = t.layer;
	q->info.term_etype = t.etype;
	q->info.term_code = t.code;
}

void
iw_fail(struct iw_qp *q, enum iw_reason reason, const uint8_t *seg, uint32_t have, uint32_t seg_len)
{
	if (q->phase >= IW_PHASE_ERROR)
		return;
	iw_count(q, reason);
	/* Sends the record so that its requests complete. If the stage refuses it, the record goes
	 * out before the Terminate. */
	iw_rec_send(q);
	terminate_build(q, reason, seg, have, seg_len);
	q->kick = true;
	iw_enter_error(q, reason);
}

bool
iw_terminate_step(struct iw_qp *q)
{
	struct wire_ddp d = {
		.last = true, .opcode = RDMAP_TERMINATE, .qn = DDP_QN_TERMINATE, .msn = 1};

	if (q->close_called)
		return true;
	if (q->term_len > 0) {
		if (!iw_rec_room(q, DDP_UNTAGGED_LEN + q->term_len))
			return false;
		iw_emit(q, &d, q->term, q->term_len);
		q->term_len = 0;
		iw_count(q, IW_TERMINATE_OUT);
	}
	if (!iw_rec_send(q))
		return false;
	iw_close_once(q, IW_CLOSE_ORDERLY);
	return true;
}

enum { REMOTE_PROTECTION = 1, REMOTE_OPERATION = 2, UNEXPECTED_OPCODE = 6 };

/* Returns the completion status of the request that the peer's Terminate refers to. A peer that
 * reports an unexpected opcode lacks the extensions (RFC 7306 1.1), which verbs call an invalid
 * request. */
static enum rd_status
status_of(const struct wire_terminate *t)
{
	if (t->layer == RDMAP && t->etype == REMOTE_PROTECTION)
		return RD_REM_ACCESS_ERR;
	if (t->layer == RDMAP && t->etype == REMOTE_OPERATION && t->code == UNEXPECTED_OPCODE)
		return RD_REM_INV_REQ_ERR;
	return RD_REM_OP_ERR;
}

enum { ETYPE_MPA = 0, INSUFFICIENT_IRD = 6 };

/* Corrects a Terminate of Linux's siw on a little-endian host, which exchanges the layer and the
 * error type: its "unexpected opcode" reads as "insufficient IRD". A genuine "insufficient IRD" is
 * sent by an initiator in place of its first message (RFC 6581 9.1), before this side can have an
 * outstanding Read. */
static void
siw_mend(const struct iw_qp *q, struct wire_terminate *t)
{
	if (q->reads_out == 0 || t->layer != LLP || t->etype != ETYPE_MPA ||
		t->code != INSUFFICIENT_IRD)
		return;
	t->layer = RDMAP;
	t->etype = REMOTE_OPERATION;
}

/* Assigns the fault to the Read or Atomic that the peer's Terminate refers to, if any: only that
 * request completes with an error of its own. Some peers quote nothing when they do not support an
 * opcode; Atomics are the requests that a peer may not support. */
static void
blame(struct iw_qp *q, const struct wire_terminate *t)
{
	enum rd_status status = status_of(t);
	struct wire_ddp d;

	if (!t->d) {
		if (status == RD_REM_INV_REQ_ERR)
			iw_sq_atomic_refused(q, status);
		return;
	}
	if (wire_ddp_parse(&d, t->ddp_header, t->ddp_len) < 0 || d.tagged || d.qn != DDP_QN_READ)
		return;
	if (d.opcode == RDMAP_READ_REQUEST || d.opcode == RDMAP_ATOMIC_REQUEST)
		iw_sq_read_refused(q, d.msn, status);
}

int
iw_rx_terminate(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head)
{
	uint8_t body[RDMAP_TERMINATE_MAX];
	uint32_t n = SK_MIN(f->ulpdu_len - DDP_UNTAGGED_LEN, (uint32_t)sizeof(body));
	struct wire_terminate t;

	if (d->msn != 1)
		return IW_DDP_U_MSN;
	if (d->mo != 0)
		return IW_DDP_U_MO;
	mpa_fpdu_copy(f, DDP_UNTAGGED_LEN, body, n);
	q->info.terminate_received = true;
	if (wire_terminate_parse(&t, body, n) >= 0) {
		siw_mend(q, &t);
		q->info.term_layer = t.layer;
		q->info.term_etype = t.etype;
		q->info.term_code = t.code;
		blame(q, &t);
	}
	iw_fail(q, IW_TERMINATE_IN, NULL, 0, 0);
	return IW_NONE;
}
