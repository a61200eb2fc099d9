/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incoming Atomic Requests and Responses (RFC 7306 5). A request is checked when it arrives. It is
 * executed when it is answered, after all Reads and Atomics before it (RFC 7306 5.4, 7), so that it
 * does not touch memory until the answer to the request before it has been generated.
 */
#include "iw_priv.h"

#include "../rdma/atomic.h"

static bool
known(const struct iw_qp *q, uint8_t op)
{
	return op == RDMAP_FETCH_ADD || op == RDMAP_CMP_SWAP || (op == RDMAP_SWAP && q->draft_ext);
}

static int
iw_rx_atomic_target_check(const struct iw_qp *q, const struct wire_atomic_request *ar)
{
	uint64_t at = ar->to;
	enum rd_fault fault;
	struct rd_mr *mr;

	if (!known(q, ar->op))
		return IW_ATOMIC_OPERATION;
	fault = rd_remote_check(q->st->ops.rd.mrs, q->rd, ar->stag, &at, sizeof(uint64_t),
		RD_ACC_REMOTE_ATOMIC, &mr);
	if (fault != RD_OK)
		return iw_rdmap_reason(fault);
	return rd_atomic_word(mr, at) != NULL ? IW_NONE : IW_ATOMIC_UNALIGNED;
}

int
iw_rx_atomic_request(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head)
{
	int reason = iw_rx_queue1(q, f, d, RDMAP_ATOMIC_REQUEST_LEN, IW_EXT_LENGTH);
	uint8_t body[RDMAP_ATOMIC_REQUEST_LEN];
	struct wire_atomic_request ar;
	struct iw_irqe *e;

	if (reason)
		return reason;
	mpa_fpdu_copy(f, DDP_UNTAGGED_LEN, body, sizeof(body));
	wire_atomic_request_parse(&ar, body, sizeof(body));
	reason = iw_irq_reserve(q, &e);
	if (reason)
		return reason;
	reason = iw_rx_atomic_target_check(q, &ar);
	if (reason)
		return reason;
	*e = (struct iw_irqe){
		.atomic = true,
		.op = ar.op,
		.src_stag = ar.stag,
		.src_to = ar.to,
		.request_id = ar.request_id,
		.data = ar.data,
		.data_mask = ar.data_mask,
		.compare = ar.compare,
		.compare_mask = ar.compare_mask,
	};
	iw_irq_push(q);
	return IW_NONE;
}

/* Checks the order and length of an Atomic Response. Queue number 3 has one buffer for each
 * outstanding Atomic (RFC 7306 5.2.2). */
static int
response_order(const struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d)
{
	uint32_t n = f->ulpdu_len - DDP_UNTAGGED_LEN;

	if (q->atomic_due == q->atomic_next)
		return IW_DDP_U_NO_BUFFER;
	if (d->msn != q->atomic_due)
		return IW_DDP_U_MSN;
	if (d->mo != 0)
		return IW_DDP_U_MO;
	if (n > RDMAP_ATOMIC_RESPONSE_LEN || !d->last)
		return IW_DDP_U_TOO_LONG;
	return n < RDMAP_ATOMIC_RESPONSE_LEN ? IW_EXT_LENGTH : IW_NONE;
}

/* Stores the original value in host byte order, like any other word in a program's memory. */
int
iw_rx_atomic_response(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head)
{
	int reason = response_order(q, f, d);
	struct iw_sqe *e = iw_sq_read(q);
	struct wire_atomic_response r;
	enum rd_fault fault;
	struct rd_mr *mr;

	if (reason)
		return reason;
	wire_atomic_response_parse(&r, head + DDP_UNTAGGED_LEN, RDMAP_ATOMIC_RESPONSE_LEN);
	if (e == NULL || !(e->flags & IW_SQE_ATOMIC) || r.request_id != q->atomic_due)
		return iw_rx_response_refuse(q, RD_BAD_RESP_ERR, IW_ATOMIC_RESPONSE_BAD);
	fault = rd_mr_check(q->st->ops.rd.mrs, q->rd->pd, q->rd->qpn, e->stag, e->to,
		sizeof(r.original), RD_ACC_LOCAL_WRITE, &mr);
	if (fault != RD_OK)
		return iw_rx_response_refuse(q, RD_LOC_PROT_ERR, IW_DDP_LOCAL);
	if (!iw_ready(q, mr, e->to, sizeof(r.original), sizeof(r.original)))
		return IW_RX_LATER;
	rd_mr_write(mr, e->to, &r.original, sizeof(r.original));
	q->atomic_due++;
	q->info.bytes_in += sizeof(r.original);
	q->info.msgs_in++;
	iw_sq_read_done(q);
	return IW_NONE;
}
