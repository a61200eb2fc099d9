/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between packets and regions. A packet's payload is `len` bytes, of which `data_len` are
 * present; in a simulator the others are only a length, and are neither read nor written.
 */
#include "rof_priv.h"

#include <string.h>

#include "../base/check.h"

void
rof_place(const struct rof_in *in, uint32_t off, const struct rd_mr *mr, uint64_t addr, uint32_t n)
{
	uint32_t from = in->head + off;

	if (n > 0 && from <= in->buf->data_len && n <= in->buf->data_len - from)
		rd_mr_write(mr, addr, in->buf->data + from, n);
}

/* Returns the element that contains byte `at`, and the byte's offset in it. */
static uint32_t
seek(const struct rd_wr *wr, uint64_t at, uint32_t *off)
{
	uint32_t i = 0;

	while (i < wr->nsge && at >= wr->sge[i].len)
		at -= wr->sge[i++].len;
	*off = (uint32_t)at;
	return i;
}

/* Checks the elements that `left` bytes from offset `off` of element `first` on fill, and sets
 * mrs[]. Returns ROF_NONE, ROF_RECEIVE_FAULT or ROF_NO_PAGE. */
static enum rof_reason
scatter_check(struct rof_qp *q, const struct rof_recv *r, uint32_t first, uint32_t off,
	uint32_t left, struct rd_mr *mrs[RD_MAX_SGE])
{
	enum rof_reason reason = ROF_NONE;

	for (uint32_t i = first; left > 0; i++, off = 0) {
		const struct rd_sge *sge = &r->wr.sge[i];
		uint32_t part = SK_MIN(left, sge->len - off);

		if (rd_mr_check(q->st->ops.rd.mrs, q->rd->pd, q->rd->qpn, sge->lkey,
			    sge->addr + off, part, RD_ACC_LOCAL_WRITE, &mrs[i]) != RD_OK)
			return ROF_RECEIVE_FAULT;
		if (reason == ROF_NONE && !rof_ready(q, mrs[i], sge->addr + off, part, part))
			reason = ROF_NO_PAGE;
		left -= part;
	}
	return reason;
}

enum rof_reason
rof_scatter(struct rof_qp *q, struct rof_recv *r, uint64_t at, const struct rof_in *in)
{
	struct rd_mr *mrs[RD_MAX_SGE];
	uint32_t left = in->len, off;
	uint32_t first = seek(&r->wr, at, &off);
	enum rof_reason reason;

	if (!rof_xrc_use(q, r->srqn))
		return ROF_RECEIVE_FAULT;
	reason = scatter_check(q, r, first, off, left, mrs);
	if (reason != ROF_NONE)
		return reason;
	for (uint32_t i = first; left > 0; i++, off = 0) {
		const struct rd_sge *sge = &r->wr.sge[i];
		uint32_t part = SK_MIN(left, sge->len - off);

		if (part > 0)
			rof_place(in, in->len - left, mrs[i], sge->addr + off, part);
		left -= part;
	}
	return ROF_NONE;
}

/* Adds the sum of `n` bytes that were copied behind the others. A sum that is not 0 stays so. */
static inline void
place_sum(struct fa_buf *b, uint64_t sum)
{
	b->sum = sk_sum_fold(sk_sum_add(b->sum, b->data_len & 1 ? sk_sum_odd(sum) : sum));
}

void
rof_append(const struct rof_stage *st, struct fa_buf *b, const void *src, uint32_t n)
{
	if (!st->lengths_only) {
		if (b->sum != 0)
			place_sum(b, sk_sum_copy(0, b->data + b->data_len, src, n));
		else
			memcpy(b->data + b->data_len, src, n);
		b->data_len += n;
	}
	b->len += n;
}

void
rof_gather(const struct rof_stage *st, struct fa_buf *b, const struct rd_mr *mr, uint64_t addr,
	uint32_t n)
{
	if (!st->lengths_only) {
		if (b->sum != 0)
			place_sum(b, rd_mr_read_sum(mr, addr, b->data + b->data_len, n));
		else
			rd_mr_read(mr, addr, b->data + b->data_len, n);
		b->data_len += n;
	}
	b->len += n;
}

void
rof_pad(const struct rof_stage *st, struct fa_buf *b, uint8_t pad)
{
	static const uint8_t zero[4];

	rof_append(st, b, zero, pad);
}

struct fa_buf *
rof_buf(struct rof_stage *st, const struct wire_rof *h, uint32_t n)
{
	struct fa_buf *b = st->ops.buf_get(st->ctx, ROF_MAX + n + h->pad);

	if (b == NULL)
		return NULL;
	b->data_len = b->len = wire_rof_emit(b->data, h);
	return b;
}

struct fa_buf *
rof_answer_buf(struct rof_stage *st, struct rof_in *in, const struct wire_rof *h, uint32_t n)
{
	struct fa_buf *b = in->reserved;

	if (b == NULL)
		return rof_buf(st, h, n);
	in->reserved = NULL;
	b->data_len = b->len = wire_rof_emit(b->data, h);
	return b;
}

void
rof_sum_begin(const struct rof_chan *c, struct fa_buf *b, uint32_t n)
{
	if (c->p.sums && n >= ROF_SUM_MIN && !c->st->lengths_only)
		b->sum = sk_sum_fold(sk_sum(0, b->data, b->data_len));
}

void
rof_copy_long(
	const struct rof_chan *c, struct fa_buf *b, uint32_t head, const uint8_t *from, uint32_t n)
{
	if (c->p.sums && n >= ROF_SUM_MIN)
		b->sum =
			sk_sum_fold(sk_sum_copy(sk_sum(0, b->data, head), b->data + head, from, n));
	else
		memcpy(b->data + head, from, n);
}
