/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incoming FPDUs. This file checks what all segments have in common (DDP version, queue number,
 * RDMAP version, opcode) in the order of the layers, so that the Terminate names the lowest layer
 * that detects an error. The opcode's handler does the rest.
 */
#include "iw_priv.h"

#include "../base/mem.h"

typedef int iw_rx_fn(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);

/* The DDP model and the queue that each opcode uses (RFC 5040 4.2). An opcode without a handler is
 * unexpected. */
static const struct {
	iw_rx_fn *rx;
	bool tagged;
	uint8_t qn;
} handlers[16] = {
	[RDMAP_WRITE] = {iw_rx_write, true, 0},
	[RDMAP_READ_REQUEST] = {iw_rx_read_request, false, DDP_QN_READ},
	[RDMAP_READ_RESPONSE] = {iw_rx_read_response, true, 0},
	[RDMAP_SEND] = {iw_rx_send, false, DDP_QN_SEND},
	[RDMAP_SEND_INV] = {iw_rx_send, false, DDP_QN_SEND},
	[RDMAP_SEND_SE] = {iw_rx_send, false, DDP_QN_SEND},
	[RDMAP_SEND_SE_INV] = {iw_rx_send, false, DDP_QN_SEND},
	[RDMAP_TERMINATE] = {iw_rx_terminate, false, DDP_QN_TERMINATE},
	/* RFC 7306 4.1 */
	[RDMAP_IMMEDIATE] = {iw_rx_immediate, false, DDP_QN_SEND},
	[RDMAP_IMMEDIATE_SE] = {iw_rx_immediate, false, DDP_QN_SEND},
	[RDMAP_ATOMIC_REQUEST] = {iw_rx_atomic_request, false, DDP_QN_READ},
	[RDMAP_ATOMIC_RESPONSE] = {iw_rx_atomic_response, false, DDP_QN_ATOMIC},
};

void
iw_place(
	const struct mpa_fpdu *f, uint32_t off, const struct rd_mr *mr, uint64_t addr, uint32_t len)
{
	uint8_t tail[8];
	uint32_t last = SK_MIN(len, (uint32_t)sizeof(tail));

	if (f->flat != NULL) {
		rd_mr_write(mr, addr, f->flat + off, len);
		return;
	}
	for (uint32_t left = len - last; left > 0;) {
		uint64_t run;
		uint8_t *dst = rd_mr_at(mr, addr, &run);
		uint32_t n = run < left ? (uint32_t)run : left;

		mpa_fpdu_copy(f, off, dst, n);
		addr += n;
		off += n;
		left -= n;
	}
	mpa_fpdu_copy(f, off, tail, last);
	rd_mr_write(mr, addr, tail, last);
}

static int
iw_rx_segment(struct iw_qp *q, const struct mpa_fpdu *f, const uint8_t *head, uint32_t have)
{
	struct wire_ddp d;

	if (wire_ddp_parse(&d, head, have) < 0)
		return IW_RDMAP_UNSPECIFIED;
	if (d.dv != 1)
		return d.tagged ? IW_DDP_T_VERSION : IW_DDP_U_VERSION;
	if (d.qn > DDP_QN_ATOMIC)
		return IW_DDP_U_QN;
	if (d.rv != 1)
		return IW_RDMAP_VERSION;
	if (handlers[d.opcode].rx == NULL || handlers[d.opcode].tagged != d.tagged ||
		handlers[d.opcode].qn != d.qn)
		return IW_RDMAP_OPCODE;
	return handlers[d.opcode].rx(q, f, &d, head);
}

/* Processes an FPDU. Returns false if it has to wait for missing pages. */
static bool
fpdu(struct iw_qp *q, const struct mpa_fpdu *f)
{
	uint32_t have = SK_MIN(f->ulpdu_len, (uint32_t)IW_SEG_HEAD);
	uint8_t buf[IW_SEG_HEAD];
	const uint8_t *head = f->flat;
	int reason;

	if (head == NULL) {
		mpa_fpdu_copy(f, 0, buf, have);
		head = buf;
	}
	reason = iw_rx_segment(q, f, head, have);
	if (reason == IW_RX_LATER)
		return false;
	if (reason)
		iw_fail(q, reason, head, have, f->ulpdu_len);
	else if (q->hold) {
		q->hold = false;
		q->kick = true;
	}
	q->swallow_rtr = false;
	return true;
}

/* Fails the QP because the stream itself is broken. */
static void
stream_fail(struct iw_qp *q, enum mpa_reason why)
{
	sk_count(q->st->mpa_counters, why);
	switch (why) {
	case MPA_CRC:
		iw_fail(q, IW_LLP_CRC, NULL, 0, 0);
		break;
	case MPA_MARKER:
		iw_fail(q, IW_LLP_MARKER, NULL, 0, 0);
		break;
	case MPA_NO_MEMORY:
	case MPA_UNFINISHED:
		iw_fail(q, IW_RDMAP_CATASTROPHIC_STREAM, NULL, 0, 0);
		break;
	default:
		iw_fail(q, IW_RDMAP_UNSPECIFIED, NULL, 0, 0);
		break;
	}
}

int
iw_rx_response_refuse(struct iw_qp *q, enum rd_status status, int reason)
{
	iw_sq_read_refused(q, q->read_msn - q->reads_out, status);
	return reason;
}

/* Discards bytes that arrive after the end of placement, so that the stream can reach its end. If
 * the stream may be left to TCP, they do not count as consumed: they are lost, so that TCP has to
 * reset the connection. */
static void
iw_rx_discard(struct iw_qp *q, struct tcp_slice *chain)
{
	uint32_t bytes = 0;

	for (const struct tcp_slice *s = chain; s != NULL; s = s->next)
		bytes += s->len;
	iw_count(q, IW_AFTER_TERMINATE);
	q->st->ops.slice_free(q->st->ctx, chain);
	if (!q->may_leave)
		q->st->ops.consumed(q->st->ctx, q, bytes);
}

/* Frees the bytes that the QP holds after a failure. Returns their number. */
static uint32_t
iw_rx_clear(struct iw_qp *q)
{
	uint32_t bytes = q->mrx.have;

	mpa_rx_clear(&q->mrx);
	return bytes;
}

/* Keeps the bytes of an unfinished FPDU. When there is no room for them, ends the streams that hold
 * the most, one after the other. */
static void
iw_rx_keep(struct iw_qp *q, bool progress)
{
	while (!mpa_rx_keep(&q->mrx, progress)) {
		struct iw_qp *v = SK_CONTAINER(mpa_store_victim(&q->mrx), struct iw_qp, mrx);

		stream_fail(v, MPA_UNFINISHED);
		if (v == q)
			return;
		v->st->ops.consumed(v->st->ctx, v, iw_rx_clear(v));
		v->st->ops.wake(v->st->ctx, v);
	}
}

/* Handles the bytes that the QP holds after `consumed` bytes were processed. */
static void
iw_rx_rest(struct iw_qp *q, uint32_t consumed)
{
	if (q->phase != IW_PHASE_ERROR && mpa_rx_holds(&q->mrx))
		iw_rx_keep(q, consumed > 0);
	if (q->phase == IW_PHASE_ERROR)
		consumed += iw_rx_clear(q);
	if (consumed > 0)
		q->st->ops.consumed(q->st->ctx, q, consumed);
}

/* Processes the FPDUs that are complete, up to the first one that has to wait. */
static void
fpdus(struct iw_qp *q)
{
	uint32_t bytes = iw_rx_run(q);
	struct mpa_fpdu f;
	int r = 0;

	while (q->mrx.head != NULL && (r = mpa_rx_next(&q->mrx, &f)) > 0) {
		if (!fpdu(q, &f)) {
			q->rx_pages = true;
			break;
		}
		bytes += mpa_rx_done(&q->mrx, &f);
		if (q->phase == IW_PHASE_ERROR)
			break;
		bytes += iw_rx_run(q);
	}
	if (r < 0)
		stream_fail(q, (enum mpa_reason) - r);
	iw_rx_rest(q, bytes);
}

bool
iw_rx(struct iw_qp *q, uint64_t now, struct tcp_slice *chain)
{
	if (q->phase != IW_PHASE_OPEN && q->phase != IW_PHASE_DRAIN) {
		iw_rx_discard(q, chain);
		return false;
	}
	q->kick = false;
	mpa_rx_add(&q->mrx, chain);
	if (q->rx_pages)
		iw_rx_rest(q, 0);
	else
		fpdus(q);
	return q->kick;
}

uint32_t
iw_requests(const struct iw_qp *q)
{
	return q->irq.tail;
}

bool
iw_rx_whole(const struct iw_qp *q)
{
	return q->mrx.whole;
}

/* Discards the bytes that waited for pages when placement has ended meanwhile. */
static void
held_discard(struct iw_qp *q)
{
	uint32_t bytes = q->mrx.have;

	if (bytes == 0)
		return;
	mpa_rx_clear(&q->mrx);
	iw_count(q, IW_AFTER_TERMINATE);
	q->st->ops.consumed(q->st->ctx, q, bytes);
}

bool
iw_pages(struct iw_qp *q, uint64_t now)
{
	bool waited = q->rx_pages;

	q->kick = q->tx_pages;
	q->tx_pages = q->rx_pages = false;
	if (waited && (q->phase == IW_PHASE_OPEN || q->phase == IW_PHASE_DRAIN))
		fpdus(q);
	else if (waited && q->phase == IW_PHASE_ERROR)
		held_discard(q);
	if (q->fin_waits && !q->rx_pages) {
		q->fin_waits = false;
		iw_peer_fin(q, now);
		q->kick = true;
	}
	return q->kick || q->phase == IW_PHASE_ERROR;
}
