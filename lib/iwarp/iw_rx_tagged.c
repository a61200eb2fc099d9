/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tagged segments: Write and Read Response. Each segment is checked as a whole before any byte of
 * it is placed. A Read Response must also carry exactly the bytes that the oldest outstanding Read
 * expects next, so that a peer cannot use it to write elsewhere.
 */
#include "iw_priv.h"

static const uint8_t tagged_reason[] = {
	[RD_FAULT_STAG] = IW_DDP_T_STAG,
	[RD_FAULT_PD] = IW_DDP_T_STREAM,
	[RD_FAULT_ACCESS] = IW_RDMAP_ACCESS,
	[RD_FAULT_BOUNDS] = IW_DDP_T_BOUNDS,
	[RD_FAULT_WRAP] = IW_DDP_T_WRAP,
};

int
iw_rx_write(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head)
{
	uint32_t n = f->ulpdu_len - DDP_TAGGED_LEN;
	uint64_t at = d->to;
	enum rd_fault fault;
	struct rd_mr *mr;

	if (n > 0) {
		fault = rd_remote_check(
			q->st->ops.rd.mrs, q->rd, d->stag, &at, n, RD_ACC_REMOTE_WRITE, &mr);
		if (fault != RD_OK)
			return tagged_reason[fault];
		/* The bytes that have arrived behind the segment probably belong to the same
		 * Write. */
		if (!iw_place_ready(q, f, DDP_TAGGED_LEN, mr, at, n, q->mrx.have))
			return IW_RX_LATER;
		q->info.bytes_in += n;
	}
	q->write_len = q->write_open ? q->write_len + n : n;
	q->write_open = !d->last;
	if (d->last)
		q->info.msgs_in++;
	return IW_NONE;
}

/* Checks a segment against the oldest outstanding Read. */
static int
response_check(const struct iw_sqe *e, const struct wire_ddp *d, uint32_t n)
{
	/* Nothing is placed, so the STag and TO are not checked (RFC 5041 5.1). */
	if (n == 0 && e->left == 0 && d->last)
		return IW_NONE;
	if (d->stag != e->stag)
		return IW_DDP_T_STAG;
	if (d->to != e->to || n > e->left || (d->last && n != e->left))
		return IW_DDP_T_BOUNDS;
	return IW_NONE;
}

int
iw_rx_read_response(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head)
{
	uint32_t n = f->ulpdu_len - DDP_TAGGED_LEN;
	struct iw_sqe *e = iw_sq_read(q);
	enum rd_fault fault;
	struct rd_mr *mr;
	int reason;

	if (e == NULL || (e->flags & IW_SQE_ATOMIC))
		return IW_READ_RESPONSE_BAD;
	reason = response_check(e, d, n);
	if (reason) {
		iw_count(q, IW_READ_RESPONSE_BAD);
		return iw_rx_response_refuse(q, RD_BAD_RESP_ERR, reason);
	}
	if (n > 0) {
		fault = rd_mr_check(q->st->ops.rd.mrs, q->rd->pd, q->rd->qpn, e->stag, e->to, n,
			RD_ACC_LOCAL_WRITE, &mr);
		if (fault != RD_OK)
			return iw_rx_response_refuse(q, RD_LOC_PROT_ERR, tagged_reason[fault]);
		if (!iw_place_ready(q, f, DDP_TAGGED_LEN, mr, e->to, n, e->left))
			return IW_RX_LATER;
		e->to += n;
		e->left -= n;
		q->info.bytes_in += n;
	}
	if (d->last) {
		q->info.msgs_in++;
		if (!iw_sq_read_done(q))
			return iw_rx_response_refuse(q, RD_LOC_PROT_ERR, IW_DDP_LOCAL);
	}
	return IW_NONE;
}
