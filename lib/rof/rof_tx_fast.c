/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of a request that is one packet, on a QP whose transactions are ordered: a list of
 * guards, then straight code. A request that a guard rejects takes the general path
 * (rof_tx.c), which also determines what is wrong with an invalid request. No guard has an effect.
 * Writes with one element that follow each other in the send queue are a run: they are copied from
 * the queue together, and a region is looked up once for consecutive ones with one lkey.
 */
#include "rof_priv.h"

#include <string.h>

#include "../wire/rof_pull.h"

#define FAST_FLAGS (RD_SIGNALED | RD_SOLICITED | RD_INLINE)
#define FAST_WORDS 64 /* bytes up to which a loop copies */
#define RUN_WRITES 16 /* requests that are copied from the send queue at once */

/* A Write or Send, but for its payload. */
struct push {
	uint64_t wr_id, taken, va; /* taken: as in struct rof_op */
	uint32_t rkey;
	uint8_t opcode, flags;
};

/* Returns the payload of the request, which has *n bytes, if it is valid, contiguous and present,
 * else NULL. */
static inline const uint8_t *
fast_source(struct rof_qp *q, const struct rd_wr *wr, uint32_t *n)
{
	const struct rd_sge *sge = &wr->sge[0];
	struct rd_mr *mr;

	if (wr->flags & RD_INLINE) {
		*n = wr->inline_len;
		return wr->inline_len <= RD_MAX_INLINE ? wr->inl : NULL;
	}
	*n = sge->len;
	if (wr->nsge != 1 || sge->len == 0 ||
		rd_mr_check(q->st->ops.rd.mrs, q->rd->pd, q->rd->qpn, sge->lkey, sge->addr,
			sge->len, 0, &mr) != RD_OK)
		return NULL;
	return rd_mr_page(mr, sge->addr, sge->len);
}

/* Returns whether the channel can start a transaction now. */
static inline bool
chan_open(const struct rof_chan *c)
{
	return c != NULL && c->plain && c->pending_head == c->pending_tail && c->pending_cap > 0 &&
	       c->txn_next - c->txn_base < c->txn_cap;
}

/* Copies `n` bytes and the padding behind the headers, which have `head` bytes. */
static inline void
copy_padded(const struct rof_chan *c, struct fa_buf *b, uint32_t head, const uint8_t *from,
	uint32_t n, uint8_t pad)
{
	static const uint8_t zero[4];
	uint8_t *at = b->data + head;
	uint64_t word;

	if (n > FAST_WORDS) {
		rof_copy_long(c, b, head, from, n);
	} else {
		for (; n >= sizeof(word); n -= sizeof(word)) {
			memcpy(&word, from, sizeof(word));
			memcpy(at, &word, sizeof(word));
			at += sizeof(word);
			from += sizeof(word);
		}
		if (n > 0)
			memcpy(at, from, n);
	}
	if (pad > 0)
		memcpy(at + n, zero, pad);
}

/* Writes the headers. Returns their length. */
static inline uint32_t
headers(uint8_t *at, const struct rof_qp *q, const struct push *p, uint32_t n, uint8_t pad)
{
	struct wire_rof h;

	h.pad = pad;
	h.dest_qp = q->peer_qpn;
	h.sn = q->c->sn;
	if (p->opcode == RD_WRITE) {
		h.va = p->va;
		h.rkey = p->rkey;
		h.length = n;
		wire_rof_write_put(at, &h);
		return ROF_WRITE_ONLY_LEN;
	}
	h.se = p->flags & RD_SOLICITED;
	h.rmsn = q->send_rmsn;
	wire_rof_send_put(at, &h);
	return ROF_SEND_ONLY_LEN;
}

/* Records the request and its only transaction, which has a payload of `len` bytes. Returns the
 * transaction, whose kind and cells the caller sets. */
static inline struct rof_txn *
begin(struct rof_qp *q, uint64_t wr_id, uint64_t taken, uint8_t opcode, uint8_t flags, uint32_t n,
	uint32_t len)
{
	struct rof_req *r = rof_req_at(q, q->req_tail);
	struct rof_chan *c = q->c;
	struct rof_txn *t = &c->txns[c->txn_next++ & (c->txn_cap - 1)];
	bool signaled = q->rd->sig_all || (flags & RD_SIGNALED);

	c->credits.req_pkt_tx--;
	c->credits.req_pkt_rx--;
	t->qp = q;
	t->req = q->req_tail++;
	t->sn = c->sn++;
	t->len = len;
	*r = (struct rof_req){
		.wr_id = wr_id,
		.total = n,
		.left = 1,
		.opcode = opcode,
		.flags = ROF_REQ_ISSUED | (signaled ? ROF_REQ_SIGNALED : 0),
	};
	if (rd_sample_due(&q->sample))
		rof_req_sample(q, r, taken);
	q->info.msgs_out++;
	return t;
}

static inline void
fast_pass(struct rof_chan *c, const struct rof_msg *m)
{
	if (!c->st->ops.pass(c->st->ctx, c, m))
		c->pending[c->pending_tail++ & (c->pending_cap - 1)] = *m;
}

/* Ends the start of a request that was taken from the queue. */
static inline enum rof_step
fast_end(struct rof_qp *q, struct rof_op *op)
{
	q->op = NULL;
	rof_op_put(q->st, op);
	return ROF_STEP_DID;
}

/* Starts a Write or Send whose payload has `n` bytes at `from`. */
static inline __attribute__((always_inline)) enum rof_step
push_start(struct rof_qp *q, const struct push *p, const uint8_t *from, uint32_t n)
{
	struct rof_stage *st = q->st;
	struct rof_chan *c = q->c;
	struct rof_msg m = {.kind = ROF_MSG_PUSH};
	uint8_t pad = wire_rof_pad(n);
	uint32_t head = p->opcode == RD_WRITE ? ROF_WRITE_ONLY_LEN : ROF_SEND_ONLY_LEN;
	uint32_t len = head + n + pad, cells = fa_cells(len, c->tx_cell);
	struct rof_txn *t;

	if (c->credits.req_pkt_tx < 1 || c->credits.req_pkt_rx < 1 || c->credits.req_buf_tx < cells)
		return ROF_STEP_NONE;
	m.buf = st->ops.buf_get(st->ctx, ROF_MAX + n + pad);
	if (m.buf == NULL)
		return ROF_STEP_NOBUF;
	copy_padded(c, m.buf, headers(m.buf->data, q, p, n, pad), from, n, pad);
	m.buf->data_len = m.buf->len = len;
	t = begin(q, p->wr_id, p->taken, p->opcode, p->flags, n, len);
	t->kind = ROF_TXN_PUSH;
	t->cells = (uint16_t)cells;
	c->credits.req_buf_tx -= cells;
	if (p->opcode == RD_SEND)
		q->send_rmsn++;
	q->info.bytes_out += n;
	fast_pass(c, &m);
	return ROF_STEP_DID;
}

static inline enum rof_step
fast_push(struct rof_qp *q, struct rof_op *op)
{
	const struct rd_wr *wr = &op->wr;
	const struct push p = {
		wr->wr_id, op->taken, wr->remote_addr, wr->rkey, wr->opcode, wr->flags};
	enum rof_step s;
	uint32_t n;
	const uint8_t *from = fast_source(q, wr, &n);

	if (from == NULL || n > q->mtu)
		return ROF_STEP_NONE;
	s = push_start(q, &p, from, n);
	return s == ROF_STEP_DID ? fast_end(q, op) : s;
}

/* Returns whether a Read or Atomic has one valid element, which is on one page that is present, and
 * its operands are those that a packet can carry. */
static inline bool
fast_sink(const struct rof_qp *q, const struct rd_wr *wr)
{
	const struct rd_sge *sge = &wr->sge[0];
	struct rd_mr *mr;

	if (wr->nsge != 1 || sge->len == 0)
		return false;
	if (wr->opcode == RD_READ ? sge->len > q->mtu : sge->len != sizeof(uint64_t))
		return false;
	if (wr->opcode == RD_FETCH_ADD && wr->data_mask != 0)
		return false;
	if (wr->opcode == RD_CMP_SWAP &&
		(wr->data_mask != UINT64_MAX || wr->compare_mask != UINT64_MAX))
		return false;
	return rd_mr_check(q->st->ops.rd.mrs, q->rd->pd, q->rd->qpn, sge->lkey, sge->addr, sge->len,
		       RD_ACC_LOCAL_WRITE, &mr) == RD_OK &&
	       rd_mr_page(mr, sge->addr, sge->len) != NULL;
}

/* Writes the headers of a Read or Atomic, which are all of its packet. Returns their length. */
static inline uint32_t
pull_headers(uint8_t *at, const struct rof_qp *q, const struct rd_wr *wr)
{
	const struct rd_sge *sge = &wr->sge[0];
	struct wire_rof h;

	h.pad = 0;
	h.dest_qp = q->peer_qpn;
	h.sn = q->c->sn;
	h.va = wr->remote_addr;
	h.rkey = wr->rkey;
	h.rmsn = q->pull_rmsn;
	h.sink_va = sge->addr;
	h.sink_lkey = sge->lkey;
	if (wr->opcode == RD_READ) {
		h.length = sge->len;
		wire_rof_read_put(at, &h);
		return ROF_READ_REQUEST_LEN;
	}
	h.opcode = wr->opcode == RD_FETCH_ADD ? ROF_FETCH_ADD : ROF_CMP_SWAP;
	h.swap_add = wr->data;
	h.compare = wr->compare;
	wire_rof_atomic_put(at, &h);
	return ROF_ATOMIC_LEN;
}

static inline enum rof_step
fast_pull(struct rof_qp *q, struct rof_op *op)
{
	struct rof_msg m = {.kind = ROF_MSG_PULL};
	const struct rd_wr *wr = &op->wr;
	uint32_t cells, n = wr->sge[0].len;
	bool read = wr->opcode == RD_READ;
	struct rof_chan *c = q->c;
	struct rof_txn *t;

	if ((wr->flags & RD_INLINE) || q->pulls_out >= q->rd->ord || !fast_sink(q, wr))
		return ROF_STEP_NONE;
	m.response_len =
		read ? ROF_READ_RESPONSE_LEN + n + wire_rof_pad(n) : ROF_ATOMIC_RESPONSE_LEN;
	cells = fa_cells(m.response_len, c->rx_cell);
	if (c->credits.req_pkt_tx < 1 || c->credits.req_pkt_rx < 1 || c->credits.req_buf_tx < 1 ||
		c->credits.req_buf_rx < cells)
		return ROF_STEP_NONE;
	m.buf = q->st->ops.buf_get(q->st->ctx, ROF_MAX);
	if (m.buf == NULL)
		return ROF_STEP_NOBUF;
	m.buf->data_len = m.buf->len = pull_headers(m.buf->data, q, wr);
	t = begin(q, wr->wr_id, op->taken, wr->opcode, wr->flags, n, m.response_len);
	t->kind = read ? ROF_TXN_READ : ROF_TXN_ATOMIC;
	t->cells = (uint16_t)cells;
	t->sink = wr->sge[0].addr;
	t->sink_lkey = wr->sge[0].lkey;
	t->bytes = read ? n : 0;
	c->credits.req_buf_tx--;
	c->credits.req_buf_rx -= cells;
	q->pull_rmsn++;
	q->pulls_out++;
	fast_pass(c, &m);
	return fast_end(q, op);
}

enum rof_step
rof_tx_fast(struct rof_qp *q, struct rof_op *op)
{
	if (!chan_open(q->c) || (op->wr.flags & ~FAST_FLAGS))
		return ROF_STEP_NONE;
	switch (op->wr.opcode) {
	case RD_WRITE:
	case RD_SEND:
		return fast_push(q, op);
	case RD_READ:
	case RD_FETCH_ADD:
	case RD_CMP_SWAP:
		return fast_pull(q, op);
	default:
		return ROF_STEP_NONE;
	}
}

/* ---- A run of Writes ---- */

/* Returns the payload if it is valid, contiguous and on one page that is present, else NULL. */
static inline const uint8_t *
run_source(const struct rof_qp *q, struct rd_span *source, const struct rd_write *w)
{
	const uint8_t *p;

	if ((source->host == NULL || source->stag != w->lkey) &&
		!rd_span_find(q->st->ops.rd.mrs, q->rd, w->lkey, 0, false, source))
		return NULL;
	p = rd_span_at(source, w->addr, w->len);
	if (p == NULL || (uintptr_t)p % SK_PROBE_PAGE + w->len > SK_PROBE_PAGE || !sk_probe(p))
		return NULL;
	return p;
}

enum rof_step
rof_tx_run(struct rof_qp *q, unsigned budget, uint64_t enough, unsigned *sent)
{
	const struct rd_ops *rd = &q->st->ops.rd;
	struct rd_write w[RUN_WRITES];
	uint64_t now = q->st->latency.now;
	struct rd_span source = {0};
	enum rof_step s = ROF_STEP_DID;
	unsigned n, i = 0;
	bool more;

	*sent = 0;
	if (rd->sq_writes == NULL || q->op != NULL || q->halted || !chan_open(q->c))
		return ROF_STEP_WAIT;
	n = rd->sq_writes(q->st->ctx, q->rd, w, SK_MIN(budget, (unsigned)RUN_WRITES), &more);
	for (; i < n && s == ROF_STEP_DID && q->info.bytes_out < enough; i++) {
		const struct push p = {
			w[i].wr_id, now, w[i].remote_addr, w[i].rkey, RD_WRITE, w[i].flags};
		const uint8_t *from = NULL;

		if (w[i].len - 1 < q->mtu && chan_open(q->c) && rof_req_room(q))
			from = run_source(q, &source, &w[i]);
		s = from != NULL ? push_start(q, &p, from, w[i].len) : ROF_STEP_NONE;
	}
	*sent = s == ROF_STEP_DID ? i : i - 1;
	rd->sq_took(q->st->ctx, q->rd, *sent);
	if (s == ROF_STEP_NOBUF)
		return s;
	if (*sent == n && !more)
		return ROF_STEP_NONE;
	return *sent > 0 ? ROF_STEP_DID : ROF_STEP_WAIT;
}
