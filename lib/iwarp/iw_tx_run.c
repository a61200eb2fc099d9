/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path for a run of small Writes: as long as the next requests of the send queue are
 * Writes with one element, their FPDUs are written one behind the other into the record. The state
 * of the QP is checked once for the run, a region is looked up once for consecutive requests with
 * one lkey, and the counters and the position in the stream change once. The first request that a
 * guard rejects stays in the send queue, and takes the general path (iw_tx_msg.c). A run ends with
 * the request whose latency counts, so that the others need no check for that.
 */
#include "iw_priv.h"
#include "mpa_priv.h"

#include "../base/mem.h"

#include <string.h>

#define RUN_WRITES  16  /* requests that are copied from the send queue at once */
#define RUN_PAYLOAD 256 /* bytes: with a larger payload, the headers cost little in comparison */

struct tx_run {
	struct rd_span source;
	uint8_t *at, *end; /* the free part of the record */
	int64_t space;     /* q->space less the bytes since the last commit */
	uint64_t sum;      /* Internet checksum of the FPDUs since the last commit, */
	unsigned n;        /* their requests, */
	uint32_t bytes;    /* and the payload */
};

/* Continues behind what the record holds, if there is one. */
static void
tx_run_begin(struct tx_run *run, const struct iw_qp *q)
{
	run->at = q->rec != NULL ? q->rec->data + q->rec->len : NULL;
	run->end = q->rec != NULL ? q->rec->data + q->rec_cap : NULL;
	run->space = q->space;
	run->sum = 0;
	run->n = 0;
	run->bytes = 0;
}

/* Adds the FPDUs since the last commit to the record, and takes their requests from the queue. */
static void
tx_run_commit(const struct tx_run *run, struct iw_qp *q)
{
	uint32_t len;

	if (run->n == 0)
		return;
	len = (uint32_t)(run->at - q->rec->data) - q->rec->len;
	q->rec->len += len;
	q->rec->sum = sk_sum_fold(sk_sum_add(q->rec->sum, run->sum));
	q->space -= len;
	q->mtx.pos += len;
	q->info.msgs_out += run->n;
	q->info.bytes_out += run->bytes;
	q->irq_turn = true;
	q->st->ops.rd.sq_took(q->st->ctx, q->rd, run->n);
}

/* Returns the address of the payload if it is valid, contiguous and present, else NULL. */
static inline const uint8_t *
tx_run_source(const struct iw_qp *q, struct tx_run *run, const struct rd_write *w)
{
	const uint8_t *p;

	if ((run->source.host == NULL || run->source.stag != w->lkey) &&
		!rd_span_find(q->st->ops.rd.mrs, q->rd, w->lkey, 0, false, &run->source))
		return NULL;
	p = rd_span_at(&run->source, w->addr, w->len);
	return p == NULL || sk_probe_range(p, w->len) != NULL ? NULL : p;
}

/* Writes the FPDU of `w`, which has `len` bytes; the payload is at `src`. */
static inline void
tx_run_fpdu(struct tx_run *run, const struct rd_write *w, const uint8_t *src, uint32_t len)
{
	const struct wire_ddp d = {
		.last = true, .opcode = RDMAP_WRITE, .stag = w->rkey, .to = w->remote_addr};
	struct sk_check c = {SK_CRC32C_INIT, run->sum};
	uint64_t word[2], eight;
	uint8_t *at = run->at;

	wire_fpdu_tagged_words(word, DDP_TAGGED_LEN + w->len, &d);
	memcpy(at, word, sizeof(word));
	c = sk_check_word(sk_check_word(c, word[0]), word[1]);
	at += sizeof(word);
	if (w->len == sizeof(eight)) {
		memcpy(&eight, src, sizeof(eight));
		memcpy(at, &eight, sizeof(eight));
		c = sk_check_word(c, eight);
	} else {
		c = sk_check_copy(c, at, src, w->len);
	}
	run->sum = iw_fpdu_end(at + w->len, -w->len % 4, c, true);
	run->at += len;
	run->space -= len;
	run->bytes += w->len;
	run->n++;
}

static inline bool
tx_run_is_signaled(const struct iw_qp *q, const struct rd_write *w)
{
	return q->rd->sig_all || (w->flags & RD_SIGNALED);
}

/* Queues the completion of a signaled request, whose entry is reserved. */
static void
tx_run_signaled(struct iw_qp *q, const struct rd_write *w)
{
	struct iw_sqe *e = iw_sq_push(q);

	e->wr_id = w->wr_id;
	e->total = w->len;
	e->opcode = RD_WRITE;
	e->flags = IW_SQE_LAST | IW_SQE_SIGNALED;
}

/* Makes room for an FPDU of `len` bytes. Returns false if no record is available, or the transport
 * stage refuses the full one. */
static inline bool
tx_run_room(struct tx_run *run, struct iw_qp *q, uint32_t ulpdu_len, uint32_t len)
{
	bool room;

	if (len <= (size_t)(run->end - run->at))
		return true;
	tx_run_commit(run, q);
	room = iw_rec_room(q, ulpdu_len);
	tx_run_begin(run, q);
	return room;
}

/* Sends the first requests of the `n` at `w`, and sets *sent to their number. Returns false if no
 * record is available, or the transport stage refuses one. */
static bool
tx_run_send(struct iw_qp *q, const struct rd_write *w, unsigned n, unsigned *sent)
{
	struct tx_run run = {.n = 0};
	const uint8_t *src;
	uint32_t len;

	tx_run_begin(&run, q);
	for (*sent = 0; *sent < n && run.space > 0; w++) {
		if (w->len - 1 >= RUN_PAYLOAD || w->len > q->mulpdu - DDP_TAGGED_LEN)
			break;
		src = tx_run_source(q, &run, w);
		if (src == NULL)
			break;
		len = mpa_plain_len(DDP_TAGGED_LEN + w->len);
		if (!tx_run_room(&run, q, DDP_TAGGED_LEN + w->len, len))
			return false;
		tx_run_fpdu(&run, w, src, len);
		++*sent;
		if (!tx_run_is_signaled(q, w))
			continue;
		tx_run_signaled(q, w);
		if (!iw_sq_reserve(q))
			break;
	}
	tx_run_commit(&run, q);
	return true;
}

enum iw_step
iw_tx_run(struct iw_qp *q, unsigned budget, unsigned *sent)
{
	const struct rd_ops *rd = &q->st->ops.rd;
	unsigned n, most = SK_MIN(budget, (unsigned)RUN_WRITES);
	struct rd_write w[RUN_WRITES];
	bool more, room;

	*sent = 0;
	if (rd->sq_writes == NULL || q->st->general || q->phase != IW_PHASE_OPEN || q->hold ||
		q->tx_op != NULL || q->midst != IW_MIDST_NONE || q->rtr != MPA_RTR_NONE ||
		q->irq.head != q->irq.tail || q->mtx.markers || !q->mtx.crc || !iw_sq_reserve(q))
		return IW_STEP_WAIT;
	n = rd->sq_writes(q->st->ctx, q->rd, w, SK_MIN(most, (unsigned)q->sample.left), &more);
	if (n == 0)
		return more ? IW_STEP_WAIT : IW_STEP_NONE;
	room = tx_run_send(q, w, n, sent);
	q->sample.left = (uint8_t)(q->sample.left - *sent);
	if (q->sample.left == 0)
		iw_sq_sample_last(q, tx_run_is_signaled(q, &w[n - 1]));
	if (!room)
		return IW_STEP_NOBUF;
	if (*sent == 0)
		return IW_STEP_WAIT;
	if (*sent < n || more || n == budget || q->space <= 0)
		return IW_STEP_DID;
	return IW_STEP_NONE;
}
