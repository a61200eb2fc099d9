/* SPDX-License-Identifier: BSD-3-Clause */
/* The client and engine stage of one end: see rd_end.h. */
#include "rd_end.h"

#include "need.h"

#include <string.h>

static bool
take(struct rd_wr *wr, const struct rd_wr *queue, unsigned wrs, unsigned *head, unsigned tail)
{
	if (*head == tail)
		return false;
	*wr = queue[(*head)++ % wrs];
	return true;
}

static bool
sq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr)
{
	struct rd_end *e = ctx;

	return take(wr, e->sq, e->wrs, &e->sq_head, e->sq_tail);
}

static bool
sq_pending(void *ctx, struct rd_qp *qp)
{
	struct rd_end *e = ctx;

	return e->sq_head != e->sq_tail;
}

static bool
is_plain_write(const struct rd_wr *wr)
{
	return wr->opcode == RD_WRITE && wr->nsge == 1 &&
	       (wr->flags & ~(RD_SIGNALED | RD_SOLICITED)) == 0;
}

static unsigned
sq_writes(void *ctx, struct rd_qp *qp, struct rd_write *out, unsigned n, bool *more)
{
	const struct rd_end *e = ctx;
	unsigned k, at = e->sq_head;

	for (k = 0; k < n && at != e->sq_tail; k++, at++) {
		const struct rd_wr *wr = &e->sq[at % e->wrs];

		if (!is_plain_write(wr))
			break;
		out[k] = (struct rd_write){wr->wr_id, wr->remote_addr, wr->sge[0].addr, wr->rkey,
			wr->sge[0].lkey, wr->sge[0].len, wr->flags};
	}
	*more = at != e->sq_tail;
	return k;
}

static void
sq_took(void *ctx, struct rd_qp *qp, unsigned n)
{
	struct rd_end *e = ctx;

	e->sq_head += n;
}

bool
rd_end_rq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr)
{
	struct rd_end *e = ctx;

	return take(wr, e->rq, e->wrs, &e->rq_head, e->rq_tail);
}

void
rd_end_complete(void *ctx, struct rd_qp *qp, bool recv, const struct rd_wc *wc)
{
	struct rd_end *e = ctx;

	if (recv)
		e->recv_wc[e->nrecv++ % e->wcs] = *wc;
	else
		e->send_wc[e->nsend++ % e->wcs] = *wc;
}

static void
qp_error(void *ctx, struct rd_qp *qp, int code)
{
	struct rd_end *e = ctx;

	e->errors++;
	e->error_code = code;
}

static bool
invalidate(void *ctx, struct rd_mr *mr)
{
	struct rd_end *e = ctx;

	e->invalidations++;
	return rd_mr_invalidate(mr);
}

void
rd_end_init(struct rd_end *e, unsigned wrs, unsigned wcs, uint32_t mrs, const struct sk_key *key)
{
	e->wrs = wrs;
	e->wcs = wcs;
	e->sq = calloc(wrs, sizeof(*e->sq));
	e->rq = calloc(wrs, sizeof(*e->rq));
	e->send_wc = calloc(wcs, sizeof(*e->send_wc));
	e->recv_wc = calloc(wcs, sizeof(*e->recv_wc));
	e->mrs = rd_mr_table_create(mrs, key);
	need(e->sq != NULL && e->rq != NULL && e->send_wc != NULL && e->recv_wc != NULL);
	need(e->mrs != NULL);
}

void
rd_end_fini(struct rd_end *e)
{
	free(e->sq);
	free(e->rq);
	free(e->send_wc);
	free(e->recv_wc);
	rd_mr_table_destroy(e->mrs);
	e->sq = e->rq = NULL;
	e->send_wc = e->recv_wc = NULL;
	e->mrs = NULL;
}

struct rd_ops
rd_end_ops(const struct rd_end *e)
{
	return (struct rd_ops){.mrs = e->mrs,
		.sq_next = sq_next,
		.sq_pending = sq_pending,
		.sq_writes = sq_writes,
		.sq_took = sq_took,
		.rq_next = rd_end_rq_next,
		.complete = rd_end_complete,
		.qp_error = qp_error,
		.invalidate = invalidate};
}

struct rd_wr *
rd_end_post(struct rd_end *e, uint8_t opcode, uint64_t wr_id)
{
	struct rd_wr *wr = &e->sq[e->sq_tail++ % e->wrs];

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = wr_id;
	wr->opcode = opcode;
	return wr;
}

struct rd_wr *
rd_end_recv(struct rd_end *e, uint64_t wr_id)
{
	struct rd_wr *wr = &e->rq[e->rq_tail++ % e->wrs];

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = wr_id;
	wr->opcode = RD_RECV;
	return wr;
}
