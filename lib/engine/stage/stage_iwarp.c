/* SPDX-License-Identifier: BSD-3-Clause */
/* The QP operations of iWARP. The stage sends records to the transport stage, and receives slices
 * of the stream. */
#include <errno.h>

#include "../../base/mem.h"
#include "qp_ops_priv.h"

/* Unfinished FPDUs on all engine stages pin at most one HELD_PART-th of the receive mbufs of a
 * transport stage, even if they all come from that stage. Further ones are copied into at most
 * HELD_BYTES bytes for each receive mbuf. */
#define HELD_PART  4
#define HELD_BYTES 2048

/* The next record reports how much of the stream was placed. Without a record, a message of its own
 * reports each CONSUMED_PART-th of the receive buffer: TCP's window is at most this much smaller.
 */
#define CONSUMED_PART 16

/* ---- The functions that lib/iwarp calls (iw_ops) ---- */

static struct tcp_rec *
op_rec_get(void *ctx, uint32_t room)
{
	struct eng_stage *s = ctx;
	return room <= s->record_room ? eng_record_get(s) : NULL;
}

static void
op_rec_put(void *ctx, struct tcp_rec *rec)
{
	eng_rec_free(rec);
}

static bool
op_send(void *ctx, struct iw_qp *iw, struct tcp_rec *rec)
{
	struct eng_qp *qp = eng_qp_of(iw_qp_rd(iw));
	struct eng_returned **at = eng_rec_returned(rec), *own = *at;
	uint32_t len = rec->len;

	*at = eng_record_sent(own, qp);
	if (eng_qp_send(ctx, qp, ENG_T_RECORD, rec, qp->consumed)) {
		((struct eng_stage *)ctx)->spent.bytes += len;
		qp->consumed = 0;
		return true;
	}
	*at = own;
	return false;
}

static void
op_consumed(void *ctx, struct iw_qp *iw, uint32_t bytes)
{
	struct eng_qp *qp = eng_qp_of(iw_qp_rd(iw));
	struct eng_stage *s = ctx;

	qp->consumed += bytes;
	qp->whole = iw_rx_whole(iw);
	s->spent.bytes += bytes;
	if (qp->consumed >= s->e->cfg.tcp.rcv_buf / CONSUMED_PART)
		eng_qp_pend(s, qp, EQP_P_CONSUMED);
}

static void
op_slice_free(void *ctx, struct tcp_slice *chain)
{
	eng_slice_free(chain);
}

static void
stage_iwarp_op_close(void *ctx, struct iw_qp *iw, enum iw_close how)
{
	eng_qp_pend(
		ctx, eng_qp_of(iw_qp_rd(iw)), how == IW_CLOSE_ORDERLY ? EQP_P_CLOSE : EQP_P_ABORT);
}

static void
op_wake(void *ctx, struct iw_qp *iw)
{
	eng_qp_activate(ctx, eng_qp_of(iw_qp_rd(iw)));
}

int
eng_stage_iwarp_init(struct eng_stage *s)
{
	const struct eng_limits *l = &s->e->cfg.limits;
	uint32_t slices = l->rx_mbufs / HELD_PART / s->e->cfg.nstages;
	uint64_t bytes = (uint64_t)l->rx_mbufs * HELD_BYTES / s->e->cfg.nstages;

	s->iw.ops = (struct iw_ops){
		.rd = eng_stage_rd_ops,
		.rec_get = op_rec_get,
		.rec_put = op_rec_put,
		.send = op_send,
		.consumed = op_consumed,
		.slice_free = op_slice_free,
		.close = stage_iwarp_op_close,
		.wake = op_wake,
	};
	s->iw.ops.rd.mrs = s->e->mrs;
	s->iw.ctx = s;
	s->iw.general = s->e->cfg.general_iwarp;
	return mpa_store_init(&s->iw.store, SK_MAX(slices, 1u),
		(uint32_t)SK_MIN(bytes, (uint64_t)1 << 30), l->clients + 1, l->users + 1,
		l->user_min, l->user_most, s->iw.mpa_counters);
}

void
eng_stage_iwarp_fini(struct eng_stage *s)
{
	mpa_store_fini(&s->iw.store);
}

/* ---- The functions that the stage calls (eng_qp_ops) ---- */

static int
iwarp_create(struct eng_stage *s, struct eng_qp *qp)
{
	qp->iw = iw_qp_create(&s->iw, &qp->rd);
	return qp->iw == NULL ? -ENOMEM : 0;
}

static void
iwarp_destroy(struct eng_stage *s, struct eng_qp *qp)
{
	iw_qp_destroy(qp->iw);
	qp->iw = NULL;
}

static int
iwarp_start(struct eng_stage *s, struct eng_qp *qp, const struct eng_start *start)
{
	const struct iw_params params = {
		.initiator = start->initiator,
		.crc = start->mpa.crc,
		.tx_markers = start->mpa.tx_markers,
		.rx_markers = start->mpa.rx_markers,
		.rtr = (uint8_t)start->mpa.rtr,
		.ird = start->ird,
		.ord = start->ord,
		.emss = start->emss,
		.send_space = start->send_space,
		.draft_ext = start->draft_ext,
		.user = qp->client->user,
	};

	iw_qp_start(qp->iw, s->now, &params);
	return 0;
}

static bool
iwarp_run(struct eng_stage *s, struct eng_qp *qp)
{
	enum iw_tx_result r = iw_tx(qp->iw, s->now, ENG_QP_BURST);

	return r == IW_TX_MORE || r == IW_TX_NOBUF;
}

static bool
iwarp_pages(struct eng_stage *s, struct eng_qp *qp)
{
	return iw_pages(qp->iw, s->now);
}

static bool
iwarp_flush(struct eng_qp *qp)
{
	return iw_flush(qp->iw, ENG_QP_BURST);
}

static void
iwarp_message(struct eng_stage *s, struct eng_qp *qp, const struct eng_dmsg *m)
{
	uint32_t requests;

	switch (m->id_type & 15) {
	case ENG_E_DATA:
		requests = iw_requests(qp->iw);
		if (iw_rx(qp->iw, s->now, (struct tcp_slice *)(uintptr_t)m->u))
			eng_qp_activate(s, qp);
		s->spent.requests += iw_requests(qp->iw) - requests;
		break;
	case ENG_E_SPACE:
		if (iw_space(qp->iw, m->arg))
			eng_qp_activate(s, qp);
		break;
	case ENG_E_EMSS:
		iw_emss(qp->iw, m->arg);
		eng_qp_pend(s, qp, EQP_P_CONSUMED);
		break;
	case ENG_E_SPEAK:
		if (iw_release(qp->iw))
			eng_qp_activate(s, qp);
		break;
	case ENG_E_FIN:
		iw_peer_fin(qp->iw, s->now);
		eng_qp_activate(s, qp);
		break;
	}
}

static void
iwarp_disconnect(struct eng_stage *s, struct eng_qp *qp, enum eng_close how)
{
	iw_disconnect(qp->iw, s->now, how == ENG_CLOSE_ORDERLY ? IW_CLOSE_ORDERLY : IW_CLOSE_ABORT);
}

static bool
iwarp_may_leave(const struct eng_qp *qp)
{
	return iw_may_leave(qp->iw);
}

static void
iwarp_closed(struct eng_stage *s, struct eng_qp *qp, int error)
{
	iw_closed(qp->iw, s->now, error);
}

static void
iwarp_info(const struct eng_qp *qp, struct eng_work *out)
{
	struct iw_info info;

	iw_get_info(qp->iw, &info);
	*out = (struct eng_work){info.msgs_in, info.msgs_out, info.bytes_in, info.bytes_out};
}

static void
iwarp_drop(const struct eng_dmsg *m)
{
	if ((m->id_type & 15) == ENG_E_DATA)
		eng_slice_free((struct tcp_slice *)(uintptr_t)m->u);
}

static bool
iwarp_opened(const struct eng_qp *qp)
{
	return true;
}

const struct eng_qp_ops eng_iwarp_ops = {
	.create = iwarp_create,
	.destroy = iwarp_destroy,
	.start = iwarp_start,
	.run = iwarp_run,
	.flush = iwarp_flush,
	.pages = iwarp_pages,
	.message = iwarp_message,
	.disconnect = iwarp_disconnect,
	.may_leave = iwarp_may_leave,
	.closed = iwarp_closed,
	.opened = iwarp_opened,
	.info = iwarp_info,
	.drop = iwarp_drop,
	.lost = IW_LLP_CLOSED,
};
