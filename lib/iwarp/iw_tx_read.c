/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outgoing Read Requests, and Read Responses to the peer's Read Requests. The source of a Read
 * Response is checked again for each segment, since it may be invalidated while the peer waits.
 */
#include "iw_priv.h"

#include "../base/mem.h"

#define SINK_PROBE                                                                                 \
	65536u /* bytes of a Read's sink whose pages are probed before the Read is sent */

bool
iw_request_may(struct iw_qp *q)
{
	if (q->reads_out < q->ord && iw_sq_reserve(q))
		return true;
	q->want_reads = true;
	return false;
}

void
iw_request_emit(struct iw_qp *q, uint8_t opcode, const uint8_t *body, uint32_t n)
{
	struct wire_ddp d = {
		.last = true,
		.opcode = opcode,
		.qn = DDP_QN_READ,
		.msn = q->read_msn++,
	};

	iw_emit(q, &d, body, n);
	q->reads_out++;
}

static void
read_emit(struct iw_qp *q, const struct wire_read_request *rr)
{
	uint8_t body[RDMAP_READ_REQUEST_LEN];

	iw_request_emit(q, RDMAP_READ_REQUEST, body, wire_read_request_emit(body, rr));
}

static void
iw_tx_read_request_track(
	struct iw_qp *q, const struct iw_op *op, const struct wire_read_request *rr, bool last)
{
	struct iw_sqe *e = iw_sq_push(q);

	e->wr_id = op->wr.wr_id;
	e->to = rr->sink_to;
	e->stag = rr->sink_stag;
	e->left = rr->len;
	e->total = (uint32_t)op->total;
	e->opcode = op->wr.opcode;
	e->flags = IW_SQE_READ;
	if (last)
		e->flags |= IW_SQE_LAST;
	if (last && rd_sample_due(&q->sample))
		iw_sq_sample(q, e, op->taken);
	if (iw_signaled(q, &op->wr))
		e->flags |= IW_SQE_SIGNALED;
	/* The elements before it are in the same region. */
	if (op->wr.opcode == RD_READ_INV && last && rr->len > 0)
		e->flags |= IW_SQE_INV;
}

/* Returns the element that the next Read Request fills. Elements without bytes need no Read
 * Request, unless no other element remains. */
static const struct rd_sge *
iw_tx_read_sink_next(struct iw_op *op)
{
	static const struct rd_sge none;

	while (op->sge + 1 < op->wr.nsge && op->wr.sge[op->sge].len == 0)
		op->sge++;
	return op->wr.nsge ? &op->wr.sge[op->sge] : &none;
}

/* Returns whether the sink of a Read is present, as far as SINK_PROBE bytes. Its pages are fetched
 * before the Read Request is sent, because its length is known here. */
static bool
sink_ready(struct iw_qp *q, const struct iw_op *op, const struct rd_sge *sge)
{
	return sge->len == 0 ||
	       iw_ready(q, op->mrs[op->sge], sge->addr, SK_MIN(sge->len, SINK_PROBE), sge->len);
}

/* Builds one Read Request for each element, because an RFC 5040 Read Request has a single sink. */
enum iw_step
iw_read_step(struct iw_qp *q, struct iw_op *op)
{
	const struct rd_sge *sge = iw_tx_read_sink_next(op);
	struct wire_read_request rr = {
		.sink_stag = sge->lkey,
		.sink_to = sge->addr,
		.len = sge->len,
		.src_stag = op->wr.rkey,
		.src_to = op->wr.remote_addr + op->done,
	};
	bool last = op->done + sge->len == op->total;

	if (!iw_request_may(q))
		return IW_STEP_WAIT;
	if (!sink_ready(q, op, sge))
		return IW_STEP_PAGES;
	if (!iw_rec_room(q, DDP_UNTAGGED_LEN + RDMAP_READ_REQUEST_LEN))
		return IW_STEP_NOBUF;
	read_emit(q, &rr);
	iw_tx_read_request_track(q, op, &rr, last);
	op->done += sge->len;
	op->sge++;
	if (!last)
		return IW_STEP_DID;
	q->irq_turn = true;
	q->info.msgs_out++;
	q->tx_op = NULL;
	iw_op_release(q->st, op);
	return IW_STEP_DID;
}

enum iw_step
iw_rtr_step(struct iw_qp *q)
{
	struct wire_ddp d = {.last = true, .tagged = true, .opcode = RDMAP_WRITE};
	struct wire_read_request rr = {0};
	struct iw_sqe *e;

	if (q->rtr == MPA_RTR_READ && !iw_sq_reserve(q))
		return IW_STEP_NOBUF;
	if (!iw_rec_room(q, DDP_UNTAGGED_LEN + RDMAP_READ_REQUEST_LEN))
		return IW_STEP_NOBUF;
	if (q->rtr == MPA_RTR_READ) {
		read_emit(q, &rr);
		e = iw_sq_push(q);
		*e = (struct iw_sqe){.flags = IW_SQE_READ};
	} else if (q->rtr == MPA_RTR_SEND) {
		d = (struct wire_ddp){.last = true, .opcode = RDMAP_SEND, .msn = q->send_msn++};
		iw_emit(q, &d, NULL, 0);
	} else {
		iw_emit(q, &d, NULL, 0);
	}
	q->rtr = MPA_RTR_NONE;
	return IW_STEP_DID;
}

enum iw_step
iw_irq_fail(struct iw_qp *q, const struct iw_irqe *e, enum iw_reason reason)
{
	struct wire_ddp d = {
		.last = true,
		.opcode = e->atomic ? RDMAP_ATOMIC_REQUEST : RDMAP_READ_REQUEST,
		.qn = DDP_QN_READ,
		.msn = q->irq_msn - (q->irq.tail - q->irq.head),
	};
	struct wire_read_request rr = {
		.sink_stag = e->sink_stag,
		.sink_to = e->sink_to,
		.len = e->len,
		.src_stag = e->src_stag,
		.src_to = e->src_to,
	};
	uint8_t seg[IW_SEG_HEAD];
	unsigned n = wire_ddp_emit(seg, &d), len = n + RDMAP_ATOMIC_REQUEST_LEN;

	/* Only the DDP header of an Atomic Request is ever quoted (RFC 7306 8.1). */
	if (!e->atomic)
		len = n += wire_read_request_emit(seg + n, &rr);
	iw_fail(q, reason, seg, n, len);
	return IW_STEP_DEAD;
}

static void
source_copy(struct mpa_writer *w, const struct rd_mr *mr, uint64_t addr, uint32_t n)
{
	while (n > 0) {
		uint64_t run;
		const uint8_t *p = rd_mr_at(mr, addr, &run);
		uint32_t part = run < n ? (uint32_t)run : n;

		mpa_write_put(w, p, part);
		addr += part;
		n -= part;
	}
}

/* Builds the next segment of the oldest Read Response. */
static enum iw_step
read_answer(struct iw_qp *q, struct iw_irqe *e)
{
	uint32_t n = iw_seg_len(q, DDP_TAGGED_LEN, e->len - e->done);
	struct wire_ddp d = {
		.tagged = true,
		.last = e->done + n == e->len,
		.opcode = RDMAP_READ_RESPONSE,
		.stag = e->sink_stag,
		.to = e->sink_to + e->done,
	};
	uint64_t at = e->src_to + e->done;
	struct mpa_writer w;
	struct rd_mr *mr;

	if (rd_remote_check(q->st->ops.rd.mrs, q->rd, e->src_stag, &at, n, RD_ACC_REMOTE_READ,
		    &mr) != RD_OK)
		return iw_irq_fail(q, e, IW_RDMAP_STAG);
	if (n > 0 && !iw_ready(q, mr, at, n, e->len - e->done))
		return IW_STEP_PAGES;
	if (!iw_rec_room(q, DDP_TAGGED_LEN + n))
		return IW_STEP_NOBUF;
	iw_emit_begin(q, &w, &d, n);
	if (n > 0)
		source_copy(&w, mr, at, n);
	iw_emit_end(q, &w);
	e->done += n;
	q->info.bytes_out += n;
	q->midst = IW_MIDST_IRQ;
	if (!d.last)
		return IW_STEP_DID;
	q->midst = IW_MIDST_NONE;
	q->irq_turn = false;
	q->irq.head++;
	q->info.msgs_out++;
	return IW_STEP_DID;
}

enum iw_step
iw_irq_step(struct iw_qp *q)
{
	struct iw_irqe *e = &q->irq.e[q->irq.head & (q->irq.cap - 1)];

	return e->atomic ? iw_atomic_answer(q, e) : read_answer(q, e);
}
