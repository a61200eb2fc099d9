/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transmit loop: chooses the next message and writes FPDUs into records. A message is never
 * interrupted by another (RFC 5041 5.3); between messages, Read Responses and the send queue
 * alternate. Small FPDUs share a record of one EMSS. A long message that begins behind small FPDUs
 * first fills their record up, so that its own records are full.
 */
#include "iw_priv.h"

#include "../base/mem.h"

/* The bytes of an FPDU beside the ULPDU when there are no markers: length field and CRC. Together
 * with the ULPDU they are padded to a multiple of 4. */
#define FPDU_OVERHEAD (MPA_LEN_FIELD + MPA_CRC_LEN)

bool
iw_rec_send(struct iw_qp *q)
{
	struct iw_stage *st = q->st;

	if (q->rec == NULL)
		return true;
	if (q->rec->len == 0)
		st->ops.rec_put(st->ctx, q->rec);
	else if (!st->ops.send(st->ctx, q, q->rec))
		return false;
	q->rec = NULL;
	iw_sq_sent(q);
	return true;
}

bool
iw_rec_room(struct iw_qp *q, uint32_t ulpdu_len)
{
	uint32_t need = mpa_fpdu_len(&q->mtx, q->mtx.pos, ulpdu_len);

	if (q->rec != NULL) {
		if (q->rec->len + need <= q->rec_cap)
			return true;
		if (!iw_rec_send(q))
			return false;
	}
	q->rec = q->st->ops.rec_get(q->st->ctx, q->mtx.emss);
	q->rec_cap = q->mtx.emss;
	return q->rec != NULL;
}

uint32_t
iw_seg_len(const struct iw_qp *q, uint32_t hdr_len, uint64_t left)
{
	uint32_t most = q->mulpdu - hdr_len, room, fits;

	if (left <= most)
		return (uint32_t)left;
	if (q->rec == NULL || q->mtx.markers)
		return most;
	room = q->rec_cap - q->rec->len;
	if (room < q->rec_cap / 4 || room < FPDU_OVERHEAD + hdr_len)
		return most;
	fits = (room & ~3u) - FPDU_OVERHEAD - hdr_len;
	return SK_MIN(fits, most);
}

void
iw_emit_begin(struct iw_qp *q, struct mpa_writer *w, const struct wire_ddp *d, uint32_t n)
{
	uint8_t hdr[DDP_MAX];
	unsigned hdr_len = wire_ddp_emit(hdr, d);

	mpa_write_begin(w, &q->mtx, q->rec->data + q->rec->len, hdr_len + n);
	mpa_write_put(w, hdr, hdr_len);
}

void
iw_emit_end(struct iw_qp *q, struct mpa_writer *w)
{
	uint32_t len = mpa_write_end(w);

	iw_rec_add(q, len, q->mtx.crc ? w->check.sum : 0);
}

void
iw_emit(struct iw_qp *q, const struct wire_ddp *d, const void *body, uint32_t n)
{
	struct mpa_writer w;

	iw_emit_begin(q, &w, d, n);
	if (n > 0)
		mpa_write_put(&w, body, n);
	iw_emit_end(q, &w);
}

static enum iw_step
next_step(struct iw_qp *q)
{
	bool irq = q->irq.head != q->irq.tail;
	enum iw_step s;

	if (q->rtr != MPA_RTR_NONE)
		return iw_rtr_step(q);
	if (irq && (q->midst == IW_MIDST_IRQ || (q->midst == IW_MIDST_NONE && q->irq_turn)))
		return iw_irq_step(q);
	s = iw_sq_step(q);
	if (irq && (s == IW_STEP_NONE || s == IW_STEP_WAIT))
		return iw_irq_step(q);
	return s;
}

static enum iw_tx_result
iw_tx_work(struct iw_qp *q, unsigned budget)
{
	for (unsigned n; budget > 0; budget -= n) {
		enum iw_step s;

		if (q->space <= 0) {
			q->want_space = true;
			return IW_TX_BLOCKED;
		}
		s = iw_tx_run(q, budget, &n);
		if (s == IW_STEP_WAIT) {
			n = 1;
			s = next_step(q);
		}
		switch (s) {
		case IW_STEP_DID:
			break;
		case IW_STEP_NONE:
			return IW_TX_IDLE;
		case IW_STEP_WAIT:
			return IW_TX_BLOCKED;
		case IW_STEP_NOBUF:
			return IW_TX_NOBUF;
		case IW_STEP_PAGES:
			q->tx_pages = true;
			return IW_TX_BLOCKED;
		case IW_STEP_DEAD:
			return IW_TX_MORE;
		}
	}
	return IW_TX_MORE;
}

enum iw_tx_result
iw_tx(struct iw_qp *q, uint64_t now, unsigned budget)
{
	enum iw_tx_result r;

	if (!iw_rec_send(q))
		return IW_TX_NOBUF;
	if (q->phase == IW_PHASE_ERROR)
		return iw_terminate_step(q) ? IW_TX_IDLE : IW_TX_NOBUF;
	if ((q->phase != IW_PHASE_OPEN && q->phase != IW_PHASE_DRAIN) || q->close_called)
		return IW_TX_IDLE;
	if (q->peer_fin && q->midst == IW_MIDST_NONE) {
		iw_close_once(q, IW_CLOSE_ORDERLY);
		return IW_TX_IDLE;
	}
	if (q->tx_pages)
		return IW_TX_BLOCKED;
	r = iw_tx_work(q, budget);
	if (q->tx_op != NULL)
		q->tx_op->checked = false;
	if (!iw_rec_send(q))
		return IW_TX_NOBUF;
	if (q->phase == IW_PHASE_DRAIN && r == IW_TX_IDLE)
		iw_close_once(q, IW_CLOSE_ORDERLY);
	if (q->phase == IW_PHASE_ERROR)
		return iw_terminate_step(q) ? IW_TX_IDLE : IW_TX_NOBUF;
	return r;
}
