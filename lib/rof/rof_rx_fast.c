/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of a Read or Atomic of one packet at the target, and of its response at the
 * initiator: a list of guards, then straight code. A delivery that a guard rejects takes the
 * general path (rof_rx_pull.c, rof_rx_done.c), which also determines what is wrong with it. No
 * guard has an effect.
 */
#include "rof_priv.h"

#include <string.h>

#include "../rdma/atomic.h"
#include "../wire/rof_pull.h"

/* ---- At the target ---- */

/* Returns a buffer with room for `len` bytes, which the caller writes; NULL: none. */
static inline struct fa_buf *
answer_get(struct rof_stage *st, uint32_t len)
{
	struct fa_buf *b = st->ops.buf_get(st->ctx, SK_MAX(len, ROF_MAX));

	if (b != NULL)
		b->data_len = b->len = len;
	return b;
}

static enum rof_fast
read_next(struct rof_qp *q, struct wire_rof *h, struct fa_buf **answer)
{
	static const uint8_t zero[4];
	uint32_t n = h->length;
	uint64_t at = h->va;
	const uint8_t *host;
	struct rd_mr *mr;
	uint8_t *to;

	if (n == 0 || n > q->mtu ||
		rd_remote_check(q->st->ops.rd.mrs, q->rd, h->rkey, &at, n, RD_ACC_REMOTE_READ,
			&mr) != RD_OK)
		return ROF_FAST_NONE;
	host = rd_mr_page(mr, at, n);
	if (host == NULL)
		return ROF_FAST_NONE;
	h->pad = wire_rof_pad(n);
	*answer = answer_get(q->st, ROF_READ_RESPONSE_LEN + n + h->pad);
	if (*answer == NULL)
		return ROF_FAST_NOBUF;
	to = (*answer)->data;
	h->dest_qp = q->peer_qpn;
	wire_rof_read_response_put(to, h);
	if (n == sizeof(uint64_t))
		memcpy(to + ROF_READ_RESPONSE_LEN, host, sizeof(uint64_t));
	else
		rof_copy_long(q->c, *answer, ROF_READ_RESPONSE_LEN, host, n);
	if (h->pad > 0)
		memcpy(to + ROF_READ_RESPONSE_LEN + n, zero, h->pad);
	q->info.bytes_out += n;
	return ROF_FAST_DONE;
}

static enum rof_fast
atomic_next(struct rof_qp *q, struct wire_rof *h, struct fa_buf **answer)
{
	uint64_t *word, at = h->va;
	struct rd_mr *mr;
	bool done;

	if (rd_remote_check(q->st->ops.rd.mrs, q->rd, h->rkey, &at, sizeof(*word),
		    RD_ACC_REMOTE_ATOMIC, &mr) != RD_OK)
		return ROF_FAST_NONE;
	word = rd_atomic_word(mr, at);
	if (word == NULL || rd_mr_page(mr, at, sizeof(*word)) == NULL)
		return ROF_FAST_NONE;
	/* The buffer comes first: an Atomic cannot be undone. */
	*answer = answer_get(q->st, ROF_ATOMIC_RESPONSE_LEN);
	if (*answer == NULL)
		return ROF_FAST_NOBUF;
	done = h->opcode == ROF_FETCH_ADD ? rd_fetch_add(word, h->swap_add, 0, &h->original)
					  : rd_cmp_swap(word, h->swap_add, UINT64_MAX, h->compare,
						    UINT64_MAX, &h->original);
	if (!done) { /* it had no effect */
		q->st->ops.buf_put(q->st->ctx, *answer);
		return ROF_FAST_NONE;
	}
	h->dest_qp = q->peer_qpn;
	wire_rof_atomic_response_put((*answer)->data, h);
	return ROF_FAST_DONE;
}

enum rof_fast
rof_rx_pull_next(struct rof_chan *c, const struct fa_delivery *d, struct fa_buf **answer)
{
	const struct fa_buf *b = d->buf;
	struct rof_qp *q = c->rc;
	struct wire_rof h;
	enum rof_fast fast;

	if (!c->plain || q == NULL || q->phase != ROF_PHASE_OPEN || c->refused || b == NULL ||
		b->data_len != b->len || q->rd->ird == 0)
		return ROF_FAST_NONE;
	h.dest_qp = q->rd->qpn;
	if (!wire_rof_pull_parse(&h, b->data, b->len) || h.sn != c->sn_next)
		return ROF_FAST_NONE;
	fast = h.opcode == ROF_READ_REQUEST ? read_next(q, &h, answer) : atomic_next(q, &h, answer);
	if (fast == ROF_FAST_DONE) {
		q->info.msgs_in++;
		c->sn_next = h.sn + 1;
	}
	return fast;
}

/* ---- At the initiator ---- */

/* Returns the bytes of the response for the sink, which are `*n`, or NULL if it is not exactly the
 * expected response. *original: room for those of an Atomic. */
static inline const uint8_t *
response(const struct rof_qp *q, const struct rof_txn *t, const struct fa_buf *b, uint32_t *n,
	uint64_t *original)
{
	struct wire_rof want;

	want.dest_qp = q->rd->qpn;
	want.sn = t->sn;
	want.sink_va = t->sink;
	want.sink_lkey = t->sink_lkey;
	if (t->kind == ROF_TXN_READ) {
		*n = t->bytes;
		want.pad = wire_rof_pad(*n);
		if (b->len != ROF_READ_RESPONSE_LEN + *n + want.pad || *n == 0 ||
			!wire_rof_read_response_is(b->data, &want))
			return NULL;
		return b->data + ROF_READ_RESPONSE_LEN;
	}
	*n = sizeof(*original);
	want.pad = 0;
	if (t->kind != ROF_TXN_ATOMIC || b->len != ROF_ATOMIC_RESPONSE_LEN ||
		!wire_rof_atomic_response_is(b->data, &want))
		return NULL;
	*original = wire_rof_atomic_original(b->data);
	return (const uint8_t *)original;
}

/* Places the bytes of a response in its sink. Returns false when the general path must do it. */
static inline bool
place_next(struct rof_qp *q, const struct rof_txn *t, const uint8_t *from, uint32_t n)
{
	struct rd_mr *mr;
	uint8_t *host;

	if (rd_mr_check(q->st->ops.rd.mrs, q->rd->pd, q->rd->qpn, t->sink_lkey, t->sink, n,
		    RD_ACC_LOCAL_WRITE, &mr) != RD_OK)
		return false;
	host = rd_mr_page(mr, t->sink, n);
	if (host == NULL)
		return false;
	rd_place(host, from, n);
	q->info.bytes_in += n;
	return true;
}

bool
rof_rx_pull_data_next(struct rof_chan *c, const struct fa_delivery *d)
{
	struct rof_qp *q = c->rc;
	const uint8_t *from;
	struct rof_txn *t;
	uint64_t original;
	uint32_t n;

	if (!c->plain || q == NULL || q->phase != ROF_PHASE_OPEN || d->rsn != c->txn_base ||
		c->txn_base == c->txn_next || d->buf == NULL || d->buf->data_len != d->buf->len)
		return false;
	t = &c->txns[d->rsn & (c->txn_cap - 1)];
	if (t->qp != q || rof_req_at(q, t->req)->status != RD_SUCCESS ||
		rof_req_at(q, t->req)->opcode == RD_READ_INV)
		return false;
	from = response(q, t, d->buf, &n, &original);
	if (from == NULL || !place_next(q, t, from, n))
		return false;
	rof_buf_done(c->st, d->buf);
	c->credits.req_pkt_tx++;
	c->credits.req_buf_tx++;
	c->credits.req_pkt_rx++;
	c->credits.req_buf_rx += t->cells;
	t->kind = ROF_TXN_NONE;
	t->qp = NULL;
	c->txn_base++;
	rof_chan_rebase(c);
	q->pulls_out--;
	rof_req_pushed(q, t->req);
	return true;
}
