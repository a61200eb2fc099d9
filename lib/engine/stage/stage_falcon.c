/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP operations of Falcon. The stage sends transactions and verdicts to the transport stage,
 * and receives deliveries. A QP gets its channel when the connection opens, and keeps
 * it to its own end.
 */
#include <errno.h>
#include <rte_debug.h>
#include <rte_ring.h>
#include <stdlib.h>

#include "qp_ops_priv.h"

/* ---- The functions that lib/rof calls (rof_ops) ---- */

static struct fa_buf *
op_buf_get(void *ctx, uint32_t room)
{
	struct eng_stage *s = ctx;
	return room <= s->record_room ? eng_payload_get(s) : NULL;
}

static void
op_buf_put(void *ctx, struct fa_buf *buf)
{
	eng_fbuf_free(buf);
}

static void
op_bufs_put(void *ctx, struct fa_buf *chain)
{
	eng_fbufs_free(chain);
}

static bool
stage_falcon_tell_outcome(struct eng_stage *s, const struct eng_qp *qp, const struct fa_outcome *o)
{
	uint64_t what = ENG_OUTCOME(o->verdict, o->ulp_code) | (uint64_t)o->more << 16 |
			(uint64_t)o->rnr << 32;

	if (o->verdict != FA_RNR || o->buf == NULL)
		return eng_qp_send(s, qp, ENG_T_OUTCOME, (void *)(uintptr_t)what, o->rsn);
	((struct eng_fbuf *)o->buf)->rnr = o->rnr;
	return eng_qp_send(s, qp, ENG_T_RNR, o->buf, o->rsn);
}

/* Sends the requests of the QP that is being served. The ring has room for the message: this stage
 * found it when the first of them was added, and has sent nothing since. */
static void
requests_send(struct eng_stage *s)
{
	if (s->requests.first == NULL)
		return;
	RTE_VERIFY(eng_qp_send(s, s->requests.qp, ENG_T_REQUEST, s->requests.first, 0));
	s->requests.first = NULL;
}

/* Returns whether the ring to the transport stage of the QP is full, and counts it. */
static bool
transport_full(struct eng_stage *s, const struct eng_qp *qp)
{
	if (!rte_ring_full(s->to_transport[qp->transport]))
		return false;
	s->spent.ring_full = true;
	sk_count(s->counters, ENG_RING_FULL);
	return true;
}

/* Adds a request to those of the QP that is being served. Returns false when the ring is full. */
static bool
request_add(struct eng_stage *s, const struct eng_qp *qp, struct fa_buf *buf)
{
	struct eng_returned **at = eng_fbuf_returned(buf);

	if (s->requests.first == NULL) {
		if (transport_full(s, qp))
			return false;
		s->requests.end = &s->requests.first;
	}
	*at = eng_record_sent(*at, qp);
	s->spent.bytes += buf->len;
	*s->requests.end = buf;
	s->requests.end = &buf->next;
	return true;
}

/* Sends the answers to the pulls of a message. The ring has room, as for requests_send(). */
static void
answers_send(struct eng_stage *s)
{
	if (s->answers.first == NULL)
		return;
	RTE_VERIFY(eng_qp_send(s, s->answers.qp, ENG_T_ANSWER, s->answers.first, s->answers.rsn));
	s->answers.first = NULL;
}

/* Adds an answer to those of the message that is being processed. Returns false when the ring is
 * full. */
static bool
answer_add(struct eng_stage *s, const struct eng_qp *qp, uint32_t rsn, struct fa_buf *buf)
{
	struct eng_returned **at = eng_fbuf_returned(buf);

	if (s->answers.first != NULL && rsn != s->answers.rsn + s->answers.n)
		answers_send(s);
	if (s->answers.first == NULL) {
		if (transport_full(s, qp))
			return false;
		s->answers.end = &s->answers.first;
		s->answers.rsn = rsn;
		s->answers.n = 0;
	}
	*at = eng_record_sent(*at, qp);
	s->spent.bytes += buf->len;
	*s->answers.end = buf;
	s->answers.end = &buf->next;
	s->answers.n++;
	return true;
}

static bool
op_pass(void *ctx, struct rof_chan *c, const struct rof_msg *m)
{
	static const uint8_t types[] = {
		[ROF_MSG_PUSH] = ENG_T_REQUEST,
		[ROF_MSG_PULL] = ENG_T_REQUEST,
		[ROF_MSG_ANSWER] = ENG_T_ANSWER,
		[ROF_MSG_DATA] = ENG_T_DATA,
	};
	const struct eng_qp *qp = rof_chan_user(c);
	struct eng_stage *s = ctx;
	struct eng_returned **at, *own;
	uint32_t len;

	if (m->kind == ROF_MSG_PUSH || m->kind == ROF_MSG_PULL) {
		m->buf->pull = m->kind == ROF_MSG_PULL;
		m->buf->response_len = m->response_len;
		if (s->requests.qp == qp)
			return request_add(s, qp, m->buf);
	}
	if (m->kind == ROF_MSG_ANSWER)
		s->spent.requests++;
	if (m->kind == ROF_MSG_ANSWER && m->buf != NULL && s->answers.qp == qp)
		return answer_add(s, qp, m->outcome.rsn, m->buf);
	requests_send(s);
	answers_send(s);
	if (m->kind == ROF_MSG_OUTCOME)
		return stage_falcon_tell_outcome(s, qp, &m->outcome);
	if (m->buf == NULL) /* the answer to a pull whose headers are invalid */
		return eng_qp_send(s, qp, ENG_T_ANSWER, NULL, m->outcome.rsn);
	at = eng_fbuf_returned(m->buf);
	own = *at;
	len = m->buf->len;
	*at = eng_record_sent(own, qp);
	if (eng_qp_send(s, qp, types[m->kind], m->buf, m->outcome.rsn)) {
		s->spent.bytes += len;
		return true;
	}
	*at = own;
	return false;
}

static void
stage_falcon_op_close(void *ctx, struct rof_qp *q)
{
	eng_qp_pend(ctx, eng_qp_of(rof_qp_rd(q)), EQP_P_CLOSE);
}

void
eng_stage_falcon_init(struct eng_stage *s)
{
	s->rof.ops = (struct rof_ops){
		.rd = eng_stage_rd_ops,
		.buf_get = op_buf_get,
		.buf_put = op_buf_put,
		.bufs_put = op_bufs_put,
		.pass = op_pass,
		.close = stage_falcon_op_close,
		.ud_qp = eng_datagram_qp,
		.ud_chan = eng_datagram_chan,
		.late_take = eng_datagram_late_take,
		.late_give = eng_datagram_late_give,
		.ud_grh = eng_datagram_grh,
		.ud_pass = s->e->cfg.nstages > 1 ? eng_datagram_pass : NULL,
		.xrc_next = eng_xrc_next,
		.xrc_pd = eng_xrc_pd,
		.xrc_complete = eng_xrc_complete,
	};
	s->rof.ops.rd.mrs = s->e->mrs;
	s->rof.ctx = s;
	s->rof.general = s->e->cfg.falcon.stack.general;
}

/* ---- The functions that the stage calls (eng_qp_ops) ---- */

static int
stage_falcon_falcon_create(struct eng_stage *s, struct eng_qp *qp)
{
	qp->rof = rof_qp_create(&s->rof, &qp->rd, 0);
	return qp->rof == NULL ? -ENOMEM : 0;
}

static void
stage_falcon_falcon_destroy(struct eng_stage *s, struct eng_qp *qp)
{
	rof_qp_destroy(qp->rof);
	qp->rof = NULL;
	if (qp->chan != NULL)
		rof_chan_destroy(qp->chan);
	qp->chan = NULL;
}

/* Does nothing: the QP starts when both sides have agreed, with ENG_E_OPEN. */
static int
falcon_start(struct eng_stage *s, struct eng_qp *qp, const struct eng_start *start)
{
	return 0;
}

static void
falcon_open(struct eng_stage *s, struct eng_qp *qp, struct eng_falcon_start *start)
{
	if (qp->rd.state != RD_QP_ERR && qp->chan == NULL)
		qp->chan = rof_chan_create(&s->rof, &start->chan, qp);
	if (qp->chan == NULL) {
		eng_qp_pend(s, qp, EQP_P_ABORT);
	} else {
		qp->rd.ird = start->ird;
		qp->rd.ord = start->ord;
		rof_qp_start(qp->rof, qp->chan, start->peer_qpn);
		eng_qp_activate(s, qp);
	}
	free(start);
}

static bool
falcon_run(struct eng_stage *s, struct eng_qp *qp)
{
	enum rof_tx_result r;

	s->requests.qp = s->rof.general ? NULL : qp;
	r = rof_tx(qp->rof, s->now, ENG_QP_BURST);
	requests_send(s);
	s->requests.qp = NULL;
	return r == ROF_TX_MORE || r == ROF_TX_NOBUF;
}

static bool
falcon_pages(struct eng_stage *s, struct eng_qp *qp)
{
	return rof_pages(qp->rof);
}

static bool
falcon_flush(struct eng_qp *qp)
{
	return rof_flush(qp->rof, ENG_QP_BURST);
}

/* Returns the payload. Bit 0 of the pointer, which is 0 in any address, is fa_delivery.restart. */
static struct fa_buf *
buf_of(const struct eng_dmsg *m)
{
	return (struct fa_buf *)(uintptr_t)(m->u & ~1ull);
}

bool
eng_falcon_delivery(const struct eng_dmsg *m, struct fa_delivery *d)
{
	static const uint8_t types[] = {
		[ENG_E_PUSH] = FA_PUSH,
		[ENG_E_PULL] = FA_PULL,
		[ENG_E_PULL_DATA] = FA_PULL_DATA,
		[ENG_E_COMPLETION] = FA_COMPLETION,
	};
	uint32_t type = m->id_type & 15;

	if (type < ENG_E_PUSH || type > ENG_E_COMPLETION)
		return false;
	*d = (struct fa_delivery){.rsn = m->arg, .type = types[type]};
	if (type == ENG_E_COMPLETION) {
		d->completion = (uint8_t)m->u;
		d->ulp_code = (uint8_t)(m->u >> 8);
		d->more = (uint32_t)(m->u >> 32);
	} else {
		d->restart = m->u & 1;
		d->buf = buf_of(m);
	}
	return true;
}

static void
falcon_message(struct eng_stage *s, struct eng_qp *qp, const struct eng_dmsg *m)
{
	uint32_t type = m->id_type & 15;
	struct fa_delivery d;

	if (type == ENG_E_OPEN) {
		falcon_open(s, qp, (struct eng_falcon_start *)(uintptr_t)m->u);
		return;
	}
	if (type == ENG_E_FIN) { /* the peer has disconnected: this side does the same */
		if (qp->modified)
			eng_qp_pend(s, qp, EQP_P_CLOSE);
		else
			rof_disconnect(qp->rof);
		return;
	}
	if (qp->chan == NULL || !eng_falcon_delivery(m, &d)) {
		eng_dmsg_drop(m);
		return;
	}
	for (const struct fa_buf *b = d.buf; b != NULL; b = b->next)
		s->spent.bytes += b->len;
	s->answers.qp = s->rof.general ? NULL : qp;
	if (rof_rx(qp->chan, s->now, &d))
		eng_qp_activate(s, qp);
	answers_send(s);
	s->answers.qp = NULL;
}

/* Falcon has no half-closed connection: both kinds of close flush what is in flight. */
static void
falcon_disconnect(struct eng_stage *s, struct eng_qp *qp, enum eng_close how)
{
	rof_disconnect(qp->rof);
}

static void
falcon_closed(struct eng_stage *s, struct eng_qp *qp, int error)
{
	if (qp->chan != NULL)
		rof_chan_drop(qp->chan);
	if (qp->modified)
		eng_modified_closed(s, qp);
	else
		rof_closed(qp->rof, error);
}

static void
falcon_info(const struct eng_qp *qp, struct eng_work *out)
{
	struct rof_info info;

	rof_get_info(qp->rof, &info);
	*out = (struct eng_work){info.msgs_in, info.msgs_out, info.bytes_in, info.bytes_out};
}

static void
falcon_drop(const struct eng_dmsg *m)
{
	uint32_t type = m->id_type & 15;

	if (type == ENG_E_OPEN)
		free((struct eng_falcon_start *)(uintptr_t)m->u);
	if (type == ENG_E_PUSH || type == ENG_E_PULL || type == ENG_E_PULL_DATA)
		for (struct fa_buf *b = buf_of(m), *next; b != NULL; b = next) {
			next = b->next;
			eng_fbuf_free(b);
		}
}

static bool
falcon_opened(const struct eng_qp *qp)
{
	return qp->chan != NULL;
}

const struct eng_qp_ops eng_falcon_ops = {
	.create = stage_falcon_falcon_create,
	.destroy = stage_falcon_falcon_destroy,
	.start = falcon_start,
	.run = falcon_run,
	.flush = falcon_flush,
	.pages = falcon_pages,
	.message = falcon_message,
	.disconnect = falcon_disconnect,
	.closed = falcon_closed,
	.opened = falcon_opened,
	.info = falcon_info,
	.drop = falcon_drop,
	.lost = ROF_CONNECTION_LOST,
};
